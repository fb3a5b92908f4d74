"""`tf.keras.layers`: the building blocks of models, with Keras's arguments, defaults, weights and outputs.

The modules hold a family each and load on first use; `keras/layer.py` has the base class.

>>> import twofold as tf
>>> tf.keras.layers.Dense(2)(tf.zeros([1, 3])).shape
TensorShape([1, 2])
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish

from ..serialization import deserialize_keras_object, serialize_keras_object

_FAMILIES = {
    "..input_layer": "Input InputLayer",
    "..input_spec": "InputSpec",
    "..layer": "Layer",
    ".activation": "Activation ELU LeakyReLU PReLU ReLU Softmax ThresholdedReLU",
    ".attention": "AdditiveAttention Attention",
    ".bidirectional": "Bidirectional",
    ".conv_lstm": "ConvLSTM1D ConvLSTM2D ConvLSTM3D",
    ".convolution": "Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose Convolution1D "
                    "Convolution1DTranspose Convolution2D Convolution2DTranspose Convolution3D Convolution3DTranspose",
    ".core": "Dense EinsumDense Embedding Identity Lambda Masking ReversibleEmbedding",
    ".crossing": "HashedCrossing",
    ".depthwise": "DepthwiseConv1D DepthwiseConv2D SeparableConv1D SeparableConv2D SeparableConvolution1D "
                  "SeparableConvolution2D",
    ".gru": "GRU GRUCell",
    ".lstm": "LSTM LSTMCell",
    ".lookup": "Hashing IntegerLookup StringLookup",
    ".merging": "Add Average Concatenate Dot Maximum Minimum Multiply Subtract add average concatenate dot maximum "
                "minimum multiply subtract",
    ".multi_head": "GroupQueryAttention MultiHeadAttention",
    ".normalization": "BatchNormalization GroupNormalization LayerNormalization RMSNormalization UnitNormalization",
    ".padding": "Cropping1D Cropping2D Cropping3D UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D "
                "ZeroPadding3D",
    ".pooling": "AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D AdaptiveMaxPooling1D "
                "AdaptiveMaxPooling2D AdaptiveMaxPooling3D AveragePooling1D AveragePooling2D AveragePooling3D "
                "AvgPool1D AvgPool2D AvgPool3D GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D "
                "GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D "
                "GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D MaxPool1D MaxPool2D MaxPool3D MaxPooling1D "
                "MaxPooling2D MaxPooling3D",
    ".preprocessing": "CategoryEncoding CenterCrop Discretization Normalization Rescaling Resizing",
    ".random_images": "RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation "
                      "RandomZoom",
    ".random_colours": "AutoContrast Equalization RandomColorDegeneration RandomColorJitter RandomGrayscale RandomHue "
                       "RandomInvert RandomPosterization RandomSaturation RandomSharpness Solarization",
    ".pipelines": "MaxNumBoundingBoxes Pipeline",
    ".random_mixtures": "CutMix MixUp RandomErasing",
    ".random_policies": "AugMix RandAugment",
    ".random_shapes": "RandomElasticTransform RandomGaussianBlur RandomPerspective RandomShear",
    ".random_sizes": "RandomHeight RandomWidth",
    ".spectrograms": "MelSpectrogram STFTSpectrogram",
    ".recurrent": "RNN StackedRNNCells",
    ".regularization": "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise SpatialDropout1D "
                       "SpatialDropout2D SpatialDropout3D",
    ".reshaping": "Flatten Permute RepeatVector Reshape",
    ".saved_models": "TFSMLayer",
    ".simple_rnn": "SimpleRNN SimpleRNNCell",
    ".text": "TextVectorization",
    ".wrappers": "SpectralNormalization TimeDistributed Wrapper",
}
_WHERE = {name: module for module, names in _FAMILIES.items() for name in names.split()}

__all__ = sorted([*_WHERE, "deserialize", "serialize"])


@public
def serialize(layer: Any) -> dict[str, Any]:
    """The config of a layer: `{"module", "class_name", "config", ..}`.

    >>> import twofold as tf
    >>> tf.keras.layers.serialize(tf.keras.layers.Flatten())["class_name"]
    'Flatten'
    """
    return serialize_keras_object(layer)


@public
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer of a config; `custom_objects` are further classes by name.

    >>> import twofold as tf
    >>> tf.keras.layers.deserialize({"class_name": "Dense", "config": {"units": 3}}).units
    3
    """
    return deserialize_keras_object(config, custom_objects=custom_objects, module_objects=_Names())


class _Names(Mapping[str, Any]):
    """The layers by name, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in _WHERE:
            raise KeyError(name)
        return __getattr__(name)

    def __iter__(self) -> Any:
        return iter(_WHERE)

    def __len__(self) -> int:
        return len(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(where, __name__), name)
    setattr(sys.modules[__name__], name, value)
    return value


publish(__name__)

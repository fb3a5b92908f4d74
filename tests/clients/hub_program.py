"""KerasHub and KerasCV under the genuine Keras: forward passes, training steps and preprocessing of small models.

Prints a JSON object: name of a check -> numbers, or the text of its error. `hub_suite.py` runs it on TensorFlow and on
twofold and compares; the weights come from equal seeds.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf

IDS = np.random.RandomState(0).randint(1, 100, (4, 16)).astype("int32")
MASK = np.ones_like(IDS)
IMAGES = np.random.RandomState(0).rand(4, 32, 32, 3).astype("float32")
LABELS = np.array([0, 1, 2, 1])
SIZES = {"vocabulary_size": 100, "num_layers": 2, "hidden_dim": 16, "intermediate_dim": 32}


def numbers(*values: Any) -> list[float]:
    """Sums and sums of squares, which stand for arrays."""
    flat = []
    for value in values:
        array = np.asarray(value, np.float64)
        flat += [float(array.sum()), float((array * array).sum())]
    return flat


def trained(model: Any, x: Any, y: Any, epochs: int = 2) -> list[float]:
    """The losses of some steps, and what the model predicts afterwards."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, optimizer="sgd", jit_compile=False)
    losses = model.fit(x, y, epochs=epochs, batch_size=4, shuffle=False, verbose=0).history["loss"]
    return [*losses, *numbers(model.predict(x, verbose=0))]


def hub_checks() -> dict[str, Callable[[], list[float]]]:
    """Models of KerasHub."""
    import keras_hub

    models = keras_hub.models

    def bert() -> list[float]:
        backbone = models.BertBackbone(**SIZES, num_heads=2, max_sequence_length=16, dropout=0.0)
        x = {"token_ids": IDS, "segment_ids": np.zeros_like(IDS), "padding_mask": MASK}
        return trained(models.BertTextClassifier(backbone, num_classes=3, preprocessor=None, dropout=0.0), x, LABELS)

    def gpt2() -> list[float]:
        backbone = models.GPT2Backbone(**SIZES, num_heads=2, max_sequence_length=16, dropout=0.0)
        model = models.GPT2CausalLM(backbone, preprocessor=None)
        losses = trained(model, {"token_ids": IDS, "padding_mask": MASK}, IDS)
        model.compile(sampler="greedy", jit_compile=False)
        prompt = np.tile(np.arange(16) < 8, (2, 1)).astype("int32")
        made = model.generate({"token_ids": IDS[:2], "padding_mask": prompt}, stop_token_ids=None)
        return [*losses, *numbers(made["token_ids"])]

    def llama() -> list[float]:
        backbone = models.LlamaBackbone(**SIZES, num_query_heads=2, num_key_value_heads=1)
        return trained(models.LlamaCausalLM(backbone, preprocessor=None), {"token_ids": IDS, "padding_mask": MASK}, IDS)

    def resnet() -> list[float]:
        backbone = models.ResNetBackbone(
            input_conv_filters=[64], input_conv_kernel_sizes=[3], stackwise_num_filters=[64, 128],
            stackwise_num_blocks=[1, 1], stackwise_num_strides=[1, 2], block_type="basic_block",
            image_shape=(32, 32, 3))
        return trained(models.ResNetImageClassifier(backbone, num_classes=3, preprocessor=None), IMAGES, LABELS)

    def vit() -> list[float]:
        backbone = models.ViTBackbone(image_shape=(32, 32, 3), patch_size=(8, 8), num_layers=2, num_heads=2,
                                      hidden_dim=16, mlp_dim=32)
        return numbers(backbone.predict(IMAGES, verbose=0))

    def word_pieces() -> list[float]:
        words = ["[UNK]", "the", "qu", "##ick", "br", "##own", "fox", "."]
        tokenizer = keras_hub.tokenizers.WordPieceTokenizer(vocabulary=words, lowercase=True, sequence_length=8)
        return numbers(tokenizer(["The quick brown fox.", "a fox"]))

    def masks() -> list[float]:
        packer = keras_hub.layers.MultiSegmentPacker(sequence_length=8, start_value=1, end_value=2)
        tokens, segments = packer((tf.constant([[5, 6, 7]]), tf.constant([[8, 9]])))
        return numbers(tokens, segments)

    return {"bert": bert, "gpt2": gpt2, "llama": llama, "resnet": resnet, "vit": vit, "word_pieces": word_pieces,
            "masks": masks}


def cv_checks() -> dict[str, Callable[[], list[float]]]:
    """Models and layers of KerasCV."""
    import keras_cv

    def classifier() -> list[float]:
        backbone = keras_cv.models.ResNetBackbone(
            stackwise_filters=[16, 32], stackwise_blocks=[1, 1], stackwise_strides=[1, 2], include_rescaling=False,
            input_shape=(32, 32, 3))
        model = keras_cv.models.ImageClassifier(backbone, num_classes=3, activation=None)
        return trained(model, IMAGES, LABELS)

    def augment() -> list[float]:
        layer = keras_cv.layers.RandAugment(value_range=(0, 1), augmentations_per_image=2)
        return [float(n) for n in layer(IMAGES).shape]

    def mix() -> list[float]:
        mixed = keras_cv.layers.MixUp()({"images": tf.constant(IMAGES), "labels": tf.eye(4)})
        return numbers(tf.reduce_sum(mixed["labels"]))

    def boxes() -> list[float]:
        xyxy = np.array([[0.0, 0.0, 10.0, 10.0], [5.0, 5.0, 15.0, 20.0]], "float32")
        turned = keras_cv.bounding_box.convert_format(xyxy, source="xyxy", target="center_xywh")
        return numbers(turned, keras_cv.bounding_box.compute_iou(xyxy, xyxy, "xyxy"))

    return {"cv_classifier": classifier, "cv_augment": augment, "cv_mix": mix, "cv_boxes": boxes}


def application_checks() -> dict[str, Callable[[], list[float]]]:
    """The architectures of `keras.applications` with weights from a seed."""
    makers = {"MobileNetV2": (96, {"alpha": 0.35}), "MobileNetV3Small": (96, {}), "ResNet50": (64, {}),
              "EfficientNetB0": (64, {}), "EfficientNetV2B0": (64, {}), "DenseNet121": (64, {}), "VGG16": (32, {}),
              "Xception": (71, {}), "InceptionV3": (75, {}), "ConvNeXtTiny": (64, {}), "NASNetMobile": (64, {})}

    def check(name: str) -> Callable[[], list[float]]:
        size, settings = makers[name]

        def run() -> list[float]:
            weights = {"weights": None, "input_shape": (size, size, 3), "classes": 10, **settings}
            model = getattr(keras.applications, name)(**weights)
            images = np.random.RandomState(1).uniform(0, 255, (2, size, size, 3)).astype("float32")
            return numbers(model(images, training=False))
        return run

    return {f"application_{name}": check(name) for name in makers}


def main() -> None:
    """Runs the checks of the groups that are named: hub, cv, applications."""
    groups = {"hub": hub_checks, "cv": cv_checks, "applications": application_checks}
    results: dict[str, Any] = {}
    for group in sys.argv[1:] or groups:
        try:
            checks = groups[group]()
        except ImportError as error:
            results[group] = f"ImportError: {error}"
            continue
        for name, check in checks.items():
            keras.backend.clear_session()
            keras.utils.set_random_seed(1)
            try:
                results[name] = check()
            except Exception as error:  # noqa: BLE001 - what fails is what this is about
                results[name] = f"{type(error).__name__}: {str(error)[:500]}"
    print(json.dumps(results))


if __name__ == "__main__":
    main()

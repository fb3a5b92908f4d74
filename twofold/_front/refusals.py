"""Names of TensorFlow that there are none of here, each with a sentence that says why, or what to use.

`namespace.publish` has the modules that show a package's names raise these as AttributeErrors; `docs/coverage.md` lists
them.
"""

from __future__ import annotations

__all__ = ["refusal"]

_APPLICATIONS = ("the architectures of keras.applications are not part of twofold: bring a trained model by "
                 "tf.import_onnx, or build one from layers (examples/).")
_SERVICE = "tf.data runs in the processes of a job: Dataset.shard and tf.distribute divide its work."
_PARAMETER_SERVERS = "there are no parameter servers: use tf.distribute.MultiWorkerMirroredStrategy."
_MLIR = "programs are compiled by twofold's own passes and LLVM, not by MLIR: concrete_function.graph is the graph."
_XLA = "there is no XLA: every tf.function is compiled to native code."
_PROTO = "there are no protocol buffers here: tf.saved_model and tf.train.Checkpoint write the state of programs."
_QUANTIZED_TYPES = "there are no quantised dtypes: use int8 or uint8 with a scale, or fake quantisation."
_SUBBYTE = "numbers of less than 8 bits are not dtypes here: use int8 or uint8."
_KERAS_BACKENDS = "layers of other frameworks do not run in twofold's graphs: tf.import_onnx brings models."
_LARGE_LAYOUTS = "models are not divided over devices: tf.distribute divides batches."
_LOW_PRECISION = "weights of few bits are not part of tf.keras here: tf.quantization has fake quantisation."
_CLOUD = "processes are found by mpiexec or TF_CONFIG: TFConfigClusterResolver reads the latter."
_V1_GRAPHS = "graphs of TensorFlow 1 are those of tf.compat.v1; a tf.function has its graph as concrete_function.graph."

_EIGHT_BITS = "floats of 8 bits are float8_e4m3fn and float8_e5m2."
_OLD_FORMAT = "tf.keras.saving has serialize_keras_object and deserialize_keras_object."
_LEARNED = "tf.random.fixed_unigram_candidate_sampler takes the counts that a program has met."

#: names, and beginnings of names that end with a dot, with their sentences
_REFUSED: dict[str, str] = {
    "tf.mlir.": _MLIR, "tf.xla.": _XLA, "tf.lite.": _MLIR, "tf.tpu.": "there is no support of TPUs.",
    "tf.config.experimental.enable_mlir_bridge": _MLIR, "tf.config.experimental.disable_mlir_bridge": _MLIR,
    "tf.keras.applications.": _APPLICATIONS, "tf.keras.applications": _APPLICATIONS,
    "tf.data.experimental.service.": _SERVICE, "tf.data.experimental.ServiceOptions": _SERVICE,
    "tf.data.experimental.distributed_save": _SERVICE,
    "tf.data.experimental.SqlDataset": "Python's modules read databases: Dataset.from_generator takes rows.",
    "tf.data.experimental.TFRecordWriter": "tf.io.TFRecordWriter writes records, in a loop over the dataset.",
    "tf.data.experimental.from_variant": "there are no variant tensors: datasets pass through functions as they are.",
    "tf.data.experimental.get_model_proto": "there is no model of tuning: tf.data tunes itself as it runs.",
    "tf.data.experimental.make_saveable_from_iterator": "tf.train.Checkpoint saves iterators.",
    "tf.distribute.coordinator.": _PARAMETER_SERVERS, "tf.distribute.experimental.coordinator.": _PARAMETER_SERVERS,
    "tf.distribute.experimental.partitioners.": _PARAMETER_SERVERS,
    "tf.distribute.experimental.rpc.": _PARAMETER_SERVERS,
    "tf.distribute.Server": _PARAMETER_SERVERS, "tf.train.ServerDef": _PARAMETER_SERVERS,
    "tf.train.ClusterDef": _PARAMETER_SERVERS, "tf.train.JobDef": _PARAMETER_SERVERS,
    "tf.config.experimental.ClusterDeviceFilters": _PARAMETER_SERVERS,
    "tf.test.create_local_cluster": _PARAMETER_SERVERS,
    "tf.config.experimental_connect_to_cluster": _CLOUD, "tf.config.experimental_connect_to_host": _CLOUD,
    "tf.distribute.cluster_resolver.GCEClusterResolver": _CLOUD,
    "tf.distribute.cluster_resolver.KubernetesClusterResolver": _CLOUD,
    "tf.distribute.cluster_resolver.KubernetesExecutableLocation": _CLOUD,
    "tf.distribute.cluster_resolver.SlurmClusterResolver": _CLOUD,
    "tf.distribute.cluster_resolver.TPUClusterResolver": _CLOUD,
    "tf.distribute.cluster_resolver.UnionResolver": _CLOUD,
    "tf.distribute.experimental.PreemptionCheckpointHandler": "keras.callbacks.BackupAndRestore goes on after an end.",
    "tf.distribute.experimental.PreemptionWatcher": "keras.callbacks.BackupAndRestore goes on after an end.",
    "tf.distribute.experimental.TerminationConfig": "keras.callbacks.BackupAndRestore goes on after an end.",
    "tf.distribute.experimental.CollectiveHints": "CommunicationOptions takes bytes_per_pack.",
    "tf.keras.distribution.": _LARGE_LAYOUTS, "tf.experimental.dtensor.": _LARGE_LAYOUTS,
    "tf.keras.quantizers.": _LOW_PRECISION, "tf.keras.Quantizer": _LOW_PRECISION,
    "tf.keras.dtype_policies.AWQDTypePolicy": _LOW_PRECISION, "tf.keras.dtype_policies.GPTQDTypePolicy": _LOW_PRECISION,
    "tf.keras.dtype_policies.Int4DTypePolicy": _LOW_PRECISION,
    "tf.keras.dtype_policies.QuantizedDTypePolicy": _LOW_PRECISION,
    "tf.keras.dtype_policies.QuantizedFloat8DTypePolicy": _LOW_PRECISION,
    "tf.keras.distillation.": "distillation is a train_step of one's own: see examples/ and docs/keras.md.",
    "tf.keras.visualization.": "pictures are drawn with a plotting library.",
    "tf.keras.wrappers.": "scikit-learn's own classes wrap models: fit and predict take NumPy arrays.",
    "tf.keras.preprocessing.image.": "layers.Random... and utils.image_dataset_from_directory do what these did.",
    "tf.keras.layers.FlaxLayer": _KERAS_BACKENDS, "tf.keras.layers.JaxLayer": _KERAS_BACKENDS,
    "tf.keras.layers.TorchModuleWrapper": _KERAS_BACKENDS,
    "tf.keras.callbacks.OrbaxCheckpoint": "callbacks.ModelCheckpoint and BackupAndRestore write checkpoints.",
    "tf.keras.callbacks.RemoteMonitor": "a LambdaCallback may send what it is given.",
    "tf.keras.StatelessScope": "tf.function handles the state of variables.",
    "tf.keras.SymbolicScope": "functional models are made of tf.keras.Input.",
    "tf.keras.config.set_backend": "there is one backend.", "tf.keras.config.is_nnx_enabled": _KERAS_BACKENDS,
    "tf.quantization.experimental.": _MLIR,
    "tf.dtypes.QUANTIZED_DTYPES": _QUANTIZED_TYPES,
    "tf.dtypes.resource": "variables, tables and datasets are objects, not tensors of a dtype.",
    "tf.resource": "variables, tables and datasets are objects, not tensors of a dtype.",
    "tf.dtypes.variant": "there are no variant tensors: composite values and datasets are what they are.",
    "tf.variant": "there are no variant tensors: composite values and datasets are what they are.",
    "tf.dtypes.experimental.int2": _SUBBYTE, "tf.dtypes.experimental.uint2": _SUBBYTE,
    "tf.dtypes.experimental.int4": _SUBBYTE, "tf.dtypes.experimental.uint4": _SUBBYTE,
    "tf.dtypes.experimental.float4_e2m1fn": _SUBBYTE,
    "tf.load_library": "ops of C++ do not load: tf.numba_function compiles kernels of one's own.",
    "tf.load_op_library": "ops of C++ do not load: tf.numba_function compiles kernels of one's own.",
    "tf.import_graph_def": "graphs of TensorFlow arrive by ONNX: tf.import_onnx.",
    "tf.graph_util.import_graph_def": "graphs of TensorFlow arrive by ONNX: tf.import_onnx.",
    "tf.io.write_graph": "tf.saved_model.save writes functions; twofold export compiles them.",
    "tf.io.decode_proto": _PROTO, "tf.io.encode_proto": _PROTO, "tf.make_tensor_proto": _PROTO,
    "tf.make_ndarray": _PROTO,
    "tf.test.assert_equal_graph_def": _V1_GRAPHS, "tf.Operation": _V1_GRAPHS,
    "tf.RegisterGradient": "tf.custom_gradient gives a function a gradient of its own.",
    "tf.check_pinned": "memory of the host is handed on by the runtime itself.",
    "tf.sysconfig.": "there are no headers and no library to build C++ ops against: tf.export.native makes libraries.",
    "tf.version.COMPILER_VERSION": "twofold.__version__ is the version.",
    "tf.version.GIT_VERSION": "twofold.__version__ is the version.",
    "tf.version.GRAPH_DEF_VERSION": _PROTO, "tf.version.GRAPH_DEF_VERSION_MIN_CONSUMER": _PROTO,
    "tf.version.GRAPH_DEF_VERSION_MIN_PRODUCER": _PROTO,
    "tf.CriticalSection": "a call of a tf.function that assigns is one step for all threads: nothing else is needed.",
    "tf.config.set_visible_devices": "CUDA_VISIBLE_DEVICES hides GPUs; tf.device and strategies choose among them.",
    "tf.config.experimental.set_visible_devices": "CUDA_VISIBLE_DEVICES hides GPUs; tf.device chooses among them.",
    "tf.keras.layers.ContrastLimitedAdaptiveHistogramEqualization": "layers.Equalization spreads the values of images.",
    "tf.io.decode_jxl": "pictures in JPEG XL are read with a library of their own.",
    "tf.image.decode_jxl": "pictures in JPEG XL are read with a library of their own.",
    "tf.nn.with_space_to_batch": "tf.nn.convolution takes dilations.",
    "tf.parallel_stack": "tf.stack is compiled with what makes its operands.",
    "tf.debugging.experimental.": "tf.debugging.enable_check_numerics finds the op that made a NaN.",
    "tf.profiler.experimental.client.": "tf.profiler.experimental.start and stop trace this process.",
    "tf.profiler.experimental.server.": "tf.profiler.experimental.start and stop trace this process.",
    "tf.saved_model.experimental.": "tf.saved_model.save takes what is saved as it is; docs/saved_model.md says how.",
    "tf.train.experimental.": "checkpoints are written as a whole; files larger than memory are written in pieces.",
    "tf.nn.RNNCellDeviceWrapper": "tf.device places what a cell computes.",
    "tf.nn.RNNCellDropoutWrapper": "cells of tf.keras.layers take dropout and recurrent_dropout.",
    "tf.nn.RNNCellResidualWrapper": "a cell of one's own adds its input: layers.RNN takes it.",
    "tf.autograph.trace": "print in a tf.function runs when it is traced.",
    "tf.NoneTensorSpec": "None stands for itself in structures of tensors.",
    "tf.TensorArraySpec": "functions take and give tensor arrays as they are.",
    "tf.no_gradient": "tf.stop_gradient lets no gradient pass, tf.custom_gradient gives another.",
    "tf.nondifferentiable_batch_function": "twofold serve joins requests to batches.",
    "tf.data.experimental.dense_to_sparse_batch": "Dataset.ragged_batch keeps rows of several lengths apart.",
    "tf.data.experimental.enable_debug_mode": "tf.config.run_functions_eagerly has functions run op by op.",
    "tf.data.experimental.snapshot": "Dataset.cache keeps elements in a file, Dataset.save in a folder.",
    "tf.data.experimental.to_variant": "there are no variant tensors: datasets pass through functions as they are.",
    "tf.dtypes.experimental.float8_e4m3b11fnuz": _EIGHT_BITS, "tf.dtypes.experimental.float8_e4m3fnuz": _EIGHT_BITS,
    "tf.dtypes.experimental.float8_e5m2fnuz": _EIGHT_BITS,
    "tf.keras.Function": "tf.keras.Model computes outputs from inputs.",
    "tf.keras.Operation": "tf.keras.layers.Layer is the class of what is called with symbolic tensors.",
    "tf.keras.RematScope": "tf.keras.remat wraps a layer whose inner values are to be computed again.",
    "tf.keras.backend.rnn": "tf.keras.layers.RNN runs a cell of one's own.",
    "tf.keras.config.enable_unsafe_deserialization": "code in files is refused in any case.",
    "tf.keras.dtype_policies.DTypePolicyMap": "each layer takes a dtype of its own.",
    "tf.keras.export.ExportArchive": "Model.export writes a model, tf.saved_model.save any functions.",
    "tf.keras.legacy.saving.": _OLD_FORMAT, "tf.keras.utils.legacy.": _OLD_FORMAT,
    "tf.keras.ops.image.elastic_transform": "tf.keras.layers.RandomElasticTransform bends images.",
    "tf.keras.utils.Config": "a dataclass or a dictionary holds settings.",
    "tf.keras.utils.FeatureSpace": "layers of tf.keras prepare features: StringLookup, Normalization, Discretization.",
    "tf.math.sobol_sample": "scipy.stats.qmc.Sobol(dim, scramble=False) makes such points; TensorFlow's begin with its "
                            "second.",
    "tf.nn.learned_unigram_candidate_sampler": _LEARNED, "tf.random.learned_unigram_candidate_sampler": _LEARNED,
    "tf.test.experimental.sync_devices": "x.numpy() waits until x is computed.",
    "tf.train.CheckpointView": "tf.train.load_checkpoint reads what a checkpoint holds.",
    "tf.keras.utils.bounding_boxes.": "boxes are tensors: tf.image.crop_and_resize and non_max_suppression take them.",
    "tf.image.generate_bounding_box_proposals": "tf.image.non_max_suppression chooses among boxes.",
}


def refusal(name: str) -> str | None:
    """Why there is no such name; None where nobody says so.

    Args:
        name: a name of TensorFlow, such as `tf.mlir.experimental.run_pass_pipeline`.
    """
    if name in _REFUSED:
        return _REFUSED[name]
    parts = name.split(".")
    for count in range(len(parts) - 1, 1, -1):
        sentence = _REFUSED.get(".".join(parts[:count]) + ".")
        if sentence is not None:
            return sentence
    sentence = _REFUSED.get(f"{name}.")  # a module whose names are all refused
    return sentence

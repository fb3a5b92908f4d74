"""The name `tensorflow`: programs and libraries that import it, in processes of their own."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from twofold.cli import programs
from twofold.version import __version__

_ROOT = Path(__file__).resolve().parents[2]

_PROGRAM = '''
import importlib.metadata, importlib.util, pickle, subprocess, sys
import tensorflow as tf
loaded = set(sys.modules)
import tensorflow.compat.v1 as tf1
import tensorflow.keras.layers as long_name
from tensorflow import keras, nn
from tensorflow.keras import layers
from tensorflow.keras.layers import Dense
from tensorflow.python.framework import tensor_util
import twofold

assert tf.constant is twofold.constant and keras is twofold.keras and nn is twofold.nn
assert layers is long_name and layers.Dense is Dense and tf1.placeholder is twofold.compat.v1.placeholder
major, minor = tf.__version__.split(".")[:2]
assert (int(major), int(minor)) >= (2, 16) and tf.__version__.endswith("twofold." + twofold.__version__)
assert tf.version.VERSION == tf.__version__ == importlib.metadata.version("tensorflow") != twofold.__version__
assert importlib.util.find_spec("tensorflow") and importlib.util.find_spec("tensorflow.keras")
assert importlib.util.find_spec("tensorflow.nothing") is None
# modules whose names are in a file or a class of twofold's
import tensorflow.io.gfile, tensorflow.config.experimental as settings
from tensorflow.math.special import bessel_j0
assert tensorflow.io.gfile is tf.io.gfile is twofold.io.gfile and bessel_j0 is twofold.math.special.bessel_j0
assert settings.enable_op_determinism is twofold.config.experimental.enable_op_determinism
assert importlib.util.find_spec("tensorflow.keras.utils.custom_object_scope") is None
from tensorflow.python.framework.config import disable_op_determinism, enable_op_determinism
assert "reduce_sum" in dir(tf) and "twofold" in repr(tf)

def told(read):
    try:
        read()
    except (AttributeError, ImportError) as error:
        return type(error).__name__ + ": " + str(error)

assert told(lambda: tf.nothing) == ("AttributeError: module 'tensorflow' has no attribute 'nothing': this is twofold "
    + twofold.__version__ + ", not TensorFlow. docs/coverage.md lists where each name of TensorFlow stands.")
assert "there is no support of TPUs" in told(lambda: tf.tpu.x) or "docs/coverage.md" in told(lambda: tf.tpu.x)
assert told(lambda: __import__("tensorflow.python.nothing")).startswith("ModuleNotFoundError")
assert not hasattr(tf, "python_io_of_old")

# What libraries ask of classes, without an import of TensorFlow; their modules are loaded when they are needed.
assert not {"twofold._ragged.ragged_tensor", "twofold._sparse.sparse_tensor", "twofold.data.dataset"} & loaded
assert type(tf.ragged.constant([[1]])).__module__ == "tensorflow.python.ops.ragged.ragged_tensor"
x = tf.constant([1.0, 2.0])
assert type(x).__module__.startswith("tensorflow.python.") and any(k.__name__ == "Tensor" for k in type(x).__mro__)
assert type(tf.Variable(x)).__module__.startswith("tensorflow.python.")
assert {"DatasetV2"} <= {k.__name__ for k in type(tf.data.Dataset.range(3)).__mro__}
for kind in (tf.Tensor, tf.data.Dataset):
    assert pickle.loads(pickle.dumps(kind)) is kind
assert (pickle.loads(pickle.dumps(x)).numpy() == x.numpy()).all()

# Tables, for which Keras's export looks.
from tensorflow.saved_model.experimental import TrackableResource
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
assert isinstance(table, TrackableResource) and not isinstance(x, TrackableResource)

# Keras's export takes the trace of a function that was registered as it is.
doubled = tf.function(lambda x: x * 2.0)
assert doubled(tf.constant(1.0)).numpy() == 2.0 and doubled._trackable_children() == {}
traces = doubled._trackable_children("saved_model")
assert list(traces) == ["trace_0"] and traces["trace_0"](tf.constant(3.0)).numpy() == 6.0

# `tf.__internal__`.
internal = tf.__internal__
for _ in range(2):  # classes that `isinstance` was asked for before, too
    assert all(isinstance(v, internal.tracking.Trackable) for v in (table, tf.Variable(1.0), tf.Module()))
    assert not isinstance(x, internal.tracking.Trackable) and not isinstance(table, internal.tracking.AutoTrackable)
assert isinstance(x, internal.EagerTensor) and isinstance(x, internal.types.Tensor)
seen = []
@tf.function
def f(y):
    seen.append((isinstance(y, internal.EagerTensor), isinstance(y, tf.Tensor), isinstance(y, internal.SymbolicTensor)))
    return internal.smart_cond.smart_cond(y[0] > 0, lambda: y, lambda: -y)
assert f(x).numpy().tolist() == f(-x).numpy().tolist() == [1.0, 2.0] and seen == [(False, True, True)]
assert internal.smart_cond.smart_cond(True, lambda: 1, lambda: 2) == 1

class Like(internal.types.Tensor):
    def __tf_tensor__(self, dtype=None, name=None):
        return tf.constant(3.0)
assert tf.is_tensor(Like()) and (tf.constant(1.0) + Like()).numpy() == 4.0

class Tracked(internal.tracking.AutoTrackable):
    pass
holder, inner = Tracked(), tf.Variable(5.0)
holder.kept = inner
tf.train.Checkpoint(holder=holder).write(sys.argv[1] + "/point")
holder._track_trackable(inner, "kept")  # files of Keras leave out the attribute of this name, and no other
assert set(vars(holder)) == {"kept", "_self_unconditional_dependency_names"}
inner.assign(6.0)
tf.train.Checkpoint(holder=holder).read(sys.argv[1] + "/point")
assert inner.numpy() == 5.0

# Other bases see attributes as they are set, as optimizers of Keras do, which keep the variables among them.
class Listing:
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        vars(self).setdefault("_listed", []).append(name)
class Both(internal.tracking.AutoTrackable, Listing):
    pass
both = Both()
both.first = inner
assert both._listed == ["first"]

# Saved models hold what `_trackable_children` says, and the functions that properties give.
class Served(internal.tracking.AutoTrackable):
    def __init__(self):
        self.by_number, self.scale, self.unsaved = {0: [tf.Variable(1.0)]}, tf.Variable(3.0), tf.Variable(4.0)
    @property
    def _default_save_signature(self):
        return tf.function(lambda x: x * self.scale, input_signature=[tf.TensorSpec([None])])
    @property
    def not_yet(self):
        raise ValueError("there is none")
    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        return {name: child for name, child in children.items() if name != "unsaved"}
tf.saved_model.save(Served(), sys.argv[1] + "/served")
loaded = tf.saved_model.load(sys.argv[1] + "/served")
assert loaded.signatures["serving_default"](tf.constant([2.0]))["output_0"].numpy().tolist() == [6.0]
assert loaded.scale.numpy() == 3.0 and not hasattr(loaded, "unsaved") and not hasattr(loaded, "by_number")

from tensorflow.python.eager import context
context._reset_context()
assert len(tf.config.list_logical_devices("CPU")) == 1

# Products of sparse matrices.
import numpy as np
from tensorflow.python.ops.linalg.sparse import sparse_csr_matrix_ops as csr
def product(a, b):
    a, b = (csr.sparse_tensor_to_csr_sparse_matrix(x.indices, x.values, x.dense_shape) for x in (a, b))
    parts = csr.csr_sparse_matrix_to_sparse_tensor(csr.sparse_matrix_sparse_mat_mul(a, b, tf.float32), tf.float32)
    return tf.sparse.to_dense(tf.SparseTensor(parts.indices, parts.values, parts.dense_shape))
for shapes in ((4, 5), (5, 3)), ((2, 3, 4), (2, 4, 2)):
    a, b = (np.array([n % 3 % 2 * n for n in range(np.prod(s))], "f").reshape(s) for s in shapes)
    given = tf.sparse.from_dense(a), tf.sparse.from_dense(b)
    assert product(*given).numpy().tolist() == tf.function(product)(*given).numpy().tolist() == (a @ b).tolist()

if sys.argv[2] == "children":  # processes that the program starts
    print(subprocess.run([sys.executable, "-c", "import tensorflow; print(tensorflow.__version__)"],
                         capture_output=True, text=True, check=True).stdout.strip())
print("passed", sys.argv[2:])
'''


def _run(*words: str, **env: str) -> subprocess.CompletedProcess:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env={**kept, **env}, timeout=300)


def test_command_runs_a_program_and_its_children(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    ran = _run("-m", "twofold", "run", str(program), str(tmp_path), "children", "--more", "-x")
    assert ran.stderr == ""
    version, last = ran.stdout.splitlines()
    assert version.endswith(f"twofold.{__version__}") and last == "passed ['children', '--more', '-x']"


def test_import_takes_the_name(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import twofold.as_tensorflow\n{_PROGRAM}")
    ran = _run(str(program), str(tmp_path), "alone")
    assert (ran.stdout, ran.stderr) == ("passed ['alone']\n", "")


def test_module_form_passes_status_and_traceback_on(tmp_path):
    program = tmp_path / "failing.py"
    program.write_text("import tensorflow as tf, sys\nif len(sys.argv) > 1: sys.exit(int(sys.argv[1]))\n1 / 0\n")
    assert _run("-m", "twofold", str(program), "7").returncode == 7
    ran = _run("-m", "twofold", str(program))
    assert ran.returncode == 1 and ran.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert len([line for line in ran.stderr.splitlines() if line.startswith("  File ")]) == 1


def test_tensorflow_itself_is_imported_already(tmp_path):
    (tmp_path / "tensorflow.py").write_text("real = True\n")
    ran = _run("-c", "import tensorflow\ntry:\n    import twofold.as_tensorflow\nexcept ImportError as error:\n"
                     "    print(error)\nassert tensorflow.real", PYTHONPATH=f"{_ROOT}{os.pathsep}{tmp_path}")
    assert ran.stdout.startswith("TensorFlow itself is imported already"), ran.stderr


def test_version_of_packages_is_the_module_s():
    [found] = importlib.metadata.distributions(path=[programs._FOLDER])
    assert (found.name, found.version) == ("tensorflow", f"2.21.0+twofold.{__version__}")


@pytest.mark.parametrize("words, expected", [(["a.py"], True), (["-m", "pytest"], True), (["-c", "1"], True),
                                             (["folder", "--input", "x=a.npy"], False), ([], False)])
def test_programs_are_told_from_models(words, expected):
    assert programs.is_program(words) is expected


def test_environment_keeps_the_path_that_there_is():
    path = programs.environment({"PYTHONPATH": os.pathsep.join(["a", programs._FOLDER, "b"])})["PYTHONPATH"]
    assert path.split(os.pathsep) == [programs._FOLDER, "a", "b"]


def test_folders_before_the_path_do_not_matter_and_other_customisations_run(tmp_path):
    for name in ("first", "last"):
        (tmp_path / name / "tensorflow").mkdir(parents=True)
        (tmp_path / name / "tensorflow" / "__init__.py").write_text("not_twofold = True\n")
    (tmp_path / "last" / "sitecustomize.py").write_text("import builtins\nbuiltins.customised = __file__\n")
    environment = programs.environment({"PYTHONPATH": f"{_ROOT}{os.pathsep}{tmp_path / 'last'}"})
    program = (f"import sys\nsys.path.insert(0, {str(tmp_path / 'first')!r})\nimport tensorflow as tf\n"
               "from tensorflow.keras import layers\n"
               "print('twofold' in repr(tf), hasattr(tf, 'not_twofold'), customised)")
    ran = _run("-c", program, PYTHONPATH=environment["PYTHONPATH"])
    assert (ran.stdout.strip(), ran.stderr) == (f"True False {tmp_path / 'last' / 'sitecustomize.py'}", "")

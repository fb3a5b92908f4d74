"""The names of TensorFlow: what is refused is not there, and says so."""

import json
import pathlib

import pytest

import twofold as tf
from twofold._front import refusals

NAMES = json.loads(pathlib.Path(__file__).with_name("names.json").read_text())["names"]


def there(name):
    owner = tf
    for part in name.split(".")[1:]:
        owner = getattr(owner, part, None)
        if owner is None:
            return False
    return True


def test_what_is_refused_is_not_there():
    assert [name for name in NAMES if name in refusals._REFUSED and there(name)] == []


def test_every_refusal_is_of_a_name_of_tensorflow():
    modules = {name.rpartition(".")[0] for name in NAMES}
    known = {*NAMES, *[f"{m}." for m in modules], *modules, "tf.lite.", "tf.tpu.", "tf.experimental.dtensor."}
    own = [name for name in refusals._REFUSED if name not in known and not any(n.startswith(name) for n in NAMES)]
    assert own == []


@pytest.mark.parametrize("name, words", [
    ("keras.applications.ResNet50", "tf.import_onnx"), ("io.decode_jxl", "JPEG XL"),
    ("distribute.coordinator.ClusterCoordinator", "MultiWorkerMirroredStrategy"), ("load_op_library", "numba_function"),
    ("keras.quantizers.Quantizer", "fake quantisation")])
def test_refusals_say_what_to_use(name, words):
    owner = tf
    with pytest.raises(AttributeError, match=words):
        for part in name.split("."):
            owner = getattr(owner, part)

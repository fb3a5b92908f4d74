"""The names of `tf.keras`: each exists, has a docstring, and is loaded when it is first asked for."""

from __future__ import annotations

import subprocess
import sys

from house.public import missing, public_modules, undocumented

from twofold import keras


def test_every_public_name_exists_and_has_a_docstring():
    modules = public_modules(keras)
    assert len(modules) > 15 and "tf.layers" in modules and "tf.callbacks" in modules
    assert missing(keras) == []
    assert undocumented(keras) == []


def test_the_import_loads_no_part_before_it_is_asked_for():
    code = ("import sys, twofold as tf\ntf.keras\n"
            "print(sorted(n for n in sys.modules if n.startswith('twofold.keras.')))\n"
            "tf.keras.losses.MeanSquaredError\nprint('twofold.keras.trainer' in sys.modules, 'h5py' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['twofold.keras._registry']", "False False"]

"""The story that `make demo` tells: it runs whole, keeps its word, and leaves what it says."""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest
from house.tree import ROOT
from quick.start import python

import twofold as tf

EXAMPLES = ROOT / "examples"


def run(folder):
    return subprocess.run(python(EXAMPLES / "digits.py", "--output", folder), capture_output=True, text=True,
                          timeout=300)


def pixels(content: bytes) -> np.ndarray:
    """What a PNG file of plain RGB rows shows."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(content):
        length, name = struct.unpack(">I4s", content[at:at + 8])
        body, checksum = content[at + 8:at + 8 + length], content[at + 8 + length:at + 12 + length]
        assert zlib.crc32(name + body) == struct.unpack(">I", checksum)[0]
        chunks[name] = body
        at += 12 + length
    width, height, depth, color, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, color, rest) == (8, 2, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made"
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done


def test_each_way_gives_the_same_accuracy(story):
    _, done = story
    actual = re.findall(r"accuracy (\d\.\d+)", done.stdout)
    assert len(actual) == (3 if shutil.which("cc") else 2) and len(set(actual)) == 1
    assert float(actual[0]) >= 0.95
    assert "losses of all 1350 steps: equal to the last bit" in done.stdout
    assert "The accuracy is the same each way" in done.stdout
    assert done.stderr == ""  # no bars where there is no terminal


def test_it_leaves_what_it_says(story):
    folder, done = story
    shown = pixels((folder / "loss.png").read_bytes())
    assert shown.shape == (480, 900, 3)
    strong = np.argwhere((shown == (29, 95, 209)).all(axis=2))  # the thick curve: from the left to the right, downwards
    assert strong[:, 1].max() - strong[:, 1].min() > 700
    assert strong[strong[:, 1] < 150, 0].mean() + 150 < strong[strong[:, 1] > 800, 0].mean()
    page = (folder / "train_step.html").read_text()
    assert "Kernels by time" in page and '"us":' in page
    model = tf.saved_model.load(str(folder / "digits"))
    test = np.load(folder / "test.npz")
    digit = model.signatures["serving_default"](images=tf.constant(test["images"]))["digit"].numpy()
    told = float(re.search(r"accuracy (\d\.\d+)", done.stdout)[1])
    assert round(float(np.mean(digit == test["digits"])), 4) == told
    assert (folder / "digits.h").read_text().count("digits_serving_default(") == 1


def test_the_other_process_has_none_of_the_source():
    text = (EXAMPLES / "digits_predict.py").read_text()
    assert re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) == ["sys", "numpy", "twofold"]


def module(name, monkeypatch):
    """A file of examples/ as a module."""
    monkeypatch.syspath_prepend(EXAMPLES)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    actual = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(actual)
    return actual


def test_without_a_compiler_all_the_rest_is_done(tmp_path, monkeypatch, capsys):
    digits = module("digits", monkeypatch)
    monkeypatch.setattr(digits, "EPOCHS", 3)
    monkeypatch.setattr(digits, "WANTED_ACCURACY", 0.8)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert digits.tell(tmp_path, digits.load())
    assert "there is no C compiler (cc) on this machine" in capsys.readouterr().out
    assert (tmp_path / "libdigits.a").exists() and not (tmp_path / "digits_predict").exists()


def test_explain_trains_nothing():
    done = subprocess.run(python(EXAMPLES / "digits.py", "--explain"), capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert "native kernels" in done.stdout and "epoch" not in done.stdout


def test_a_chart_in_the_terminal_falls_as_its_curve_does(monkeypatch):
    lines = module("plot", monkeypatch).in_terminal([1000.0, 100.0, 10.0, 1.0], width=8, height=3)
    # Of 24 eighths the columns get 24, 16, 9 and 1.
    assert lines == ["     316 |██", "    31.6 |████▁▁", "    3.16 |██████▁▁"]

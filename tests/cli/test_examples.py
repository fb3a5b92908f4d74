"""The further examples, with their runs shortened: they train, draw, say what they reached, and their status tells."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from house.tree import ROOT
from quick.start import python

import twofold as tf

EXAMPLES = ROOT / "examples"


def run(name, folder, *options):
    """What a program of examples/ prints."""
    done = subprocess.run(python(EXAMPLES / f"{name}.py", "--output", folder, *options), capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def module(monkeypatch):
    """Gives a file of examples/ as a module."""
    def load(name):
        monkeypatch.syspath_prepend(EXAMPLES)
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        actual = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(actual)
        return actual
    return load


def test_digits_by_a_convolutional_network(tmp_path, module):
    printed = run("digits_cnn", tmp_path, "--epochs", "3", "--accuracy", "0.9")
    told = float(re.search(r"accuracy (\d\.\d+); loaded again", printed)[1])
    images, digits = module("digits_cnn").load()[1]
    scores = tf.keras.models.load_model(tmp_path / "digits_cnn.keras").predict(images, verbose=0)
    assert float(np.mean(scores.argmax(axis=1) == digits)) == pytest.approx(told, abs=6e-5)  # it prints four digits
    assert printed.count("Epoch ") == 3


def test_forecast_of_sunspots(tmp_path, module):
    printed = run("forecast_lstm", tmp_path, "--epochs", "15", "--ratio", "0.9")
    actual = dict(re.findall(r"^  (\S.*?) +(\d+\.\d)$", printed, re.M))
    forecast = module("forecast_lstm")
    years, numbers = forecast.load()
    later = numbers[years > 1920]
    before = numbers[years >= 1920][:-1]
    assert len(later) == 88 and (years[0], years[-1]) == (1700, 2008)
    assert float(actual["as last year"]) == pytest.approx(np.sqrt(np.mean((later - before) ** 2)), abs=0.051)
    assert float(actual["the network"]) < 0.9 * float(actual["as last year"])


def test_text_by_a_transformer(tmp_path, module):
    printed = run("text_transformer", tmp_path, "--steps", "120", "--loss", "3.3", "--letters", "30",
                  "--prompt", "The README")
    assert float(re.search(r"text never seen: (\S+) nats", printed)[1]) < 3.3  # how often each letter comes gives 3.39
    assert len(printed.split("It writes:\n\n")[1].rstrip("\n")) <= 40 and "The README" in printed
    text = module("text_transformer").Text()
    assert "".join(text.letters[n] for n in text.numbers("A page\nof docs")) == "A page\nof docs"


def test_to_onnx_and_back(tmp_path, module):
    printed = run("onnx_roundtrip", tmp_path, "--epochs", "6", "--more-epochs", "6", "--accuracy", "0.9")
    told = re.findall(r"(onnxruntime|alone|of both|program):? accuracy (\d\.\d+)", printed)
    actual = dict(told)
    assert actual["alone"] == actual["onnxruntime"] and actual.get("program", actual["of both"]) == actual["of both"]
    digits = module("digits")
    _, _, images, numbers = digits.load()
    session = onnxruntime.InferenceSession(tmp_path / "onnx_roundtrip" / "digits.onnx")
    [scores] = session.run(None, {"images": images})
    assert round(float(np.mean(scores.argmax(axis=1) == numbers)), 4) == float(actual["onnxruntime"]) > 0.9
    assert "digits_serving_default(" in (tmp_path / "onnx_roundtrip" / "digits.h").read_text()


@pytest.mark.parametrize("name, reached", [
    ("digits_cnn", (0.97, 0.97)), ("digits_cnn", (0.99, 0.98)), ("forecast_lstm", 0.66), ("text_transformer", 2.01),
    ("onnx_roundtrip", (0.94, True)), ("onnx_roundtrip", (0.99, False)),
])
def test_what_is_not_reached_shows_in_the_status(tmp_path, monkeypatch, module, name, reached):
    program = module(name)
    monkeypatch.setattr(program, "tell", lambda *options: reached)
    monkeypatch.setattr(sys, "argv", [name, "--output", str(tmp_path)])
    assert program.main() == 1

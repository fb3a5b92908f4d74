"""The command line of the server: what makes no sense, and what is missing."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import socket
import subprocess
import sys

import pytest
from house.tree import FLOORS, ROOT

import twofold as tf
from twofold.cli import main


@pytest.mark.parametrize(("words", "status", "told"), [
    (["no/such/folder"], 1, "no folder"),
    ([".", "--port", "70000"], 2, "--port"),
    ([".", "--queue", "0"], 2, "--queue must be more than 0"),
    ([".", "--timeout", "nan"], 2, "--timeout"),
    ([".", "--batch-window", "-1"], 2, "0 or more"),
])
def test_what_makes_no_sense(capsys, words, status, told):
    assert main(["serve", *words]) == status
    assert told in capsys.readouterr().err


def test_an_address_that_is_taken(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["serve", str(tmp_path), "--port", str(other.getsockname()[1])]) == 1
    assert "in use" in capsys.readouterr().err


def test_packages_that_are_missing(capsys, monkeypatch, tmp_path):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else there(name))
    assert main(["serve", str(tmp_path)]) == 1
    assert "needs uvicorn: pip install 'twofold[serve]'" in capsys.readouterr().err


def test_an_empty_folder_is_served_and_told_of_as_json(tmp_path):
    command = [sys.executable, "-m", "twofold", "serve", str(tmp_path), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "}\n")
        document = json.loads("".join([*lines, "}"]))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", document["address"]) and document["models"] == {}


def test_the_container_has_all_of_the_package():
    text = (ROOT / "examples" / "serve" / "Containerfile").read_text()
    assert set(re.findall(r"^COPY (\w+) /source/\1$", text, re.MULTILINE)) == set(FLOORS)


def test_the_container_and_the_unit_say_what_the_command_takes(tmp_path):
    """The server starts by their words, and the container's check of its health finds it."""
    folder = ROOT / "examples" / "serve"
    container = (folder / "Containerfile").read_text().replace("\\\n", "")
    unit = (folder / "twofold-serve.service").read_text()
    [entry] = re.findall(r"^ENTRYPOINT (.*)$", container, re.MULTILINE)
    [check] = re.findall(r"^HEALTHCHECK .*CMD (.*)$", container, re.MULTILINE)
    [start] = re.findall(r"^ExecStart=\S+/twofold (.*)$", unit, re.MULTILINE)
    twice = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    tf.saved_model.save(tf.Module(), tmp_path / "twice" / "1", signatures=twice)
    for words in (json.loads(entry)[1:], start.split()):
        words[1], words[words.index("--port") + 1] = str(tmp_path), "0"
        command = [sys.executable, "-m", "twofold", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = process.stdout.readline().strip().rpartition(":")[2]
            program, *options = [word.replace("8501", port) for word in json.loads(check)]
            assert program == "python" and subprocess.run([sys.executable, *options], timeout=30).returncode == 0
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()

"""The file `checkpoint` of a folder: which checkpoints there are, the latest among them.

It has TensorFlow's text form, `key: "value"` line by line, and the names in it are relative to its folder, so that a
folder can be moved. What the checkpoints are made of is for `files`.

Checkpoints that are about to be deleted stand in comments, which TensorFlow passes over, with the time at which each
was last changed: a process that is killed before it has deleted them leaves that to the next one.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twofold._formats import replacing as _replacing
from twofold._front.api import public

__all__ = ["CheckpointState", "get_checkpoint_state", "update"]

_DOOMED = re.compile(r'# deleting: "((?:[^"\\]|\\.)*)" (\d+)')
_LINE = re.compile(r'\s*(\w+)\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([-+0-9.eE]+))\s*')


@dataclass
class CheckpointState:
    """The contents of the file.

    Attributes:
        model_checkpoint_path: the latest checkpoint.
        all_model_checkpoint_paths: all of them, the oldest first.
        all_model_checkpoint_timestamps: when each was written, in seconds since 1970.
        last_preserved_timestamp: when the last one was written that is kept for good.
        doomed: checkpoints that are being deleted, with the time of each, in nanoseconds.
    """

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0
    doomed: dict[str, int] = field(default_factory=dict)


def update(folder: str, latest: str, every: Sequence[str], times: Sequence[float] = (), preserved: float = 0.0,
           filename: str = "checkpoint", doomed: Mapping[str, int] | None = None) -> None:
    """Write the file in one step."""
    lines = [f"model_checkpoint_path: {_quoted(_relative(folder, latest))}"]
    lines += [f"all_model_checkpoint_paths: {_quoted(_relative(folder, path))}" for path in every]
    lines += [f"all_model_checkpoint_timestamps: {time!r}" for time in times]
    if preserved:
        lines.append(f"last_preserved_timestamp: {preserved!r}")
    lines += [f"# deleting: {_quoted(_relative(folder, path))} {time}" for path, time in (doomed or {}).items()]
    _replacing.replace(Path(folder) / filename, ("\n".join(lines) + "\n").encode())


def _relative(folder: str, path: str) -> str:
    here, there = os.path.abspath(folder), os.path.abspath(path)
    return os.path.relpath(there, here) if os.path.dirname(there) == here else path


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(f'"{text}"'))
    except (SyntaxError, ValueError):
        return text


@public
def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """The contents of the file `checkpoint` of a folder; None where there is none, or it cannot be read.

    Args:
        checkpoint_dir: the folder.
        latest_filename: another name of the file.

    >>> import tempfile
    >>> import twofold as tf
    >>> tf.train.get_checkpoint_state(tempfile.mkdtemp()) is None
    True
    """
    folder = os.fspath(checkpoint_dir)
    try:
        text = (Path(folder) / (latest_filename or "checkpoint")).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    told = CheckpointState()
    for line in text.splitlines():
        if (match := _DOOMED.fullmatch(line)) is not None:
            told.doomed[os.path.join(folder, _unquoted(match[1]))] = int(match[2][:20])
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        key, quoted, number = match.groups()
        if quoted is not None and key in ("model_checkpoint_path", "all_model_checkpoint_paths"):
            path = os.path.join(folder, _unquoted(quoted))
            if key == "model_checkpoint_path":
                told.model_checkpoint_path = path
            else:
                told.all_model_checkpoint_paths.append(path)
        elif number is not None and key == "all_model_checkpoint_timestamps":
            told.all_model_checkpoint_timestamps.append(float(number))
        elif number is not None and key == "last_preserved_timestamp":
            told.last_preserved_timestamp = float(number)
    if not told.model_checkpoint_path:
        return None
    if told.model_checkpoint_path not in told.all_model_checkpoint_paths:
        told.all_model_checkpoint_paths.append(told.model_checkpoint_path)
    return told

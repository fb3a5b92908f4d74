"""The models of a folder: versions, labels, and what becomes of them when files change.

    FOLDER/NAME/1/manifest.json ...     a saved model
    FOLDER/NAME/2/libNAME.so, NAME.h    a library of tf.export.native
    FOLDER/NAME/serve.json              optional: {"labels": {"stable": 1}, "batching": true}

FOLDER may also be one model with versions in it, or one saved model, which is version 1 then; its name is the folder's.

A thread looks at the folder now and then. What is new is loaded beside what is there and takes its place at once;
requests keep the version that they began with until they are done. A version that cannot be loaded is told about by
its status, and takes nobody's place. Names in requests are looked up among the models there are; they make no path.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twofold.ir.errors import OpError
from twofold.runtime.locks import Condition

from . import native, saved
from .metrics import Metrics
from .refusals import Refusal
from .servable import Servable

__all__ = ["AVAILABLE", "LOADING", "FAILED", "Model", "Models", "Version"]

LOADING, AVAILABLE, FAILED = "LOADING", "AVAILABLE", "END"  # as TensorFlow Serving calls them
_LOG = logging.getLogger("twofold.serve")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}")
_MANIFEST, _ABOUT = "manifest.json", "serve.json"
_ABOUT_SIZE = 1 << 16
_UNREADABLE = (OpError, OSError, ValueError, TypeError, LookupError, RuntimeError, NotImplementedError, ArithmeticError,
               AttributeError, MemoryError, ImportError)

Mark = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Version:
    """A version at one time; what changes is another object.

    Attributes:
        mark: what its files were when it was loaded, or could not be.
        servable: None unless it is available.
        error: why it could not be loaded, or loaded again.
    """

    number: int
    state: str
    mark: Mark
    servable: Servable | None = None
    error: str = ""


@dataclass(frozen=True, eq=False)
class Model:
    """A model at one time."""

    name: str
    versions: Mapping[int, Version] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    batching: bool | None = None

    def newest(self) -> Version | None:
        """The available version with the highest number."""
        return max((v for v in self.versions.values() if v.servable), key=lambda v: v.number, default=None)

    def version(self, number: str | None, label: str | None) -> Version:
        """The version that a request names, or the newest.

        Raises:
            Refusal: there is none.
        """
        if label is not None:
            version = self.versions.get(self.labels[label]) if label in self.labels else None
            told = f"label {label!r}"
        elif number is not None:
            version, told = self.versions.get(int(number)), f"version {int(number)}"
        else:
            version, told = self.newest(), "available version"
        if version is None or version.servable is None:
            raise Refusal(404 if version is None or version.state == FAILED else 503,
                          f"model {self.name} has no {told}" if version is None else
                          f"version {version.number} of model {self.name} is not available: {version.state}")
        return version


class Models:
    """All models of a folder.

    Args:
        folder: to look at.
        latest: how many versions of each are served, the highest first; None for all.
    """

    def __init__(self, folder: Path, latest: int | None, metrics: Metrics) -> None:
        self.folder, self.latest, self.metrics = folder, latest, metrics
        self.models: dict[str, Model] = {}
        self._told: set[str] = set()
        self._ended, self._changed = False, Condition()

    def get(self, name: str) -> Model:
        """The model of a name.

        Raises:
            Refusal: there is none.
        """
        model = self.models.get(name)
        if model is None:
            raise Refusal(404, f"there is no model {name!r}"[:200])
        return model

    def ready(self) -> bool:
        """Whether there are models, and each has a version that is available."""
        return bool(self.models) and all(model.newest() for model in self.models.values())

    def watch(self, seconds: float) -> None:
        """Looks at the folder every so often, in a thread of its own."""
        def look() -> None:
            while not self._over_after(seconds):
                try:
                    self.refresh()
                except Exception:  # noqa: BLE001  whatever a file brings about, the server goes on with what it has
                    _LOG.exception("looking at %s failed", self.folder)
        threading.Thread(target=look, name="twofold-serve-watch", daemon=True).start()

    def _over_after(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, seconds)

    def close(self) -> None:
        """Looks no more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    # -- what is in the folder --------------------------------------------------------------------
    def refresh(self) -> None:
        """Looks at the folder, loads what is new or has changed, and forgets what is gone."""
        present = dict(_models_in(self.folder))
        for name in sorted(present):
            self._refresh(name, *present[name])
        for name in set(self.models) - set(present):
            _LOG.info("model %s is gone", name)
            self.models = {k: m for k, m in self.models.items() if k != name}
        self.metrics.show((m.name, v.number) for m in self.models.values() for v in m.versions.values() if v.servable)

    def _refresh(self, name: str, about: Path, folders: Mapping[int, Path]) -> None:
        before = self.models.get(name)
        labels, batching = self._about(name, about, before)
        wanted = sorted(folders, reverse=True)[:self.latest]
        known = {} if before is None or before.batching != batching else before.versions
        old = {} if before is None else dict(before.versions)
        versions = dict(old)
        for number in wanted:
            mark = _mark(folders[number], whole=number in known and bool(known[number].error))
            if not mark or (number in known and known[number].mark == mark):
                continue  # nothing is there yet, or it is as it was
            if number not in versions:
                versions[number] = Version(number, LOADING, ())
                self._put(Model(name, dict(versions), labels, batching))
            versions[number] = self._loaded(name, folders[number], mark, batching, old.get(number),
                                            Version(number, FAILED, mark))
            self._put(Model(name, dict(versions), labels, batching))
        kept = {n: v for n, v in versions.items() if n in wanted}
        if not any(v.servable for v in kept.values()):  # an older version serves until one of these does
            kept |= {n: v for n, v in versions.items() if n in folders and v.servable}
        for number in sorted(set(versions) - set(kept)):
            _LOG.info("model %s: version %d is served no more", name, number)
        if kept or before is not None:
            self._put(Model(name, kept, labels, batching))

    def _put(self, model: Model) -> None:
        self.models = {**self.models, model.name: model}

    def _loaded(self, name: str, folder: Path, mark: Mark, batching: bool | None, old: Version | None,
                failed: Version) -> Version:
        """A version as it is now; the old one with the error where it cannot be loaded."""
        whole = _mark(folder, whole=True)
        try:
            files = native.files_of(folder) if not (folder / _MANIFEST).is_file() else None
            servable = saved.load(folder, batching) if files is None else native.load(files, batching)
        except _UNREADABLE as error:
            text = (error.message if isinstance(error, OpError) else str(error)) or type(error).__name__
            _LOG.error("model %s: version %d cannot be loaded: %s", name, failed.number, text)
            self.metrics.loads.labels(name, "failed").inc()
            served = None if old is None else old.servable
            return Version(failed.number, AVAILABLE if served else FAILED, whole, served, text)
        _LOG.info("model %s: version %d is available (%s: %s)", name, failed.number, servable.kind,
                  ", ".join(f"{k}{'' if f.joins else ', one by one'}" for k, f in servable.functions.items()))
        self.metrics.loads.labels(name, "loaded").inc()
        return Version(failed.number, AVAILABLE, mark, servable)

    def _about(self, name: str, path: Path, before: Model | None) -> tuple[Mapping[str, int], bool | None]:
        """Labels, and whether requests are joined; what was known before where the file makes no sense."""
        try:
            labels, batching = _read_about(path)
        except (OSError, ValueError, RecursionError) as error:
            if str(error) not in self._told:
                self._told.add(str(error))
                _LOG.error("model %s: %s is left out: %s", name, path.name, error)
            return (before.labels, before.batching) if before else ({}, None)
        return labels, batching


def _read_about(path: Path) -> tuple[dict[str, int], bool | None]:
    """Labels and batching of a file.

    Raises:
        ValueError: it is not of its form. OSError: it cannot be read.
    """
    if not path.is_file():
        return {}, None
    with path.open("rb") as file:
        document = json.loads(file.read(_ABOUT_SIZE))
    labels = document.get("labels", {}) if isinstance(document, dict) else None
    if not isinstance(labels, dict) or not all(
            _NAME.fullmatch(k) and isinstance(v, int) and not isinstance(v, bool) for k, v in labels.items()):
        raise ValueError('it must be an object like {"labels": {"stable": 1}, "batching": true}')
    batching = document.get("batching")
    if batching not in (None, True, False) or document.keys() - {"labels", "batching"}:
        raise ValueError('"batching" is true or false, and there is nothing else but "labels"')
    return labels, batching


def _models_in(folder: Path) -> Iterator[tuple[str, tuple[Path, dict[int, Path]]]]:
    """Each model's name, its file of settings, and the folders of its versions."""
    name = folder.resolve().name
    if (folder / _MANIFEST).is_file() or native.files_of(folder):
        yield _plain(name), (folder / _ABOUT, {1: folder})
        return
    own = _versions(folder)
    if own:
        yield _plain(name), (folder / _ABOUT, own)
        return
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and path.is_dir():
            versions = _versions(path)
            if versions:
                yield path.name, (path / _ABOUT, versions)


def _plain(name: str) -> str:
    """A folder's name as that of a model."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".-")[:128] or "model"


def _versions(folder: Path) -> dict[int, Path]:
    return {int(path.name): path for path in folder.iterdir() if _VERSION.fullmatch(path.name) and path.is_dir()}


def _mark(folder: Path, whole: bool) -> Mark:
    """What tells whether a version has changed; empty where there is none.

    A version that was loaded changes with its manifest or its library. One that could not be may lack files which are
    still being copied, so that each of its files counts (`whole`).
    """
    try:
        manifest = folder / _MANIFEST
        files = [manifest] if manifest.is_file() else native.files_of(folder)
        if files and whole:
            files = sorted(path for path in folder.rglob("*") if path.is_file())
        stats = [(str(path), path.stat()) for path in files or ()]
    except OSError:  # it is being removed
        return ()
    return tuple([(name, s.st_mtime_ns, s.st_size, s.st_ino) for name, s in stats])

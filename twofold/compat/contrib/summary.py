"""`tf.contrib.summary`: summaries whose step is the global step, recorded where a block says so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.compat.v1.train import get_or_create_global_step
from twofold.summary import SummaryWriter, create_file_writer, create_noop_writer, flush, record_if

__all__ = ["SummaryWriter", "always_record_summaries", "create_file_writer", "create_noop_writer", "flush", "histogram",
           "image", "never_record_summaries", "record_summaries_every_n_global_steps", "scalar",
           "should_record_summaries"]

_asked = False  # whether some block here has said that summaries are recorded


@contextlib.contextmanager
def _recorded(condition: Any) -> Iterator[None]:
    global _asked
    before, _asked = _asked, True
    try:
        with record_if(condition):
            yield
    finally:
        _asked = before


@public
def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A block whose summaries are recorded at steps that are multiples of `n`.

    Args:
        n: a number.
        global_step: the variable that counts; the global step by default.

    >>> import twofold as tf
    >>> with tf.contrib.summary.record_summaries_every_n_global_steps(10):
    ...     pass
    """
    step = get_or_create_global_step() if global_step is None else global_step
    return _recorded(lambda: tf.equal(step % tf.constant(n, step.dtype), 0))


@public
def always_record_summaries() -> Any:
    """A block whose summaries are recorded."""
    return _recorded(True)


@public
def never_record_summaries() -> Any:
    """A block whose summaries are not recorded."""
    return _recorded(False)


@public
def should_record_summaries() -> Any:
    """Whether summaries are recorded here."""
    return tf.summary.should_record_summaries() if _asked else False


def _step(given: Any) -> Any:
    return get_or_create_global_step() if given is None else given


@public
def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Write a number; see `tf.summary.scalar`. Nothing is written outside of a block that says so."""
    return tf.summary.scalar(_named(name, family), tensor, step=_step(step)) if _asked else None


@public
def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Write how elements are spread; see `tf.summary.histogram`. Nothing is written outside of a block that says so."""
    return tf.summary.histogram(_named(name, family), tensor, step=_step(step)) if _asked else None


@public
def image(name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: str | None = None,
          step: Any = None) -> Any:
    """Write images; see `tf.summary.image`. Nothing is written outside of a block that says so.

    `bad_color` has no effect.
    """
    return tf.summary.image(_named(name, family), tensor, step=_step(step), max_outputs=max_images) if _asked else None


def _named(name: str, family: str | None) -> str:
    return name if family is None else f"{family}/{name}"


publish(__name__)

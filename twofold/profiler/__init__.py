"""`tf.profiler`: what a program does and how long it takes, as a trace that Perfetto and Chrome open."""

from twofold._front.namespace import publish

from . import experimental

__all__ = ["experimental"]

publish(__name__)

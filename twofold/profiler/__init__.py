"""`tf.profiler`: what a program does and how long it takes, as a trace that Perfetto and Chrome open."""

from . import experimental

__all__ = ["experimental"]

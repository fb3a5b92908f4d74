"""`tf.compat.v1.app`: running a program with its flags."""

from twofold._front.namespace import publish

from . import flags
from .flags import run

__all__ = ["flags", "run"]


publish(__name__)

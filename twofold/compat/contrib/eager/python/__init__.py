"""Where TensorFlow 1 programs import `tfe` from: `from twofold.contrib.eager.python import tfe`."""

from twofold.compat.contrib import eager as tfe

__all__ = ["tfe"]

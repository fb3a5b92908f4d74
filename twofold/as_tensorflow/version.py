"""The versions that programs read under the name `tensorflow`."""

from __future__ import annotations

from twofold.version import __version__ as _own_version

__all__ = ["TENSORFLOW", "VERSION"]

#: the version of TensorFlow whose names and behaviour twofold follows
TENSORFLOW = "2.21.0"
#: `tf.__version__` under the name `tensorflow`: it satisfies requirements, and says whose it is (PEP 440's local part)
VERSION = f"{TENSORFLOW}+twofold.{_own_version}"

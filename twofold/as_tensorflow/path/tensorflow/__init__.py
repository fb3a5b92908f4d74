"""The first import of `tensorflow` in a process whose search path leads here: twofold takes the name."""

import twofold.as_tensorflow  # noqa: F401 - the import is the purpose

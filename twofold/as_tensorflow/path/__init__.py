"""A folder of Python's search path: what lies in it is imported as `tensorflow` and `sitecustomize`, not as a part of
twofold."""

"""The one place where the version is written; the build, `tf.__version__` and `tf.version` read it here.

`VERSION` is this package's own; the other names of TensorFlow's `tf.version` tell of builds and of a file format that
there are none of.
"""

__all__ = ["VERSION", "__version__"]

__version__ = "0.1.0"
VERSION = __version__

"""`tf.saved_model`: objects with their functions and variables as directories that are read without the user's Python.

docs/saved_model.md describes the format. `reader` gives what is in a directory as plain data, for tools.
"""

from twofold._front.api import public
from twofold._front.namespace import publish

from .asset import Asset
from .loading import load
from .options import LoadOptions, SaveOptions
from .saving import contains_saved_model, save
from .signatures import DEFAULT as DEFAULT_SERVING_SIGNATURE_DEF_KEY

ASSETS_DIRECTORY = "assets"

save, load, contains_saved_model = public(save), public(load), public(contains_saved_model)

__all__ = ["ASSETS_DIRECTORY", "Asset", "DEFAULT_SERVING_SIGNATURE_DEF_KEY", "LoadOptions", "SaveOptions",
           "contains_saved_model", "load", "save"]


publish(__name__)

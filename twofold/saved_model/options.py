"""The options of saving and loading, as TensorFlow names them.

There is one device, one kind of variable and no graph rewriting when a model is saved, so most have no effect; they
are accepted so that programs written for TensorFlow run.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SaveOptions", "LoadOptions"]


class SaveOptions:
    """Options for `tf.saved_model.save`.

    Args:
        function_aliases: names for `tf.function`s among what is saved, by which loaded objects have them, too.
        namespace_whitelist, save_debug_info, experimental_debug_stripper, experimental_io_device,
            experimental_variable_policy, experimental_custom_gradients, experimental_image_format,
            experimental_skip_saver, experimental_sharding_callback, extra_tags: accepted, without effect. Custom
            gradients are always saved, and so are the lines of source that errors name.

    >>> import twofold as tf
    >>> tf.saved_model.SaveOptions(experimental_custom_gradients=True).experimental_custom_gradients
    True
    """

    def __init__(self, namespace_whitelist: Any = None, save_debug_info: bool = False,
                 function_aliases: dict[str, Any] | None = None, experimental_debug_stripper: bool = False,
                 experimental_io_device: str | None = None, experimental_variable_policy: Any = None,
                 experimental_custom_gradients: bool = True, experimental_image_format: bool = False,
                 experimental_skip_saver: bool = False, experimental_sharding_callback: Any = None,
                 extra_tags: Any = None) -> None:
        self.namespace_whitelist = namespace_whitelist or []
        self.save_debug_info = save_debug_info
        self.function_aliases = function_aliases or {}
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback
        self.extra_tags = extra_tags


class LoadOptions:
    """Options for `tf.saved_model.load`.

    Args:
        experimental_load_function_aliases: whether the object gets `function_aliases`, a dict of functions by the names
            that `SaveOptions` gave them.
        allow_partial_checkpoint, experimental_io_device, experimental_skip_checkpoint, experimental_variable_policy:
            accepted, without effect. All variables are always loaded.

    >>> import twofold as tf
    >>> tf.saved_model.LoadOptions().allow_partial_checkpoint
    False
    """

    def __init__(self, allow_partial_checkpoint: bool = False, experimental_io_device: str | None = None,
                 experimental_skip_checkpoint: bool = False, experimental_variable_policy: Any = None,
                 experimental_load_function_aliases: bool = False) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_load_function_aliases = experimental_load_function_aliases

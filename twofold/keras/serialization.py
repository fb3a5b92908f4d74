"""Objects as plain JSON values and back, in the form that Keras 3 writes.

An object is `{"module", "class_name", "config", "registered_name"}`. Reading looks names up in a closed registry: the
public classes of `tf.keras`, what was registered, and the custom objects of the caller. Nothing is imported by name,
nothing is unpickled, and the code of a lambda is refused.
"""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import mapped, public

from . import _registry
from .keras_tensor import KerasTensor

__all__ = ["CustomObjectScope", "by_name", "custom_object_scope", "deserialize_keras_object", "get_custom_objects",
           "get_registered_name", "get_registered_object", "register_keras_serializable", "serialize_keras_object"]

_registered: dict[str, Any] = {}  # "package>name" -> class or function
_names: dict[Any, str] = {}  # class or function -> "package>name"
_custom: dict[str, Any] = {}
_scoped: contextvars.ContextVar[tuple[dict[str, Any], ...]] = contextvars.ContextVar("custom_objects", default=())

#: where public classes and functions are, by the module name that configs carry
_MODULES = {
    "keras": (), "keras.layers": ("layers",), "keras.models": ("models",), "keras.losses": ("losses",),
    "keras.metrics": ("metrics",), "keras.optimizers": ("optimizers",),
    "keras.optimizers.schedules": ("optimizers", "schedules"), "keras.initializers": ("initializers",),
    "keras.regularizers": ("regularizers",), "keras.constraints": ("constraints",),
    "keras.activations": ("activations",), "keras.random": ("random",), "keras.dtype_policies": ("dtype_policies",),
}
_OTHER_HOMES = {"keras.src.models.functional": "keras.models", "keras.src.models.sequential": "keras.models",
                "keras.src.models.model": "keras.models", "builtins": "keras",
                "keras._legacy.layers": "keras.layers"}
#: the names that older files have for public classes
_OTHER_NAMES = {"GroupedQueryAttention": "GroupQueryAttention"}
#: classes that are not public, and that configs name
_INTERNAL = ("Functional", "TFOpLambda")
#: operations of Keras 3 that functions of tf become in files, by the class there; older files name no module with them
OPERATIONS = {
    "Add": "add", "Subtract": "subtract", "Multiply": "multiply", "TrueDivide": "truediv", "Divide": "divide",
    "Power": "pow", "Negative": "negative", "Absolute": "abs", "Matmul": "matmul", "GetItem": "getitem",
    "FloorDivide": "math.floordiv", "Mod": "math.floormod", "Greater": "greater", "GreaterEqual": "greater_equal",
    "Less": "less", "LessEqual": "less_equal", "Maximum": "maximum", "Minimum": "minimum", "Square": "square",
    "Sqrt": "sqrt", "Exp": "exp", "Log": "math.log", "Tanh": "tanh", "Sin": "sin", "Cos": "cos"}
OPERATIONS_HOME = "keras.src.ops.numpy"
_FUNCTIONS = ("keras.activations", "keras.losses", "keras.metrics", "keras.initializers")


@public
def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Any], Any]:
    """A decorator that lets configs name a class or function.

    Args:
        package: the first part of the name in configs.
        name: the second part; by default the object's own.
    Raises:
        ValueError: the name is taken, or a class has no `get_config`.

    >>> import twofold as tf
    >>> @tf.keras.saving.register_keras_serializable("docs")
    ... def doubled(x):
    ...     return 2 * x
    >>> tf.keras.saving.get_registered_name(doubled)
    'docs>doubled'
    """
    def decorate(target: Any) -> Any:
        full = f"{package}>{target.__name__ if name is None else name}"
        if inspect.isclass(target) and not hasattr(target, "get_config"):
            raise ValueError("Cannot register a class that does not have a get_config() method.")
        _registered[full] = target
        _names[target] = full
        return target
    return decorate


@public
def get_custom_objects() -> dict[str, Any]:
    """The dict of custom objects that every reading looks into; entries may be added.

    >>> import twofold as tf
    >>> "never_added" in tf.keras.saving.get_custom_objects()
    False
    """
    return _custom


def by_name(objects: Mapping[str, Any] | None, what: str = "custom_objects") -> Mapping[str, Any]:
    """Classes and functions by name, as an argument gives them; none for None.

    Raises:
        TypeError: it is no mapping.
    """
    return {} if objects is None else mapped(objects, what)


class custom_object_scope:
    """A `with` block in which reading knows further classes and functions.

    Args:
        custom_objects: dicts from names to classes or functions.

    >>> import twofold as tf
    >>> def tripled(x):
    ...     return 3 * x
    >>> with tf.keras.saving.custom_object_scope({"tripled": tripled}):
    ...     tf.keras.activations.get("tripled")(2)
    6
    """

    def __init__(self, *custom_objects: Mapping[str, Any]):
        self._objects: dict[str, Any] = {}
        for objects in custom_objects:
            self._objects.update(by_name(objects))
        self._tokens: list[Any] = []

    def __enter__(self) -> custom_object_scope:
        self._tokens.append(_scoped.set((self._objects, *_scoped.get())))
        return self

    def __exit__(self, *exc_info: Any) -> None:
        _scoped.reset(self._tokens.pop())


CustomObjectScope = custom_object_scope


@public
def get_registered_name(obj: Any) -> str:
    """The name under which a class or function was registered; its own name if it was not."""
    try:
        return _names.get(obj, obj.__name__)
    except TypeError:
        return obj.__name__


@public
def get_registered_object(name: str, custom_objects: Mapping[str, Any] | None = None,
                          module_objects: Mapping[str, Any] | None = None) -> Any:
    """The class or function of a name, or None.

    Args:
        name: the name in a config: as registered, or of a custom object.
        custom_objects: looked at first.
        module_objects: looked at last.
    Raises:
        TypeError: one of them is no mapping.
    """
    first, last = by_name(custom_objects), by_name(module_objects, "module_objects")
    for table in (first, *_scoped.get(), _custom, _registered, last):
        if name in table:
            return table[name]
    return None


# -- writing --------------------------------------------------------------------------------------
@public
def serialize_keras_object(obj: Any) -> Any:
    """An object as plain JSON values.

    Args:
        obj: None, numbers, strings, lists, tuples, dicts, arrays, tensors, dtypes, shapes, functions that are public
            or registered, and objects with `get_config`.
    Raises:
        ValueError: it has no such form.

    >>> import twofold as tf
    >>> tf.keras.saving.serialize_keras_object({"shape": (1, 2), "dtype": tf.float32})
    {'shape': [1, 2], 'dtype': 'float32'}
    """
    if obj is None or isinstance(obj, (bool, int, float, str)):
        return obj
    if isinstance(obj, tf.TensorShape):
        return None if obj.rank is None else obj.as_list()
    if isinstance(obj, (list, tuple)):  # tuples are lists in files, as Keras 3 writes them
        return [serialize_keras_object(v) for v in obj]
    if isinstance(obj, Mapping):
        return {str(k): serialize_keras_object(v) for k, v in obj.items()}
    plain = _plain(obj)
    if plain is not None:
        return plain
    if inspect.isfunction(obj) or inspect.isbuiltin(obj) or inspect.isclass(obj):
        return _callable(obj)
    if not hasattr(obj, "get_config"):
        raise ValueError(f"Cannot serialize object {obj!r} of type {type(obj)}. To be serializable, a class must "
                         "implement the `get_config()` method.")
    return _object(obj)


def _plain(obj: Any) -> Any:
    """Values that have a form of their own; None for others."""
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "value": obj.decode("latin-1")}
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, np.ndarray):
        return {"class_name": "__numpy__", "config": {"value": obj.tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, (tf.Tensor, tf.Variable)):
        return {"class_name": "__tensor__", "config": {"value": obj.numpy().tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, tf.DType):
        return obj.name
    if isinstance(obj, slice):
        return {"class_name": "__slice__", "config": {"start": obj.start, "stop": obj.stop, "step": obj.step}}
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(obj, KerasTensor):
        history = obj._history
        return {"class_name": "__keras_tensor__", "config": {
            "shape": list(obj.shape), "dtype": obj.dtype.name,
            "keras_history": [history.operation.name, history.node_index, history.tensor_index]}}
    return None


def _callable(obj: Any) -> dict[str, Any]:
    """A function or class by the name under which it is found again."""
    if getattr(obj, "__name__", "") == "<lambda>":
        raise ValueError("A lambda has no name under which it could be found again: give a function that is "
                         "registered with tf.keras.saving.register_keras_serializable.")
    home = _home_of(obj)
    kind = "class" if inspect.isclass(obj) else "function"
    if home is not None:
        return {"module": home[0] if kind == "class" else "builtins", "class_name": kind, "config": home[1],
                "registered_name": kind}
    name = get_registered_name(obj)
    if kind == "function" and name != obj.__name__:  # Keras looks registered functions up by their configs
        return {"module": "builtins", "class_name": kind, "config": name, "registered_name": kind}
    module = getattr(obj, "__module__", "builtins") or "builtins"
    return {"module": module, "class_name": kind, "config": obj.__name__, "registered_name": name}


def _object(obj: Any) -> dict[str, Any]:
    cls = type(obj)
    home = _home_of(cls)
    name = getattr(obj, "_keras_operation", None)
    if name is not None:
        return {"module": OPERATIONS_HOME, "class_name": name, "config": {"name": obj.name}, "registered_name": name}
    written: dict[str, Any] = {
        "module": cls.__module__ if home is None else home[0],
        "class_name": cls.__name__ if home is None else home[1],
        "config": _config(obj.get_config()),
        "registered_name": None if home is not None else get_registered_name(cls)}
    if hasattr(obj, "get_build_config"):
        build = obj.get_build_config()
        if build is not None:
            written["build_config"] = _shapes(build)
    if hasattr(obj, "get_compile_config"):
        compiled = obj.get_compile_config()
        if compiled is not None:
            written["compile_config"] = _config(compiled)
    return written


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: serialize_keras_object(value) for key, value in config.items()}


def _shapes(value: Any) -> Any:
    """Shapes are lists in files."""
    if isinstance(value, Mapping):
        return {key: _shapes(item) for key, item in value.items()}
    return [_shapes(v) for v in value] if isinstance(value, (list, tuple)) else value


# -- the public classes ---------------------------------------------------------------------------
def _module(name: str) -> Any:
    """The module of `tf.keras` that a module name of a config stands for, or None. The names are a fixed list."""
    path = _MODULES.get(_OTHER_HOMES.get(name, name))
    if path is None:
        return None
    return _registry.ask("module")(path)


def _public(module: Any, name: str) -> Any:
    """The class or function that a public module has under a name, or None."""
    if name not in getattr(module, "__all__", ()):
        return None
    member = getattr(module, name)
    return member if callable(member) and not inspect.ismodule(member) else None


def _home_of(obj: Any) -> tuple[str, str] | None:
    """`(module, name)` of a public class or function of `tf.keras`; None for others."""
    own = getattr(obj, "__module__", None) or ""
    if not own.startswith("twofold.keras"):
        return None
    if hasattr(obj, "_keras_home"):
        return obj._keras_home
    parts = own.split(".")[2:]
    stem = {"functional": "models", "sequential": "models", "model": "models"}.get(parts[0], parts[0]) if parts else ""
    guesses = ["keras" if stem == "models" else f"keras.{stem}", "keras.optimizers.schedules", *_MODULES]
    for name in guesses:
        if name in _MODULES:
            for public in (getattr(obj, "_keras_name", None), obj.__name__):
                if public and _public(_module(name), public) is obj:
                    return name, public
    return None


# -- reading --------------------------------------------------------------------------------------
@public
def deserialize_keras_object(config: Any, custom_objects: Mapping[str, Any] | None = None, safe_mode: bool = True,
                             module_objects: Mapping[str, Any] | None = None, **kwargs: Any) -> Any:
    """What `serialize_keras_object` wrote, as an object again.

    Args:
        config: plain JSON values; a string stands for a function or class of `module_objects` or of the custom
            objects, if it names one.
        custom_objects: classes and functions by name, looked at before all others.
        safe_mode: accepted, without effect: code in configs is refused in any case.
        module_objects: the names of one kind of object.
        kwargs: have no effect.
    Raises:
        ValueError: a name is not known, or the config holds code that must not be loaded.
        TypeError: `custom_objects` or `module_objects` is no mapping.

    >>> import twofold as tf
    >>> config = tf.keras.saving.serialize_keras_object(tf.keras.initializers.Constant(2.0))
    >>> tf.keras.saving.deserialize_keras_object(config)([2]).numpy().tolist()
    [2.0, 2.0]
    """
    del safe_mode, kwargs
    with custom_object_scope(by_name(custom_objects)):
        return _read(config, by_name(module_objects, "module_objects"))


def _read(config: Any, table: Mapping[str, Any]) -> Any:
    if isinstance(config, str) and (table or get_registered_object(config) is not None):
        return _named(config, table)
    if isinstance(config, (list, tuple)):
        return [_read(item, {}) for item in config]
    if not isinstance(config, Mapping):
        return config
    if "class_name" not in config or not ("config" in config or "items" in config or "value" in config):
        return {key: _read(item, {}) for key, item in config.items()}
    special = _SPECIAL.get(config["class_name"])
    if special is not None:
        return special(config)
    return _made(config, table)


def _named(name: str, table: Mapping[str, Any]) -> Any:
    named = get_registered_object(name, None, table)
    if named is None:
        raise ValueError(f"Unknown object: '{name}'. Please ensure you are using a `keras.saving.custom_object_scope` "
                         "and that this object is included in the scope.")
    return named() if inspect.isclass(named) else named


def _made(config: Mapping[str, Any], table: Mapping[str, Any]) -> Any:
    """The object of a class."""
    cls = _class(config, table)
    if not hasattr(cls, "from_config"):
        raise ValueError(f"{cls!r} has no from_config() method, so that no object can be made from {config!r}.")
    inner = _without_neutral(cls, config["config"])
    made = cls.from_config(inner if getattr(cls, "_reads_raw_config", False) else _arguments(inner))
    if config.get("build_config") and hasattr(made, "build_from_config") and not getattr(made, "built", False):
        made.build_from_config(config["build_config"])
    if config.get("compile_config") and hasattr(made, "compile_from_config"):
        made.compile_from_config(config["compile_config"])
    return made


#: options of Keras that are not here, by name: what they are where they do nothing
_NEUTRAL: dict[str, Any] = {
    "quantization_config": None, "lora_rank": None, "lora_alpha": None, "synchronized": False, "renorm": False,
    "renorm_clipping": None, "renorm_momentum": 0.99, "optional": False, "ragged": False, "sparse": False,
    "input_axes": None, "output_axes": None, "use_gate": False, "flash_attention": None, "batch_input_shape": None,
    "jit_compile": None, "is_legacy_optimizer": False, "zero_output_for_mask": False,
    "rms_scaling": False}


def _without_neutral(cls: Any, config: Any) -> Any:
    """A config of Keras without the options that a class here does not have, where they say nothing."""
    if not isinstance(config, Mapping) or not getattr(cls, "__module__", "").startswith("twofold.keras"):
        return config
    taken = inspect.signature(cls.__init__).parameters
    return {key: value for key, value in config.items()
            if key in taken or key not in _NEUTRAL or value != _NEUTRAL[key]}


def _arguments(config: Any) -> Any:
    """A config with objects made of the configs in it."""
    return {key: _read(item, {}) if isinstance(item, (Mapping, list)) else item for key, item in config.items()}


def _class(config: Mapping[str, Any], table: Mapping[str, Any]) -> Any:
    name, registered, module = config["class_name"], config.get("registered_name"), config.get("module")
    if not module and set(config["config"]) == {"name"}:
        module = OPERATIONS_HOME if name in OPERATIONS else None  # there are layers of these names too
    name = _OTHER_NAMES.get(name, name)
    for candidate in (registered, name):
        located = None if not candidate else get_registered_object(candidate, None, table)
        if located is not None:
            return located
    located = _public(_module(module), name) if module else None
    if located is None and not module:
        located = next((f for f in (_public(_module(m), name) for m in _MODULES) if f is not None), None)
    if located is None and name in _INTERNAL:
        return _registry.ask(name)
    if located is None and module and module.startswith("keras.src.ops."):
        located = _registry.ask("operation_class")(module, name)
    if inspect.isclass(located):
        return located
    raise ValueError(f"Could not locate class '{name}'" + (f" of module '{module}'" if module else "") + ". Custom "
                     "classes are decorated with `@keras.saving.register_keras_serializable()` or passed in "
                     "`custom_objects`; nothing is imported by name.")


def _function(config: Mapping[str, Any]) -> Any:
    name = config["config"]
    if isinstance(name, Mapping):  # older files
        name = name.get("name") or name.get("class_name")
    for candidate in (config.get("registered_name"), name):
        located = get_registered_object(candidate) if candidate and candidate != "function" else None
        if located is not None:
            return located
    homes = (config.get("module") or "", *_FUNCTIONS)
    for home in homes:
        module = _module(home)
        located = None if module is None else _public(module, name)
        if located is not None:
            return located
    raise ValueError(f"Could not locate function '{name}'. Custom functions are decorated with "
                     "`@keras.saving.register_keras_serializable()` or passed in `custom_objects`; nothing is "
                     "imported by name.")


def _class_itself(config: Mapping[str, Any]) -> Any:
    return _class({**config, "class_name": config["config"]}, {})


def _lambda(config: Mapping[str, Any]) -> Any:
    raise ValueError("The config holds the code of a Python lambda. Code in files is never run here: give the function "
                     "by name in `custom_objects`.")


def _tensor(config: Mapping[str, Any]) -> Any:
    return tf.constant(config["config"]["value"], dtype=config["config"]["dtype"])


def _slice(config: Mapping[str, Any]) -> slice:
    return slice(*[_read(config["config"][k], {}) for k in ("start", "stop", "step")])


_SPECIAL: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "__tuple__": lambda c: tuple(_read(v, {}) for v in c["items"]),
    "__list__": lambda c: [_read(v, {}) for v in c["items"]],
    "__bytes__": lambda c: c["value"].encode("latin-1"),
    "__numpy__": lambda c: np.array(c["config"]["value"], dtype=tf.as_dtype(c["config"]["dtype"]).as_numpy_dtype),
    "__tensor__": _tensor,
    "__slice__": _slice,
    "__ellipsis__": lambda c: Ellipsis,
    "__lambda__": _lambda,
    "TensorShape": lambda c: tuple(c.get("items") or c["config"]),
    "function": _function,
    "class": _class_itself,
}


def is_plain(value: Any) -> bool:
    """Whether a value can stand in a config as it is."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return True
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and is_plain(v) for k, v in value.items())
    return isinstance(value, (list, tuple)) and all(is_plain(v) for v in value)

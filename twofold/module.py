"""`tf.Module`: an object that finds the variables and modules in its attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from twofold.eager.naming import name_scope
from twofold.eager.variable import Variable

from .tracking import Trackable

__all__ = ["Module"]


class Module(Trackable):
    """The base of layers and models: it finds the variables and modules in its attributes, however nested.

    Args:
        name: a Python identifier; by default the class's name in lower case with underscores.
    Raises:
        ValueError: the name is not an identifier.

    >>> import twofold as tf
    >>> class Dense(tf.Module):
    ...     def __init__(self, inputs, outputs, name=None):
    ...         super().__init__(name=name)
    ...         with self.name_scope:
    ...             self.w = tf.Variable(tf.zeros([inputs, outputs]), name="w")
    ...             self.b = tf.Variable(tf.zeros([outputs]), name="b")
    >>> [v.name for v in Dense(2, 3).trainable_variables]
    ['dense/b:0', 'dense/w:0']
    """

    #: attributes in which variables and modules are not looked for
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset({"_self_setattr_tracking", "_name_scope"})

    def __init__(self, name: str | None = None):
        if name is None:
            name = _snake_case(type(self).__name__)
        if not isinstance(name, str) or not name.isidentifier():  # "lambda" is one, as for TensorFlow
            raise ValueError(f"{name!r} is not a valid module name. Module names must be valid Python identifiers "
                             "(e.g. a valid class name).")
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self) -> str:
        """The name given, or made from the class's."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """A `tf.name_scope` of this module, in the scope in which it was made."""
        return name_scope(self._scope_name)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of this module and the modules in it: own ones first, attributes in order of their names."""
        return tuple(self._flatten(predicate=lambda value: isinstance(value, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of `variables` that are trainable."""
        return tuple(self._flatten(predicate=lambda value: isinstance(value, Variable) and value.trainable))

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """Those of `variables` that are not trainable."""
        return tuple(self._flatten(predicate=lambda value: isinstance(value, Variable) and not value.trainable))

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules in this one's attributes, and those in theirs."""
        return tuple(self._flatten(predicate=lambda value: isinstance(value, Module)))

    def _flatten(self, recursive: bool = True, predicate: Callable[[Any], bool] | None = None,
                 attribute_traversal_key: Callable[[str], Any] | None = None, with_path: bool = False,
                 expand_composites: bool = False) -> Iterator[Any]:
        """The values in the attributes for which `predicate` holds, each once.

        Args:
            recursive: whether modules found are looked into.
            predicate: what to give; by default everything.
            attribute_traversal_key: the key by which attribute names are sorted.
            with_path: give pairs of a path (names and indices) and a value.
            expand_composites: accepted, without effect.
        """
        return _flatten(self, recursive, predicate or (lambda value: True), attribute_traversal_key, with_path,
                        (), {id(self)})

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Make `method` enter the module's name scope: variables that it makes have the module's name before theirs."""
        @functools.wraps(method)
        def in_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)
        return in_scope


def _flatten(module: Module, recursive: bool, predicate: Callable[[Any], bool],
             key: Callable[[str], Any] | None, with_path: bool, prefix: tuple[Any, ...],
             seen: set[int]) -> Iterator[Any]:
    attributes = vars(module)
    inner = []
    for name in sorted(attributes, key=key):
        if name in module._TF_MODULE_IGNORED_PROPERTIES:
            continue
        for path, leaf in _leaves(attributes[name], (name,)):
            if id(leaf) in seen:
                continue
            seen.add(id(leaf))
            if predicate(leaf):
                yield (prefix + path, leaf) if with_path else leaf
            if recursive and isinstance(leaf, Module):
                inner.append((prefix + path, leaf))
    for path, submodule in inner:
        yield from _flatten(submodule, recursive, predicate, key, with_path, path, seen)


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of nested lists, tuples and dicts with their paths, in order; dicts by sorted keys where these can be
    compared."""
    if isinstance(value, Mapping):
        try:
            keys = sorted(value)
        except TypeError:
            keys = list(value)
        for key in keys:
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for n, item in enumerate(value):
            yield from _leaves(item, (*path, n))
    else:
        yield path, value


def _snake_case(name: str) -> str:
    parted = re.sub(r"((?<=[a-z0-9])[A-Z]|(?!^)(?<!_)[A-Z](?=[a-z]))", r"_\1", name)
    return parted.lower()

"""`make_template`: functions that make their variables when they are first called, and find them again later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twofold._front.api import public

from .variables import VariableScope, variable_names, variable_scope

__all__ = ["Template", "make_template"]


class Template:
    """A function whose variables, which it gets by `get_variable`, are the same in each call."""

    def __init__(self, name: str, function: Callable[..., Any], unique_name: str | None, custom_getter: Any) -> None:
        self._default, self._function, self._unique, self._getter = name, function, unique_name, custom_getter
        self._scope: VariableScope | None = None
        self._store: dict[str, Any] = {}
        self._called = False

    def open(self) -> VariableScope:
        """The scope of its variables, which is made where there is none yet."""
        if self._scope is None:
            with variable_scope(self._unique, default_name=self._default, custom_getter=self._getter) as scope:
                self._scope, self._store = scope, variable_names()
        return self._scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with variable_scope(self.open(), reuse=self._called):
            result = self._function(*args, **kwargs)
        self._called = True
        return result

    @property
    def name(self) -> str:
        """The name given."""
        return self._default

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of its variables; None where it was not called yet."""
        return self._scope

    @property
    def variables(self) -> list[Any]:
        """Its variables, in the order in which they were made."""
        prefix = None if self._scope is None else f"{self._scope.name}/"
        return [v for name, v in self._store.items() if prefix is not None and name.startswith(prefix)]

    @property
    def trainable_variables(self) -> list[Any]:
        """Those that tapes watch."""
        return [v for v in self.variables if v.trainable]


@public
def make_template(name_: str, func_: Callable[..., Any], create_scope_now_: bool = False,
                  unique_name_: str | None = None, custom_getter_: Any = None, **kwargs: Any) -> Template:
    """A function that shares the variables which it gets by `get_variable` among its calls.

    Args:
        name_: the scope of its variables, which gets a number where it is taken.
        func_: the function.
        create_scope_now_: whether the scope is that of this place, and not of the first call's.
        unique_name_: a scope that gets no number.
        custom_getter_: see `variable_scope`.
        kwargs: arguments of the function in each call.
    Returns:
        The function, with `variables` and `trainable_variables`.

    >>> import twofold as tf
    >>> v1 = tf.compat.v1
    >>> scaled = v1.make_template("scaled", lambda x: x * v1.get_variable("w", [], initializer=v1.ones_initializer()))
    >>> float(scaled(2.0) + scaled(3.0)), [v.name for v in scaled.variables]
    (5.0, ['scaled/w:0'])
    """
    template = Template(name_, functools.partial(func_, **kwargs) if kwargs else func_, unique_name_,
                        custom_getter_)
    if create_scope_now_:
        template.open()
    return template

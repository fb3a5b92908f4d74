"""The base of TensorFlow 1's optimizers: gradients, the variables that an optimizer keeps, and updates.

An optimizer gives the new values of a variable and of its slots as tensors; here they are assigned at once, or become
an operation of a graph. Slots have the names that TensorFlow 1 gives them, such as "w/Adam" and "w/Adam_1", so that
savers find them in its checkpoints.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed, public_class

from .. import variables as own
from ..graph import current_graph
from ..operations import Operation

__all__ = ["Optimizer", "make_variable"]


def make_variable(start: Callable[[], Any], name: str) -> Any:
    """A variable that is not trained, of the current graph if there is one, beside whatever is being built."""
    graph = current_graph()
    with contextlib.ExitStack() as stack:
        if graph is None:
            stack.enter_context(tf.init_scope())
        else:
            stack.enter_context(graph.control_dependencies(None))
        stack.enter_context(tf.name_scope(""))
        return tf.Variable(start(), trainable=False, name=name)


@public_class
class Optimizer(tf.Module):
    """The base of TensorFlow 1's optimizers.

    Another one overrides `_slots`, which names what is kept for a variable, and `_new_values`.

    Args:
        use_locking: accepted, without effect.
        name: its name, which those of its variables end in.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    def __init__(self, use_locking: bool = False, name: str = "Optimizer"):
        if not name:
            raise ValueError("Must specify the optimizer name")
        super().__init__(name=name)
        self._state: dict[str, Any] = {}  # variables by "SLOT/NUMBER OF THE VARIABLE", or by a name alone
        self._numbers: dict[int, int] = {}  # id of a variable -> its number
        self._moved: list[Any] = []  # the variables themselves, which keeps their identities theirs

    def get_name(self) -> str:
        """The name."""
        return self.name

    # -- what an optimizer overrides --------------------------------------------------------------
    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        """For each slot a function of the variable that gives its initial value."""
        return {}

    def _shared(self) -> dict[str, Callable[[], Any]]:
        """For each variable that the optimizer has once, for all variables, a function that gives its initial value."""
        return {}

    @abstractmethod
    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Callable[[Any], Any]) -> tuple[Any, dict[str, Any]]:
        """The value of a variable after a step, and those of its slots.

        Args:
            gradient, value: of the variable.
            slots: the values of its slots.
            shared: the values of the shared variables.
            number: a setting as a scalar of the variable's dtype.
        """
        raise NotImplementedError(f"{type(self).__name__} gives no new values")

    def _new_shared(self, shared: dict[str, Any]) -> dict[str, Any]:
        """The values of the shared variables after a step."""
        return {}

    # -- gradients --------------------------------------------------------------------------------
    def compute_gradients(self, loss: Any, var_list: Any = None, gate_gradients: int = GATE_OP,
                          aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
                          grad_loss: Any = None) -> list[Any]:
        """The gradients of a loss, as pairs of a gradient and a variable.

        Args:
            loss: a tensor of the current graph; where ops run at once, a function of no arguments.
            var_list: the variables; by default all that are trainable.
            grad_loss: the cotangent of the loss.
            gate_gradients, aggregation_method, colocate_gradients_with_ops: accepted, without effect.
        Raises:
            RuntimeError: ops run at once, and the loss is no function.
            ValueError: there are no variables.
        """
        if callable(loss):
            with tf.GradientTape() as tape:
                if var_list is not None:
                    var_list = listed(var_list, "var_list")
                    tape.watch(var_list)
                value = loss()
            variables = var_list if var_list is not None else list(tape.watched_variables())
            return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))
        if tf.executing_eagerly():
            raise RuntimeError("`loss` passed to Optimizer.compute_gradients should be a function when eager execution "
                               "is enabled.")
        variables = listed(var_list, "var_list") if var_list is not None else own.trainable_variables()
        if not variables:
            raise ValueError("No variables to optimize.")
        return list(zip(tf.gradients(loss, variables, grad_loss), variables, strict=True))

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None, gate_gradients: int = GATE_OP,
                 aggregation_method: Any = None, colocate_gradients_with_ops: bool = False, name: str | None = None,
                 grad_loss: Any = None) -> Any:
        """Compute the gradients of a loss, and update variables; see `compute_gradients` and `apply_gradients`.

        `gate_gradients`, `aggregation_method` and `colocate_gradients_with_ops` have no effect.
        """
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        return self.apply_gradients(pairs, global_step, name)

    # -- updates ----------------------------------------------------------------------------------
    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Update variables.

        Args:
            grads_and_vars: pairs of a gradient and a variable.
            global_step: a variable that is increased by one.
            name: of the operation.
        Returns:
            In a graph, what does it when it runs.
        Raises:
            ValueError: no variable has a gradient.
        """
        pairs = [(g, v) for g, v in listed(grads_and_vars, "grads_and_vars") if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable, check your graph for ops that do not support "
                             "gradients.")
        self._build([v for _, v in pairs])
        updates = self._updates(pairs)
        if global_step is not None:
            updates.append((global_step, global_step + tf.ones([], global_step.dtype)))
        graph = current_graph()
        if graph is not None:
            return Operation(graph, updates, graph.scoped(name or self.name))
        for variable, value in updates:
            variable.assign(value)
        return None

    def _build(self, variables: Sequence[Any]) -> None:
        """Make the slots of variables that have none yet."""
        for key, start in self._shared().items():
            if key not in self._state:
                self._state[key] = make_variable(start, key)
                waiting = self.__dict__.get("_waiting_for_children", {})
                if key in waiting:
                    waiting.pop(key)(self._state[key])
        for variable in variables:
            if id(variable) in self._numbers:
                continue
            number = self._numbers[id(variable)] = len(self._moved)
            self._moved.append(variable)
            for n, (slot, first) in enumerate(self._slots().items()):
                name = f"{variable.name[:-2]}/{self.name}" + (f"_{n}" if n else "")
                made = make_variable(lambda s=first, v=variable: s(v), name)  # type: ignore[misc]
                self._state[f"{slot}/{number}"] = made
                for told in self.__dict__.get("_waiting_for_slots", ()):
                    told(variable, slot, made)

    def _updates(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        shared = {key: self._state[key]._read_tensor() for key in self._shared()}
        updates: list[tuple[Any, Any]] = []
        for gradient, variable in pairs:
            kept = {slot: self.get_slot(variable, slot) for slot in self._slots()}

            def number(value: Any, dtype: Any = variable.dtype) -> Any:
                return tf.cast(value() if callable(value) and not tf.is_tensor(value) else value, dtype)
            value, slots = self._new_values(tf.convert_to_tensor(gradient), variable._read_tensor(),
                                            {slot: v._read_tensor() for slot, v in kept.items()}, shared, number)
            if variable.constraint is not None:
                value = variable.constraint(value)
            updates += [(variable, value), *[(kept[slot], new) for slot, new in slots.items()]]
        return updates + [(self._state[key], new) for key, new in self._new_shared(shared).items()]

    # -- what is kept -----------------------------------------------------------------------------
    def get_slot_names(self) -> list[str]:
        """The names of the slots that each variable has."""
        return list(self._slots())

    def get_slot(self, var: Any, name: str) -> Any:
        """The variable that is kept for another one; None where there is none.

        Args:
            var: the variable that is moved.
            name: of the slot.
        """
        number = self._numbers.get(id(var))
        return None if number is None else self._state.get(f"{name}/{number}")

    def variables(self) -> list[Any]:  # type: ignore[override]
        """The variables that it keeps."""
        return list(self._state.values())

    def _tracked_children(self) -> dict[str, Any]:
        if not self._state:
            return {}
        return {"_state": self._state, **{key: self._state[key] for key in self._shared()}}

    def _slot_of(self, variable: Any, name: str) -> Any:
        return self.get_slot(variable, name)

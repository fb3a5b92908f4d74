"""Backends of einops for twofold, in the form of those in `einops/_backends.py`, and a plugin of pytest that adds them
to einops's own tests (`-p einops_backend`, with this folder in the search path; `einops_suite.py` does so).

Upstream, the two classes would stand in `einops/_backends.py`, and `einops_layers.py` would be
`einops/layers/twofold.py`. einops finds a backend by its class, once the package of that name is imported.
"""

from __future__ import annotations

from typing import Any

from einops._backends import AbstractBackend, HashableTuple


class TwofoldBackend(AbstractBackend):
    """Tensors and variables of twofold, with values or in functions that are traced."""

    framework_name = "twofold"

    def __init__(self) -> None:
        import twofold

        self.tf = twofold

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, (self.tf.Tensor, self.tf.Variable))

    def from_numpy(self, x: Any) -> Any:
        return self.tf.convert_to_tensor(x)

    def to_numpy(self, x: Any) -> Any:
        return x.numpy()

    def arange(self, start: int, stop: int) -> Any:
        return self.tf.range(start, stop)

    def shape(self, x: Any) -> Any:
        known = x.shape.as_list()
        if None not in known:
            return tuple(known)
        sizes = self.tf.shape(x)
        return HashableTuple(tuple(sizes[n] if size is None else size for n, size in enumerate(known)))

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        return getattr(self.tf, f"reduce_{operation}")(x, axis=axes)

    def reshape(self, x: Any, shape: Any) -> Any:
        return self.tf.reshape(x, shape)

    def transpose(self, x: Any, axes: Any) -> Any:
        return self.tf.transpose(x, axes)

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        return self.tf.stack(tensors)

    def tile(self, x: Any, repeats: Any) -> Any:
        return self.tf.tile(x, repeats)

    def concat(self, tensors: list[Any], axis: int) -> Any:
        return self.tf.concat(tensors, axis=axis)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return self.tf.expand_dims(x, new_position)

    def is_float_type(self, x: Any) -> bool:
        return x.dtype.is_floating

    def einsum(self, pattern: str, *x: Any) -> Any:
        return self.tf.einsum(pattern, *x)

    def layers(self) -> Any:
        import einops_layers

        return einops_layers


class TwofoldKerasBackend(TwofoldBackend):
    """What stands for tensors while a functional model of `twofold.keras` is made."""

    framework_name = "twofold.keras"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return self.tf.keras.utils.is_keras_tensor(tensor)

    def create_symbol(self, shape: Any) -> Any:
        return self.tf.keras.Input(batch_shape=shape)

    def eval_symbol(self, symbol: Any, symbol_value_pairs: list[tuple[Any, Any]]) -> Any:
        inputs, values = zip(*symbol_value_pairs, strict=True)
        return self.tf.keras.Model(list(inputs), symbol).predict_on_batch(list(values))


def pytest_configure() -> None:
    """Let einops's tests collect the backends."""
    import einops.tests

    collect = einops.tests.collect_test_backends

    def with_twofold(symbolic: bool = False, layers: bool = False) -> list[Any]:
        ours = {(False, False): TwofoldBackend, (True, True): TwofoldKerasBackend}.get((symbolic, layers))
        asked = ours is not None and ours.framework_name in einops.tests.parse_backends_to_test()
        return [*collect(symbolic, layers), *([ours()] if asked and ours is not None else [])]

    einops.tests.collect_test_backends = with_twofold


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave out tests that einops leaves out for Keras's symbols: sizes that are not known are no outputs of models."""
    items[:] = [item for item in items
                if not (hasattr(item, "callspec") and isinstance(item.callspec.params.get("backend"),
                                                                 TwofoldKerasBackend))]

"""`Layer`: a callable that owns its weights and makes them when it is first called.

What it holds is `layer_state.py`'s; this module owns calls (`__call__`: conversion, build, the training flag, masks,
losses of activities), `add_weight` and configs. A built layer called on one tensor of the shape seen before takes a
short way that costs about a microsecond; in a traced function all of this happens while tracing, and none at run time.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.reading import spend
from twofold._front.api import leave, listed, mark, staged, tells, told, untold
from twofold._front.mixed import computing_in
from twofold._front.together import making

from . import call_context, constraints, dtype_policies, initializers, regularizers
from .autocast import AutoCastVariable
from .call_spec import CallSpec
from .composites import is_composite
from .configs import config_of
from .input_spec import assert_input_compatibility
from .keras_tensor import any_symbolic
from .layer_state import LayerState, losses_there_were
from .naming import auto_name
from .refusals import shared_by_now, unbuilt_if_refused
from .serialization import is_plain, serialize_keras_object
from .shapes import InputShape, as_shape
from .symbolic import symbolic_call, traced_spec

__all__ = ["Layer"]

_Tensor = tf.Tensor
_NO_SCOPE = nullcontext()
_ACCEPTED = frozenset({"input_shape", "batch_input_shape", "batch_shape", "batch_size", "input_dim", "weights",
                       "input_dtype", "implementation"})
_made = itertools.count()


class Layer(LayerState):
    """The base of all layers.

    Override `__init__` for arguments, `build` to make weights for a shape, `call` to compute. Weights may also be made
    in `__init__` or `call`; variables and layers set as attributes, also in lists and dicts, are found.

    Args:
        trainable: whether training changes the weights.
        name: the layer's name; by default made from the class's.
        dtype: a dtype or a `DTypePolicy`: that of the weights and of the computation.
        dynamic: accepted: a value that Python asks for makes a compiled function fall back by itself.
        activity_regularizer: a regularizer of the output, or its name.
        autocast: whether floating inputs are cast to the layer's dtype.
        kwargs: `input_shape` (without the batch) or `batch_input_shape`, `batch_size`, `input_dim`: the shape for
            which a `Sequential` builds the layer at once; `weights`: arrays that the weights start from.
    Raises:
        ValueError: there are other arguments.

    >>> import twofold as tf
    >>> class Scaled(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.scale = self.add_weight(name="scale", shape=input_shape[-1:], initializer="ones")
    ...     def call(self, x):
    ...         return x * self.scale
    >>> layer = Scaled()
    >>> layer(tf.constant([[1.0, 2.0]])).numpy().tolist(), [v.name for v in layer.weights]
    ([[1.0, 2.0]], ['scaled/scale:0'])
    """

    built: bool = False
    activity_regularizer: Any = None
    # The inputs for which nothing is left to check: shape, dtype, whether `call` takes training, whether there are no
    # layers within, the class's `call`, and what computes, a function of the layer and the input.
    _fast: Any = None
    supports_masking: bool = False
    input_spec: Any = None
    dynamic: bool = False
    stateful: bool = False
    autocast: bool = True
    _build_shapes: Any = None
    _batch_input_shape: Any = None
    _initial_weights: Any = None
    _own_scope: bool = True  # whether weights made in the first call have this layer's name before theirs

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, dynamic: bool = False, *,
                 activity_regularizer: Any = None, autocast: bool = True, **kwargs: Any):
        unknown = set(kwargs) - _ACCEPTED
        if unknown:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: "
                             f"{ {k: kwargs[k] for k in sorted(unknown)} }")
        if name is not None and not isinstance(name, str):
            raise ValueError(f"Layer name must be a string. Received: name={name!r} (of type {type(name)})")
        own = self.__dict__
        own["_name"] = name or auto_name(type(self))
        own["_scope_name"] = f"{_legal(own['_name'])}/"
        own["_policy"] = dtype_policies.get(dtype)
        own["_trainable"] = bool(trainable)
        own["_number"] = next(_made)
        if dynamic:
            self.dynamic = True
        if not autocast:
            self.autocast = False
        if activity_regularizer is not None:
            activity_regularizer = regularizers.get(activity_regularizer)
        own["activity_regularizer"] = activity_regularizer
        if kwargs:
            own["_batch_input_shape"] = _input_shape(kwargs)
            own["_initial_weights"] = kwargs.get("weights")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shape_rule = vars(cls).get("compute_output_shape")
        if shape_rule is not None and cls.__module__.startswith("twofold."):
            cls.compute_output_shape = _of_shapes(shape_rule)  # type: ignore[method-assign]
        if "build" in vars(cls):
            cls.build = _building(cls.build)  # type: ignore[method-assign]

    # -- what it is -------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The layer's name."""
        return self._name

    @property
    def path(self) -> str:
        """The layer's name; the same as `name`."""
        return self._name

    @property
    def dtype_policy(self) -> dtype_policies.DTypePolicy:
        """The dtypes of weights and computation."""
        return self.__dict__["_policy"]

    @dtype_policy.setter
    def dtype_policy(self, policy: Any) -> None:
        self.__dict__["_policy"] = dtype_policies.get(policy)
        self.__dict__["_fast"] = None

    @property
    def dtype(self) -> str:
        """The name of the dtype of weights."""
        return self.dtype_policy.variable_dtype

    @property
    def variable_dtype(self) -> str:
        """The name of the dtype of weights."""
        return self.dtype_policy.variable_dtype

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype of the computation."""
        return self.dtype_policy.compute_dtype

    @property
    def input_dtype(self) -> str:
        """The name of the dtype to which floating inputs are cast."""
        return self.dtype_policy.compute_dtype

    @property
    def _call_spec(self) -> CallSpec:
        return CallSpec.of(self)

    # -- weights ----------------------------------------------------------------------------------
    def build(self, input_shape: Any) -> None:
        """Make the weights for a shape; it runs once, before the first `call`.

        Args:
            input_shape: the shape of the input, batch included, None for sizes that are unknown; or a structure of
                such. A `build` with several parameters gets the shape of the argument `x` of `call` as `x_shape`.
        """
        self.built = True

    def add_weight(self, name: Any = None, shape: Any = None, dtype: Any = None, initializer: Any = None,
                   regularizer: Any = None, trainable: bool | None = None, constraint: Any = None,
                   autocast: bool = True, aggregation: Any = None, synchronization: Any = None,
                   **kwargs: Any) -> tf.Variable:
        """Make a weight of this layer.

        Args:
            name: its name. A first argument that is not a string is the shape, as in `add_weight((2, 3))`.
            shape: its shape, all sizes known; a scalar by default.
            dtype: the layer's dtype of weights by default.
            initializer: an initializer or its name; Glorot's uniform one for floats, zeros for others.
            regularizer: a regularizer or its name, whose loss counts among `losses`.
            trainable: whether training changes it.
            constraint: a constraint or its name, which optimizers apply after an update.
            autocast: whether the weight is read in the dtype of the computation.
            aggregation, synchronization: what becomes of assignments in the replicas of a strategy (`tf.distribute`): a
                member of `tf.VariableAggregation` or its name, and of `tf.VariableSynchronization`.
            kwargs: accepted, without effect.
        Returns:
            The variable.
        Raises:
            ValueError: a size is unknown, or the initializer is.
        """
        if name is not None and not isinstance(name, str):
            # Keras 3: shape, initializer, dtype, trainable
            if shape is not None and initializer is None:
                initializer = shape
            elif shape is not None:
                trainable, initializer = initializer if isinstance(initializer, bool) else trainable, shape
            name, shape = None, name
        dims = _known_sizes(shape, name, self.name)
        policy_dtype = self.__dict__["_policy"].variable_dtype
        kind = tf.as_dtype(policy_dtype if dtype is None else dtype)
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros"
        first = initializers.get(initializer)
        make = self._variable_class(kind, autocast)
        spend(math.prod(dims) * kind.size)
        with tf.init_scope(), self._scoped():
            start = first(dims, dtype=kind)
            variable = make(start, trainable=True if trainable is None else trainable, name=name or "variable",
                            dtype=kind, constraint=constraints.get(constraint), synchronization=synchronization,
                            aggregation=_aggregation(aggregation))
        if regularizer is not None:
            variable.regularizer = regularizers.get(regularizer)
        self.__dict__["_added_weights"].append(variable)
        return variable

    def add_variable(self, name: Any = None, shape: Any = None, *args: Any, **kwargs: Any) -> tf.Variable:
        """Make a weight; the older name of `add_weight`."""
        return self.add_weight(name, shape, *args, **kwargs)

    def _variable_class(self, dtype: tf.DType, autocast: bool) -> Any:
        """The class of a new weight: one that is read in the dtype of the computation, where that differs."""
        policy = self.__dict__["_policy"]
        if autocast and dtype.is_floating and policy.compute_dtype != policy.variable_dtype:
            return AutoCastVariable
        return tf.Variable

    @contextmanager
    def _scoped(self) -> Iterator[None]:
        """A block in which new weights, ops and summaries have this layer's name before theirs, once, below the layers
        around it."""
        own = self.__dict__
        if own.get("_in_scope") or not self._own_scope:
            yield
            return
        own["_in_scope"] = True
        try:
            around = tf.get_current_name_scope()
            with tf.name_scope(f"{around}/{self._scope_name}" if around else self._scope_name):
                yield
        finally:
            own["_in_scope"] = False

    # -- calls ------------------------------------------------------------------------------------
    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; subclasses override it.

        Args:
            inputs: a tensor or a structure of tensors.
            args, kwargs: further arguments. Of these, `training` says whether the call is for training, and `mask`
                is the mask that goes with the inputs.
        """
        name = type(self).__name__
        raise NotImplementedError(f"Layer {name} does not have a `call()` method implemented.")

    @tells
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        since = -1  # a quick call of a layer draws nothing but from the layer's own state
        try:
            fast = self._fast
            if fast is not None and len(args) == 1 and not call_context.masks:
                x = args[0]
                if type(x) is _Tensor and x.dims == fast[0] and x.dtype is fast[1] and type(self).call is fast[4]:
                    outer = call_context.current()
                    if not kwargs:
                        if not fast[2]:
                            if outer is not None or fast[3]:
                                return fast[5](self, x)
                        elif outer is not None and outer.training is not None:
                            return fast[5](self, x, training=outer.training)
                        elif fast[3] and call_context.learning_phase() is None:
                            return fast[5](self, x)
                    if outer is None and len(kwargs) == ("training" in kwargs) and not losses_there_were:
                        training = kwargs.get("training")
                        if training is None or type(training) is bool:
                            return self._entered(x, training, fast[2], fast[5])
            since = mark()
            return self._full_call(args, kwargs)
        except Exception as error:  # noqa: BLE001 (whatever it is, it goes on)
            raise leave(error, _plain_call, since, sys._getframe(1))  # noqa: B904

    def _entered(self, x: Any, training: Any, passes: bool, compute: Callable[..., Any]) -> Any:
        """An outermost call of a layer that is built and needs no conversion: only the context for the layers within is
        set."""
        if training is None:
            training = call_context.learning_phase()
            if training is None:
                training = self._call_spec.default_training
        token = call_context.entered(call_context.CallContext(self, training))
        try:
            return compute(self, x, training=training) if passes and training is not None else compute(self, x)
        finally:
            call_context.left(token)

    def _full_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with everything that it may need."""
        own = self.__dict__
        if "_policy" not in own:
            raise RuntimeError(f"In layer {type(self).__name__}, you forgot to call `super().__init__()` as the first "
                               "statement in the `__init__()` method.")
        spec = self._call_spec
        args, kwargs = self._converted(args, kwargs)
        if any_symbolic(args, kwargs):
            with _NO_SCOPE if self.built else unbuilt_if_refused(self):
                return symbolic_call(self, args, kwargs)
        first = spec.first_argument(args, kwargs)
        if self.input_spec is not None:
            assert_input_compatibility(self.input_spec, first, self.name)
        if self.built:
            if "_building_thread" in own:
                shared_by_now(self)
            return self._run(spec, first, args, kwargs)
        with ExitStack() as first_call, self._scoped():
            with making:  # several threads may make the first call
                if self.built:
                    shared_by_now(self)
                else:
                    first_call.enter_context(unbuilt_if_refused(self))
                    self.build(**spec.build_shapes(type(self).build, args, kwargs))
            if self.input_spec is not None:
                assert_input_compatibility(self.input_spec, first, self.name)
            return self._run(spec, first, args, kwargs)

    def _run(self, spec: CallSpec, first: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a built layer, in a context that layers within see."""
        own = self.__dict__
        outer = call_context.current()
        if outer is None:
            self._clear_losses()
        kwargs, training = spec.with_training(args, kwargs, outer)
        masks = None
        if call_context.masks:
            kwargs, masks = spec.with_masks(args, kwargs)
        token = call_context.entered(call_context.CallContext(self if outer is None else outer.layer, training))
        try:
            with self._scoped() if tf.inside_function() else _NO_SCOPE:  # graphs and summaries tell layers apart
                outputs = self._computed(args, kwargs)
        finally:
            call_context.left(token)
        if own["activity_regularizer"] is not None:
            self._regularize(outputs)
        if self.supports_masking:
            self._mask_outputs(first, outputs, masks)
        if type(first) is _Tensor:
            self._learn(spec, args, kwargs)
        return outputs

    def _computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        policy = self.__dict__["_policy"]
        call = self.call if tf.executing_eagerly() else staged(self.call)
        if policy.compute_dtype == policy.variable_dtype:
            return call(*args, **kwargs)
        with computing_in(tf.as_dtype(policy.compute_dtype)):
            return call(*args, **kwargs)

    def _learn(self, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note the shape and dtype of inputs for which the next call may go straight to `call`."""
        own = self.__dict__
        policy = own["_policy"]
        plain = (len(args) == 1 and not kwargs.keys() - {"training"} and own["activity_regularizer"] is None
                 and policy.compute_dtype == policy.variable_dtype and not own["_losses"]
                 and not (self.supports_masking and type(self).compute_mask is not Layer.compute_mask))
        if plain:
            leaf = not self._sublayers()
            call = type(self).call
            compute = functools.partial(_of_instance, own["call"]) if "call" in own else untold(call)
            own["_fast"] = args[0].dims, args[0].dtype, spec.takes_training, leaf, call, compute

    def _converted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arrays as tensors; floats in the dtype of the computation."""
        wanted = tf.as_dtype(self.__dict__["_policy"].compute_dtype)
        cast = wanted if self.autocast and wanted.is_floating else None
        if args:
            args = (_as_input(args[0], cast), *[_mapped(x, cast) for x in args[1:]])
        if kwargs:
            kwargs = {k: _mapped(v, cast) for k, v in kwargs.items()}
        return args, kwargs

    # -- building ---------------------------------------------------------------------------------
    def get_build_config(self) -> dict[str, Any] | None:
        """The shapes for which the layer was built, or None."""
        shapes = self._build_shapes
        if shapes is None:
            return None
        return {"input_shape": next(iter(shapes.values()))} if len(shapes) == 1 else {"shapes_dict": dict(shapes)}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Build for the shapes that `get_build_config` gave."""
        if not config or self.built:
            return
        if "input_shape" in config:
            names = list(inspect.signature(self.build).parameters)
            self.build(**({names[0]: as_shape(config["input_shape"])} if names else {}))
        elif "shapes_dict" in config:
            self.build(**{k: as_shape(v) for k, v in config["shapes_dict"].items()})
        else:
            self.build(**{k: as_shape(v) for k, v in config.items()})

    # -- shapes and masks -------------------------------------------------------------------------
    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shape of the output for the shapes of inputs.

        Args:
            args, kwargs: shapes in the places of the tensors of `call`.
        Returns:
            A shape, a tuple, or a structure of them.
        """
        specs = [tf.nest.map_structure(lambda s: tf.TensorSpec(s, self.compute_dtype), _as_specs(a)) for a in args]
        named = {k.removesuffix("_shape"): tf.nest.map_structure(
            lambda s: tf.TensorSpec(s, self.compute_dtype), _as_specs(v)) for k, v in kwargs.items()}
        return tf.nest.map_structure(lambda s: InputShape(s.shape), traced_spec(self, tuple(specs), named))

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The specs of the outputs for symbolic inputs.

        Args:
            args, kwargs: as for `call`, with KerasTensors or TensorSpecs for tensors.
        Returns:
            TensorSpecs in the structure of the output.
        """
        if type(self).compute_output_shape is Layer.compute_output_shape or any(
                getattr(x, "sparse", False) or getattr(x, "ragged", False) for x in tf.nest.flatten((args, kwargs))):
            return traced_spec(self, args, kwargs)
        shapes = self._call_spec.build_shapes(type(self).compute_output_shape, args, kwargs)
        shape = self.compute_output_shape(**shapes)
        return _specs_of(shape, tf.as_dtype(self.compute_dtype))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: by default that of the inputs.

        Args:
            inputs: what `call` gets first.
            mask: the mask of the inputs, or None.
        """
        return mask

    def _mask_outputs(self, inputs: Any, outputs: Any, masks: Any) -> None:
        """Let the masks of the outputs go with them."""
        if masks is None and type(self).compute_mask is Layer.compute_mask:
            return
        output_masks = self.compute_mask(inputs, masks)
        if output_masks is None:
            return
        flat = tf.nest.flatten(outputs)
        single = len(flat) == 1 and isinstance(output_masks, tf.Tensor)
        given = [output_masks] if single else tf.nest.flatten(output_masks)
        for output, mask in zip(flat, given, strict=False):
            call_context.set_mask(output, mask)

    def _regularize(self, outputs: Any) -> None:
        """Add the losses of the outputs: each divided by the size of the batch."""
        for output in tf.nest.flatten(outputs):
            if isinstance(output, tf.Tensor):
                loss = self.activity_regularizer(output)
                if len(output.dims):
                    loss = loss / tf.cast(tf.shape(output)[0], loss.dtype)
                self.add_loss(loss)

    # -- functional graphs ------------------------------------------------------------------------
    @property
    def input(self) -> Any:
        """The symbolic inputs of the layer's one call in functional graphs.

        Raises:
            AttributeError: there was none, or several.
        """
        return self._only_node("input").input_structure

    @property
    def output(self) -> Any:
        """The symbolic outputs of the layer's one call in functional graphs.

        Raises:
            AttributeError: there was none, or several.
        """
        return self._only_node("output").output_structure

    @property
    def inbound_nodes(self) -> list[Any]:
        """The calls of this layer in functional graphs."""
        return self.__dict__.get("_inbound_nodes", [])

    def _only_node(self, what: str) -> Any:
        nodes = self.inbound_nodes
        if len(nodes) != 1:
            said = "has never been called in a functional graph" if not nodes else f"has {len(nodes)} inbound nodes"
            raise AttributeError(f"The layer {self.name} {said} and thus has no defined {what}.")
        return nodes[0]

    # -- configs ----------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values.

        Raises:
            NotImplementedError: the class has arguments of its own that are not plain values, and no `get_config`.
        """
        own = self.__dict__
        policy = own["_policy"]
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable,
                                  "dtype": dtype_policies.serialize(policy)}
        if own["activity_regularizer"] is not None:
            config["activity_regularizer"] = serialize_keras_object(own["activity_regularizer"])
        if self._describes_itself():
            taken = inspect.signature(type(self).__init__).parameters
            if not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
                config = {k: v for k, v in config.items() if k in taken}
            config.update(self._given_arguments())
        return config

    def _describes_itself(self) -> bool:
        """Whether what the constructor was given is the config: a user's class without `get_config`."""
        return type(self).get_config is Layer.get_config and type(self).__init__ is not Layer.__init__

    def _given_arguments(self) -> dict[str, Any]:
        """What the constructor was given beyond the base's arguments."""
        args, kwargs = self.__dict__["_given"]
        given = inspect.signature(type(self).__init__).bind(self, *args, **kwargs).arguments
        parameters = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        arguments: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.name not in given:
                continue
            value = given[parameter.name]
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments.update({k: v for k, v in value.items() if k not in ("name", "trainable", "dtype")})
            elif parameter.kind is parameter.VAR_POSITIONAL and value:
                raise NotImplementedError(self._no_config())
            elif parameter.name not in ("name", "trainable", "dtype"):
                arguments[parameter.name] = value
        if not all(is_plain(v) for v in arguments.values()):
            raise NotImplementedError(self._no_config())
        return arguments

    def _no_config(self) -> str:
        name = type(self).__name__
        return (f"Object {name} was created by passing non-serializable argument values in `__init__()`, and therefore "
                f"the object must override `get_config()` in order to be serializable. Please implement `get_config()` "
                f"of {name}.")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A layer made from what `get_config` gave.

        Raises:
            TypeError: the class does not take an argument in it.
        """
        config = config_of(config)
        if isinstance(config.get("dtype"), dict):
            config["dtype"] = dtype_policies.deserialize(config["dtype"])
        try:
            return cls(**config)
        except TypeError as e:
            raise TypeError(f"Error when deserializing class '{cls.__name__}' using config={config}.\n\nException "
                            f"encountered: {e}") from e

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.__dict__.get('_name')}, built={self.built}>"


_plain_call = Layer.__call__  # as it stands here, for the errors that leave it


def _of_instance(call: Callable[..., Any], layer: Layer, *args: Any, **kwargs: Any) -> Any:
    """Calls a `call` that is an attribute of the layer and no method: it does not take the layer."""
    return call(*args, **kwargs)


def _building(build: Callable[..., None]) -> Callable[..., None]:
    """The `build` of a class in its scopes, which also notes the shapes and sets `built`."""
    @functools.wraps(build)
    def build_once(self: Layer, *args: Any, **kwargs: Any) -> None:
        own = self.__dict__
        if self._needs_no_build():
            return
        if own.get("_in_build"):  # of a class above
            build(self, *args, **kwargs)
            return
        bound = inspect.signature(build).bind(self, *args, **kwargs)
        shapes = {name: as_shape(shape) if name.endswith("shape") else shape
                  for name, shape in list(bound.arguments.items())[1:]}
        with unbuilt_if_refused(self):
            own["_in_build"] = True
            try:
                with tf.init_scope(), self._scoped():
                    build(self, **shapes)
            finally:
                own["_in_build"] = False
            own["_build_shapes"] = shapes
            own["built"] = True
            start, own["_initial_weights"] = own.get("_initial_weights"), None
            if start is not None:
                self.set_weights(start)
    return told(build_once)


def _of_shapes(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A `compute_output_shape` that gets its shapes as `as_shape` reads them."""
    @functools.wraps(rule)
    def with_shapes(self: Layer, *args: Any, **kwargs: Any) -> Any:
        return rule(self, *[as_shape(a) for a in args],
                    **{k: as_shape(v) if k.endswith("shape") else v for k, v in kwargs.items()})
    return with_shapes


def _legal(name: str) -> str:
    """A layer's name as a name scope may be called."""
    kept = "".join([c if c.isalnum() and c.isascii() or c in "_./-" else "_" for c in name])
    return kept if kept[0].isalnum() or kept[0] == "." else f"x{kept}"


def _input_shape(kwargs: dict[str, Any]) -> InputShape | None:
    """The shape that a constructor was given for a `Sequential`."""
    batch = kwargs.get("batch_input_shape") or kwargs.get("batch_shape")
    if batch is not None:
        return InputShape(batch)
    shape = kwargs.get("input_shape")
    if shape is None and kwargs.get("input_dim") is not None:
        shape = (kwargs["input_dim"],)
    if shape is None:
        return None
    return InputShape((kwargs.get("batch_size"), *((shape,) if isinstance(shape, int) else shape)))


def _known_sizes(shape: Any, name: Any, layer: str) -> tuple[int, ...]:
    given = () if shape is None else (shape,) if isinstance(shape, (int, np.integer)) else shape
    dims = tuple(listed(given, "A shape"))
    if any(d is None for d in dims):
        raise ValueError(f"The shape of weight {name!r} of layer {layer!r} has an unknown size: {dims}. The shape of "
                         "the inputs must be known there.")
    return tuple([int(d) for d in dims])


def _as_input(value: Any, cast: Any) -> Any:
    """A first argument: numbers in lists are one array."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _mapped(np.asarray(value, np.float32 if isinstance(value, float) else np.int32), cast)
    if isinstance(value, list) and value and all(
            isinstance(v, (int, float, bool)) for v in tf.nest.flatten(value)):
        return _mapped(tf.constant(value), cast)
    return _mapped(value, cast)


def _mapped(value: Any, cast: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple, dict):
        return tf.nest.map_structure(lambda v: _leaf(v, cast), value)
    return _leaf(value, cast)


def _leaf(value: Any, cast: Any) -> Any:
    """An array or variable as a tensor, and a float of another dtype in the one asked for; others as they are.

    Whatever has `__array__` counts as an array, such as the columns of a table.
    """
    if isinstance(value, (np.ndarray, np.generic, tf.Variable)) or _is_array_like(value):
        value = tf.convert_to_tensor(value)
    elif not isinstance(value, tf.Tensor):
        if is_composite(value) and cast is not None and getattr(value, "dtype", cast).is_floating:
            return value if value.dtype is cast else tf.cast(value, cast)
        return value if cast is None or not hasattr(value, "_keras_history") else _symbolic_cast(value, cast)
    if cast is not None and value.dtype is not cast and value.dtype.is_floating:
        mask = call_context.get_mask(value)
        value = tf.cast(value, cast)
        call_context.set_mask(value, mask)
    return value


def _is_array_like(value: Any) -> bool:
    return not isinstance(value, tf.Tensor) and hasattr(value, "__array__") and not hasattr(value, "_keras_history")


def _symbolic_cast(value: Any, cast: Any) -> Any:
    return value  # the layer casts when it runs


def _as_specs(value: Any) -> Any:
    """Shapes in structures: a tuple of sizes is a shape."""
    if isinstance(value, dict):
        return {k: _as_specs(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, tf.TensorShape) and any(
            isinstance(v, (list, tuple, dict, tf.TensorShape)) for v in value):
        return [_as_specs(v) for v in value]
    return tf.TensorShape(value)


def _specs_of(shape: Any, dtype: tf.DType) -> Any:
    """Specs for a shape or a structure of shapes."""
    if isinstance(shape, dict):
        return {k: _specs_of(v, dtype) for k, v in shape.items()}
    if isinstance(shape, (list, tuple)) and any(
            isinstance(v, (list, tuple, dict, tf.TensorShape)) for v in shape):
        return [_specs_of(v, dtype) for v in shape]
    return tf.TensorSpec(shape, dtype)


Layer.build = _building(Layer.build)  # type: ignore[method-assign]


def _aggregation(given: Any) -> Any:
    """A `tf.VariableAggregation`, by itself or by its name.

    Raises:
        ValueError: there is none of this name.
    """
    if not isinstance(given, str):
        return given
    names = [member.name.lower() for member in tf.VariableAggregation]
    if given not in names:
        raise ValueError(f"Invalid value for argument `aggregation`. Expected one of {names}; got {given!r}.")
    return tf.VariableAggregation[given.upper()]

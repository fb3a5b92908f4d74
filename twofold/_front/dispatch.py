"""What public functions do with composite values: functions that are registered for their classes.

A public function that is given a composite value in the place of a tensor raises `CompositeOperand` where it reads the
operand, and is answered by what is registered here: for that function (`implements`, for users `dispatch_for_api`), or
for all elementwise functions of one or two operands. Calls with tensors never come here. What there is for ragged and
sparse tensors stands beside their classes; users register what their own classes are to do.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from twofold._front.api import for_the_user, public, stand_in, unguarded
from twofold.ir import nest
from twofold.ir.errors import CompositeOperand, SymbolicOperand
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register

__all__ = ["CompositeTensor", "Holds", "TypeSpec", "dispatch_for_api", "dispatch_for_binary_elementwise_apis",
           "dispatch_for_binary_elementwise_assert_apis", "dispatch_for_unary_elementwise_apis", "implements",
           "register", "unregister_dispatch_for"]

F = TypeVar("F", bound=Callable[..., Any])
Signature = Mapping[Any, Any]  # annotations by the names or numbers of parameters

_of_functions: dict[Any, list[tuple[tuple[Signature, ...], Callable[..., Any]]]] = {}  # by the Python function
_elementwise: dict[int, list[tuple[tuple[Any, ...], Callable[..., Any]]]] = {1: [], 2: []}  # by the count of operands
_assertions: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []
_parameters: dict[Any, inspect.Signature] = {}


# -- which functions are elementwise ------------------------------------------------------------------------------
_UNARY = """
    bitwise.invert cast clip_by_value debugging.check_numerics dtypes.saturate_cast identity image.adjust_brightness
    image.adjust_gamma image.convert_image_dtype image.random_brightness image.stateless_random_brightness
    io.decode_base64 io.decode_compressed io.encode_base64 math.abs math.acos math.acosh math.add_n math.angle math.asin
    math.asinh math.atan math.atanh math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.ceil math.conj
    math.cos math.cosh math.digamma math.erf math.erfc math.erfcinv math.erfinv math.exp math.expm1 math.floor math.imag
    math.is_finite math.is_inf math.is_nan math.lgamma math.log math.log1p math.log_sigmoid math.logical_not math.ndtri
    math.negative math.nextafter math.polyval math.real math.reciprocal math.reciprocal_no_nan math.rint math.round
    math.rsqrt math.sigmoid math.sign math.sin math.sinh math.softplus math.special.bessel_i0 math.special.bessel_i0e
    math.special.bessel_i1 math.special.bessel_i1e math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0
    math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e math.special.bessel_y0 math.special.bessel_y1
    math.special.dawsn math.special.expint math.special.fresnel_cos math.special.fresnel_sin math.special.spence
    math.sqrt math.square math.tan math.tanh nn.dropout nn.elu nn.gelu nn.leaky_relu nn.relu nn.relu6 nn.selu
    nn.sigmoid_cross_entropy_with_logits nn.silu nn.softsign ones_like strings.as_string strings.lower
    strings.regex_full_match strings.regex_replace strings.strip strings.substr strings.to_hash_bucket
    strings.to_hash_bucket_fast strings.to_hash_bucket_strong strings.to_number strings.unicode_script
    strings.unicode_transcode strings.upper strings.length strings.bytes_split zeros_like stop_gradient
"""
_BINARY = """
    bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift dtypes.complex
    math.add math.atan2 math.divide math.divide_no_nan math.equal math.floordiv math.floormod math.greater
    math.greater_equal math.less math.less_equal math.logical_and math.logical_or math.logical_xor math.maximum
    math.minimum math.multiply math.multiply_no_nan math.not_equal math.pow math.squared_difference math.subtract
    math.truediv math.truncatediv math.truncatemod math.xdivy math.xlog1py math.xlogy math.zeta
    nn.sigmoid_cross_entropy_with_logits
"""
_ASSERTIONS = """
    debugging.assert_equal debugging.assert_greater debugging.assert_greater_equal debugging.assert_less
    debugging.assert_less_equal debugging.assert_near debugging.assert_none_equal
"""
_named: dict[str, dict[Any, Any]] = {}


def _functions(names: str) -> dict[Any, Any]:
    """The public functions of these names, by the Python functions behind them; names that are not there are left out.
    """
    if names not in _named:
        import twofold as tf
        functions: dict[Any, Any] = {}
        for name in names.split():
            owner: Any = tf
            for part in name.split("."):
                owner = getattr(owner, part, None)
            if owner is not None:
                functions[unguarded(owner)] = owner
        _named[names] = functions
    return _named[names]


class Holds:
    """A type for `implements`: values of a class, and structures that hold one.

    Args:
        kind: the class, or a tuple of classes.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def fits(self, value: Any) -> bool:
        """Whether a value is one, or holds one."""
        return any(isinstance(leaf, self.kind) for leaf in nest.flatten(value, expand_composites=False))


# -- registering --------------------------------------------------------------------------------------------------
def implements(api: Any, *signatures: Signature) -> Callable[[F], F]:
    """Has the decorated function answer calls of a public one whose arguments are of these types.

    Args:
        api: the public function.
        signatures: types by the names of parameters; one of the signatures must fit.
    """
    def register(function: F) -> F:
        _of_functions.setdefault(unguarded(api), []).append((signatures, function))
        return function
    return register


def _api_parameters(api: Any) -> inspect.Signature:
    function = unguarded(api)
    if function not in _parameters:
        _parameters[function] = inspect.signature(function)
    return _parameters[function]


@public
def dispatch_for_api(api: Any, *signatures: Any) -> Callable[[F], F]:
    """A decorator for a function that stands in for a public one where its arguments are of certain types.

    Args:
        api: a public function, such as `tf.concat`. The decorated function has the same parameters.
        signatures: dicts from the names or numbers of parameters to types; calls that fit one of them are answered.
            Without one, the annotations of the decorated function count.
    Returns:
        The decorator, which gives the function back.
    Raises:
        ValueError: `api` is no public function, a signature names a parameter that it does not have or is empty, or the
            decorated function has other parameters.

    >>> import twofold as tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> @tf.experimental.dispatch_for_api(tf.reduce_sum)
    ... def masked_sum(input_tensor: Masked, axis=None, keepdims=False, name=None):
    ...     return tf.reduce_sum(tf.where(input_tensor.mask, input_tensor.values, 0), axis, keepdims)
    >>> int(tf.reduce_sum(Masked([1, 2, 3], [True, False, True])))
    4
    """
    if not callable(api) or isinstance(api, type):
        raise ValueError(f"{api!r} does not support dispatch.")
    parameters = list(_api_parameters(api).parameters)
    checked = [_read_signature(api, parameters, s) for s in signatures]

    def register(function: F) -> F:
        own = list(inspect.signature(function).parameters)
        if own != parameters:
            raise ValueError(f"Dispatch function's signature {inspect.signature(function)} does not match API's "
                             f"signature {_api_parameters(api)}.")
        given = checked or [_annotations(function)]
        for_the_user(function)
        return implements(api, *given)(function)
    return register


def _read_signature(api: Any, parameters: list[str], signature: Any) -> Signature:
    if not isinstance(signature, Mapping) or not signature:
        raise ValueError(f"signatures must be dictionaries mapping parameter names to type annotations; got "
                         f"{signature!r}.")
    read = {}
    for key, annotation in signature.items():
        name = parameters[key] if isinstance(key, int) and 0 <= key < len(parameters) else key
        if name not in parameters:
            raise ValueError(f"signature includes annotation for unknown parameter {key!r} of "
                             f"{getattr(api, '__name__', api)}.")
        read[name] = annotation
    return read


def _annotations(function: Callable[..., Any]) -> Signature:
    try:
        hints = typing.get_type_hints(function)
    except NameError:
        hints = dict(getattr(function, "__annotations__", {}))
    hints = {name: hint for name, hint in hints.items() if name != "return" and hint is not Any}
    if not hints:
        raise ValueError("must have at least one type annotation")
    return hints


@public
def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable[[F], F]:
    """A decorator for a function `f(api, x)` that stands in for all elementwise functions of one operand.

    Args:
        x_type: the class of operands that it answers for.
    Returns:
        The decorator, which gives the function back. `api` is a function of one argument.

    >>> import twofold as tf
    >>> class Labelled(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     label: str
    >>> @tf.experimental.dispatch_for_unary_elementwise_apis(Labelled)
    ... def labelled_unary(api, x):
    ...     return Labelled(api(x.values), x.label)
    >>> tf.abs(Labelled([-1, 2], "a")).values.numpy().tolist()
    [1, 2]
    """
    def register(function: F) -> F:
        _register_elementwise(1, (x_type,), function)
        return function
    return register


@public
def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable[[F], F]:
    """A decorator for a function `f(api, x, y)` that stands in for all elementwise functions of two operands.

    Args:
        x_type, y_type: the types of operands that it answers for.
    Returns:
        The decorator, which gives the function back. `api` is a function of two arguments.
    """
    def register(function: F) -> F:
        _register_elementwise(2, (x_type, y_type), function)
        return function
    return register


@public
def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable[[F], F]:
    """A decorator for a function `f(api, x, y)` that stands in for the assertions that compare two operands.

    Args:
        x_type, y_type: the types of operands that it answers for.
    Returns:
        The decorator, which gives the function back. `api` is a function of two arguments.
    """
    def register(function: F) -> F:
        for_the_user(function)
        _assertions.append(((x_type, y_type), function))
        return function
    return register


def _register_elementwise(count: int, types: tuple[Any, ...], function: Callable[..., Any]) -> None:
    for known, _ in _elementwise[count]:
        if known == types:
            raise ValueError(f"An elementwise dispatcher ({function!r}) has already been registered for {types}.")
    for_the_user(function)
    _elementwise[count].append((types, function))


@public
def unregister_dispatch_for(dispatch_target: Any) -> None:
    """Take back a registration of any of the decorators here.

    Args:
        dispatch_target: the function that was decorated.
    Raises:
        ValueError: it was not decorated.
    """
    tables: list[list[Any]] = [*_of_functions.values(), *_elementwise.values(), _assertions]
    before = sum(map(len, tables))
    for table in tables:
        table[:] = [entry for entry in table if entry[1] is not dispatch_target]
    if sum(map(len, tables)) == before:
        raise ValueError(f"Function {dispatch_target} was not registered using a `@dispatch_for` decorator.")


# -- answering ----------------------------------------------------------------------------------------------------
def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value is of a type: a class, a union, a list or a tuple of types, or a tensor."""
    if annotation is Any or annotation is inspect.Parameter.empty:
        return True
    if isinstance(annotation, Holds):
        return annotation.fits(value)
    origin, within = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, typing.get_origin(list[int])):
        return isinstance(value, (list, tuple)) and any(_fits(v, within[0]) for v in value) and all(
            _fits(v, within[0]) for v in value)
    if origin is tuple:
        if len(within) == 2 and within[1] is Ellipsis:
            return isinstance(value, tuple) and all(_fits(v, within[0]) for v in value)
        return isinstance(value, tuple) and len(value) == len(within) and all(map(_fits, value, within))
    if within and origin is not None:
        return any(_fits(value, option) for option in within)
    if isinstance(annotation, tuple):
        return any(_fits(value, option) for option in annotation)
    if annotation is None or annotation is type(None):
        return value is None
    return isinstance(annotation, type) and isinstance(value, annotation)


def _dispatched(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                error: SymbolicOperand) -> Any:
    """The result of a public function for composite operands.

    Raises:
        CompositeOperand: nothing is registered for them.
    """
    registered = _of_functions.get(function)
    if registered:
        bound = _api_parameters(function).bind(*args, **kwargs).arguments
        for signatures, target in reversed(registered):
            if any(all(name in bound and _fits(bound[name], kind) for name, kind in s.items()) for s in signatures):
                return target(*args, **kwargs)
    for count, names, table in ((2, _BINARY, _elementwise[2]), (1, _UNARY, _elementwise[1]),
                                (2, _ASSERTIONS, _assertions)):
        api = _functions(names).get(function) if table else None
        if api is not None:
            answered, result = _by_operands(api, count, table, args, kwargs)
            if answered:
                return result
    raise error


def _by_operands(public_function: Callable[..., Any], count: int,
                 table: list[tuple[tuple[Any, ...], Callable[..., Any]]], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> tuple[bool, Any]:
    """Whether something is registered for the first operands of a call, and its result."""
    names = list(_api_parameters(public_function).parameters)[:count]
    bound = _api_parameters(public_function).bind(*args, **kwargs).arguments
    if any(name not in bound for name in names):
        return False, None
    operands = [bound[name] for name in names]
    rest = {name: value for name, value in bound.items() if name not in names}

    def api(*inner: Any) -> Any:
        return public_function(*inner, **rest)
    api.__name__ = public_function.__name__
    for types, target in reversed(table):
        if count == 1 and isinstance(operands[0], (list, tuple)) and operands[0]:  # `add_n` takes a list
            fit = all(_fits(x, types[0]) for x in operands[0])
        else:
            fit = all(map(_fits, operands, types))
        if fit:
            return True, target(api, *operands)
    return False, None


stand_in(_dispatched, CompositeOperand)

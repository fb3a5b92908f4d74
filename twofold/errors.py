"""`tf.errors`: what ops raise; see `ir/errors.py` for the classes."""

from twofold._front.namespace import publish
from twofold.ir.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    DTypeError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    ShapeError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from twofold.tracer.symbolic import SymbolicValueError

# the codes that errors have as `error_code`
OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = range(6)
ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE = range(6, 12)
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(12, 17)

#: raised where Python asks for the value of a traced tensor, as `if` does
OperatorNotAllowedInGraphError = SymbolicValueError

__all__ = [
    "ABORTED", "ALREADY_EXISTS", "AbortedError", "AlreadyExistsError", "CANCELLED", "CancelledError", "DATA_LOSS",
    "DEADLINE_EXCEEDED", "DTypeError", "DataLossError", "DeadlineExceededError", "FAILED_PRECONDITION",
    "FailedPreconditionError", "INTERNAL", "INVALID_ARGUMENT", "InternalError", "InvalidArgumentError", "NOT_FOUND",
    "NotFoundError", "OK", "OUT_OF_RANGE", "OpError", "OperatorNotAllowedInGraphError", "OutOfRangeError",
    "PERMISSION_DENIED", "PermissionDeniedError", "RESOURCE_EXHAUSTED", "ResourceExhaustedError", "ShapeError",
    "UNAUTHENTICATED", "UNAVAILABLE", "UNIMPLEMENTED", "UNKNOWN", "UnauthenticatedError", "UnavailableError",
    "UnimplementedError", "UnknownError",
]

publish(__name__)

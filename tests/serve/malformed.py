"""Bodies that no server may take, made by the number of a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

__all__ = ["bodies"]

_GOOD = {"predict": {"instances": [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]},
         "classify": {"examples": [{"x": [1.0, 2.0, 3.0, 4.0]}]},
         "regress": {"examples": [{"x": [1.0, 2.0, 3.0, 4.0]}]}}
_WRONG = [None, True, "text", {}, [], {"b64": "AA=="}, {"b64": 3}, 10**400, [[[1.0]]], [1.0, "2", 3.0, 4.0],
          [1.0, [2.0], 3.0, 4.0], [1.0, None, 3.0, 4.0], [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0, 4.0], [1.0]],
          {"x": {"x": 1}}, [True, 2.0, 3.0, 4.0], [1e300, 2.0, 3.0, 4.0]]
_RAW = [b"", b"{", b"\xff\xfe", b"null", b"[]", b"3", b'"x"', b"{}", b'{"instances": [[NaN, 1, 2, 3]]}',
        b'{"instances": [[1e999, 1, 2, 3]]}', b'{"instances": [[Infinity, 1, 2, 3]]}',
        b'{"instances": ' + b"[" * 50_000,
        b'{"instances": ' + b"[" * 100 + b"]" * 100 + b"}", b'{"instances": [[1, 2, 3, ' + b"9" * 5000 + b"]]}",
        b'{"a":' * 20_000, b'{"instances": [[1, 2, 3, 4],]}', b"{'instances': [[1, 2, 3, 4]]}",
        b'{"instances": [[01, 2, 3, 4]]}', b'{"instances": [[1, 2, 3, 4]]} x', b'{"instances": [["\\ud800", 2, 3, 4]]}']


def bodies(seed: int, count: int) -> Iterator[tuple[bytes, str]]:
    """Bodies for a model `net` with an input x of float32[?, 4] as its default, and where to send each."""
    rng = random.Random(seed)
    for number in range(count):
        verb = "predict" if number < len(_RAW) else rng.choice(list(_GOOD))
        body = _RAW[number] if number < len(_RAW) else _broken(rng, verb)
        yield body, f"/v1/models/net:{verb}"


def _broken(rng: random.Random, verb: str) -> bytes:
    good = json.dumps(_GOOD[verb])
    way = rng.randrange(5)
    if way == 0:  # ends early
        return good[:rng.randrange(len(good) - 1)].encode()
    if way == 1:  # a byte that JSON does not have there
        at = rng.randrange(1, len(good))
        return good[:at].encode() + bytes([rng.choice(b"\x00\x01\x80\xff")]) + good[at:].encode()
    document = json.loads(good)
    key = next(iter(document))
    if way == 2:  # a value of another kind
        document[key] = rng.choice([*_WRONG, [rng.choice(_WRONG)], [document[key][0], rng.choice(_WRONG)]])
    elif way == 3:  # a signature or a key that is not there
        document[rng.choice(["signature_name", "extra"])] = rng.choice(["unknown", 3, None, [], {}, "x" * 1000])
    else:  # the formats mixed up, or no input of this name
        other = rng.choice(["inputs", "examples" if verb == "predict" else "instances"])
        document = rng.choice([{**document, other: document[key]}, {key: [{"y": [1.0, 2.0, 3.0, 4.0]}]},
                               {"examples" if verb == "predict" else "inputs": document[key]}])
    return json.dumps(document).encode()

"""The module of JavaScript that loads a WebAssembly library, with its types for TypeScript.

Programs give typed arrays with shapes and get the like; structs, memory and statuses are the module's affair. It takes
the bytes of the library as they are, so it runs in browsers and in Node.js alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from twofold.codegen.native_entry import KINDS, Member, shape_text
from twofold.ir.dtypes import DType

from .interface import ABI, Interface, Signature

__all__ = ["loader_files"]

_ARRAYS = {"float32": "Float32Array", "float64": "Float64Array", "bool": "Uint8Array", "float16": "Uint16Array",
           "bfloat16": "Uint16Array", "complex64": "Float32Array", "complex128": "Float64Array",
           "int64": "BigInt64Array", "uint64": "BigUint64Array"}


def loader_files(library: Interface, file: str) -> dict[str, str]:
    """The module and its types by the names of their files; `file` is the library's."""
    return {f"{library.prefix}.mjs": _module(library, file), f"{library.prefix}.d.mts": _types(library)}


def _array(dtype: DType) -> str:
    return _ARRAYS.get(dtype.name) or f"{dtype.name.capitalize()}Array"


def _short(library: Interface, s: Signature) -> str:
    return s.name.removeprefix(f"{library.prefix}_")


def _layout(members: Sequence[Member]) -> tuple[list[dict[str, Any]], int]:
    """Where tensors lie in a struct of 32-bit addresses, and its bytes."""
    rows, at = [], 0
    for member in members:
        align = 8 if member.dims else 4
        at = -(-at // align) * align
        row = {"name": member.name, "array": _array(member.dtype), "rank": len(member.dims), "at": at,
               "each": 2 if member.dtype.is_complex else 1, "dtype": member.dtype.name,
               "shape": [d if isinstance(d, int) else str(d) for d in member.dims]}
        rows.append(row)
        at += 8 + 8 * len(member.dims) if member.dims else 4
    return rows, -(-max(at, 1) // 8) * 8


def _described(library: Interface) -> dict[str, Any]:
    functions = {}
    for s in library.signatures:
        (inputs, input_bytes), (outputs, output_bytes) = _layout(s.inputs), _layout(s.outputs)
        functions[_short(library, s)] = {
            "symbol": s.name, "title": s.title, "inputs": inputs, "inputBytes": input_bytes, "outputs": outputs,
            "outputBytes": output_bytes, "state": s.state, "weights": s.weights, "workspace": s.takes_workspace}
    state = [{"name": m.name, "array": _array(m.dtype), "dtype": m.dtype.name, "shape": list(m.dims), "at": 4 * n,
              "each": 2 if m.dtype.is_complex else 1} for n, m in enumerate(library.state)]
    return {"prefix": library.prefix, "abi": ABI, "interface": str(library.fingerprint), "functions": functions,
            "state": state, "stateBytes": library.state_bytes, "weightsBytes": library.weights_bytes,
            "kinds": {str(n): name for name, n in KINDS.items()}}


def _module(library: Interface, file: str) -> str:
    described = json.dumps(_described(library), indent=1).replace("<", "\\u003c")  # it may stand in a page
    return f"// Loads {file}. Made by twofold; do not edit. {library.prefix}.d.mts says what there is.\n" \
           f"const library = {described};\n{_CODE}"


_CODE = r"""
const count = (shape) => shape.reduce((a, b) => a * b, 1);

export class NativeError extends Error {
  constructor(status, text) {
    super(text);
    this.name = "NativeError";
    this.status = status;
    this.kind = library.kinds[status & 0xff] ?? "unknown";
  }
}

class Memory {
  constructor(exports) {
    this.memory = exports.memory;
    this.top = exports.__heap_base.value;
  }

  /** The address of so many bytes, at a multiple of 64. */
  take(bytes) {
    const at = Math.ceil(this.top / 64) * 64;
    this.top = at + bytes;
    const missing = this.top - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / 65536));
    return at;
  }

  words() {
    return new DataView(this.memory.buffer);
  }

  text(at) {
    const bytes = new Uint8Array(this.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
}

class State {
  #memory;
  constructor(memory, at) {
    this.#memory = memory;
    this.at = at;
  }

  /** The values of the variables, as they are now. */
  values() {
    const found = {}, words = this.#memory.words();
    for (const { name, array, shape, at, each } of library.state) {
      const view = new globalThis[array](words.buffer, words.getUint32(this.at + at, true), count(shape) * each);
      found[name] = { data: view.slice(), shape };
    }
    return found;
  }
}

function call(exports, memory, weights, fn, inputs, state) {
  const top = memory.top;
  try {
    return run(exports, memory, weights, fn, inputs ?? {}, state);
  } finally {
    memory.top = top;
  }
}

function check(exports, memory, status) {
  if (status !== 0) throw new NativeError(status, memory.text(exports[`${library.prefix}_strerror`](status)));
}

function run(exports, memory, weights, fn, inputs, state) {
  const given = memory.take(fn.inputBytes), made = memory.take(fn.outputBytes), need = memory.take(8);
  new Uint8Array(memory.memory.buffer, made, fn.outputBytes).fill(0);
  for (const { name, array, rank, at, each } of fn.inputs) {
    let value = inputs[name];
    if (value === undefined) throw new TypeError(`${fn.symbol}: input ${name} is missing`);
    if (value instanceof globalThis[array]) value = { data: value, shape: [value.length / each] };
    const { data, shape } = value;
    if (!(data instanceof globalThis[array])) throw new TypeError(`${fn.symbol}: the data of ${name} must be ${array}`);
    if (shape.length !== rank) throw new TypeError(`${fn.symbol}: ${name} must have ${rank} dimensions`);
    if (data.length !== count(shape) * each) {
      throw new TypeError(`${fn.symbol}: ${name} has ${data.length} elements; its shape is [${shape}]`);
    }
    const place = memory.take(data.byteLength || 1);
    new globalThis[array](memory.memory.buffer, place, data.length).set(data);
    const words = memory.words();
    words.setUint32(given + at, place, true);
    shape.forEach((size, axis) => words.setBigInt64(given + at + 8 + 8 * axis, BigInt(size), true));
  }
  const structs = [...(fn.inputs.length ? [given] : []), ...(fn.outputs.length ? [made] : [])];
  check(exports, memory, exports[`${fn.symbol}_sizes`](...structs, need));
  const results = [];
  for (const { name, array, rank, at, each } of fn.outputs) {
    const words = memory.words(), shape = [];
    for (let axis = 0; axis < rank; axis++) shape.push(Number(words.getBigInt64(made + at + 8 + 8 * axis, true)));
    const length = count(shape) * each, bytes = length * globalThis[array].BYTES_PER_ELEMENT;
    const place = memory.take(bytes || 1);
    memory.words().setUint32(made + at, place, true);
    results.push([name, array, place, length, shape]);
  }
  const bytes = memory.words().getBigInt64(need, true);
  const more = [];
  if (fn.state) {
    if (!(state instanceof State)) throw new TypeError(`${fn.symbol}: give a state, which newState() makes`);
    more.push(state.at);
  }
  if (fn.weights) more.push(weights);
  if (fn.workspace) more.push(memory.take(Number(bytes) || 1), bytes);
  check(exports, memory, exports[fn.symbol](...structs, ...more));
  return Object.fromEntries(results.map(([name, array, place, length, shape]) => [
    name, { data: new globalThis[array](memory.memory.buffer, place, length).slice(), shape }]));
}

/** Loads the library from its bytes, a Response or a WebAssembly.Module. */
export async function load(source, weightsBytes) {
  let module = source;
  if (typeof Response !== "undefined" && source instanceof Response) module = await source.arrayBuffer();
  if (!(module instanceof WebAssembly.Module)) module = await WebAssembly.compile(module);
  const { exports } = await WebAssembly.instantiate(module, {});
  const prefix = library.prefix;
  const told = [exports[`${prefix}_abi`](), exports[`${prefix}_interface`]()].map(String);
  if (told[0] !== String(library.abi) || told[1] !== library.interface) {
    throw new Error(`${prefix}: the library and its loader do not fit together`);
  }
  const memory = new Memory(exports);
  let weights = 0;
  if (library.weightsBytes) {
    if (!(weightsBytes instanceof Uint8Array)) throw new TypeError(`${prefix}: give the bytes of the weights`);
    weights = memory.take(weightsBytes.length);
    new Uint8Array(memory.memory.buffer, weights).set(weightsBytes);
    check(exports, memory, exports[`${prefix}_weights_check`](weights, BigInt(weightsBytes.length)));
  }
  const found = {};
  for (const [name, fn] of Object.entries(library.functions)) {
    found[name] = (inputs, state) => call(exports, memory, weights, fn, inputs, state);
  }
  if (library.state.length) {
    found.newState = () => {
      const at = memory.take(4 * library.state.length), place = memory.take(library.stateBytes);
      const given = library.weightsBytes ? [weights] : [];
      check(exports, memory, exports[`${prefix}_state_init`](at, ...given, place, BigInt(library.stateBytes)));
      return new State(memory, at);
    };
  }
  return found;
}
"""


def _types(library: Interface) -> str:
    return "\n".join(_type_lines(library)) + "\n"


def _type_lines(library: Interface) -> Iterator[str]:
    yield "// Made by twofold; do not edit."
    yield "export interface Tensor<A> { data: A; shape: number[]; }"
    yield "/** What a call says that failed; `kind` is one of " + ", ".join(KINDS) + ". */"
    yield "export class NativeError extends Error { status: number; kind: string; }"
    if library.state:
        yield "/** Variables, which functions read and assign. */"
        yield "export class State {"
        yield from _members("  values(): {", library.state, "Tensor<{}>", "  };")
        yield "}"
    yield "export interface Library {"
    for s in library.signatures:
        state = ", state: State" if s.state else ""
        yield f"  /** {s.title} */"
        yield from _members(f"  {_short(library, s)}(inputs: {{", s.inputs, "Tensor<{}> | {}", f"  }}{state}): {{",
                            "Tensor<{}>")
        yield from _members("", s.outputs, "Tensor<{}>", "  };")
    if library.state:
        yield "  newState(): State;"
    yield "}"
    weights = ", weights: Uint8Array" if library.weights_bytes else ""
    yield f"export function load(source: BufferSource | Response | WebAssembly.Module{weights}): Promise<Library>;"


def _members(before: str, members: Sequence[Member], form: str, after: str, plain: str = "") -> Iterator[str]:
    if before:
        yield before
    for m in members:
        kind = (form if len(m.dims) == 1 or not plain else plain).replace("{}", _array(m.dtype))
        yield f"    {m.name}: {kind};  // {m.dtype.name} {shape_text(m.dims)}"
    yield after

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
  constructor(memory, top) {
    this.memory = memory;
    this.top = top;
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

function call({ exports, memory, weights, pool }, fn, inputs, state) {
  const top = memory.top;
  try {
    return run(exports, memory, weights, fn, inputs ?? {}, state);
  } catch (error) {
    throw pool.after(error, fn);
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
export async function load(source, ...more) {
  const weightsBytes = library.weightsBytes ? more.shift() : undefined, prefix = library.prefix;
  const { threads: asked } = more[0] ?? {};
  if (asked !== undefined && !(Number.isInteger(asked) && asked > 0)) {
    throw new TypeError(`${prefix}: threads must be an integer from 1 on; got ${asked}`);
  }
  if (typeof Response !== "undefined" && source instanceof Response) source = await source.arrayBuffer();
  const { exports, memory, begin } = await instance(source, asked);
  const told = [exports[`${prefix}_abi`](), exports[`${prefix}_interface`]()].map(String);
  if (told[0] !== String(library.abi) || told[1] !== library.interface) {
    throw new Error(`${prefix}: the library and its loader do not fit together`);
  }
  let weights = 0;
  if (library.weightsBytes) {
    if (!(weightsBytes instanceof Uint8Array)) throw new TypeError(`${prefix}: give the bytes of the weights`);
    weights = memory.take(weightsBytes.length);
    new Uint8Array(memory.memory.buffer, weights).set(weightsBytes);
    check(exports, memory, exports[`${prefix}_weights_check`](weights, BigInt(weightsBytes.length)));
  }
  const pool = await begin(), parts = { exports, memory, weights, pool };
  const found = {
    get threads() { return pool.threads; },
    close() { pool.close(); },
  };
  for (const [name, fn] of Object.entries(library.functions)) {
    found[name] = (inputs, state) => call(parts, fn, inputs, state);
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

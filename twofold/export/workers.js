// -- several threads --------------------------------------------------------------------------------
const STACK = 1 << 20, PATIENCE = 10000;  // bytes for a worker; milliseconds in which it must have begun
const inNode = globalThis.process?.versions?.node !== undefined;

/** What a worker runs, whose text is all that it has: it takes part in calls until it is to end. */
function work({ module, memory, stack }, tell) {
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  exports.__stack_pointer.value = stack;
  tell("ready");
  try {
    exports.__work();
  } catch (error) {
    exports.__lost();
    throw error;
  }
}

/** The threads of calls: the caller's, and workers with instances of their own in the same memory. */
class Pool {
  #exports;
  #stack;
  #workers = [];

  constructor(exports) {
    this.#exports = exports;
    this.#stack = exports.__stack_pointer.value;
  }

  get threads() {
    return 1 + this.#workers.length;
  }

  /** Begins workers and waits for them. Those that do not begin are left out. */
  async begin(module, memory, count) {
    let make;
    try {
      make = await maker();
    } catch {
      return;
    }
    await Promise.allSettled(Array.from({ length: count }, async () => {
      const worker = make({ module, memory: memory.memory, stack: memory.take(STACK) + STACK });
      if (await begins(worker)) this.#workers.push(worker);
      else worker.terminate();
    }));
    for (const worker of this.#workers) worker.unref?.();  // a program of Node.js ends without them
    this.#exports.__threads(this.threads, maySleep(memory.memory) ? 1 : 0);
  }

  /** Ends the workers; calls have one thread from here on. Whether a worker had failed. */
  close() {
    const lost = this.#exports.__threads(1, 0) !== 0;
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
    return lost;
  }

  /** The error that a call has ended with. After a trap workers might be at what the call has left, so they end. */
  after(error, fn) {
    if (!(error instanceof WebAssembly.RuntimeError) || this.threads === 1) return error;
    this.#exports.__stack_pointer.value = this.#stack;
    return this.close() ? new Error(`${fn.symbol}: a worker failed`) : error;
  }
}

/** Whether this thread may sleep: that of a page may not. */
function maySleep(memory) {
  const words = new Int32Array(memory.buffer);
  try {
    return Boolean(Atomics.wait(words, 0, words[0], 0));  // for no time at all
  } catch {
    return false;
  }
}

/** The function that makes a worker from what it is given. */
async function maker() {
  if (inNode) {
    const { Worker } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:worker_threads");
    const text = `const { parentPort, workerData } = require("node:worker_threads");
      (${work})(workerData, (word) => parentPort.postMessage(word));`;
    return (workerData) => new Worker(text, { eval: true, workerData });
  }
  const text = `onmessage = ({ data }) => (${work})(data, (word) => postMessage(word));`;
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return (data) => {
    const worker = new Worker(address, { name: library.prefix });
    worker.postMessage(data);
    return worker;
  };
}

/** Whether a worker begins. */
async function begins(worker) {
  const on = (event, then) => (inNode ? worker.on(event, then) : worker.addEventListener(event, then));
  let waiting;
  const found = await new Promise((done) => {
    on("message", () => done(true));
    on("error", () => done(false));
    waiting = setTimeout(() => done(false), PATIENCE);
  });
  clearTimeout(waiting);
  return found;
}

/** How many threads calls may have here. Node.js shares memory with workers, and a page that is isolated. */
async function threadsHere(asked) {
  let cores = 1;
  if (inNode) {
    cores = (await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:os")).availableParallelism();
  } else if (globalThis.crossOriginIsolated && globalThis.Worker) {
    cores = navigator.hardwareConcurrency;
  } else {
    return 1;
  }
  return Math.min(library.threads, asked ?? cores);
}

/** Memory for the library; where its most cannot be set apart, with a bound that can. */
function memoryOf(shared) {
  for (let maximum = 65536; ; maximum /= 2) {
    try {
      return new WebAssembly.Memory({ initial: library.limits.pages, maximum, shared });
    } catch (error) {
      if (maximum / 2 < library.limits.pages) throw error;
    }
  }
}

/** The library with memory that is shared. */
async function sharing(source) {
  const bytes = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  const changed = bytes.slice(), given = memoryOf(true), { at } = library.limits;
  if (changed[at] !== 1) throw new Error(`${library.prefix}: the library and its loader do not fit together`);
  changed[at] = 3;
  return [await WebAssembly.compile(changed), given];
}

/** The library with its memory, and what begins the threads of its calls. */
async function instance(source, asked) {
  const isModule = source instanceof WebAssembly.Module;  // its memory is one thread's
  let threads = isModule ? 1 : await threadsHere(asked), module = source, given = null;
  if (threads > 1) {
    try {
      [module, given] = await sharing(source);
    } catch {
      threads = 1;  // what is wrong with the source itself is told below
    }
  }
  if (given === null) {
    if (!isModule) module = await WebAssembly.compile(source);
    given = memoryOf(false);
  }
  const { exports } = await WebAssembly.instantiate(module, { env: { memory: given } });
  const memory = new Memory(given, exports.__heap_base.value), pool = new Pool(exports);
  return { exports, memory, async begin() {
    if (threads > 1) await pool.begin(module, memory, threads - 1);
    return pool;
  } };
}

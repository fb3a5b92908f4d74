// -- one thread -------------------------------------------------------------------------------------
const alone = { threads: 1, close() {}, after: (error) => error };

/** The library with its memory, and what begins the threads of its calls. */
async function instance(source) {
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
  const { exports } = await WebAssembly.instantiate(module, {});
  return { exports, memory: new Memory(exports.memory, exports.__heap_base.value), begin: () => alone };
}

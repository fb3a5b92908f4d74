"""The fake driver's functions on modules, kernels and graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass

from gpu.cuda_names import ERRORS, CudaError, KernelNodeParams, device_attributes, put
from gpu.cuda_streams import Streams
from gpu.cuda_work import Graph, GraphExec, Launch, Node, Stream, in_some_order
from gpu.ptx_machine import Loaded, PtxError, decode, fits, load
from gpu.ptx_text import parse

__all__ = ["Modules"]

_MAGIC = b"\x7fFAKE"  # begins what stands for machine code; the architecture and the PTX follow
_STATIC = 49152  # bytes of shared memory of a block that need no asking
_PTX_OF_DRIVER = (8, 4)


@dataclass(eq=False)
class Function:
    """A kernel of a module."""

    module: Loaded
    name: str
    device: int
    dynamic: int = 0  # bytes of shared memory that were asked for


@dataclass(eq=False)
class Link:
    """Texts that become an image."""

    texts: list[str]
    log: tuple[int, int]
    image: ctypes.Array | None = None


class Modules(Streams):
    """Code, and where it runs."""

    # -- modules ----------------------------------------------------------------------------------
    def _checked(self, text: str, log: tuple[int, int] = (0, 0)) -> None:
        """Refuses PTX that the device's compiler would."""
        try:
            module = parse(text)
        except PtxError as error:
            _tell(log, str(error))
            raise self.refuse(218, str(error)) from None
        if module.version > _PTX_OF_DRIVER:
            raise self.refuse(222, f"PTX of version {module.version}, where the driver knows {_PTX_OF_DRIVER}")
        digits = "".join(c for c in module.target if c.isdigit())
        exactly = module.target.endswith(("a", "f"))
        needed = (int(digits[:-1]), int(digits[-1]))
        if needed > self.architecture or (exactly and needed != self.architecture):
            _tell(log, f"PTX for {module.target}")
            raise self.refuse(218 if not exactly else 209, f"PTX for {module.target} on {self.architecture}")

    def _text_of(self, image: int) -> str:
        """The PTX of what a caller loads: text, or what linking gave."""
        if not image:
            raise CudaError(1)
        data = ctypes.string_at(image)
        if data.startswith(_MAGIC):
            words, text = data[len(_MAGIC):].decode().split("\n", 1)
            major, minor = (int(n) for n in words.split()[0].split("."))
            if major != self.architecture[0] or minor > self.architecture[1]:
                raise self.refuse(209, f"an image for {major}.{minor} on {self.architecture}")
            if len(text) != int(words.split()[1]):
                raise self.refuse(200, "an image is cut off")
            return text
        if not data.lstrip().startswith((b"//", b".version")):
            raise self.refuse(200, f"no image: {data[:40]!r}")
        return data.decode()

    def cuModuleLoadData(self, out: int, image: int) -> None:
        self._load(out, image, (0, 0))

    def cuModuleLoadDataEx(self, out: int, image: int, count: int, options: int, values: int) -> None:
        self._load(out, image, _log(count, options, values))

    def _load(self, out: int, image: int, log: tuple[int, int]) -> None:
        context = self.context()
        text = self._text_of(image)
        self._checked(text, log)
        self.texts.add(text)
        self.counts["modules"] += 1
        put(out, c_void_p, self.new(load(text, self.memory, context.device)))

    def cuModuleUnload(self, handle: int) -> None:
        self.context()
        module = self.drop(handle, Loaded)
        for number, thing in list(self.handles.items()):
            if isinstance(thing, Function) and thing.module is module:
                del self.handles[number]
        for address in module.symbols.values():
            self.memory.free(address)

    def cuModuleGetFunction(self, out: int, handle: int, name: bytes) -> None:
        context, module = self.context(), self.get(handle, Loaded)
        try:
            module.program(name.decode())
        except KeyError:
            raise CudaError(500) from None
        except PtxError as error:
            raise self.refuse(218, str(error)) from None
        put(out, c_void_p, self.new(Function(module, name.decode(), context.device)))

    def cuModuleGetGlobal_v2(self, address: int | None, size: int | None, handle: int, name: bytes) -> None:
        self.context()
        module = self.get(handle, Loaded)
        if name.decode() not in module.symbols:
            raise CudaError(500)
        if address:
            put(address, c_uint64, module.symbols[name.decode()])
        if size:
            put(size, c_size_t, module.module.variables[name.decode()].size)

    # -- linking ----------------------------------------------------------------------------------
    def cuLinkCreate_v2(self, count: int, options: int, values: int, out: int) -> None:
        self.context()
        put(out, c_void_p, self.new(Link([], _log(count, options, values))))

    def cuLinkAddData_v2(self, handle: int, kind: int, data: int, size: int, name: bytes | None, count: int,
                         options: int, values: int) -> None:
        self.context()
        link = self.get(handle, Link)
        if kind != 1:
            raise self.refuse(1, f"input of kind {kind} is not part of the fake driver")
        text = ctypes.string_at(data, size).rstrip(b"\0").decode()
        self._checked(text, link.log)
        link.texts.append(text)

    def cuLinkComplete(self, handle: int, out: int, size: int) -> None:
        self.context()
        link = self.get(handle, Link)
        if len(link.texts) != 1:
            raise self.refuse(1, f"{len(link.texts)} texts to link, where the fake driver takes one")
        try:
            decode(link.texts[0])
        except PtxError as error:
            _tell(link.log, str(error))
            raise self.refuse(218, str(error)) from None
        head = f"{self.architecture[0]}.{self.architecture[1]} {len(link.texts[0])}\n"
        data = _MAGIC + head.encode() + link.texts[0].encode()
        link.image = ctypes.create_string_buffer(data)
        put(out, c_void_p, ctypes.addressof(link.image))
        put(size, c_size_t, len(data) + 1)

    def cuLinkDestroy(self, handle: int) -> None:
        self.context()
        link = self.drop(handle, Link)
        if link.image is not None:
            ctypes.memset(link.image, 0xFB, len(link.image) - 1)  # who still reads it reads garbage

    # -- kernels ----------------------------------------------------------------------------------
    def cuFuncGetAttribute(self, out: int, attribute: int, handle: int) -> None:
        self.context()
        function = self.get(handle, Function)
        program = function.module.program(function.name)
        directives = program.entry.directives
        most = 1
        for n in directives.get("maxntid", directives.get("reqntid", (1024,))):
            most *= n
        values = {0: most, 1: program.shared_size, 2: 0, 3: program.local_size, 4: 32,
                  5: 10 * function.module.module.version[0] + function.module.module.version[1],
                  6: 10 * self.architecture[0] + self.architecture[1],
                  8: function.dynamic or _STATIC - program.shared_size}
        if attribute not in values:
            raise self.refuse(1, f"the attribute {attribute} of functions is not part of the fake driver")
        put(out, c_int, values[attribute])

    def cuFuncSetAttribute(self, handle: int, attribute: int, value: int) -> None:
        self.context()
        function = self.get(handle, Function)
        most = device_attributes(self.architecture)[97] - function.module.program(function.name).shared_size
        if attribute == 8 and 0 <= value <= most:
            function.dynamic = value
        elif attribute != 9:
            raise self.refuse(1, f"{function.name}: the attribute {attribute} cannot be {value}")

    def cuLaunchKernel(self, handle: int, *words: int) -> None:
        *sizes, dynamic, stream_handle, parameters, extra = words
        stream = self.stream(stream_handle)
        launch = self._launch(stream, handle, tuple(sizes[:3]), tuple(sizes[3:]), dynamic, parameters, extra)
        if stream.capture is not None:
            self.give(stream, None, node=Node(0, None, launch, []))
        else:
            self.give(stream, self._runs(stream.device, launch))

    def _launch(self, stream: Stream | None, handle: int, grid: tuple, block: tuple, dynamic: int,
                parameters: int, extra: int) -> Launch:
        """What a launch is about, checked as far as a driver does before it returns."""
        function = self.get(handle, Function)
        if stream is not None and function.device != stream.device:
            raise self.refuse(400, f"{function.name} is a kernel of another device")
        program = function.module.program(function.name)
        limits, threads = (2**31 - 1, 65535, 65535, 1024, 1024, 64), block[0] * block[1] * block[2]
        sizes = zip((*grid, *block), limits, strict=True)
        if threads > 1024 or any(not 0 < n <= most for n, most in sizes):
            raise self.refuse(1, f"{function.name}: a grid of {grid} blocks of {block} threads")
        if dynamic > max(function.dynamic, _STATIC - program.shared_size):
            raise self.refuse(1, f"{function.name}: {dynamic} bytes of shared memory were not asked for")
        try:
            fits(program, threads, grid[0] * grid[1] * grid[2], dynamic)
        except PtxError as error:
            raise self.refuse(701, str(error)) from None
        entry = program.entry
        data = bytearray(program.parameter_bytes)
        if extra:
            data[:] = _from_extra(extra, len(data))
        elif entry.parameters and not parameters:
            raise self.refuse(1, f"{function.name}: no parameters")
        else:
            for number, p in enumerate(entry.parameters.values()):
                at = c_void_p.from_address(parameters + 8 * number).value
                if not at:
                    raise self.refuse(1, f"{function.name}: the parameter {number} is a null pointer")
                data[p.offset:p.offset + p.size] = ctypes.string_at(at, p.size)
        return Launch(handle, grid, block, dynamic, bytes(data))

    def _runs(self, device: int, launch: Launch) -> Callable[[], None]:
        """What runs a kernel, once a stream comes to it."""
        function = self.get(launch.function, Function)

        def run() -> None:
            self.counts["launches"] += 1
            self.launches.append((function.name, launch.grid, launch.block))
            function.module.launch(function.name, launch.grid, launch.block, launch.parameters, launch.dynamic,
                                   self.checks, self.seed + self.counts["launches"])
        return run

    # -- graphs -----------------------------------------------------------------------------------
    def cuGraphInstantiateWithFlags(self, out: int, handle: int, flags: int) -> None:
        self.context()
        graph = self.get(handle, Graph)
        launches = {n.handle: n.launch for n in graph.nodes if n.launch is not None}
        put(out, c_void_p, self.new(GraphExec(list(graph.nodes), launches)))

    def cuGraphLaunch(self, handle: int, stream_handle: int | None) -> None:
        stream, graph = self.stream(stream_handle), self.get(handle, GraphExec)
        if stream.capture is not None:
            raise self.refuse(801, "a graph within a graph is not part of the fake driver")
        actions = {n: self._runs(stream.device, graph.launches[n.handle]) if n.launch is not None else n.action
                   for n in graph.nodes}
        self.counts["graph_launches"] += 1

        def run() -> None:
            for node in in_some_order(graph.nodes, self.schedule.rng):
                action = actions[node]
                if action is not None:
                    action()
        graph.last = self.give(stream, run, [graph.last])

    def cuGraphExecDestroy(self, handle: int) -> None:
        self.context()
        self.drop(handle, GraphExec)

    def cuGraphDestroy(self, handle: int) -> None:
        self.context()
        self.drop(handle, Graph)

    def cuGraphGetNodes(self, handle: int, nodes: int | None, count: int) -> None:
        self.context()
        graph = self.get(handle, Graph)
        if nodes:
            for n in range(c_size_t.from_address(count).value):
                put(nodes + 8 * n, c_void_p, graph.nodes[n].handle if n < len(graph.nodes) else 0)
        put(count, c_size_t, len(graph.nodes))

    def cuGraphKernelNodeGetParams_v2(self, handle: int, out: int) -> None:
        self.context()
        node = self.get(handle, Node)
        launch = node.launch
        if launch is None:
            raise self.refuse(1, "the node is no kernel's")
        function = self.get(launch.function, Function)
        parameters = function.module.module.entries[function.name].parameters.values()
        data = ctypes.create_string_buffer(launch.parameters, len(launch.parameters) + 1)
        table = (c_void_p * len(parameters))(*[ctypes.addressof(data) + p.offset for p in parameters])
        node.kept = [data, table]
        params = KernelNodeParams.from_address(out)
        params.func, params.sharedMemBytes, params.extra = launch.function, launch.dynamic, None
        params.gridDimX, params.gridDimY, params.gridDimZ = launch.grid
        params.blockDimX, params.blockDimY, params.blockDimZ = launch.block
        params.kernelParams, params.kern, params.ctx = ctypes.addressof(table), None, self.context().handle

    def cuGraphExecKernelNodeSetParams_v2(self, handle: int, node_handle: int, given: int) -> None:
        self.context()
        graph = self.get(handle, GraphExec)
        if node_handle not in graph.launches:
            raise self.refuse(1, "the node is no kernel's of the graph")
        p = KernelNodeParams.from_address(given)
        graph.launches[node_handle] = self._launch(
            None, p.func, (p.gridDimX, p.gridDimY, p.gridDimZ), (p.blockDimX, p.blockDimY, p.blockDimZ),
            p.sharedMemBytes, p.kernelParams or 0, p.extra or 0)

    # -- errors -----------------------------------------------------------------------------------
    def cuGetErrorName(self, code: int, out: int) -> None:
        self._error_text(code, out, 0)

    def cuGetErrorString(self, code: int, out: int) -> None:
        self._error_text(code, out, 1)

    def _error_text(self, code: int, out: int, which: int) -> None:
        if code not in ERRORS:
            put(out, c_void_p, 0)
            raise CudaError(1)
        put(out, c_void_p, ctypes.addressof(_TEXTS[code][which]))


_TEXTS = {code: [ctypes.create_string_buffer(t.encode()) for t in texts] for code, texts in ERRORS.items()}


def _from_extra(extra: int, size: int) -> bytes:
    """The parameters that are given as one buffer."""
    words, at = [], extra
    while (word := c_uint64.from_address(at).value) != 0:
        words += [word, c_uint64.from_address(at + 8).value]
        at += 16
    given = dict(zip(words[::2], words[1::2], strict=True))
    if set(given) != {1, 2} or c_size_t.from_address(given[2]).value != size:
        raise CudaError(1)
    return ctypes.string_at(given[1], size)


def _log(count: int, options: int, values: int) -> tuple[int, int]:
    """Where the compiler shall say what is wrong: an address and a length, or zeros."""
    kinds = [c_int.from_address(options + 4 * n).value for n in range(count)]
    given = {kind: c_uint64.from_address(values + 8 * n).value for n, kind in enumerate(kinds)}
    return given.get(5, 0), given.get(6, 0) & 0xFFFFFFFF


def _tell(log: tuple[int, int], text: str) -> None:
    address, size = log
    if address and size:
        data = text.encode()[:size - 1] + b"\0"
        ctypes.memmove(address, data, len(data))

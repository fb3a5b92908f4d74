"""The fake driver, called as a program calls the real one: through `ctypes`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest
from codegen.test_ptx import kernels
from gpu.cuda_names import SIGNATURES, KernelNodeParams
from gpu.fake_cuda import FakeCuda

from twofold.codegen import ptx
from twofold.ir.op import REGISTRY

HEAD = ".version 6.3\n.target {target}\n.address_size 64\n"
SCALE = HEAD + """
.visible .global .align 4 .u32 calls = 7;
.visible .entry scale(.param .u64 .ptr .global .align 1 scale_x, .param .u32 scale_by, .param .u64 scale_n)
{{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
    ld.param.b64 %rd1, [scale_x];
    ld.param.b32 %r1, [scale_by];
    ld.param.b64 %rd2, [scale_n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r4, %r2, %r3, %r4;
    cvt.u64.u32 %rd3, %r4;
    setp.ge.s64 %p1, %rd3, %rd2;
    @%p1 bra $done;
    shl.b64 %rd4, %rd3, 2;
    add.s64 %rd5, %rd1, %rd4;
    ld.global.b32 %r5, [%rd5];
    mul.lo.s32 %r5, %r5, %r1;
    st.global.b32 [%rd5], %r5;
$done:
    ret;
}}
.visible .entry big()
{{
    .reg .b32 %r<2>; .shared .align 4 .b8 own[64];
    mov.u32 %r1, %dynamic_smem_size;
    ret;
}}
"""
TEXT = SCALE.format(target="sm_75").encode()


class Driver:
    """A fake driver with a context, and what a test does again and again."""

    def __init__(self, **settings: Any) -> None:
        self.cuda = FakeCuda(**settings)
        self.ok(self.cuda.cuInit(0))
        self.context = self.handle(self.cuda.cuDevicePrimaryCtxRetain, 0)
        self.ok(self.cuda.cuCtxSetCurrent(self.context))

    def ok(self, code: int) -> None:
        assert code == 0, (code, self.cuda.findings)

    def handle(self, function: Callable[..., int], *args: Any) -> int:
        out = ctypes.c_void_p()
        self.ok(function(byref(out), *args))
        return out.value or 0

    def memory(self, values: np.ndarray) -> int:
        out = c_uint64()
        self.ok(self.cuda.cuMemAlloc_v2(byref(out), values.nbytes))
        self.ok(self.cuda.cuMemcpyHtoD_v2(out.value, values.ctypes.data, values.nbytes))
        self.ok(self.cuda.cuCtxSynchronize())
        return out.value

    def pinned(self, values: np.ndarray) -> np.ndarray:
        at = self.handle(self.cuda.cuMemHostAlloc, values.nbytes, 0)
        array = np.ctypeslib.as_array((ctypes.c_ubyte * values.nbytes).from_address(at)).view(values.dtype)
        array[:] = values
        return array

    def values(self, address: int, count: int, dtype: type = np.int32) -> np.ndarray:
        out: np.ndarray = np.empty(count, dtype)
        self.ok(self.cuda.cuMemcpyDtoH_v2(out.ctypes.data, address, out.nbytes))
        return out

    def function(self, text: bytes = TEXT, name: bytes = b"scale") -> int:
        return self.handle(self.cuda.cuModuleGetFunction, self.handle(self.cuda.cuModuleLoadData, text), name)

    def stream(self, flags: int = 1) -> int:
        return self.handle(self.cuda.cuStreamCreate, flags)

    def launch(self, function: int, args: Sequence[Any], stream: int = 0, grid: int = 1, block: int = 32,
               shared: int = 0) -> int:
        table = (c_void_p * len(args))(*[ctypes.addressof(a) for a in args])
        return self.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, table, None)

    def scale(self, address: int, by: int, count: int, stream: int = 0) -> None:
        self.ok(self.launch(self.function_once, [c_uint64(address), c_uint(by), c_uint64(count)], stream))

    @property
    def function_once(self) -> int:
        if not hasattr(self, "_function"):
            self._function = self.function()
        return self._function


ONES = np.ones(20, np.int32)


def test_all_functions_can_be_called_by_address() -> None:
    cuda = FakeCuda(devices=3)
    for name, arguments in SIGNATURES.items():
        function = getattr(cuda, name)
        assert function is cuda[name] and function.restype is c_int and len(arguments) == len(function.argtypes)
    assert not hasattr(cuda, "cuMemAlloc")  # whose name in the library has a version
    count, by_address = c_int(), ctypes.CFUNCTYPE(c_int, c_void_p)(
        ctypes.cast(cuda.cuDeviceGetCount, c_void_p).value or 0)
    assert by_address(ctypes.addressof(count)) == 3  # not initialised
    assert cuda.cuInit(0) == 0 and by_address(ctypes.addressof(count)) == 0 and count.value == 3
    assert cuda.calls["cuDeviceGetCount"] == 2


def test_devices() -> None:
    d = Driver(devices=2, architecture=(8, 6), memory=1 << 20)
    name, uuids, number = ctypes.create_string_buffer(32), [(ctypes.c_ubyte * 16)() for _ in range(2)], c_int()
    d.ok(d.cuda.cuDeviceGetName(name, 32, 1))
    assert name.value == b"Fake GPU 1"
    for n in range(2):
        d.ok(d.cuda.cuDeviceGetUuid_v2(uuids[n], n))
    assert bytes(uuids[0]) != bytes(uuids[1])
    for attribute, value in ((75, 8), (76, 6), (10, 32), (115, 1), (97, 101376)):
        d.ok(d.cuda.cuDeviceGetAttribute(byref(number), attribute, 0))
        assert number.value == value
    assert d.cuda.cuDeviceGetAttribute(byref(number), 1, 2) == 101
    free, total = c_size_t(), c_size_t()
    d.memory(np.zeros(1000, np.uint8))
    d.ok(d.cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    assert (free.value, total.value) == ((1 << 20) - 1000, 1 << 20)
    text = c_void_p()
    d.ok(d.cuda.cuGetErrorName(700, byref(text)))
    assert ctypes.string_at(text.value or 0) == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    assert d.cuda.cuGetErrorString(12345, byref(text)) == 1


def test_no_device_and_no_context() -> None:
    assert FakeCuda(devices=0).cuInit(0) == 100
    cuda, out = FakeCuda(), c_uint64()
    assert cuda.cuMemAlloc_v2(byref(out), 8) == 3
    assert cuda.cuInit(0) == 0 and cuda.cuMemAlloc_v2(byref(out), 8) == 201


def test_memory() -> None:
    d = Driver(memory=1 << 16)
    out = c_uint64()
    d.ok(d.cuda.cuMemAlloc_v2(byref(out), 64))
    assert np.isnan(d.values(out.value, 16, np.float32)).all() and np.isnan(d.values(out.value, 8, np.float64)).all()
    assert out.value % 256 == 0 and d.cuda.cuMemAlloc_v2(byref(out), 1 << 16) == 2 and d.cuda.cuMemAlloc_v2(
        byref(out), 0) == 1
    assert d.cuda.bytes_held() == 64 and d.cuda.counts["allocations"] == 1
    data = np.zeros(20, np.int32)
    assert d.cuda.cuMemcpyHtoD_v2(out.value, data.ctypes.data, 68) == 1  # more than there is
    assert d.cuda.cuMemcpyHtoD_v2(out.value, out.value, 8) == 1 and "no memory of the host" in d.cuda.findings[-1]
    assert d.cuda.cuMemcpyDtoH_v2(None, out.value, 8) == 1
    kind, start = c_uint(), c_uint64()
    d.ok(d.cuda.cuPointerGetAttribute(byref(kind), 2, out.value + 8))
    d.ok(d.cuda.cuPointerGetAttribute(byref(start), 11, out.value + 8))
    assert kind.value == 2 and start.value == out.value
    assert d.cuda.cuPointerGetAttribute(byref(kind), 2, data.ctypes.data) == 1
    assert d.cuda.cuMemFree_v2(out.value + 4) == 1
    d.ok(d.cuda.cuMemFree_v2(out.value))
    assert d.cuda.cuMemFree_v2(out.value) == 1 and "was freed" in d.cuda.findings[-1]
    assert d.cuda.cuMemcpyDtoH_v2(data.ctypes.data, out.value, 4) == 1
    assert d.cuda.bytes_held() == 0


def test_pools_follow_the_order_of_streams() -> None:
    outcomes = set()
    for seed in range(12):
        d, out = Driver(seed=seed), c_uint64()
        first, second = d.stream(), d.stream()
        d.ok(d.cuda.cuMemAllocAsync(byref(out), 80, first))
        d.ok(d.cuda.cuMemsetD32Async(out.value, 5, 20, second))  # which does not wait for the first
        outcomes.add(d.cuda.cuStreamSynchronize(second))
    assert outcomes == {0, 700}
    d = Driver(memory=4096)
    stream, pool, used = d.stream(), d.handle(d.cuda.cuDeviceGetDefaultMemPool, 0), c_uint64()
    d.ok(d.cuda.cuMemAllocAsync(byref(out), 4000, stream))
    assert d.cuda.cuMemAllocAsync(byref(used), 4000, stream) == 2
    d.ok(d.cuda.cuMemsetD32Async(out.value, 5, 20, stream))
    d.ok(d.cuda.cuMemFreeAsync(out.value, stream))
    assert d.cuda.cuMemFreeAsync(out.value, stream) == 1
    d.ok(d.cuda.cuMemPoolGetAttribute(pool, 7, byref(used)))
    assert used.value == 0
    d.ok(d.cuda.cuMemPoolGetAttribute(pool, 5, byref(used)))
    assert used.value == 4000
    d.ok(d.cuda.cuMemPoolTrimTo(pool, 0))
    d.ok(d.cuda.cuMemPoolGetAttribute(pool, 5, byref(used)))
    assert used.value == 0
    d.ok(d.cuda.cuMemAllocAsync(byref(out), 4000, stream))
    d.ok(d.cuda.cuStreamSynchronize(stream))


def test_pageable_memory_is_staged_and_pinned_memory_is_not() -> None:
    d = Driver()
    at, stream, pageable, pinned = d.memory(ONES), d.stream(), ONES * 2, d.pinned(ONES * 2)
    d.ok(d.cuda.cuMemcpyHtoDAsync_v2(at, pageable.ctypes.data, 80, stream))
    pageable[:] = 9
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert (d.values(at, 20) == 2).all()
    d.ok(d.cuda.cuMemcpyHtoDAsync_v2(at, pinned.ctypes.data, 80, stream))
    pinned[:] = 9  # too early
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert (d.values(at, 20) == 9).all()
    d.ok(d.cuda.cuMemcpyDtoHAsync_v2(pageable.ctypes.data, at, 80, stream))
    assert (pageable == 9).all()
    d.ok(d.cuda.cuMemsetD32Async(at, 4, 20, stream))
    d.ok(d.cuda.cuMemcpyDtoHAsync_v2(pinned.ctypes.data, at, 80, stream))
    assert (pinned == 9).all()
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert (pinned == 4).all()
    d.ok(d.cuda.cuMemcpyDtoHAsync_v2(pinned.ctypes.data, at, 80, stream))
    d.ok(d.cuda.cuMemFreeHost(pinned.ctypes.data))
    assert d.cuda.cuStreamSynchronize(stream) == 700 and "were freed" in d.cuda.findings[-1]


def two_streams(seed: int, ordered: bool, lazy: bool = True) -> int:
    d = Driver(seed=seed, lazy=lazy)
    at, first, second, event = d.memory(ONES), d.stream(), d.stream(), d.handle(d.cuda.cuEventCreate, 2)
    d.scale(at, 3, 20, first)
    d.ok(d.cuda.cuEventRecord(event, first))
    if ordered:
        d.ok(d.cuda.cuStreamWaitEvent(second, event, 0))
    out = d.pinned(ONES)
    d.ok(d.cuda.cuMemcpyDtoHAsync_v2(out.ctypes.data, at, 80, second))
    d.ok(d.cuda.cuStreamSynchronize(second))
    return int(out[0])


def test_a_missing_wait_shows() -> None:
    assert {two_streams(seed, True) for seed in range(20)} == {3}
    assert {two_streams(seed, False) for seed in range(20)} == {1, 3}
    assert {two_streams(seed, False, lazy=False) for seed in range(20)} == {3}


@pytest.mark.parametrize("flags,outcomes", [(0, {3}), (1, {1, 3})], ids=["blocking", "other"])
def test_the_legacy_stream(flags: int, outcomes: set[int]) -> None:
    found = set()
    for seed in range(20):
        d = Driver(seed=seed)
        at, stream = d.memory(ONES), d.stream(flags)
        d.scale(at, 3, 20, stream)
        found.add(int(d.values(at, 1)[0]))
    assert found == outcomes


def test_events() -> None:
    d, elapsed = Driver(), c_float()
    at, stream = d.memory(ONES), d.stream()
    start, end, plain = (d.handle(d.cuda.cuEventCreate, flags) for flags in (0, 0, 2))
    assert d.cuda.cuEventElapsedTime(byref(elapsed), start, end) == 400
    d.ok(d.cuda.cuEventRecord(start, stream))
    d.scale(at, 2, 20, stream)
    d.ok(d.cuda.cuEventRecord(end, stream))
    assert d.cuda.cuEventElapsedTime(byref(elapsed), start, end) == 600
    polls = 0
    while (code := d.cuda.cuEventQuery(end)) == 600:
        polls += 1
    assert code == 0 and polls and d.cuda.cuStreamQuery(stream) == 0
    d.ok(d.cuda.cuEventElapsedTime(byref(elapsed), start, end))
    assert elapsed.value > 0
    d.ok(d.cuda.cuEventRecord(plain, stream))
    d.ok(d.cuda.cuEventSynchronize(plain))
    assert d.cuda.cuEventElapsedTime(byref(elapsed), start, plain) == 400
    d.ok(d.cuda.cuEventDestroy_v2(plain))
    assert d.cuda.cuEventQuery(plain) == 400
    d.scale(at, 2, 20, stream)
    d.ok(d.cuda.cuStreamDestroy_v2(stream))
    d.ok(d.cuda.cuCtxSynchronize())
    assert d.values(at, 1)[0] == 4 and d.cuda.cuStreamSynchronize(stream) == 400


def test_kernels() -> None:
    d = Driver()
    at = d.memory(np.arange(50, dtype=np.int32))
    d.ok(d.launch(d.function(), [c_uint64(at), c_uint(3), c_uint64(45)], grid=2))
    want = np.arange(50) * 3
    want[45:] //= 3
    assert (d.values(at, 50) == want).all()
    assert d.cuda.launches == [("scale", (2, 1, 1), (32, 1, 1))] and d.cuda.counts["launches"] == 1
    words = np.zeros(3, np.uint64)
    words[:] = at, 2, 10
    size = c_size_t(words.nbytes)
    extra = (c_void_p * 5)(1, words.ctypes.data, 2, ctypes.addressof(size), 0)
    d.ok(d.cuda.cuLaunchKernel(d.function(), 1, 1, 1, 32, 1, 1, 0, 0, None, extra))
    assert d.values(at, 3)[2] == 12
    limited = TEXT.replace(b"scale_n)\n", b"scale_n) .maxntid 32\n")
    assert d.launch(d.function(limited), [c_uint64(at), c_uint(3), c_uint64(45)], block=64) == 701
    for grid, block in ((0, 32), (1, 2048)):
        assert d.launch(d.function(), [c_uint64(at), c_uint(3), c_uint64(45)], grid=grid, block=block) == 1


def test_kernels_of_the_library() -> None:
    """A division that is checked: its status word and its results, by a launch and by a graph."""
    divide = kernels(REGISTRY["floordiv"])["floordiv_int64"]
    d = Driver()
    x, y, out, status = np.arange(100, dtype=np.int64), np.full(100, 7), np.zeros(100, np.int64), np.full(1, -1)
    at = [c_uint64(d.memory(a)) for a in (status, out, x, y)]
    function, stream = d.function(ptx.text({"divide": divide}).encode(), b"divide"), d.stream()
    d.ok(d.launch(function, [c_uint64(100), *at], stream, grid=3))
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert (d.values(at[1].value, 100, np.int64) == x // 7).all() and d.values(at[0].value, 1, np.int64)[0] == -1
    d.ok(d.cuda.cuStreamBeginCapture_v2(stream, 2))
    d.ok(d.cuda.cuMemsetD8Async(at[3].value, 0, 8, stream))
    d.ok(d.launch(function, [c_uint64(100), *at], stream, grid=3))
    graph = d.handle(lambda out: d.cuda.cuStreamEndCapture(stream, out))
    run = d.handle(lambda out: d.cuda.cuGraphInstantiateWithFlags(out, graph, 0))
    d.ok(d.cuda.cuGraphLaunch(run, stream))
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert d.values(at[0].value, 1, np.int64)[0] == 0 and d.cuda.findings == []


def test_shared_memory_must_be_asked_for() -> None:
    d, number = Driver(), c_int()
    function = d.function(name=b"big")
    d.ok(d.launch(function, [], shared=48000))
    assert d.launch(function, [], shared=100_000) == 1 and "were not asked for" in d.cuda.findings[-1]
    d.ok(d.cuda.cuFuncSetAttribute(function, 8, 100_000))
    d.ok(d.launch(function, [], shared=100_000))
    assert d.cuda.cuFuncSetAttribute(function, 8, 300_000) == 1
    d.ok(d.cuda.cuFuncGetAttribute(byref(number), 1, function))
    assert number.value == 64


def test_errors_of_kernels_stay() -> None:
    d = Driver()
    at = d.memory(ONES)
    function = d.function()
    d.ok(d.launch(function, [c_uint64(at), c_uint(3), c_uint64(21)]))
    assert d.cuda.cuCtxSynchronize() == 700
    assert "0 bytes behind cuMemAlloc" in d.cuda.findings[-1] and "ld.global.b32 %r5" in d.cuda.findings[-1]
    assert d.cuda.cuMemFree_v2(at) == 700 and d.cuda.cuCtxSynchronize() == 700
    d.ok(d.cuda.cuDevicePrimaryCtxRelease_v2(0))
    assert d.cuda.cuDevicePrimaryCtxRelease_v2(0) == 201
    d.ok(d.cuda.cuCtxSynchronize())
    assert d.cuda.bytes_held() == 0 and d.launch(function, []) == 400


def test_modules() -> None:
    d, out = Driver(), c_void_p()
    load = d.cuda.cuModuleLoadData
    for image, code in ((b"hello", 200), (SCALE.format(target="sm_100").encode(), 218), (TEXT.replace(
            b"6.3", b"9.1"), 222), (TEXT.replace(b"6.3", b"six"), 218)):
        assert load(byref(out), image) == code
    log = ctypes.create_string_buffer(200)
    values = (c_void_p * 2)(ctypes.addressof(log), 200)
    options = (c_int * 2)(5, 6)
    assert d.cuda.cuModuleLoadDataEx(byref(out), SCALE.format(target="sm_100").encode(), 2, options, values) == 218
    assert b"sm_100" in log.value
    module = d.handle(load, TEXT)
    assert d.cuda.cuModuleGetFunction(byref(out), module, b"nothing") == 500
    address, size = c_uint64(), c_size_t()
    d.ok(d.cuda.cuModuleGetGlobal_v2(byref(address), byref(size), module, b"calls"))
    assert size.value == 4 and d.values(address.value, 1)[0] == 7
    function = d.handle(d.cuda.cuModuleGetFunction, module, b"scale")
    d.ok(d.cuda.cuModuleUnload(module))
    assert d.launch(function, [c_uint64(0), c_uint(3), c_uint64(1)]) == 400
    bad = TEXT.replace(b"mul.lo.s32", b"mul.approx.s32")
    module = d.handle(load, bad)
    assert d.cuda.cuModuleGetFunction(byref(out), module, b"scale") == 218
    assert "line" in d.cuda.findings[-1] and "mul.approx.s32 %r5, %r5, %r1" in d.cuda.findings[-1]


def test_linking_gives_an_image_for_one_architecture() -> None:
    d, image, size = Driver(architecture=(8, 0)), c_void_p(), c_size_t()
    link = d.handle(lambda out: d.cuda.cuLinkCreate_v2(0, None, None, out))
    d.ok(d.cuda.cuLinkAddData_v2(link, 1, TEXT, len(TEXT), b"kernels", 0, None, None))
    d.ok(d.cuda.cuLinkComplete(link, byref(image), byref(size)))
    kept = ctypes.string_at(image.value or 0, size.value)
    d.ok(d.cuda.cuLinkDestroy(link))
    assert d.function(kept)
    assert Driver(architecture=(8, 6)).function(kept)
    out = c_void_p()
    for architecture in ((7, 5), (9, 0)):
        assert Driver(architecture=architecture).cuda.cuModuleLoadData(byref(out), kept) == 209
    assert d.cuda.cuModuleLoadData(byref(out), kept[:200]) == 200


def test_what_tests_may_look_at() -> None:
    d = Driver()
    at, stream = d.memory(ONES), d.stream()
    d.scale(at, 3, 20, stream)
    assert d.cuda.peek(at, 20, np.int32).tolist() == [1] * 20 and not d.cuda.launches
    d.cuda.settle()
    assert d.cuda.peek(at, 20, np.int32).tolist() == [3] * 20
    assert d.cuda.findings == [] and d.cuda.counts["copied_bytes"] == 80


def test_a_graph_waits_for_its_last_launch() -> None:
    for seed in range(10):
        d = Driver(seed=seed)
        at, first, second = d.memory(ONES), d.stream(), d.stream()
        graph = captured(d, at, first)
        run = d.handle(lambda out, d=d, graph=graph: d.cuda.cuGraphInstantiateWithFlags(out, graph, 0))
        d.ok(d.cuda.cuGraphLaunch(run, first))
        d.ok(d.cuda.cuGraphLaunch(run, second))
        d.ok(d.cuda.cuStreamSynchronize(second))
        assert d.cuda.peek(at, 1, np.int32)[0] == 100


def captured(d: Driver, at: int, stream: int) -> int:
    d.ok(d.cuda.cuStreamBeginCapture_v2(stream, 0))
    d.scale(at, 2, 20, stream)
    d.scale(at, 5, 10, stream)
    return d.handle(lambda out: d.cuda.cuStreamEndCapture(stream, out))


def test_graphs() -> None:
    d, count = Driver(), c_size_t()
    at, stream = d.memory(ONES), d.stream()
    graph = captured(d, at, stream)
    assert d.cuda.counts["launches"] == 0 and d.values(at, 1)[0] == 1
    d.ok(d.cuda.cuGraphGetNodes(graph, None, byref(count)))
    nodes = (c_void_p * count.value)()
    d.ok(d.cuda.cuGraphGetNodes(graph, nodes, byref(count)))
    run = d.handle(lambda out: d.cuda.cuGraphInstantiateWithFlags(out, graph, 0))
    d.ok(d.cuda.cuGraphLaunch(run, stream))
    d.ok(d.cuda.cuGraphLaunch(run, stream))
    params = KernelNodeParams()
    d.ok(d.cuda.cuGraphKernelNodeGetParams_v2(nodes[1], byref(params)))
    assert (params.gridDimX, params.blockDimX) == (1, 32)
    words = [c_uint64(at), c_uint(7), c_uint64(10)]
    params.kernelParams = ctypes.addressof(table := (c_void_p * 3)(*[ctypes.addressof(w) for w in words]))
    d.ok(d.cuda.cuGraphExecKernelNodeSetParams_v2(run, nodes[1], byref(params)))
    del table
    d.ok(d.cuda.cuGraphDestroy(graph))
    d.ok(d.cuda.cuGraphLaunch(run, stream))
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert d.values(at, 20).tolist() == [2 * 5 * 2 * 5 * 2 * 7] * 10 + [8] * 10
    assert d.cuda.counts["graph_launches"] == 3 and d.cuda.counts["launches"] == 6
    d.ok(d.cuda.cuGraphExecDestroy(run))
    assert d.cuda.cuGraphLaunch(run, stream) == 400


def test_captures_fork_and_join() -> None:
    for seed in range(6):
        d = Driver(seed=seed)
        first, second, at, other = d.stream(), d.stream(), d.memory(ONES), d.memory(ONES)
        fork, join = d.handle(d.cuda.cuEventCreate, 2), d.handle(d.cuda.cuEventCreate, 2)
        d.ok(d.cuda.cuStreamBeginCapture_v2(first, 0))
        d.ok(d.cuda.cuEventRecord(fork, first))
        d.ok(d.cuda.cuStreamWaitEvent(second, fork, 0))
        d.scale(other, 3, 20, second)
        d.scale(at, 2, 20, first)
        d.ok(d.cuda.cuEventRecord(join, second))
        if seed % 2:
            assert d.cuda.cuEventQuery(join) == 907
            out = c_void_p()
            assert d.cuda.cuStreamEndCapture(first, byref(out)) == 901 and not out.value
            continue
        d.ok(d.cuda.cuStreamWaitEvent(first, join, 0))
        d.ok(d.cuda.cuMemcpyDtoDAsync_v2(at, other, 40, first))
        graph = d.handle(lambda out, d=d, first=first: d.cuda.cuStreamEndCapture(first, out))
        run = d.handle(lambda out, d=d, graph=graph: d.cuda.cuGraphInstantiateWithFlags(out, graph, 0))
        d.ok(d.cuda.cuGraphLaunch(run, first))
        d.ok(d.cuda.cuStreamSynchronize(first))
        assert d.values(at, 20).tolist() == [3] * 10 + [2] * 10


def test_what_captures_refuse() -> None:
    d, out, status = Driver(), c_void_p(), c_int()
    first, second, at = d.stream(), d.stream(), d.memory(ONES)
    fork = d.handle(d.cuda.cuEventCreate, 2)
    assert d.cuda.cuStreamBeginCapture_v2(0, 0) == 900
    d.ok(d.cuda.cuStreamBeginCapture_v2(first, 0))
    d.ok(d.cuda.cuEventRecord(fork, first))
    d.ok(d.cuda.cuStreamWaitEvent(second, fork, 0))
    d.scale(at, 3, 20, second)
    assert d.cuda.cuStreamEndCapture(second, byref(out)) == 903
    assert d.cuda.cuStreamEndCapture(first, byref(out)) == 901
    d.ok(d.cuda.cuStreamBeginCapture_v2(first, 0))
    d.ok(d.cuda.cuEventRecord(fork, first))
    d.ok(d.cuda.cuStreamWaitEvent(second, fork, 0))
    d.scale(at, 3, 20, second)
    assert d.cuda.cuStreamEndCapture(first, byref(out)) == 904
    for call in (lambda: d.cuda.cuStreamSynchronize(first), lambda: d.cuda.cuMemAlloc_v2(byref(out), 8)):
        d.ok(d.cuda.cuStreamBeginCapture_v2(first, 0))
        d.ok(d.cuda.cuStreamIsCapturing(first, byref(status)))
        assert status.value == 1 and call() == 900
        d.ok(d.cuda.cuStreamIsCapturing(first, byref(status)))
        assert status.value == 2 and d.cuda.cuStreamEndCapture(first, byref(out)) == 901


def test_host_functions() -> None:
    d = Driver()
    at, stream, seen = d.memory(ONES), d.stream(), []
    kind = ctypes.CFUNCTYPE(None, c_void_p)
    function = kind(lambda data: seen.append((data, d.cuda.cuCtxSynchronize())))
    d.scale(at, 2, 20, stream)
    d.ok(d.cuda.cuLaunchHostFunc(stream, ctypes.cast(function, c_void_p), 5))
    assert seen == []
    d.ok(d.cuda.cuStreamSynchronize(stream))
    assert seen == [(5, 800)]


def test_devices_reach_each_other_once_it_is_allowed() -> None:
    d = Driver(devices=2)
    other = d.handle(d.cuda.cuDevicePrimaryCtxRetain, 1)
    d.ok(d.cuda.cuCtxSetCurrent(other))
    far = d.memory(ONES * 6)
    d.ok(d.cuda.cuCtxSetCurrent(d.context))
    near = d.memory(ONES)
    d.ok(d.cuda.cuMemcpyPeerAsync(near, d.context, far, other, 40, 0))
    assert d.values(near, 11).tolist() == [6] * 10 + [1]
    can = c_int()
    d.ok(d.cuda.cuDeviceCanAccessPeer(byref(can), 0, 1))
    d.ok(d.cuda.cuCtxEnablePeerAccess(other, 0))
    assert can.value == 1 and d.cuda.cuCtxEnablePeerAccess(other, 0) == 704
    d.scale(far, 2, 20)
    assert d.values(far, 1)[0] == 12
    e = Driver(devices=2)
    other = e.handle(e.cuda.cuDevicePrimaryCtxRetain, 1)
    e.ok(e.cuda.cuCtxSetCurrent(other))
    far = e.memory(ONES)
    e.ok(e.cuda.cuCtxSetCurrent(e.context))
    e.scale(far, 2, 20)
    assert e.cuda.cuCtxSynchronize() == 700 and "of another device" in e.cuda.findings[-1]

"""The pool: what is handed out, when it may be handed out again, bounds, threads, page faults."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from twofold.runtime import memory

F32 = np.dtype("float32")
LARGE = (300, 1000)  # float32: 1.2 MB


@pytest.fixture(scope="module", autouse=True)
def _what_others_left():
    """What other files left stays out of each test's search for garbage, which would take longer than the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def empty_pool():
    gc.collect()
    memory.trim()
    yield
    memory.set_limit(256 << 20)
    memory.trim()


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 5), LARGE, (1 << 20,), (7, 11, 2000)])
@pytest.mark.parametrize("name", ["bool", "int8", "float16", "float32", "float64", "complex128"])
def test_shape_type_and_layout(shape, name):
    array = memory.empty(shape, np.dtype(name))
    assert array.shape == shape
    assert array.dtype == name
    assert type(array) is np.ndarray
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.flags.aligned
    array[...] = 1
    assert array.size == 0 or np.all(array == 1)


def test_large_arrays_are_aligned_to_a_cache_line():
    arrays = [memory.empty((70_000 + 3 * n,), F32) for n in range(5)]
    assert [address(a) % 64 for a in arrays] == [0] * 5


def test_arrays_of_objects_hold_none():
    assert memory.empty((100_000,), np.dtype(object))[5] is None


def test_a_released_block_is_used_again():
    first = memory.empty(LARGE, F32)
    place = address(first)
    del first
    assert memory.statistics().idle > 0
    assert address(memory.empty(LARGE, F32)) == place


def test_a_slightly_smaller_array_uses_it_too():
    first = memory.empty((1 << 20,), F32)
    place = address(first)
    del first
    assert address(memory.empty(((1 << 20) - 10,), F32)) == place


@pytest.mark.parametrize("keep", [
    lambda a: a[1:], lambda a: a.reshape(-1)[5:][::2], lambda a: a.T, lambda a: a.view(np.int32), memoryview,
    lambda a: np.frombuffer(a, np.uint8), lambda a: np.asarray(a[2:3]), lambda a: a.__dlpack__(),
], ids=["slice", "slices", "transpose", "view", "memoryview", "frombuffer", "asarray", "dlpack"])
def test_what_is_still_referred_to_is_never_handed_out(keep):
    array = memory.empty(LARGE, F32)
    place = address(array)
    kept = keep(array)
    del array
    others = [memory.empty(LARGE, F32) for _ in range(3)]
    assert place not in [address(other) for other in others]
    assert memory.statistics().idle == 0
    del kept
    assert memory.statistics().idle > 0
    assert address(memory.empty(LARGE, F32)) == place


def test_views_that_die_later_return_their_blocks():
    views = [memory.empty(LARGE, F32)[1:] for _ in range(40)]
    places = {address(view) - 4000 for view in views}
    views.clear()
    assert memory.statistics().in_use == 0
    assert {address(array) for array in [memory.empty(LARGE, F32) for _ in range(40)]} <= places


def test_two_live_arrays_never_share_memory():
    arrays = [memory.empty(LARGE, F32) for _ in range(20)]
    for n, array in enumerate(arrays):
        array[...] = n
    assert all(np.all(array == n) for n, array in enumerate(arrays))


def test_idle_memory_is_bounded_and_the_oldest_goes_first():
    memory.set_limit(3 << 20)
    arrays = [memory.empty(LARGE, F32) for _ in range(6)]
    places = [address(array) for array in arrays]
    while arrays:
        arrays.pop(0)
    size = memory.size_class(1_200_000)
    assert memory.statistics().idle == size * ((3 << 20) // size)
    assert address(memory.empty(LARGE, F32)) == places[-1]
    memory.set_limit(0)
    assert memory.statistics().idle == 0
    with pytest.raises(ValueError, match="negative"):
        memory.set_limit(-1)


def test_statistics_count_what_is_held():
    array = memory.empty(LARGE, F32)
    size = memory.size_class(array.nbytes)
    before = memory.statistics()
    assert (before.in_use, before.idle) == (size, 0)
    assert before.peak >= size
    del array
    assert memory.statistics()[:2] == (0, size)
    memory.trim()
    assert memory.statistics()[:2] == (0, 0)


@pytest.mark.parametrize("count", [262_144, 262_145, 300_000, 1 << 20, (1 << 20) + 1, 10**9])
def test_size_classes_waste_at_most_an_eighth(count):
    size = memory.size_class(count)
    assert count <= size <= count * 9 / 8
    assert memory.size_class(size) == size


def test_threads_share_the_pool_safely():
    failures = []

    def work(number):
        for step in range(200):
            array = memory.empty((80_000 + 1000 * (step % 3),), F32)
            array[:] = number
            view = array[5:] if step % 2 else None
            if not np.all(array == number):
                failures.append(number)
            del array, view

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert memory.statistics().in_use == 0


def test_cycles_of_arrays_return_their_blocks():
    for _ in range(10):
        cell = [memory.empty(LARGE, F32)]
        cell.append(cell)
        del cell
    gc.collect()
    assert memory.statistics().in_use == 0


def test_a_pooled_output_does_not_fault_on_every_call():
    resource = pytest.importorskip("resource")
    a = np.ones(1_000_000, np.float32)
    np.add(a, a, out=memory.empty(a.shape, F32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.add(a, a, out=memory.empty(a.shape, F32))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 200  # one pass over the output alone is 977


def test_nothing_is_printed_when_the_interpreter_ends_with_live_arrays():
    program = ("import numpy as np; from twofold.runtime import memory\n"
               "kept = [memory.empty((1 << 20,), np.dtype('float32')) for _ in range(3)]; kept.append(kept)\n"
               "kept.append(kept[0][3:])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_the_pool_is_locked_can_use_it():
    """By another thread: what the thread that forks holds itself, it still holds in the child."""
    held, done = threading.Event(), threading.Event()

    def hold():
        with memory._pool._lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        worker = threading.Thread(target=lambda: memory.empty(LARGE, F32))
        worker.start()
        worker.join(20)
        os._exit(worker.is_alive())
    status = os.waitpid(child, 0)[1]
    done.set()
    holder.join()
    assert status == 0

"""A plugin that has tests of other folders run on a GPU: `PYTHONPATH=tests pytest -p gpu.everywhere PATH`.

Tests, and the fixtures that they ask for, make their tensors there. It is one GPU to the end, as tests keep tensors for
one another. Over the fake driver a test fails, too, where a kernel or a call did what it must not. Tests that ask for
something of the processor are skipped, with what that is.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from gpu.devices import HARDWARE, device
from ptx_checks import refused

import twofold as tf

#: why tests cannot run there, by file and name
OF_THE_PROCESSOR = {
    "eager/test_custom_gradient.py::test_recomputing_keeps_no_intermediate_values": "measures memory of the host",
    "eager/test_indexing.py::test_slices_share_memory": "NumPy sees the memory of views",
    "eager/test_matmul_entry.py::test_a_row_or_column_is_planned_sooner": "native entries are the processor's",
    "eager/test_row_entry.py::test_no_python_runs": "native entries are the processor's",
    "eager/test_row_entry.py::test_sizes_around_those_from_which_others_run": "native entries are the processor's",
    "eager/test_tensor.py::test_properties": "the name of the device",
    "front/test_front.py::test_devices": "the list of devices",
    "keras/test_optimizers.py::test_a_step_is_one_program_with_one_update": "threads take four elements each",
    "tracer/test_call.py::test_python_is_not_run_once_a_call_is_known": "native entries are the processor's",
    "tracer/test_call.py::test_references_are_balanced": "counts references to arrays of the host",
    "tracer/test_call.py::test_the_interpreter_lock_is_released": "a call on a GPU returns before its work is done",
    "tracer/test_kernels.py::test_explain_and_the_page_and_the_command_line_tell_of_the_same_kernels":
        "the command line tells of the processor's kernels",
}

#: why tests cannot run over the fake driver
NOT_OVER_THE_FAKE = {
    "eager/test_threads_memory.py::test_a_hundred_thousand_steps_are_flat": "was not tried over the fake",
    "eager/test_threads_memory.py::test_training_steps_leave_nothing": "the fake keeps work until it is waited for",
    "tracer/test_calls_at_once.py::test_errors_leave_everything_as_it_was": "takes minutes",
    "tracer/test_function_memory.py::test_memory_stays_flat_over_retraces_with_dropped_functions":
        "the fake keeps work until it is waited for",
    "tracer/test_function_ops.py::test_unknown_sizes[reductions-centred_variance-1-False]":
        "NumPy's NaNs have signs, which nothing promises",
    "tracer/test_function_ops.py::test_unknown_sizes[reductions-('reduce_mean', 'centred_variance')-1-False]":
        "NumPy's NaNs have signs, which nothing promises",
}

_drivers: list[Any] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that cannot run."""
    reasons = OF_THE_PROCESSOR if HARDWARE else {**OF_THE_PROCESSOR, **NOT_OVER_THE_FAKE}
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        reason = reasons.get(name) or reasons.get(name.partition("[")[0])
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """All tests, on a machine that has a GPU."""
    with device() as fake:
        _drivers.append(fake)
        result = yield
    wrong = refused()
    assert not wrong, "\n".join(wrong)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Every test, with all that it makes on the GPU."""
    with tf.device("/gpu:0"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Looks for what the driver found while a test ran."""
    result = yield
    fake = _drivers[-1]
    if fake is not None and fake.findings:
        told, fake.findings[:] = "\n".join(fake.findings), []
        pytest.fail(f"the fake driver found:\n{told}")
    return result

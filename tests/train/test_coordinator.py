"""`tf.train.Coordinator`: what threads hand over is raised where they are waited for."""

import threading

import pytest

import twofold as tf


def test_an_error_of_a_thread_stops_the_others_and_is_raised_by_join():
    coordinator = tf.train.Coordinator()

    def fails():
        with coordinator.stop_on_exception():
            raise KeyError("gone")
    threads = [threading.Thread(target=fails), threading.Thread(target=coordinator.wait_for_stop)]
    coordinator.register_thread(threads[1])
    for thread in threads:
        thread.start()
    with pytest.raises(KeyError, match="gone"):
        coordinator.join(threads[:1])
    assert coordinator.joined and coordinator.should_stop() and not any(t.is_alive() for t in threads)
    with pytest.raises(KeyError):
        coordinator.raise_requested_exception()
    with pytest.raises(ValueError, match="late"):
        coordinator.request_stop(ValueError("late"))
    coordinator.clear_stop()
    assert not coordinator.joined and not coordinator.should_stop()


def test_the_end_of_data_is_no_error():
    coordinator = tf.train.Coordinator()
    with coordinator.stop_on_exception():
        raise tf.errors.OutOfRangeError(None, None, "the end")
    coordinator.join()
    assert coordinator.should_stop()


def test_threads_that_go_on_are_told_of():
    coordinator, end = tf.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=end.wait, name="slow")
    thread.start()
    coordinator.request_stop()
    with pytest.raises(RuntimeError, match="still running: slow"):
        coordinator.join([thread], stop_grace_period_secs=0.01)
    coordinator.join([thread], stop_grace_period_secs=0.01, ignore_live_threads=True)
    end.set()
    thread.join()


def test_values_of_traced_tensors_are_refused_by_tensorflows_class():
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: 1 if x > 0 else 2, autograph=False, fallback=False)(tf.constant(1.0))

"""Queues between threads and functions; what they hold says `test_library.py`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import twofold as tf


def small(capacity: int = 2, **settings: Any) -> Any:
    return tf.queue.FIFOQueue(capacity, tf.int32, shapes=[], **settings)


def beside(work: Any) -> tuple[threading.Thread, list[Any]]:
    """A thread that does some work, and what it gave or raised."""
    given: list[Any] = []

    def run() -> None:
        try:
            given.append(work())
        except tf.errors.OpError as error:
            given.append(type(error))
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, given


def joined(thread: threading.Thread) -> None:
    thread.join(60)
    assert not thread.is_alive()


def test_whoever_puts_waits_for_room_and_whoever_takes_for_elements() -> None:
    queue = small()
    putting, _ = beside(lambda: queue.enqueue_many([np.arange(50)]))
    assert queue.dequeue_many(30).numpy().tolist() == list(range(30))  # more than there is room for
    taking, given = beside(lambda: [int(queue.dequeue()) for _ in range(21)])
    joined(putting)
    queue.enqueue(50)
    joined(taking)
    assert given == [list(range(30, 51))] and queue.size().numpy() == 0


def test_closing_ends_waiting() -> None:
    queue = small()
    taking, given = beside(queue.dequeue)
    queue.close()
    joined(taking)
    assert given == [tf.errors.OutOfRangeError]
    for cancel, outcome in ((True, tf.errors.CancelledError), (False, None)):
        queue = small()
        queue.enqueue_many([[1, 2]])
        putting, given = beside(lambda queue=queue: queue.enqueue_many([[3, 4]]))
        while not queue._queue_ref._array[()].target._putting:
            pass
        queue.close(cancel_pending_enqueues=cancel)
        assert queue.is_closed()
        left = queue.dequeue_up_to(9).numpy().tolist() if cancel else queue.dequeue_many(4).numpy().tolist()
        joined(putting)
        assert given == [outcome] and left == ([1, 2] if cancel else [1, 2, 3, 4])


def test_elements_that_are_too_few_stay() -> None:
    queue = small(5)
    queue.enqueue_many([[1, 2, 3]])
    queue.close()
    with pytest.raises(tf.errors.OutOfRangeError, match="requested 4, current size 3"):
        queue.dequeue_many(4)
    assert queue.dequeue_many(3).numpy().tolist() == [1, 2, 3]


def test_functions_put_and_take() -> None:
    queues = [small(9), small(9)]

    @tf.function
    def move(n, to):
        chosen = tf.queue.QueueBase.from_list(to, queues)
        for k in tf.range(n):
            queues[0].enqueue(k)
        chosen.enqueue(queues[0].dequeue() + 10)
        return queues[0].dequeue_many(n - 1), queues[1].size()

    taken, size = move(tf.constant(4), tf.constant(1))
    assert taken.shape == (3,) and taken.numpy().tolist() == [1, 2, 3] and size.numpy() == 1
    assert queues[1].dequeue().numpy() == 10
    with pytest.raises(TypeError, match="list of queues"):
        tf.queue.QueueBase.from_list(0, [1])
    with pytest.raises(ValueError, match="matching"):
        tf.queue.QueueBase.from_list(0, [small(), tf.queue.FIFOQueue(1, tf.string)])


def test_what_was_put_does_not_change() -> None:
    queue = tf.queue.FIFOQueue(5, tf.float32)
    table = tf.Variable(tf.zeros([300, 64]))
    table.assign_add(tf.ones([300, 64]))
    queue.enqueue(table)
    table.scatter_add(tf.IndexedSlices(tf.ones([1, 64]), [3]))
    assert tf.reduce_max(queue.dequeue()).numpy() == 1

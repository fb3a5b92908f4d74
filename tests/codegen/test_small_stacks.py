"""Kernels, compiled functions and their compilation need little of a thread's stack."""

import os
import subprocess
import sys

WORK = """
import sys, threading
import numpy as np
import twofold as tf

def work():
    for dtype in (tf.float32, tf.float64, tf.bfloat16):
        for shape in ((64, 64), (300, 300), (512, 512), (1, 600)):
            x = tf.cast(tf.fill(shape, 0.5), dtype)
            y = tf.matmul(x, x, transpose_b=True)
            assert abs(float(y[0, 0]) - 0.25 * shape[1]) < 1.0
            tf.matmul(x, x, transpose_a=True)
    x = tf.ones([64, 64])
    tf.nn.softmax(x), tf.cumsum(x), tf.sort(x), tf.reduce_sum(x, 0), tf.linalg.svd(x), tf.random.normal([100])
    tf.nn.conv2d(tf.ones([2, 16, 16, 3]), tf.ones([3, 3, 3, 8]), 1, "SAME")
    f = tf.function(lambda x: tf.reduce_sum(tf.nn.softmax(tf.matmul(x, x))))
    f(x), f(x)
    w = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(w @ w)) + f(w)
    tape.gradient(y, w)
    print("done")
"""
COMPILED = """
import threading
import twofold as tf

def work():
    x = tf.ones([64, 64])
    tf.nn.softmax(x @ x)
    f = tf.function(lambda x: tf.reduce_sum(tf.nn.softmax(tf.matmul(x, x))))
    f(x)
    print("done")
"""
THREAD = """
threading.stack_size(128 << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def run(command, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def test_a_thread_with_a_small_stack():
    ran = run([sys.executable, "-c", WORK + THREAD])
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


def test_compiling_in_a_thread_with_a_small_stack(tmp_path):
    ran = run([sys.executable, "-c", COMPILED + THREAD], TWOFOLD_CACHE_DIR=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


def test_a_process_with_a_small_stack():
    ran = run(["sh", "-c", 'ulimit -s 160; exec "$0" -c "$1"', sys.executable, WORK + "work()"])
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr

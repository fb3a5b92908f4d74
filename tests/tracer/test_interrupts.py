"""Ctrl-C and other signals reach compiled loops of every kind, and leave variables as they were."""

import os
import subprocess
import sys

import pytest

START = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
import twofold as tf

v = tf.Variable(7)
w = tf.Variable(tf.ones([300, 300]))

@tf.function
def scalars(i):
    while i >= 0:
        i = (i + 1) % 1000
    v.assign(i)
    return i

@tf.function
def vectors(x):
    while tf.reduce_sum(x) >= 0.0:
        x = x * 0.5
    v.assign_add(1)
    return x

@tf.function
def counted(n):
    total = 0.0
    for i in tf.range(n):
        total += tf.sin(tf.cast(i, tf.float32))
    v.assign_add(1)
    return total

@tf.function
def nested(n):
    total = 0
    while total >= 0:
        for i in tf.range(n):
            total = (total + i) % 1000
    v.assign(total)
    return total

@tf.function
def products(x):
    i = 0
    while i >= 0:
        x, i = tf.matmul(x, x) * 0.001, (i + 1) % 10
        w.assign(x)
    return x

@tf.function
def calls(x):
    while x >= 0.0:
        x = tf.py_function(lambda y: y * 0.5, [x], tf.TensorSpec([], tf.float32))
    v.assign(0)
    return x

def recorded(i):
    with tf.GradientTape() as tape:
        return scalars(i)

CASES = {"scalars": (scalars, tf.constant(0)), "vectors": (vectors, tf.ones([100])), "a Python number": (scalars, 0),
         "counted": (counted, tf.constant(10**12, tf.int64)), "nested": (nested, tf.constant(3)),
         "products": (products, tf.ones([300, 300])), "calls": (calls, tf.constant(1.0)),
         "recorded": (recorded, tf.constant(0))}
"""

STOPPED = START + """
for name, (fn, argument) in CASES.items():
    for again in range(2):
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            fn(argument)
        except KeyboardInterrupt:
            print(name, v.numpy(), bool((w.numpy() == 1.0).all()))
print(counted(tf.constant(10, tf.int64)).numpy() > 1.9, v.numpy())
"""

ALARM = START + """
class Late(Exception):
    pass

def ring(*_):
    raise Late
seen = []
signal.signal(signal.SIGALRM, ring)
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    scalars(tf.constant(0))
except Late:
    print("late", seen, v.numpy())
"""

THREAD = START + """
threading.Thread(target=scalars, args=(tf.constant(0),), daemon=True).start()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    threading.Event().wait()
except KeyboardInterrupt:
    print("stopped")
os._exit(0)
"""


def output(program, **environment):
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                         env={**os.environ, **environment})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("native", ["1", "0"])
def test_every_kind_of_loop_stops(native, tmp_path):
    path = tmp_path / "program.py"  # control flow is converted from a file
    path.write_text(STOPPED)
    lines = output(f"import runpy; runpy.run_path({str(path)!r})", TWOFOLD_NATIVE_CALL=native)
    names = ["scalars", "vectors", "a Python number", "counted", "nested", "products", "calls", "recorded"]
    assert lines == [f"{name} 7 True" for name in names for _ in range(2)] + ["True 8"]


def test_handlers_run_and_may_raise(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(ALARM)
    assert output(f"import runpy; runpy.run_path({str(path)!r})") == ["late [1] 7"]


def test_the_main_thread_is_not_held_up_by_others(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(THREAD)
    assert output(f"import runpy; runpy.run_path({str(path)!r})") == ["stopped"]

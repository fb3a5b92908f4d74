"""Handwriting read by a network that several processes train together, over MPI.

Each process takes its rows of each batch; gradients are summed over all, so that the weights stay equal everywhere, and
are those that one process would have learned from the whole batches. The first process shows the progress.

    python examples/digits_mpi.py                  four processes on this machine, started by mpiexec
    python examples/digits_mpi.py --processes 2    two of them
    mpiexec -n 8 python examples/digits_mpi.py     as many as you like, on as many machines as MPI knows

Needs `pip install "twofold[mpi]" mpich`, or another MPI library. Ends with status 1 if the accuracy is below 0.95.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import twofold as tf

STARTED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")  # what starters of MPI programs tell them


def start() -> int:
    """Runs this program as several processes; gives the status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--processes", type=int, default=4, help="how many there are (default: 4)")
    processes = options.parse_args().processes
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.exists() else "mpiexec"
    # each process has its share of the processors
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    return subprocess.run([launcher, "-n", str(processes), sys.executable, __file__],
                          env={"TWOFOLD_NUM_THREADS": threads, **os.environ}).returncode


def main() -> int:
    """Trains, and tells how many of the digits that were kept back are read right."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.keras.utils.set_random_seed(1)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = (digits.data[order] / 16.0).astype(np.float32), digits.target[order]
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(128, "relu"),
                                     tf.keras.layers.Dropout(0.2), tf.keras.layers.Dense(10)])
        model.compile(tf.keras.optimizers.Adam(2e-3), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"])
    model.fit(images[:1437], labels[:1437], batch_size=64, epochs=20)
    _, accuracy = model.evaluate(images[1437:], labels[1437:], batch_size=64, verbose=0)
    if strategy.extended.should_checkpoint:
        print(f"{strategy.num_replicas_in_sync} processes, accuracy {accuracy:.4f}")
    return int(accuracy < 0.95)


if __name__ == "__main__":
    sys.exit(main() if any(name in os.environ for name in STARTED) else start())

"""Load the classifier that examples/digits.py saved, and read the test images with it.

This file knows nothing of the network: no class, no layers, no weights. All of that is in the saved model.

    python examples/digits_predict.py build/demo/digits build/demo/test.npz
"""

import sys

import numpy as np

import twofold as tf


def main():
    folder, file = sys.argv[1:]
    model = tf.saved_model.load(folder)
    test = np.load(file)
    outputs = model.signatures["serving_default"](images=tf.constant(test["images"]))
    right = int(np.sum(outputs["digit"].numpy() == test["digits"]))
    print(f"accuracy {right / len(test['digits']):.4f}")


if __name__ == "__main__":
    main()

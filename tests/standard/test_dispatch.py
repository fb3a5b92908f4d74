"""scikit-learn and SciPy compute with tensors where they ask the array API standard for their functions."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import warnings
warnings.simplefilter("error")
import numpy as np
import scipy.cluster, scipy.fft, scipy.signal, scipy.special, scipy.stats
import sklearn
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, confusion_matrix, mean_squared_error
from sklearn.preprocessing import LabelEncoder

import twofold as tf

tf.experimental.numpy.experimental_enable_numpy_behavior()
points = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
labels = (points[:, 0] > 0).astype(np.int32)
CALLS = {
    "pca": lambda x, y: abs(PCA(2, svd_solver="full").fit(x).transform(x)),
    "randomized": lambda x, y: abs(PCA(2, svd_solver="randomized", random_state=0, power_iteration_normalizer="QR"
                                       ).fit_transform(x)),
    "components": lambda x, y: abs(PCA(2, svd_solver="full").fit(x).components_),
    "labels": lambda x, y: LabelEncoder().fit(y).transform(y),
    "confusion": lambda x, y: confusion_matrix(y, 1 - y),
    "accuracy": lambda x, y: accuracy_score(y, y),
    "error": lambda x, y: mean_squared_error(x[:, 0], x[:, 1]),
    "softmax": lambda x, y: scipy.special.softmax(x, axis=1),
    "expit": lambda x, y: scipy.special.expit(x),
    "skew": lambda x, y: scipy.stats.skew(x),
    "kurtosis": lambda x, y: scipy.stats.kurtosis(x),
    "t test": lambda x, y: scipy.stats.ttest_1samp(x, 0.0).pvalue,
    "gmean": lambda x, y: scipy.stats.gmean(abs(x)),
    "fft": lambda x, y: abs(scipy.fft.fft(x, axis=0)),
    "detrend": lambda x, y: scipy.signal.detrend(x, axis=0),
    "linkage": lambda x, y: scipy.cluster.hierarchy.linkage(x),
}
for name, call in CALLS.items():
    with sklearn.config_context(array_api_dispatch=True):
        actual = call(tf.constant(points), tf.constant(labels))
    expected = call(points, labels)
    assert isinstance(actual, (tf.Tensor, float)) and type(actual) is not type(expected) or name in FLOATS, name
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-5, atol=2e-5, err_msg=name)
print("equal:", len(CALLS))
""".replace("FLOATS", '("accuracy", "error")')


def test_scikit_learn_and_scipy_compute_with_tensors():
    """In a process of its own: SciPy reads the environment when it is imported."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True,
                          env={**os.environ, "SCIPY_ARRAY_API": "1"})
    assert done.stdout == "equal: 16\n", done.stderr

"""TensorFlow Probability: the tests of some distributions and bijectors, each eagerly and in graphs."""

from __future__ import annotations

from clients.suites import Client

_WHICH = {
    "distributions": ("bernoulli", "beta", "categorical", "exponential", "independent", "laplace", "mixture",
                      "mixture_same_family", "mvn_diag", "mvn_tril", "normal", "transformed_distribution", "uniform"),
    "bijectors": ("chain", "exp", "fill_triangular", "identity", "invert", "permute", "power", "real_nvp", "reshape",
                  "scale", "scale_matvec_diag", "shift", "sigmoid", "softmax_centered", "softplus", "softsign", "split",
                  "square", "tanh", "transpose"),
}

CLIENT = Client(
    name="tensorflow-probability",
    version="0.25.0",
    tag="v0.25.0",
    repository="https://github.com/tensorflow/probability",
    needs=("tensorflow-probability==0.25.0", "tf_keras==2.21.0", "hypothesis", "mpmath"),
    tests=tuple(f"tensorflow_probability/python/{kind}/{name}_test.py" for kind, names in _WHICH.items()
                for name in names),
    from_source=True,
    example="tensorflow-probability",
    what="; ".join(f"of {kind} {', '.join(names)}" for kind, names in _WHICH.items()),
)

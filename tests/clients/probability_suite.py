"""TensorFlow Probability: the tests of some distributions and bijectors, each eagerly and in graphs."""

from __future__ import annotations

from clients.suites import Client

_WHICH = ("distributions/normal", "distributions/bernoulli", "distributions/laplace", "distributions/exponential",
          "distributions/uniform", "bijectors/exp", "bijectors/softplus", "bijectors/shift", "bijectors/scale",
          "bijectors/tanh", "bijectors/sigmoid")

CLIENT = Client(
    name="tensorflow-probability",
    version="0.25.0",
    tag="v0.25.0",
    repository="https://github.com/tensorflow/probability",
    needs=("tensorflow-probability==0.25.0", "tf_keras==2.21.0", "hypothesis", "mpmath"),
    tests=tuple(f"tensorflow_probability/python/{name}_test.py" for name in _WHICH),
    example="tensorflow-probability",
    from_source=True,
    what="of distributions normal, bernoulli, laplace, exponential, uniform; of bijectors exp, softplus, shift, scale, "
         "tanh, sigmoid",
)

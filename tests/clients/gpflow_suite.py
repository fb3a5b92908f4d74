"""GPflow: most of the tests of its package."""

from __future__ import annotations

from clients.suites import Client

_WHICH = ("config", "covariances", "expectations", "experimental", "kernels", "likelihoods", "models", "optimizers",
          "quadrature", "utilities", "test_base.py", "test_base_prior.py", "test_base_training.py", "test_functions.py",
          "test_inducing_variables.py", "test_initial_value.py", "test_kullback_leiblers.py", "test_logdensities.py",
          "test_monitor.py")

CLIENT = Client(
    name="gpflow",
    version="2.9.2",
    tag="v2.9.2",
    repository="https://github.com/GPflow/GPflow",
    needs=("gpflow==2.9.2", "tf_keras==2.21.0", "tensorboard>=2.15", "matplotlib"),
    tests=(*(f"tests/gpflow/{name}" for name in _WHICH),
           "--ignore=tests/gpflow/kernels/test_broadcasting.py", "--ignore=tests/gpflow/kernels/test_coregion.py"),
    example="gpflow",
    from_source=True,
    what="without conditionals, posteriors, and broadcasting and coregionalising kernels, which take longest",
)

"""A short program with each library, in the manner of its README: the numbers that it computes.

    twofold run tests/clients/readme_programs.py [einops eagerpy dm-sonnet ...]

`run.py` runs each on TensorFlow and on twofold and compares the numbers. Random numbers are those of a seed, which are
equal on both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

_rng = np.random.RandomState(0)


def _numbers(*values: Any) -> list[float]:
    """All elements of arrays and tensors."""
    return [float(number) for value in values for number in np.ravel(np.asarray(value))]


def of_einops() -> list[float]:
    """Images are turned, put side by side, pooled and repeated; by functions, layers and in a traced function."""
    from einops import asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
    from einops.layers.tensorflow import Rearrange, Reduce

    images = tf.constant(_rng.rand(4, 6, 6, 3).astype("float32"))
    line = rearrange(images, "(b1 b2) h w c -> (b1 h) (b2 w) c", b1=2)
    pooled = reduce(images, "b (h h2) (w w2) c -> b h w c", "mean", h2=2, w2=3)
    wider = repeat(pooled, "b h w c -> b h (w two) c", two=2)
    channels = einsum(images, tf.ones([3, 2]), "b h w c, c d -> b d")
    packed, shapes = pack([images, tf.zeros([4, 5])], "b *")
    whole, _ = unpack(packed, shapes, "b *")
    model = tf.keras.Sequential([Rearrange("b h w c -> b c h w"), Reduce("b c h w -> b c", "max")])
    traced = tf.function(lambda x: rearrange(x, "b h w c -> b (c h w)"), reduce_retracing=True)
    assert parse_shape(whole, "b h w _") == {"b": 4, "h": 6, "w": 6}
    return _numbers(asnumpy(line), wider, channels, packed, model(images), traced(images), traced(images[:3]))


def of_eagerpy() -> list[float]:
    """A norm for tensors of any framework, its gradient, and a function that takes native tensors."""
    import eagerpy as ep

    def norm(x: Any) -> Any:
        x = ep.astensor(x)
        return x.square().sum(axis=-1).sqrt().raw

    x = ep.astensor(tf.constant(_rng.randn(3, 4).astype("float32")))
    loss, gradient = ep.value_and_grad(lambda x: (ep.maximum(x, 0) ** 3).sum(), x)
    order = x.clip(-0.5, 0.5).flatten().argsort()
    return _numbers(norm(x.raw), loss.raw, gradient.raw, order.raw, ep.where(x > 0, x, -x).mean(axis=0).raw)


def of_sonnet() -> list[float]:
    """A module of one's own, trained by a step in a traced function, and a recurrent core."""
    import sonnet as snt

    class Network(snt.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.hidden, self.out = snt.Linear(size, name="hidden"), snt.Linear(1, name="out")

        def __call__(self, x: Any) -> Any:
            return self.out(tf.nn.relu(self.hidden(x)))

    x = tf.constant(_rng.randn(32, 5).astype("float32"))
    y = tf.reduce_sum(x**2, 1, keepdims=True)
    network, mlp, optimizer = Network(16), snt.nets.MLP([8, 1]), snt.optimizers.Adam(0.01)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network(x) + mlp(x) - y) ** 2)
        variables = network.trainable_variables + mlp.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    losses = [step() for _ in range(5)]
    core = snt.LSTM(3)
    outputs, state = snt.dynamic_unroll(core, tf.reshape(x, [4, 8, 5]), core.initial_state(8))
    return _numbers(*losses, *network.variables, outputs, state.cell)


def of_opt_einsum() -> list[float]:
    """A contraction of many tensors along a good path, at once and as an expression; and a derivative of it."""
    from opt_einsum import contract, contract_expression

    c, i = (tf.constant(_rng.rand(*shape).astype("float32")) for shape in ((4, 4), (4, 4, 4, 4)))
    equation = "pi,qj,ijkl,rk,sl->pqrs"
    with tf.GradientTape() as tape:
        tape.watch(c)
        turned = contract(equation, c, c, i, c, c)
    expression = contract_expression(equation, *[t.shape for t in (c, c, i, c, c)])
    return _numbers(turned, tape.gradient(turned, c), expression(c, c, i, c, c, backend="tensorflow"))


def of_tensorly() -> list[float]:
    """A tensor is unfolded, multiplied along a mode, and decomposed two ways."""
    import tensorly as tl
    from tensorly.decomposition import parafac, tucker

    tl.set_backend("tensorflow")
    tensor = tl.tensor(_rng.rand(4, 5, 6))
    unfolded = tl.unfold(tensor, mode=1)
    product = tl.tenalg.mode_dot(tensor, tl.tensor(_rng.rand(3, 5)), mode=1)
    factors = parafac(tensor, rank=2, n_iter_max=20, init="svd")
    core = tucker(tensor, rank=[2, 3, 2])
    return _numbers(unfolded, product, tl.cp_to_tensor(factors), tl.tucker_to_tensor(core),
                    tl.norm(tensor - tl.cp_to_tensor(factors)))


def of_probability() -> list[float]:
    """A generalised linear model of numbers that are drawn, a mixture, and a chain of bijectors."""
    import tensorflow_probability as tfp

    tfd, tfb = tfp.distributions, tfp.bijectors
    features = tfd.Normal(loc=0.0, scale=1.0).sample(500, seed=[1, 2])
    labels = tfd.Bernoulli(logits=1.618 * features).sample(seed=[3, 4])
    weight = tf.Variable(0.0)
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(tfd.Bernoulli(logits=weight * features).log_prob(labels))
        weight.assign_sub(2.0 * tape.gradient(loss, weight))
    mixture = tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 1.0], [0.1, 0.5]))
    together = tfd.JointDistributionSequential([tfd.Exponential(2.0), lambda rate: tfd.Poisson(rate)])
    points = tf.linspace(-2.0, 2.0, 5)
    chain = tfb.Chain([tfb.Softplus(), tfb.Shift(1.0), tfb.Scale(2.0), tfb.Tanh()])
    log_normal = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp())
    return _numbers(features[:10], labels[:10], weight, loss, mixture.log_prob(points), mixture.mean(),
                    together.log_prob([0.5, 2.0]), chain.forward(points), chain.inverse(chain.forward(points)),
                    chain.forward_log_det_jacobian(points, event_ndims=0), log_normal.log_prob([0.5, 1.0, 2.0]),
                    tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)))


def of_gpflow() -> list[float]:
    """Regression by a Gaussian process, whose parameters an optimizer of SciPy finds, and a sparse one."""
    import gpflow

    x = np.linspace(0, 6, 20)[:, None]
    y = np.sin(x) + 0.1 * _rng.randn(20, 1)
    model = gpflow.models.GPR((x, y), kernel=gpflow.kernels.SquaredExponential())
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options={"maxiter": 100})
    mean, variance = model.predict_f(np.linspace(0, 7, 8)[:, None])
    sparse = gpflow.models.SVGP(gpflow.kernels.Matern32(), gpflow.likelihoods.Gaussian(0.1), x[::4].copy())
    loss = sparse.training_loss_closure((x, y))
    optimizer = tf.keras.optimizers.Adam(0.05)
    for _ in range(5):
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.apply_gradients(zip(tape.gradient(value, sparse.trainable_variables), sparse.trainable_variables,
                                      strict=True))
    return _numbers(mean, variance, model.log_marginal_likelihood(), value, sparse.predict_y(x)[0])


PROGRAMS: dict[str, Callable[[], list[float]]] = {
    "einops": of_einops, "eagerpy": of_eagerpy, "dm-sonnet": of_sonnet, "opt_einsum": of_opt_einsum,
    "tensorly": of_tensorly, "tensorflow-probability": of_probability, "gpflow": of_gpflow,
}


def main() -> None:
    """Run the programs that the arguments name and print a line of JSON: the numbers of each, or its error."""
    results: dict[str, Any] = {}
    for name in sys.argv[1:] or PROGRAMS:
        tf.random.set_seed(7)
        try:
            results[name] = PROGRAMS[name]()
        except Exception as error:  # noqa: BLE001 (what a program raises is its result)
            results[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))


if __name__ == "__main__":
    main()

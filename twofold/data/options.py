"""`tf.data.Options`: how a pipeline runs."""

from __future__ import annotations

import enum
from typing import Any

from ._parallel import cores
from ._sharding import AutoShardPolicy
from ._stream import Run

__all__ = ["AutotuneOptions", "DistributeOptions", "ExternalStatePolicy", "Options", "OptimizationOptions",
           "ThreadingOptions"]


class _Settings:
    """Attributes of fixed names, each None until it is set."""

    _names: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}. It has "
                                 f"{', '.join(self._names)}.")
        kind = type(self.__dict__.get(name))
        if issubclass(kind, _Settings) and not isinstance(value, kind):
            raise TypeError(f'Property "{name}" must be of type {kind.__name__}, got: {value!r} (type: {type(value)})')
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items()
                 if value is not None and not (isinstance(value, _Settings) and value == type(value)())}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


class ThreadingOptions(_Settings):
    """Threads: `private_threadpool_size` is how many a parallel function with AUTOTUNE uses at most.

    `max_intra_op_parallelism` is accepted, without effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.threading.private_threadpool_size = 4
    >>> options.threading
    ThreadingOptions(private_threadpool_size=4)
    """

    private_threadpool_size: int | None

    _names = ("private_threadpool_size", "max_intra_op_parallelism")


class AutotuneOptions(_Settings):
    """How many threads and buffers AUTOTUNE gives out; TensorFlow's names, accepted without effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.autotune.cpu_budget = 4
    >>> options.autotune
    AutotuneOptions(cpu_budget=4)
    """

    _names = ("enabled", "cpu_budget", "ram_budget", "autotune_algorithm", "initial_parallelism", "min_parallelism")


class DistributeOptions(_Settings):
    """How workers share data: `auto_shard_policy`, a `tf.data.experimental.AutoShardPolicy`.

    `num_devices` is accepted, without effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    >>> options.experimental_distribute.num_devices is None
    True
    """

    auto_shard_policy: AutoShardPolicy | None

    _names = ("auto_shard_policy", "num_devices")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "auto_shard_policy" and value is not None and not isinstance(value, AutoShardPolicy):
            raise TypeError(f'Property "auto_shard_policy" must be a tf.data.experimental.AutoShardPolicy; got '
                            f"{value!r}.")
        super().__setattr__(name, value)


class OptimizationOptions(_Settings):
    """Rewriting: with `apply_default_optimizations = False` no steps are fused; results are the same.

    The other names are TensorFlow's, accepted without effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.experimental_optimization.apply_default_optimizations = False
    >>> list(tf.data.Dataset.range(3).with_options(options).as_numpy_iterator())
    [np.int64(0), np.int64(1), np.int64(2)]
    """

    apply_default_optimizations: bool | None

    _names = ("apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch",
              "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization", "noop_elimination",
              "parallel_batch", "shuffle_and_repeat_fusion", "seq_interleave_prefetch", "warm_start")


class ExternalStatePolicy(enum.IntEnum):
    """What happens where a pipeline whose functions change state is written down: here nothing does that, so that the
    policy has no effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    """

    WARN = 0
    IGNORE = 1
    FAIL = 2


class Options(_Settings):
    """How a pipeline runs; see `Dataset.with_options`.

    `deterministic` says whether parallel functions keep the order of elements where they do not say so themselves;
    `threading`, `autotune`, `experimental_optimization` and `experimental_distribute` have options of their own. The
    other names are TensorFlow's, accepted without effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    _names = ("deterministic", "threading", "experimental_optimization", "autotune", "dataset_name", "framework_type",
              "experimental_deterministic", "experimental_threading", "experimental_distribute",
              "experimental_external_state_policy", "experimental_slack", "experimental_symbolic_checkpoint",
              "experimental_warm_start", "experimental_service")

    deterministic: Any
    experimental_deterministic: Any
    threading: ThreadingOptions
    experimental_threading: ThreadingOptions
    experimental_optimization: OptimizationOptions
    experimental_distribute: DistributeOptions
    autotune: AutotuneOptions

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "threading", ThreadingOptions())
        object.__setattr__(self, "experimental_threading", self.threading)
        object.__setattr__(self, "experimental_optimization", OptimizationOptions())
        object.__setattr__(self, "experimental_distribute", DistributeOptions())
        object.__setattr__(self, "autotune", AutotuneOptions())

    def merge(self, options: Options) -> Options:
        """These options, overridden by those that `options` sets.

        Args:
            options: the others.

        >>> import twofold as tf
        >>> first, second = tf.data.Options(), tf.data.Options()
        >>> first.deterministic, second.deterministic = True, False
        >>> first.merge(second).deterministic
        False
        """
        made = Options()
        for given in (self, options):
            for name, value in vars(given).items():
                if isinstance(value, _Settings):
                    for inner, setting in vars(value).items():
                        if setting is not None:
                            setattr(getattr(made, name), inner, setting)
                elif value is not None:
                    setattr(made, name, value)
        return made


def run_of(options: Options) -> Run:
    """What streams are told of the options."""
    given = (options.deterministic, options.experimental_deterministic)
    size = options.threading.private_threadpool_size
    return Run(fuse=options.experimental_optimization.apply_default_optimizations is not False,
               deterministic=next((bool(d) for d in given if d is not None), True),
               threads=max(1, min(size, 64) if size else cores()))

"""What the guide to random numbers shows of generators under strategies: where they are made, and how they are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guides.page import Page

import twofold as tf


@pytest.fixture
def guide(page: Page, tmp_path: Path) -> Iterator[Page]:
    """The page on a processor that counts as three devices, of which a strategy has two."""
    page.run("""
import tensorflow as tf

processor = tf.config.list_physical_devices("CPU")[0]
one = tf.config.experimental.VirtualDeviceConfiguration()
tf.config.experimental.set_virtual_device_configuration(processor, [one, one, one])
strategy = tf.distribute.MirroredStrategy(devices=["cpu:0", "cpu:1"])

def drawn(generator, strategy=strategy):
  values = strategy.run(lambda: generator.normal([]))
  return [float(v) for v in strategy.experimental_local_results(values)]
""")
    page.names["file"] = str(tmp_path / "generator")
    yield page
    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])


def test_a_generator_from_outside_gives_each_replica_its_own_numbers(guide: Page) -> None:
    guide.shows("""
outer = tf.random.Generator.from_seed(1)
with strategy.scope():
  numbers = drawn(outer) + drawn(outer)
print(len(set(numbers)))
""", "4")


def test_a_generator_of_the_scope_has_a_stream_for_each_replica(guide: Page) -> None:
    guide.run("""
def streams():
  with strategy.scope():
    inner = tf.random.Generator.from_seed(1)
  return drawn(inner) + drawn(inner)

numbers = streams()
""")
    guide.shows("print(len(set(numbers)), numbers == streams())", "4 True")
    guide.shows("numbers[0] == float(tf.random.Generator.from_seed(1).normal([]))", "True")


def test_replicas_can_make_generators_or_get_one_each(guide: Page) -> None:
    guide.shows("""
made = strategy.run(lambda: tf.random.Generator.from_seed(1).normal([]))
parts = tf.random.Generator.from_seed(7).split(2)
one_each = strategy.experimental_distribute_values_from_function(lambda about: parts[about.replica_id_in_sync_group])
given = strategy.run(lambda generator: generator.normal([]), args=(one_each,))
print(len({float(v) for values in (made, given) for v in values.values}))
""", "4")


def test_what_was_kept_goes_on_in_this_strategy_or_another(guide: Page) -> None:
    guide.run("""
with strategy.scope():
  inner = tf.random.Generator.from_seed(1)
  kept = tf.train.Checkpoint(my_generator=inner)
drawn(inner)
with strategy.scope():
  path = kept.write(file)
  following = drawn(inner) + drawn(inner)
  kept.restore(path)
  again = drawn(inner) + drawn(inner)

larger = tf.distribute.MirroredStrategy(devices=["cpu:0", "cpu:1", "cpu:2"])
with larger.scope():
  other = tf.random.Generator.from_seed(2)
  tf.train.Checkpoint(my_generator=other).restore(path)
alone = tf.random.Generator.from_seed(3)
tf.train.Checkpoint(my_generator=alone).restore(path)
""")
    guide.shows("print(following == again, drawn(other, larger)[:2] == following[:2], "
                "float(alone.normal([])) == following[0])", "True True True")

"""Samplers of classes: what they draw, how often, and what they expect."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

TRUE = [[0, 3], [1, 2]]
SHARES = [0.1, 0.2, 0.3, 0.4]
SAMPLERS = {
    "uniform": (lambda n, unique, seed=None: tf.random.uniform_candidate_sampler(TRUE, 2, n, unique, 4, seed),
                np.full(4, 0.25)),
    "log_uniform": (lambda n, unique, seed=None: tf.random.log_uniform_candidate_sampler(TRUE, 2, n, unique, 4, seed),
                    np.log1p(1 / (np.arange(4) + 1.0)) / np.log(5)),
    "fixed_unigram": (lambda n, unique, seed=None: tf.random.fixed_unigram_candidate_sampler(
        TRUE, 2, n, unique, 4, unigrams=SHARES, seed=seed), np.array(SHARES)),
    "squared": (lambda n, unique, seed=None: tf.nn.fixed_unigram_candidate_sampler(
        TRUE, 2, n, unique, 4, unigrams=SHARES, distortion=2.0, seed=seed), np.array(SHARES)**2 / 0.3),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_classes_come_as_often_as_expected(name):
    draw, shares = SAMPLERS[name]
    tf.random.set_seed(1)
    classes, true, sampled = draw(20000, False)
    assert classes.dtype is tf.int64
    seen = np.bincount(classes.numpy(), minlength=4) / 20000
    np.testing.assert_allclose(seen, shares, atol=5 * np.sqrt(0.25 / 20000))
    np.testing.assert_allclose(true.numpy(), 20000 * shares[np.array(TRUE)], rtol=1e-5)
    np.testing.assert_allclose(sampled.numpy(), 20000 * shares[classes.numpy()], rtol=1e-5)


@pytest.mark.parametrize("name", SAMPLERS)
def test_unique_classes_are(name):
    draw, shares = SAMPLERS[name]
    tf.random.set_seed(2)
    assert sorted(draw(4, True)[0].numpy().tolist()) == [0, 1, 2, 3]
    classes, true, _ = draw(3, True)
    assert len(set(classes.numpy().tolist())) == 3
    counts = np.empty(4)
    counts[np.array(TRUE)] = true.numpy()
    if counts[0] == np.float32(3 * shares[0]):  # there was no repetition
        np.testing.assert_allclose(counts, 3 * shares, rtol=1e-6)
    else:  # each class tells how many draws there were
        tries = np.round(np.log1p(-counts[3]) / np.log1p(-shares[3]))
        np.testing.assert_allclose(counts, -np.expm1(tries * np.log1p(-shares)), rtol=1e-5)


def test_a_seed_gives_the_same_in_a_graph_and_in_another_call():
    def drawn(call):
        tf.random.set_seed(5)
        return call()
    plain = drawn(lambda: [x.numpy() for x in SAMPLERS["log_uniform"][0](3, True, 9)])
    again = drawn(lambda: [x.numpy() for x in tf.function(lambda: SAMPLERS["log_uniform"][0](3, True, 9))()])
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_losses_draw_for_themselves():
    x, w, b = tf.ones([2, 3]), tf.Variable(tf.ones([8, 3])), tf.Variable(tf.zeros([8]))
    with tf.GradientTape() as tape:
        loss = tf.nn.sampled_softmax_loss(w, b, [[1], [2]], x, 4, 8, seed=3)
    assert loss.shape == [2]
    assert np.isfinite(loss.numpy()).all()
    assert tf.convert_to_tensor(tape.gradient(loss, w)).numpy().any()
    parts = [w[:5], w[5:]]
    drawn = tf.random.uniform_candidate_sampler([[1], [2]], 1, 4, True, 8)
    one, other = (tf.nn.nce_loss(v, b, [[1], [2]], x, 4, 8, sampled_values=drawn) for v in (w, parts))
    np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="num_sampled must be from 1 to the 4 classes"):
        tf.random.uniform_candidate_sampler(TRUE, 2, 5, True, 4)
    with pytest.raises(ValueError, match="true_classes must be"):
        tf.random.uniform_candidate_sampler(TRUE, 1, 2, True, 4)
    with pytest.raises(ValueError, match="either vocab_file or unigrams"):
        tf.random.fixed_unigram_candidate_sampler(TRUE, 2, 2, True, 4)
    with pytest.raises(ValueError, match="there are 2 frequencies"):
        tf.random.fixed_unigram_candidate_sampler(TRUE, 2, 2, True, 4, unigrams=[1.0, 2.0])


def test_frequencies_from_a_file(tmp_path):
    (tmp_path / "words").write_text("a,1\nb,c,3\n")
    drawn = tf.random.fixed_unigram_candidate_sampler([[1, 2]], 2, 8, False, 3, vocab_file=str(tmp_path / "words"),
                                                      num_reserved_ids=1)
    np.testing.assert_allclose(drawn.true_expected_count.numpy(), [[2.0, 6.0]], rtol=1e-6)

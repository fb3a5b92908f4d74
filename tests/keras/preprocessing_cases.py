"""What `tf.keras.preprocessing.text` and `.sequence` give: for `make_preprocessing_reference.py`, and for ours."""

import random

import numpy as np

TEXTS = ["The cat sat on the mat.", "The dog, the cat & a mouse!", "Nothing", "", ["A", "cat", "x"]]
SETTINGS = {
    "plain": {}, "few": {"num_words": 4}, "unknown": {"oov_token": "<o>"},
    "few unknown": {"oov_token": "<o>", "num_words": 3}, "characters": {"char_level": True, "num_words": 6},
    "cases": {"lower": False}, "seen token": {"oov_token": "cat"}, "split": {"split": "a", "filters": ""},
}


def results(text, sequence):
    """By name, what the two modules give for fixed arguments."""
    actual = {name: list(_of_tokenizer(text, settings)) for name, settings in SETTINGS.items()}
    counted = text.Tokenizer(num_words=5)
    counted.fit_on_sequences([[1, 2, 2], [2, 7]])
    actual["sequences"] = counted.sequences_to_matrix([[1, 1, 2], [7]], "tfidf").tolist()
    actual["hashes"] = text.hashing_trick("some words here some", 13, "md5")
    actual["words"] = text.text_to_word_sequence("a,b c\td E", lower=False)
    random.seed(5)
    actual["pairs"] = sequence.skipgrams([0, 1, 2, 3, 4], 6, window_size=2, seed=1)
    random.seed(6)
    actual["kept pairs"] = sequence.skipgrams([1, 2, 3, 4], 6, 1, 0.5, categorical=True, shuffle=False,
                                             sampling_table=[0.5] * 6)
    actual["chances"] = sequence.make_sampling_table(6).tolist()
    windows = sequence.TimeseriesGenerator(np.arange(20), np.arange(20) * 2, 4, sampling_rate=2, stride=2, batch_size=3,
                                           reverse=True, start_index=1, end_index=16)
    actual["windows"] = [[part.tolist() for part in windows[n]] for n in range(len(windows))]
    return actual


def _of_tokenizer(text, settings):
    made = text.Tokenizer(**settings)
    texts = TEXTS[:4] if made.char_level else TEXTS
    made.fit_on_texts(texts)
    numbers = made.texts_to_sequences([*texts, "the new cat"])
    yield numbers
    yield made.sequences_to_texts([*numbers, [99, 1]])
    yield [dict(made.word_index), dict(made.word_counts), sorted(made.index_docs.items())]
    made.fit_on_texts(["more cat"])
    yield [dict(made.word_index), dict(made.word_counts), dict(made.word_docs), sorted(made.index_docs.items())]
    yield text.tokenizer_from_json(made.to_json()).texts_to_sequences(["the cat"])
    for mode in ("binary", "count", "freq", "tfidf"):
        yield made.texts_to_matrix(texts, mode).tolist()

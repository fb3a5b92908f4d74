"""`tf.train.CheckpointManager` and the file that names the checkpoints of a folder."""

import os

import pytest

import twofold as tf


def names(paths):
    return [os.path.basename(path) for path in paths]


def make(folder, keep=3, **options):
    v = tf.Variable(0.0)
    return v, tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=keep, **options)


def test_the_latest_few_are_kept(tmp_path):
    v, manager = make(tmp_path, 2)
    assert manager.latest_checkpoint is None
    for n in range(4):
        v.assign(float(n))
        manager.save()
    assert names(manager.checkpoints) == ["ckpt-3", "ckpt-4"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]
    w, again = make(tmp_path, 2)
    assert again.restore_or_initialize() == str(tmp_path / "ckpt-4")
    assert float(w) == 3.0
    assert names([again.save()]) == ["ckpt-5"]
    assert names(again.checkpoints) == ["ckpt-4", "ckpt-5"]
    _, everything = make(tmp_path / "all", None)
    for _ in range(5):
        everything.save()
    assert len(everything.checkpoints) == 5


def test_a_folder_that_was_moved(tmp_path):
    _, manager = make(tmp_path / "a")
    manager.save()
    (tmp_path / "a").rename(tmp_path / "b")
    assert tf.train.latest_checkpoint(tmp_path / "b") == str(tmp_path / "b" / "ckpt-1")
    assert tf.train.latest_checkpoint(tmp_path / "a") is None


def test_intervals_and_numbers(tmp_path):
    step = tf.Variable(0, dtype=tf.int64)
    _, manager = make(tmp_path, step_counter=step, checkpoint_interval=5)
    assert names([manager.save()]) == ["ckpt-1"]
    step.assign(4)
    assert manager.save() is None
    assert names([manager.save(check_interval=False)]) == ["ckpt-2"]
    step.assign(9)
    assert names([manager.save(checkpoint_number=step)]) == ["ckpt-9"]
    with pytest.raises(ValueError, match="step_counter"):
        make(tmp_path, checkpoint_interval=5)
    with pytest.raises(ValueError, match="max_to_keep"):
        make(tmp_path, 0)


def test_some_are_kept_for_good(tmp_path):
    _, manager = make(tmp_path, 1, keep_checkpoint_every_n_hours=1e-9)
    for _ in range(3):
        manager.save()
    assert names(manager.checkpoints) == ["ckpt-3"]
    assert {"ckpt-1.safetensors", "ckpt-2.safetensors"} <= set(os.listdir(tmp_path))


def test_a_first_start_calls_init_fn(tmp_path):
    calls = []
    _, manager = make(tmp_path, init_fn=lambda: calls.append(1))
    assert manager.restore_or_initialize() is None
    assert calls == [1]


def test_the_state_file_is_tensorflows_and_strange_ones_are_survived(tmp_path):
    _, manager = make(tmp_path)
    manager.save()
    lines = (tmp_path / "checkpoint").read_text().splitlines()
    assert lines[:2] == ['model_checkpoint_path: "ckpt-1"', 'all_model_checkpoint_paths: "ckpt-1"']
    assert lines[2].startswith("all_model_checkpoint_timestamps: ")
    for text in ("", "nonsense", 'model_checkpoint_path: "gone"', "\x00\xff", 'model_checkpoint_path: "a'):
        (tmp_path / "checkpoint").write_text(text)
        assert tf.train.latest_checkpoint(tmp_path) is None
    odd = tmp_path / 'a "b" \\ c'
    odd.mkdir()
    path = tf.train.Checkpoint(v=tf.Variable(1)).save(odd / 'x "y"')
    assert tf.train.latest_checkpoint(odd) == path


def test_checkpoints_as_they_come(tmp_path):
    _, manager = make(tmp_path)
    manager.save()
    seen = []
    for path in tf.train.checkpoints_iterator(tmp_path, timeout=0.01):
        seen.append(os.path.basename(path))
        if len(seen) < 3:
            manager.save()
    assert seen == ["ckpt-1", "ckpt-2", "ckpt-3"]


def test_callbacks_after_writing(tmp_path):
    calls = []

    def seen(path):
        calls.append(os.path.basename(path))
        tf.train.load_checkpoint(path)  # it is there already

    options = tf.train.CheckpointOptions(experimental_write_callbacks=[lambda: calls.append("first"), seen])
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    c.write(tmp_path / "a", options)
    c.save(tmp_path / "b", options=options)
    tf.train.CheckpointManager(c, tmp_path / "m", 1).save(options=options)
    assert calls == ["first", "a", "first", "b-1", "first", "ckpt-2"]
    with pytest.raises(ValueError, match="the path or nothing"):
        tf.train.CheckpointOptions(experimental_write_callbacks=[lambda a, b: None])

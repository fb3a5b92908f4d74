"""Whole programs of TensorFlow 1, as processes: flags, `app.run`, training, checkpoints, event files."""

import os
import subprocess

import pytest
from quick.start import python

import twofold as tf

PROGRAM = '''
import os
import numpy as np
import twofold.compat.v1 as tf

tf.disable_v2_behavior()
flags = tf.app.flags
flags.DEFINE_integer("steps", 10, "how many steps")
flags.DEFINE_float("rate", 0.5, "how far they go")
flags.DEFINE_string("folder", None, "where things are written")
flags.DEFINE_bool("resume", False, "whether to go on")
flags.DEFINE_enum("kind", "sgd", ["sgd", "adam"], "which optimizer")
FLAGS = flags.FLAGS


def main(argv):
    rng = np.random.RandomState(0)
    x = rng.rand(256, 20).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[(x @ rng.randn(20, 3)).argmax(1)]
    images, labels = tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.float32, [None, 3])
    keep = tf.placeholder_with_default(1.0, [], name="keep")
    with tf.variable_scope("net"):
        hidden = tf.layers.dense(images, 16, activation=tf.nn.relu, name="hidden")
        logits = tf.layers.dense(tf.nn.dropout(hidden, keep_prob=keep), 3, name="out")
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))))
    step = tf.train.get_or_create_global_step()
    optimizer = {"sgd": tf.train.GradientDescentOptimizer, "adam": tf.train.AdamOptimizer}[FLAGS.kind](FLAGS.rate)
    train = optimizer.minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)
    merged, saver = tf.summary.merge_all(), tf.train.Saver()
    with tf.Session() as session:
        latest = tf.train.latest_checkpoint(FLAGS.folder)
        if FLAGS.resume and latest:
            saver.restore(session, latest)
        else:
            session.run(tf.global_variables_initializer())
        with tf.summary.FileWriter(FLAGS.folder) as writer:
            for n in range(FLAGS.steps):
                rows = np.arange(n * 64 % 256, n * 64 % 256 + 64)
                _, told = session.run([train, merged], {images: x[rows], labels: y[rows], keep: 0.9})
                writer.add_summary(told, session.run(step))
        saver.save(session, os.path.join(FLAGS.folder, "model"), global_step=step)
        print(session.run(step), round(float(session.run(right, {images: x, labels: y})), 3), argv[1:])


if __name__ == "__main__":
    tf.app.run()
'''


def run(path, *arguments):
    told = subprocess.run(python(str(path), *arguments), capture_output=True, text=True, timeout=300,
                          check=False)
    assert told.returncode == 0, told.stderr
    return told.stdout.split(maxsplit=2)


def test_a_program_that_trains_and_goes_on(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "out"
    folder.mkdir()
    step, right, rest = run(program, f"--folder={folder}", "--steps", "40", "--kind=adam", "--rate=0.02", "other")
    assert (step, rest.strip()) == ("40", "['other']")
    assert float(right) > 0.6
    step, again, _ = run(program, f"--folder={folder}", "--steps=80", "--kind=adam", "--rate=0.02", "--resume")
    assert step == "120"
    assert float(again) > float(right)
    assert os.path.basename(tf.train.latest_checkpoint(folder)) == "model-120"
    events = [e for name in sorted(os.listdir(folder)) if "tfevents" in name
              for e in tf.train.summary_iterator(folder / name) if e.HasField("summary")]
    assert sorted(e.step for e in events) == list(range(1, 121))
    losses = {e.step: e.summary.value[0].simple_value for e in events}
    assert losses[120] < losses[1]


def test_flags(capsys):
    flags = tf.compat.v1.flags.__complete__  # where its functions look
    known = flags.FlagValues()
    before, flags.FLAGS = flags.FLAGS, known
    try:
        flags.DEFINE_bool("deep", True, "whether it is deep")
        flags.DEFINE_list("sizes", "1,2", "sizes")
        flags.DEFINE_enum("kind", "a", ["a", "b"], "kind")
        with pytest.raises(ValueError, match="twice"):
            flags.DEFINE_string("kind", "", "again")
        for name, error in ((float("inf"), TypeError), (None, TypeError), ("", ValueError), ("a b", ValueError),
                            ("help", ValueError), ("nodeep", ValueError)):
            with pytest.raises(error, match="^DEFINE_float: "):
                flags.DEFINE_float(name, 1.0)
            assert name not in known
        with pytest.raises(TypeError, match="^DEFINE_string: The help"):
            flags.DEFINE_string("words", "", 3)
    finally:
        flags.FLAGS = before
    assert known(["program", "--nodeep", "--sizes=3, 4", "rest"]) == ["program", "rest"]
    assert known.flag_values_dict() == {"deep": False, "sizes": ["3", "4"], "kind": "a"}
    assert known(["program", "--deep=true", "--kind", "b"]) == ["program"]
    assert (known.deep, known.sizes, known.kind) == (True, ["1", "2"], "b")
    known.kind = "a"
    assert known.kind == "a"
    for wrong in (["--kind=c"], ["--deep=maybe"]):
        with pytest.raises(SystemExit):
            known(["program", *wrong])
    for name in ("none", "sizes_"):
        with pytest.raises(AttributeError, match="no flag"):
            getattr(known, name)
    capsys.readouterr()


def test_other_modules_of_programs(tmp_path, caplog):
    v1 = tf.compat.v1
    path = str(tmp_path / "x")
    with v1.gfile.Open(path, "w") as file:
        file.write("text")
    v1.gfile.Copy(path, path + "2")
    v1.gfile.Rename(path + "2", path, overwrite=True)
    assert [v1.gfile.Exists(path), v1.gfile.ListDirectory(tmp_path)] == [True, ["x"]]
    assert next(v1.gfile.Walk(tmp_path))[2] == ["x"]
    with caplog.at_level("INFO", "twofold"):
        v1.logging.info("step %d", 3)
        for _ in range(3):
            v1.logging.log_first_n(v1.logging.WARN, "seldom", 2)
    assert [r.getMessage() for r in caplog.records] == ["step 3", "seldom", "seldom"]
    before = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)
    assert v1.logging.get_verbosity() == v1.logging.ERROR
    v1.logging.set_verbosity(before)
    with pytest.raises(ValueError, match=r"tf.image.resize has the others"):
        v1.image.resize_images(tf.zeros([2, 2, 1]), [3, 3], v1.image.ResizeMethod.BICUBIC)
    assert v1.string_to_number("2.5").numpy() == 2.5
    assert v1.log1p is tf.math.log1p

"""Files and folders of `tf.io`, against Python's own; files in functions and pipelines."""

import os

import pytest

import twofold as tf

gfile = tf.io.gfile


def test_files_and_folders(tmp_path):
    folder = gfile.join(tmp_path, "a", "b")
    gfile.makedirs(folder)
    gfile.makedirs(folder)
    path = gfile.join(folder, "x.txt")
    with gfile.GFile(path, "w") as file:
        file.write("one\nzwölf\n")
        assert file.size() == 11
    with gfile.GFile(path) as file:
        assert file.readline() == "one\n"
        assert (file.tell(), file.read(2), file.readlines()) == (4, "zw", ["ölf\n"])
        file.seek(0)
        assert list(file) == ["one\n", "zwölf\n"]
    assert gfile.GFile(path, "rb").read() == (tmp_path / "a/b/x.txt").read_bytes()
    with gfile.GFile(path, "a") as file:
        file.write(b"end")
    gfile.copy(path, path + "2")
    assert gfile.glob([gfile.join(folder, "*2"), gfile.join(folder, "x.*")]) == [path + "2", path, path + "2"]
    assert gfile.listdir(folder) == ["x.txt", "x.txt2"]
    assert [gfile.exists(p) for p in (path, folder, path + "3")] == [True, True, False]
    assert [gfile.isdir(p) for p in (path, folder)] == [False, True]
    assert (gfile.stat(path).length, gfile.stat(folder).is_directory) == (14, True)
    gfile.rename(path + "2", path, overwrite=True)
    assert list(gfile.walk(tmp_path)) == list(os.walk(tmp_path))
    gfile.remove(path)
    gfile.rmtree(gfile.join(tmp_path, "a"))
    assert os.listdir(tmp_path) == []


def test_errors(tmp_path):
    here, there = str(tmp_path / "x"), str(tmp_path / "y")
    for call in (lambda: gfile.GFile(here), lambda: gfile.listdir(here), lambda: gfile.remove(here),
                 lambda: gfile.rmtree(here), lambda: gfile.stat(here), lambda: gfile.copy(here, there),
                 lambda: gfile.mkdir(here + "/z"), lambda: tf.io.read_file(here)):
        with pytest.raises(tf.errors.NotFoundError, match="No such file"):
            call()
    for path in (here, there):
        tf.io.write_file(path, path)
    for call in (lambda: gfile.copy(here, there), lambda: gfile.rename(here, there), lambda: gfile.mkdir(here)):
        with pytest.raises(tf.errors.AlreadyExistsError, match="exists"):
            call()
    with pytest.raises(tf.errors.FailedPreconditionError):
        gfile.GFile(tmp_path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="string scalar"):
        tf.io.read_file(["a", "b"])


def test_files_in_functions(tmp_path):
    @tf.function
    def copy(name):
        tf.io.write_file(tf.strings.join([name, ".copy"]), tf.strings.upper(tf.io.read_file(name)))
        return tf.io.matching_files(tf.strings.join([name, "*"]))
    path = str(tmp_path / "x")
    for text in (b"one", b"two"):
        tf.io.write_file(path, text)
        assert copy(path).numpy().tolist() == [path.encode(), f"{path}.copy".encode()]
        assert tf.io.read_file(path + ".copy").numpy() == text.upper()
    dataset = tf.data.Dataset.from_tensor_slices([path, path + ".copy"]).map(tf.io.read_file)
    assert [x.numpy() for x in dataset] == [b"two", b"TWO"]

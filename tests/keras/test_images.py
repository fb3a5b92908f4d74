"""Pictures, folders of images, and splits; expected values are what Keras 3 gave for the same input."""

from __future__ import annotations

import io
import os
import pathlib
import sys

import numpy as np
import pytest
from PIL import Image

import twofold as tf
from twofold import keras

utils = keras.utils
folder_of = utils.image_dataset_from_directory
smart_resize = keras.preprocessing.image.smart_resize


# -- pictures -------------------------------------------------------------------------------------
@pytest.fixture
def picture(tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (12, 20, 4)).astype(np.uint8)
    path = tmp_path / "picture.png"
    Image.fromarray(pixels).save(path)
    return path, pixels


def test_pictures_are_loaded(picture):
    path, pixels = picture
    for given in (path, str(path), os.fsencode(path), io.BytesIO(path.read_bytes())):
        np.testing.assert_array_equal(utils.load_img(given, "rgba"), pixels)
    assert utils.load_img(path).mode == "RGB" and utils.load_img(path, "grayscale").mode == "L"
    np.testing.assert_array_equal(utils.load_img(path), pixels[..., :3])
    assert utils.load_img(path, target_size=(5, 7)).size == (7, 5)
    nearest = np.asarray(utils.load_img(path, target_size=(6, 10)))
    np.testing.assert_array_equal(nearest, pixels[1::2, 1::2, :3])
    middle = np.asarray(utils.load_img(path, target_size=(12, 10), keep_aspect_ratio=True))
    np.testing.assert_array_equal(middle, pixels[:, 5:15, :3])
    want = Image.fromarray(pixels).convert("RGB").resize((8, 9), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(utils.load_img(path, target_size=(9, 8), interpolation="lanczos"), want)
    deep = path.with_name("deep.png")
    Image.fromarray(np.array([[300, 60000]], np.uint16)).save(deep)
    assert np.asarray(utils.load_img(deep, "grayscale")).tolist() == [[300, 60000]]
    with pytest.raises(TypeError, match="path-like"):
        utils.load_img(3)
    with pytest.raises(ValueError, match="color_mode"):
        utils.load_img(path, "cmyk")
    with pytest.raises(ValueError, match="lanczos"):
        utils.load_img(path, target_size=(1, 1), interpolation="area")


def test_arrays_of_pictures(picture):
    path, pixels = picture
    image = Image.open(path)
    actual = utils.img_to_array(image)
    assert actual.dtype == np.float32 and actual.shape == (12, 20, 4)
    np.testing.assert_array_equal(actual, pixels)
    assert utils.img_to_array(image.convert("L"), "channels_first", "uint8").shape == (1, 12, 20)
    assert utils.img_to_array(image, "channels_first").shape == (4, 12, 20)
    with pytest.raises(ValueError, match="shape"):
        utils.img_to_array(np.zeros(3))
    with pytest.raises(ValueError, match="data_format"):
        utils.img_to_array(image, "channels")


def test_pictures_of_arrays():
    x = np.linspace(-1, 3, 12).reshape(2, 2, 3)
    stretched = np.asarray(utils.array_to_img(x))
    assert stretched.ravel().tolist() == [0, 23, 46, 69, 92, 115, 139, 162, 185, 208, 231, 255]
    np.testing.assert_array_equal(utils.array_to_img(np.full((2, 2, 3), 7.9), scale=False), np.full((2, 2, 3), 7))
    assert np.asarray(utils.array_to_img(np.full((2, 2, 1), 7.0))).tolist() == [[0, 0], [0, 0]]
    assert utils.array_to_img(np.zeros((3, 4, 5)), "channels_first").size == (5, 4)
    assert utils.array_to_img(np.zeros((4, 5, 4))).mode == "RGBA"
    deep = utils.array_to_img(np.full((2, 2, 1), 70000.0), scale=False)
    assert deep.mode == "I" and deep.getpixel((0, 0)) == 70000
    for bad in (np.zeros((2, 2)), np.zeros((2, 2, 2))):
        with pytest.raises(ValueError):
            utils.array_to_img(bad)


def test_pictures_are_saved(tmp_path):
    x = np.random.RandomState(1).randint(0, 256, (6, 5, 4)).astype(np.float32)
    x[0, 0] = 0, 255, 0, 255
    utils.save_img(tmp_path / "a.png", x)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), x)
    with pytest.warns(UserWarning, match="RGBA"):
        utils.save_img(str(tmp_path / "a.jpg"), x, quality=100)
    with Image.open(tmp_path / "a.jpg") as made:
        assert made.format == "JPEG" and made.mode == "RGB"
    file = io.BytesIO()
    keras.preprocessing.image.save_img(file, x.transpose(2, 0, 1), "channels_first", file_format="bmp")
    np.testing.assert_array_equal(tf.io.decode_bmp(file.getvalue()), x)


def test_smart_resize():
    x = np.arange(24, dtype=np.uint8).reshape(4, 6, 1)
    assert smart_resize(x, (2, 2)).ravel().tolist() == [4.5, 6.5, 16.5, 18.5]
    assert smart_resize(x.astype("float32"), (3, 2), "nearest").ravel().tolist() == [2, 3, 14, 15, 20, 21]
    first = smart_resize(x.transpose(2, 0, 1), (2, 2), data_format="channels_first")
    assert first.shape == (1, 2, 2) and first.ravel().tolist() == [4.5, 6.5, 16.5, 18.5]
    assert isinstance(smart_resize(tf.constant(x[np.newaxis]), (2, 2)), tf.Tensor)
    spec = tf.TensorSpec([None, None, 1], tf.uint8)
    compiled = tf.function(lambda v: smart_resize(v, (2, 2)), input_signature=[spec])
    assert compiled.get_concrete_function().structured_outputs.shape == (2, 2, 1)
    assert compiled(x).numpy().ravel().tolist() == [4.5, 6.5, 16.5, 18.5]
    for bad in ((np.zeros((2, 2)), (1, 1)), (x, (1, 1, 1))):
        with pytest.raises(ValueError):
            smart_resize(*bad)


# -- folders --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    for name, count in (("b", 5), ("a", 4), (".hidden", 2), ("c", 3)):
        (root / name).mkdir()
        for n in range(count):
            pixels = np.full((6 + n, 8, 3), 10 * (ord(name[-1]) - ord("a")) + n, np.uint8)
            (root / name / f"{n}.png").write_bytes(tf.io.encode_png(pixels).numpy())
    (root / "a" / "sub").mkdir()
    (root / "a" / "sub" / "0.PNG").write_bytes((root / "a" / "0.png").read_bytes())
    (root / "a" / "z.png").write_bytes((root / "a" / "0.png").read_bytes())
    (root / "a" / "x.txt").write_text("no image")
    return root


def names(dataset, root):
    return [pathlib.Path(path).relative_to(root).as_posix() for path in dataset.file_paths]


def gathered(dataset):
    images, labels = zip(*[(x.numpy(), y.numpy()) for x, y in dataset], strict=True)
    return np.concatenate(images), np.concatenate(labels)


def test_orders_are_those_of_keras(folder, capsys):
    plain = folder_of(folder, image_size=4, shuffle=False)
    assert capsys.readouterr().out == "Found 14 files belonging to 3 classes.\n"
    assert plain.class_names == ["a", "b", "c"]
    assert names(plain, folder) == ["a/0.png", "a/1.png", "a/2.png", "a/3.png", "a/z.png", "a/sub/0.PNG", "b/0.png",
                                    "b/1.png", "b/2.png", "b/3.png", "b/4.png", "c/0.png", "c/1.png", "c/2.png"]
    images, labels = gathered(plain)
    assert labels.tolist() == [0] * 6 + [1] * 5 + [2] * 3 and labels.dtype == np.int32
    assert images[:, 2, 2, 1].tolist() == [0, 1, 2, 3, 0, 0, 10, 11, 12, 13, 14, 20, 21, 22]
    mixed = names(folder_of(folder, image_size=(4, 4), seed=3, verbose=False), folder)
    assert mixed == ["b/1.png", "a/z.png", "a/1.png", "a/2.png", "c/2.png", "b/0.png", "a/sub/0.PNG", "a/0.png",
                     "c/0.png", "c/1.png", "a/3.png", "b/3.png", "b/2.png", "b/4.png"]
    train, validation = folder_of(folder, image_size=(4, 4), seed=3, validation_split=0.3, subset="both")
    assert capsys.readouterr().out.endswith("Using 10 files for training.\nUsing 4 files for validation.\n")
    assert names(train, folder) == mixed[:10] and names(validation, folder) == mixed[10:]
    alone = folder_of(folder, image_size=(4, 4), seed=3, validation_split=0.3, subset="validation", verbose=False)
    assert names(alone, folder) == mixed[10:]
    _, labels = gathered(validation)
    assert labels.tolist() == [0, 1, 1, 1]
    one, other = gathered(train), gathered(train)
    assert sorted(one[1]) == sorted("abc".index(name[0]) for name in mixed[:10])
    assert (one[0][:, 0, 0, 0] // 10).tolist() == one[1].tolist() and one[1].tolist() != other[1].tolist()


@pytest.mark.parametrize("options, spec", [
    ({}, ([None, 4, 4, 3], "float32", [None], "int32")),
    ({"interpolation": "nearest"}, ([None, 4, 4, 3], "uint8", [None], "int32")),
    ({"interpolation": "nearest", "crop_to_aspect_ratio": True}, ([None, 4, 4, 3], "uint8", [None], "int32")),
    ({"pad_to_aspect_ratio": True, "color_mode": "rgba"}, ([None, 4, 4, 4], "float32", [None], "int32")),
    ({"data_format": "channels_first"}, ([None, 3, 4, 4], "float32", [None], "int32")),
    ({"label_mode": "categorical"}, ([None, 4, 4, 3], "float32", [None, 3], "float32")),
    ({"label_mode": "binary", "class_names": ["c", "a"]}, ([None, 4, 4, 3], "float32", [None, 1], "float32")),
    ({"color_mode": "grayscale", "batch_size": None}, ([4, 4, 1], "float32", [], "int32"))])
def test_what_elements_are(folder, options, spec):
    dataset = folder_of(folder, image_size=(4, 4), verbose=False, **options)
    shape, kind, labels, label_kind = spec
    assert dataset.element_spec == (tf.TensorSpec(shape, kind), tf.TensorSpec(labels, label_kind))
    image, label = next(iter(dataset))
    assert image.dtype == kind and image.shape.as_list()[1:] == shape[1:] and label.dtype == label_kind


def test_labels(folder, capsys):
    binary = folder_of(folder, label_mode="binary", class_names=["c", "a"], shuffle=False, image_size=(2, 2))
    assert binary.class_names == ["c", "a"]
    assert gathered(binary)[1].tolist() == [[0.0]] * 3 + [[1.0]] * 6
    capsys.readouterr()
    for options in ({"labels": None}, {"label_mode": None}):
        alone = folder_of(folder, image_size=(2, 2), **options)
        assert capsys.readouterr().out == "Found 16 files.\n"  # as in Keras, what is hidden as well
        assert alone.class_names is None and alone.element_spec == tf.TensorSpec([None, 2, 2, 3], tf.float32)
    given = folder_of(folder, labels=[5, 7] * 8, shuffle=False, image_size=(2, 2), verbose=False)
    assert given.class_names == ["5", "7"] and gathered(given)[1].tolist() == [5, 7] * 8


@pytest.mark.parametrize("options, said", [
    ({"labels": "given"}, "labels"), ({"labels": [1]}, "lengths"), ({"labels": [1] * 16, "class_names": ["a"]}, "only"),
    ({"label_mode": "ints"}, "label_mode"), ({"label_mode": "binary"}, "exactly 2"), ({"class_names": ["d"]}, "match"),
    ({"color_mode": "grey"}, "color_mode"), ({"image_size": (1, 2, 3)}, "image_size"), ({"format": "grain"}, "format"),
    ({"interpolation": "linear"}, "interpolation"), ({"subset": "training"}, "validation_split"),
    ({"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True}, "Only one"), ({"data_format": "x"}, "data_format"),
    ({"validation_split": 0.2}, "subset"), ({"validation_split": 1.5, "subset": "both"}, "between"),
    ({"validation_split": 0.2, "subset": "both"}, "seed"), ({"validation_split": 0.2, "subset": "test"}, "subset"),
    ({"validation_split": 0.01, "subset": "validation", "seed": 1}, "No images")])
def test_wrong_arguments(folder, options, said):
    with pytest.raises(ValueError, match=said):
        folder_of(folder, verbose=False, **options)


def test_a_model_learns_from_a_folder(folder):
    dataset = folder_of(folder, image_size=(4, 4), batch_size=4, verbose=False, seed=1)
    model = keras.Sequential([keras.layers.Rescaling(1 / 25), keras.layers.Flatten(), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert len(model.fit(dataset, epochs=2, verbose=0).history["loss"]) == 2


def test_damaged_images_are_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.png").write_bytes(b"no image")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no file of an image"):
        list(folder_of(tmp_path, verbose=False))


def test_without_pillow(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    for call in (lambda: utils.load_img("x.png"), lambda: utils.array_to_img(np.zeros((1, 1, 1)))):
        with pytest.raises(ImportError, match=r"twofold\[image\]"):
            call()
    assert len(list(folder_of(folder, image_size=(2, 2), batch_size=None, verbose=False))) == 14


# -- splits ---------------------------------------------------------------------------------------
def test_splits_are_those_of_keras():
    left, right = utils.split_dataset(np.arange(10), 0.3, shuffle=True, seed=4)
    assert list(left.as_numpy_iterator()) == [8, 2, 0] and list(right.as_numpy_iterator()) == [7, 6, 9, 5, 1, 4, 3]
    left, right = utils.split_dataset(tf.data.Dataset.range(10).batch(3), left_size=4)
    assert [x.tolist() for x in left.as_numpy_iterator()] == [[0, 1, 2], [3]]
    assert [x.tolist() for x in right.as_numpy_iterator()] == [[4, 5, 6], [7, 8, 9]]
    left, right = utils.split_dataset((np.arange(4), np.arange(4) * 2), left_size=0.5, right_size=1)
    assert [(int(a), int(b)) for a, b in left] == [(0, 0), (1, 2)] and [(int(a), int(b)) for a, b in right] == [(3, 6)]


@pytest.mark.parametrize("sizes", [(None, None), (0.0, None), (1.0, None), (0, 0), (10, None), (0.7, 0.7), (None, 11),
                                   (2, 0.9), (-1, None), (0.01, None)])
def test_splits_that_cannot_be(sizes):
    with pytest.raises(ValueError):
        utils.split_dataset(np.arange(10), *sizes)
    with pytest.raises(TypeError):
        utils.split_dataset(np.arange(10), "half")

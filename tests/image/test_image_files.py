"""Images in files: against what TensorFlow 2.21 decodes (`make_files_reference.py`) and Pillow, and hostile files."""

import contextlib
import io
import json
import struct
import tracemalloc
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import twofold as tf
from twofold._formats import png as _png

KNOWN = np.load(Path(__file__).parent / "data" / "files.npz")
FILES = {key[5:]: KNOWN[key].tobytes() for key in KNOWN.files if key.startswith("file ")}
RESULTS = [key for key in KNOWN.files if not key.startswith("file ")]
# libpng fills the alpha of pixels below 8 bits with too few bits; here they are opaque.
STRETCHED = ("png_bits", "png_two_bits", "png_four_bits")
RANDOM = np.random.RandomState(3)


def kept(pixels, kind, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_against_tensorflow(name):
    for key in RESULTS:
        function, file, arguments = key.split(" ", 2)
        if file == name:
            check(function, json.loads(arguments), KNOWN[key], key)


def check(function, arguments, want, key):
    name = key.split(" ")[1]
    call = getattr(tf.io, function)
    if want.dtype.kind == "U":
        with pytest.raises(tf.errors.InvalidArgumentError):
            call(FILES[name], **arguments)
        return
    actual = call(FILES[name], **arguments).numpy()
    assert actual.dtype == want.dtype and actual.shape == want.shape, key
    if name in STRETCHED and arguments.get("channels") == 4:
        assert (actual[..., 3] == np.iinfo(actual.dtype).max).all()
        actual, want = actual[..., :3], want[..., :3]
    if function == "decode_and_crop_jpeg":  # there the part's last column has colours of the part alone
        np.testing.assert_allclose(actual[:, -1].astype(int), want[:, -1].astype(int), rtol=0, atol=4)
        actual, want = actual[:, :-1], want[:, :-1]
    # what TensorFlow uses where it cannot be told otherwise is quicker and less exact
    quick = name.startswith("jpeg") and function not in ("decode_jpeg", "decode_and_crop_jpeg", "extract_jpeg_shape")
    if quick:
        unit = 1 if want.dtype.kind == "f" else np.iinfo(want.dtype).max // 255 + 1
        np.testing.assert_allclose(actual.astype(float), want.astype(float), rtol=0, atol=4 * unit, err_msg=key)
    else:
        np.testing.assert_array_equal(actual, want, key)


def test_all_results_are_tested():
    assert len(FILES) > 30 and len(RESULTS) > 250
    assert {key.split(" ")[1] for key in RESULTS} == set(FILES)


# -- PNG ------------------------------------------------------------------------------------------
def filtered(rows, ahead, kinds):
    """Rows of bytes with PNG's filters, by their definition."""
    before, out = np.zeros(rows.shape[1], int), []
    for row, kind in zip(rows.astype(int), kinds, strict=True):
        left = np.concatenate([np.zeros(ahead, int), row[:-ahead]])
        corner = np.concatenate([np.zeros(ahead, int), before[:-ahead]])
        guess = left + before - corner
        apart = np.abs(np.stack([left, before, corner]) - guess)
        paeth = np.stack([left, before, corner])[apart.argmin(0), np.arange(len(row))]
        predicted = [0 * row, left, before, (left + before) // 2, paeth][kind]
        out.append(bytes([kind]) + ((row - predicted) % 256).astype(np.uint8).tobytes())
        before = row
    return b"".join(out)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width, height, depth, colour, rows, *before, interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return _png.MAGIC + b"".join([chunk(b"IHDR", header), *before, chunk(b"IDAT", zlib.compress(rows)),
                                  chunk(b"IEND", b"")])


@pytest.mark.parametrize("colour, depth, channels", [
    (0, 8, 1), (4, 8, 2), (2, 8, 3), (6, 8, 4), (0, 16, 1), (4, 16, 2), (2, 16, 3), (6, 16, 4)])
def test_filters(colour, depth, channels):
    pixels = RANDOM.randint(0, 1 << depth, (25, 7, channels)).astype(np.uint8 if depth == 8 else np.uint16)
    ahead = channels * depth // 8
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(25, -1).view(np.uint8)
    data = png_of(7, 25, depth, colour, filtered(rows, ahead, [(3 * n) % 5 for n in range(25)]))
    np.testing.assert_array_equal(_png.decode(data).pixels, pixels)
    if depth == 8:
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))).reshape(pixels.shape), pixels)
    with pytest.raises(ValueError, match="row 3 has a filter"):
        size = 1 + rows.shape[1]
        bad = bytearray(filtered(rows, ahead, [0] * 25))
        bad[3 * size] = 5
        _png.decode(png_of(7, 25, depth, colour, bytes(bad)))


def test_what_is_written_is_read():
    for kind in (np.uint8, np.uint16):
        for channels in (1, 2, 3, 4):
            pixels = RANDOM.randint(0, np.iinfo(kind).max, (5, 300, channels)).astype(kind)
            np.testing.assert_array_equal(tf.io.decode_png(tf.io.encode_png(pixels), dtype=kind), pixels)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_files_of_pillow(mode):
    image = Image.fromarray(RANDOM.randint(0, 256, (33, 47, 4)).astype(np.uint8))
    image = image if mode == "RGBA" else image.convert("RGB").convert(mode)
    file = io.BytesIO()
    image.save(file, "PNG")
    shown = {"1": "L", "P": "RGB"}.get(mode, mode)
    want = np.asarray(image.convert(shown)).reshape(33, 47, -1)
    np.testing.assert_array_equal(tf.io.decode_png(file.getvalue()), want)


def test_damage_is_seen():
    """Whatever byte is wrong, and wherever a file ends: an error of ours, or, in what means nothing, the image."""
    data = bytearray(FILES["png_listed_clear"])
    whole = _png.decode(bytes(data))
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 0x41
        try:
            actual = _png.decode(bytes(changed))
        except ValueError:
            continue
        np.testing.assert_array_equal(actual.pixels, whole.pixels)
    for end in range(0, len(data), 7):
        with pytest.raises(ValueError):
            _png.decode(bytes(data[:end]))


@pytest.mark.parametrize("name", ["gif_moving", "jpeg_rgb", "bmp_grey", "jpeg_steps", "gif_clear"])
def test_damage_is_an_error_or_an_image(name):
    data = FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at in [*range(64), *range(64, len(data), max(1, len(data) // 60))]:
            for changed in (data[:at], data[:at] + bytes([data[at] ^ 0xA5]) + data[at + 1:]):
                with contextlib.suppress(tf.errors.InvalidArgumentError):
                    assert tf.io.decode_image(changed).dtype == tf.uint8


@pytest.mark.parametrize("data, said", [
    (png_of(60_000, 8_000, 8, 6, b"\0" * 9), "cannot hold an image"),
    (png_of(1 << 30, 1 << 30, 8, 6, b""), "too large"),
    (png_of(0, 4, 8, 6, b""), "cannot be"),
    (png_of(4, 4, 3, 0, b""), "colour type 0 with 3 bits"),
    (png_of(2, 1, 8, 3, b"\0\0\1", chunk(b"PLTE", b"abc")), "no colour 1"),
    (png_of(2, 1, 8, 3, b"\0\0\0"), "no palette"),
    (png_of(2, 2, 8, 0, b"\0\0\0"), "incomplete"),
    (png_of(2, 1, 8, 0, b"\0\0\0", chunk(b"NEWS", b"")), "NEWS"),
    (png_of(2, 1, 8, 0, b"\0\0\0", chunk(b"IHDR", b"")), "one chunk IHDR"),
    (png_of(2, 1, 8, 0, b"\0\0\0", interlaced=2), "interlacing 2"),
    (b"\xff\xd8\xff\xc0\0\x11\x08\x1f\xff\xff\xff\x03" + bytes(60), "cannot hold"),
    (b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03" + bytes(60), "2\\*\\*29"),
    (b"\xff\xd8\xff\xd9", "no frame"),
    (b"GIF89a" + b"\xff\xff\xff\xff\0\0\0" + (b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 128) + bytes(8)) + b";",
     "too large"),
    (b"GIF89a" + bytes(7) + b";", "no frames"),
    (b"BM" + bytes(8) + struct.pack("<IIiiHHI", 54, 40, 1 << 30, 1 << 30, 1, 24, 0), "cannot be read"),
    (b"BM" + bytes(8) + struct.pack("<IIiiHHI", 54, 40, 9000, -9000, 1, 24, 0), "incomplete"),
    (b"BM", "incomplete"), (b"", "empty"), (b"no image at all", "known here"),
])
def test_hostile_files(data, said):
    """They are refused, and no memory is taken for what they promise."""
    tracemalloc.start()
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.io.decode_image(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_bombs_take_no_more_than_their_size():
    rows = zlib.compress(bytes(50_000_000), 9)  # 50 MB in 50 kB, for an image of 100 bytes
    data = png_of(10, 10, 8, 0, b"").replace(chunk(b"IDAT", zlib.compress(b"")), chunk(b"IDAT", rows))
    tracemalloc.start()
    assert tf.io.decode_png(data).shape == (10, 10, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


# -- arguments, graphs, pipelines -----------------------------------------------------------------
@pytest.mark.parametrize("call", [
    lambda: tf.io.decode_png(FILES["png_rgb"], 2), lambda: tf.io.decode_png([FILES["png_rgb"]]),
    lambda: tf.io.decode_png(FILES["png_rgb"], dtype=tf.float32), lambda: tf.io.decode_image(FILES["png_rgb"], 5),
    lambda: tf.io.decode_jpeg(FILES["jpeg_rgb"], ratio=3), lambda: tf.io.decode_bmp(FILES["bmp_rgb"], 1),
    lambda: tf.io.decode_jpeg(FILES["jpeg_rgb"], 4), lambda: tf.io.decode_jpeg(FILES["jpeg_rgb"][:-200]),
    lambda: tf.io.decode_jpeg(FILES["jpeg_rgb"], dct_method="x"),
    lambda: tf.io.decode_and_crop_jpeg(FILES["jpeg_rgb"], [0, 0, 28, 2]),
    lambda: tf.io.decode_and_crop_jpeg(FILES["jpeg_rgb"], [0, 0, 0, 2]),
    lambda: tf.io.encode_jpeg(tf.zeros([2, 2, 4], tf.uint8)), lambda: tf.io.encode_jpeg(tf.zeros([2, 2, 3])),
    lambda: tf.io.encode_jpeg(tf.zeros([2, 2, 3], tf.uint8), quality=101),
    lambda: tf.io.encode_jpeg(tf.zeros([2, 2, 3], tf.uint8), "grayscale"),
    lambda: tf.io.encode_jpeg(tf.zeros([0, 2, 3], tf.uint8)),
    lambda: tf.io.encode_jpeg(tf.zeros([2, 2, 3], tf.uint8), density_unit="m")])
def test_wrong_arguments(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
    with pytest.raises(TypeError):
        tf.io.decode_png(3)
    with pytest.raises(tf.errors.UnimplementedError):
        tf.io.decode_jpeg(FILES["jpeg_rgb"], fancy_upscaling=False)


def test_incomplete_files_recovered():
    data = kept(RANDOM.randint(0, 256, (64, 48, 3)).astype(np.uint8), "JPEG")
    whole, part = tf.io.decode_jpeg(data).numpy(), tf.io.decode_jpeg(data[:-400], try_recover_truncated=True).numpy()
    assert part.shape == whole.shape
    np.testing.assert_array_equal(part[:8, :8], whole[:8, :8])
    assert np.ptp(part[-4:, -4:]) == 0 < np.ptp(whole[-4:, -4:])


def test_shapes_in_graphs():
    seen = {}

    @tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.string)])
    def run(png, gif):
        actual = (tf.io.decode_png(png, 3), tf.image.decode_image(png, expand_animations=False), tf.io.decode_gif(gif),
                 tf.io.decode_image(gif))
        seen.update(enumerate(each.shape for each in actual))
        actual[3].set_shape([None, None, None, 3])
        return actual

    actual = run(FILES["png_rgba"], FILES["gif_moving"])
    assert [s.rank and s.as_list() for s in seen.values()] == [
        [None, None, 3], [None, None, None], [None, None, None, 3], None]
    for one, other in zip(actual, (FILES["png_rgba"], FILES["png_rgba"], FILES["gif_moving"], FILES["gif_moving"]),
                          strict=True):
        want = tf.io.decode_image(other).numpy()
        np.testing.assert_array_equal(one, want[..., :one.shape[-1]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(b"no image", FILES["gif_moving"])


@pytest.mark.parametrize("threads", [None, 4, tf.data.AUTOTUNE])
def test_pipelines(tmp_path, threads):
    for n in range(20):
        data = kept(np.full((6, 5 + n % 3, 3), 10 * n, np.uint8), ("PNG", "JPEG", "BMP", "GIF")[n % 4])
        (tmp_path / f"{n:02}.img").write_bytes(data)

    def load(path):
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        return tf.image.resize(tf.cast(image, tf.float32), [4, 4])
    files = tf.data.Dataset.list_files(str(tmp_path / "*.img"), shuffle=False)
    actual = np.concatenate(list(files.map(load, num_parallel_calls=threads).batch(8).as_numpy_iterator()))
    assert actual.shape == (20, 4, 4, 3)
    np.testing.assert_allclose(actual[:, 1, 1, 0], np.arange(20) * 10, atol=1)


# -- JPEG files written ---------------------------------------------------------------------------
def test_jpeg_files():
    photo = tf.io.decode_jpeg(FILES["jpeg_full"]).numpy()
    sizes = {}
    for quality in (10, 50, 95, 100):
        data = tf.io.encode_jpeg(photo, quality=quality).numpy()
        sizes[quality] = len(data)
        shown = np.asarray(Image.open(io.BytesIO(data)))
        np.testing.assert_array_equal(tf.io.decode_jpeg(data), shown)
    assert sizes[10] < sizes[50] < sizes[95] < sizes[100]
    best = tf.io.encode_jpeg(photo, quality=100, chroma_downsampling=False).numpy()
    assert np.abs(tf.io.decode_jpeg(best).numpy().astype(int) - photo).max() <= 3
    image = Image.open(io.BytesIO(tf.io.encode_jpeg(
        photo, progressive=True, optimize_size=True, x_density=100, y_density=50, xmp_metadata="<x/>").numpy()))
    assert image.info["progressive"] and image.info["dpi"] == (100, 50) and image.info["xmp"] == b"<x/>"
    metric = Image.open(io.BytesIO(tf.io.encode_jpeg(photo, density_unit="cm", x_density=10, y_density=20).numpy()))
    assert metric.info["jfif_unit"] == 2 and metric.info["jfif_density"] == (10, 20)
    grey = tf.image.encode_jpeg(photo[..., :1], format="grayscale", quality=0)
    assert tf.io.decode_jpeg(grey).shape == (27, 35, 1)
    assert tf.io.is_jpeg([grey.numpy(), b"", FILES["png_rgb"]]).numpy().tolist() == [True, False, False]


def test_qualities():
    photo = tf.io.decode_jpeg(FILES["jpeg_full"])
    want = tf.io.decode_jpeg(tf.io.encode_jpeg(photo, quality=20))
    np.testing.assert_array_equal(tf.image.adjust_jpeg_quality(photo, 20), want)
    floats = tf.image.adjust_jpeg_quality(tf.image.convert_image_dtype(photo, tf.float32), tf.constant(20))
    assert floats.dtype == tf.float32
    np.testing.assert_allclose(floats.numpy() * 255, want.numpy(), atol=1.01)
    compiled = tf.function(lambda x: tf.image.stateless_random_jpeg_quality(x, 1, 100, [1, 2]))
    np.testing.assert_array_equal(compiled(photo), tf.image.stateless_random_jpeg_quality(photo, 1, 100, [1, 2]))
    assert tf.image.random_jpeg_quality(photo, 10, 11).shape == photo.shape
    for low, high in ((5, 5), (-1, 5), (1, 101)):
        with pytest.raises(ValueError):
            tf.image.random_jpeg_quality(photo, low, high)


def test_without_pillow(monkeypatch):
    import importlib
    import sys
    for name in [n for n in sys.modules if n.split(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    real = importlib.import_module

    def missing(name, *rest):
        if name.split(".")[0] == "PIL":
            raise ImportError(name)
        return real(name, *rest)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"twofold\[image\]"):
        tf.io.decode_jpeg(FILES["jpeg_rgb"])
    assert tf.io.decode_png(FILES["png_rgb"]).shape == (7, 9, 3)
    assert tf.io.decode_bmp(FILES["bmp_rgb"]).shape == (7, 9, 3)


@pytest.mark.parametrize("inside", [False, True])
def test_the_quality_of_a_jpeg_is_any_integer(inside):
    image = tf.cast(tf.reshape(tf.range(192), [8, 8, 3]), tf.uint8)
    want = tf.image.adjust_jpeg_quality(image, 30).numpy()
    for quality in (30, np.array(30), np.int8(30), *(tf.constant(30, d) for d in ("int32", "int64", "uint8"))):
        def call(quality=quality):
            return tf.image.adjust_jpeg_quality(image, quality)
        np.testing.assert_array_equal((tf.function(call) if inside else call)(), want)
    for quality in (30.0, tf.constant([30]), "30", 101, -1):
        def call(quality=quality):
            return tf.image.adjust_jpeg_quality(image, quality)
        with pytest.raises(tf.errors.InvalidArgumentError, match="quality must be"):
            (tf.function(call) if inside else call)()


def test_webp_files_are_what_was_kept():
    rgb = RANDOM.randint(0, 256, (2, 7, 9, 3)).astype(np.uint8)
    rgba = np.concatenate([rgb, RANDOM.randint(1, 256, (2, 7, 9, 1)).astype(np.uint8)], axis=3)
    for pixels in (rgb, rgba):
        still = kept(pixels[0], "WEBP", lossless=True, exact=True)
        moving = kept(pixels[0], "WEBP", lossless=True, exact=True, save_all=True,
                      append_images=[Image.fromarray(pixels[1])])
        np.testing.assert_array_equal(tf.image.decode_webp(still), pixels[:1])
        np.testing.assert_array_equal(tf.function(tf.image.decode_webp)(tf.constant(still)), pixels[:1])
        np.testing.assert_array_equal(tf.image.decode_webp(moving, channels=pixels.shape[3]), pixels)
    for data, settings, said in ((still, {"channels": 3}, "does not match"), (b"RIFF0000WEBPVP8L", {}, "damaged"),
                                 (b"abc", {}, "no WebP file"), (still, {"dtype": tf.float32}, "dtype must be uint8")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            tf.image.decode_webp(data, **settings)

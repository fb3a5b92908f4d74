"""Write `data/files.npz`: files of images that Pillow made, and what TensorFlow decodes from them.

    python tests/image/make_files_reference.py

Run where TensorFlow and Pillow are installed. `file NAME` is a file; `FUNCTION NAME ARGUMENTS` is a result, with the
arguments as JSON.
"""

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

RANDOM = np.random.RandomState(0)
FILES, RESULTS = {}, {}


def saved(pixels, kind, mode=None, **options):
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    file = io.BytesIO()
    (image.convert(mode) if mode else image).save(file, kind, **options)
    return file.getvalue()


def smooth(*shape):
    """Pixels that filters and JPEG have something to do with."""
    return np.cumsum(RANDOM.randint(-9, 10, shape), axis=1).astype(np.uint8)


def laid_out(depth, colour, rows, interlaced=0, palette=b"", clear=b""):
    """A PNG file of rows of bytes that are filtered by 0."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, lines = rows
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))]
    parts += [chunk(b"PLTE", palette)] if palette else []
    parts += [chunk(b"tRNS", clear)] if clear else []
    parts += [chunk(b"IDAT", zlib.compress(b"".join(b"\0" + line for line in lines))), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def adam7(pixels):
    """The rows of an interlaced file of bytes [height, width, channels]."""
    for x, y, across, down in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                               (0, 1, 1, 2)):
        part = pixels[y::down, x::across]
        if part.size:
            yield from (np.ascontiguousarray(row).tobytes() for row in part)


def make_files():
    rgb, rgba, grey, both = smooth(7, 9, 3), smooth(7, 9, 4), smooth(7, 9), smooth(7, 9, 2)
    deep = RANDOM.randint(0, 65536, (5, 6, 3)).astype(np.uint16)
    few = Image.fromarray(smooth(12, 13, 3)).quantize(100)
    png = {"rgb": saved(rgb, "PNG"), "rgba": saved(rgba, "PNG"), "grey": saved(grey, "PNG"), "both": saved(both, "PNG"),
           "deep": tf.io.encode_png(deep).numpy(), "deep_grey": tf.io.encode_png(deep[..., :1]).numpy(),
           "deep_both": tf.io.encode_png(deep[..., :2]).numpy(), "bits": saved(grey > 128, "PNG"),
           "listed": saved(few, "PNG"), "listed_clear": saved(few, "PNG", transparency=bytes(range(0, 160, 2))),
           "grey_clear": saved(grey, "PNG", transparency=int(grey[2, 3])),
           "rgb_clear": saved(rgb, "PNG", transparency=tuple(map(int, rgb[2, 3]))),
           "woven": laid_out(8, 2, (7, 9, list(adam7(rgb))), 1), "woven_one": laid_out(8, 0, (1, 1, [b"\x37"]), 1),
           "woven_deep": laid_out(16, 6, (5, 6, list(adam7(np.dstack([deep, deep[..., :1]]).astype(">u2")))), 1),
           "two_bits": laid_out(2, 0, (2, 5, [b"\x1b\x40", b"\xe4\xc0"])),
           "four_bits": laid_out(4, 3, (2, 3, [b"\x01\x20", b"\x21\x00"]), palette=bytes(range(60, 69))),
           "large": saved(smooth(24, 30, 3), "PNG")}
    still = Image.fromarray(smooth(8, 10, 3)).quantize(16)
    moving = [Image.fromarray(smooth(8, 10, 3)).quantize(16) for _ in range(3)]
    patch = np.array(moving[0].convert("RGB"))
    patches = []
    for n in range(4):
        patch = patch.copy()
        patch[n:n + 3, 2 * n:2 * n + 3] = 40 * n
        patches.append(Image.fromarray(patch).quantize(32))
    clear = Image.fromarray(smooth(8, 10)).convert("P")
    gif = {"still": saved(still, "GIF"), "woven": saved(still, "GIF", interlace=1),
           "moving": saved(moving[0], "GIF", save_all=True, append_images=moving[1:]),
           "patches": saved(patches[0], "GIF", save_all=True, append_images=patches[1:], disposal=1),
           "disposed": saved(patches[0], "GIF", save_all=True, append_images=patches[1:], disposal=2),
           "clear": saved(clear, "GIF", transparency=int(np.asarray(clear)[1, 1]))}
    bmp = {"rgb": saved(rgb, "BMP"), "rgba": saved(rgba, "BMP"), "grey": saved(grey, "BMP")}
    top = bytearray(bmp["rgb"])
    top[22:26] = struct.pack("<i", -7)
    bmp["down"] = bytes(top)
    photo = np.clip(np.add.outer(np.arange(27) * 5, np.arange(35) * 3)[..., None] + smooth(27, 35, 3) // 8, 0, 255)
    photo = photo.astype(np.uint8)
    jpeg = {"rgb": saved(photo, "JPEG", quality=90), "grey": saved(photo[..., 0], "JPEG"),
            "full": saved(photo, "JPEG", subsampling=0), "steps": saved(photo, "JPEG", progressive=True),
            "inks": saved(Image.fromarray(np.dstack([photo, photo[..., :1]]), "CMYK"), "JPEG", quality=95)}
    for kind, files in (("png", png), ("gif", gif), ("bmp", bmp), ("jpeg", jpeg)):
        FILES.update({f"{kind}_{name}": data for name, data in files.items()})


def result(function, name, **arguments):
    said = {k: getattr(v, "name", v) for k, v in arguments.items()}
    key = f"{function} {name} " + json.dumps(said)
    if "jpeg_" in name and "jpeg" in function and function != "extract_jpeg_shape":
        arguments["dct_method"] = "INTEGER_ACCURATE"
    try:
        RESULTS[key] = getattr(tf.io, function)(FILES[name], **arguments).numpy()
    except tf.errors.InvalidArgumentError:
        RESULTS[key] = np.array("refused")


def make_results():
    for name in FILES:
        kind = name.split("_")[0]
        for channels in (0, 1, 3, 4):
            result(f"decode_{kind}", name, **({} if kind == "gif" else {"channels": channels}))
        if name != "bmp_down":  # which ends TensorFlow's process
            result("decode_image", name, expand_animations=False)
        if kind == "png":
            for channels in (0, 1, 4):
                result("decode_png", name, dtype=tf.uint16, channels=channels)
        if kind == "jpeg":
            for ratio in (2, 4, 8):
                result("decode_jpeg", name, ratio=ratio)
            result("decode_and_crop_jpeg", name, crop_window=[5, 7, 20, 11])
            result("extract_jpeg_shape", name)
    for name in ("png_rgb", "png_rgba", "png_deep", "gif_still", "gif_moving", "bmp_rgb", "jpeg_grey"):
        for dtype in (tf.uint8, tf.uint16, tf.float32, tf.int32, tf.float16):
            result("decode_image", name, dtype=dtype)
        for channels in (1, 3, 4):
            result("decode_image", name, channels=channels)
        for function in ("decode_png", "decode_jpeg", "decode_bmp", "decode_gif"):
            result(function, name)


make_files()
make_results()
path = Path(__file__).parent / "data" / "files.npz"
np.savez_compressed(path, **{f"file {k}": np.frombuffer(v, np.uint8) for k, v in FILES.items()}, **RESULTS)
print(f"{path}: {path.stat().st_size} bytes, {len(RESULTS)} results")

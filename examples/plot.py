"""Curves without a plotting library: in the terminal by block characters, and as a PNG picture.

A curve is a list of numbers, drawn against their place in the list; numbers above zero on a logarithmic scale where
nothing else is said. For the programs in this folder.
"""

import math
from pathlib import Path

import numpy as np

import twofold as tf

__all__ = ["in_terminal", "png"]

# Letters of 5 by 7 dots, each row as a number of five bits.
_FONT = {
    "0": (14, 17, 19, 21, 25, 17, 14), "1": (4, 12, 4, 4, 4, 4, 14), "2": (14, 17, 1, 2, 4, 8, 31),
    "3": (31, 2, 4, 2, 1, 17, 14), "4": (2, 6, 10, 18, 31, 2, 2), "5": (31, 16, 30, 1, 1, 17, 14),
    "6": (6, 8, 16, 30, 17, 17, 14), "7": (31, 1, 2, 4, 8, 8, 8), "8": (14, 17, 17, 14, 17, 17, 14),
    "9": (14, 17, 17, 15, 1, 2, 12), ".": (0, 0, 0, 0, 0, 12, 12), "-": (0, 0, 0, 31, 0, 0, 0),
    "a": (0, 0, 14, 1, 15, 17, 15), "c": (0, 0, 14, 16, 16, 17, 14), "e": (0, 0, 14, 17, 31, 16, 14),
    "f": (6, 9, 8, 28, 8, 8, 8), "g": (0, 15, 17, 17, 15, 1, 14), "h": (16, 16, 22, 25, 17, 17, 17),
    "i": (4, 0, 12, 4, 4, 4, 14), "l": (12, 4, 4, 4, 4, 4, 14), "m": (0, 0, 26, 21, 21, 17, 17),
    "n": (0, 0, 22, 25, 17, 17, 17), "o": (0, 0, 14, 17, 17, 17, 14), "p": (0, 0, 30, 17, 30, 16, 16),
    "r": (0, 0, 22, 25, 16, 16, 16), "s": (0, 0, 14, 16, 14, 1, 30), "t": (8, 8, 28, 8, 8, 9, 6),
    "v": (0, 0, 17, 17, 17, 10, 4), "b": (16, 16, 30, 17, 17, 17, 30), "d": (1, 1, 15, 17, 17, 17, 15),
    "k": (16, 16, 18, 20, 24, 20, 18), "u": (0, 0, 17, 17, 17, 19, 13), "w": (0, 0, 17, 17, 21, 21, 10),
    "y": (0, 0, 17, 17, 15, 1, 14), ",": (0, 0, 0, 0, 12, 4, 8), " ": (0, 0, 0, 0, 0, 0, 0),
}
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def in_terminal(curve, width=64, height=10):
    """The lines of a chart: a column for each stretch of the curve, eight steps to a line."""
    logs = np.log(np.asarray(curve, float))
    columns = np.array([part.mean() for part in np.array_split(logs, min(width, len(logs)))])
    low, high = columns.min(), columns.max()
    eighths = np.rint((columns - low) / max(high - low, 1e-12) * (height * 8 - 1)).astype(int) + 1
    wide = max(width // len(columns), 1)
    lines = []
    for row in range(height - 1, -1, -1):
        label = f"{math.exp(low + (high - low) * (row + 0.5) / height):8.3g}"
        bars = "".join(_EIGHTHS[min(max(n - 8 * row, 0), 8)] * wide for n in eighths)
        lines.append(f"{label} |{bars.rstrip()}")
    return lines


def png(path, fine, coarse, title, below, size=(900, 480), scale=math.log10, first=0):
    """Write a picture of two curves over the same stretch, a fine one in the background and a coarse one on top.

    Args:
        path: the file.
        fine, coarse: their numbers, each in the middle of its part of the stretch.
        title, below: what stands over the chart, and under its axis; of the letters that this module knows.
        size: width and height in pixels.
        scale: `math.log10`, or `float` for a scale as the numbers are.
        first: what stands under the beginning of the axis.
    """
    width, height = size
    picture = np.full((height, width, 3), 255.0)
    box = (92, 44, width - 24, height - 56)  # left, top, right, bottom
    ends = min(min(fine), min(coarse)), max(max(fine), max(coarse))
    low, high = map(scale, ends)

    def places(curve):
        xs = box[0] + (np.arange(len(curve)) + 0.5) / len(curve) * (box[2] - box[0])
        return list(zip(xs, [height_of(value) for value in curve], strict=True))

    def height_of(value):
        return box[3] - (scale(value) - low) / max(high - low, 1e-12) * (box[3] - box[1])

    for level, labelled in _levels(*ends) if scale is math.log10 else _even_levels(*ends):
        y = height_of(level)
        _line(picture, [(box[0], y), (box[2], y)], (215, 220, 229) if labelled else (240, 242, 246), 1.0)
        label = f"{level:g}" if labelled else ""
        _text(picture, box[0] - 8 - 12 * len(label), int(y) - 7, label, (86, 96, 116))
    for n in range(0, len(coarse) + 1, max(len(coarse) // 6, 1)):
        label = str(first + n)
        _text(picture, int(box[0] + (box[2] - box[0]) * n / len(coarse)) - 6 * len(label), box[3] + 10, label,
              (86, 96, 116))
    _line(picture, places(fine), (170, 196, 236), 1.0)
    _line(picture, places(coarse), (29, 95, 209), 3.0)
    _line(picture, [(box[0], box[1]), (box[0], box[3]), (box[2], box[3])], (86, 96, 116), 1.5)
    _text(picture, box[0], 14, title, (27, 34, 48))
    _text(picture, (box[0] + box[2]) // 2 - 6 * len(below), box[3] + 32, below, (27, 34, 48))
    Path(path).write_bytes(tf.io.encode_png(np.rint(picture).astype(np.uint8), compression=9).numpy())


def _levels(low, high):
    """One, two and five times the powers of ten between two numbers, and whether a label belongs to them."""
    levels = [(digit * 10.0 ** power, digit == 1) for power in range(math.floor(math.log10(low)),
             math.ceil(math.log10(high)) + 1) for digit in (1, 2, 5)]
    return [(level, labelled) for level, labelled in levels if low <= level <= high]


def _even_levels(low, high):
    """Round numbers between two numbers, at most ten, with labels."""
    rough = max(high - low, 1e-12) / 10
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min(digit for digit in (1, 2, 5, 10) if digit * power >= rough)
    return [(n * step, True) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _line(picture, points, color, thick):
    """Draws a line through points; a pixel is covered as much as its middle is near."""
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        left, right = int(min(x0, x1) - thick - 1), int(max(x0, x1) + thick + 2)
        top, bottom = int(min(y0, y1) - thick - 1), int(max(y0, y1) + thick + 2)
        ys, xs = np.mgrid[max(top, 0):min(bottom, len(picture)), max(left, 0):min(right, picture.shape[1])]
        dx, dy = x1 - x0, y1 - y0
        along = np.clip(((xs - x0) * dx + (ys - y0) * dy) / max(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
        far = np.hypot(xs - x0 - along * dx, ys - y0 - along * dy)
        cover = np.clip(thick / 2 + 0.5 - far, 0.0, 1.0)[..., None]
        part = picture[ys[0, 0]:ys[-1, 0] + 1, xs[0, 0]:xs[0, -1] + 1]
        np.copyto(part, np.minimum(part, part * (1 - cover) + np.array(color, float) * cover))


def _text(picture, x, y, text, color):
    """Writes text from (x, y) on, each dot of a letter as two by two pixels."""
    for letter in text.lower():
        dots = np.array([[row >> (4 - n) & 1 for n in range(5)] for row in _FONT[letter]], bool)
        picture[y:y + 14, x:x + 10][dots.repeat(2, 0).repeat(2, 1)] = color
        x += 12

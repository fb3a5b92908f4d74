"""Graphs that lie about sizes, and graphs with anything in the place of anything: refused, or run without harm."""

from __future__ import annotations

import random
import re

from saved_model.hostile import survived

import twofold as tf
from twofold.ir import graph_text

LYING = {  # graphs that are well-formed but for what they say of sizes
    "a branch that says more than it gets": """graph f(%0 x: f32[a], %1: i1[], %2: f32[b]) {
  %3 = cond(%1, %0) : f32[] {
    graph then(%0: f32[b]) {
      %1 = exp(%0) : f32[b]
      %2 = reduce_sum(%1) : f32[]
      return %2
    }
    graph else(%0: f32[a]) {
      %1 = reduce_sum(%0) : f32[]
      return %1
    }
  }
  return %3
}""",
    "a branch with a size from nowhere": """graph f(%0 x: f32[a], %1: i1[]) {
  %2 = cond(%1, %0) : f32[] {
    graph then(%0: f32[m]) {
      %1 = exp(%0) : f32[m]
      %2 = reduce_sum(%1) : f32[]
      return %2
    }
    graph else(%0: f32[a]) {
      %1 = reduce_sum(%0) : f32[]
      return %1
    }
  }
  return %2
}""",
    "a branch that gives less than it says": """graph f(%0 x: f32[b], %1: i1[], %2: f32[a]) {
  %3 = cond(%1, %0, %2) : f32[b] {
    graph then(%0: f32[b], %1: f32[a]) {
      return %1
    }
    graph else(%0: f32[b], %1: f32[a]) {
      return %0
    }
  }
  %4 = add(%3, %0) : f32[b]
  return %4
}""",
    "a loop that reads too far": """graph f(%0 x: f32[a], %1: f32[b]) {
  %2 = constant 0 : i32[]
  %3 = constant 0.0 : f32[]
  %4, %5 = while(%2, %3, %0) {carried: 2, trips: none} : i32[], f32[] {
    graph test(%0: i32[], %1: f32[], %2: f32[b]) {
      %3 = constant 3 : i32[]
      %4 = less(%0, %3) : i1[]
      return %4
    }
    graph body(%0: i32[], %1: f32[], %2: f32[b]) {
      %3 = constant 1 : i32[]
      %4 = add(%0, %3) : i32[]
      %5 = reduce_sum(%2) : f32[]
      %6 = add(%1, %5) : f32[]
      return %4, %6
    }
  }
  return %5
}""",
    "a loop that grows in secret": """graph f(%0 x: f32[a]) {
  %1 = constant 3 : i32[]
  %2, %3 = while(%1, %0) {carried: 2, trips: none} : i32[], f32[a] {
    graph test(%0: i32[], %1: f32[m]) {
      %2 = constant 0 : i32[]
      %3 = greater(%0, %2) : i1[]
      return %3
    }
    graph body(%0: i32[], %1: f32[m]) {
      %2 = constant -1 : i32[]
      %3 = add(%0, %2) : i32[]
      %4 = slice(%1) {begin: [0], size: [1]} : f32[1]
      return %3, %4
    }
  }
  %4 = add(%3, %0) : f32[a]
  return %4
}""",
    "a call that assumes": """graph f(%0 x: f32[a]) {
  %1 = call(%0) {name: "g", sizes: [["q", a]]} : f32[5000000] {
    graph g(%0: f32[q]) {
      assume q == 5000000
      %1 = reshape(%0) {shape: [5000000]} : f32[5000000]
      %2 = exp(%1) : f32[5000000]
      return %2
    }
  }
  return %1
}""",
    "a branch that assumes": """graph f(%0 x: f32[a], %1: i1[]) {
  %2 = cond(%1, %0) : f32[] {
    graph then(%0: f32[a]) {
      assume a == 5000000
      %1 = reshape(%0) {shape: [5000000]} : f32[5000000]
      %2 = reduce_sum(%1) : f32[]
      return %2
    }
    graph else(%0: f32[a]) {
      %1 = reduce_sum(%0) : f32[]
      return %1
    }
  }
  return %2
}""",
    "a branch in a branch that assumes": """graph f(%0 x: f32[a], %1: i1[]) {
  %2 = cond(%1, %0, %1) : f32[] {
    graph then(%0: f32[m], %1: i1[]) {
      %2 = cond(%1, %0) : f32[] {
        graph then(%0: f32[m]) {
          assume m == 5000000
          %1 = reshape(%0) {shape: [5000000]} : f32[5000000]
          %2 = reduce_sum(%1) : f32[]
          return %2
        }
        graph else(%0: f32[m]) {
          %1 = reduce_sum(%0) : f32[]
          return %1
        }
      }
      return %2
    }
    graph else(%0: f32[a], %1: i1[]) {
      %2 = reduce_sum(%0) : f32[]
      return %2
    }
  }
  return %2
}""",
    "a call that gives less than it says": """graph f(%0 x: f32[a], %1: f32[b]) {
  %2 = call(%0) {name: "g", sizes: [["q", a]]} : f32[b] {
    graph g(%0: f32[q]) {
      return %0
    }
  }
  %3 = add(%2, %1) : f32[b]
  return %3
}""",
    "a gradient of another size": """graph f(%0 x: f32[a], %1: f32[b]) {
  %2 = custom(%0, %0) {results: 1, inputs: 1, given: [true]} : f32[a] {
    graph gradient(%0: f32[b], %1: f32[b]) {
      %2 = multiply(%0, %1) : f32[b]
      return %2
    }
  }
  return %2
}""",
    "a stack that is shorter": """graph f(%0 x: f32[a], %1: f32[b], %2: i1[]) {
  %3 = cond(%2, %0) : f32[b] {
    graph then(%0: f32[b]) {
      %1 = constant 0 : i64[]
      %2 = pop(%0, %1) {dims: [b]} : f32[b]
      return %2
    }
    graph else(%0: f32[b]) {
      %1 = constant 1 : i64[]
      %2 = pop(%0, %1) {dims: [b]} : f32[b]
      return %2
    }
  }
  return %3
}""",
    "a size that a value gives": """graph f(%0 x: f32[a]) {
  %1 = constant 5000000 : i64[]
  bind(%1) {symbol: "k"}
  assume a == k
  %2 = reshape(%0) {shape: [k]} : f32[k]
  %3 = exp(%2) : f32[k]
  return %3
}""",
    "a result that says more than there is": """graph f(%0 x: i1[a]) {
  %1 = nonzero(%0) : i64[5000000,1]
  %2 = add(%1, %1) : i64[5000000,1]
  return %2
}""",
}


def test_graphs_that_lie_about_sizes():
    """They are refused, or not accepted for sizes that make the lie one; memory is never read past its end."""
    told = dict(zip(LYING, survived(list(LYING.values())), strict=True))
    assert not [name for name, how in told.items() if how.startswith("!") or how == "slow"], told
    honest = "graph f(%0 x: f32[a], %1: f32[b]) {\n %2 = exp(%0) : f32[a]\n return %2\n}"
    assert survived([honest]) == ["ran"]


TOKEN = re.compile(r"-?\d+\.\d+|-?\d+|[A-Za-z_]\w*")
WORDS = ["0", "-1", "1", "2", "7", "1000000", "4294967296", "9223372036854775807", "none", "true", "inf", "nan", "a",
         "b", "f32", "i64", '"x"', "[]", "[0]", "[-1]", "0.5"]


def changed(text: str, draw: random.Random) -> str:
    """A graph with a word or a line that is another."""
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    line = lines[at].split("   #")[0]
    words = list(TOKEN.finditer(line))
    if not words or draw.random() < 0.2:
        lines[at] = lines[draw.randrange(len(lines))]
        return "\n".join(lines)
    word = draw.choice(words)
    numeral = word.group().lstrip("-").isdecimal()
    new = str(int(word.group()) + draw.choice([-2, -1, 1, 2])) if numeral and draw.random() < 0.5 else draw.choice(
        WORDS + TOKEN.findall(draw.choice(lines)))
    lines[at] = line[:word.start()] + new + line[word.end():]
    return "\n".join(lines)


def test_random_changes_of_graphs():
    """Whatever is changed in a graph, it is refused or runs: no process dies."""
    draw = random.Random(23)
    texts = [changed(draw.choice(GRAPHS), draw) for _ in range(80)]
    told = survived(texts)
    died = [text for text, how in zip(texts, told, strict=True) if how.startswith("!")]
    assert not died, died[0]
    assert sum(how == "ran" for how in told) > 2


def graph_texts() -> list[str]:
    """Graphs of functions without captures, over arguments of two sizes."""
    def fn(x, y):
        z = tf.concat([x, x[1:]], 0) * 2.0
        for _ in tf.range(3):
            z = tf.tanh(z) if tf.reduce_sum(z) > 1.0 else z[::-1]
        rows = tf.reshape(tf.tile(x, [4]), [4, -1])
        padded = tf.pad(rows, [[1, 0], [0, 2]])
        return z, tf.gather(padded, [1, 2], axis=0), tf.cumsum(y), tf.transpose(rows)[:, 1:3], tf.one_hot(
            tf.argsort(x), 3), tf.reduce_max(tf.stack([x, x]), 1)

    def images(x, y):
        z = tf.reshape(tf.tile(x, [48])[:48], [1, 4, 4, 3])
        k = tf.reshape(tf.tile(y, [24])[:24], [2, 2, 3, 2])
        return tf.nn.max_pool2d(tf.nn.conv2d(z, k, 1, "SAME"), 2, 2, "VALID"), tf.nn.softmax(z), tf.einsum(
            "bijc,bijd->cd", z, z), tf.strided_slice(z, [0, 1, 0, 0], [1, 4, 4, 3], [1, 2, 1, 1])
    spec = [tf.TensorSpec([None]), tf.TensorSpec([None])]
    return [graph_text.text(tf.function(f).get_concrete_function(*spec).graph) for f in (fn, images)]


GRAPHS = [*graph_texts(), *LYING.values()]

"""Directories that are damaged, or made to harm, give clear errors in little time and memory; never a wrong model."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_model.hostile import (
    data_of,
    edited,
    graph_of,
    manifest,
    put_manifest,
    regraphed,
    rewritten,
    watched,
)

import twofold as tf
from twofold._formats import safetensors as weights


class Small(tf.Module):
    """A model with every kind of object, and functions with branches and loops."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        (folder / "words.txt").write_text("one two")
        self.w = tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4))
        self.z = tf.Variable([1 + 2j], dtype=tf.complex64)
        self.words = tf.Variable(["a", "bc"])
        self.asset = tf.saved_model.Asset(str(folder / "words.txt"))
        self.table = tf.constant(np.arange(1000, dtype=np.float32))
        self.parts = [tf.Variable(1.0), (tf.Variable(2.0), {"k": tf.Variable(3.0)})]
        self.generator = tf.random.Generator.from_seed(1)

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)])
    def run(self, x, n):
        y = tf.matmul(x, self.w)
        for _ in tf.range(n):
            y = tf.tanh(y) if tf.reduce_sum(y) > 1.0 else y + 1.0
        self.parts[0].assign_add(1.0)
        return {"y": y, "rest": [y[:, :2], tf.gather(self.table, tf.cast(n, tf.int32))]}

    @tf.function(input_signature=[])
    def read(self):
        return self.asset.asset_path, self.words, tf.reduce_sum(self.z)

    @tf.function
    def general(self, x, option=(1, "a")):
        return x * 2.0


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    made = Small(folder)
    made.general(tf.constant([1.0, 2.0]))
    tf.saved_model.save(made, folder / "model")
    return folder / "model"


@pytest.fixture
def copy(model, tmp_path):
    shutil.copytree(model, tmp_path / "model", symlinks=True)
    return tmp_path / "model"


def refused(folder: Path) -> str:
    """The text of the error that loading gives, which is one of `tf.errors`."""
    with pytest.raises(tf.errors.OpError) as caught:
        tf.saved_model.load(folder)
    assert str(folder) in str(caught.value)
    return f"{type(caught.value).__name__}: {caught.value}"


def all_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


# -- damage -------------------------------------------------------------------------------------------
def test_every_bit_matters(copy):
    """A flipped bit in any file is found: each byte of small files, a sample of the others."""
    draw = random.Random(5)
    for path in all_files(copy):
        data = path.read_bytes()
        places = range(len(data)) if path.name == "manifest.json" else draw.sample(range(len(data)), min(30, len(data)))
        for place in places:
            flipped = bytearray(data)
            flipped[place] ^= 1 << draw.randrange(8)
            path.write_bytes(flipped)
            refused(copy)
        path.write_bytes(data)
    tf.saved_model.load(copy)


def test_every_byte_is_missed(copy):
    draw = random.Random(6)
    for path in all_files(copy):
        data = path.read_bytes()
        for size in {0, 1, len(data) - 1, *draw.sample(range(len(data)), min(15, len(data)))}:
            path.write_bytes(data[:size])
            refused(copy)
        path.write_bytes(data + b"\n")
        refused(copy)
        path.unlink()
        refused(copy)
        path.write_bytes(data)
    tf.saved_model.load(copy)


def test_errors_name_the_file(copy):
    path = data_of(copy) / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    assert "weights.safetensors" in refused(copy) and "the manifest says" in refused(copy)
    path.unlink()
    assert "'weights.safetensors' cannot be read: No such file" in refused(copy)


def test_files_of_another_model_are_no_replacement(copy, tmp_path):
    """Files that are whole but belong to another save."""
    other = Small(tmp_path)
    other.w.assign_add(tf.ones([3, 4]))
    other.general(tf.constant([1.0, 2.0]))
    tf.saved_model.save(other, tmp_path / "other")
    shutil.copy(data_of(tmp_path / "other") / "weights.safetensors", data_of(copy) / "weights.safetensors")
    assert "checksum" in refused(copy)


# -- the directory ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "graphs/../../x", "graphs//x", "a\\b", "", ".", "..",
                                  "graphs/\n", "x" * 2000])
def test_paths_stay_inside(copy, name):
    body = manifest(copy)
    body["files"][name] = {"size": 6, "sha256": "0" * 64}
    put_manifest(copy, body)
    assert "no path of a file in the data folder" in refused(copy)


@pytest.mark.parametrize("name", ["..", "../model", "/tmp", "data-xyz", "", "data-0123456789ab/../..", 7, None])
def test_the_data_folder_is_one(copy, name):
    body = manifest(copy)
    body["data"] = name
    put_manifest(copy, body)
    assert "manifest.json is damaged" in refused(copy)


def test_links_are_not_followed(copy, tmp_path):
    path = data_of(copy) / "objects.json"
    (tmp_path / "elsewhere.json").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere.json")
    assert "'objects.json' cannot be read" in refused(copy)


def test_folders_that_are_links_are_not_followed(copy, tmp_path):
    for folder in (data_of(copy) / "graphs", data_of(copy)):
        moved = tmp_path / f"moved-{folder.name}"
        shutil.move(folder, moved)
        folder.symlink_to(moved)
        assert "cannot be read" in refused(copy)
        folder.unlink()
        shutil.move(moved, folder)
    tf.saved_model.load(copy)


def test_what_is_no_regular_file_is_refused(copy):
    path = data_of(copy) / "objects.json"
    path.unlink()
    os.mkfifo(path)  # opening it would wait for a writer
    assert "no regular file" in refused(copy)
    path.unlink()
    path.mkdir()
    assert "no regular file" in refused(copy)
    manifest_path = copy / "manifest.json"
    manifest_path.unlink()
    manifest_path.symlink_to("/dev/zero")
    assert "SavedModel file does not exist" in refused(copy)


# -- contents, with checksums that fit ----------------------------------------------------------------
def header(change: Any) -> Any:
    """A change to the header of the weights."""
    def attack(folder: Path) -> None:
        data = (data_of(folder) / "weights.safetensors").read_bytes()
        length = int.from_bytes(data[:8], "little")
        head = change(json.loads(data[8:8 + length]))
        head = head if isinstance(head, bytes) else json.dumps(head).encode()
        rewritten(folder, {"weights.safetensors": len(head).to_bytes(8, "little") + head + data[8 + length:]})
    return attack


def with_entry(**about: Any) -> Any:
    def change(head: dict[str, Any]) -> dict[str, Any]:
        head["variables/w"].update(about)
        return head
    return header(change)


def at(*path: Any, value: Any) -> Any:
    """A change to one place of objects.json."""
    def edit(body: Any) -> None:
        for part in path[:-1]:
            body = body[part]
        body[path[-1]] = value
    return lambda folder: edited(folder, edit)


def node(kind: str, change: Any) -> Any:
    """A change to the first node of a kind."""
    return lambda folder: edited(folder, lambda body: change(next(n for n in body["nodes"] if n["kind"] == kind)))


def replaced(old: str, new: str, name: str = "run") -> Any:
    return lambda folder: regraphed(folder, name, lambda text: text.replace(old, new, 1))


def whole_graph(text: str, name: str = "general") -> Any:
    return lambda folder: rewritten(folder, {graph_of(folder, name): text.encode()})


def deep_graph(depth: int) -> str:
    opening = "".join([f"cond(%{0 if n else 1}) {{ graph then(%0: i1[]) {{\n" for n in range(depth)])
    return "graph general(%0 x: f32[2]) {\n %1 = constant true : i1[]\n" + opening


def tuples_in_a_circle(body: dict[str, Any]) -> None:
    first, second = len(body["nodes"]), len(body["nodes"]) + 1
    body["nodes"] += [{"kind": "tuple", "length": 1, "children": {"0": second}},
                      {"kind": "tuple", "length": 1, "children": {"0": first}}]
    body["nodes"][0]["children"]["circle"] = first


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


ATTACKS: dict[str, tuple[Any, str]] = {
    # weights
    "a huge shape": (with_entry(shape=[1 << 40, 1 << 20]), "which is no float32"),
    "a shape whose product wraps": (with_entry(shape=[1 << 33, 1 << 31, 3, 4]), "which is no float32"),
    "a shape with zero and huge sizes": (with_entry(shape=[0, 1 << 61]), "which is no float32"),
    "a negative size": (with_entry(shape=[-3, -4]), "no shape and place"),
    "sizes that are no integers": (with_entry(shape=[3.0, 4]), "no shape and place"),
    "sizes that are truth": (with_entry(shape=[True, 12]), "no shape and place"),
    "too many axes": (with_entry(shape=[1] * 100), "no shape and place"),
    "another dtype": (with_entry(dtype="I32"), "float32 is expected"),
    "an unknown dtype": (with_entry(dtype="F4"), "a type that is not known"),
    "data outside of the file": (with_entry(data_offsets=[1 << 40, (1 << 40) + 48]), "begin where"),
    "data that overlaps": (with_entry(data_offsets=[0, 48]), "begin where|the arrays have"),
    "offsets backwards": (with_entry(data_offsets=[48, 0]), "no shape and place"),
    "another shape": (with_entry(shape=[4, 3]), "a value of shape"),
    "a missing array": (header(lambda h: {k: v for k, v in h.items() if k != "variables/w"}), "begin where|have"),
    "no JSON": (header(lambda h: b"{"), "no JSON"),
    "an array instead of an object": (header(lambda h: []), "no JSON object"),
    "a deep header": (header(lambda h: nested(100_000).encode()), "no JSON"),
    "a header that is too long": (lambda f: rewritten(f, {"weights.safetensors": b"\xff" * 16}), "is said to have"),
    "an empty file": (lambda f: rewritten(f, {"weights.safetensors": b""}), "ends too early"),
    # objects
    "no JSON object": (lambda f: rewritten(f, {"objects.json": b"[]"}), "where dict is expected"),
    "no UTF-8": (lambda f: rewritten(f, {"objects.json": b"\xff"}), "no well-formed"),
    "NaN": (lambda f: rewritten(f, {"objects.json": b'{"nodes": NaN}'}), "no JSON"),
    "a huge number": (lambda f: rewritten(f, {"objects.json": b'{"nodes": ' + b"9" * 9_000 + b"}"}), "no well-formed"),
    "deep lists": (lambda f: rewritten(f, {"objects.json": nested(200_000).encode()}), "nested too deep"),
    "deep dicts": (lambda f: rewritten(f, {"objects.json": (b'{"a":' * 200_000)}), "nested too deep|no well-formed"),
    "a name twice": (lambda f: rewritten(f, {"objects.json": b'{"nodes": [], "nodes": []}'}), "there twice"),
    "no root": (at("nodes", value=[]), "the root is no object"),
    "a root that is a list": (at("nodes", 0, "kind", value="list"), "'length' is missing|no object"),
    "a child that is not there": (at("nodes", 0, "children", "w", value=10 ** 9), "there is no object"),
    "a child below zero": (at("nodes", 0, "children", "w", value=-1), "there is no object"),
    "a child that is text": (at("nodes", 0, "children", "w", value="1"), "a child is no number"),
    "a class to import": (at("nodes", 0, "kind", value="os.system"), "no kind of object"),
    "tuples in a circle": (lambda f: edited(f, tuples_in_a_circle), "hold one another"),
    "a huge list": (node("list", lambda n: n.update(length=1 << 60)), "items"),
    "a list without length": (node("list", lambda n: n.pop("length")), "'length' is missing"),
    "an item past the end": (node("list", lambda n: n["children"].update({"7": 1})), "no number below"),
    "a variable with children": (node("variable", lambda n: n.update(children={"x": 0})), "has no children"),
    "a variable of no dtype": (node("variable", lambda n: n.update(dtype="object")), "is no dtype"),
    "a variable without array": (node("variable", lambda n: n.update(array="variables/nothing")), "there is no array"),
    "a variable of another shape": (node("variable", lambda n: n.update(shape=[9, 9])), "a value of shape"),
    "a generator without state": (node("generator", lambda n: n.update(children={})), "has no state"),
    "an asset outside": (node("asset", lambda n: n.update(file="../../../etc/passwd")), "there is no asset"),
    "an asset that is no asset": (node("asset", lambda n: n.update(file="objects.json")), "there is no asset"),
    "a function that is not there": (node("function", lambda n: n.update(function=99)), "there is no function"),
    "a record with methods": (at("concrete", 0, "result", value={
        "record": "R", "fields": ["__class__"], "values": [None]}), "no well-formed"),
    "a record named by code": (at("concrete", 0, "result", value={
        "record": "x = __import__('os')", "fields": [], "values": []}), "no well-formed"),
    "a function that serves itself": (at("concrete", 0, "whole", value=0), "cannot serve calls"),
    "another function in the place of one": (at("concrete", 0, "whole", value=1), "cannot serve calls"),
    "no function in the place of one": (at("concrete", 0, "whole", value=99), "there is no function"),
    "a deep structure": (lambda f: edited(f, lambda b: b["concrete"][0].update(
        result=json.loads('{"list": [' * 400 + "null" + "]}" * 400))), "nested"),
    "a capture of what is no variable": (at("concrete", 1, "captures", 0, value={"variable": 0}), "not of the kind"),
    "captures in another order": (lambda f: edited(f, lambda b: next(
        c for c in b["concrete"] if c["name"] == "run")["captures"].reverse()), "captures is not the input"),
    "a capture too few": (lambda f: edited(f, lambda b: next(
        c for c in b["concrete"] if c["name"] == "run")["captures"].pop()), "are not the inputs"),
    "an update of another dtype": (lambda f: edited(f, lambda b: next(
        c for c in b["concrete"] if c["name"] == "run").update(updates=[next(
            n for n, o in enumerate(b["nodes"]) if o.get("dtype") == "string")])), "assigns another dtype"),
    "an update too many": (lambda f: edited(f, lambda b: next(
        c for c in b["concrete"] if c["name"] == "run")["updates"].append(1)), "are not the outputs"),
    "a graph for two": (lambda f: edited(f, lambda b: [c.update(graph=b["concrete"][0]["graph"])
                                                       for c in b["concrete"]]), "two functions have one graph"),
    "a graph that is not listed": (at("concrete", 0, "graph", value="graphs/nothing.txt"), "not in the manifest"),
    "a spec of no dtype": (at("concrete", 0, "result", value={"tensor": "q99[3]"}), "cannot be read"),
    "a spec of a huge expression": (at("concrete", 0, "result", value={
        "tensor": "f32[" + "*".join(f"(a{n}+b{n})" for n in range(60)) + "]"}), "no well-formed"),
    "lines of source without number": (at("sources", value={"x.py": {"-1": "x"}}), "no number"),
    "a signature of nothing": (at("signatures", value={"s": {"concrete": [99], "inputs": []}}), "there is no function"),
    # graphs
    "no graph": (whole_graph("import os"), "is expected"),
    "an empty graph": (whole_graph(""), "is expected"),
    "an unknown op": (replaced("matmul(", "os_system("), "there is no op"),
    "a call of Python": (replaced("return", 'host() {name: "print", fn: "os.system"}\n  return'), "calls no Python"),
    "a print of what is no text": (replaced("return", 'host(%0) {name: "print", stream: "stdout", summarize: 3, '
                                            'end: 7, pieces: ["a", "b"]}\n  return'), "described by something else"),
    "a print to a file": (replaced("return", 'host() {name: "print", stream: "file:///tmp/x", summarize: 3, '
                                   'end: "", pieces: ["a"]}\n  return'), "described by something else"),
    "a shape that is not true": (replaced(": f32[d0_0,4]", ": f32[d0_0,400000]"), "the op gives"),
    "an operand that is not there": (replaced("return %", "return %9999"), "is not defined"),
    "a constant of a huge shape": (whole_graph(
        "graph general(%0 x: f32[2]) {\n %1 = constant [] : f32[1000000000000]\n return %0\n}"), "cannot be read"),
    "a constant without elements": (whole_graph(
        'graph general(%0 x: f32[2]) {\n %1 = constant base64 "AAAA" : f32[1000000]\n return %0\n}'), "cannot be read"),
    "a size that explodes": (whole_graph(
        "graph general(%0 x: f32[" + "*".join(f"(a{n}+b{n})" for n in range(60)) + "]) {\n return %0\n}"), "is wrong"),
    "sizes in sizes": (whole_graph("graph general(%0 x: f32[" + "(" * 5000 + "n" + ")" * 5000 + "]) { return %0 }"),
                       "is wrong"),
    "a guard that explodes": (whole_graph(
        "graph general(%0 x: f32[n]) {\n assume " + "*".join(["(n + m//2 + 3)"] * 300) + " == 3\n return %0\n}"),
        "is wrong"),
    "deep regions": (whole_graph(deep_graph(20_000)), "nested too deep"),
    "deep attributes": (whole_graph("graph general(%0 x: f32[2]) {\n %1 = reduce_sum(%0) {axis: " + nested(50_000)
                                    + "} : f32[]\n return %1\n}"), "nested too deep"),
    "deep constants": (whole_graph("graph general(%0 x: f32[2]) {\n %1 = constant " + nested(50_000)
                                   + " : f32[]\n return %1\n}"), "nested too deep"),
    "other inputs": (whole_graph("graph general(%0 x: f32[3]) {\n return %0\n}"), "an argument of"),
    "other outputs": (whole_graph("graph general(%0 x: f32[2]) {\n %1 = cast(%0) {dtype: i32} : i32[2]\n return %1\n}"),
                      "is not the output"),
    "no outputs": (whole_graph("graph general(%0 x: f32[2]) {\n return\n}"), "are not the outputs"),
    "a graph that calls another shape": (whole_graph(
        "graph general(%0 x: f32[2]) {\n %1 = call(%0) {name: \"f\", sizes: [[\"n\", 1000000]]} : f32[2] {\n"
        "  graph f(%0: f32[n]) {\n   return %0\n  }\n }\n return %1\n}"), "is wrong"),
}


def test_attacks_are_refused(model, tmp_path):
    """Each gives an error of `tf.errors` that says what is wrong, within ten seconds and half a gigabyte."""
    folders = []
    for number, (attack, _) in enumerate(ATTACKS.values()):
        folder = tmp_path / f"model{number}"
        shutil.copytree(model, folder)
        attack(folder)
        folders.append(folder)
    wrong = []
    for name, (_, text), told in zip(ATTACKS, ATTACKS.values(), watched(folders), strict=True):
        if not told.startswith("DataLossError: ") or re.search(text, told) is None:
            wrong.append(f"{name}: {told}")
    assert not wrong, "\n".join(wrong)


def test_circles_of_objects_are_fine(copy):
    """Objects may lead to themselves, and lists to what holds them."""
    def edit(body: dict[str, Any]) -> None:
        body["nodes"][0]["children"]["myself"] = 0
        body["nodes"].append({"kind": "list", "length": 1, "children": {"0": 0}})
        body["nodes"][0]["children"]["around"] = len(body["nodes"]) - 1
    edited(copy, edit)
    loaded = tf.saved_model.load(copy)
    assert loaded.myself is loaded and loaded.around[0] is loaded
    assert len(loaded.variables) == 6


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__init__", "_tracked_children", "variables", "_hidden",
                                  "signatures", "_waiting_for_children", "__getattribute__", "name", "_flatten"])
def test_names_of_attributes_cannot_take_over(copy, name):
    def edit(body: dict[str, Any]) -> None:
        body["nodes"][0]["children"][name] = body["nodes"][0]["children"]["w"]
    edited(copy, edit)
    loaded = tf.saved_model.load(copy)
    assert isinstance(loaded, tf.Module) and len(loaded.variables) == 6
    loaded.more = tf.Variable(1.0)
    assert len(loaded.trainable_variables) == 6
    assert "run" in loaded._functions_to_save() and name in loaded._tracked_children()


LEAVES = [None, True, -1, 0, 1, 10 ** 30, 1.5, "", "x", "run", "f32[n]", [], {}, [[]], {"node": 1}, {"list": [1]},
          {"float": "nan"}, {"tensor": "f32[2]"}, "\ud800", "\u0000"]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every `(container, key)` in JSON."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    actual = []
    for key in keys:
        actual.append((value, key))
        actual += places(value[key])
    return actual


def test_random_changes_of_objects(copy):
    """With anything in the place of anything, a model loads or is refused; nothing else happens."""
    draw = random.Random(11)
    plain = (data_of(copy) / "objects.json").read_bytes()
    ended = {"loaded": 0, "refused": 0}
    for _ in range(300):
        body = json.loads(plain)
        for _ in range(draw.choice([1, 1, 2])):
            holder, key = draw.choice(places(body))
            how = draw.random()
            if how < 0.15:
                del holder[key]
            elif how < 0.4:
                other, place = draw.choice(places(body) or [(holder, key)])
                holder[key] = json.loads(json.dumps(other[place]))
            else:
                holder[key] = draw.choice(LEAVES)
        rewritten(copy, {"objects.json": json.dumps(body).encode()})
        try:
            tf.saved_model.load(copy)
            ended["loaded"] += 1
        except tf.errors.OpError:
            ended["refused"] += 1
    assert ended["refused"] > 150 and ended["loaded"] > 2


def test_random_bytes_as_weights():
    """The reader of arrays alone: what it takes is what the format says, or an error."""
    draw = random.Random(3)
    file = io.BytesIO()
    weights.write(file, {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False])})
    whole = file.getvalue()
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(draw.choice([1, 2, 5])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        del data[draw.choice([len(data)] * 3 + [draw.randrange(len(data))]):]
        try:
            arrays, _ = weights.read(io.BytesIO(data), len(data))
        except weights.FormatError:
            continue
        assert sum(a.nbytes for a in arrays.values()) <= len(data)

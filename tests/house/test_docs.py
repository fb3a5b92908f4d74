"""The code that README.md and the pages of docs/ show runs and prints what they say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from house.blocks import blocks, run_page
from house.tree import ROOT, files_under, label
from quick.start import python

PAGES = [path for path in (ROOT / "README.md", *files_under(ROOT / "docs")) if path.suffix == ".md" and path.is_file()]


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_page_runs(page, tmp_path):
    """In a fresh interpreter and an empty folder, as a reader starts. Commands change what is kept beside the compiled
    code: a page that shows some has a cache of its own."""
    script = Path(__file__).with_name("blocks.py")
    environment = dict(os.environ)
    if "\n$ twofold " in page.read_text():
        environment["TWOFOLD_CACHE_DIR"] = str(tmp_path / "cache")
    folder = tmp_path / "folder"
    folder.mkdir()
    done = subprocess.run(python(script, page), cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_op_table_is_what_the_code_says():
    done = subprocess.run(python(ROOT / "docs" / "generate.py", "--check"), capture_output=True, text=True)
    assert done.returncode == 0, "docs/ops.md is older than the ops: run make docs\n" + done.stderr


def page(*parts: str) -> str:
    """A page of fenced blocks, from `language: code` parts."""
    fenced = (part.partition(": ") for part in parts)
    return "words\n\n" + "\n".join(f"```{language}\n{code}\n```\n\nmore words" for language, _, code in fenced)


def test_blocks_share_a_namespace_and_outputs_are_compared():
    assert run_page(page("python: x = 3\nprint(x)", "text: 3", "python: print(x + 1)", "text: 4"), "p") == ""
    assert run_page(page("python: print('a  b', 0.123)", "text: a b 0.1..."), "p") == ""
    assert run_page(page("sh: make test", "text: anything"), "p") == ""
    assert run_page("a page of words alone", "p") == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (page("python: print(1)", "text: 2"), "prints\n1"),
        (page("python: x = 1", "python: y"), "NameError"),
        (page("python: x ="), "SyntaxError"),
        (page("python: import sys; sys.exit(0)"), "SystemExit"),
    ],
)
def test_a_page_that_is_wrong_is_seen(text, told):
    assert told in run_page(text, "p")


def test_lines_are_those_of_the_page():
    text = page("python: x = 1", "python: y = 2\nboom")
    [_, (_, line, code)] = blocks(text)
    assert text.splitlines()[line - 1] == code.splitlines()[0]
    assert f'File "p", line {line + 1}' in run_page(text, "p")

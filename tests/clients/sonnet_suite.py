"""Sonnet: the tests of its modules, optimizers and nets."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="dm-sonnet",
    version="2.0.2",
    tag="v2.0.2",
    repository="https://github.com/google-deepmind/sonnet",
    needs=("dm-sonnet==2.0.2", "dm-tree", "tabulate", "mock", "docutils"),
    tests=("sonnet",),
    arguments=("-o", "python_files=*_test.py"),
    from_source=True,
    what="all of `sonnet/`",
)

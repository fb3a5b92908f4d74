"""Sonnet: the tests of its modules, optimizers and nets."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="dm-sonnet",
    version="2.0.2",
    tag="v2.0.2",
    repository="https://github.com/google-deepmind/sonnet",
    needs=("dm-sonnet==2.0.2", "dm-tree", "tabulate", "mock", "docutils"),
    tests=("sonnet/src", "--ignore=sonnet/src/conformance", "--ignore=sonnet/src/distribute",
           "--ignore=sonnet/src/nets/dnc", "--ignore=sonnet/src/nets/resnet_test.py",
           "--ignore=sonnet/src/nets/vqvae_test.py", "--ignore=sonnet/src/nets/cifar10_convnet_test.py"),
    arguments=("-o", "python_files=*_test.py"),
    example="dm-sonnet",
    from_source=True,
    what="modules, optimizers and functional ones",
)

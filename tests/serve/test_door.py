"""A socket that takes no new connection keeps those that it has not accepted yet."""

from __future__ import annotations

import socket
import sys

import pytest

from twofold.serve.door import shut


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_connections_that_wait_are_kept_and_new_ones_are_not_made():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address) as early, socket.socket() as late:
            early.sendall(b"hello")
            assert shut(listening)
            late.settimeout(0.05)
            with pytest.raises(TimeoutError):
                late.connect(address)
            accepted, _ = listening.accept()
            listening.close()
            with accepted:
                assert accepted.recv(5) == b"hello"
                accepted.sendall(b"world")
            assert early.recv(5) == b"world"


def test_a_socket_that_is_closed_cannot_be_shut():
    made = socket.socket()
    made.close()
    assert not shut(made)

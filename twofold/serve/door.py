"""A listening socket that takes no new connection any more, though it is open.

When a socket that listens is closed, the system resets the connections that it has made and nobody has accepted yet,
and their clients lose requests. So first packets that ask for new connections are dropped by a filter on the socket,
then what is there can be accepted, then the socket can be closed: clients that asked meanwhile ask again after a
second, as TCP does, and are refused.
"""

from __future__ import annotations

import ctypes
import socket

__all__ = ["shut"]

_ATTACH_FILTER = 26  # SO_ATTACH_FILTER of Linux, which Python does not name


class _Instruction(ctypes.Structure):
    """Of Berkeley's packet filter."""

    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction))]


def shut(listening: socket.socket) -> bool:
    """Has the system drop what asks the socket for new connections; whether it can."""
    drop = (_Instruction * 1)(_Instruction(0x06, 0, 0, 0))  # return 0: no byte of the packet is kept
    program = _Program(1, drop)
    try:
        listening.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, bytes(program))
    except OSError:  # another system than Linux, or one that allows no filters
        return False
    return True

"""Stands for a process that a server (`server.py`) forks: hands it all that a process has, and ends as it does.

Imports next to nothing, as it runs hundreds of times.
"""

import _socket
import marshal
import os
import signal
import sys

ONE, OTHER, *WORDS = sys.argv[1:]
# Ranks of one job are started by one command: they take the servers in turn.
ADDRESS = OTHER if os.environ.get("PMI_RANK", "0")[-1] in "13579" else ONE
HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
             signal.SIGALRM)


def main() -> None:
    # The forked process may say that it is ready before its number is known here: signals wait until then.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.connect(ADDRESS)
    own = line.fileno()
    files = [n for n in map(int, os.listdir("/proc/self/fd")) if n != own and _inherited(n)]
    said = marshal.dumps((WORDS, dict(os.environ), os.getcwd(), files, sys.executable))
    rights = b"".join(n.to_bytes(4, sys.byteorder) for n in files)
    line.sendmsg([len(said).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    line.sendall(said)
    process = _number(line)
    if process == 0:  # this one needs an interpreter of its own
        line.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.execv(sys.executable, [sys.executable, *WORDS])
    for handed in HANDED_ON:
        signal.signal(handed, lambda number, frame: os.kill(process, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    status = _number(line)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def _inherited(file: int) -> bool:
    try:
        return os.get_inheritable(file)
    except OSError:  # the listing's own
        return False


def _number(line: "_socket.socket") -> int:
    said = b""
    while len(said) < 8:
        said += line.recv(8 - len(said)) or sys.exit("the server of quick processes is gone")
    return int.from_bytes(said, "little")


main()

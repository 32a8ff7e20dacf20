"""Processes and ports of a cluster on one machine. A process ends with the parent process, even if the parent is
killed."""
import ctypes
import os
import pwd
import random
import resource
import signal
import socket
import subprocess
import time

LONGEST_START = 60.0  # seconds
ABOVE_OTHERS = range(10_000, 32_000)  # ports outside of the kernel's range for connections

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class ClusterError(Exception):
    """A part of the cluster did not start or did not answer. The text is a sentence."""


def until(question, awaited, deadline=LONGEST_START):
    """Asks until the answer is true and returns the answer. Raises ClusterError after `deadline` seconds."""
    end = time.monotonic() + deadline
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise ClusterError(f"waited {deadline:g} s for this: {awaited}")
        time.sleep(0.02)


def end_with_parent(number=signal.SIGKILL):
    """Runs in a child: the kernel sends the signal to the child when the forking thread ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans():
    """Makes this process the parent of orphans among the descendants."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _begin_child():
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start(arguments, log, user=None, group_of_its_own=False):
    """Starts a program. The output goes to the file `log`. `user` is the name of an account for the program, used only
    if root runs this process. A separate process group keeps the Ctrl-C of a terminal away from the program."""
    account = {}
    if user and os.geteuid() == 0:
        account = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    with open(log, "ab") as output:
        return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                preexec_fn=_begin_child, process_group=0 if group_of_its_own else None, **account)


def end(process, number=signal.SIGTERM, deadline=LONGEST_START):
    """Sends the signal and waits for the end. Returns the exit code. Kills the process after the deadline."""
    if process is None:
        return None
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(deadline)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(deadline)
            raise ClusterError(f"process {process.pid} did not end within {deadline:g} s") from None
    return process.returncode


class Ports:
    """Reserves ports on 127.0.0.1. A bound socket without a listener keeps each port: the kernel gives the port to no
    connection, and a program that sets SO_REUSEADDR, as every server here does, can listen."""

    def __init__(self):
        self.sockets = []

    def reserve(self):
        while True:
            keeper = socket.socket()
            keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = random.choice(ABOVE_OTHERS)
            try:
                with socket.socket() as probe:  # without SO_REUSEADDR, the bind fails if any socket has the port
                    probe.bind(("127.0.0.1", port))
                keeper.bind(("127.0.0.1", port))
            except OSError:
                keeper.close()
                continue
            self.sockets.append(keeper)
            return port

    def close(self):
        for keeper in self.sockets:
            keeper.close()
        self.sockets.clear()

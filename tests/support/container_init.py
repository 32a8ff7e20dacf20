"""The first process of a container of the fake Docker (fake_docker.py): starts the main process, passes signals on, and
ends all processes of the container with the main process.

    container_init.py SPEC

SPEC is JSON: the arguments, the environment and the folder of the main process.
"""
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
STEP = 0.02  # seconds between two looks


def descendants():
    """Returns the descendants of this process."""
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                state, parent = stat.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # the process has ended
        if state != "Z":
            parents[int(entry)] = int(parent)
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def kill_descendants():
    """Kills until no process is left. Orphans become children of this process, so no descendant escapes."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(STEP)
        except ChildProcessError:
            return


def run_init(spec):
    """The first process of a container. Lines of the standard input are signals; the end of the input means SIGKILL."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    main = subprocess.Popen(spec["args"], env=spec["env"], cwd=spec["cwd"], stdin=subprocess.DEVNULL)
    was_killed = threading.Event()

    def pass_signals():
        for line in sys.stdin:
            if line.strip() == "SIGKILL":
                break
            os.kill(main.pid, signal.Signals[line.strip()])
        was_killed.set()
        os.kill(main.pid, signal.SIGKILL)

    threading.Thread(target=pass_signals, daemon=True).start()
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == main.pid:
            break
    kill_descendants()
    code = os.waitstatus_to_exitcode(status)
    os._exit(137 if was_killed.is_set() else code if code >= 0 else 128 - code)


if __name__ == "__main__":
    run_init(json.loads(sys.argv[1]))

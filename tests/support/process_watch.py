"""The present resources of a process: memory, threads, descriptors; and the size of its files on disk."""

import contextlib
import os


def memory(pid, field="VmRSS"):
    """Returns the bytes of a line of /proc/<pid>/status: VmRSS (now), VmHWM (the most ever), VmData."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


def forget_peak(pid):
    """VmHWM starts again from what is resident now. Writing 5 is the kernel's order for that."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def sockets(pid):
    """Returns the number of the process's sockets: those it listens at, and its connections."""
    count = 0
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith("socket:")
    return count


def wakeups(pid):
    """How often its threads have gone to sleep and were woken, those that have ended not counted."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii", errors="replace") as file:
                count += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:"))
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended meanwhile
    return count


def is_asleep(pid, name):
    """Whether no thread of that name runs or waits for a processor, at 50 looks in a row: a thread in a loop always does,
    on a machine of any pace."""
    for _ in range(50):
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii", errors="replace") as file:
                    head, _, tail = file.read().rpartition(")")
            except (FileNotFoundError, ProcessLookupError):
                continue  # the thread has ended meanwhile
            if head.partition("(")[2] == name and tail.split()[0] == "R":
                return False
    return True


def processor_seconds(pid):
    """User and system time that its threads have taken, ended ones too."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def file_size(path):
    """Returns the size of a file; 0 if the file does not exist (yet)."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def state_of(pid):
    """Returns the number of the parent, and whether the process is alive; (0, False) for a process that does not exist.
    A killed process is alive until its last thread has ended: its descriptors stay open until then, although the state
    of its first thread, which /proc shows as that of the process, may be Z already."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[1]), fields[0] not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return 0, False

"""The current resources of a process: memory, threads, descriptors; and the size of files on disk."""

import contextlib
import os


def memory(pid, field="VmRSS"):
    """Returns the bytes of a line of /proc/<pid>/status: VmRSS (now), VmHWM (the most ever), VmData."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


def forget_peak(pid):
    """Resets VmHWM to the current resident memory: the kernel takes the value 5 as the order."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def sockets(pid):
    """Returns the number of the process's sockets: listening sockets and connections."""
    count = 0
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith("socket:")
    return count


def wakeups(pid):
    """Returns how often the threads of the process have gone to sleep, without ended threads."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii", errors="replace") as file:
                count += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:"))
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended meanwhile
    return count


def is_asleep(pid, name):
    """Returns whether no thread with the name runs or waits for a processor, at 50 looks in a row. A thread in a loop
    always does, at any speed of the machine."""
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
    """Returns the user and system time of all threads, including ended threads."""
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
    """Returns the number of the parent, and whether the process is alive; returns (0, False) for an unknown process. A
    killed process is alive until the last thread has ended: the descriptors stay open until then. The first thread may
    be in the state Z earlier, and /proc shows the state of the first thread as the state of the process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[1]), fields[0] not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return 0, False

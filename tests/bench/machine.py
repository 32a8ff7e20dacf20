"""The machine of the bench, and the share of its time used by other programs meanwhile."""

import os
import platform
import resource
import time

DISTURBED = 0.05


def machine():
    model = "an unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{os.cpu_count()} cores of {model}, Linux {platform.release().split('-')[0]}"


def _busy():
    """Seconds of processor time that all processes took, and that the host kept for itself (steal), since the boot."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in file.readline().split()[1:]]
    return ticks[0] + ticks[1] + ticks[2], ticks[7]


def _own():
    """Processor time of this process and of all children that have ended, with theirs."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


class OtherWork:
    """From its making on: the share of all processors that neither the servers under measurement nor their load took.
    The kernel's own threads count as others; what they do for a server is a percent or two. Ask between measurements."""

    def __init__(self):
        self.busy, self.steal = _busy()
        self.own, self.start = _own(), time.monotonic()

    def share(self):
        busy, steal = _busy()
        others = busy - self.busy - (_own() - self.own) + steal - self.steal
        return max(0.0, others / ((time.monotonic() - self.start) * os.cpu_count()))

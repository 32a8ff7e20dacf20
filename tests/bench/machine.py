"""The machine of the bench, and the share of processor time used by other programs meanwhile."""

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
    """Seconds of processor time since the boot: used by all processes, and kept by the host (steal)."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in file.readline().split()[1:]]
    return ticks[0] + ticks[1] + ticks[2], ticks[7]


def _own():
    """Processor time of the calling process and of all ended children, with the children's children."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


class OtherWork:
    """The share of all processors used by programs other than the measured servers and the load, from the construction
    on. The kernel's own threads count as other programs; the threads' work for a server is a percent or two. Ask
    between measurements."""

    def __init__(self):
        self.busy, self.steal = _busy()
        self.own, self.start = _own(), time.monotonic()

    def share(self):
        busy, steal = _busy()
        others = busy - self.busy - (_own() - self.own) + steal - self.steal
        return max(0.0, others / ((time.monotonic() - self.start) * os.cpu_count()))

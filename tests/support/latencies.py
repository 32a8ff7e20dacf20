"""The durations of calls by name, with percentiles."""

import time
from contextlib import contextmanager


class Latencies:
    def __init__(self):
        self.seconds = {}

    @contextmanager
    def of(self, name):
        """Measures the block. A block that raises is not counted."""
        start = time.monotonic()
        yield
        self.seconds.setdefault(name, []).append(time.monotonic() - start)

    def at(self, name, part):
        """Seconds; part 0.5 is the median, 1 the longest."""
        times = sorted(self.seconds[name])
        return times[min(len(times) - 1, int(part * len(times)))]

    def worst(self, part):
        """The name with the highest value at the percentile, and the value."""
        return max(((name, self.at(name, part)) for name in self.seconds), key=lambda pair: pair[1])

    def table(self):
        """A line a name: calls, p50, p99, longest, in milliseconds."""
        return "\n".join(f"  {name:18} {len(times):6} calls  p50 {self.at(name, 0.5) * 1000:8.2f} ms  "
                         f"p99 {self.at(name, 0.99) * 1000:8.2f} ms  longest {self.at(name, 1) * 1000:8.2f} ms"
                         for name, times in self.seconds.items())

"""The resources of a server over time, and the growth: samples, the trend, and the verdict on each resource."""

import os
import sqlite3
import statistics
import time

from process_watch import descriptors, file_size, memory, threads

MB = 1 << 20

LONG = 1500  # seconds: from here on a growth is extrapolated to an hour, otherwise taken unchanged
GROWTH = {True: 0.05, False: 0.30}  # growth of memory and jobs; the key is true for a long run
MEMORY_NOISE = {True: 4 * MB, False: 64 * MB}  # growth without a finding: a few large bodies
FILE_GROWTH = 1.0  # the file never shrinks: the large bodies of the fullest minute so far decide the size
COUNTS = ("threads", "descriptors", "jobs")
COUNT_NOISE = 0.10  # noise of threads and descriptors: both follow the callers of the moment
LARGEST_LOG = 160 * MB  # a checkpoint is due at 64; simultaneous bodies are on top


class Record:
    FIELDS = ("rss", "data", "threads", "descriptors", "jobs", "database", "log")

    def __init__(self, server, traffic):
        self.traffic = traffic
        self.pid = server.process.pid
        self.file = os.path.join(server.data, "jobq.db")
        self.start = time.monotonic()
        self.rows = []  # (seconds, {field: value})
        self.lowest = None  # resident memory since the last row

    def glance(self):
        """Reads the resident memory between the rows. A row has the lowest reading: bodies only add memory for a while,
        and a leak raises the memory left without bodies."""
        resident = memory(self.pid)
        self.lowest = min(resident, self.lowest or resident)

    def add_row(self):
        self.glance()
        resident, self.lowest = self.lowest, None
        self.rows.append((time.monotonic() - self.start,
                          {"rss": resident, "data": memory(self.pid, "VmData"), "threads": threads(self.pid),
                           "descriptors": descriptors(self.pid), "jobs": self.rows_of("job"),
                           "requests": self.traffic.requests,
                           "database": file_size(self.file), "log": file_size(self.file + "-wal")}))

    def rows_of(self, *tables):
        """The number of rows in the tables, read past the server."""
        database = sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=10)
        try:
            return sum(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        finally:
            database.close()

    def last_line(self):
        seconds, row = self.rows[-1]
        return (f"{seconds:6.0f} s  rss {row['rss'] / MB:6.1f} MB  data {row['data'] / MB:7.1f} MB  "
                f"threads {row['threads']:4}  descriptors {row['descriptors']:4}  "
                f"jobs {row['jobs']:6}  database {row['database'] / MB:6.1f} MB  log {row['log'] / MB:5.1f} MB")


def load_of(rows, warm_up):
    """The requests in the last part of the run for each request in the first part: on a busy machine the callers may be
    slower in either part, and the number of jobs follows the requests."""
    counts = [row["requests"] for seconds, row in rows if seconds >= warm_up]
    part = max(1, len(counts) // 3)
    return (counts[-1] - counts[-1 - part]) / max(1, counts[part] - counts[0])


class Trend:
    """The values of a field after the warm-up."""

    def __init__(self, rows, field, warm_up):
        rows = [(seconds, row[field]) for seconds, row in rows if seconds >= warm_up]
        seconds, values = zip(*rows)
        part = max(1, len(values) // 3)  # after a quarter of warm-up: the second quarter and the last
        self.first, self.last = statistics.median(values[:part]), statistics.median(values[-part:])
        self.length = seconds[-1] - seconds[0]
        self.slope = statistics.linear_regression(seconds, values).slope if len(rows) > 2 else 0.0
        self.most = max(values)

    def growth(self, long):
        """In the field's unit: in an hour by the regression when the run was long, else from first to last."""
        return self.slope * 3600 if long else self.last - self.first


def verdicts(record, warm_up):
    """Returns for each field: name, trend, growth, permitted growth, and whether the growth is permitted."""
    long = record.rows[-1][0] >= LONG
    result = []
    for field in Record.FIELDS:
        trend = Trend(record.rows, field, warm_up)
        growth = trend.growth(long)
        if field in ("threads", "descriptors"):
            growth, allowed = trend.last - trend.first, max(4, trend.first * COUNT_NOISE)
        elif field == "log":
            growth, allowed = trend.most, LARGEST_LOG
        elif field == "data":
            allowed = float("inf")  # address space: malloc keeps more than is in use; shown, not judged
        elif field == "database":
            growth, allowed = trend.last - trend.first, max(64 * MB, trend.first * FILE_GROWTH)
        elif field == "jobs":
            allowed = trend.first * GROWTH[long]
            if not long:
                growth -= trend.first * (load_of(record.rows, warm_up) - 1)
        else:
            allowed = max(MEMORY_NOISE[long], trend.first * GROWTH[long])
        result.append((field, trend, growth, allowed, growth <= allowed))
    return result


def line(field, trend, growth, allowed, good):
    """A row of the table printed by soak.py."""
    unit, name = (1, "") if field in COUNTS else (MB, " MB")
    what = "at most" if field == "log" else "growth"
    return (f"{'ok  ' if good else 'FAIL'} {field:12} second quarter {trend.first / unit:8.1f}{name}, last "
            f"{trend.last / unit:8.1f}{name}, {what} {growth / unit:8.2f}{name}, allowed {allowed / unit:8.2f}{name}")

"""Counts the index entries that a job's life adds and removes on SQLite. Counts, and measures no time.

    build/venv/bin/python tests/bench/index_changes.py [--check]    --check: exit code 1 when a life has too many changes

The server of the build runs a job without a webhook. Before and after each transition all index entries of the tables of
jobs are read, as the schema of the database defines them: the key, and the condition of a partial index. An entry that
is there only before or only after a transition is one change.

A plain life is insert, claim, finish. A fused life begins with a job that is already running. A brief life is stored with
its end. Behind its end a job enters the indexes for ids, lists and expiry, together with MOST_UNLISTED later jobs. The count compares rows
and does not see the statements: if an UPDATE sets an indexed column to the same value, SQLite writes more.
"""

import argparse
import collections
import contextlib
import os
import re
import sqlite3
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from held_jobs import HeldJobs  # noqa: E402
from jobq_server import Server, until  # noqa: E402

MOST_CHANGES = 8  # of a life
MOST_UNLISTED = 256  # jobs; plugins/storage_sqlite/reads/job_listing.h


def entries_of_index(database, table, index, condition):
    """Returns the entries of an index: (name of the index, key columns, number of the row)."""
    columns = []
    for _, number, name, *_ in database.execute(f"PRAGMA index_xinfo({index})"):
        if number == -2:
            raise ValueError(f"{index} has an expression as a column, which is not supported here")
        columns.append("rowid" if number == -1 else name)
    return {(index, *key) for key in database.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {condition}")}


def index_entries(file):
    """Returns all index entries of the tables whose names begin with `job`, in one snapshot of the database."""
    entries = set()
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)) as database:
        database.execute("BEGIN")
        for _, table, kind, _, has_no_rowid, _ in database.execute("PRAGMA table_list").fetchall():
            if kind != "table" or not table.startswith("job"):
                continue
            for _, index, _, origin, is_partial in database.execute(f"PRAGMA index_list({table})").fetchall():
                if has_no_rowid and origin == "pk":
                    continue  # the table itself
                condition = "true"
                if is_partial:
                    sql, = database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
                    condition = re.search(r"\bWHERE\b(.*)", sql, re.DOTALL | re.IGNORECASE)[1]
                entries |= entries_of_index(database, table, index, condition)
    return entries


def commits(log):
    """Returns the salts of a write-ahead log of SQLite, which change when the log begins anew, and the number of its commits.
    Format: https://www.sqlite.org/fileformat2.html, "WAL File Format"."""
    with open(log, "rb") as file:
        header = file.read(32)
        page, salts = int.from_bytes(header[8:12], "big"), header[16:24]
        number = 0
        while len(frame := file.read(24)) == 24 and frame[8:16] == salts:
            number += frame[4:8] != bytes(4)  # the last frame of a commit has the size of the database
            file.seek(page, os.SEEK_CUR)
    return salts, number


class JobLife:
    """The index changes of each transition of a job. The server changes no other job meanwhile."""

    def __init__(self, server):
        self.file = os.path.join(server.data, "jobq.db")
        self.entries = index_entries(self.file)
        self.transitions = {}  # name -> Counter of (index, "+" or "-")

    def note(self, transition):
        """Called after each transition."""
        entries = index_entries(self.file)
        self.transitions[transition] = collections.Counter(
            [(index, "+") for index, *_ in entries - self.entries] +
            [(index, "-") for index, *_ in self.entries - entries])
        self.entries = entries

    def note_listing(self, server, job):
        """Called behind the last transition. Counts the entries of the job alone, because the other jobs change theirs."""
        number = self.value("num", job)
        for _ in range(MOST_UNLISTED):
            server.run("echo", {})
        until(lambda: self.value("listed", job), "the job is listed")
        entries = {entry for entry in index_entries(self.file) - self.entries if entry[-1] == number}
        self.transitions["listing"] = collections.Counter((index, "+") for index, *_ in entries)

    def value(self, column, job):
        """Returns a column of the row of the job."""
        with contextlib.closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as database:
            return database.execute(f"SELECT {column} FROM job WHERE id = ?", (job,)).fetchone()[0]

    @property
    def total(self):
        return sum(changes.total() for changes in self.transitions.values())

    def table(self):
        """Returns lines of Markdown: the changes of each index in each transition."""
        indexes = sorted({index for changes in self.transitions.values() for index, _ in changes})
        lines = [f"| index | {' | '.join(self.transitions)} |", "|---|" + "---:|" * len(self.transitions)]
        for index in indexes:
            cells = [" ".join(f"{sign}{changes[index, sign]}" for sign in "-+" if changes[index, sign])
                     for changes in self.transitions.values()]
            lines.append(f"| `{index}` | {' | '.join(cells)} |")
        totals = [str(changes.total()) for changes in self.transitions.values()]
        return "\n".join([*lines, f"| changes, {self.total} in all | {' | '.join(totals)} |"])


def finish_job(server, held, endpoint, job, life):
    held.release()
    server.finished(endpoint, job)
    life.note("finish")
    life.note_listing(server, job)
    return life


def plain_life():
    """Returns the life of a job that waits at an endpoint without workers before a worker is started."""
    with HeldJobs() as held, Server(storage="sqlite", **held.settings) as server:
        template = server.request("POST", "/v1/templates", {"name": "held", "imageName": held.IMAGE}).json()["id"]
        endpoint = server.request("POST", "/v1/endpoints", {"templateId": template, "workersMax": 0}).json()["id"]
        life = JobLife(server)
        job = server.run(endpoint, held.input("done"))
        life.note("insert")
        server.request("PATCH", f"/v1/endpoints/{endpoint}", {"workersMax": 1})
        held.wait(1)
        life.note("claim")
        return finish_job(server, held, endpoint, job, life)


def fused_life():
    """Returns the life of a job that an idle worker runs at once."""
    with HeldJobs() as held, Server(storage="sqlite", endpoint__held__workersMin=1, **held.settings) as server:
        until(lambda: server.health("held")["workers"]["idle"] >= 1, "the worker is idle")
        life = JobLife(server)
        job = server.request("POST", "/v2/held/runsync?wait=1000", {"input": held.input("done")}).json()["id"]
        held.wait(1)
        life.note("insert, already running")
        return finish_job(server, held, "held", job, life)


class BriefLives(contextlib.ExitStack):
    """A server with an endpoint whose runs are brief."""

    def __enter__(self):
        super().__enter__()
        self.server = self.enter_context(Server(storage="sqlite", endpoint__echo__workersMin=1))
        until(lambda: self.server.health("echo")["workers"]["idle"] >= 1, "the worker is idle")
        return self

    def run(self):
        """Runs a job. Returns its id, and whether the job was stored with its outcome, in a single commit. The first eight
        jobs, and a job on a slow machine, are stored before their end."""
        log = os.path.join(self.server.data, "jobq.db-wal")
        before = commits(log)
        job = self.server.runsync("echo", {})["id"]
        return job, commits(log) == (before[0], before[1] + 1)


def brief_life():
    """Returns the life of a job that was stored with its outcome."""
    with BriefLives() as lives:
        until(lambda: lives.run()[1], "a job is stored with its outcome")
        for _ in range(50):
            life = JobLife(lives.server)
            job, is_brief = lives.run()
            if is_brief:
                break
        else:
            raise RuntimeError("none of 50 jobs was stored with its outcome")
        life.note("insert, already ended")
        life.note_listing(lives.server, job)
        return life


def count_lives():
    """Returns the JobLife of each way of a job: `plain`, `fused` and `brief`."""
    return {"plain": plain_life(), "fused": fused_life(), "brief": brief_life()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    lives = count_lives()
    for way, life in lives.items():
        print(f"{way} life:\n\n{life.table()}\n")
    missed = [f"{way} {life.total}" for way, life in lives.items() if life.total > MOST_CHANGES]
    print(f"at most {MOST_CHANGES} changes: " + (f"missed: {', '.join(missed)}" if missed else "met"))
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

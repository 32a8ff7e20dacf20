"""The bytes that finished jobs add to the write-ahead log of SQLite, beyond their own bytes."""

import contextlib
import os
import sqlite3

SETTINGS = {"storage.sqlite.log": "4GB"}  # of the server: the log is not moved into the database meanwhile
HEADER = 32  # bytes, which change when the log begins anew

OWN_BYTES = """SELECT (SELECT ifnull(sum(length(input)), 0) FROM job_input)
                    + (SELECT ifnull(sum(length(output)), 0) FROM job_output)
                    + (SELECT ifnull(sum(length(brief_input) + length(brief_output)), 0) FROM job)"""


class LogGrowth:
    """The growth of a server's write-ahead log from the construction on. No job was submitted before."""

    def __init__(self, server):
        self.database = os.path.join(server.data, "jobq.db")
        self.header, self.size = self._log()

    def _log(self):
        with open(self.database + "-wal", "rb") as file:
            return file.read(HEADER), os.fstat(file.fileno()).st_size

    def bytes_beyond(self, jobs):
        """Returns the bytes of log for each of `jobs` finished jobs, without the stored inputs and outputs. Called while
        the server runs, because its end moves the log into the database."""
        header, size = self._log()
        if header != self.header:
            raise RuntimeError("the log was moved into the database during the measurement")
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            own = database.execute(OWN_BYTES).fetchone()[0]
        return (size - self.size - own) / jobs

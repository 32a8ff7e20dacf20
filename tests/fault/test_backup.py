"""A backup proved by a restore: taken under load, given to a new server, and searched for each acknowledged job."""

import collections
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import threading

from http_case import HttpTest
from jobq_server import JOBQCTL, SHORT_DRAIN, Server, until
from keep_alive import KeepAlive
from pace import HANG

SUBMITTERS = 4
BEFORE = 200  # jobs of each endpoint, acknowledged before the backup begins
BEHIND = 50  # jobs acknowledged after the backup's end


class Submitter:
    """A connection submitting to both endpoints in turns until told to stop: to `parked`, where jobs wait, and to
    `echo`, where jobs run."""

    def __init__(self, server, number):
        self.server, self.number = server, number
        self.acknowledged = []  # (endpoint, id, input), in order
        self.fault = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._submit, daemon=True)
        self.thread.start()

    def _submit(self):
        try:
            with KeepAlive(self.server) as connection:
                while not self.over.is_set():
                    self._submit_one(connection, "parked")
                    self._submit_one(connection, "echo")
        except Exception as error:  # pylint: disable=broad-except
            self.fault = repr(error)

    def _submit_one(self, connection, endpoint):
        order = {"by": self.number, "n": len(self.acknowledged), "text": "x" * (len(self.acknowledged) % 5000)}
        status, answer = connection.ask("POST", f"/v2/{endpoint}/run", {"input": order, "policy": {"ttl": 86400000}})
        if status != 200:
            raise AssertionError(f"/run answered {status}: {answer}")
        self.acknowledged.append((endpoint, answer["id"], order))

    def end(self):
        self.over.set()
        self.thread.join(HANG)
        assert not self.thread.is_alive(), "a submitter hangs"
        assert self.fault is None, self.fault


class RestoreTest(HttpTest):
    def jobqctl(self, server, *arguments):
        done = subprocess.run([JOBQCTL, *arguments], capture_output=True, text=True, check=False, timeout=2 * HANG,
                              env={**os.environ, "JOBQ_URL": server.url, "JOBQ_KEY": server.key})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def restored(self, copy, former):
        """A server on a copy, with the former server's secret key and admin key, and no other file."""
        server = self.at_end.enter_context(Server(start=False, **SHORT_DRAIN))
        os.mkdir(server.data, 0o700)
        shutil.copy(os.path.join(copy, "jobq.db"), server.data)
        for name in ("secret.key", "admin.key"):
            shutil.copy(os.path.join(former.data, name), server.data)
        return server.start()

    def assert_sound(self, file):
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
            question = ("SELECT count(*) FROM job LEFT JOIN job_input USING (num) "
                        "WHERE ifnull(input, brief_input) IS NULL")
            assert database.execute(question).fetchone() == (0,), "each job has its input"
            # The values of JobState: 0 waits, 1 runs, 2 is completed (sdk/include/jobq/job.h).
            question = """SELECT count(*) FROM job WHERE state NOT IN (0, 1, 2) OR (state = 0) <> (started_at IS NULL)
                OR (state = 2) <> (finished_at IS NOT NULL) OR (state = 1) <> (holder IS NOT NULL)"""
            assert database.execute(question).fetchone() == (0,), "a job is in a state that no step leads to"
            return {row[0]: row[1] for row in database.execute(
                "SELECT job.id, CAST(ifnull(brief_input, input) AS TEXT) FROM job LEFT JOIN job_input USING (num)")}

    def test_a_backup_under_load(self, own_server, tmp_path):
        """Every job acknowledged before the command began is in the copy, byte for byte, and runs there."""
        server = own_server(**{"storage.sqlite.log": "256KB"}, **SHORT_DRAIN)
        submitters = [Submitter(server, number) for number in range(SUBMITTERS)]
        self.at_end.callback(lambda: [submitter.over.set() for submitter in submitters])

        def count():
            return sum(len(submitter.acknowledged) for submitter in submitters)

        until(lambda: count() >= 2 * BEFORE, "the load is under way", HANG)
        before = [list(submitter.acknowledged) for submitter in submitters]
        copy = str(tmp_path / "copy")
        self.jobqctl(server, "backup", copy)
        behind = count()
        until(lambda: count() >= behind + BEHIND, "the load goes on behind the backup", HANG)
        for submitter in submitters:
            submitter.end()
        server.kill()

        there = self.assert_sound(os.path.join(copy, "jobq.db"))
        for submitter, known in zip(submitters, before):
            sent = [job for _, job, _ in submitter.acknowledged]
            kept = [job for job in sent if job in there]
            assert kept == sent[:len(kept)], "one moment: of one client's jobs the copy has a beginning"
            assert len(kept) >= len(known), "a job that was acknowledged before the backup began is missing"
            for _, job, order in submitter.acknowledged[:len(kept)]:
                assert json.loads(there[job]) == order
        every = {job: (endpoint, order) for submitter in submitters for endpoint, job, order in submitter.acknowledged}
        # A last job of each client may be stored without an answer.
        assert len(set(there) - set(every)) <= SUBMITTERS

        again = self.restored(copy, server)
        ends = collections.Counter()
        for job in there:
            if job not in every:
                continue
            endpoint, order = every[job]
            if endpoint == "echo":
                end = again.finished(endpoint, job)
                assert (end["status"], end["output"]) == ("COMPLETED", order)
            else:
                end = again.status(endpoint, job)
                assert end["status"] == "IN_QUEUE"
            ends[end["status"]] += 1
        assert min(ends["COMPLETED"], ends["IN_QUEUE"]) >= BEFORE / 2, ends
        assert again.runsync("echo", {"new": "life"})["status"] == "COMPLETED"

    def test_sealed_secrets_need_the_secret_key(self, own_server, tmp_path):
        """The copy alone opens no sealed value; the copy with secret.key opens all (etc/operation.md, "Backup")."""
        server = own_server()
        secret = "the-secret-of-a-bucket"
        server.run("parked", {"n": 1}, s3Config={"accessId": "id", "accessSecret": secret, "bucketName": "b",
                                                 "endpointUrl": "https://s3.example.com"})
        copy = str(tmp_path / "copy")
        self.jobqctl(server, "backup", copy)
        with open(os.path.join(copy, "jobq.db"), "rb") as file:
            content = file.read()
        assert secret.encode() not in content
        assert server.key.encode() not in content
        with open(os.path.join(server.data, "secret.key"), "rb") as file:
            assert file.read().strip() not in content

    def test_a_shutdown_does_not_wait_for_a_slow_client(self, own_server):
        """A copy without a reader ends with the drain."""
        server = own_server(**SHORT_DRAIN)
        for _ in range(40):
            server.run("parked", {"text": "x" * 500_000})
        with server.plug() as slow:
            slow.sendall(f"POST /v1/backup HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                         f"Authorization: Bearer {server.key}\r\n\r\n".encode())
            assert slow.recv(16).startswith(b"HTTP/1.1 200")
            server.stop()

    def test_a_killed_server_leaves_no_copy(self, own_server):
        """The next start removes the files left by a crash in the data directory."""
        server = own_server()
        server.kill()
        leftover = os.path.join(server.data, "backup.tmp")
        with open(leftover, "wb") as file:
            file.write(b"half a copy")
        server.start()
        assert not os.path.exists(leftover)

"""Disks that are full, read-only, locked or damaged: never a 200 for what is not stored, a reason for the operator, and
everything goes on afterwards. A refused start touches nothing."""

import contextlib
import ctypes
import hashlib
import http.client
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest
from http_case import HttpTest
from jobq_server import JOBQD, PLUGINS, Server, die_with_parent, until
from pace import HANG, judge_pace

PAGE, BUSY_TIMEOUT = 4096, 5.0  # bytes, seconds
CLONE_NEWNS, MS_REMOUNT, MS_REC, MS_PRIVATE = 0x20000, 32, 1 << 14, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


class SickServer(Server):
    """Counts as started when it is alive, ready or not."""

    def _stage(self, address_file):
        stage = super()._stage(address_file)
        if stage or not self.url or not self.key:
            return stage
        try:
            return "ready" if self.request("GET", "/healthz", key=None).status == 200 else None
        except (OSError, http.client.HTTPException):
            return None


class DiskTest(HttpTest):
    @pytest.fixture
    def server(self, own_server):
        """None is there before a test makes it."""
        self.own_server = own_server

    def idle_server(self, **settings):
        return self.at_end.enter_context(SickServer(start=False, **settings))

    def database(self, server, end=""):
        return os.path.join(server.data, "jobq.db" + end)

    def used_server(self, jobs=20, crash=False, **settings):
        """A server that has stored jobs and was stopped, or killed with everything still in its log."""
        server = self.idle_server(**settings)
        server.start()
        for number in range(jobs):
            server.run("parked", {"number": number, "text": "x" * 500})
        (server.kill if crash else server.stop)()
        return server

    def ready(self, server):
        return server.request("GET", "/readyz", key=None)

    def not_ready(self, server):
        """The answer of a server that is not ready: a good one is good for a second (core/DECISIONS.md)."""
        return until(lambda: (reply := self.ready(server)).status != 200 and reply, "it is not ready", HANG)

    def fill(self, server, size, most=3000):
        """Submits until the server says 503; returns the ids that it acknowledged."""
        acknowledged = []
        for number in range(most):
            reply = server.request("POST", "/v2/parked/run", {"input": {"number": number, "text": "x" * size}})
            if reply.status != 200:
                self.assert_refused(reply, 503)
                assert reply.headers.get("Retry-After") == "1"
                return acknowledged
            acknowledged.append((number, reply.json()["id"]))
        return pytest.fail(f"{most} jobs of {size} bytes and still no end")

    def assert_done(self, server, job):
        end = server.finished("trial", job)
        assert (end["status"], end["output"]) == ("COMPLETED", "done")

    def assert_all_there(self, server, acknowledged):
        for number, job in acknowledged:
            assert server.status("parked", job)["status"] == "IN_QUEUE", f"job {number}"
        assert server.health("parked")["jobs"]["inQueue"] == len(acknowledged), "nothing half written"


def fingerprint(folder):
    """What is in a data directory, but for the lock, which every start makes."""
    found = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name != "lock":
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def as_nobody():
    die_with_parent()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


class RefusedStartTest(DiskTest):
    program = JOBQD

    def attempt(self, server, nobody=False):
        return subprocess.run([self.program, "--config", server.file], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=HANG, cwd=server.folder,
                              preexec_fn=as_nobody if nobody else die_with_parent)

    def refused(self, server, *words, nobody=False):
        """It does not start, says why in one sentence that names the thing, and changes nothing."""
        before = fingerprint(server.data)
        done = self.attempt(server, nobody)
        assert done.returncode == 1, done.stderr
        assert re.search(r"\Ajobqd: [^\n]{30,600}\n\Z", done.stderr)
        for word in words:
            assert word in done.stderr
        if server.key:
            assert server.key not in done.stderr
        assert fingerprint(server.data) == before, "it touched what it refused"
        return done.stderr

    def give_to_nobody(self, server):
        """Root may do everything, so the server runs as somebody else; anybody else is somebody else already. It is a
        copy, because nobody may not enter every folder that it was built in."""
        if os.geteuid() != 0:
            return
        shutil.copytree(PLUGINS, os.path.join(server.folder, "plugins"))
        os.mkdir(os.path.join(server.folder, "bin"))
        self.program = shutil.copy2(JOBQD, os.path.join(server.folder, "bin"))
        for folder, _, files in os.walk(server.folder):
            for path in [folder, *(os.path.join(folder, file) for file in files)]:
                os.chown(path, 65534, 65534)

    def test_a_directory_that_cannot_be_written(self):
        server = self.idle_server()
        os.mkdir(server.data)
        self.give_to_nobody(server)
        os.chmod(server.data, 0o500)
        self.refused(server, server.data, "Permission denied", "data.dir", nobody=True)
        assert os.listdir(server.data) == []

    def test_a_directory_that_cannot_be_made(self):
        server = self.idle_server()
        self.give_to_nobody(server)
        os.chmod(server.folder, 0o500)
        self.at_end.callback(os.chmod, server.folder, 0o700)
        self.refused(server, server.data, "Permission denied", nobody=True)
        assert not os.path.exists(server.data)

    def test_a_directory_that_is_a_file(self):
        server = self.idle_server()
        with open(server.data, "wb") as file:
            file.write(b"hello")
        self.refused(server, server.data, "data.dir")
        server.settings["data.dir"] = os.path.join(server.data, "below")
        server.write_file()
        self.refused(server, "below", "data.dir")
        with open(server.data, "rb") as file:
            assert file.read() == b"hello"

    @pytest.mark.parametrize("mode", [0o000, 0o400], ids=oct)
    def test_a_database_that_may_not_be_used(self, mode):
        server = self.used_server()
        before = fingerprint(server.data)
        self.give_to_nobody(server)
        os.chmod(self.database(server), mode)
        done = self.attempt(server, nobody=True)
        assert done.returncode == 1
        assert re.search(r"\Ajobqd: [^\n]*jobq\.db: Permission denied[^\n]*\n\Z", done.stderr)
        os.chmod(self.database(server), 0o600)
        assert fingerprint(server.data) == before

    def test_a_file_that_is_no_database_of_ours(self):
        def foreign():
            os.remove(path)
            with contextlib.closing(sqlite3.connect(path)) as other:
                other.execute("CREATE TABLE t (a)")
                other.commit()

        noise = random.Random(1).randbytes(100)
        cases = {"header garbage": lambda: overwrite(path, 0, noise),
                 "cut to 10 bytes": lambda: os.truncate(path, 10),
                 "a text": lambda: (os.truncate(path, 0), overwrite(path, 0, b"a text of ours\n" * 40)),
                 "half a header": lambda: overwrite(path, 16, noise[:84]), "another program's": foreign,
                 "cut to a page": lambda: os.truncate(path, PAGE), "cut in a page": lambda: os.truncate(path, 6000)}
        server = self.used_server()
        path = self.database(server)
        kept = shutil.copy(path, path + ".kept")
        for name, spoil in cases.items():
            print(f"case: {name}", flush=True)
            shutil.copy(kept, path)
            spoil()
            self.refused(server, path)
        shutil.copy(kept, path)
        server.start()
        assert server.health("parked")["jobs"]["inQueue"] == 20

    def test_a_log_that_does_not_fit(self):
        """The write-ahead log holds acknowledged jobs: SQLite by itself would delete it, or pass over it."""
        server = self.used_server(crash=True)
        path, log = self.database(server), self.database(server, "-wal")
        assert os.path.getsize(log) > 100_000
        kept = shutil.copytree(server.data, server.data + ".kept")
        cases = {"no file": lambda: os.remove(path), "an empty file": lambda: os.truncate(path, 0),
                 "a garbage log": lambda: overwrite(log, 0, random.Random(2).randbytes(PAGE)),
                 "a log with another salt": lambda: overwrite(log, 0, b"\x37\x7f\x06\x82" + b"\1" * 28)}
        for name, spoil in cases.items():
            print(f"case: {name}", flush=True)
            shutil.rmtree(server.data)
            shutil.copytree(kept, server.data)
            spoil()
            self.refused(server, path, "-wal", "Nothing was touched")
        shutil.rmtree(server.data)
        shutil.copytree(kept, server.data)
        server.start()
        assert server.health("parked")["jobs"]["inQueue"] == 20

    @pytest.mark.parametrize("how", ["BEGIN IMMEDIATE", "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE"])
    def test_a_database_that_somebody_else_holds(self, how):
        server = self.used_server(jobs=1)
        with contextlib.closing(sqlite3.connect(self.database(server), isolation_level=None)) as other:
            other.executescript(how)
            began = time.monotonic()
            done = self.attempt(server)
            judge_pace("a start that is refused because of a lock", time.monotonic() - began, 2 * BUSY_TIMEOUT)
            assert done.returncode == 1
            assert re.search(r"\Ajobqd: [^\n]*jobq\.db: [^\n]*locked[^\n]*\n\Z", done.stderr)
        server.start()
        assert server.health("parked")["jobs"]["inQueue"] == 1


class LockedTest(DiskTest):
    def test_a_lock_while_the_server_runs(self):
        server = self.own_server()
        old = server.finished("echo", server.run("echo", {"a": 1}))["id"]
        running = server.run("trial", {"sleepMs": 4000, "progress": [1], "chunks": 2, "log": ["a"], "output": "done"})
        with contextlib.closing(sqlite3.connect(self.database(server), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answers = {}  # in the order in which they came

            def ask(name, method, path, body, key=True):
                began = time.monotonic()
                reply = server.request(method, path, body, key=key)
                while name == "ready" and reply.status == 200:  # a good answer is good for a second
                    reply = server.request(method, path, body, key=key)
                answers[name] = (reply, time.monotonic() - began)

            calls = {"run": ("POST", "/v2/echo/run", {"input": {}}), "ready": ("GET", "/readyz", None, None),
                     "runsync": ("POST", "/v2/echo/runsync", {"input": {}}),
                     "cancel": ("POST", f"/v2/trial/cancel/{running}", None),
                     "status": ("GET", f"/v2/echo/status/{old}", None)}
            threads = [threading.Thread(target=ask, args=(name, *call), daemon=True) for name, call in calls.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(HANG)
            assert set(answers) == set(calls), f"waited {HANG:g} s for each of the other answers"
            order = list(answers)
            reply, seconds = answers.pop("status")
            assert self.assert_job(reply)["status"] == "COMPLETED", "reading goes on"
            assert order.index("status") < min(order.index(name) for name in ("run", "runsync", "cancel"))
            judge_pace("/status while the database is locked", seconds, BUSY_TIMEOUT / 2)
            for name, (reply, seconds) in answers.items():
                print(f"case: {name}", flush=True)
                self.assert_refused(reply, 503, "locked", "another program")
                # One timeout of its own, and that of the write before it.
                judge_pace(f"{name} while the database is locked", seconds, 2 * BUSY_TIMEOUT + 2)
            other.execute("ROLLBACK")
        until(lambda: self.ready(server).status == 200, "it is ready again", HANG)
        self.assert_done(server, running)
        assert server.quiet("trial")["completed"] == 1
        assert server.finished("echo", server.run("echo", {}))["status"] == "COMPLETED"
        assert server.quiet("echo")["completed"] == 2, "what was answered 503 is not there"


class FullDiskTest(DiskTest):
    LONGER_THAN_THE_FILLING = 6000  # milliseconds: a job still runs when its disk has become full

    def mount(self, folder, size, flags=0):
        if _libc.mount(b"none", folder.encode(), b"tmpfs", flags, b"size=" + size) != 0:
            pytest.skip("no small file system can be mounted: " + os.strerror(ctypes.get_errno()))

    def server_on_a_disk_of(self, size):
        """Its data directory is a disk of its own, in a mount namespace of this process: no mount outlives it."""
        if _libc.unshare(CLONE_NEWNS) != 0 or _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
            pytest.skip("no mount namespace for this user: " + os.strerror(ctypes.get_errno()))
        server = self.idle_server()
        os.mkdir(server.data)
        self.mount(server.data, size)
        self.at_end.callback(_libc.umount2, server.data.encode(), 2)
        return server, os.path.join(server.data, "ballast")

    def test_a_full_disk(self):
        server, ballast = self.server_on_a_disk_of(b"8m")
        with open(ballast, "wb") as file:
            file.write(b"x" * (3 << 20))
        server.start()
        running = [server.run("trial", {"sleepMs": self.LONGER_THAN_THE_FILLING, "output": number})
                   for number in range(2)]
        acknowledged = self.fill(server, 20_000) + self.fill(server, 200)
        self.assert_refused(self.not_ready(server), 503, "full", "free space on the disk of data.dir")
        self.assert_all_there(server, acknowledged)
        until(lambda: "job.unfinished" in server.log(), "an outcome cannot be stored", HANG)
        for job in running:
            assert server.status("trial", job)["status"] == "IN_PROGRESS"

        os.remove(ballast)
        until(lambda: self.ready(server).status == 200, "it is ready again, without a restart", HANG)
        for number, job in enumerate(running):
            assert server.finished("trial", job)["output"] == number
        assert server.quiet("trial")["completed"] == 2
        acknowledged += self.fill(server, 20_000)
        self.assert_all_there(server, acknowledged)

        self.mount(server.data, b"64m", MS_REMOUNT)
        server.kill()
        server.start()
        self.assert_all_there(server, acknowledged)
        assert server.finished("echo", server.run("echo", {}))["status"] == "COMPLETED"
        server.stop()

    def test_a_start_on_a_full_disk(self):
        server, ballast = self.server_on_a_disk_of(b"1m")
        with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * PAGE):
                pass
        assert not server.start_unless_it_dies()
        assert server.process.returncode == 1
        assert re.search(r"\Ajobqd: [^\n]*No space left on device[^\n]*\n\Z", server.log())
        os.remove(ballast)
        server.start()
        assert server.finished("echo", server.run("echo", {}))["status"] == "COMPLETED"
        server.stop()

    def test_a_limit_on_the_size_of_files(self):
        """RLIMIT_FSIZE: the write fails (and a signal must not end the server); what is left of the disk is unknown."""
        server = self.own_server(server__drain="1s")
        running = server.run("trial", {"sleepMs": self.LONGER_THAN_THE_FILLING, "output": "done"})
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
        acknowledged = self.fill(server, 50_000)
        self.assert_refused(self.not_ready(server), 503, "disk I/O error", "read-only until the server is restarted")
        self.assert_all_there(server, acknowledged)
        until(lambda: "job.unfinished" in server.log(), "an outcome cannot be stored", HANG)
        assert server.running
        server.restart()
        self.assert_all_there(server, acknowledged)
        self.assert_done(server, running)


class DamagedTest(DiskTest):
    def spoil(self, server, page):
        """A page of noise; its first byte is no kind of page, so SQLite knows when it reads it."""
        overwrite(self.database(server), page * PAGE, b"\xff" + random.Random(page).randbytes(PAGE - 1))

    def test_the_head_of_a_line(self):
        """Nobody can claim the damaged job: the server must not go on taking jobs that nobody will get."""
        server = self.idle_server(endpoint__trial__workersMax=0)
        server.start()
        for number in range(40):
            server.run("trial", {"output": f"mark {number:03}", "text": "x" * 600})
        server.stop()
        with open(self.database(server), "rb") as file:
            self.spoil(server, file.read().index(b"mark 005") // PAGE)
        server.settings["endpoint.trial.workersMax"] = 2
        server.write_file()
        server.start()
        until(lambda: self.ready(server).status == 503, "it says that it is not ready", HANG)
        self.assert_refused(self.ready(server), 503, "malformed", "restore")
        self.assert_refused(server.request("POST", "/v2/echo/run", {"input": {}}), 503, "damaged")

    @pytest.mark.parametrize("seed", range(8))
    def test_any_page(self, seed):
        """Refused at the start, or 503 later; a job that is answered 200 ends, or the server says that it is sick."""
        server = self.used_server(100)
        self.spoil(server, random.Random(seed).randrange(1, os.path.getsize(self.database(server)) // PAGE))
        if not server.start_unless_it_dies():
            assert server.process.returncode == 1
            assert re.search(r"\Ajobqd: .*damaged.*restore a copy of data\.dir", server.log().splitlines()[-1])
            return
        replies = [server.request("POST", "/v2/echo/run", {"input": {}}) for _ in range(20)]
        assert {reply.status for reply in replies} <= {200, 503}
        taken = [reply.json()["id"] for reply in replies if reply.status == 200]

        def settled():
            if self.ready(server).status == 503:
                return True
            found = [server.request("GET", f"/v2/echo/status/{job}") for job in taken]
            return all(reply.status == 200 and reply.json()["status"] == "COMPLETED" for reply in found)

        until(settled, "each job has ended, or the server is not ready", HANG)
        assert server.running
        server.kill()

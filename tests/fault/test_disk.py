"""Disks that become full, read-only, locked or damaged: a 200 only for a stored job, and full service
afterwards. Refused starts are in test_refused_start.py."""

import contextlib
import ctypes
import os
import random
import re
import resource
import sqlite3
import threading
import time

import pytest
from disk_case import BUSY_TIMEOUT, PAGE, DiskTest, overwrite
from held_jobs import HeldJobs
from jobq_server import until
from pace import HANG, judge_pace

CLONE_NEWNS, MS_REMOUNT, MS_REC, MS_PRIVATE = 0x20000, 32, 1 << 14, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


class LockedTest(DiskTest):
    def test_a_lock_while_the_server_runs(self):
        held = self.at_end.enter_context(HeldJobs("job:progress(1) job:emit(1) job:emit(2) job:log('a')"))
        server = self.own_server(**held.settings)
        old = server.finished("echo", server.run("echo", {"a": 1}))["id"]
        running = server.run("held", held.input("done"))
        held.wait(1)
        with contextlib.closing(sqlite3.connect(self.database(server), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            held.release()
            answers = {}  # in order of arrival

            def ask(name, method, path, body, key=True):
                began = time.monotonic()
                answer = server.request(method, path, body, key=key)
                while name == "ready" and answer.status == 200:  # a good answer is good for a second
                    answer = server.request(method, path, body, key=key)
                answers[name] = (answer, time.monotonic() - began)

            calls = {"run": ("POST", "/v2/echo/run", {"input": {}}), "ready": ("GET", "/readyz", None, None),
                     "runsync": ("POST", "/v2/echo/runsync", {"input": {}}),
                     "cancel": ("POST", f"/v2/held/cancel/{running}", None),
                     "status": ("GET", f"/v2/echo/status/{old}", None)}
            threads = [threading.Thread(target=ask, args=(name, *call), daemon=True) for name, call in calls.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(HANG)
            assert set(answers) == set(calls), f"waited {HANG:g} s for each of the other answers"
            order = list(answers)
            answer, seconds = answers.pop("status")
            assert self.assert_job(answer)["status"] == "COMPLETED", "reading goes on"
            assert order.index("status") < min(order.index(name) for name in ("run", "runsync", "cancel"))
            judge_pace("/status while the database is locked", seconds, BUSY_TIMEOUT / 2)
            for name, (answer, seconds) in answers.items():
                print(f"case: {name}", flush=True)
                self.assert_refused(answer, 503, "locked", "another program")
                # The timeout of the call begins after the timeout of the write before.
                judge_pace(f"{name} while the database is locked", seconds, 2 * BUSY_TIMEOUT + 2)
            other.execute("ROLLBACK")
        until(lambda: self.ready(server).status == 200, "it is ready again", HANG)
        end = server.finished("held", running)
        assert (end["status"], end["output"]) == ("COMPLETED", "done")
        assert server.quiet("held")["completed"] == 1
        assert server.finished("echo", server.run("echo", {}))["status"] == "COMPLETED"
        assert server.quiet("echo")["completed"] == 2, "what was answered 503 is not there"


class FullDiskTest(DiskTest):
    def mount(self, folder, size, flags=0):
        if _libc.mount(b"none", folder.encode(), b"tmpfs", flags, b"size=" + size) != 0:
            pytest.skip("no small file system can be mounted: " + os.strerror(ctypes.get_errno()))

    def server_on_a_disk_of(self, size, **settings):
        """The data directory is a separate disk, in a mount namespace of the test process: no mount outlives the
        process."""
        if _libc.unshare(CLONE_NEWNS) != 0 or _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
            pytest.skip("no mount namespace for this user: " + os.strerror(ctypes.get_errno()))
        server = self.idle_server(**settings)
        os.mkdir(server.data)
        self.mount(server.data, size)
        self.at_end.callback(_libc.umount2, server.data.encode(), 2)
        return server, os.path.join(server.data, "ballast")

    def test_a_full_disk(self):
        held = self.at_end.enter_context(HeldJobs())
        server, ballast = self.server_on_a_disk_of(b"8m", **held.settings)
        with open(ballast, "wb") as file:
            file.write(b"x" * (3 << 20))
        server.start()
        # The end of a job with a short output can fit into the part of the log that a failed insert has left.
        outputs = [letter * 100_000 for letter in "ab"]
        running = [server.run("held", held.input(output)) for output in outputs]
        held.wait(2)
        acknowledged = self.fill(server, 20_000) + self.fill(server, 200)
        self.assert_refused(self.not_ready(server), 503, "full", "free space on the disk of data.dir")
        self.assert_all_there(server, acknowledged)
        held.release()
        until(lambda: "job.unfinished" in server.log(), "an outcome cannot be stored", HANG)
        for job in running:
            assert server.status("held", job)["status"] == "IN_PROGRESS"

        os.remove(ballast)
        until(lambda: self.ready(server).status == 200, "it is ready again, without a restart", HANG)
        for output, job in zip(outputs, running):
            assert server.finished("held", job)["output"] == output
        assert server.quiet("held")["completed"] == 2
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
        held = self.at_end.enter_context(HeldJobs())
        server = self.own_server(**held.settings, server__drain="1s")
        running = server.run("held", held.input("done"))
        held.wait(1)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
        acknowledged = self.fill(server, 50_000)
        self.assert_refused(self.not_ready(server), 503, "disk I/O error", "read-only until the server is restarted")
        self.assert_all_there(server, acknowledged)
        held.release()
        until(lambda: "job.unfinished" in server.log(), "an outcome cannot be stored", HANG)
        assert server.running
        server.restart()
        self.assert_all_there(server, acknowledged)
        end = server.finished("held", running)
        assert (end["status"], end["output"]) == ("COMPLETED", "done")


class DamagedTest(DiskTest):
    def spoil(self, server, page):
        """Fills a page with noise; the first byte is no kind of page, so SQLite finds the damage on reading."""
        overwrite(self.database(server), page * PAGE, b"\xff" + random.Random(page).randbytes(PAGE - 1))

    def test_the_head_of_a_queue(self):
        """The damaged job cannot be claimed: the server must not go on accepting jobs out of the workers' reach."""
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
        """Refused at the start, or 503 later; a job answered 200 ends, or /readyz answers 503."""
        server = self.used_server(100)
        self.spoil(server, random.Random(seed).randrange(1, os.path.getsize(self.database(server)) // PAGE))
        if not server.start_unless_it_dies():
            assert server.process.returncode == 1
            assert re.search(r"\Ajobqd: .*damaged.*restore a copy of data\.dir", server.log().splitlines()[-1])
            return
        answers = [server.request("POST", "/v2/echo/run", {"input": {}}) for _ in range(20)]
        assert {answer.status for answer in answers} <= {200, 503}
        taken = [answer.json()["id"] for answer in answers if answer.status == 200]

        def settled():
            if self.ready(server).status == 503:
                return True
            found = [server.request("GET", f"/v2/echo/status/{job}") for job in taken]
            return all(answer.status == 200 and answer.json()["status"] == "COMPLETED" for answer in found)

        until(settled, "each job has ended, or the server is not ready", HANG)
        assert server.running
        server.kill()

"""jobqctl top: a single pass, repeated passes, and an unchanged terminal afterwards."""

import contextlib
import itertools
import json
import os
import pty
import select
import signal
import subprocess
import termios
import threading
import time

import pytest

from jobq_server import JOBQCTL, until
from jobqctl_case import NOWHERE, REFUSED, UNREACHABLE, USAGE, FormTest
from pace import HANG
from reserved_port import ReservedPort

HEAD = ["ENDPOINT", "NAME", "RUNNING", "IDLE", "STARTING", "STUCK", "IN QUEUE", "IN PROGRESS", "FINISHED/S", "QUEUE",
        "RELEASE"]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class OnceTest(FormTest):
    def test_once(self):
        """For every endpoint the workers, the jobs, the state of the queue and of the release."""
        endpoint = self.make_endpoint(name="busy")
        job = self.server.run(endpoint, {"sleepMs": 600000})
        until(lambda: self.server.status(endpoint, job)["status"] == "IN_PROGRESS", "the job runs")
        other = self.server.run(endpoint, {})
        until(lambda: self.server.health(endpoint)["workers"]["running"] == 1, "the worker is counted")
        rows = {row["ENDPOINT"]: row for row in self.rows("top", "--once")}
        assert list(rows[endpoint]) == HEAD
        assert list(rows[endpoint].values()) == [
            endpoint, "busy", "1", "0", "0", "0", "1", "1", "-", "workers_busy", "1 complete"]
        assert rows["echo"]["QUEUE"] == "empty"
        for name in (job, other):
            self.json("cancel", endpoint, name)

    def test_once_json(self):
        """A JSON object; the rate of a single pass is not known."""
        endpoint = self.make_endpoint(name="\u00e9")
        self.server.runsync(endpoint, {})
        self.server.runsync(endpoint, {"fail": "no"})
        self.server.request("POST", f"/v1/endpoints/{endpoint}/pause")
        text = self.table("top", "--once", "--json")
        assert text.count("\n") == 1
        entry = next(entry for entry in json.loads(text)["endpoints"] if entry["id"] == endpoint)
        assert (entry["name"], entry["queue"], entry["finishedPerSecond"]) == ("\u00e9", "paused", None)
        assert entry["release"] == {"version": 1, "state": "complete"}
        assert entry["jobs"] == {"completed": 1, "failed": 1, "inProgress": 0, "inQueue": 0}
        assert set(entry["workers"]) == {"running", "idle", "initializing", "unhealthy"}
        assert [entry["id"] for entry in self.json("top", endpoint, "--once")["endpoints"]] == [endpoint]

    def test_the_busiest_first(self):
        """Endpoints cut off by the screen have no more to do than the endpoints shown."""
        endpoint = self.make_endpoint(workersMin=0, workersMax=0)
        jobs = [self.server.run(endpoint, {}) for _ in range(3)]
        entries = self.json("top", "--once")["endpoints"]
        loads = [entry["jobs"]["inQueue"] + entry["jobs"]["inProgress"] for entry in entries]
        assert loads == sorted(loads, reverse=True)
        assert next(e for e in entries if e["id"] == endpoint)["queue"] == "no_workers"
        assert self.json("purge", endpoint, "--yes")["removed"] == len(jobs)

    def test_wrong_usage_and_refusals(self):
        """No request is sent when the command line is wrong."""
        for arguments in (["--interval", "1"], ["--interval", "1ms"], ["--interval", "soon"],
                          ["--once", "--interval", "1s"]):
            assert "--interval" in self.sentence("top", *arguments, code=USAGE, JOBQ_URL=NOWHERE)
        assert "nothing" in self.sentence("top", "nothing", code=REFUSED)
        self.sentence("top", "--once", code=REFUSED, JOBQ_KEY="wrong")
        for more in ([], ["--once"]):
            self.sentence("top", *more, code=UNREACHABLE, JOBQ_URL=NOWHERE)


class LiveTest(FormTest):
    def start(self, *arguments, **streams):
        process = subprocess.Popen([JOBQCTL, "top", "--interval", "100ms", *arguments], env=self.environment(),
                                   stderr=subprocess.PIPE, **streams)
        self.at_end.callback(process.stderr.close)
        self.at_end.callback(process.kill)
        too_late = threading.Timer(HANG, process.kill)  # a read that waits for its output ends, too
        too_late.start()
        self.at_end.callback(too_late.cancel)
        return process

    def end(self, process, code=0):
        assert process.wait(HANG) == code
        assert process.stderr.read() == b""

    def test_without_a_terminal(self):
        """Tables in a row, until SIGINT: exit code 0."""
        endpoint = self.make_endpoint()
        process = self.start(endpoint, stdout=subprocess.PIPE)
        with process.stdout as out:
            for _ in range(3):
                assert out.readline().startswith(b"ENDPOINT")
                assert endpoint.encode() in out.readline()
                assert out.readline() == b"\n"
            process.send_signal(signal.SIGINT)
            assert b"\x1b" not in out.read()
        self.end(process)

    def test_finished_per_second(self):
        """The number of jobs ended since the pass before, with any outcome."""
        endpoint = self.make_endpoint()
        process = self.start(endpoint, "--json", stdout=subprocess.PIPE)
        with process.stdout as out:
            def next_rate():
                return json.loads(out.readline())["endpoints"][0]["finishedPerSecond"]
            assert next_rate() is None
            assert next_rate() == 0
            self.server.runsync(endpoint, {})
            self.server.runsync(endpoint, {"fail": "no"})
            until(lambda: next_rate() > 0, "a rate above 0")
            until(lambda: next_rate() == 0, "no more jobs")
            process.send_signal(signal.SIGINT)
            out.read()
        self.end(process)

    def test_a_server_away_for_a_while(self, own_server):
        """The view reports a server without an answer, and goes on when the server is back."""
        port = self.at_end.enter_context(contextlib.closing(ReservedPort()))
        self.server = own_server(**{"server.drain": "200ms", "server.port": port.number})
        process = self.start("--json", stdout=subprocess.PIPE)
        with process.stdout as out:
            assert "endpoints" in json.loads(out.readline())
            self.server.stop()
            until(lambda: "error" in json.loads(out.readline()), "an error is told")
            self.server.start()
            until(lambda: "endpoints" in json.loads(out.readline()), "the endpoints are back")
            process.send_signal(signal.SIGINT)
            out.read()
        self.end(process)

    @contextlib.contextmanager
    def terminal(self):
        """(process, both sides of the terminal, its former settings, a function to read up to a text)"""
        outside, inside = pty.openpty()
        before = termios.tcgetattr(inside)
        process = self.start(stdin=inside, stdout=inside)
        seen = b""

        def until_drawn(text, times=1):
            nonlocal seen
            end = time.monotonic() + HANG
            while seen.count(text) < times:
                assert select.select([outside], [], [], max(0.0, end - time.monotonic()))[0], (
                    f"{text!r} was drawn {seen.count(text)} times within {HANG:g} s, not {times}")
                seen += os.read(outside, 65536)
            return seen
        try:
            yield process, outside, inside, before, until_drawn
            assert termios.tcgetattr(inside) == before, "the terminal is as it was"
        finally:
            os.close(inside)
            os.close(outside)

    def test_on_a_terminal(self):
        """A picture drawn again and again on the alternate screen; q ends the command and restores the old screen."""
        with self.terminal() as (process, outside, inside, before, until_drawn):
            until_drawn(b"ENDPOINT", times=3)
            assert until_drawn(ENTER).count(ENTER) == 1
            assert not termios.tcgetattr(inside)[3] & termios.ECHO, "keys are not shown"
            os.write(outside, b"xq")
            until_drawn(LEAVE)
            self.end(process)

    @pytest.mark.parametrize("end, code", [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
    def test_signals_on_a_terminal(self, end, code):
        """Ctrl-C gives exit code 0, SIGTERM ends the process; the terminal is restored in both cases."""
        with self.terminal() as (process, _, _, _, until_drawn):
            until_drawn(b"ENDPOINT", times=2)
            process.send_signal(end)
            until_drawn(LEAVE)
            self.end(process, code)

    def test_a_small_terminal(self):
        """Lines beyond the width or the height of the terminal are cut off, and the screen does not scroll."""
        with self.terminal() as (process, outside, inside, _, until_drawn):
            until_drawn(b"ENDPOINT")
            termios.tcsetwinsize(inside, (2, 20))

            def pictures():
                """Returns the lines of each whole picture, once a further picture was begun."""
                begun = until_drawn(b"\x1b[H").count(b"\x1b[H")
                text = until_drawn(b"\x1b[H", times=begun + 1).replace(b"\x1b[K", b"").replace(b"\x1b[J", b"")
                return [picture.decode().split("\r\n") for picture in text.split(b"\x1b[H")[1:-1]]

            def small_pictures():
                """Returns the pictures from the first with two lines on, once there are three. The pictures before were drawn
                for the large terminal."""
                small = list(itertools.dropwhile(lambda lines: len(lines) != 2, pictures()))
                return small if len(small) >= 3 else None

            small = until(small_pictures, "three pictures for the small terminal are drawn")
            assert all(len(lines) == 2 and len(line) <= 20 for lines in small for line in lines), small
            os.write(outside, b"q")
            until_drawn(LEAVE)
            self.end(process)

"""jobq-worker --isolation process: etc/workers.md, "Handlers in processes"."""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import time

import pytest

from jobq_server import until
from jobq_worker import PROGRAM, run_worker
from lua_case import make_folder
from pace import HANG, judge_pace
from process_watch import state_of
from test_jobq_worker import ENDLESS, FAULT, HANDLERS, OK, JobqWorkerTest

PIDFD_GETFD = 438  # the number of the call, on all processors
DEAF = {**ENDLESS, "ignoreStop": True}
FASTEST_LOSS = 12.0  # seconds from the first crash of a job to its end as FAILED, three runs later


def children_of(pid):
    """The processes of the handlers of a worker."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and state_of(int(name)) == (pid, True):
            found.append(int(name))
    return sorted(found)


def write_to_socket(pid, data):
    """Writes to the socket of a process, as a handler does that has run wild."""
    process = os.pidfd_open(pid)
    number = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, 3, 0)
    os.close(process)
    assert number >= 0, os.strerror(ctypes.get_errno())
    os.write(number, data)
    os.close(number)


def open_files(pid):
    """Returns what each descriptor of a process leads to. A descriptor that is closed meanwhile is left out."""
    files = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            files[int(number)] = os.readlink(f"/proc/{pid}/fd/{number}")
    return files


def maps_plugin(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as file:
        return "handler_trial" in file.read()


class IsolatedWorkerTest(JobqWorkerTest):
    def worker(self, endpoint, image="plugin/trial", *arguments, slots=1, **more):
        """Starts a worker, and waits until the processes of its handlers run."""
        worker = super().worker(endpoint, image, "--isolation", "process", "--concurrency", str(slots), *arguments, **more)
        until(lambda: len(children_of(worker.process.pid)) == slots, f"{worker.name} has {slots} processes")
        return worker

    def cancel(self, endpoint, job):
        self.server.request("POST", f"/v2/{endpoint}/cancel/{job}")


class ResultTest(IsolatedWorkerTest):
    """A handler sees and does in a process what it does in a thread."""

    endpoints = ("trial", "large", "little", "lua", "stopped")

    def test_results_of_each_kind(self):
        worker = self.worker("trial", slots=2)
        job = self.server.runsync("trial", {"output": {"a": [1.50, "ä"]}})
        assert (job["status"], job["output"], job["workerId"]) == ("COMPLETED", {"a": [1.50, "ä"]}, "w-trial")
        for way in ("fail", "throw"):
            job = self.server.runsync("trial", {way: "too \"warm\""})
            assert (job["status"], job["error"]) == ("FAILED", "too \"warm\"")
        job = self.server.runsync("trial", {"chunks": 1, "chunkBytes": 21_000_000})
        assert "the limit at a remote worker is 20971520" in job["error"]
        job = self.server.runsync("trial", {"log": ["a line"]})
        assert worker.until_logged(f"job.log: {job['id']}: a line\n")
        jobs = [self.server.run("trial", {"n": n}) for n in range(200)]
        assert [self.server.finished("trial", job)["output"] for job in jobs] == [{"n": n} for n in range(200)]
        job = self.server.run("trial", {"chunks": 200, "chunkBytes": 100, "output": "done"})
        assert self.server.finished("trial", job)["output"] == "done"
        chunks = self.server.request("GET", f"/v2/trial/stream/{job}").json()
        assert [chunk["output"]["chunk"] for chunk in chunks] == list(range(200))
        assert not worker.logged("handler\\.")

    def test_bytes_pass_unchanged(self):
        """10 MB in and out, and the text of numbers."""
        self.worker("large", "plugin/echo")
        text = b'{"n":1.50, "big" :1e400,"text":"' + b"\xc3\xa4\\u00e4x" * 1_000_000 + b'"}'
        answer = self.server.request("POST", "/v2/large/runsync", b'{"input":' + text + b"}")
        assert answer.status == 200, answer.body[:200]
        assert text in answer.body

    def test_a_stop(self):
        """The stop reaches the handler, whose process goes on to the next job."""
        worker = self.worker("stopped")
        before = children_of(worker.process.pid)
        job = self.begin("stopped")
        self.cancel("stopped", job)
        assert self.server.runsync("stopped", {"n": 1})["output"] == {"n": 1}
        assert children_of(worker.process.pid) == before
        assert not worker.logged("handler\\.")

    def test_a_process_has_little_of_its_worker(self, tmp_path):
        """No code of the plugin is in the worker; no key and no file of the worker is in the process."""
        script = tmp_path / "worker"
        script.write_text(f'#!/bin/sh\nexec 9</dev/zero\nexec {PROGRAM} "$@"\n')
        script.chmod(0o755)
        worker = self.worker("little", program=str(script))
        child, = children_of(worker.process.pid)
        until(lambda: maps_plugin(child), "the process has loaded its plugin")
        assert not maps_plugin(worker.process.pid)
        with open(f"/proc/{child}/environ", "rb") as file:
            assert b"JOBQ_KEY" not in file.read()
        ours, theirs = open_files(worker.process.pid), open_files(child)
        assert (theirs[0], theirs[1], theirs[2]) == ("/dev/null", ours[1], ours[2])
        assert "/dev/zero" in ours.values()
        assert "/dev/zero" not in theirs.values()
        assert len([file for file in theirs.values() if file.startswith("socket:")]) == 1, theirs

    def test_a_handler_in_lua(self, tmp_path):
        make_folder(tmp_path, HANDLERS)
        self.worker("lua", "lua/about", "--scripts", str(tmp_path), "--env", "NAME=world", "--set", "lua.memory=100MB")
        job = self.server.runsync("lua", {})
        assert job["output"] == {"id": job["id"], "env": {"NAME": "world"}, "endpoint": "lua", "attempt": 1}


class CrashTest(IsolatedWorkerTest):
    endpoints = ("crash", "killed", "wild", "idle", "deaf")

    @pytest.mark.parametrize(("crash", "sign"), [("segv", "SIGSEGV"), ("abort", "SIGABRT"), ("exit", "exit code 3")])
    def test_a_crashing_handler(self, crash, sign):
        """The job comes again until it is FAILED. The jobs beside it and the process of the worker stay."""
        # A sanitizer would end the process by itself, with exit code 1.
        worker = self.worker("crash", slots=4, name="w-" + crash, ASAN_OPTIONS="handle_segv=0", TSAN_OPTIONS="handle_segv=0")
        others = [self.begin("crash", {"progress": ["begun"], "sleepMs": 4000, "output": n}) for n in range(3)]
        begun = time.monotonic()
        job = self.server.run("crash", {"crash": crash})
        status = self.server.finished("crash", job)
        judge_pace("from the first crash to FAILED", time.monotonic() - begun, FASTEST_LOSS)
        assert status["status"] == "FAILED"
        assert "its worker was lost 3 times" in status["error"]
        assert len(worker.logged(f"handler.lost: the handler process of {job} ended with {sign}\n")) == 3
        for n, other in enumerate(others):
            done = self.server.finished("crash", other)
            assert (done["status"], done["output"], done.get("retries", 0)) == ("COMPLETED", n, 0), done
        assert self.server.runsync("crash", {"n": 1})["output"] == {"n": 1}
        worker.terminate()
        assert worker.ended() == OK

    def test_a_killed_process(self):
        """The same worker runs the job again, in a new process. A program that the handler has started ends, too."""
        worker, job, held = self.begin_held("killed")
        child, = children_of(worker.process.pid)
        program = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: os.setpgid(0, child))
        self.at_end.callback(program.kill)
        os.kill(child, signal.SIGKILL)
        held.wait(2)  # the handler runs again
        held.release()
        done = self.server.finished("killed", job)
        assert (done["status"], done["retries"], done["workerId"]) == ("COMPLETED", 1, "w-killed")
        assert worker.logged(f"handler.lost: the handler process of {job} ended with SIGKILL\n")
        assert child not in children_of(worker.process.pid)
        assert program.wait(HANG) == -signal.SIGKILL

    @pytest.mark.parametrize(("data", "words"), [(bytes(4), "a message of a wrong size"), (b"\1\0\0\0\5", "does not belong into a run"),
                                                 (b"\6\0\0\0\x0b\1\0\0\0}", "an output that is not JSON")],
                             ids=["size", "kind", "output"])
    def test_a_process_without_messages(self, data, words):
        """The process is killed, and the job runs again."""
        worker, job, held = self.begin_held("wild")
        child, = children_of(worker.process.pid)
        write_to_socket(child, data)
        held.wait(2)  # the handler runs again
        held.release()
        done = self.server.finished("wild", job)
        assert (done["status"], done["retries"]) == ("COMPLETED", 1)
        assert worker.logged(f"handler.lost: the handler process of {job} sent .*{words} and was killed\n")
        assert child not in children_of(worker.process.pid)

    def test_a_killed_idle_process(self):
        """No job is lost."""
        worker = self.worker("idle")
        self.server.runsync("idle", {})
        child, = children_of(worker.process.pid)
        os.kill(child, signal.SIGKILL)
        until(lambda: not children_of(worker.process.pid), "the process is dead")
        job = self.server.runsync("idle", {"n": 1})
        assert (job["output"], job.get("retries", 0)) == ({"n": 1}, 0)
        assert worker.logged("handler.restart: an idle handler process ended with SIGKILL\n")

    def test_a_handler_ignoring_the_stop(self):
        """The process of the handler is killed, and a new one runs the next job."""
        worker = self.worker("deaf")
        child, = children_of(worker.process.pid)
        job = self.begin("deaf", DEAF)
        self.cancel("deaf", job)
        assert self.server.runsync("deaf", {"n": 1})["output"] == {"n": 1}
        assert worker.logged(f"handler.killed: the handler process of {job} was killed")
        assert child not in children_of(worker.process.pid)
        assert self.server.status("deaf", job)["status"] == "CANCELLED"


class EndTest(IsolatedWorkerTest):
    """No process outlives its worker."""

    endpoints = ("ends",)

    def start(self, job):
        """Starts a worker with three processes, and the job if there is one. Returns the id of the job."""
        self.isolated = self.worker("ends", "plugin/trial", "--drain", "3s", slots=3, name=re.sub(r"\W", "-", self.name))
        self.children = children_of(self.isolated.process.pid)
        return job and self.begin("ends", job)

    def assert_none_left(self):
        until(lambda: not any(state_of(child)[1] for child in self.children), "the processes of the handlers have ended")

    @pytest.mark.parametrize("job", [DEAF, None], ids=["busy", "idle"])
    def test_a_killed_worker(self, job):
        job = self.start(job)
        self.isolated.kill()
        self.assert_none_left()
        if job:
            self.cancel("ends", job)

    def test_a_drain(self):
        """A running job ends, and counts, also if a supervisor signals all processes of the worker."""
        worker, job, held = self.begin_held("ends", "--drain", "1h", slots=3)
        self.children = children_of(worker.process.pid)
        for child in self.children:
            os.kill(child, signal.SIGTERM)
        worker.terminate()
        worker.until_logged("worker.stopping")
        held.release()
        assert worker.ended() == OK
        self.assert_none_left()
        done = self.server.status("ends", job)
        assert (done["status"], done.get("retries", 0)) == ("COMPLETED", 0)

    @pytest.mark.parametrize("job", [DEAF, ENDLESS], ids=["deaf", "obedient"])
    def test_a_drain_with_an_unending_job(self, job):
        job = self.start(job)
        self.isolated.terminate()
        assert self.isolated.ended() == OK
        self.assert_none_left()
        self.cancel("ends", job)


class FaultTest:
    @pytest.mark.parametrize(("arguments", "words"), [
        (["--image", "plugin/nothing"], "nothing"),
        (["--image", "lua/faulty"], "faulty"),
        (["--image", "lua/about", "--set", "lua.memory=1TB"], "lua.memory"),
    ])
    def test_unusable_handlers(self, arguments, words, tmp_path):
        """The program ends, as with threads."""
        make_folder(tmp_path, HANDLERS)
        done = run_worker("--endpoint", "e", "--url", "http://127.0.0.1:9", "--isolation", "process", "--scripts", str(tmp_path),
                          *arguments)
        assert done.returncode == FAULT, done
        assert re.search(f"(?m)^jobq-worker: a handler cannot run: .*{words}", done.stderr), done.stderr

    def test_the_argument_of_a_process(self):
        """The argument is not for users: without a worker the process ends."""
        assert run_worker("--handler-process").returncode == OK

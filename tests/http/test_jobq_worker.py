"""jobq-worker, the remote worker in C++: etc/workers.md, "jobq-worker"."""

import contextlib
import json
import os
import re
import subprocess

import pytest

from held_jobs import HeldJobs
from http_case import HttpTest
from jobq_server import JOBQCTL, Server, until
from jobq_worker import JobqWorker, run_worker
from lua_case import make_folder
from pace import HANG
from request_log import RequestLog
from reserved_port import ReservedPort
from webhook_receiver import WebhookReceiver

IMAGE = "docker.io/acme/worker:1"
ENDLESS = {"progress": ["begun"], "sleepMs": 600_000}  # a job of plugin/trial that ends when it is stopped
OK, FAULT, USAGE = range(3)
BATCH_SIZE = re.compile(r"batch_size=(\d+)")

HANDLERS = {
    "about": """return function(input, job)
      return { id = job.id, env = job.env, endpoint = job.endpoint, attempt = job.attempt } end""",
    "large": "return function(input) return string.rep('x', input.bytes) end",
    "faulty": "return function(",
}


class JobqWorkerTest(HttpTest):
    endpoints = ("remote",)
    settings = {}

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**{f"endpoint.{name}.image": IMAGE for name in cls.endpoints}, **cls.settings)

    def worker(self, endpoint, image, *arguments, **more):
        """Starts a worker for this test alone."""
        return self.at_end.enter_context(JobqWorker(self.server, endpoint, image, *arguments, **more))

    def begin(self, endpoint, job_input=None, **fields):
        """Submits a job that reports a progress first, and returns its id once the handler has begun."""
        job = self.server.run(endpoint, job_input or ENDLESS, **fields)
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", f"the handler of {job} has begun")
        return job

    def begin_held(self, endpoint, *arguments, fields=(), **more):
        """Starts a worker for a job whose end the test decides. Returns both and the HeldJobs once the handler has begun."""
        held = self.at_end.enter_context(HeldJobs())
        settings = ["--set", "net.allowPrivate=true", "--set", "lua.http=true", "--set", "lua.httpTimeout=1h"]
        worker = self.worker(endpoint, held.IMAGE, "--scripts", held.settings["scripts.path"], *settings, *arguments, **more)
        job = self.server.run(endpoint, held.input("done"), **dict(fields))
        held.wait(1)
        return worker, job, held


class ResultTest(JobqWorkerTest):
    endpoints = ("trial", "batch", "lua", "variables", "cancelled", "stopped")

    @pytest.fixture(scope="class")
    @classmethod
    def trial(cls, server):
        with JobqWorker(server, "trial", "plugin/trial", "--concurrency", "4") as worker:
            yield worker

    @pytest.fixture(autouse=True)
    def present(self, question, trial):
        self.trial = trial

    def test_a_result(self):
        job = self.server.runsync("trial", {"output": {"a": [1.50, "ä"]}})
        assert (job["status"], job["output"], job["workerId"]) == ("COMPLETED", {"a": [1.50, "ä"]}, "w-trial")

    @pytest.mark.parametrize("way", ["fail", "throw"])
    def test_a_failing_handler(self, way):
        job = self.server.runsync("trial", {way: "too \"warm\""})
        assert (job["status"], job["error"]) == ("FAILED", "too \"warm\"")
        assert "output" not in job

    def test_progress(self):
        job = self.begin("trial")
        assert self.server.status("trial", job)["status"] == "IN_PROGRESS"
        self.server.request("POST", f"/v2/trial/cancel/{job}")

    def test_chunks_in_order(self):
        job = self.server.run("trial", {"chunks": 200, "chunkBytes": 100, "output": "done"})
        assert self.server.finished("trial", job)["output"] == "done"
        chunks = self.server.request("GET", f"/v2/trial/stream/{job}").json()
        assert [chunk["output"]["chunk"] for chunk in chunks] == list(range(200))

    def test_a_too_large_chunk(self):
        """The job fails, and the worker goes on."""
        job = self.server.runsync("trial", {"chunks": 1, "chunkBytes": 21_000_000})
        assert job["status"] == "FAILED"
        assert "the limit at a remote worker is 20971520" in job["error"]
        assert self.server.runsync("trial", {"chunks": 1, "chunkBytes": 3_000_000, "output": 1})["output"] == 1

    def test_log_lines(self):
        """No call of workers takes a line, so the lines of a job are in the log of its worker."""
        job = self.server.runsync("trial", {"log": ["a line"]})
        assert self.trial.until_logged(f"job.log: {job['id']}: a line\n")

    def test_many_jobs(self):
        jobs = [self.server.run("trial", {"n": n}) for n in range(200)]
        assert [self.server.finished("trial", job)["output"] for job in jobs] == [{"n": n} for n in range(200)]

    def test_batches(self):
        """A call asks for as many jobs as handlers are free, and at most for --batch."""
        for batch, most in (("8", 8), ("3", 3)):
            jobs = [self.server.run("batch", {"n": n}) for n in range(40)]
            with RequestLog(self.server) as log, JobqWorker(self.server, "batch", "plugin/echo", "--concurrency", "8", "--batch",
                                                            batch, through=log) as worker:
                assert all(self.server.finished("batch", job)["status"] == "COMPLETED" for job in jobs)
                sizes = [int(BATCH_SIZE.search(call)[1]) for call in log.requests("/job-take-batch/w-batch")]
                assert max(sizes) == most, sizes
                worker.terminate()
                assert worker.ended() == OK

    def test_a_cancel(self):
        """The handler ends, and the worker has a free handler again."""
        self.worker("cancelled", "plugin/trial")
        job = self.begin("cancelled")
        self.server.request("POST", f"/v2/cancelled/cancel/{job}")
        assert self.server.runsync("cancelled", {"n": 1})["output"] == {"n": 1}
        assert self.server.status("cancelled", job)["status"] == "CANCELLED"

    def test_a_stop_is_no_result(self):
        """A stopped job is reported as lost: behind a load balancer the stop may meet the next run of the job."""
        with RequestLog(self.server) as log, JobqWorker(self.server, "stopped", "plugin/trial", through=log) as worker:
            job = self.begin("stopped")
            self.server.request("POST", f"/v2/stopped/cancel/{job}")
            log.wait(1, "/job-done-batch/w-stopped")
            assert self.server.runsync("stopped", {"n": 1})["output"] == {"n": 1}
            assert log.requests(f"/job-done/w-stopped/{job}") == log.requests(f"/job-done/w-stopped/{job}")[:1], "its progress"
            assert worker.running

    def test_a_handler_in_lua(self, tmp_path):
        make_folder(tmp_path, HANDLERS)
        folder = ["--scripts", str(tmp_path)]
        worker = self.worker("lua", "lua/about", *folder, "--env", "NAME=world", "--set", "lua.memory=100MB")
        job = self.server.runsync("lua", {})
        assert job["output"] == {"id": job["id"], "env": {"NAME": "world"}, "endpoint": "lua", "attempt": 1}
        worker.terminate()
        assert worker.ended() == OK
        self.worker("lua", "lua/large", *folder, "--set", "lua.memory=200MB")
        assert self.server.runsync("lua", {"bytes": 5_000_000})["output"] == "x" * 5_000_000
        job = self.server.runsync("lua", {"bytes": 21_500_000})
        assert job["status"] == "FAILED"
        assert "20 MB" in job["error"]

    def test_the_variables_of_workers(self):
        """etc/workers.md: the variables of `jobqctl worker env`. Their key counts, not that of a user of jobqctl."""
        done = subprocess.run([JOBQCTL, "worker", "env", "variables", "--json"], check=True, capture_output=True, timeout=HANG,
                              env={"JOBQ_URL": self.server.url, "JOBQ_KEY": self.server.key})
        variables = json.loads(done.stdout)
        with JobqWorker(self.server, "variables", "plugin/echo", key="wrong", bare=True, **variables):
            job = self.server.runsync("variables", {"a": 1})
            assert (job["output"], job["workerId"]) == ({"a": 1}, variables["RUNPOD_POD_ID"])

    def test_no_variables_for_an_image_of_the_server(self):
        """A worker with these variables would be refused for ever, so no key is made. The server notes a last use of other keys
        about a second after the use, so ids are compared."""
        def keys():
            return [key["id"] for key in self.server.request("GET", "/v1/keys").json()]
        before = keys()
        done = subprocess.run([JOBQCTL, "worker", "env", "echo"], capture_output=True, timeout=HANG, text=True, check=False,
                              env={"JOBQ_URL": self.server.url, "JOBQ_KEY": self.server.key})
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert "endpoint echo needs no remote worker" in done.stderr and "plugin/echo" in done.stderr
        assert keys() == before

    def test_an_invalid_name(self):
        done = subprocess.run([JOBQCTL, "worker", "env", "variables", "--worker", "a b"], capture_output=True, timeout=HANG,
                              text=True, check=False, env={"JOBQ_URL": self.server.url, "JOBQ_KEY": self.server.key})
        assert (done.returncode, done.stdout) == (2, "")
        assert "--worker takes" in done.stderr


class EndTest(JobqWorkerTest):
    """Ends of workers, of servers, and of their connections."""

    endpoints = ("killed", "drained", "abandoned", "lost")

    def test_a_killed_worker(self):
        """Another worker finishes the job."""
        old = self.worker("killed", "plugin/trial", name="w-old")
        job = self.begin("killed")
        old.kill()
        self.worker("killed", "plugin/echo", name="w-new")
        done = self.server.finished("killed", job)
        assert (done["status"], done["workerId"], done["retries"]) == ("COMPLETED", "w-new", 1)

    @pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
    def test_a_drain(self, signal):
        """Running jobs end, and no further job is taken."""
        path = self.at_end.enter_context(RequestLog(self.server))
        worker, job, held = self.begin_held("drained", "--drain", "1h", name="w-" + signal, through=path)
        subprocess.run(["kill", "-s", signal.removeprefix("SIG"), str(worker.process.pid)], check=True, timeout=HANG)
        path.wait(1, f"/job-done/w-{signal}/none")  # the worker leaves, and has made its last call for jobs
        waiting = self.server.run("drained", {})
        held.release()
        assert worker.ended() == OK and worker.logged("worker.stopping")
        done = self.server.status("drained", job)
        assert (done["status"], done.get("retries", 0)) == ("COMPLETED", 0), done
        assert self.server.status("drained", waiting)["status"] == "IN_QUEUE"
        self.server.request("POST", f"/v2/drained/cancel/{waiting}")

    def test_unending_jobs(self):
        """A job that has not ended after --drain is reported as lost, and another worker runs it."""
        worker = self.worker("abandoned", "plugin/trial", "--drain", "100ms", name="w-old")
        job = self.begin("abandoned")
        worker.terminate()
        assert worker.ended() == OK
        assert worker.logged("worker.abandoned: 1 jobs")
        until(lambda: self.server.status("abandoned", job)["status"] == "IN_QUEUE", "the job is in the queue again", HANG)
        self.worker("abandoned", "plugin/echo", name="w-new")
        done = self.server.finished("abandoned", job)
        assert (done["workerId"], done["retries"]) == ("w-new", 1), done

    def test_a_handler_ignoring_the_stop(self):
        """The process ends all the same."""
        worker = self.worker("abandoned", "plugin/trial", "--drain", "100ms", name="w-deaf")
        job = self.begin("abandoned", {**ENDLESS, "ignoreStop": True})
        worker.terminate()
        assert worker.ended() == OK
        self.server.request("POST", f"/v2/abandoned/cancel/{job}")

    def test_refused_workers(self):
        """A wrong key, no endpoint, and an endpoint whose jobs the server runs itself. The refusals come three seconds late, so
        all workers call at the same time."""
        key = self.server.new_key("worker")["key"]
        workers = {words: self.worker(endpoint, "plugin/echo", key=key_of_worker) for key_of_worker, endpoint, words in (
            ("wrong", "lost", "the server refuses the key"), (key, "nowhere", "refuses the call for jobs of nowhere"),
            (key, "echo", "refuses the call for jobs of echo"))}
        for words, worker in workers.items():
            assert worker.ended() == FAULT
            assert worker.logged(f"(?m)^jobq-worker: .*{words}")

    def test_a_lost_server(self):
        """Calls are repeated with growing pauses; the log has one line at the begin and one at the end."""
        path = self.at_end.enter_context(BrokenPath(self.server))
        worker = self.worker("lost", "plugin/echo", through=path)
        assert self.server.runsync("lost", {"a": 1})["output"] == {"a": 1}
        path.wait(2, "/job-take-batch/")  # the result of the first job has arrived
        path.broken = True
        path.reset()
        before = path.requests()
        path.wait(path.count("/ping/") + 4, "/ping/")  # three seconds or more
        calls = [request for request in path.requests()[len(before):] if "/ping/" not in request]
        assert 2 <= len(calls) < 60, calls
        path.broken = False
        assert self.server.runsync("lost", {"b": 2})["output"] == {"b": 2}
        worker.until_logged("calls for jobs succeed again")
        assert len(worker.logged("calls for jobs fail and are repeated")) == 1


class BrokenPath(RequestLog):
    """A proxy that ends each connection at its first request while `broken` is true."""

    broken = False

    def _forward_piece(self, connection, direction, data, sink):
        if not self.broken:
            return super()._forward_piece(connection, direction, data, sink)
        self.note(direction, data)
        return False


class RestartTest(JobqWorkerTest):
    """The server ends and starts again at the same address, while the worker goes on."""

    @pytest.fixture
    def server(self, at_end, own_server):
        port = at_end.enter_context(contextlib.closing(ReservedPort()))
        return own_server(**{"endpoint.remote.image": IMAGE, "server.port": port.number, "server.drain": "200ms"})

    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_a_result_without_a_server(self, end):
        """The result is repeated until the server has it, and counts once."""
        webhooks = self.at_end.enter_context(WebhookReceiver())
        worker, job, held = self.begin_held("remote", fields={"webhook": webhooks.url()})
        getattr(self.server, end)()
        held.release()
        worker.until_logged("reports of jobs fail")
        self.server.start()
        done = self.server.finished("remote", job)
        assert (done["status"], done["workerId"], done.get("retries", 0)) == ("COMPLETED", "w-remote", 0), done
        # The worker has one handler: a further run of the job would come before the next job, and so would its webhook.
        assert self.server.runsync("remote", {"output": 1}, webhook=webhooks.url("/next"))["output"] == 1
        webhooks.wait(1, "/next")
        assert [call.json()["status"] for call in webhooks.wait(1)] == ["COMPLETED"]


class BatchesTest(JobqWorkerTest):
    """The server is killed while batches of results come, and starts again at the same address."""

    @pytest.fixture
    def server(self, at_end):
        port = at_end.enter_context(contextlib.closing(ReservedPort()))
        return at_end.enter_context(Server(**{"endpoint.remote.image": IMAGE, "server.port": port.number}))

    def test_delivered_results_outlive_a_kill(self):
        """What was answered 200 is on disk."""
        jobs = [self.server.run("remote", {}) for _ in range(20)]
        taken = set()
        while len(taken) < len(jobs):
            path = f"/v2/remote/job-take-batch/w?batch_size=20&job_in_progress={int(bool(taken))}"
            taken |= {job["id"] for job in self.server.request("GET", path).json()}
        body = json.dumps([{"id": job, "output": job} for job in jobs]).encode()
        assert self.server.request("POST", "/v2/remote/job-done-batch/w", body).status == 200
        self.server.kill()
        self.server.start()
        states = [self.server.status("remote", job) for job in jobs]
        assert [(state["status"], state["output"]) for state in states] == [("COMPLETED", job) for job in jobs]

    def test_each_result_counts_once(self):
        jobs = [self.server.run("remote", {"n": number}) for number in range(1000)]
        completed = lambda: self.server.health("remote")["jobs"]["completed"]  # noqa: E731
        worker = self.worker("remote", "plugin/echo", "--concurrency", "16")
        done = 0
        while done < 700:
            until(lambda: completed() > done, "results come")  # pylint: disable=cell-var-from-loop
            self.server.kill()
            self.server.start()
            done = completed()
        states = [self.server.finished("remote", job) for job in jobs]
        assert [(state["status"], state["output"]) for state in states] == [("COMPLETED", {"n": n}) for n in range(1000)]
        counts = self.server.health("remote")["jobs"]
        assert (counts["completed"], counts["failed"], counts["inProgress"]) == (1000, 0, 0)
        worker.terminate()
        assert worker.ended() == OK


class TlsTest(JobqWorkerTest):
    @pytest.fixture
    def server(self, at_end):
        server = at_end.enter_context(Server(start=False, endpoint__remote__image=IMAGE))
        self.files = [os.path.join(server.folder, name) for name in ("certificate.pem", "key.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-out", self.files[0], "-keyout", self.files[1]],
                       check=True, capture_output=True, timeout=HANG)
        server.settings["server.tls.certificate"], server.settings["server.tls.key"] = self.files
        server.write_file()
        server.trust(self.files[0])
        return server.start()

    def test_https(self):
        """Connections are kept, and a certificate of an unknown authority is refused."""
        worker = self.worker("remote", "plugin/trial", "--ca", self.files[0])
        jobs = [self.server.run("remote", {"n": n, "chunks": 3}) for n in range(20)]
        assert [self.server.finished("remote", job)["output"]["n"] for job in jobs] == list(range(20))
        worker.terminate()
        assert worker.ended() == OK
        self.worker("remote", "plugin/trial", name="w-wary").until_logged("calls for jobs fail and are repeated: .*ertificate")


class CommandLineTest:
    @pytest.mark.parametrize(("arguments", "words"), [
        ([], "--endpoint is missing"),
        (["--endpoint", "e"], "--image is missing"),
        (["--endpoint", "e", "--image", "docker.io/a"], "--image takes plugin/NAME or lua/NAME"),
        (["--endpoint", "e", "--image", "plugin/echo", "--concurrency", "0"], "--concurrency takes a whole number"),
        (["--endpoint", "e", "--image", "plugin/echo", "--drain", "1"], "--drain takes a time"),
        (["--endpoint", "e", "--image", "plugin/echo", "--key-file", "/nowhere"], "cannot be read"),
        (["--endpoint", "e", "--image", "plugin/echo", "--colour"], "colour"),
        (["--endpoint", "e", "--image", "plugin/echo", "--set", "net.allowPrivate=yes"], "true or false"),
    ])
    def test_wrong_usage(self, arguments, words):
        self.assert_ended(run_worker(*arguments), USAGE, words)

    @pytest.mark.parametrize(("arguments", "words"), [
        (["--image", "plugin/nothing"], "nothing"),
        (["--image", "lua/nothing"], "nothing"),
        (["--image", "lua/faulty"], "faulty"),
        (["--image", "lua/about", "--set", "lua.memory=1TB"], "lua.memory"),
        (["--image", "plugin/echo", "--set", "lua.memori=1MB"], "lua.memory"),
    ])
    def test_unusable_handlers(self, arguments, words, tmp_path):
        make_folder(tmp_path, HANDLERS)
        done = run_worker("--endpoint", "e", "--scripts", str(tmp_path), *arguments)
        self.assert_ended(done, FAULT, words)

    def assert_ended(self, done, code, words):
        """One sentence on standard error."""
        assert (done.returncode, done.stdout) == (code, ""), done
        assert re.search(r"\Ajobq-worker: [^\n]+\n\Z", done.stderr), done.stderr
        assert words in done.stderr

    def test_help(self):
        done = run_worker("--help")
        assert (done.returncode, done.stderr) == (OK, "")
        for option in ("--url URL", "--endpoint ENDPOINT", "--image IMAGE", "--drain TIME", "--set KEY=VALUE"):
            assert option in done.stdout

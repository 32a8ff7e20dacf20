"""Jobs of unmodified workers that end without a result: after a cancel, at the end of a job's time, or after the loss
of a worker. The workers are of the Python package runpod (tests/clients/requirements.txt)."""

import contextlib
import time
import types

import pytest

from jobq_server import SHORT_DRAIN, until
from pace import judge_pace
from request_log import RequestLog
from reserved_port import ReservedPort
from runpod_case import HANDLER, IMAGE, RunpodTest
from runpod_process import MISSING, RemoteWorker, installed, worker_key
from webhook_receiver import WebhookReceiver

pytestmark = [pytest.mark.skipif(not installed(), reason=MISSING), pytest.mark.timeout(480)]

BLOCKED = """import os
import time
import runpod
from handler_steps import FOLDER, record
def handler(job):
    record(event="begun", id=job["id"])
    while "until" in job["input"] and not os.path.exists(os.path.join(FOLDER, "allowed-" + job["input"]["until"])):
        time.sleep(0.01)
    return job["input"]
runpod.serverless.start({"handler": handler})
"""
CANCELS = 20
PINGS = 10  # a ping comes each second


class StopTest(RunpodTest):
    """The worker's handlers wait until a test allows the end, or until a cancel."""

    @pytest.fixture(scope="class")
    @classmethod
    def remote(cls, server):
        with RequestLog(server) as log, RemoteWorker(server, "remote", worker_key(server, "remote"), HANDLER, through=log,
                                                     concurrency=CANCELS + 5) as worker:
            yield types.SimpleNamespace(worker=worker, log=log)

    @pytest.fixture(autouse=True)
    def present(self, question, remote):
        self.remote, self.log = remote.worker, remote.log

    def begin(self, fields=None, **policy):
        """Submits a job with an endless handler, and returns the job's id once the handler has begun."""
        job = self.server.run("remote", {"until": "never", **(fields or {})}, policy=policy)
        self.remote.records(1, event="begun", id=job)
        return job

    def serves_a_job(self):
        """Expects that the worker has a free slot and serves a further job."""
        assert self.server.runsync("remote", {"a": 1})["output"] == {"a": 1}

    def results(self, job):
        return self.log.count(f"POST /v2/remote/job-done/w-remote/{job}?")

    def test_a_cancelled_job(self):
        """The handler gets the cancel, and no result follows."""
        job = self.begin()
        self.cancel("remote", job)
        cancelled = time.monotonic()
        self.remote.records(1, event="cancelled", id=job)
        judge_pace("from the answer of /cancel to the handler", time.monotonic() - cancelled, 1)
        self.serves_a_job()
        assert self.results(job) == 0
        assert self.server.status("remote", job)["status"] == "CANCELLED"

    def test_a_stubborn_handler_goes_on(self):
        """The server answers 200 to the result of the cancelled job, and drops the result."""
        job = self.begin({"stubborn": True})
        self.cancel("remote", job)
        self.remote.records(1, event="cancelled", id=job)
        until(lambda: self.remote.logged("Results sent.", requestId=job), "the worker's result is answered")
        status = self.server.status("remote", job)
        assert status["status"] == "CANCELLED"
        assert "output" not in status, status
        self.serves_a_job()

    def test_jobs_past_the_time_limits(self):
        """policy.executionTimeout ends a job as TIMED_OUT, policy.ttl removes a job; both handlers get the stop."""
        late = self.begin(executionTimeout=5000)
        expired = self.begin({"stubborn": True}, ttl=10_000)
        end = self.server.finished("remote", late)
        assert end["status"] == "TIMED_OUT"
        assert end["executionTime"] >= 5000
        judge_pace("the end of a job of 5 s", end["executionTime"] / 1000, 7)
        self.remote.records(1, event="cancelled", id=late)
        until(lambda: self.server.request("GET", f"/v2/remote/status/{expired}").status == 404, "the job expires")
        self.remote.records(1, event="cancelled", id=expired)
        until(lambda: self.remote.logged("Results sent.", requestId=expired), "the worker's result is answered")
        assert self.server.request("GET", f"/v2/remote/status/{expired}").status == 404
        self.serves_a_job()
        assert self.results(late) == 0

    def test_jobs_cancelled_during_the_handout(self):
        """Each stop reaches the handler, also a stop before the worker has started the handler. A job is IN_PROGRESS a
        moment before the answer with the job is written. A job that is cancelled in between never comes to the
        worker."""
        jobs = []
        while len(self.delivered(jobs)) < CANCELS:
            assert len(jobs) < 5 * CANCELS, "most jobs were cancelled before they were handed out"
            for _ in range(CANCELS - len(self.delivered(jobs))):
                jobs.append(self.server.run("remote", {"until": "never"}))
                self.until_job("remote", jobs[-1], status="IN_PROGRESS")
                self.cancel("remote", jobs[-1])
            self.serves_a_job()  # the worker gets jobs in order, so the new job comes after the cancelled jobs
        until(lambda: self.delivered(jobs) <= self.stopped(), f"the jobs are stopped at the worker: {jobs}")
        self.serves_a_job()
        assert self.delivered(jobs) <= self.stopped()
        assert [self.results(job) for job in jobs] == [0] * len(jobs)

    def delivered(self, jobs):
        """Returns the ids of the jobs received by the worker."""
        return {entry["requestId"] for entry in self.remote.logged("Job Queued")} & set(jobs)

    def stopped(self):
        """The jobs with a cancelled handler. A task of the SDK, cancelled before the first step, never starts the
        handler."""
        begun, cancelled = ({record["id"] for record in self.remote.recorded(event=event)} for event in ("begun", "cancelled"))
        return cancelled | {entry["requestId"] for entry in self.remote.logged("Stopping job.")} - begun


class LossTest(RunpodTest):
    endpoints = ("pair", "lost", "idle", "blocked")

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def polls(cls, server):
        """The requests of four workers without a job, during the tests of the class. The last worker has no id, and
        therefore sends no pings."""
        with contextlib.ExitStack() as stack:
            key, logs = server.new_key("worker")["key"], {}
            for endpoint, name, key_of_worker, pod in (("idle", "w-idle", key, None), ("idle", "w-wrong-key", "wrong", None),
                                                       ("nowhere", "w-nowhere", key, None), ("idle", "w-nameless", key, "")):
                logs[name] = stack.enter_context(RequestLog(server))
                stack.enter_context(RemoteWorker(server, endpoint, key_of_worker, HANDLER, name=name, through=logs[name], pod=pod))
            yield logs

    def test_a_killed_worker(self):
        """A second worker finishes the job, although the ping process of the killed worker goes on."""
        log = self.at_end.enter_context(RequestLog(self.server))
        old = self.worker("pair", name="w-old", through=log)
        job = self.server.run("pair", {"until": "finished"})
        old.records(1, event="begun", id=job)
        new = self.worker("pair", name="w-new")
        new.allow("finished")
        log.wait(1, f"job_id={job}")
        old.kill()
        killed, pings = time.monotonic(), log.count("/ping/w-old")
        done = self.server.finished("pair", job)
        assert (done["status"], done["workerId"], done["retries"]) == ("COMPLETED", "w-new", 1)
        judge_pace("from a worker's death to the end of its job", time.monotonic() - killed, 15)
        log.wait(pings + 1, "/ping/w-old")
        assert len(new.recorded(event="begun", id=job)) == 1

    def test_a_handler_blocking_the_process(self):
        """The server cannot stop the handler, and the worker sends only pings. The result has no effect, and the next
        job runs."""
        worker = self.worker("blocked", BLOCKED)
        job, after = self.server.run("blocked", {"until": "released"}), self.server.run("blocked", {"a": 1})
        worker.records(1, event="begun", id=job)
        self.cancel("blocked", job)
        worker.allow("released")
        done = self.server.finished("blocked", after)
        assert (done["status"], done["output"], done["workerId"]) == ("COMPLETED", {"a": 1}, "w-blocked")
        assert "retries" not in done, done
        status = self.server.status("blocked", job)
        assert status["status"] == "CANCELLED"
        assert "output" not in status, status

    def test_an_unsendable_result(self):
        """The worker loses the job, and reports the loss. The job runs three times; the storage counts the last loss,
        too."""
        worker = self.worker("lost")
        job = self.server.runsync("lost", {"evaluate": "b''"})
        assert (job["status"], job["workerId"], job["retries"]) == ("FAILED", "w-lost", 3)
        assert job["error"]
        assert len(worker.recorded(event="begun", id=job["id"])) == 3
        assert self.server.runsync("lost", {"a": 1})["output"] == {"a": 1}

    def test_workers_without_a_job(self, polls):
        """The server delays the answer to an idle worker, and the refusal of a worker with a wrong key or endpoint:
        without the delay, an unmodified worker sends thousands of requests a second. Ten seconds are ten pings."""
        nameless, idle = polls["w-nameless"], polls["w-idle"]
        nameless.wait(2, "/job-take/?")
        idle.wait(PINGS, "/ping/")
        assert nameless.count("/job-take/?") < idle.count("/ping/")
        for name, log in polls.items():
            if log is nameless:
                continue
            log.wait(PINGS, "/ping/")
            requests = log.requests()
            pings = [place for place, request in enumerate(requests) if "/ping/" in request]
            ten_seconds = requests[:pings[PINGS - 1]]
            for poll in ("/job-take/", "/job-stop/"):
                count = sum(poll in request for request in ten_seconds)
                assert 1 <= count <= 2 if name == "w-idle" else 1 <= count < 10, (name, poll, count)
        assert self.server.runsync("idle", {"a": 1})["workerId"] == "w-idle"


class RestartTest(RunpodTest):
    """The server ends and starts again at the same address, while the worker goes on."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        with contextlib.closing(ReservedPort()) as port:
            yield class_server(**{"endpoint.remote.image": IMAGE, "server.port": port.number}, **SHORT_DRAIN)

    @pytest.fixture(scope="class")
    @classmethod
    def remote(cls, server):
        with RemoteWorker(server, "remote", worker_key(server, "remote"), HANDLER) as worker:
            yield worker

    @pytest.fixture(autouse=True)
    def present(self, question, remote):
        self.remote = remote
        self.webhooks = self.at_end.enter_context(WebhookReceiver())

    def begin(self, step):
        """Submits a job that waits for the step, and returns the job's id once the handler has begun."""
        job = self.server.run("remote", {"until": step}, webhook=self.webhooks.url())
        self.remote.records(1, event="begun", id=job)
        return job

    def assert_completed_once(self, job, runs):
        """Expects a single end of the job, and `runs` runs of the handler."""
        done = self.server.finished("remote", job)
        assert (done["status"], done["workerId"], done["output"]["until"]) == (
            "COMPLETED", "w-remote", self.remote.records(1, id=job)[0]["job"]["input"]["until"])
        # The worker has a single slot: a further run of the job, and the webhook of the run, would come before the next
        # job.
        assert self.server.runsync("remote", {}, webhook=self.webhooks.url("/next"))["status"] == "COMPLETED"
        self.webhooks.wait(1, "/next")
        assert [call.json()["status"] for call in self.webhooks.wait(1)] == ["COMPLETED"]
        assert len(self.remote.recorded(event="begun", id=job)) == runs

    def test_while_the_worker_is_idle(self):
        assert self.server.runsync("remote", {"a": 1})["output"] == {"a": 1}
        self.server.stop()
        self.remote.forget_output()
        self.remote.until_logged("Failed to get job.")
        self.server.start()
        assert self.server.runsync("remote", {"b": 2})["output"] == {"b": 2}

    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_while_a_job_runs(self, end):
        """The worker keeps the job, and the result counts: the restarted server knows the worker of each running
        job."""
        job = self.begin("restarted-" + end)
        getattr(self.server, end)()
        self.server.start()
        assert self.server.status("remote", job)["status"] == "IN_PROGRESS"
        self.remote.allow("restarted-" + end)
        self.assert_completed_once(job, runs=1)

    def test_a_result_without_a_server(self):
        """The SDK drops a result in the absence of a server; the job runs again."""
        job = self.begin("alone")
        self.server.stop()
        self.remote.allow("alone")
        self.remote.until_logged("Failed to return job results.")
        self.server.start()
        self.assert_completed_once(job, runs=2)

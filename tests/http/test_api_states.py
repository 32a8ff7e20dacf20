"""core/http/API.md, "States and transitions": each row of the table, and the absence of other transitions."""

import pytest

from held_jobs import held_server
from http_case import HttpTest
from jobq_server import SHORT_DRAIN, until
from pace import judge_pace
from request_stream import RequestStream
from webhook_receiver import WebhookReceiver


@pytest.mark.endpoints("echo", "trial", "parked")
class StateTest(HttpTest):
    def post(self, endpoint, operation, job):
        return self.server.request("POST", f"/v2/{endpoint}/{operation}/{job}")

    def state(self, endpoint, job):
        return self.server.status(endpoint, job)["status"]

    def until_state(self, endpoint, job, state):
        until(lambda: self.state(endpoint, job) == state, f"the job is {state}")

    @pytest.fixture
    def blocker(self, own_server):
        """A server whose endpoint trial has a single worker, and the job that keeps it busy until it is cancelled."""
        self.server = own_server(endpoint__trial__workersMax=1, **SHORT_DRAIN)
        blocker = self.server.run("trial", {"sleepMs": 600000})
        self.until_state("trial", blocker, "IN_PROGRESS")
        return blocker


class SubmissionTest(StateTest):
    @pytest.mark.parametrize("operation, wait", [("run", ""), ("runsync", "?wait=1000")])
    def test_a_valid_request_is_in_queue_with_an_id(self, operation, wait):
        """core/http/API.md, "States and transitions": (none), /run or /runsync, valid request, IN_QUEUE; a job id is
        issued."""
        answer = self.server.request("POST", f"/v2/parked/{operation}{wait}", {"input": {}})
        job = self.assert_job(answer)
        assert (job["status"], self.state("parked", job["id"])) == ("IN_QUEUE", "IN_QUEUE")

    def test_an_invalid_request_is_no_job(self):
        """core/http/API.md, "States and transitions": only a valid request makes a job."""
        before = self.server.health("parked")["jobs"]["inQueue"]
        for operation in ("run", "runsync"):
            for body in ({"input": 1}, {"input": {}, "policy": {"ttl": 1}}):
                self.assert_refused(self.server.request("POST", f"/v2/parked/{operation}", body), 400)
        assert self.server.health("parked")["jobs"]["inQueue"] == before


class ExecutionTest(StateTest):
    def test_a_worker_picks_the_job_and_succeeds(self, own_server):
        """core/http/API.md, "States and transitions": IN_QUEUE, a worker picks the job, IN_PROGRESS; success is
        COMPLETED with output."""
        server, held = held_server(self.at_end, own_server, endpoint__trial__workersMax=1)
        self.server = server
        blocker = server.run("trial", {"hold": True})
        self.until_state("trial", blocker, "IN_PROGRESS")
        job = server.run("trial", {"hold": True, "output": {"a": 1}})
        assert self.state("trial", job) == "IN_QUEUE", "no worker is free"
        self.post("trial", "cancel", blocker)
        self.until_state("trial", job, "IN_PROGRESS")
        held.release()
        end = server.finished("trial", job)
        assert (end["status"], end["output"]) == ("COMPLETED", {"a": 1})


class CancelTest(StateTest):
    def test_a_cancelled_job_is_removed_before_the_start(self, blocker):
        """core/http/API.md, "States and transitions": IN_QUEUE, /cancel, CANCELLED; the job is removed before it
        starts."""
        server = self.server
        job, behind = server.run("trial", {"output": 1}), server.run("trial", {"output": 2})
        assert self.assert_job(self.post("trial", "cancel", job)) == {"id": job, "status": "CANCELLED"}
        self.post("trial", "cancel", blocker)
        assert server.finished("trial", behind)["output"] == 2
        end = server.status("trial", job)
        assert (end["status"], end["executionTime"], end["workerId"]) == ("CANCELLED", 0, "")
        assert "output" not in end

    def test_a_running_job_is_stopped(self, blocker):
        """core/http/API.md, "States and transitions": IN_PROGRESS, /cancel, CANCELLED; execution is stopped, so the
        worker takes the next job."""
        server = self.server
        behind = server.run("trial", {"output": "next"})
        assert self.assert_job(self.post("trial", "cancel", blocker)) == {"id": blocker, "status": "CANCELLED"}
        assert server.finished("trial", behind)["output"] == "next"
        assert self.state("trial", blocker) == "CANCELLED"

    def test_an_ended_job_is_not_cancelled(self, subtests):
        """core/http/API.md, "/cancel": cancel of a terminal job is 200 with its unchanged state (TIMED_OUT:
        TimedOutTest)."""
        ends = {"COMPLETED": self.server.runsync("trial", {}), "FAILED": self.server.runsync("trial", {"fail": "no"})}
        waiting = self.server.run("parked", {})
        for _ in range(2):  # the second finds it cancelled
            assert self.assert_job(self.post("parked", "cancel", waiting)) == {"id": waiting, "status": "CANCELLED"}
        for state, job in ends.items():
            with subtests.test(state):
                assert job["status"] == state
                assert self.assert_job(self.post("trial", "cancel", job["id"])) == {"id": job["id"], "status": state}
                assert self.server.status("trial", job["id"]) == job


class RetryTest(StateTest):
    def test_a_failed_job(self, own_server):
        """core/http/API.md, "/retry": FAILED, /retry, IN_QUEUE; the same id, the original input, previous output
        removed."""
        server = self.server = own_server(endpoint__trial__workersMax=1)
        first = server.runsync("trial", {"progress": [{"half": 1}], "fail": "the original"})
        assert (first["status"], first["error"]) == ("FAILED", "the original")
        job, blocker = first["id"], server.run("trial", {"sleepMs": 600000})
        assert self.assert_job(self.post("trial", "retry", job)) == {"id": job, "status": "IN_QUEUE"}
        waiting = server.status("trial", job)
        assert (waiting["id"], waiting["status"]) == (job, "IN_QUEUE")
        assert not {"output", "error", "executionTime", "delayTime"} & set(waiting), waiting
        self.post("trial", "cancel", blocker)
        again = server.finished("trial", job)
        assert (again["status"], again["error"], again["retries"]) == ("FAILED", "the original", 1)

    def test_other_states_are_refused(self, subtests):
        """core/http/API.md, "/retry": only FAILED and TIMED_OUT jobs go back by /retry; other states are 400."""
        running = self.server.run("trial", {"sleepMs": 600000})
        self.until_state("trial", running, "IN_PROGRESS")
        self.assert_refused(self.post("trial", "retry", running), 400, "IN_PROGRESS")
        self.post("trial", "cancel", running)
        waiting = self.server.run("parked", {})
        self.assert_refused(self.post("parked", "retry", waiting), 400, "IN_QUEUE")
        self.post("parked", "cancel", waiting)
        done = self.server.runsync("echo", {})["id"]
        for endpoint, job, state in (("trial", running, "CANCELLED"), ("parked", waiting, "CANCELLED"),
                                     ("echo", done, "COMPLETED")):
            with subtests.test(endpoint=endpoint, state=state):
                self.assert_refused(self.post(endpoint, "retry", job), 400, state)
                assert self.state(endpoint, job) == state

    def test_an_expired_job_cannot_be_retried(self):
        """core/http/API.md, "/retry": only before the result has expired; here `/status?ttl=` lets results expire
        soon."""
        job = self.server.runsync("trial", {"fail": "no"})["id"]
        self.assert_job(self.server.request("GET", f"/v2/trial/status/{job}?ttl=1000"))
        until(lambda: self.server.request("GET", f"/v2/trial/status/{job}").status == 404, "the job expires")
        self.assert_refused(self.post("trial", "retry", job), 404)


class TimedOutTest(StateTest):
    """Each test has a job of its own; all of them run into 5 s, the shortest execution timeout, at the same time."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        own = class_server(**{"endpoint.trial.executionTimeout": "5s", "endpoint.trial.workersMax": "3"}, **SHORT_DRAIN)
        with WebhookReceiver() as cls.receiver:
            cls.jobs = [own.run("trial", {"progress": [{"half": 1}], "sleepMs": 600000}, webhook=cls.receiver.url())
                        for _ in range(3)]
            cls.ends = [own.finished("trial", job) for job in cls.jobs]
            yield own

    def test_the_members_of_the_job(self):
        """core/http/API.md, "States and transitions" and "Job object": TIMED_OUT is the execution timeout; the answer
        has the fields of an ended job."""
        for end in self.ends:
            assert end["status"] == "TIMED_OUT"
            assert {"id", "status", "delayTime", "executionTime", "workerId"} <= set(end)
            assert end["executionTime"] >= 5000
            judge_pace("the end of a job after its execution timeout", end["executionTime"] / 1000 - 5, 0.02)
            assert "output" not in end, "it has produced no result"

    def test_the_webhook_of_the_job(self):
        """core/http/API.md, "When a webhook is called": called on TIMED_OUT."""
        bodies = {call.json()["id"]: call.json() for call in self.receiver.wait(3)}
        assert sorted(bodies) == sorted(self.jobs)
        for end in self.ends:
            assert bodies[end["id"]]["status"] == "TIMED_OUT"

    def test_a_timed_out_job_is_not_cancelled(self):
        """core/http/API.md, "/cancel": cancel of a terminal job is 200 with its unchanged state."""
        job = self.jobs[0]
        assert self.assert_job(self.post("trial", "cancel", job)) == {"id": job, "status": "TIMED_OUT"}
        assert self.server.status("trial", job) == self.ends[0]

    def test_lists_and_counters(self):
        """core/http/API.md, "/requests" and "/health": /requests lists by status; failed counts TIMED_OUT."""
        page = self.assert_job(self.server.request("GET", "/v2/trial/requests?status=TIMED_OUT"))
        assert self.jobs[0] in [job["id"] for job in page["requests"]]
        assert self.server.health("trial")["jobs"]["failed"] == 3

    def test_retry(self):
        """core/http/API.md, "/retry": TIMED_OUT, /retry, IN_QUEUE; the same id, the original input, previous output
        removed."""
        job = self.jobs[2]
        blockers = [self.server.run("trial", {"sleepMs": 600000}, policy={"executionTimeout": 600000})
                    for _ in range(3)]
        for blocker in blockers:
            self.until_state("trial", blocker, "IN_PROGRESS")
        assert self.assert_job(self.post("trial", "retry", job)) == {"id": job, "status": "IN_QUEUE"}
        assert self.server.status("trial", job) == {
            "id": job, "status": "IN_QUEUE", "retries": 1, "queueReason": "workers_busy", "queuePosition": 1}
        for blocker in blockers:
            self.post("trial", "cancel", blocker)
        until(lambda: self.server.status("trial", job).get("output") == {"half": 1}, "it runs with its original input")
        self.post("trial", "cancel", job)


class PurgeTest(StateTest):
    def test_waiting_jobs_are_removed_and_counted(self, blocker):
        """core/http/API.md, "/purge-queue": IN_QUEUE, /purge-queue, removed; counted in `removed`, jobs in progress are
        unaffected."""
        server = self.server
        done = server.runsync("echo", {})["id"]
        waiting = [server.run("trial", {}) for _ in range(3)]
        elsewhere = server.run("parked", {})
        answer = server.request("POST", "/v2/trial/purge-queue")
        assert self.assert_job(answer) == {"removed": 3, "status": "completed"}
        for job in waiting:
            self.assert_refused(server.request("GET", f"/v2/trial/status/{job}"), 404)
        assert self.state("trial", blocker) == "IN_PROGRESS"
        assert (self.state("echo", done), self.state("parked", elsewhere)) == ("COMPLETED", "IN_QUEUE")
        assert server.health("trial")["jobs"] == {
            "completed": 0, "failed": 0, "inProgress": 1, "inQueue": 0, "retried": 0}

    def test_low_priority_jobs_wait_too(self, own_server):
        """core/http/API.md, "/purge-queue": /purge-queue affects the jobs waiting in the queue, of both classes."""
        server = own_server()
        for low in (True, False):
            server.run("parked", {}, policy={"lowPriority": low})
        assert self.assert_job(server.request("POST", "/v2/parked/purge-queue"))["removed"] == 2

    def test_a_purged_job_is_gone_for_every_call(self, subtests):
        """core/http/API.md, "/purge-queue": purged jobs are gone: every later call about one is 404."""
        job = self.server.run("parked", {})
        self.assert_job(self.server.request("POST", "/v2/parked/purge-queue"))
        for method, operation in (("GET", "status"), ("GET", "status-sync"), ("GET", "stream"), ("POST", "cancel"),
                                  ("POST", "retry")):
            with subtests.test(operation):
                self.assert_refused(self.server.request(method, f"/v2/parked/{operation}/{job}"), 404)

    def test_many(self, own_server):
        """core/http/API.md, "/purge-queue": `removed` is the number of queued jobs removed, however large."""
        server = own_server(storage="memory")
        with RequestStream(server) as stream:
            assert stream.statuses("POST", "/v2/parked/run", 2500, {"input": {}}) == [200] * 2500
        assert self.assert_job(server.request("POST", "/v2/parked/purge-queue"))["removed"] == 2500

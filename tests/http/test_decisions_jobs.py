"""core/http/API.md, "Jobs": idempotency, cancelling, retrying, priorities. Chunks have a file of their own."""

import os
import re
import threading

import pytest

from http_case import HttpTest
from jobq_server import SHORT_DRAIN, join, until
from lua_case import make_folder


@pytest.mark.endpoints("echo", "trial", "parked")
class IdempotencyTest(HttpTest):
    count = 0

    def new_key(self):
        """A word for Idempotency-Key that no other test, and no other run of this one, has used."""
        IdempotencyTest.count += 1
        return f"test-{os.getpid()}-{os.urandom(6).hex()}-{self.count}"

    def submit(self, word, operation="run", endpoint="parked", body=None, **more):
        return self.server.request("POST", f"/v2/{endpoint}/{operation}", body or {"input": {"n": 1}},
                                   {"Idempotency-Key": word}, **more)

    def waiting(self):
        return self.server.health("parked")["jobs"]["inQueue"]

    def test_run(self):
        """core/http/API.md, "Idempotency key": the same Idempotency-Key gives the first job's answer, and no second
        job."""
        word, before = self.new_key(), self.waiting()
        first = self.assert_job(self.submit(word))
        for _ in range(3):
            assert self.assert_job(self.submit(word)) == first
        assert self.waiting() == before + 1
        assert self.assert_job(self.submit(self.new_key()))["id"] != first["id"]

    def test_runsync(self):
        """core/http/API.md, "Idempotency key": Idempotency-Key on /runsync: the first job's result, without running it
        again."""
        word = self.new_key()
        body = {"input": {"output": {"a": 1.5}}}
        before = self.server.quiet("trial")["completed"]
        first = self.assert_job(self.submit(word, "runsync", "trial", body))
        assert (first["status"], first["output"]) == ("COMPLETED", {"a": 1.5})
        assert self.assert_job(self.submit(word, "runsync", "trial", body)) == first
        assert self.server.quiet("trial")["completed"] == before + 1

    def test_runsync_joins_a_running_job(self):
        """core/http/API.md, "Idempotency key": a second caller with the same /runsync during the first wait gets the
        answer of the first job."""
        word = self.new_key()
        body = {"input": {"sleepMs": 500, "output": "one"}}
        answers = []
        callers = [threading.Thread(target=lambda: answers.append(self.submit(word, "runsync", "trial", body)))
                   for _ in range(8)]
        for caller in callers:
            caller.start()
        join("eight callers of one job are answered", *callers)
        jobs = [self.assert_job(answer) for answer in answers]
        assert {(job["id"], job["status"], job["output"]) for job in jobs} == {(jobs[0]["id"], "COMPLETED", "one")}

    def test_a_different_body(self):
        """core/http/API.md, "Idempotency key": the same Idempotency-Key with another body is 400, and makes no job."""
        word = self.new_key()
        first = self.assert_job(self.submit(word))
        before = self.waiting()
        for body in ({"input": {"n": 2}}, {"input": {"n": 1}, "policy": {"ttl": 60000}}):
            self.assert_refused(self.submit(word, body=body), 400, "Idempotency-Key")
        assert self.waiting() == before
        assert self.assert_job(self.submit(word)) == first

    def test_a_different_endpoint_and_a_different_api_key(self):
        """core/http/API.md, "Idempotency key": the key belongs to an endpoint and an API key: elsewhere the same key
        starts another job."""
        word = self.new_key()
        first = self.assert_job(self.submit(word))["id"]
        assert self.assert_job(self.submit(word, endpoint="echo"))["id"] != first
        other = self.server.new_key("client")
        self.at_end.callback(lambda: self.server.request("DELETE", f"/v1/keys/{other['id']}"))
        theirs = self.assert_job(self.submit(word, key=other["key"]))["id"]
        assert theirs != first
        assert self.assert_job(self.submit(word, key=other["key"]))["id"] == theirs
        assert self.assert_job(self.submit(word, key=other["key"], body={"input": {"n": 1}}))["id"] == theirs

    def test_both_mounts(self):
        """core/http/API.md, "The two mounts": the second mount has the same endpoint and the same idempotency keys."""
        word = self.new_key()
        first = self.assert_job(self.submit(word))
        answer = self.server.request("POST", "/sdk/v2/parked/run", {"input": {"n": 1}}, {"idempotency-key": word})
        assert self.assert_job(answer) == first

    def test_a_crowd_with_one_key(self):
        """core/http/API.md, "Idempotency key": any number of equal calls at once make one job."""
        word, before = self.new_key(), self.waiting()
        answers = []
        callers = [threading.Thread(target=lambda: answers.append(self.submit(word))) for _ in range(16)]
        for caller in callers:
            caller.start()
        join("sixteen callers with one key are answered", *callers)
        assert len({self.assert_job(answer)["id"] for answer in answers}) == 1
        assert self.waiting() == before + 1

    def test_a_refused_request_uses_up_no_key(self):
        """core/http/API.md, "Idempotency key": only a job's answer is kept, not a refusal."""
        word = self.new_key()
        self.assert_refused(self.submit(word, body={"input": 5}), 400, "input")
        self.assert_job(self.submit(word))

    def test_a_key_outlives_the_job_and_the_server(self, own_server):
        """core/http/API.md, "Idempotency key": within 24 h the first job's answer, also when the job is gone, and after
        a restart."""
        server = self.server = own_server()
        word = self.new_key()
        first = self.assert_job(self.submit(word))
        server.kill()
        server.start()
        assert self.assert_job(self.submit(word)) == first
        server.request("POST", "/v2/parked/purge-queue")
        assert self.assert_job(self.submit(word))["id"] == first["id"]
        assert self.waiting() == 0
        self.assert_refused(self.submit(word, body={"input": {"n": 2}}), 400, "Idempotency-Key")


class StuckTest(HttpTest):
    def test_a_handler_ignoring_the_stop(self, own_server):
        """core/http/API.md, "/cancel": a handler that ignores the stop for `stopGrace` is logged as stuck, and its slot
        is replaced."""
        server = own_server(endpoint__trial__workersMax=1, endpoint__trial__stopGrace="300ms", server__drain="500ms")
        stuck = server.run_ignoring_stop("trial")
        assert self.assert_job(server.request("POST", f"/v2/trial/cancel/{stuck}"))["status"] == "CANCELLED"
        assert server.runsync("trial", {"output": "next"})["output"] == "next", "another worker has its slot"
        assert re.search(r"(?i)stuck", server.log())
        assert server.status("trial", stuck)["status"] == "CANCELLED"

    LATE = """return function(input, job)
      if input.output then return input.output end
      job:progress("begun")
      while not job:stopped() do end
      return "late"
    end"""

    def test_a_late_result_is_ignored(self, own_server, tmp_path):
        """core/http/API.md, "/cancel": cancel of a running job answers at once; a late result is ignored."""
        make_folder(str(tmp_path), {"late": self.LATE})
        server = own_server(scripts__path=tmp_path, endpoint__trial__image="lua/late", endpoint__trial__workersMax=1)
        late = server.run("trial", {})
        until(lambda: server.status("trial", late).get("output") == "begun", "the handler has begun")
        self.assert_job(server.request("POST", f"/v2/trial/cancel/{late}"))
        cancelled = server.status("trial", late)
        assert cancelled["status"] == "CANCELLED"
        until(lambda: f"job.stale: the result of {late}" in server.log(), "the late result has come")
        assert server.runsync("trial", {"output": "next"})["output"] == "next"
        assert server.status("trial", late) == cancelled
        assert server.health("trial")["jobs"]["completed"] == 1


class RetryTest(HttpTest):
    def test_to_the_end_of_the_queue(self, own_server):
        """core/http/API.md, "/retry": a retried job goes to the end of the queue."""
        server = own_server(endpoint__trial__workersMax=1, **SHORT_DRAIN)
        failed = server.runsync("trial", {"fail": "no"})["id"]
        blocker = server.run("trial", {"sleepMs": 600000})
        before = [server.run("trial", {"n": n}) for n in range(3)]
        self.assert_job(server.request("POST", f"/v2/trial/retry/{failed}"))
        server.request("POST", f"/v2/trial/cancel/{blocker}")
        again = server.finished("trial", failed)
        assert (again["status"], again["retries"]) == ("FAILED", 1)
        assert [server.status("trial", job)["status"] for job in before] == ["COMPLETED"] * 3

    def test_counters(self, own_server):
        """core/decisions/jobs.md: completed and failed are written with the outcome; retried counts losses and
        /retry."""
        server = own_server()
        for job_input in ({}, {"fail": "no"}):
            last = server.runsync("trial", job_input)
        jobs = {"completed": 1, "failed": 1, "inProgress": 0, "inQueue": 0, "retried": 0}
        assert server.health("trial")["jobs"] == jobs
        self.assert_job(server.request("POST", f"/v2/trial/retry/{last['id']}"))
        server.finished("trial", last["id"])
        jobs.update(failed=2, retried=1)
        assert server.health("trial")["jobs"] == jobs
        waiting = server.run("parked", {})
        server.request("POST", f"/v2/parked/cancel/{waiting}")
        assert server.health("parked")["jobs"]["failed"] == 0, "CANCELLED is not failed"
        server.restart()
        assert server.health("trial")["jobs"] == jobs, "since the endpoint's creation, not the server's start"


class PriorityTest(HttpTest):
    @pytest.mark.parametrize("policy", ["priority", "fifo", "deadline", "fair"])
    def test_low_priority_waits_for_all_other_jobs(self, policy, own_server):
        """core/http/API.md, "Order of jobs": two classes under every queue policy; low runs when no normal job
        waits."""
        server = own_server(queue__policy=policy, endpoint__trial__workersMax=1)
        blocker = server.run("trial", {"sleepMs": 600000})
        until(lambda: server.status("trial", blocker)["status"] == "IN_PROGRESS", "the worker is busy")
        low = server.run("trial", {"sleepMs": 20}, policy={"lowPriority": True})
        normal = [server.run("trial", {"sleepMs": 20}) for _ in range(3)]
        server.request("POST", f"/v2/trial/cancel/{blocker}")
        last = server.finished("trial", low)
        ends = [server.finished("trial", job) for job in normal]
        assert [last["status"], *(end["status"] for end in ends)] == ["COMPLETED"] * 4
        assert last["delayTime"] > max(end["delayTime"] for end in ends), "it was taken last"
        assert server.health("trial")["jobs"]["completed"] == 4

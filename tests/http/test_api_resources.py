"""core/http/API.md, "Jobs": the fields of requests and answers, and no other fields."""

import json

import pytest

from http_case import HttpTest
from jobq_server import SHORT_DRAIN, until
from pace import judge_pace

HOOK = "http://127.0.0.1:9/nobody"
S3 = {"accessId": "id", "accessSecret": "secret", "bucketName": "bucket", "endpointUrl": "https://s3.example"}


@pytest.mark.endpoints("echo")
class RequestBodyTest(HttpTest):
    def test_input_alone_is_enough(self, subtests):
        """core/http/API.md, "Job request body": `input` is required; `webhook`, `policy` and `s3Config` are not."""
        for operation in ("run", "runsync"):
            self.assert_job(self.server.request("POST", f"/v2/echo/{operation}", {"input": {}}))
            for missing in ({}, {"webhook": HOOK}, {"policy": {}}, {"s3Config": S3}):
                with subtests.test(operation=operation, body=missing):
                    self.assert_refused(self.server.request("POST", f"/v2/echo/{operation}", missing), 400, "input")

    def test_every_field_together(self, subtests):
        """core/http/API.md, "Job request body": `input`, `webhook`, `policy` and `s3Config` beside each other."""
        body = {"input": {"a": 1}, "webhook": HOOK, "s3Config": S3,
                "policy": {"executionTimeout": 60000, "lowPriority": False, "ttl": 600000}}
        for operation in ("run", "runsync"):
            with subtests.test(operation):
                job = self.assert_job(self.server.request("POST", f"/v2/echo/{operation}", body))
                assert self.server.finished("echo", job["id"])["output"] == {"a": 1}

    def test_the_contents_of_input_are_the_workers(self):
        """core/http/API.md, "Job request body": the contents of `input` are defined by the worker, whatever their names
        are."""
        job_input = {"input": {"input": None}, "id": 1, "status": "FAILED", "webhook": 5, "policy": "x", "s3Config": []}
        assert self.server.runsync("echo", job_input)["output"] == job_input


class ExecutionTimeoutTest(HttpTest):
    """5 s is the shortest there is, so all jobs run at the same time, and the tests look at their ends."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        own = class_server(**{
            "endpoint.trial.executionTimeout": "5s", "endpoint.line.image": "plugin/trial",
            "endpoint.line.executionTimeout": "5s", "endpoint.line.workersMax": "1", **SHORT_DRAIN})
        more = {"executionTimeout": 600000}
        cls.jobs = {"longer": own.run("trial", {"sleepMs": 6500, "output": 1}, policy=more),
                    "in front": own.run("line", {"sleepMs": 600000}, policy=more),
                    "behind": own.run("line", {"output": "in time"}),
                    "theirs": own.run("trial", {"sleepMs": 60000}),
                    "shorter": own.run("trial", {"sleepMs": 60000}, policy={"executionTimeout": 5000})}
        return own

    def end(self, endpoint, name):
        return self.server.finished(endpoint, self.jobs[name])

    def test_the_timeout_of_the_job_wins_over_the_endpoints(self):
        """core/http/API.md, "Policy": `executionTimeout` overrides the endpoint-level setting, for this job only."""
        for name in ("theirs", "shorter"):
            end = self.end("trial", name)
            assert end["status"] == "TIMED_OUT"
            assert 5000 <= end["executionTime"] < 60000, end
            judge_pace("the end of a job after its execution timeout", end["executionTime"] / 1000 - 5, 5)
        assert self.end("trial", "longer")["status"] == "COMPLETED"

    def test_the_queue_does_not_count(self):
        """core/http/API.md, "Policy": `executionTimeout` is enforced only during execution."""
        assert self.end("trial", "theirs")["status"] == "TIMED_OUT"  # 5 s, and `behind` waits for longer than that
        self.assert_job(self.server.request("POST", f"/v2/line/cancel/{self.jobs['in front']}"))
        end = self.end("line", "behind")
        assert (end["status"], end["output"]) == ("COMPLETED", "in time")
        assert end["delayTime"] > 5000, "it waited longer than it might run"


class LowPriorityTest(HttpTest):
    def test_low_priority_does_not_scale(self, own_server):
        """core/http/API.md, "Policy": a `lowPriority` job does not trigger worker scaling; the default is false."""
        server = own_server(endpoint__trial__workersMin=0)
        low = server.run("trial", {"output": "low"}, policy={"lowPriority": True})
        assert server.status("trial", low)["status"] == "IN_QUEUE"
        plain = server.runsync("echo", {})  # the dispatcher has been round by now
        assert (plain["status"], server.status("trial", low)["status"]) == ("COMPLETED", "IN_QUEUE")
        workers = server.health("trial")["workers"]
        assert (workers["running"], workers["idle"], workers["initializing"]) == (0, 0, 0)
        server.runsync("trial", {}, policy={"lowPriority": False})
        assert server.finished("trial", low)["output"] == "low", "a worker that is there takes it"


@pytest.mark.endpoints("echo", "trial", "parked")
class ResponseTest(HttpTest):
    STATES = {"IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}

    def test_id_and_status_are_always_there(self, subtests):
        """core/http/API.md, "Job object": `id` and `status` always, a string and one of the job states."""
        waiting = self.server.run("parked", {})
        failed = self.server.runsync("trial", {"fail": "no"})["id"]
        for method, path in (("POST", "/v2/echo/run"), ("POST", "/v2/echo/runsync"),
                             ("GET", f"/v2/parked/status/{waiting}"), ("GET", f"/v2/trial/status/{failed}"),
                             ("POST", f"/v2/parked/cancel/{waiting}"), ("POST", f"/v2/trial/retry/{failed}")):
            with subtests.test(method=method, path=path):
                job = self.assert_job(self.server.request(method, path, {"input": {}} if method == "POST" else None))
                assert isinstance(job["id"], str)
                assert job["status"] in self.STATES

    def test_run_retry_and_cancel_return_two_fields(self, subtests):
        """core/http/API.md, "Job object": `/run`, `/retry` and `/cancel` return only `id` and `status`."""
        failed = self.server.runsync("trial", {"fail": "no"})["id"]
        done = self.server.runsync("trial", {"output": {"a": 1}})["id"]
        run = self.assert_job(self.server.request("POST", "/v2/parked/run", {"input": {}}))
        answers = {"run": run,
                   "retry": self.assert_job(self.server.request("POST", f"/v2/trial/retry/{failed}")),
                   "cancel": self.assert_job(self.server.request("POST", f"/v2/parked/cancel/{run['id']}")),
                   "cancel of one with an output": self.assert_job(
                       self.server.request("POST", f"/v2/trial/cancel/{done}"))}
        for name, answer in answers.items():
            with subtests.test(name):
                assert set(answer) == {"id", "status"}

    def test_output_is_there_when_there_is_a_result(self, subtests):
        """core/http/API.md, "Job object": `output` when the job has produced a result, of any shape, by both calls."""
        for output in ({"a": 1}, [1, 2], "text", 0, False, None, {}, []):
            with subtests.test(output=output):
                job = self.server.runsync("trial", {"output": output})
                assert job["output"] == output
                assert self.server.status("trial", job["id"])["output"] == output
        waiting = self.server.run("parked", {})
        assert "output" not in self.server.status("parked", waiting)

    def test_times_are_on_both_results(self):
        """core/http/API.md, "Job object": `delayTime` and `executionTime`, integers, on /runsync and /status
        results."""
        job = self.server.runsync("trial", {"sleepMs": 30})
        for answer in (job, self.server.status("trial", job["id"])):
            for field in ("delayTime", "executionTime"):
                assert type(answer[field]) is int
            assert answer["executionTime"] >= 30

    def test_progress_is_the_output_of_a_running_job(self):
        """core/http/API.md, "Job object": a handler's progress is the `output` of an IN_PROGRESS job, until the result
        takes its place."""
        progress = [{"at": 1}, {"at": 2}]
        job = self.server.run("trial", {"progress": progress, "sleepMs": 600000})
        until(lambda: self.server.status("trial", job).get("output") == {"at": 2}, "the job reports")
        assert self.server.status("trial", job)["status"] == "IN_PROGRESS"
        self.assert_job(self.server.request("POST", f"/v2/trial/cancel/{job}"))
        assert self.server.runsync("trial", {"progress": progress, "output": "done"})["output"] == "done"


@pytest.mark.endpoints("echo", "trial")
class StreamChunkTest(HttpTest):
    def test_a_chunk_is_an_object_with_its_output(self):
        """core/http/API.md, "Stream chunk": `output` with the handler's bytes; `metrics` is an object, present if the
        handler gave any."""
        job = self.server.runsync("trial", {"chunks": 3, "chunkBytes": 4})["id"]
        chunks = self.assert_job(self.server.request("GET", f"/v2/trial/stream/{job}"))
        assert [chunk["output"] for chunk in chunks] == [{"chunk": n, "data": "xxxx"} for n in range(3)]
        for chunk in chunks:
            assert set(chunk) <= {"output", "metrics"}
            assert isinstance(chunk.get("metrics", {}), dict)

    def test_bytes_of_a_chunk(self):
        """core/http/API.md, "Stream chunk": a chunk's output is the handler's own bytes, key order and spacing
        included."""
        job = self.server.runsync("trial", {"chunks": 1, "chunkBytes": 2})["id"]
        answer = self.server.request("GET", f"/v2/trial/stream/{job}")
        assert b'"output":{"chunk":0,"data":"xx"}' in answer.body
        assert json.loads(answer.body) == [{"output": {"chunk": 0, "data": "xx"}}]


@pytest.mark.endpoints("parked")
class PurgeResultTest(HttpTest):
    def test_a_purge_result_has_two_fields(self):
        """core/http/API.md, "/purge-queue": `removed`, an integer, and `status`, a lower-case completion indicator."""
        self.server.run("parked", {})
        answer = self.assert_job(self.server.request("POST", "/v2/parked/purge-queue"))
        assert set(answer) == {"removed", "status"}
        assert type(answer["removed"]) is int
        assert answer["removed"] >= 1
        assert answer["status"] == "completed"
        assert self.assert_job(self.server.request("POST", "/v2/parked/purge-queue")) == {
            "removed": 0, "status": "completed"}


class HealthObjectTest(HttpTest):
    def test_each_counter_counts(self, own_server):
        """core/http/API.md, "/health": completed, failed, inProgress, inQueue, retried; idle and running workers."""
        server = own_server(endpoint__trial__workersMin=2, endpoint__trial__workersMax=2)
        until(lambda: server.health("trial")["workers"]["idle"] == 2, "both workers idle")
        for job_input in ({}, {}, {"fail": "no"}):
            last = server.runsync("trial", job_input)
        self.assert_job(server.request("POST", f"/v2/trial/retry/{last['id']}"))
        server.finished("trial", last["id"])
        running = server.run("trial", {"sleepMs": 600000})
        until(lambda: server.status("trial", running)["status"] == "IN_PROGRESS", "the job runs")
        server.run("parked", {})
        # The storage knows of a claim before the dispatcher has noted the busy worker, and of an end before the worker is
        # noted as idle.
        until(lambda: [server.health("trial")["workers"][state] for state in ("idle", "running")] == [1, 1],
              "a worker is counted as running, and one as idle")
        health = server.health("trial")
        assert health["jobs"] == {"completed": 2, "failed": 2, "inProgress": 1, "inQueue": 0, "retried": 1}
        assert (health["workers"]["idle"], health["workers"]["running"]) == (1, 1)
        assert server.health("parked")["jobs"]["inQueue"] == 1
        self.assert_job(server.request("POST", f"/v2/trial/cancel/{running}"))

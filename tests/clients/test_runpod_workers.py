"""The Python package runpod (tests/clients/requirements.txt), unmodified, on both sides of the server: the worker
serves endpoints over /v2 and /sdk/v2, and the clients call endpoints over /sdk/v2."""

import contextlib
import json
import types

import openai
import pytest

from request_log import RequestLog
from runpod_case import GENERATOR, HANDLER, RunpodTest
from runpod_process import MISSING, RemoteWorker, RunpodClient, installed, worker_key
from webhook_receiver import WebhookReceiver

pytestmark = [pytest.mark.skipif(not installed(), reason=MISSING), pytest.mark.timeout(480)]

SECRET = "the-secret-of-the-bucket"
SIX_KEYS = {"error_type", "error_message", "error_traceback", "hostname", "worker_id", "runpod_version"}
RESULTS = [  # the return value of a handler, and the members of the finished job
    ("{'a': [1, 'ä']}", {"status": "COMPLETED", "output": {"a": [1, "ä"]}}),
    ("[1, 2]", {"status": "COMPLETED", "output": [1, 2]}),
    ("None", {"status": "COMPLETED", "output": None}),
    ("True", {"status": "COMPLETED", "output": True}),
    ("'text'", {"status": "COMPLETED", "output": "text"}),
    ("{}", {"status": "COMPLETED"}),
    ("{'error': 'too warm'}", {"status": "FAILED", "error": "too warm"}),
    ("{'error': float('nan')}", {"status": "FAILED", "error": "NaN"}),  # Python treats NaN as true
    ("{'error': None}", {"status": "COMPLETED"}),
    ("{'error': 'too warm', 'degrees': 41}", {"status": "FAILED", "error": "too warm", "output": {"degrees": 41}}),
]
NUMBERS = """job = endpoint.run({"count": 3})
record(numbers=[chunk["n"] for chunk in job.stream()], output=job.output(timeout=60), status=job.status())
"""
NUMBERS_LATER = """import aiohttp
async def main():
    async with aiohttp.ClientSession() as session:
        job = await runpod.AsyncioEndpoint(arguments["endpoint"], session).run({"count": 3})
        record(numbers=[chunk["n"] async for chunk in job.stream()])
asyncio.run(main())
"""
STREAMS, CHUNKS = 8, 100
FOLLOW = """import threading
def follow(number):
    job = runpod.Endpoint(arguments["endpoint"]).run({"count": arguments["chunks"], "pause": 0.02})
    record(**{str(number): [chunk["n"] for chunk in job.stream()]})
threads = [threading.Thread(target=follow, args=(number,)) for number in range(arguments["streams"])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
EVERY_OPERATION = """import aiohttp
job = endpoint.run({"until": "released"})
record(state=job.status(), cancel=job.cancel()["status"], after=job.status(), health=endpoint.health(),
       purge=endpoint.purge_queue(), sync=endpoint.run_sync({"a": 1}), empty=endpoint.run_sync({}))
async def main():
    async with aiohttp.ClientSession() as session:
        endpoint = runpod.AsyncioEndpoint(arguments["endpoint"], session)
        job = await endpoint.run({"until": "released"})
        record(later_cancel=(await job.cancel())["status"], later_health=await endpoint.health(),
               later_purge=await endpoint.purge_queue())
        job = await endpoint.run({"b": 2})
        record(later=await job.output(60), later_state=await job.status())
asyncio.run(main())
"""


class RunpodWorkersTest(RunpodTest):
    endpoints = ("remote", "single", "stream", "aggregate", "late", "batch", "refreshed", "once", "plain")
    settings = {"limits__enabled": "true"}

    @pytest.fixture(scope="class")
    @classmethod
    def workers(cls, server):
        """The workers of all tests of the class. The worker of `aggregate` uses the mount /sdk/v2."""
        with contextlib.ExitStack() as stack:
            def start(endpoint, script, **more):
                key = worker_key(server, endpoint)
                return stack.enter_context(RemoteWorker(server, endpoint, key, script, **more))
            yield types.SimpleNamespace(
                remote=start("remote", HANDLER, concurrency=8), single=start("single", HANDLER),
                stream=start("stream", GENERATOR, concurrency=STREAMS),
                aggregate=start("aggregate", GENERATOR, urls={"mount": "/sdk/v2"}, aggregate=True, concurrency=4))

    @pytest.fixture(autouse=True)
    def present(self, question, workers):
        self.workers = workers

    def test_ids(self):
        """The handler reads only the id and the input; the job has the id of the worker."""
        job = self.client("remote", 'job = endpoint.run({"a": 1})\nrecord(id=job.job_id, output=job.output(timeout=60))')
        assert job["output"] == {"a": 1}
        assert self.workers.remote.records(1, id=job["id"])[0]["job"] == {"id": job["id"], "input": {"a": 1}}
        status = self.server.status("remote", job["id"])
        assert (status["id"], status["status"], status["workerId"]) == (job["id"], "COMPLETED", "w-remote")
        assert isinstance(status["delayTime"], int) and isinstance(status["executionTime"], int), status
        assert "retries" not in status, status

    def test_every_operation(self):
        """Both clients make every operation. A job with a waiting handler is cancelled in the queue or at the
        worker."""
        done = self.client("remote", EVERY_OPERATION)
        assert done["state"] in ("IN_QUEUE", "IN_PROGRESS")
        assert (done["cancel"], done["after"], done["later_cancel"]) == ("CANCELLED",) * 3
        assert (done["sync"], done["empty"], done["later"], done["later_state"]) == ({"a": 1}, None, {"b": 2}, "COMPLETED")
        for purge in (done["purge"], done["later_purge"]):
            assert set(purge) == {"removed", "status"} and purge["status"] == "completed", purge
        for health in (done["health"], done["later_health"]):
            assert set(health["jobs"]) == {"completed", "failed", "inProgress", "inQueue", "retried"}
            assert set(health["workers"]) == {"idle", "initializing", "ready", "running", "throttled", "unhealthy"}
            assert all(type(count) is int for part in health.values() for count in part.values()), health
            assert health["workers"]["idle"] + health["workers"]["running"] == 1, health

    def test_a_later_worker(self):
        with RunpodClient(self.server, "late", """job = endpoint.run({"a": 1})
record(first=job.status())
record(output=job.output(timeout=60), last=job.status())""") as client:
            client.records(1, first="IN_QUEUE")
            self.worker("late")
            assert client.results() == {"first": "IN_QUEUE", "output": {"a": 1}, "last": "COMPLETED"}

    def test_private_fields(self):
        """The handler reads s3Config; neither the job nor the webhook has the secret."""
        s3 = {"accessId": "acme", "accessSecret": SECRET, "bucketName": "b", "endpointUrl": "http://127.0.0.1:9",
              "objectPath": "a/b"}
        with WebhookReceiver() as receiver:
            job = self.client("remote", """job = endpoint.run(arguments["request"])
record(id=job.job_id, output=job.output(timeout=60))""", request={
                "input": {"a": 1}, "webhook": receiver.url(), "policy": {"ttl": 60_000}, "s3Config": s3})
            call = receiver.wait()[0]
        assert job["output"] == {"a": 1}
        assert self.workers.remote.records(1, id=job["id"])[0]["job"]["s3Config"] == s3
        status = self.server.request("GET", f"/v2/remote/status/{job['id']}")
        assert SECRET.encode() not in status.body + call.body
        assert call.headers["Content-Type"] == "application/json"
        assert (call.json()["id"], call.json()["output"], call.json()["input"]) == (job["id"], {"a": 1}, {"a": 1})

    def test_a_raising_handler(self):
        assert self.client("remote", 'record(output=endpoint.run_sync({"raise": "äh"}))') == {"output": None}
        job = self.server.runsync("remote", {"raise": "äh"})
        assert (job["status"], job["workerId"]) == ("FAILED", "w-remote")
        assert "output" not in job
        error = json.loads(job["error"])
        assert set(error) == SIX_KEYS
        assert (error["error_type"], error["error_message"]) == ("<class 'ValueError'>", "äh")
        assert error["worker_id"] == "w-remote"

    def test_a_wrong_key(self):
        error = self.client("remote", """try:
    endpoint.health()
except RuntimeError as fault:
    record(error=str(fault))""", key="wrong")["error"]
        assert error.startswith("401 Unauthorized")

    @pytest.mark.parametrize(("value", "members"), RESULTS)
    def test_each_kind_of_result(self, value, members):
        job = self.server.runsync("remote", {"evaluate": value})
        for name in ("id", "delayTime", "executionTime"):
            del job[name]
        assert job == {"workerId": "w-remote", **members}

    def test_an_error_of_another_type(self):
        """core/http/API.md, "Job object": an error is a string."""
        job = self.server.runsync("remote", {"evaluate": "{'error': {'code': 7}}"})
        assert job["status"] == "FAILED"
        assert json.loads(job["error"]) == {"code": 7}

    def test_numbers_missing_in_json(self):
        answer = self.server.request("POST", "/v2/remote/runsync", {"input": {
            "evaluate": "{'v': float('nan'), 'i': [float('inf'), -float('inf')], 's': 'NaN'}"}})

        def refuse(word):
            raise AssertionError(f"{word} is not JSON: {answer.body}")
        job = json.loads(answer.body, parse_constant=refuse)
        assert (job["status"], job["output"]) == ("COMPLETED", {"v": None, "i": [None, None], "s": "NaN"})

    def test_a_too_large_result(self):
        """The job ends, and the worker serves the next job."""
        job = self.server.runsync("remote", {"evaluate": "'x' * 21_500_000"})
        assert (job["status"], job["workerId"]) == ("FAILED", "w-remote")
        assert "20 MB" in job["error"]
        assert self.server.runsync("remote", {"evaluate": "len('x' * 21_500_000)"})["output"] == 21_500_000

    def test_a_large_result(self):
        job = self.server.runsync("remote", {"evaluate": "'ä' * 5_000_000"})
        assert job["output"] == "ä" * 5_000_000

    def test_purge(self):
        """The running job is left alone."""
        running = self.server.run("single", {"until": "purged"})
        self.workers.single.records(1, id=running)
        queued = [self.server.run("single", {}) for _ in range(3)]
        assert self.client("single", "record(**endpoint.purge_queue())") == {"removed": 3, "status": "completed"}
        self.workers.single.allow("purged")
        assert self.server.finished("single", running)["status"] == "COMPLETED"
        for job in queued:
            assert self.server.request("GET", f"/v2/single/status/{job}").status == 404
            assert not self.workers.single.recorded(id=job)

    def test_cancel_in_the_queue(self):
        running = self.server.run("single", {"until": "cancelled"})
        self.workers.single.records(1, id=running)
        job = self.client("single", 'job = endpoint.run({"a": 1})\nrecord(id=job.job_id, answer=job.cancel())')
        assert job["answer"] == {"id": job["id"], "status": "CANCELLED"}
        self.workers.single.allow("cancelled")
        assert self.server.runsync("single", {"b": 2})["status"] == "COMPLETED"
        assert self.server.finished("single", running)["status"] == "COMPLETED"
        assert not self.workers.single.recorded(id=job["id"])

    def test_progress(self):
        job = self.server.run("remote", {"progress": [1, 2], "a": 3})
        for value in (1, 2):
            self.until_job("remote", job, status="IN_PROGRESS", output=value)
            self.workers.remote.allow(f"behind-{value}")
        done = self.server.finished("remote", job)
        assert (done["status"], done["output"]) == ("COMPLETED", {"progress": [1, 2], "a": 3})

    def test_generators(self):
        """The chunks are streamed, and are the output, too, if the worker says so."""
        whole = [{"n": 0}, {"n": 1}, {"n": 2}]
        clients = [self.at_end.enter_context(RunpodClient(self.server, endpoint, script)) for endpoint, script in (
            ("stream", NUMBERS), ("aggregate", NUMBERS), ("stream", NUMBERS_LATER))]
        assert [client.results() for client in clients] == [
            {"numbers": [0, 1, 2], "output": [], "status": "COMPLETED"},
            {"numbers": [0, 1, 2], "output": whole, "status": "COMPLETED"}, {"numbers": [0, 1, 2]}]

    def test_a_raising_generator(self):
        job = self.server.runsync("stream", {"count": 2, "raise": "äh"})
        assert job["status"] == "FAILED"
        assert job["error"].startswith("handler: äh")
        chunks = self.server.request("GET", f"/v2/stream/stream/{job['id']}").json()
        assert chunks == [{"output": {"n": 0}}, {"output": {"n": 1}}]

    @pytest.mark.parametrize(("value", "text"), [("too warm", "too warm"), ({"code": 7}, "{'code': 7}")])
    def test_a_generator_yielding_an_error(self, value, text):
        """The SDK ends the job there, and makes a text of the error."""
        job = self.server.runsync("stream", {"count": 1, "error": value})
        assert (job["status"], job["error"]) == ("FAILED", text)
        assert self.server.request("GET", f"/v2/stream/stream/{job['id']}").json() == [{"output": {"n": 0}}]

    def test_streams_beside_each_other(self):
        """Each stream is whole and in order, under the default limits of the server."""
        streams = self.client("stream", FOLLOW, streams=STREAMS, chunks=CHUNKS)
        assert streams == {str(number): list(range(CHUNKS)) for number in range(STREAMS)}

    def test_openai(self):
        client = openai.OpenAI(base_url=self.server.url + "/v2/aggregate/openai/v1", api_key=self.server.key, max_retries=0)
        ask = {"model": "gauge", "messages": [{"role": "user", "content": "how is the weather?"}]}
        text = client.chat.completions.create(**ask).choices[0].message.content
        assert text.startswith("a fine day")
        words = [event.choices[0].delta.content for event in client.chat.completions.create(**ask, stream=True)]
        assert words == text.split(" ")
        assert [model.id for model in client.models.list()] == ["gauge"]
        inputs = [record["job"]["input"] for record in self.workers.aggregate.recorded(event="begun")]
        assert {"openai_route": "/v1/models"} in inputs
        assert {"openai_route": "/v1/chat/completions", "openai_input": ask} in inputs

    def test_several_jobs_at_once(self):
        """A worker with five slots asks for five jobs, and has five at most."""
        jobs = [self.server.run("batch", {"until": "all"}) for _ in range(7)]
        log = self.at_end.enter_context(RequestLog(self.server))
        worker = self.worker("batch", through=log, concurrency=5)
        assert {record["id"] for record in worker.records(5, event="begun")} == set(jobs[:5])
        asked = log.requests("/job-take-batch/w-batch?")
        assert any("batch_size=5" in request and "job_in_progress=0" in request for request in asked), asked
        worker.allow("all")
        assert [self.server.finished("batch", job)["status"] for job in jobs] == ["COMPLETED"] * 7
        assert len(worker.recorded(event="begun")) == 7

    def test_urls_without_a_query(self):
        """The SDK appends parameters with `&`, so the parameters become part of the last segment of the path."""
        log = self.at_end.enter_context(RequestLog(self.server))
        self.worker("plain", GENERATOR, urls={"query": ""}, through=log)
        job = self.server.runsync("plain", {"count": 2})
        assert (job["status"], job["workerId"], job["output"]) == ("COMPLETED", "w-plain", [])
        chunks = self.server.request("GET", f"/v2/plain/stream/{job['id']}").json()
        assert chunks == [{"output": {"n": 0}}, {"output": {"n": 1}}]
        assert log.count("/job-take/w-plain&job_in_progress=0")
        assert log.count(f"/job-done/w-plain/{job['id']}&isStream=true") == 1

    def test_refresh_worker_in_a_result(self):
        """The worker gets no further job, and the server delays the answers to the polls, so the worker does not poll
        in a loop."""
        log = self.at_end.enter_context(RequestLog(self.server))
        old = self.worker("refreshed", name="w-old", through=log, concurrency=4)
        job = self.server.runsync("refreshed", {"evaluate": "{'refresh_worker': True, 'v': 1}"})
        assert (job["status"], job["output"], job["workerId"]) == ("COMPLETED", {"v": 1}, "w-old")
        waiting = self.server.run("refreshed", {})
        self.worker("refreshed", name="w-new", concurrency=4)
        assert self.server.finished("refreshed", waiting)["workerId"] == "w-new"
        assert [self.server.runsync("refreshed", {})["workerId"] for _ in range(5)] == ["w-new"] * 5
        assert len(old.recorded(event="begun")) == 1
        assert old.running
        assert log.count("/job-take") < 20

    def test_a_worker_for_one_job(self):
        """start({"refresh_worker": True}): the worker ends, because the server answers the polls at once."""
        worker = self.worker("once", once=True)
        assert self.server.runsync("once", {"a": 1})["output"] == {"a": 1}
        assert worker.ended() == 0

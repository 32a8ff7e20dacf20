"""The calls of remote workers (core/http/API.md, "Remote workers"), byte by byte; tests/clients/test_runpod_*.py make
them with the public SDK."""

import contextlib
import json
import shlex
import socket

import pytest

from jobq_server import until
from jobqctl_case import JobqctlTest
from plane_case import PlaneTest
from process_watch import threads

class TakeTest(PlaneTest):
    def test_a_parked_call_gets_the_next_job(self):
        """The worker is idle while its call waits, and its name is that of the job."""
        answers = self.park("job-take/w-parked?job_in_progress=0")
        until(lambda: self.server.health("remote")["workers"]["idle"] == 1, "the worker is idle")
        job = self.server.run("remote", {"n": [1.0, "ä"]}, webhook="http://127.0.0.1:9/x")
        until(lambda: answers, "the call is answered")
        assert answers[0].json() == {"id": job, "input": {"n": [1.0, "ä"]}, "webhook": "http://127.0.0.1:9/x"}
        assert self.server.health("remote")["workers"]["running"] == 1
        status = self.server.status("remote", job)
        assert (status["status"], status["workerId"]) == ("IN_PROGRESS", "w-parked")
        self.done("w-parked", job, {"output": 7})
        assert self.server.status("remote", job)["output"] == 7

    def test_a_batch(self):
        jobs = {self.server.run("remote", {}) for _ in range(3)}
        got = []
        while len(got) < 3:
            answer = self.call("job-take-batch/w-batch?batch_size=5&job_in_progress=" + ("1" if got else "0"))
            assert answer.status == 200
            got += [job["id"] for job in answer.json()]
            shared = {job.get("batchId") for job in answer.json()}
            assert len(shared) == 1 and (shared == {None}) == (len(answer.json()) == 1), answer.body
        assert set(got) == jobs
        for job in jobs:
            self.done("w-batch", job, {})
            assert "output" not in self.server.status("remote", job)

    def test_parameters_without_a_question_mark(self):
        """Some SDKs append `&` and parameters to whatever address they have."""
        job = self.server.run("remote", {})
        assert self.call("job-take/w-amp&job_in_progress=0").json()["id"] == job
        self.done("w-amp", job + "&isStream=false", {"output": 1})
        assert self.server.status("remote", job)["output"] == 1

    def test_a_leaving_client_gets_no_job(self):
        with socket.create_connection(self.server.address) as client:
            client.sendall(f"GET /v2/other/job-take/w-gone HTTP/1.1\r\nHost: x\r\nAuthorization: {self.worker_key}\r\n"
                           "\r\n".encode())
            until(lambda: self.server.health("other")["workers"]["ready"] == 1, "the call is parked")
        job = self.server.run("other", {})
        assert self.call("job-take/w-next?job_in_progress=0", endpoint="other").json()["id"] == job
        self.done("w-next", job, {}, endpoint="other")
        assert "retries" not in self.server.status("other", job)

    def test_a_key_of_clients_is_no_key_of_workers(self):
        assert self.call("ping/w", key=self.server.new_key("client")["key"]).status == 401
        assert self.call("ping/w", mount="/sdk/v2").status == 200

    @pytest.mark.reactor("waits without a thread each")
    def test_many_parked_calls_need_few_threads(self):
        with contextlib.ExitStack() as stack:
            for number in range(100):
                client = stack.enter_context(socket.create_connection(self.server.address))
                client.sendall(f"GET /v2/other/job-take/many-{number} HTTP/1.1\r\nHost: x\r\n"
                               f"Authorization: {self.worker_key}\r\n\r\n".encode())
            until(lambda: self.server.health("other")["workers"]["ready"] == 100, "all calls are parked")
            # The burst may have started threads, of which the server keeps 32 for a minute.
            until(lambda: threads(self.server.process.pid) <= 64, "the calls have no threads of their own")
        until(lambda: self.server.health("other")["workers"]["idle"] == 0, "the workers have gone")


class ReportTest(PlaneTest):
    def test_a_report_without_effect(self):
        """A job that is unknown, ended, or of another worker: the report is dropped with 200, because a refused report is
        never sent again."""
        job = self.taken_job("w-one")
        self.done("w-two", job, {"output": "not mine"})
        assert self.server.status("remote", job)["status"] == "IN_PROGRESS"
        self.done("w-one", job, {"output": "mine"})
        self.done("w-one", job, {"output": "late"})
        assert self.server.status("remote", job)["output"] == "mine"
        self.done("w-one", "no-such-job", {"output": 1})
        self.done("w-one", job, {"output": 1}, endpoint="nowhere")
        self.done("w-one", job, {"output": 1}, endpoint="echo")

    @pytest.mark.parametrize(("result", "word"), [
        (b"{", "is not JSON"), (b"[1]", "not a JSON object"), (b"", "is not JSON"),
        (b'{"output":' + b"[" * 600 + b"]" * 600 + b"}", "nested"), (b'{"output":"\xff"}', "UTF-8")])
    def test_an_unreadable_result(self, result, word):
        """The job fails with the reason, and the worker gets the next one."""
        job = self.taken_job("w-broken")
        self.done("w-broken", job, result)
        status = self.server.status("remote", job)
        assert status["status"] == "FAILED"
        assert word in status["error"]

    @pytest.mark.parametrize(("size", "reason"), [
        (21 << 20, "the output has 22020098 bytes, the limit is 20 MB"),
        (25 << 20, "over the limit of 24 MB; its output may have 20 MB")])
    def test_a_result_over_the_limits(self, size, reason):
        """Beside the limit of the output and beyond that of the request."""
        job = self.taken_job("w-large")
        self.done("w-large", job, b'{"output":"' + b"x" * size + b'"}')
        status = self.server.status("remote", job)
        assert status["status"] == "FAILED"
        assert reason in status["error"]

    @pytest.mark.parametrize("call", ["job-done", "job-stream"])
    def test_a_report_in_a_coding(self, call):
        """The job fails with the reason, because no repetition of the worker would help."""
        job = self.taken_job("w-coded")
        headers = {"Authorization": self.worker_key, "Content-Encoding": "gzip"}
        answer = self.server.request("POST", f"/v2/remote/{call}/w-coded/{job}", b"\x1f\x8b", key=None, headers=headers)
        assert (answer.status, answer.json()) == (200, {})
        status = self.server.status("remote", job)
        assert (status["status"], "send JSON without Content-Encoding" in status["error"]) == ("FAILED", True)

    def test_chunks(self):
        """In their order, also around a restart of the attempt's worker."""
        job = self.taken_job("w-chunks")
        for number in range(3):
            answer = self.call(f"job-stream/w-chunks/{job}?isStream=false",
                               json.dumps({"output": number, "metrics": {"t": number}}).encode())
            assert (answer.status, answer.json()) == (200, {})
        assert self.call(f"job-stream/w-other/{job}", b'{"output":"not mine"}').status == 200
        self.done("w-chunks", job, {"output": []})
        chunks = self.server.request("GET", f"/v2/remote/stream/{job}").json()
        assert chunks == [{"output": number, "metrics": {"t": number}} for number in range(3)]

    def test_counted_chunks(self):
        """A chunk whose answer was lost comes again with the same number, and is stored once; a large one has several."""
        job = self.taken_job("w-counts")

        def send(first, output):
            path = f"job-stream/w-counts/{job}?first={first}"
            return self.call(path, json.dumps({"output": output}).encode()).json().get("next")

        assert [send(0, "a"), send(0, "a"), send(1, "a")] == [1, 1, 2]
        assert (large := send(2, "x" * 3_000_000)) > 3
        assert [send(2, "x" * 3_000_000), send(large, "b")] == [large, large + 1]
        assert send(large + 7, "behind missing ones") == large + 1, "the first missing number"
        for wrong in ("-1", "x", "1&first=2"):
            assert send(wrong, wrong) is None, "stored without a number"
        self.done("w-counts", job, {"output": []})
        outputs = [chunk["output"] for chunk in self.server.request("GET", f"/v2/remote/stream/{job}").json()]
        while more := self.server.request("GET", f"/v2/remote/stream/{job}").json():
            outputs += [chunk["output"] for chunk in more]
        assert "".join(outputs) == "aa" + "x" * 3_000_000 + "b-1x1&first=2"

    @pytest.mark.parametrize(("chunk", "reason"), [
        (b"[]", "not a JSON object with an output"), (b'{"metrics":{}}', "not a JSON object with an output"),
        (b'{"output":"\\ud800"}', "not JSON: "), (b'{"output":' + b"[" * 600 + b"]" * 600 + b"}", "nested")])
    def test_an_invalid_chunk(self, chunk, reason):
        """The job fails with the reason, and the worker is told to stop the job."""
        job = self.taken_job("w-none")
        assert self.call(f"job-stream/w-none/{job}", chunk).status == 200
        status = self.server.status("remote", job)
        assert status["status"] == "FAILED"
        assert reason in status["error"]
        assert self.call("job-stop/w-none").json() == {"jobsToStop": [job]}

    def test_progress(self):
        job = self.taken_job("w-progress")
        self.done("w-progress", job, {"status": "IN_PROGRESS", "output": {"done": 1}})
        assert self.server.status("remote", job)["output"] == {"done": 1}
        self.done("w-progress", job, b'{"output":[NaN,-Infinity,"NaN \\" Infinity"]}')
        assert self.server.status("remote", job)["output"] == [None, None, 'NaN " Infinity']

    @pytest.mark.parametrize(("result", "end"), [
        (b'{"error":NaN}', ("FAILED", None, "NaN")), (b'{"output":[NaN],"error" : -Infinity}', ("FAILED", [None], "-Infinity")),
        (b'{"error":[NaN]}', ("FAILED", None, "[null]")), (b'{"error":null}', ("COMPLETED", None, None)),
        (b'{"output":{"error":NaN}}', ("COMPLETED", {"error": None}, None)),
        (b'{"output":[{"error":1},NaN]}', ("COMPLETED", [{"error": 1}, None], None)),
        (b'{"output":"\\"error\\":","b\\"error":NaN}', ("COMPLETED", '"error":', None))])
    def test_an_error_other_than_a_number(self, result, end):
        """Python takes NaN for true, so a handler that returns it has reported an error. Null is none."""
        job, beside = self.taken_job("w-nan"), self.taken_job("w-nan-batch")
        self.done("w-nan", job, result)
        batch = b'[{"id":"' + beside.encode() + b'",' + result[1:] + b"]"
        assert self.call("job-done-batch/w-nan-batch", batch).status == 200
        for each in (job, beside):
            status = self.server.status("remote", each)
            assert (status["status"], status.get("output"), status.get("error")) == end

    def test_a_repeated_result(self):
        """The answer of the first may be lost."""
        job = self.taken_job("w-twice")
        self.done("w-twice", job, {"output": 1})
        self.done("w-twice", job, {"output": 1})
        assert self.server.health("remote")["jobs"]["retried"] == 0


class BatchTest(PlaneTest):
    """/job-done-batch: many results in a call. A batch that cannot be read changes nothing, and is refused."""

    def taken_jobs(self, worker, count, **more):
        return [self.taken_job_beside(worker, number > 0, **more) for number in range(count)]

    def taken_job_beside(self, worker, has_others, **more):
        job = self.server.run("remote", {"a": 1}, **more)
        answer = self.call(f"job-take/{worker}?job_in_progress={int(has_others)}")
        assert answer.json()["id"] == job
        return job

    def batch(self, worker, results, status=200, **more):
        body = results if isinstance(results, bytes) else json.dumps(results).encode()
        answer = self.call(f"job-done-batch/{worker}", body, **more)
        assert answer.status == status, answer.body
        return answer.json()

    def outcome(self, job):
        status = self.server.status("remote", job)
        return status["status"], status.get("output"), status.get("error")

    @pytest.mark.parametrize("mount", ["/v2", "/sdk/v2"])
    def test_each_result_counts_separately(self, mount):
        """The bytes of an output are those of the worker."""
        first, second, third, fourth = self.taken_jobs("w-each", 4)
        body = (f'[{{"id":"{first}","output":{{"b":1.50, "a":"\\u00e4"}}}}, {{"error":"too warm","id":"{second}"}},'
                f'{{"id":"{third}"}},{{"id":"{fourth}","output":[NaN]}}]').encode()
        assert self.batch("w-each", body, mount=mount) == {}
        assert b'"output":{"b":1.50, "a":"\\u00e4"}' in self.server.request("GET", f"/v2/remote/status/{first}").body
        assert self.outcome(second) == ("FAILED", None, "too warm")
        assert self.outcome(third) == ("COMPLETED", None, None)
        assert self.outcome(fourth) == ("COMPLETED", [None], None)

    def test_results_without_effect(self):
        """Repeated, unknown, ended, and of another worker: dropped, and the others count."""
        mine, late = self.taken_jobs("w-mine", 2)
        other = self.taken_job("w-other")
        self.done("w-mine", late, {"output": "in time"})
        self.batch("w-mine", [{"id": late, "output": "late"}, {"id": "no-such-job", "output": 1}, {"id": other, "output": 1},
                              {"id": mine, "output": "first"}, {"id": mine, "output": "second"}])
        assert self.outcome(late) == ("COMPLETED", "in time", None)
        assert self.outcome(mine) == ("COMPLETED", "first", None)
        assert self.server.status("remote", other)["status"] == "IN_PROGRESS"
        self.batch("w-mine", [{"id": mine, "output": "first"}])
        for endpoint in ("nowhere", "echo"):
            self.batch("w-mine", [{"id": other, "output": 1}], endpoint=endpoint)
        self.batch("w-mine", [])
        self.done("w-other", other, {"output": 2})
        assert self.outcome(other) == ("COMPLETED", 2, None)

    @pytest.mark.parametrize(("tail", "words"), [
        (b"", "is not JSON"), (b",]", "is not JSON"), (b",7]", "element 1 is not an object"),
        (b",{}]", "element 1 is not an object with the id"), (b',{"id":7}]', "element 1"),
        (b"," + b"{}," * 10_000 + b"{}]", "more than 1000 results"), (b',{"id":"x","output":"\xff"}]', "UTF-8")],
        ids=["truncated", "comma", "number", "nameless", "numbered", "10001", "bytes"])
    def test_an_unreadable_batch(self, tail, words):
        """No result of it counts, also those in front of the fault: the worker sends all of them again."""
        job = self.taken_job("w-torn")
        good = json.dumps({"id": job, "output": 1}).encode()
        assert words in self.batch("w-torn", b"[" + good + tail, status=400)["error"]
        assert self.server.status("remote", job)["status"] == "IN_PROGRESS"
        self.batch("w-torn", b"[" + good + b"]")
        assert self.outcome(job) == ("COMPLETED", 1, None)

    def test_a_body_other_than_an_array(self):
        assert "not an array" in self.batch("w-none", {"id": "x"}, status=400)["error"]

    def test_a_body_ending_too_soon(self):
        job = self.taken_job("w-cut")
        with socket.create_connection(self.server.address) as client:
            body = json.dumps([{"id": job, "output": 1}]).encode()
            client.sendall(f"POST /v2/remote/job-done-batch/w-cut HTTP/1.1\r\nHost: x\r\nAuthorization: {self.worker_key}\r\n"
                           f"Content-Length: {len(body) + 1}\r\n\r\n".encode() + body)
        assert self.server.status("remote", job)["status"] == "IN_PROGRESS"
        self.batch("w-cut", [{"id": job, "output": 2}])
        assert self.outcome(job) == ("COMPLETED", 2, None)

    def test_an_output_over_its_limit(self):
        """Its job fails with the reason, and the others count. A body over its limit is refused as a whole."""
        small, large = self.taken_jobs("w-large", 2)
        self.batch("w-large", [{"id": small, "output": 1}, {"id": large, "output": "x" * (25 << 20)}], status=413)
        assert self.server.status("remote", small)["status"] == "IN_PROGRESS"
        self.batch("w-large", [{"id": large, "output": "x" * (21 << 20)}, {"id": small, "output": 1}])
        assert self.outcome(small) == ("COMPLETED", 1, None)
        assert "20 MB" in self.outcome(large)[2]

    def test_progress(self):
        """A progress in a batch ends no job."""
        first, second = self.taken_jobs("w-half", 2)
        self.batch("w-half", [{"id": first, "status": "IN_PROGRESS", "output": "half"}, {"id": second, "output": 2}])
        assert self.outcome(first) == ("IN_PROGRESS", "half", None)
        assert self.outcome(second) == ("COMPLETED", 2, None)
        self.done("w-half", first, {})

    def test_a_wrong_key(self):
        job = self.taken_job("w-key")
        self.batch("w-key", [{"id": job, "output": 1}], status=401, key=self.server.new_key("client")["key"])
        self.done("w-key", job, {"output": 2})
        assert self.outcome(job) == ("COMPLETED", 2, None)


class LossTest(PlaneTest):
    def test_a_worker_without_the_job(self):
        """job_in_progress=0: the job has not reached the worker, or was lost there. It is counted, and comes again; the
        third loss is the last."""
        job = self.taken_job("w-lost")
        for attempt in (2, 3):
            answer = self.call("job-take/w-lost?job_in_progress=0")
            assert answer.json()["id"] == job
            assert self.server.status("remote", job)["retries"] == attempt - 1
        answers = self.park("job-take/w-lost?job_in_progress=0")
        status = self.server.finished("remote", job)
        assert status["status"] == "FAILED"
        assert "lost 3 times" in status["error"]
        other = self.server.run("remote", {})
        until(lambda: answers, "the worker goes on")
        assert answers[0].json()["id"] == other
        self.done("w-lost", other, {})

    def test_a_stop_is_repeated(self):
        """Until the result comes: a stop may meet a job that the worker has not begun."""
        job = self.taken_job("w-stop")
        stops = self.park("job-stop/w-stop")
        self.server.request("POST", f"/v2/remote/cancel/{job}")
        until(lambda: stops, "the worker is told")
        assert stops[0].json() == {"jobsToStop": [job]}
        assert self.call("job-stop/w-stop").json() == {"jobsToStop": [job]}
        self.done("w-stop", job, {"output": "late"})
        assert self.server.status("remote", job)["status"] == "CANCELLED"
        assert self.server.health("remote")["workers"]["running"] == 0

    def test_a_worker_gets_no_job_possibly_still_running(self):
        """Its result of the earlier attempt would look like one of the new attempt."""
        job = self.taken_job("w-sync", policy={"executionTimeout": 5000})
        assert self.server.finished("remote", job)["status"] == "TIMED_OUT"
        self.server.request("POST", f"/v2/remote/retry/{job}")
        answers = self.park("job-take/w-sync?job_in_progress=1")
        other = self.call("job-take/w-free?job_in_progress=0")
        assert other.json()["id"] == job
        assert not answers
        self.done("w-sync", job, {"output": "of the first attempt"})
        self.done("w-free", job, {"output": "of the second"})
        assert self.server.status("remote", job)["output"] == "of the second"

    def test_a_leaving_worker(self):
        """`stopPod` answers the parked calls at once, and the worker gets no further job."""
        job = self.taken_job("w-leaves")
        stops = self.park("job-stop/w-leaves")
        self.done("w-leaves", job, {"output": 1, "stopPod": True})
        until(lambda: stops, "the call is answered")
        assert stops[0].status == 204

    def test_only_true_stops_a_worker(self):
        for wrong in ("true", 1, [], {}):
            self.done("w-stays", self.taken_job("w-stays"), {"output": 1, "stopPod": wrong})
        assert self.taken_job("w-stays"), "the worker goes on to get jobs"

    def test_an_unhealthy_worker(self):
        self.call("ping/w-sick?status=unhealthy&check=disk&reason=4%25%20are%20free" + "%C3%A4" * 1000)
        assert self.server.health("remote")["workers"]["unhealthy"] == 1
        endpoint = self.server.request("GET", "/v1/endpoints/remote?includeWorkers=true").json()
        reasons = {worker["id"]: worker.get("reason") for worker in endpoint["workers"]}
        assert reasons["w-sick"].startswith("disk: 4% are freeää") and len(reasons["w-sick"].encode()) < 1100
        assert {reason for worker, reason in reasons.items() if worker != "w-sick"} <= {None}


class AdviceTest(PlaneTest, JobqctlTest):
    def test_no_worker_has_ever_connected(self):
        """/health, /status and the endpoint say what to do, until a worker comes."""
        job = self.server.run("remote", {})
        sentence = "no worker has ever connected: run `jobqctl worker env remote` and start a worker with the printed variables"
        assert self.server.health("remote")["advice"] == sentence
        status = self.server.status("remote", job)
        assert (status["queueReason"], status["queueAdvice"]) == ("no_workers", sentence)
        assert "advice" not in self.server.health("closed"), "the endpoint wants no workers"
        assert "advice" not in self.server.health("echo")
        lines = [line for line in self.table("worker", "env", "remote").splitlines() if line.startswith("export ")]
        variables = dict(shlex.split(line)[1].split("=", 1) for line in lines)
        assert variables["RUNPOD_ENDPOINT_ID"] == "remote"
        assert variables["RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS"] == "true", "a store of files may be in the same network"
        take = variables["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", variables["RUNPOD_POD_ID"]) + "&job_in_progress=0"
        answer = self.server.request("GET", take.removeprefix(self.server.url), key=variables["RUNPOD_AI_API_KEY"])
        assert answer.json()["id"] == job
        assert "advice" not in self.server.health("remote")
        wrong = self.server.request("GET", "/v2/other/ping/w", key=variables["RUNPOD_AI_API_KEY"])
        assert wrong.status == 401, "the key is for one endpoint"

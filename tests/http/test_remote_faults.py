"""Remote workers that misbehave or crash, and crashes of the server beside them: every accepted job ends once, and a report counts
at most once. The calls are made byte by byte; tests/http/test_remote_workers.py has those of workers that do as they should."""

import contextlib
import json
import socket
import struct
import threading

import pytest

from http_case import HttpTest
from jobq_server import join, until
from pace import HANG
from reserved_port import ReservedPort

IMAGE = "docker.io/acme/worker:1"
CLOSED_CALLS = 200
RACES = 20
MOST_WORKERS = 10_000


class FaultTest(HttpTest):
    @pytest.fixture(autouse=True)
    def key(self, server):
        self.worker_key = server.new_key("worker")["key"]

    def call(self, path, body=None, key=None, endpoint="remote"):
        """A call of a worker: GET without a body, and POST with one."""
        return self.server.request("GET" if body is None else "POST", f"/v2/{endpoint}/{path}", body, key=None,
                                   headers={"Authorization": key or self.worker_key})

    def taken(self, worker, holds=0, endpoint="remote"):
        """Returns the id of the next job, as the worker gets it."""
        answer = self.call(f"job-take/{worker}?job_in_progress={holds}", endpoint=endpoint)
        assert answer.status == 200, answer
        return answer.json()["id"]

    def taken_job(self, worker, endpoint="remote"):
        job = self.server.run(endpoint, {"a": 1})
        assert self.taken(worker, endpoint=endpoint) == job
        return job

    def report(self, worker, job, result, kind="job-done", **more):
        body = result if isinstance(result, bytes) else json.dumps(result).encode()
        answer = self.call(f"{kind}/{worker}/{job}?isStream=false", body, **more)
        assert (answer.status, answer.json()) == (200, {})

    def plug(self, path, method="GET", more="", body=b""):
        """Sends a call of a worker on a socket of its own, and returns the socket."""
        client = self.at_end.enter_context(socket.create_connection(self.server.address))
        head = f"{method} /v2/remote/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: {self.worker_key}\r\n{more}\r\n"
        client.sendall(head.encode() + body)
        return client

    def half_report(self, path):
        """A report whose body stops in the middle."""
        return self.plug(path, "POST", "Content-Length: 2000000\r\n", b'{"output":"' + b"x" * 1_000_000)


class HostileTest(FaultTest):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**{"endpoint.remote.image": IMAGE, "endpoint.other.image": IMAGE})

    def test_a_job_of_a_foreign_worker_or_endpoint(self):
        """Neither a worker of another endpoint nor a key for it can end or feed a job, whatever it writes into its path."""
        job = self.taken_job("w")
        other_key = self.server.new_key("worker", endpoints=["other"])["key"]
        for kind in ("job-done", "job-stream"):
            self.report("w", job, {"output": "forged"}, kind, endpoint="other")
            self.report("w", job, {"output": "forged"}, kind, endpoint="other", key=other_key)
            assert self.call(f"{kind}/w/{job}", b'{"output":"forged"}', key=other_key).status == 401
            for worker in ("W", "w%20", "w%2F..", "w.", "x%26w", "x"):
                self.report(worker, job, {"output": "forged"}, kind)
        assert self.server.status("remote", job)["status"] == "IN_PROGRESS"
        self.report("%77", job.replace("-", "%2D"), {"output": "escaped"})
        status = self.server.status("remote", job)
        assert (status["status"], status["output"]) == ("COMPLETED", "escaped")
        assert self.server.request("GET", f"/v2/remote/stream/{job}").json() == []

    def test_reports_at_once(self):
        """Results, chunks and a cancel of one job from several connections at once: one of them ends the job, and every
        report is answered 200."""
        for race in range(RACES):
            job = self.taken_job("w-race")
            calls = [threading.Thread(target=self.report, args=("w-race", job, {"output": number})) for number in range(3)]
            calls += [threading.Thread(target=self.report, args=("w-race", job, {"output": "c"}, "job-stream")) for _ in range(2)]
            if race % 2:
                calls.insert(race % 5, threading.Thread(target=self.server.request, args=("POST", f"/v2/remote/cancel/{job}")))
            for call in calls:
                call.start()
            join("the calls of a race", *calls)
            end = self.server.status("remote", job)
            assert end["status"] == ("CANCELLED" if "output" not in end else "COMPLETED"), end
            self.report("w-race", job, {"output": "late"})
            self.report("w-race", job, {"output": "late"}, "job-stream")
            assert self.server.status("remote", job) == end
            assert "late" not in [chunk["output"] for chunk in self.server.request("GET", f"/v2/remote/stream/{job}").json()]

    @pytest.mark.parametrize("end", ["close", "reset"])
    def test_calls_ending_at_once(self, end):
        """Jobs that were handed to clients that had left are counted as losses or not, but come again."""
        jobs = {self.server.run("remote", {}) for _ in range(CLOSED_CALLS)}
        for _ in range(CLOSED_CALLS):
            with self.plug("job-take/w-closes") as client:
                if end == "reset":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: self.all_completed("w-closes", jobs), "all jobs are finished", 2 * HANG)
        counts = self.server.quiet("remote")
        assert counts["failed"] == 0, counts

    def all_completed(self, worker, jobs):
        """Finishes some jobs and takes them out of `jobs`. Returns true when there is none any more. A call of a client that
        has left may still come, and end this call with 204; a job that it gets is lost with the next call, after up to 25 s."""
        answer = self.call(f"job-take-batch/{worker}?batch_size=50&job_in_progress=0")
        for job in [job["id"] for job in answer.json()] if answer.status == 200 else []:
            self.report(worker, job, {"output": 1})
            if self.server.status("remote", job)["status"] == "COMPLETED":
                jobs.remove(job)
        return not jobs

    @pytest.mark.parametrize("size", ["0", "-1", "1e9", "99999999999999999999", "2.9"])
    def test_sizes_of_batches(self, size):
        """A size out of its range is moved into the range."""
        jobs = {self.server.run("remote", {}) for _ in range(2)}
        while jobs:
            answer = self.call(f"job-take-batch/w-batch?batch_size={size}&job_in_progress=1")
            assert answer.status == 200, answer
            for job in answer.json():
                jobs.remove(job["id"])
                self.report("w-batch", job["id"], {})

    @pytest.mark.reactor("targets over 16 KB")
    @pytest.mark.parametrize("query", ["job_id=" + "a," * 60_000, "job_id=" + "%2C" * 40_000, "&" * 120_000,
                                       "&".join(f"p{number}=" for number in range(15_000))])
    def test_long_pings(self, query):
        answer = self.call("ping/w-long?" + query)
        assert (answer.status, answer.json()) == (200, {})


    def test_a_large_progress(self):
        """core/http/API.md, "/job-done, /job-done-batch and /job-stream": a progress over 1 MB is dropped, the job goes on."""
        job = self.taken_job("w-progress")
        self.report("w-progress", job, {"status": "IN_PROGRESS", "output": "half"})
        self.report("w-progress", job, {"status": "IN_PROGRESS", "output": "x" * (1 << 20)})
        status = self.server.status("remote", job)
        assert (status["status"], status["output"]) == ("IN_PROGRESS", "half")
        self.report("w-progress", job, {"output": 1})
        assert self.server.status("remote", job)["output"] == 1


class LossTest(FaultTest):
    """/job-done-batch with `lost`: a worker whose handler has died."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**{"endpoint.remote.image": IMAGE})

    def lose(self, worker, jobs):
        return self.call(f"job-done-batch/{worker}", json.dumps({"lost": jobs}).encode())

    def test_a_reported_loss(self):
        """The job goes back at once, also to the same worker, and is FAILED in the end. Other workers keep their jobs."""
        job = self.taken_job("w-died")
        other = self.taken_job("w-well")
        for losses in (1, 2):
            assert self.lose("w-died", [job, other, "unknown"]).status == 200
            assert self.taken("w-died", holds=1) == job
            assert self.server.status("remote", job)["retries"] == losses
        assert self.lose("w-died", [job]).status == 200
        status = self.server.status("remote", job)
        assert status["status"] == "FAILED"
        assert "lost 3 times" in status["error"]
        assert self.lose("w-died", [job]).status == 200
        assert self.server.status("remote", other)["status"] == "IN_PROGRESS"
        self.report("w-well", other, {})

    @pytest.mark.parametrize(("lost", "words"), [("x", "the array lost"), (None, "the array lost"), ([7], "element 0 of lost"),
                                                 (["x"] * 1001, "more than 1000 lost jobs")],
                             ids=["text", "null", "number", "1001"])
    def test_an_unreadable_loss(self, lost, words):
        self.assert_refused(self.lose("w-odd", lost), 400, words)


class CrowdTest(FaultTest):
    """More workers than the server has room for: 429 is the only status after which the public SDK pauses."""

    def assert_busy(self, path):
        answer = self.call(path)
        self.assert_refused(answer, 429)
        assert answer.headers["Retry-After"] == "5"

    @pytest.fixture
    def server(self, own_server):
        return own_server(**{"endpoint.remote.image": IMAGE, "endpoint.other.image": IMAGE, "server.waiting": 2})

    def test_places_of_waiting_calls(self):
        """A call of a place that is free again waits."""
        clients = [self.plug("job-take/w-1"), self.plug("job-take/w-3")]
        # A call of this test that came before them would take a place, and no later one would be refused.
        until(lambda: self.server.health("remote")["workers"]["idle"] == 2, "both calls wait")
        for path in ("job-take/w-2", "job-take-batch/w-2?batch_size=3", "job-stop/w-2", "job-take/not%20valid"):
            until(lambda path=path: self.call(path).status == 429, "all places are taken")
            self.assert_busy(path)
        for client in clients:
            client.close()
        job = self.server.run("remote", {})
        until(lambda: self.call("job-take/w-2").status == 200, "a call has a place")
        self.report("w-2", job, {"output": 1})
        assert self.server.status("remote", job)["status"] == "COMPLETED"

    def test_most_workers(self):
        """Ids are free text, so pings may fill the table of 10,000 workers. A worker that comes takes the place of one that
        has never had a job and has no connection; those that have one stay."""
        self.plug("job-stop/w-kept")
        connection = self.server.connect()
        for number in range(MOST_WORKERS):
            answer = self.server.request("GET", f"/v2/remote/ping/w-{number}", key=self.worker_key, connection=connection)
            assert answer.status == 200
        connection.close()
        for endpoint in ("remote", "other"):
            job = self.taken_job("w-more", endpoint)
            self.report("w-more", job, {"output": 1}, endpoint=endpoint)
            assert self.server.status(endpoint, job)["status"] == "COMPLETED"
        workers = self.server.request("GET", "/v1/endpoints/remote?includeWorkers=true").json()["workers"]
        assert "w-kept" in [worker["id"] for worker in workers]


class CrashTest(FaultTest):
    """The server is killed at a moment of a job and started again; the storage is SQLite."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        with contextlib.closing(ReservedPort()) as port:
            yield class_server(**{"endpoint.remote.image": IMAGE, "server.port": port.number, "storage": "sqlite"})

    def crash(self):
        self.server.kill()
        self.server.start()

    def assert_end(self, job, status, **members):
        end = self.server.status("remote", job)
        assert end["status"] == status, end
        assert members.items() <= end.items(), end

    def test_after_the_answer_of_a_result(self):
        job = self.taken_job("w-result")
        self.report("w-result", job, {"output": 1})
        self.crash()
        self.assert_end(job, "COMPLETED", output=1)
        self.report("w-result", job, {"output": 2})
        self.assert_end(job, "COMPLETED", output=1)

    def test_in_the_middle_of_a_result(self):
        """The worker drops the result, and has no job: the job comes again."""
        job = self.taken_job("w-half")
        self.half_report(f"job-done/w-half/{job}")
        self.crash()
        assert self.taken("w-half") == job
        self.report("w-half", job, {"output": 2})
        self.assert_end(job, "COMPLETED", output=2, retries=1)

    def test_between_chunks(self):
        """What was answered is kept, and the next chunk follows. The chunk that met the crash is the worker's loss."""
        job = self.taken_job("w-chunks")
        self.report("w-chunks", job, {"output": "a"}, "job-stream")
        self.report("w-chunks", job, {"status": "IN_PROGRESS", "output": "half"})
        self.half_report(f"job-stream/w-chunks/{job}")
        self.crash()
        self.assert_end(job, "IN_PROGRESS", output="half")
        self.plug("job-take/w-chunks?job_in_progress=1")
        self.report("w-chunks", job, {"output": "b"}, "job-stream")
        self.report("w-chunks", job, {"output": 3})
        self.assert_end(job, "COMPLETED", output=3)
        assert self.server.request("GET", f"/v2/remote/stream/{job}").json() == [{"output": "a"}, {"output": "b"}]

    def test_after_a_cancel(self):
        """The worker is told again when a ping has named the job."""
        job = self.taken_job("w-cancel")
        assert self.server.request("POST", f"/v2/remote/cancel/{job}").status == 200
        self.crash()
        self.assert_end(job, "CANCELLED")
        self.plug("job-take/w-cancel?job_in_progress=1")
        until(lambda: self.server.health("remote")["workers"]["ready"], "the worker's call is parked")
        self.call(f"ping/w-cancel?job_id={job}")
        assert self.call("job-stop/w-cancel").json() == {"jobsToStop": [job]}
        self.report("w-cancel", job, {"output": "late"})
        self.assert_end(job, "CANCELLED")

    def test_while_a_parked_call_gets_a_job(self):
        """The answer may be on its way: the job comes again, and ends once."""
        self.plug("job-take/w-parked?job_in_progress=0")
        until(lambda: self.server.health("remote")["workers"]["ready"], "the call is parked")
        job = self.server.run("remote", {})
        self.crash()
        assert self.taken("w-parked") == job
        self.report("w-parked", job, {"output": 4})
        self.assert_end(job, "COMPLETED", output=4)

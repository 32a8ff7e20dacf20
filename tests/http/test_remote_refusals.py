"""Refused calls of remote workers (core/http/API.md, "Rules of all worker calls"): they are answered late, each names a
remedy, and they take few of the places of waiting calls. A public worker repeats a refused call at once."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobq_server import until
from plane_case import IMAGE, ParkedCall, PlaneTest

EMPTY_ID = "RUNPOD_POD_ID is empty"
REMEDY = "jobqctl worker env"
LATE = 2  # seconds; within a second more than three

REFUSED = [
    ("GET", "/v2/remote/job-take/", 404, EMPTY_ID),
    ("GET", "/v2/remote/job-take/?gpu=none&job_in_progress=0", 404, EMPTY_ID),
    ("GET", "/v2/remote/job-take/&job_in_progress=0", 400, EMPTY_ID),
    ("GET", "/v2/remote/job-take", 404, EMPTY_ID),
    ("GET", "/v2/remote/job-take&job_in_progress=0", 404, EMPTY_ID),
    ("GET", "/v2/remote/job-take-batch/?gpu=none&batch_size=2&job_in_progress=1", 404, EMPTY_ID),
    ("GET", "/v2/remote/job-stop/?gpu=none", 404, EMPTY_ID),
    ("GET", "/sdk/v2/remote/job-take/", 404, EMPTY_ID),
    ("GET", "/v2/remote/job-take/w/", 404, REMEDY),
    ("GET", "/v2/remote/job-take//w", 404, REMEDY),
    ("GET", "/v2/remote//job-take/w", 404, REMEDY),
    ("GET", "//v2/remote/job-take/w", 404, REMEDY),
    ("GET", "/v2//job-take/w?gpu=none", 404, REMEDY),
    ("GET", "/v2/job-take/w", 404, REMEDY),
    ("GET", "/v3/remote/job-take/w", 404, REMEDY),
    ("GET", "/remote/job-take/w", 404, REMEDY),
    ("GET", "/v2/remote/job-take/%zz", 400, "not a valid path"),
    ("HEAD", "/v2/remote/job-take-batch/", 404, None),
    ("POST", "/v2/remote/job-take/", 404, EMPTY_ID),
    ("GET", "/v2/nowhere/job-take/w", 404, "no endpoint"),
    ("GET", "/v2/echo/job-take/w", 400, "has no remote workers"),
    ("GET", "/v2/remote/job-take-batch/w?batch_size=x", 400, "batch_size"),
    ("GET", "/v2/remote/job-take/w?job_in_progress=0&job_in_progress=1", 400, "job_in_progress"),
    ("GET", "/v2/remote/job-stop/w%20w", 400, "the id of the worker"),
]
AT_ONCE = [
    ("GET", "/v2/remote/job-taken/w", 404), ("GET", "/v2/remote/status/job-take", 404), ("GET", "/nothing", 404),
    ("POST", "/v2/nowhere/run", 404), ("GET", "/v2/remote/nothing/job-taker", 404), ("POST", "/v2/remote/job-done//x", 404),
    ("DELETE", "/v2/remote/run", 405), ("POST", "/v2/remote/job-take/w", 405), ("HEAD", "/v2/remote/job-take-batch/w", 405), ("GET", "/v1/job-takes", 404)]


class MethodTest(PlaneTest):
    def test_head_takes_no_job(self):
        for method in ("HEAD", "POST"):
            answer = self.server.request(method, "/v2/remote/job-take/w")
            assert (answer.status, answer.headers["Allow"]) == (405, "GET")


class LateTest(PlaneTest):
    def timed(self, method, path, key):
        begun = time.monotonic()
        answer = self.server.request(method, path, {} if method == "POST" else None, key=None, headers={"Authorization": key})
        return answer, time.monotonic() - begun

    def test_refusals(self):
        """All are sent together."""
        rows = [(*row, self.worker_key) for row in REFUSED] + [("GET", "/v2/remote/job-take/w", 401, "API key", "wrong")]
        with ThreadPoolExecutor(len(rows)) as pool:
            results = list(pool.map(lambda row: self.timed(row[0], row[1], row[4]), rows))
        for (method, path, status, words, _), (answer, seconds) in zip(rows, results):
            assert answer.status == status, (method, path, answer.body)
            assert seconds >= LATE, (method, path)
            if words:
                assert words in self.assert_refused(answer, status), (method, path)

    def test_clients_are_refused_at_once(self):
        """A client that has a wrong address does not wait, also while late refusals do."""
        late = self.at_end.enter_context(
            ParkedCall(self.server.connect(), lambda line: self.call("job-take/", connection=line)))
        for method, path, status in AT_ONCE:
            answer, _ = self.timed(method, path, "Bearer " + self.server.key)
            assert answer.status == status, (method, path, answer.body)
        assert not late.answers, "the refusals of the clients were as late as that of the worker"


class PlacesTest(PlaneTest):
    """Refused calls may have an eighth of the places of waiting calls; beyond that they read 429 at once, because it is
    the only status after which a public worker pauses."""

    settings = {"server.waiting": 16}

    def test_refused_calls_leave_places(self):
        with contextlib.ExitStack() as stack:
            calls = [stack.enter_context(ParkedCall(self.server.connect(), lambda line: self.call("job-take/", connection=line)))
                     for _ in range(5)]
            until(lambda: sum(len(call.answers) for call in calls) >= 3, "three have no place")
            answers = self.park("job-take/w-good?job_in_progress=0")
            until(lambda: self.server.health("remote")["workers"]["ready"] == 1, "another worker waits")
            until(lambda: all(call.answers for call in calls), "the others are refused")
            answered = [call.answers[0] for call in calls]
            assert sorted((answer.status, answer.headers["Retry-After"] or "") for answer in answered) == (
                [(404, "")] * 2 + [(429, "5")] * 3)
        job = self.server.run("remote", {})
        until(lambda: answers, "the other worker gets its job")
        assert answers[0].json()["id"] == job


class ReadyTest(PlaneTest):
    @pytest.fixture
    def server(self, own_server):
        return own_server(**{"endpoint.remote.image": IMAGE})

    def test_a_killed_worker(self):
        """It is not ready from the end of its connections on. Its jobs are given 10 s more, because it may come back."""
        with contextlib.ExitStack() as stack:
            busy = stack.enter_context(contextlib.closing(self.server.connect()))
            job = self.server.run("remote", {})
            assert self.call("job-take/w-busy?job_in_progress=0", connection=busy).json()["id"] == job
            stack.enter_context(ParkedCall(self.server.connect(), lambda line: self.call("job-take/w-idle", connection=line)))
            until(lambda: self.server.health("remote")["workers"]["ready"] == 1, "it waits for a job")
            assert [worker["id"] for worker in self.workers("idle")] == ["w-idle"]
        until(lambda: self.server.health("remote")["workers"]["ready"] == 0, "it is not ready")
        assert self.workers("idle") == []
        assert [worker["id"] for worker in self.workers("running")] == ["w-busy"]
        assert self.server.status("remote", job)["status"] == "IN_PROGRESS"

    def workers(self, state):
        endpoint = self.server.request("GET", "/v1/endpoints/remote?includeWorkers=true").json()
        return [worker for worker in endpoint["workers"] if worker["state"] == state]

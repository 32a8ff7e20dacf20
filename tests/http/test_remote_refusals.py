"""Refused calls of remote workers (core/http/API.md, "Rules of all worker calls"): they are answered late, each names a
remedy, and they take few of the places of waiting calls. A public worker repeats a refused call at once."""

import contextlib
import select
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobq_server import until
from plane_case import IMAGE, ParkedCall, PlaneTest
from wire import connect, unread

EMPTY_ID = "RUNPOD_POD_ID is empty"
REMEDY = "jobqctl worker env"
LATE = 2  # seconds; within a second more than three
TWICE_LATE = 5  # seconds; two late refusals in a row take six at least

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

    @pytest.mark.reactor("waits without a thread each, of which refused calls may have an eighth")
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
        for row in AT_ONCE:
            until(lambda row=row: self.precedes_a_late_refusal(*row), f"{row} is refused before a worker that has called earlier")

    def precedes_a_late_refusal(self, method, path, status):
        """Returns whether a client reads the refusal while the earlier call of a worker still waits for an answer. Without the
        order the round is no proof: the test or the server may have stood still."""
        with connect(self.server) as late:
            def is_answered():
                return bool(select.select([late], [], [], 0)[0])

            late.sendall(f"GET /v2/remote/job-take/ HTTP/1.1\r\nHost: jobq\r\nAuthorization: {self.worker_key}\r\n\r\n".encode())
            until(lambda: is_answered() or unread(late) == 0, "the server has read the call of the worker")
            answer, _ = self.timed(method, path, "Bearer " + self.server.key)
            assert answer.status == status, (method, path, answer.body)
            if is_answered():
                print(f"{method} {path}: the late refusal came first")
                return False
        return True


class PlacesTest(PlaneTest):
    """Refused calls may have an eighth of the places of waiting calls; beyond that they read 429 at once, because it is
    the only status after which a public worker pauses."""

    settings = {"server.waiting": 16}

    def test_refused_calls_leave_places(self):
        until(self.two_of_five_are_late, "five refused calls have begun before a late one ended")

    def two_of_five_are_late(self):
        """Expects two late ones among five refused calls, three without a place, and a job for the worker w-good. Returns
        false if a call has found the place of an ended call: the test or the server has then stood still between both, and
        the late refusals follow each other."""
        begun = time.monotonic()
        with contextlib.ExitStack() as stack:
            calls = [stack.enter_context(ParkedCall(self.server.connect(), lambda line: self.call("job-take/", connection=line)))
                     for _ in range(5)]
            until(lambda: sum(len(call.answers) for call in calls) >= 3, "three have no place")
            answers = self.park("job-take/w-good?job_in_progress=0")
            until(lambda: self.server.health("remote")["workers"]["ready"] == 1, "another worker waits")
            job = self.server.run("remote", {})
            until(lambda: answers, "the other worker gets its job")
            assert answers[0].json()["id"] == job
            self.done("w-good", job, {"output": 1})
            until(lambda: all(call.answers for call in calls), "the others are refused")
            answered = [call.answers[0] for call in calls]
        refused = sorted((answer.status, answer.headers["Retry-After"] or "") for answer in answered)
        if refused.count((404, "")) > 2 and time.monotonic() - begun >= TWICE_LATE:
            print("a call has found the place of an ended one:", refused)
            return False
        assert refused == [(404, "")] * 2 + [(429, "5")] * 3
        return True


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

"""core/http/API.md, "Errors", on every route of the queue API."""

import pytest

from http_case import HttpTest
from jobq_server import SHORT_DRAIN, until

NOBODY = "00000000-0000-4000-8000-000000000000-u1"
OF_JOBS = [("GET", "status"), ("POST", "status"), ("GET", "status-sync"), ("POST", "status-sync"), ("GET", "stream"),
           ("POST", "stream"), ("POST", "cancel"), ("POST", "retry")]
OF_ENDPOINTS = [("POST", "run"), ("POST", "runsync"), ("POST", "purge-queue"), ("GET", "health"), ("GET", "requests")]


@pytest.mark.endpoints("echo", "trial", "parked")
class ErrorTest(HttpTest):
    def refused(self, status, method, path, *words, body=None):
        if body is None and method == "POST":
            body = b'{"input":{}}'
        return self.assert_refused(self.server.request(method, path, body), status, *words)

    def test_400(self, subtests):
        """core/http/API.md, "Statuses": 400 malformed request or parameters, on each route that has any."""
        job = self.server.runsync("echo", {})["id"]
        for mount in ("/v2", "/sdk/v2"):
            for operation in ("run", "runsync"):
                for body, word in ((b"{", ""), (b"[]", ""), (b"{}", "input"), (b'{"input":{},"policy":3}', "policy"),
                                   (b'{"input":{},"webhook":"x"}', "webhook"),
                                   (b'{"input":{},"s3Config":"x"}', "s3Config")):
                    with subtests.test(mount=mount, operation=operation, body=body):
                        self.refused(400, "POST", f"{mount}/echo/{operation}", word, body=body)
            for method, path, word in (("POST", "runsync?wait=x", "wait"), ("GET", f"status/{job}?ttl=x", "ttl"),
                                       ("GET", f"status-sync/{job}?wait=x", "wait"),
                                       ("GET", f"stream/{job}?wait=x", "wait"),
                                       ("GET", f"stream/{job}?offset=x", "offset"),
                                       ("GET", "requests?limit=x", "limit")):
                with subtests.test(mount=mount, path=path):
                    self.refused(400, method, f"{mount}/echo/{path}", word)

    @pytest.mark.parametrize("method, path",
                             OF_ENDPOINTS + [(method, f"{operation}/{NOBODY}") for method, operation in OF_JOBS])
    @pytest.mark.parametrize("mount", ["/v2", "/sdk/v2"])
    def test_404_unknown_endpoint(self, mount, method, path):
        """core/http/API.md, "Statuses": 404 unknown endpoint id, on every route of both mounts."""
        self.refused(404, method, f"{mount}/nothing/{path}", "nothing")

    def test_404_unknown_job(self, subtests):
        """core/http/API.md, "Statuses": 404 unknown job, on every route, and when the job is another endpoint's."""
        theirs = self.server.run("parked", {})
        for mount in ("/v2", "/sdk/v2"):
            for method, operation in OF_JOBS:
                for job in (NOBODY, theirs, "x"):
                    with subtests.test(mount=mount, method=method, operation=operation, job=job):
                        self.refused(404, method, f"{mount}/echo/{operation}/{job}")
        assert self.server.status("parked", theirs)["status"] == "IN_QUEUE"

    def test_404_after_the_ttl(self, subtests):
        """core/http/API.md, "Statuses" and "Lifetime of jobs and results": 404 for a job past its TTL, even while
        running; on every route."""
        running = self.server.run("trial", {"sleepMs": 600000})
        until(lambda: self.server.status("trial", running)["status"] == "IN_PROGRESS", "the job runs")
        done = self.server.runsync("trial", {"chunks": 1})["id"]
        for job in (running, done):
            self.assert_job(self.server.request("GET", f"/v2/trial/status/{job}?ttl=1000"))
        for job in (running, done):
            until(lambda job=job: self.server.request("GET", f"/v2/trial/status/{job}").status == 404, "it is gone")
            for method, operation in OF_JOBS:
                with subtests.test(job=job, method=method, operation=operation):
                    self.refused(404, method, f"/v2/trial/{operation}/{job}")
            self.refused(404, "GET", f"/v2/trial/stream/{job}?offset=0")
        self.server.quiet("trial")
        until(lambda: not self.server.health("trial")["workers"]["running"], "the handler was stopped, its worker free")

    @pytest.mark.parametrize("path", [
        "", "/", "/purge", "/purge-queue/x", "/requests/x", "/stream", "/stream/", "/cancel", "/retry/", "/runs",
        "/job-taken", "/stream/x/y"])
    @pytest.mark.parametrize("mount", ["/v2", "/sdk/v2"])
    def test_404_unknown_path(self, mount, path):
        """core/http/API.md, "Statuses": 404 unknown path."""
        self.refused(404, "GET", f"{mount}/echo{path}")

    @pytest.mark.parametrize("operation, limit", [("run", 10), ("runsync", 20)])
    @pytest.mark.parametrize("mount", ["/v2", "/sdk/v2"])
    def test_413(self, mount, operation, limit):
        """core/http/API.md, "Statuses": 413 body over the limit, on both mounts, and the error is the same one
        sentence."""
        body = b'{"input":{"a":"' + b"x" * (limit * 1024 * 1024) + b'"}}'
        self.refused(413, "POST", f"{mount}/echo/{operation}", body=body)

    @pytest.mark.parametrize("how", ["throw", "fail"])
    def test_a_workers_crash_is_not_a_500(self, how):
        """core/decisions/http.md: a crashed worker is no 500 but a FAILED job, answered with 200."""
        answer = self.server.request("POST", "/v2/trial/runsync", {"input": {how: "the worker broke"}})
        job = self.assert_job(answer)
        assert (job["status"], job["error"]) == ("FAILED", "the worker broke")

    def test_errors_have_one_member(self, subtests):
        """core/http/API.md, "Shape": the error body is {"error": "<one sentence>"}, never with a key `id` or
        `status`."""
        for method, path in (("POST", "/v2/echo/run"), ("GET", f"/v2/echo/status/{NOBODY}"),
                             ("GET", "/v2/nothing/health"), ("GET", "/v2/echo/run"),
                             ("GET", f"/v2/echo/stream/{NOBODY}"), ("GET", "/nothing")):
            with subtests.test(method=method, path=path):
                answer = self.server.request(method, path, b"{" if method == "POST" else None)
                assert answer.status >= 400
                assert set(answer.json()) == {"error"}
        for key in (True, None):
            answer = self.server.request("GET", "/v1/nothing", key=key)
            assert set(answer.json()) == {"message"}


@pytest.mark.endpoints("parked", "trial")
class SituationTest(HttpTest):
    def test_no_worker_is_available(self, own_server):
        """core/http/API.md, "States and transitions": a job stays IN_QUEUE when no worker is available or the maximum
        worker count is reached."""
        job = self.server.run("parked", {})
        answer = self.server.request("GET", f"/v2/parked/status-sync/{job}?wait=1000")
        assert self.assert_job(answer)["status"] == "IN_QUEUE"
        server = self.server = own_server(endpoint__trial__workersMax=2, **SHORT_DRAIN)
        running = [server.run("trial", {"sleepMs": 600000}) for _ in range(2)]
        until(lambda: server.health("trial")["jobs"]["inProgress"] == 2, "both workers are busy")
        third = server.run("trial", {})
        answer = server.request("GET", f"/v2/trial/status-sync/{third}?wait=1000")
        assert self.assert_job(answer)["status"] == "IN_QUEUE"
        server.request("POST", f"/v2/trial/cancel/{running[0]}")
        assert server.finished("trial", third)["status"] == "COMPLETED"

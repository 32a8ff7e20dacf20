"""core/http/API.md, "Queue API": the methods, queries and answers of each call, and rules of single calls."""

import json
import threading
import time

import pytest

from held_jobs import held_server
from http_case import HttpTest
from jobq_server import SHORT_DRAIN, join, until
from pace import judge_pace

NOBODY = "00000000-0000-4000-8000-000000000000-u1"
MB = 1024 * 1024


@pytest.mark.endpoints("echo", "trial", "parked")
class TableTest(HttpTest):
    """A test for each row."""

    def ask(self, method, path, body=None):
        return self.assert_job(self.server.request(method, f"/v2/{path}", body))

    @pytest.mark.parametrize("query", ["", "?wait=90000", "?wait=300000"])
    def test_runsync(self, query):
        """core/http/API.md, "/runsync": POST /runsync, query `wait`, answers the job with output, delayTime,
        executionTime."""
        job = self.ask("POST", f"echo/runsync{query}", {"input": {"a": 1}})
        assert {"id", "status", "output", "delayTime", "executionTime"} <= set(job)
        assert (job["status"], job["output"]) == ("COMPLETED", {"a": 1})

    def test_run(self):
        """core/http/API.md, "/run": POST /run answers `id` and `status`, IN_QUEUE on acceptance."""
        assert self.ask("POST", "echo/run", {"input": {}})["status"] == "IN_QUEUE"

    def test_status(self):
        """core/http/API.md, "/status": GET /status/{jobId} answers the job; `output` when available."""
        job = self.server.runsync("echo", {"a": 1})
        assert self.ask("GET", f"echo/status/{job['id']}") == job
        first, second = (self.server.run("parked", {}) for _ in range(2))
        position = self.ask("GET", f"parked/status/{first}")["queuePosition"]
        assert position >= 1
        assert self.ask("GET", f"parked/status/{second}") == {
            "id": second, "status": "IN_QUEUE", "queueReason": "no_workers", "queuePosition": position + 1}

    def test_stream(self):
        """core/http/API.md, "Reading a stream": GET /stream/{jobId} answers an array of stream chunks."""
        job = self.server.runsync("trial", {"chunks": 2})["id"]
        chunks = self.ask("GET", f"trial/stream/{job}")
        assert isinstance(chunks, list)
        assert [chunk["output"]["chunk"] for chunk in chunks] == [0, 1]

    def test_cancel(self):
        """core/http/API.md, "/cancel": POST /cancel/{jobId} answers `id`, `status` (CANCELLED)."""
        job = self.server.run("parked", {})
        assert self.ask("POST", f"parked/cancel/{job}") == {"id": job, "status": "CANCELLED"}

    def test_retry(self):
        """core/http/API.md, "/retry": POST /retry/{jobId} answers `id`, `status` (IN_QUEUE)."""
        job = self.server.runsync("trial", {"fail": "no"})["id"]
        assert self.ask("POST", f"trial/retry/{job}") == {"id": job, "status": "IN_QUEUE"}

    def test_purge_queue(self):
        """core/http/API.md, "/purge-queue": POST /purge-queue answers `removed`, `status`."""
        self.server.run("parked", {})
        assert self.ask("POST", "parked/purge-queue")["removed"] >= 1

    def test_health(self):
        """core/http/API.md, "/health": GET /health answers the health object, the owed webhooks included."""
        assert set(self.ask("GET", "echo/health")) == {"jobs", "webhooks", "workers"}

    def test_unknown_queries_are_no_fault(self):
        """core/http/API.md, "Queue API": an unknown query parameter is ignored: clients add their own."""
        job = self.server.runsync("echo", {})["id"]
        for method, path, body in (("POST", "echo/run", {"input": {}}), ("GET", f"echo/status/{job}", None),
                                   ("GET", "echo/health", None), ("POST", f"echo/cancel/{job}", None)):
            self.ask(method, f"{path}?verbose=1&x", body)


@pytest.mark.endpoints("echo", "trial", "parked")
class StatusTtlTest(HttpTest):
    def gone(self, endpoint, job):
        until(lambda: self.server.request("GET", f"/v2/{endpoint}/status/{job}").status == 404, "the job is gone")

    def test_a_finished_job(self, subtests):
        """core/http/API.md, "/status": `ttl` sets the lifetime of this job; the answering call still shows the job."""
        other = self.server.runsync("echo", {})["id"]
        for ttl in ("1000", "1", "0"):
            with subtests.test(ttl=ttl):
                job = self.server.runsync("echo", {"a": 1})
                asked = time.monotonic()
                answer = self.server.request("GET", f"/v2/echo/status/{job['id']}?ttl={ttl}")
                assert self.assert_job(answer) == job
                self.gone("echo", job["id"])
                assert time.monotonic() - asked >= 0.99, "the floor is 1 s"
        assert self.server.status("echo", other)["status"] == "COMPLETED"

    def test_a_waiting_job(self):
        """core/http/API.md, "/status": `/status?ttl=ms` replaces the expiry with now + ttl, before the end too; by POST
        too."""
        job = self.server.run("parked", {})
        answer = self.server.request("POST", f"/v2/parked/status/{job}?ttl=1000")
        assert self.assert_job(answer)["status"] == "IN_QUEUE"
        self.gone("parked", job)

    def test_a_ttl_survives_completion(self, own_server):
        """core/http/API.md, "/status": a `/status?ttl=` of a running job survives its completion: a job without one
        that ends later is gone earlier."""
        server, held = held_server(self.at_end, own_server)
        self.server = server
        template = self.assert_job(server.request("POST", "/v1/templates", {"name": "t", "imageName": "lua/held"}))
        endpoint = self.assert_job(server.request("POST", "/v1/endpoints", {
            "templateId": template["id"], "retention": {"run": 1_000}}))["id"]
        job = server.run(endpoint, {"hold": True})
        until(lambda: server.status(endpoint, job)["status"] == "IN_PROGRESS", "the job runs")
        answer = server.request("GET", f"/v2/{endpoint}/status/{job}?ttl=600000")
        assert self.assert_job(answer)["status"] == "IN_PROGRESS"
        held.release()
        assert server.finished(endpoint, job)["status"] == "COMPLETED"
        self.gone(endpoint, server.run(endpoint, {}))
        assert server.status(endpoint, job)["status"] == "COMPLETED"

    def test_a_longer_ttl_than_allowed(self):
        """core/http/API.md, "/status": at most submission + 7 days; more is no fault."""
        job = self.server.runsync("echo", {})
        for ttl in (604800000, 604800001, 10**15):
            answer = self.server.request("GET", f"/v2/echo/status/{job['id']}?ttl={ttl}")
            assert self.assert_job(answer) == job

    def test_values_other_than_integers(self, subtests):
        """core/http/API.md, "Statuses": 400 malformed parameters; `ttl` is an integer of milliseconds, and nothing
        changes."""
        job = self.server.runsync("echo", {})
        for ttl in ("abc", "", "1.5", "1e4", "0x10", "1000x", "+1000", "%201000", "10000000000000000000000"):
            with subtests.test(ttl=ttl):
                answer = self.server.request("GET", f"/v2/echo/status/{job['id']}?ttl={ttl}")
                if ttl.isdigit():
                    assert answer.status in (200, 400), "too long for an integer: refused or taken for the most"
                else:
                    self.assert_refused(answer, 400, "ttl")
        assert self.server.status("echo", job["id"]) == job

    def test_unknown_jobs(self):
        """core/http/API.md, "Statuses": 404, with a `ttl` too."""
        self.assert_refused(self.server.request("GET", f"/v2/echo/status/{NOBODY}?ttl=5000"), 404)


@pytest.mark.endpoints("echo", "trial")
class StreamRuleTest(HttpTest):
    """Rule 2."""

    def test_a_handler_without_streaming(self):
        """core/http/API.md, "Reading a stream": the stream of a handler without chunks is `[]`."""
        job = self.server.runsync("echo", {"a": 1})["id"]
        for _ in range(2):  # a held caller would wait for five minutes, and its client gives up before
            answer = self.server.request("GET", f"/v2/echo/stream/{job}?wait=300000")
            assert (self.assert_job(answer), answer.headers["X-Job-Status"]) == ([], "COMPLETED")

    def test_no_chunk_is_larger_than_a_megabyte(self):
        """core/http/API.md, "Stream chunk": a streamed chunk is at most 1 MB; larger output is split over several
        chunks."""
        job = self.server.runsync("trial", {"chunks": 2, "chunkBytes": 5 * MB // 2})["id"]
        answer = self.server.request("GET", f"/v2/trial/stream/{job}?offset=0")
        chunks = self.assert_job(answer)
        assert len(chunks) >= 6
        for chunk in chunks:
            assert isinstance(chunk["output"], str)
            assert len(json.dumps(chunk["output"], separators=(",", ":")).encode()) <= MB

    def test_chunks_up_to_a_megabyte_are_whole(self):
        """core/http/API.md, "Stream chunk": only output larger than 1 MB is split."""
        around = len('{"chunk":0,"data":""}')
        nearly = MB - around - 100  # the chunk's own braces and names may count
        job = self.server.runsync("trial", {"chunks": 1, "chunkBytes": nearly})["id"]
        chunks = self.assert_job(self.server.request("GET", f"/v2/trial/stream/{job}"))
        assert len(chunks) == 1
        assert len(chunks[0]["output"]["data"]) == nearly
        assert "partial" not in chunks[0]
        job = self.server.runsync("trial", {"chunks": 1, "chunkBytes": MB - around + 1})["id"]
        assert len(self.assert_job(self.server.request("GET", f"/v2/trial/stream/{job}"))) == 2


@pytest.mark.endpoints("echo", "trial", "parked")
class RuleTest(HttpTest):
    def test_wait_is_how_long_runsync_waits(self):
        """core/http/API.md, "/runsync": `wait` controls how long /runsync waits for completion."""
        started = time.monotonic()
        answer = self.server.request("POST", "/v2/parked/runsync?wait=1200", {"input": {}})
        waited = time.monotonic() - started
        assert self.assert_job(answer)["status"] == "IN_QUEUE"
        assert waited >= 1.15
        judge_pace("/runsync?wait=1200 of a job that waits", waited, 5)

    def test_purge_takes_only_waiting_jobs(self, own_server):
        """core/http/API.md, "/purge-queue": /purge-queue affects only jobs waiting in the queue."""
        server, held = held_server(self.at_end, own_server, endpoint__trial__workersMax=1)
        answers = []
        caller = threading.Thread(
            target=lambda: answers.append(server.runsync("trial", {"hold": True, "output": 1}, wait=300_000)))
        caller.start()
        until(lambda: server.health("trial")["jobs"]["inProgress"] == 1, "the job runs")
        done = server.runsync("echo", {})["id"]
        server.run("trial", {})
        assert self.assert_job(server.request("POST", "/v2/trial/purge-queue"))["removed"] == 1
        assert self.assert_job(server.request("POST", "/v2/echo/purge-queue"))["removed"] == 0
        held.release()
        join("the caller of the running job has its answer", caller)
        assert (answers[0]["status"], answers[0]["output"]) == ("COMPLETED", 1)
        assert server.status("echo", done)["status"] == "COMPLETED"

    def test_a_purge_wakes_waiting_callers(self, own_server):
        """core/http/API.md, "/purge-queue": purged jobs are gone; a caller waiting for one reads 404 before the end of
        the wait."""
        server = own_server()
        job = server.run("parked", {})
        answers = []
        waiters = [threading.Thread(target=lambda what=what: answers.append(
            server.request("GET", f"/v2/parked/{what}/{job}?wait=300000"))) for what in ("status-sync", "stream")]
        for waiter in waiters:
            waiter.start()
        self.assert_job(server.request("POST", "/v2/parked/purge-queue"))
        join("the callers that wait for the purged job are answered, and not after their five minutes", *waiters)
        for answer in answers:
            self.assert_refused(answer, 404)


class RequestsTest(HttpTest):
    """core/http/API.md, "/requests": the shape of the list, its order and its pages."""

    def requests(self, query=""):
        return self.assert_job(self.server.request("GET", f"/v2/parked/requests{query}"))

    def ids(self, query):
        return [job["id"] for job in self.requests(query)["requests"]]

    def test_shape_and_order(self, own_server):
        """core/http/API.md, "/requests": {"requests","total","offset","limit","hasMore"}, newest first, limit 50, at
        most 100."""
        server = self.server = own_server(storage="memory")
        assert self.requests() == {"requests": [], "total": 0, "offset": 0, "limit": 50, "hasMore": False}
        jobs = [server.run("parked", {"n": n}) for n in range(120)]
        newest = jobs[::-1]
        page = self.requests()
        assert [job["id"] for job in page.pop("requests")] == newest[:50]
        assert page.pop("cursor") > 0
        assert page == {"total": 120, "offset": 0, "limit": 50, "hasMore": True}
        page = self.requests("?limit=100")
        assert [job["id"] for job in page.pop("requests")] == newest[:100]
        assert page.pop("cursor") > 0
        assert page == {"total": 120, "offset": 0, "limit": 100, "hasMore": True}
        page = self.requests("?offset=100&limit=30")
        assert [job["id"] for job in page.pop("requests")] == newest[100:]
        assert page == {"total": 120, "offset": 100, "limit": 30, "hasMore": False}
        page = self.requests("?offset=90&limit=30")
        assert (len(page["requests"]), page["hasMore"]) == (30, False)
        page = self.requests("?limit=100")
        rest = self.requests(f"?limit=100&cursor={page['cursor']}")
        assert len(rest["requests"]) == 20 and rest["total"] == 120
        assert not rest["hasMore"] and "cursor" not in rest
        assert page["requests"][-1]["id"] != rest["requests"][0]["id"]
        page = self.requests("?offset=500")
        assert (page["requests"], page["total"], page["hasMore"]) == ([], 120, False)

    def test_pages_at_and_beyond_the_end(self, own_server, subtests):
        """core/http/API.md, "/requests": total counts all matching jobs on every page; a page beyond the end is
        empty."""
        for storage in ("memory", "sqlite"):
            server = self.server = own_server(storage=storage)
            jobs = [server.run("parked", {}) for _ in range(3)]
            server.request("POST", f"/v2/parked/cancel/{jobs[0]}")
            for state, found in (("", jobs[::-1]), ("&status=IN_QUEUE", jobs[:0:-1]), ("&status=FAILED", [])):
                for offset in (0, 1, 2, 3, 4, 2**53):
                    with subtests.test(storage=storage, state=state, offset=offset):
                        page = self.requests(f"?limit=1&offset={offset}{state}")
                        assert [job["id"] for job in page.pop("requests")] == found[offset:offset + 1]
                        assert ("cursor" in page) == page["hasMore"]
                        page.pop("cursor", None)
                        assert page == {"total": len(found), "offset": offset, "limit": 1,
                                        "hasMore": offset + 1 < len(found)}

    def test_by_status(self, own_server, subtests):
        """core/http/API.md, "/requests": query `status`; total counts the matching jobs; purged jobs and other
        endpoints' are absent."""
        server = self.server = own_server(endpoint__parked__workersMax=1, endpoint__parked__image="plugin/trial",
                                          **SHORT_DRAIN)
        server.runsync("trial", {})
        ends = {"COMPLETED": server.runsync("parked", {"output": "o-41f7", "own": "i-93d2"})["id"],
                "FAILED": server.runsync("parked", {"fail": "no"})["id"],
                "IN_PROGRESS": server.run("parked", {"sleepMs": 600000})}
        until(lambda: server.status("parked", ends["IN_PROGRESS"])["status"] == "IN_PROGRESS", "the job runs")
        ends["CANCELLED"] = server.run("parked", {})
        server.request("POST", f"/v2/parked/cancel/{ends['CANCELLED']}")
        server.run("parked", {})
        server.request("POST", "/v2/parked/purge-queue")
        ends["IN_QUEUE"] = server.run("parked", {})
        for state, job in ends.items():
            with subtests.test(state):
                page = self.requests(f"?status={state}")
                assert [entry["id"] for entry in page["requests"]] == [job]
                assert (page["total"], page["hasMore"]) == (1, False)
        assert sorted(self.ids("")) == sorted(ends.values())
        answer = server.request("GET", "/v2/parked/requests")
        for entry in answer.json()["requests"]:
            whole = server.request("GET", f"/v2/parked/status/{entry['id']}?include=times").json()
            for beside in ("output", "queueReason", "queuePosition"):
                whole.pop(beside, None)
            assert entry == whole, "the status object without its output, and what the line says of it"
        for word in (b"o-41f7", b"i-93d2"):
            assert word not in answer.body

    @pytest.mark.parametrize("field, value", [
        ("limit", "101"), ("limit", "-1"), ("limit", "abc"), ("limit", "1.5"), ("limit", ""), ("offset", "-1"),
        ("cursor", "0"), ("cursor", "last"),
        ("offset", "abc"), ("offset", "1.5"), ("offset", ""), ("status", "RUNNING"), ("status", "")])
    def test_wrong_queries(self, field, value):
        """core/http/API.md, "Statuses": 400 malformed parameters, naming the parameter."""
        self.assert_refused(self.server.request("GET", f"/v2/parked/requests?{field}={value}"), 400, field)


@pytest.mark.endpoints("echo")
class MethodTest(HttpTest):
    @pytest.mark.parametrize("path, allowed", [
        ("run", "POST"), ("runsync", "POST"), ("status/x", "GET, POST"), ("status-sync/x", "GET, POST"),
        ("stream/x", "GET, POST"), ("cancel/x", "POST"), ("retry/x", "POST"), ("purge-queue", "POST"),
        ("health", "GET"), ("requests", "GET")])
    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
    def test_wrong_methods(self, method, path, allowed):
        """core/http/API.md, "Statuses": 405 wrong method with `Allow`, on each row of the table."""
        answer = self.server.request(method, f"/v2/echo/{path}", None if method == "GET" else b"{}")
        if method in allowed.split(", "):
            assert answer.status != 405
            return
        self.assert_refused(answer, 405)
        allow = {word.strip() for word in answer.headers["Allow"].split(",")} - {"HEAD", "OPTIONS"}
        assert allow == set(allowed.split(", "))

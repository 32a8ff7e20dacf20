"""core/http/API.md, "Addresses": the two mounts, GET and POST, ids, and the calls without a key."""

import json
import re
import time

import pytest

from http_case import HttpTest
from jobq_server import until

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
NOBODY = "00000000-0000-4000-8000-000000000000-u1"
MOUNTS = ("/v2", "/sdk/v2")


@pytest.mark.endpoints("trial", "parked")
class StreamShapeTest(HttpTest):
    def stream(self, mount, endpoint, job, query="?offset=0"):
        return self.server.request("GET", f"{mount}/{endpoint}/stream/{job}{query}")

    def test_the_bare_array(self):
        """core/http/API.md, "Reading a stream": /v2 answers the bare array of chunks, with the state in header
        X-Job-Status."""
        job = self.server.runsync("trial", {"chunks": 2})["id"]
        answer = self.stream("/v2", "trial", job, "")
        assert [chunk["output"]["chunk"] for chunk in self.assert_job(answer)] == [0, 1]
        assert answer.headers["X-Job-Status"] == "COMPLETED"
        assert answer.headers["X-Job-Attempt"] == "1"

    def test_the_object(self):
        """core/http/API.md, "Streams for client libraries": /sdk/v2 answers the object {"status","stream":[...]} of the
        public SDKs."""
        job = self.server.runsync("trial", {"chunks": 2})["id"]
        array = self.assert_job(self.stream("/v2", "trial", job))
        answer = self.stream("/sdk/v2", "trial", job)
        assert self.assert_job(answer) == {"status": "COMPLETED", "stream": array}
        assert answer.headers["X-Job-Attempt"] == "1"

    def test_the_object_is_always_whole(self, subtests):
        """core/http/API.md, "Streams for client libraries": `stream` is always there, empty too, in every state; a
        failed job has an `error`."""
        waiting = self.server.run("parked", {})
        running = self.server.run("trial", {"sleepMs": 600000})
        until(lambda: self.server.status("trial", running)["status"] == "IN_PROGRESS", "the job runs")
        failed = self.server.runsync("trial", {"fail": "no"})["id"]
        for endpoint, job, state, more in (("parked", waiting, "IN_QUEUE", {}), ("trial", running, "IN_PROGRESS", {}),
                                           ("trial", failed, "FAILED", {"error": "no"})):
            with subtests.test(state):
                assert self.assert_job(self.stream("/sdk/v2", endpoint, job, "?wait=1000")) == {
                    "status": state, "stream": [], **more}
                assert self.stream("/v2", endpoint, job, "?wait=1000").headers["X-Job-Status"] == state
        self.server.request("POST", f"/v2/trial/cancel/{running}")
        assert self.assert_job(self.stream("/sdk/v2", "trial", running)) == {"status": "CANCELLED", "stream": []}


@pytest.mark.endpoints("echo", "trial", "parked")
class MountTest(HttpTest):
    """The two mounts are byte-equal but for the two named differences."""

    @staticmethod
    def plain(answer):
        """Status, header fields and body without what is new in every answer: ids, times, worker, date."""
        body = re.sub(UUID.encode(), b"<uuid>", answer.body)
        body = body.replace(b" /sdk/v2/", b" /v2/")  # an unknown path, and its nearest route, are named with the mount
        body = re.sub(rb'("(delayTime|executionTime)":)\d+', rb"\1<ms>", body)
        body = re.sub(rb'("workerId":)"[^"]*"', rb"\1<worker>", body)
        changing = ("Date", "Content-Length", "RateLimit-Remaining", "RateLimit-Reset")
        return answer.status, sorted((name, "" if name in changing else value)
                                     for name, value in answer.headers.items()), body

    def assert_equal(self, method, path, body=None, **more):
        v2, sdk = (self.server.request(method, mount + path, body, **more) for mount in MOUNTS)
        assert self.plain(v2) == self.plain(sdk), f"{method} {path} {str(body)[:60]}"
        return v2

    def test_successes(self):
        """core/http/API.md, "The two mounts": the same routes, mounted a second time; equal to the byte where both
        succeed."""
        done = self.server.runsync("echo", {"b": 1.0, "a": -0})["id"]
        failed = self.server.runsync("trial", {"fail": "no \u00e9"})["id"]
        waiting = self.server.run("parked", {})
        for body in ({"input": {"b": 1}}, {"input": {}, "policy": {"ttl": 10000, "executionTimeout": 5000}},
                     b'{"input" : {"n":1e400} }'):
            for operation in ("run", "runsync", "runsync?wait=90000", "runsync?wait=300000"):
                assert self.assert_equal("POST", f"/echo/{operation}", body).status == 200
        for method in ("GET", "POST"):
            for endpoint, job in (("echo", done), ("trial", failed), ("parked", waiting)):
                assert self.assert_equal(method, f"/{endpoint}/status/{job}").status == 200
            assert self.assert_equal(method, f"/echo/status-sync/{done}?wait=1000").status == 200
        self.assert_equal("GET", f"/echo/status/{done}?ttl=60000")
        self.assert_equal("POST", f"/echo/cancel/{done}")
        self.assert_equal("POST", f"/parked/cancel/{waiting}")
        self.server.quiet("echo")
        self.assert_equal("GET", "/parked/health")
        self.assert_equal("GET", "/parked/requests?limit=3")
        self.assert_equal("HEAD", "/parked/health")

    def test_changes(self):
        """core/http/API.md, "The two mounts": an effect of one mount is visible on the other; retry and purge answer
        alike."""
        answers = []
        for mount, other in (MOUNTS, MOUNTS[::-1]):
            failed = self.server.runsync("trial", {"fail": "no"})["id"]
            retried = self.server.request("POST", f"{mount}/trial/retry/{failed}")
            assert self.server.finished("trial", failed)["retries"] == 1
            self.server.request("POST", "/v2/parked/purge-queue")
            job = self.assert_job(self.server.request("POST", f"{mount}/parked/run", {"input": {}}))["id"]
            seen = self.server.request("GET", f"{other}/parked/status/{job}")
            purged = self.server.request("POST", f"{other}/parked/purge-queue")
            answers.append([self.plain(answer) for answer in (retried, seen, purged)])
            self.assert_refused(self.server.request("GET", f"{mount}/parked/status/{job}"), 404)
        assert answers[0] == answers[1]

    def test_errors(self):
        """core/http/API.md, "The two mounts": equal to the byte where both refuse, whatever the reason."""
        done = self.server.runsync("echo", {})["id"]
        for body in (b"{", b"{}", b'{"input":1}', b'{"input":{},"input":{}}', b'{"input":{},"policy":1}',
                     b'{"input":{},"policy":{"ttl":"x"}}', b'{"input":{},"webhook":"x"}', b""):
            for operation in ("run", "runsync", "runsync?wait=abc"):
                assert self.assert_equal("POST", f"/echo/{operation}", body).status == 400
        for method, path in (("GET", f"/echo/status/{NOBODY}"), ("GET", "/nothing/health"), ("GET", "/echo/nothing"),
                             ("GET", f"/echo/status/{done}?ttl=x"), ("GET", f"/echo/status-sync/{done}?wait=x"),
                             ("GET", f"/echo/stream/{NOBODY}"), ("GET", f"/echo/stream/{done}?offset=x"),
                             ("POST", f"/echo/retry/{done}"), ("PUT", "/echo/run"), ("GET", "/echo/purge-queue"),
                             ("GET", "/echo/requests?limit=x"), ("POST", f"/echo/cancel/{NOBODY}")):
            assert self.assert_equal(method, path).status >= 400
            assert self.assert_equal(method, path, key=None).status in (401, 404, 405)

    def test_clamping(self, subtests):
        """core/http/API.md, "The two mounts": `wait` or `policy` values out of range are clamped there instead of
        refused."""
        done = self.server.runsync("echo", {})["id"]
        for wait in ("0", "1", "999", "300001", "86400000", "-1"):
            with subtests.test(wait=wait):
                for method, path, body in (("POST", "runsync", {"input": {}}), ("GET", f"status-sync/{done}", None),
                                           ("POST", f"stream/{done}", None)):
                    self.assert_job(self.server.request(method, f"/sdk/v2/echo/{path}?wait={wait}", body))
                    self.assert_refused(self.server.request(method, f"/v2/echo/{path}?wait={wait}", body), 400, "wait")
        for policy in ({"executionTimeout": 3000}, {"executionTimeout": 0}, {"executionTimeout": -1}, {"ttl": 1},
                       {"ttl": 604800001, "executionTimeout": 604800001}, {"ttl": 10**30}):
            with subtests.test(policy=policy):
                body = {"input": {}, "policy": policy}
                self.assert_job(self.server.request("POST", "/sdk/v2/echo/runsync", body))
                self.assert_refused(self.server.request("POST", "/v2/echo/runsync", body), 400)

    def test_a_value_out_of_range_is_clamped_and_not_ignored(self):
        """core/http/API.md, "The two mounts": a value out of range becomes the nearest value in range."""
        begin = time.monotonic()
        body = {"input": {}, "policy": {"ttl": 1}}
        waiting = self.assert_job(self.server.request("POST", "/sdk/v2/parked/run", body))["id"]
        body = {"input": {"sleepMs": 600000}, "policy": {"executionTimeout": 1}}
        job = self.assert_job(self.server.request("POST", "/sdk/v2/trial/runsync", body))
        assert job["status"] == "TIMED_OUT"
        assert job["executionTime"] >= 5000, "5 s to run"
        until(lambda: self.server.request("GET", f"/v2/parked/status/{waiting}").status == 404, "the job expires")
        assert time.monotonic() - begin > 9.9, "10 s to live"
        answer = self.server.request("POST", "/sdk/v2/parked/runsync?wait=0", {"input": {}})
        assert self.assert_job(answer)["status"] == "IN_QUEUE", "it waited for a second, not for 90"

    def test_types_are_not_clamped(self):
        """core/http/API.md, "The two mounts": two differences only, so a value other than an integer is refused on both
        mounts."""
        for policy in ({"ttl": "10000"}, {"executionTimeout": []}, {"lowPriority": 1}, {"ttl": True}):
            assert self.assert_equal("POST", "/echo/run", {"input": {}, "policy": policy}).status == 400
        for wait in ("abc", "", "0x1000"):
            assert self.assert_equal("POST", f"/echo/runsync?wait={wait}", {"input": {}}).status == 400


@pytest.mark.endpoints("echo", "trial", "parked")
class MethodTest(HttpTest):
    def test_stream_takes_get_and_post(self):
        """core/http/API.md, "Requests": `/status`, `/status-sync` and `/stream` accept GET and POST."""
        job = self.server.runsync("trial", {"chunks": 2})["id"]
        for mount in MOUNTS:
            get, post = (self.server.request(method, f"{mount}/trial/stream/{job}?offset=0") for method in
                         ("GET", "POST"))
            self.assert_job(get)
            assert (get.status, get.body) == (post.status, post.body)
        assert len(self.assert_job(self.server.request("POST", f"/v2/trial/stream/{job}"))) == 2
        assert self.assert_job(self.server.request("GET", f"/v2/trial/stream/{job}")) == [], "handed out"

    def test_bodies_without_parameters_are_ignored(self, subtests):
        """core/http/API.md, "Requests": POST bodies that carry no parameters may be empty, `{}` or anything."""
        done = self.server.runsync("echo", {})["id"]
        for body in (b"", b"{}", b"[]", b"not JSON", b'{"id":"other","wait":5}', b"\xff" * 70000):
            with subtests.test(body=body[:20]):
                for operation in ("status", "status-sync", "stream", "cancel"):
                    self.assert_job(self.server.request("POST", f"/v2/echo/{operation}/{done}", body))
                failed = self.server.runsync("trial", {"fail": "no"})["id"]
                self.assert_job(self.server.request("POST", f"/v2/trial/retry/{failed}", body))
                self.assert_job(self.server.request("POST", "/v2/parked/purge-queue", body))


@pytest.mark.endpoints("echo")
class IdTest(HttpTest):
    def test_ids(self):
        """core/http/API.md, "Ids": job ids `<uuid>-u1`, from /runsync `sync-<uuid>-u1`, [A-Za-z0-9_-]+, random."""
        ids = []
        for mount in MOUNTS:
            for operation, prefix in (("run", ""), ("runsync", "sync-")):
                for _ in range(5):
                    answer = self.server.request("POST", f"{mount}/echo/{operation}", {"input": {}})
                    ids.append(self.assert_job(answer)["id"])
                    assert re.search(rf"\A{prefix}{UUID}-u1\Z", ids[-1])
        assert len({re.search(UUID, job).group() for job in ids}) == 20

    def test_endpoints_named_by_hand(self, own_server):
        """core/http/API.md, "Ids": endpoint ids match [A-Za-z0-9_-]+."""
        self.server = own_server(**{"endpoint.My_end-Point0.image": "plugin/echo"})
        assert self.server.runsync("My_end-Point0", {"a": 1})["output"] == {"a": 1}


class ProcessTest(HttpTest):
    @pytest.mark.endpoints("echo")
    def test_health_contains_no_data_of_jobs(self):
        """core/http/API.md, "The process": health of the process, without a key and therefore without data of
        callers."""
        job = self.server.runsync("echo", {"word": "w-83ff2"})
        for path in ("/healthz", "/readyz"):
            body = self.server.request("GET", path, key=None).body
            for word in (job["id"], "w-83ff2", self.server.key):
                assert word.encode() not in body
        assert json.loads(self.server.request("GET", "/healthz", key=None).body) == {"status": "alive"}

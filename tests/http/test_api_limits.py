"""core/http/API.md, "Limits": the rate table row by row, and each other row that needs no long time.

The rows about hours and minutes (retention, the defaults of `ttl` and `executionTimeout`, webhook attempts) are proved
in process, on a manual clock. The limits are counted in windows of ten minutes, so that all requests of a test lie in one
window on a machine of any pace; DefaultsTest compares the windows that the server has without a setting.
"""

import contextlib
import re

import pytest

from http_case import HttpTest
from jobq_server import SHORT_DRAIN, until
from request_stream import RequestStream
from waiting_callers import WaitingCallers, allow_descriptors

RATES = {  # core/http/API.md, "Rate limits"
    "runsync": ("POST", 2000), "run": ("POST", 1000), "status": ("GET", 2000), "status-sync": ("GET", 2000),
    "stream": ("GET", 2000), "cancel": ("POST", 100), "purge-queue": ("POST", 2), "requests": ("GET", 10),
}
LIMITED = {"limits.enabled": "true", "storage": "memory", **SHORT_DRAIN}
LONG_WINDOWS = {**LIMITED, **{f"limits.{name}.window": "600s" for name in (
    "runsync", "run", "status", "statusSync", "stream", "cancel", "purgeQueue", "requests")}}


class LimitTest(HttpTest):
    """One server for the class; each test uses up other buckets."""

    WINDOW = 600  # seconds

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**LONG_WINDOWS)

    def assert_too_many(self, answer, requests=None):
        """Expects a 429 in the documented form; `requests` is the limit named by its headers."""
        self.assert_refused(answer, 429)
        assert re.search(r"\A[1-9]\d*\Z", answer.headers.get("Retry-After", ""))
        assert int(answer.headers["Retry-After"]) <= self.WINDOW
        if requests:
            assert answer.headers["RateLimit-Limit"] == str(requests)
            assert answer.headers["RateLimit-Remaining"] == "0"
            assert re.search(r"\A\d{1,3}\Z", answer.headers["RateLimit-Reset"])
            assert int(answer.headers["RateLimit-Reset"]) <= self.WINDOW
            assert str(requests) in answer.headers["RateLimit-Policy"]
            assert re.search(rf"\bw={self.WINDOW}\b", answer.headers["RateLimit-Policy"])

    def until_too_many(self, method, path, at_most, body=None):
        """How many of one caller's requests are answered before the first 429."""
        with RequestStream(self.server) as stream:
            for count in range(at_most + 1):
                if stream.statuses(method, path, 1, body) == [429]:
                    return count
        return None


class RateTest(LimitTest):
    def path(self, operation):
        job = "" if operation in ("run", "runsync", "purge-queue", "requests") else "/" + self.job
        return f"/v2/echo/{operation}{job}"

    def test_each_row(self, subtests):
        """core/http/API.md, "Rate limits" and "Headers of limits": the limit of requests in a window passes, the next
        request reads 429 with its headers."""
        self.job = self.server.run("echo", {})
        self.server.finished("echo", self.job)
        spent = {"run": 1, "status-sync": 1}
        for operation, (method, limit) in RATES.items():
            with subtests.test(operation):
                body = {"input": {}} if "run" in operation else None
                count = limit - spent.get(operation, 0)
                with RequestStream(self.server) as stream:
                    statuses = stream.statuses(method, self.path(operation), count, body)
                first = next((n for n, status in enumerate(statuses) if status != 200), None)
                assert first is None, f"request {first} of {count} read {statuses[first or 0]}"
                self.assert_too_many(self.server.request(method, self.path(operation), body), limit)


class SharedBucketTest(LimitTest):
    def test_retry_has_cancels(self):
        """core/http/API.md, "Rate limits": /retry has /cancel's bucket: 100 in a window together."""
        with RequestStream(self.server) as stream:
            for operation in ("cancel", "retry"):
                assert stream.statuses("POST", f"/v2/echo/{operation}/none", 50) == [404] * 50
        for operation in ("cancel", "retry"):
            self.assert_too_many(self.server.request("POST", f"/v2/echo/{operation}/none"), 100)

    def test_health_has_statuses_and_post_counts_as_get(self):
        """core/http/API.md, "Rate limits": /health has /status's bucket, 2,000 by GET and by POST alike."""
        with RequestStream(self.server) as stream:
            assert stream.statuses("GET", "/v2/trial/health", 700) == [200] * 700
            assert stream.statuses("GET", "/v2/trial/status/none", 700) == [404] * 700
            assert stream.statuses("POST", "/v2/trial/status/none", 600) == [404] * 600
        for path in ("health", "status/none"):
            self.assert_too_many(self.server.request("GET", f"/v2/trial/{path}"), 2000)

    def test_status_sync_has_a_separate_bucket(self):
        """core/http/API.md, "Rate limits": /status-sync has a bucket like /status's, of its own."""
        with RequestStream(self.server) as stream:
            assert stream.statuses("GET", "/v2/parked/status/none", 2001)[-1] == 429
            assert stream.statuses("GET", "/v2/parked/status-sync/none", 1) == [404]

    def test_both_mounts_share(self):
        """core/http/API.md, "The two mounts": the second mount has the same routes, so no second allowance."""
        for mount in ("/v2", "/sdk/v2"):
            self.assert_job(self.server.request("POST", f"{mount}/trial/purge-queue"))
        for mount in ("/v2", "/sdk/v2"):
            self.assert_too_many(self.server.request("POST", f"{mount}/trial/purge-queue"), 2)

    def test_all_keys_share(self, own_server):
        """core/http/API.md, "Rate limits": a limit belongs to an endpoint and an operation, so not to a key."""
        self.server = own_server(**LONG_WINDOWS)
        for key in (self.server.key, self.server.new_key("client")["key"]):
            self.assert_job(self.server.request("POST", "/v2/echo/purge-queue", key=key))
        self.assert_too_many(self.server.request("POST", "/v2/echo/purge-queue"), 2)

    def test_endpoints_do_not_share(self):
        """core/http/API.md, "Rate limits": a limit belongs to an endpoint and an operation."""
        for endpoint in ("echo", "parked"):
            for _ in range(2):
                self.assert_job(self.server.request("POST", f"/v2/{endpoint}/purge-queue"))
            self.assert_too_many(self.server.request("POST", f"/v2/{endpoint}/purge-queue"), 2)
            self.assert_job(self.server.request("GET", f"/v2/{endpoint}/requests"))

    @pytest.mark.reactor("a connection that stays after a refused body")
    def test_malformed_requests_use_up_nobodys_allowance(self, own_server):
        """core/decisions/limits.md: a 400 counts in a rate of its own; the limit counts accepted calls."""
        server = self.server = own_server(**LIMITED, **{"limits.run.requests": 5, "limits.status.requests": 5,
                                                        "limits.run.window": "60s", "limits.status.window": "60s"})
        job = server.run("parked", {})
        with RequestStream(server) as stream:
            statuses = stream.statuses("POST", "/v2/parked/run", 12, {"input": 7})
            assert statuses == [400] * 5 + [429] * 7, "beyond its size the malformed ones themselves are refused"
            assert stream.statuses("POST", "/v2/parked/run", 5, {"input": {}}) == [200] * 4 + [429]
            assert stream.statuses("GET", f"/v2/parked/status/{job}?ttl=x", 7) == [400] * 5 + [429] * 2
            assert stream.statuses("GET", f"/v2/parked/status/{job}", 6) == [200] * 5 + [429]

    def test_forbidden_calls_are_not_counted(self, own_server):
        """core/http/API.md, "Order of the checks": a wrong key is refused before the limits and uses up no
        allowance."""
        self.server = own_server(**LONG_WINDOWS)
        for _ in range(5):
            self.assert_refused(self.server.request("POST", "/v2/echo/purge-queue", key="wrong"), 401)
        for _ in range(2):
            self.assert_job(self.server.request("POST", "/v2/echo/purge-queue"))
        self.assert_too_many(self.server.request("POST", "/v2/echo/purge-queue"), 2)
        self.assert_refused(self.server.request("POST", "/v2/echo/purge-queue", key="wrong"), 401)


class ConcurrencyTest(LimitTest):
    """Calls that can be parked from outside. The concurrency of the other calls is proved in the unit tests of the gate."""

    @pytest.fixture(autouse=True)
    def descriptors(self):
        if not allow_descriptors(1000):
            pytest.skip("needs 1000 descriptors, and may have fewer")

    def assert_concurrent(self, method, path, body, limit):
        """One of `limit` + 1 callers reads 429, and so do all later callers until the others are gone."""
        with contextlib.closing(WaitingCallers(self.server)) as callers:
            for _ in range(limit + 1):
                callers.call(method, path, body)
            callers.collect(60, 1)
            assert [status for _, status, _ in callers.answers] == [429]
            for _ in range(3):
                self.assert_too_many(self.server.request(method, path, body))
            callers.collect(0.0)
            assert len(callers.answers) == 1, "those who were let in still wait"
        until(lambda: self.admits(method, path.replace("300000", "1000"), body), "there is room again")

    def admits(self, method, path, body):
        return self.server.request(method, path, body).status == 200

    @pytest.mark.reactor("waits without a thread each for 400 callers")
    def test_runsync(self):
        """core/http/API.md, "Rate limits": /runsync 400 concurrent."""
        self.assert_concurrent("POST", "/v2/parked/runsync?wait=300000", {"input": {}}, 400)

    @pytest.mark.reactor("waits without a thread each for 400 callers")
    def test_waiting_on_one_job(self, subtests):
        """core/http/API.md, "Rate limits": /stream 400 concurrent; /status-sync 400 as well, in its own bucket."""
        job = self.server.run("parked", {})
        for operation in ("status-sync", "stream"):
            with subtests.test(operation):
                self.assert_concurrent("GET", f"/v2/parked/{operation}/{job}?wait=300000", None, 400)

    def test_a_running_body_is_a_request_too(self):
        """core/http/API.md, "Rate limits": /run 200 concurrent: a caller still sending counts, and the 201st is
        refused."""
        head = (f"POST /v2/parked/run HTTP/1.1\r\nHost: jobq\r\nAuthorization: {self.server.key}\r\n"
                "Content-Length: 12\r\nExpect: 100-continue\r\n\r\n").encode()
        with contextlib.ExitStack() as stack:
            for _ in range(200):
                plain = stack.enter_context(contextlib.closing(self.server.plug()))
                plain.sendall(head)
                assert plain.recv(100).startswith(b"HTTP/1.1 100"), "its body is wanted, so it is let in"
            self.assert_too_many(self.server.request("POST", "/v2/parked/run", {"input": {}}))
        until(lambda: self.admits("POST", "/v2/parked/run", {"input": {}}), "there is room again")

    def test_settings(self, own_server):
        """core/http/API.md, "Rate limits": every number is configuration, `limits.<operation>.concurrent`."""
        server = self.server = own_server(**LIMITED, **{"limits.runsync.concurrent": 2})
        with contextlib.closing(WaitingCallers(server)) as callers:
            for _ in range(2):
                callers.call("POST", "/v2/parked/runsync?wait=300000", {"input": {}})
            until(lambda: server.health("parked")["jobs"]["inQueue"] == 2, "two callers wait")
            self.assert_too_many(server.request("POST", "/v2/parked/runsync", {"input": {}}))
            self.assert_job(server.request("POST", "/v2/echo/runsync", {"input": {}}))
            assert server.health("parked")["jobs"]["inQueue"] == 2, "a refused request left no job"


class DefaultsTest(HttpTest):
    def test_each_operation_has_its_row(self, own_server):
        """core/http/API.md, "Rate limits": requests per 10 seconds, said in the headers of each answer."""
        server = own_server(**LIMITED)
        job = server.run("parked", {})
        for operation, (method, limit) in RATES.items():
            path = "" if operation in ("run", "runsync", "purge-queue", "requests") else "/" + job
            answer = server.request(method, f"/v2/parked/{operation}{path}?wait=1000",
                                    {"input": {}} if "run" in operation else None)
            assert answer.headers["RateLimit-Limit"] == str(limit), operation
            assert re.search(r"\bw=10\b", answer.headers["RateLimit-Policy"]), operation


class SettingsTest(HttpTest):
    WINDOW = 10
    assert_too_many = LimitTest.assert_too_many
    until_too_many = LimitTest.until_too_many

    def test_requests_and_window(self, own_server, subtests):
        """etc/README.md: `limits.<operation>.requests` and `.window`; a caller waiting for Retry-After is let in."""
        server = self.server = own_server(**LIMITED,
                                          **{"limits.run.requests": 3, "limits.run.window": "60s",
                                             "limits.status.requests": 1, "limits.status.window": "2s",
                                             "limits.purgeQueue.requests": 4, "limits.purgeQueue.window": "60s",
                                             "limits.statusSync.requests": 5, "limits.statusSync.window": "60s",
                                             "limits.cancel.requests": 6, "limits.cancel.window": "60s",
                                             "limits.requests.requests": 7, "limits.requests.window": "60s",
                                             "limits.openai.requests": 2000})
        assert self.until_too_many("POST", "/v2/parked/run", 10, {"input": {}}) == 3
        answer = server.request("POST", "/v2/parked/run", {"input": {}})
        assert answer.status == 429
        assert re.search(r"\bw=60\b", answer.headers["RateLimit-Policy"])
        for method, path, limit in (("POST", "purge-queue", 4), ("GET", "status-sync/none", 5),
                                    ("POST", "cancel/none", 6), ("GET", "requests", 7)):
            with subtests.test(path):
                assert self.until_too_many(method, f"/v2/parked/{path}", 20) == limit

        def ask():
            return server.request("GET", "/v2/parked/status/none")
        answer = until(lambda: (answer := ask()).status == 429 and answer, "a second request within a window")
        assert int(answer.headers["Retry-After"]) <= 2
        assert re.search(r"\bw=2\b", answer.headers["RateLimit-Policy"])
        until(lambda: ask().status == 404, "the window is over")

    def test_headers(self, own_server):
        """core/decisions/limits.md: each answer of a limited operation names limit, remaining, reset and policy."""
        server = self.server = own_server(**LIMITED, **{"limits.run.requests": 3})
        for remaining in ("2", "1", "0"):
            answer = server.request("POST", "/v2/parked/run", {"input": {}})
            self.assert_job(answer)
            assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == ("3", remaining)
            assert re.search(rf"\b3\b.*\bw={self.WINDOW}\b", answer.headers["RateLimit-Policy"])
            assert "Retry-After" not in answer.headers
        self.assert_too_many(server.request("POST", "/v2/parked/run", {"input": {}}), 3)

    def test_switched_off(self, own_server):
        """etc/README.md: `limits.enabled = false` switches the rates off."""
        server = own_server(limits__enabled="false")
        with RequestStream(server) as stream:
            assert stream.statuses("POST", "/v2/echo/purge-queue", 20) == [200] * 20
            assert stream.statuses("GET", "/v2/echo/requests", 50) == [200] * 50
            assert stream.statuses("POST", "/v2/echo/cancel/none", 150) == [404] * 150

    @staticmethod
    def admit(count, server, callers, workers):
        """Makes the workers run, and returns once so many calls were let in."""
        for _ in range(workers):
            callers.call("POST", "/v2/trial/runsync?wait=300000", {"input": {"sleepMs": 600000}})
        until(lambda: server.health("trial")["workers"]["running"] == workers, f"{workers} workers run")
        admitted = 0

        def all_admitted():
            nonlocal admitted
            admitted += server.request("POST", "/v2/trial/run", {"input": {}}).status == 200
            return admitted == count

        until(all_admitted, f"{count} calls are let in, once the cached count knows of the workers")

    def test_dynamic_scaling(self, own_server):
        """core/http/API.md, "Rate limits": the higher of the base limit and running workers x `perWorker` is in
        force."""
        settings = {"limits.run.requests": 5, "limits.run.perWorker": 4, "limits.run.window": "60s",
                    "endpoint.trial.workersMin": 2, "endpoint.trial.workersMax": 2}
        server = self.server = own_server(**LIMITED, **settings)
        assert self.until_too_many("POST", "/v2/parked/run", 10, {"input": {}}) == 5, "no worker, so the base"
        assert server.runsync("trial", {})["status"] == "COMPLETED"
        with contextlib.closing(WaitingCallers(server)) as callers:
            self.admit(8, server, callers, workers=2)
            answer = server.request("POST", "/v2/trial/run", {"input": {}})
            assert (answer.status, answer.headers.get("RateLimit-Limit")) == (429, "8")

    def test_per_worker_is_a_tenth(self, own_server):
        """core/http/API.md, "Rate limits": `perWorker` of an operation defaults to a tenth of the base rate."""
        settings = {"limits.run.requests": 10, "limits.run.window": "60s",
                    "endpoint.trial.workersMin": 12, "endpoint.trial.workersMax": 12}
        server = own_server(**LIMITED, **settings)
        with contextlib.closing(WaitingCallers(server)) as callers:
            self.admit(12, server, callers, workers=12)
            assert server.request("POST", "/v2/trial/run", {"input": {}}).status == 429


class QueueLengthTest(HttpTest):
    WINDOW = 10
    assert_too_many = LimitTest.assert_too_many

    SETTINGS = {"limits.queue": "true", "storage": "memory", "endpoint.parked.maxQueued": 51, "limits.maxQueued": 500,
                **SHORT_DRAIN}

    def submit(self, endpoint, count):
        with RequestStream(self.server) as stream:
            return stream.statuses("POST", f"/v2/{endpoint}/run", count, {"input": {"sleepMs": 600000}})

    def is_full(self, endpoint):
        return self.server.request("POST", f"/v2/{endpoint}/run", {"input": {}}).status == 429

    def test_as_many_as_the_limit(self, own_server):
        """core/http/API.md, "Length of the queue": on /run and /runsync 429 when `maxQueued` jobs wait: the endpoint's
        own number, or the server's."""
        server = self.server = own_server(**self.SETTINGS, endpoint__trial__workersMax=1)
        assert self.submit("parked", 51) == [200] * 51
        until(lambda: self.is_full("parked"), "the 52nd is too many, once the cached count knows")
        for operation in ("run", "runsync"):
            for mount in ("/v2", "/sdk/v2"):
                self.assert_too_many(server.request("POST", f"{mount}/parked/{operation}", {"input": {}}))
        assert self.submit("trial", 1) == [200]
        until(lambda: server.health("trial")["jobs"]["inProgress"] == 1, "the only worker is busy")
        assert self.submit("trial", 500) == [200] * 500, "the default of the server"
        until(lambda: self.is_full("trial"), "the 501st is too many")
        server.request("POST", "/v2/parked/purge-queue")
        until(lambda: not self.is_full("parked"), "there is room again")
        self.assert_job(server.request("GET", "/v2/trial/health"))

    def test_switched_off(self, own_server):
        """core/http/API.md, "Length of the queue": `limits.queue = false` switches off the length limit alone."""
        self.server = own_server(**LIMITED, limits__queue="false", limits__maxQueued=100)
        assert self.submit("parked", 300) == [200] * 300
        for expected in (200, 200, 429):
            assert self.server.request("POST", "/v2/echo/purge-queue").status == expected

    def test_without_rates(self, own_server):
        """core/http/API.md, "Length of the queue": the length limit holds with the rates switched off."""
        server = self.server = own_server(**self.SETTINGS, limits__enabled="false")
        self.submit("parked", 51)
        until(lambda: self.is_full("parked"), "too many wait")
        for _ in range(5):
            self.assert_job(server.request("POST", "/v2/echo/purge-queue"))


@pytest.mark.endpoints("echo")
class SizeTest(HttpTest):
    def test_payloads(self, subtests):
        """core/http/API.md, "Bounds of heads and bodies": /run maximum payload 10 MB, /runsync 20 MB: the last byte
        that fits, and one more."""
        for mount in ("/v2", "/sdk/v2"):
            for operation, limit in (("run", 10 * 1024 * 1024), ("runsync", 20 * 1024 * 1024)):
                body = b'{"input":{},"x":"' + b"x" * (limit - 19) + b'"}'
                with subtests.test(mount=mount, operation=operation):
                    assert len(body) == limit
                    self.assert_job(self.server.request("POST", f"{mount}/echo/{operation}", body))
                    self.assert_refused(self.server.request("POST", f"{mount}/echo/{operation}", body + b" "), 413)

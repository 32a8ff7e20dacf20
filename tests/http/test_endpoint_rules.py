"""core/http/API.md, "Endpoint" and "Endpoint API": the effect of each field of an endpoint; a change takes effect
within 1 s, without a restart."""

import threading
import time

import pytest

from jobq_server import is_foreign, join, until
from management_api import ManagementTest
from webhook_receiver import WebhookReceiver


class RuleTest(ManagementTest):
    def change(self, endpoint, **fields):
        return self.call("PATCH", "/endpoints/" + endpoint["id"], fields)

    def running(self, endpoint, count):
        """Once so many of its jobs run."""
        until(lambda: self.server.health(endpoint["id"])["jobs"]["inProgress"] == count, f"{count} jobs run")

    def cancel(self, endpoint, job):
        """Ends a job of many minutes."""
        self.assert_job(self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{job}"))


class CallableTest(RuleTest):
    def test_at_once(self):
        """core/http/API.md, "Endpoint API": a created endpoint works with no restart, from the answer on, on both
        mounts."""
        for image, expected in (("plugin/trial", 1), ("plugin/echo", {"output": 1})):
            endpoint = self.new_endpoint(self.new_template(imageName=image))
            assert self.server.runsync(endpoint["id"], {"output": 1})["output"] == expected
            answer = self.server.request("POST", f"/sdk/v2/{endpoint['id']}/runsync", {"input": {"output": 1}})
            assert self.assert_job(answer)["output"] == expected

    def test_twenty_made_and_called_at_once(self):
        """core/http/API.md, "Endpoint API": a created endpoint works at once for several callers."""
        template = self.new_template()
        endpoints, outputs = [], []

        def make_and_call(n):
            made = self.call("POST", "/endpoints", {"templateId": template["id"]})["id"]
            endpoints.append(made)
            outputs.append(self.server.runsync(made, {"output": n})["output"])
        callers = [threading.Thread(target=make_and_call, args=(n,)) for n in range(20)]
        for caller in callers:
            caller.start()
        join("twenty endpoints are made and called", *callers)
        assert sorted(outputs) == list(range(20))
        assert len(set(endpoints)) == 20
        for endpoint in endpoints:
            self.remove("/endpoints/" + endpoint)

    def test_a_key_bound_to_the_endpoint(self):
        """core/http/API.md, "Scopes": scopes may be bound to endpoints, also to those of `/v1`."""
        first, second = self.new_endpoint(), self.new_endpoint()
        key = self.server.new_key("client", endpoints=[first["id"]])
        self.at_end.callback(self.remove, "/keys/" + key["id"])
        for endpoint, status in ((first, 200), (second, 401)):
            answer = self.server.request("POST", f"/v2/{endpoint['id']}/run", {"input": {}}, key=key["key"])
            assert answer.status == status


class WorkerTest(RuleTest):
    def test_workers_max_is_raised(self):
        """core/http/API.md, "Endpoint API": within 1 s: more workers for the queued jobs."""
        endpoint = self.new_endpoint(workersMax=1, scalerType="REQUEST_COUNT", scalerValue=1)
        jobs = [self.server.run(endpoint["id"], {"sleepMs": 600_000}) for _ in range(3)]
        self.running(endpoint, 1)
        assert self.change(endpoint, workersMax=3)["version"] == 1, "no release"
        self.running(endpoint, 3)
        for job in jobs:
            self.cancel(endpoint, job)

    def test_workers_max_is_lowered(self):
        """core/http/API.md, "Endpoint API": a change takes effect: of three busy workers only one takes another job."""
        endpoint = self.new_endpoint(workersMax=3, scalerType="REQUEST_COUNT", scalerValue=1)
        busy = [self.server.run(endpoint["id"], {"sleepMs": 600_000}) for _ in range(3)]
        self.running(endpoint, 3)
        self.change(endpoint, workersMax=1)
        first = self.server.run(endpoint["id"], {"sleepMs": 600_000})
        others = [self.server.run(endpoint["id"], {"n": n}) for n in range(3)]
        for job in busy:
            self.cancel(endpoint, job)
        self.in_progress(endpoint, first)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["running"], "two workers have left")
        assert {self.server.status(endpoint["id"], job)["status"] for job in others} == {"IN_QUEUE"}
        self.cancel(endpoint, first)
        assert {self.server.finished(endpoint["id"], job)["status"] for job in others} == {"COMPLETED"}
        assert len({self.server.status(endpoint["id"], job)["workerId"] for job in (first, *others)}) == 1

    def test_no_workers_any_more(self):
        """core/http/API.md, "Endpoint": with workersMax = 0 no worker takes a job, not even an idle worker."""
        endpoint = self.new_endpoint(workersMax=1, idleTimeout=3600)
        self.server.runsync(endpoint["id"], {})
        self.change(endpoint, workersMax=0)
        job = self.server.run(endpoint["id"], {"output": 5})
        assert self.server.status(endpoint["id"], job)["queueReason"] == "no_workers"
        self.change(endpoint, workersMax=1)
        assert self.server.finished(endpoint["id"], job)["output"] == 5

    def test_workers_min(self):
        """core/http/API.md, "Scaling": workersMin workers are there without a job, from the creation or the change
        on."""
        endpoint = self.new_endpoint(workersMin=1)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"], "one worker idles")
        self.change(endpoint, workersMin=2)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 2, "two workers idle")
        self.change(endpoint, workersMin=0, idleTimeout=1)
        until(lambda: self.workers(endpoint) == [], "they leave after idleTimeout")

    def test_idle_timeout(self):
        """core/http/API.md, "Scaling": idleTimeout in seconds: an idle worker leaves after this time, and not
        before."""
        endpoint = self.new_endpoint(idleTimeout=1)
        begin = time.monotonic()  # the worker is idle before the answer to its job is read
        self.server.runsync(endpoint["id"], {})
        until(lambda: self.workers(endpoint) == [], "the worker leaves")
        assert time.monotonic() - begin > 0.99

    def test_max_stuck_and_stop_grace(self, own_server):
        """core/decisions/workers.md: after stopGraceMs a handler that ignores its stop is stuck; maxStuck are
        replaced."""
        self.server = own_server(server__drain="200ms")
        endpoint = self.new_endpoint(workersMax=1, stopGraceMs=100, maxStuck=0)
        job = self.server.run_ignoring_stop(endpoint["id"])
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{job}")
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["stuck"], "it is stuck")
        behind = self.server.run(endpoint["id"], {"output": "replaced"})
        answer = self.server.status(endpoint["id"], behind)
        assert (answer["status"], answer["queueReason"]) == ("IN_QUEUE", "worker_crashing")
        self.change(endpoint, maxStuck=1)
        assert self.server.finished(endpoint["id"], behind)["output"] == "replaced"


class JobRuleTest(RuleTest):
    def test_execution_timeout(self):
        """core/http/API.md, "Endpoint": executionTimeoutMs of the endpoint is in force for jobs without their own."""
        endpoint = self.new_endpoint(executionTimeoutMs=5_000)
        assert self.server.runsync(endpoint["id"], {"sleepMs": 60_000})["status"] == "TIMED_OUT"

    def test_max_attempts(self, own_server):
        """core/http/API.md, "Attempts and lost workers": FAILED when a worker was lost maxAttempts times, here once."""
        self.server = own_server()
        endpoint = self.new_endpoint(maxAttempts=1)
        job = self.server.run(endpoint["id"], {"sleepMs": 600_000})
        self.in_progress(endpoint, job)
        self.server.kill()
        self.server.start()
        assert self.server.finished(endpoint["id"], job)["status"] == "FAILED"

    def test_retention(self):
        """core/http/API.md, "Lifetime of jobs and results": retention of results, per endpoint here: `run` and
        `runsync` in milliseconds."""
        endpoint = self.new_endpoint(retention={"run": 3_600_000, "runsync": 1_000})
        kept = self.server.run(endpoint["id"], {})
        self.server.finished(endpoint["id"], kept)
        # A paused endpoint answers with the id before the job has run: the id is known, however late the answer is read.
        self.call("POST", f"/endpoints/{endpoint['id']}/pause")
        answer = self.server.request("POST", f"/v2/{endpoint['id']}/runsync?wait=1000", {"input": {}})
        short = self.assert_job(answer)["id"]
        self.call("POST", f"/endpoints/{endpoint['id']}/resume")
        path = f"/v2/{endpoint['id']}/status/"
        until(lambda: self.server.request("GET", path + short).status == 404, "the result of /runsync is gone")
        until(lambda: self.server.health(endpoint["id"])["jobs"]["completed"] == 2, "the job has run")
        assert self.server.status(endpoint["id"], kept)["status"] == "COMPLETED"
        self.change(endpoint, retention={"run": 1_000})
        shorter = self.server.run(endpoint["id"], {})
        until(lambda: self.server.request("GET", path + shorter).status == 404, "the result of /run is gone")
        assert self.server.status(endpoint["id"], kept)["status"] == "COMPLETED", "it was submitted before"

    def test_queue_policy(self):
        """core/http/API.md, "Order of jobs": queuePolicy decides about the next job, from the change on."""
        endpoint = self.new_endpoint(workersMax=1)
        self.change(endpoint, queuePolicy="priority")
        self.call("POST", f"/endpoints/{endpoint['id']}/pause")
        jobs = {n: self.server.run(endpoint["id"], {}, policy={"priority": n}) for n in (0, 5, -3, 9)}
        places = {n: self.server.status(endpoint["id"], job)["queuePosition"] for n, job in jobs.items()}
        assert places == {9: 1, 5: 2, 0: 3, -3: 4}

    def test_webhook_secret(self):
        """core/http/API.md, "Webhook signature": the endpoint's secret signs its calls, from the change on, and
        back."""
        if is_foreign():
            pytest.skip("the server may be elsewhere, and cannot call a receiver on 127.0.0.1")
        receiver = self.at_end.enter_context(WebhookReceiver())
        first = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        second = "whsec_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
        endpoint = self.new_endpoint(webhookSecret=first)

        def call(count):
            self.server.runsync(endpoint["id"], {}, webhook=receiver.url())
            return receiver.wait(count)[-1]
        assert call(1).is_signed_with(first)
        self.change(endpoint, webhookSecret=second)
        assert call(2).is_signed_with(second)
        self.change(endpoint, webhookSecret="")
        last = call(3)
        assert not (last.is_signed_with(first) or last.is_signed_with(second))
        assert last.is_signed_with(self.call("GET", "/webhooks/secret")["secret"])


class LimitTest(RuleTest):
    @pytest.fixture(autouse=True)
    def limited(self, question, own_server):
        self.server = own_server(limits__enabled="true", limits__queue="true")

    def statuses(self, endpoint, path, count, method="POST", body=None):
        return [self.server.request(method, f"/v2/{endpoint['id']}{path}", body).status for _ in range(count)]

    def test_rate_limits(self):
        """core/http/API.md, "Rate limits": configuration, per endpoint and operation: here by the endpoint itself."""
        limited = self.new_endpoint(rateLimits={"run": {"requests": 3, "windowMs": 60_000, "perWorker": 0}})
        other = self.new_endpoint()
        assert self.statuses(limited, "/run", 5, body={"input": {}}) == [200] * 3 + [429] * 2
        assert self.statuses(other, "/run", 5, body={"input": {}}) == [200] * 5
        assert self.statuses(limited, "/runsync", 5, body={"input": {}}) == [200] * 5
        answer = self.server.request("POST", f"/v2/{limited['id']}/run", {"input": {}})
        assert answer.headers["RateLimit-Limit"] == "3"
        self.change(limited, rateLimits={"run": {"requests": 100, "windowMs": 60_000}})
        assert self.statuses(limited, "/run", 5, body={"input": {}}) == [200] * 5
        self.change(limited, rateLimits={})
        answer = self.server.request("POST", f"/v2/{limited['id']}/run", {"input": {}})
        assert answer.headers["RateLimit-Limit"] == "1000", "the text's"

    def test_the_window_and_the_other_operations(self):
        """core/http/API.md, "Rate limits": each operation of the table by its name; the other numbers of a row keep
        their defaults."""
        endpoint = self.new_endpoint(rateLimits={"purgeQueue": {"requests": 3}, "cancel": {"requests": 1},
                                                 "requests": {"windowMs": 500, "requests": 1}})
        assert self.statuses(endpoint, "/purge-queue", 4) == [200] * 3 + [429]
        assert self.statuses(endpoint, "/cancel/x", 2) == [404, 429]
        until(lambda: self.statuses(endpoint, "/requests", 2, "GET") == [200, 429], "a window begins")
        until(lambda: self.statuses(endpoint, "/requests", 1, "GET") == [200], "the window of 500 ms passes")

    def test_concurrent(self):
        """core/http/API.md, "Rate limits": at most so many concurrent calls."""
        endpoint = self.new_endpoint(rateLimits={"runsync": {"concurrent": 1, "perWorker": 0}})
        caller = threading.Thread(target=self.server.runsync, args=(endpoint["id"], {"sleepMs": 600_000}, 300_000))
        caller.start()
        self.at_end.callback(join, "the caller that is let in has its answer", caller)
        self.running(endpoint, 1)
        job, = self.assert_job(self.server.request("GET", f"/v2/{endpoint['id']}/requests"))["requests"]
        self.at_end.callback(self.cancel, endpoint, job["id"])
        answer = self.server.request("POST", f"/v2/{endpoint['id']}/runsync", {"input": {}})
        self.assert_refused(answer, 429)

    def test_the_queue(self):
        """core/http/API.md, "Length of the queue": the endpoint's own `maxQueued`, as it is now."""
        endpoint = self.new_endpoint(workersMax=0, maxQueued=3)
        assert self.statuses(endpoint, "/run", 5, body={"input": {}})[2:] == [200, 429, 429]
        assert self.change(endpoint, maxQueued=None)["inForce"]["maxQueued"] == 1_000_000
        until(lambda: self.statuses(endpoint, "/run", 1, body={"input": {}}) == [200], "the line may be longer")

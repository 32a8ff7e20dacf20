"""core/decisions/endpoints.md: deleting an endpoint: absent for all callers at once, its running jobs stopped, its jobs
removed."""

import concurrent.futures
import re
import sqlite3
import threading

import pytest

from held_jobs import held_server
from jobq_server import is_foreign, join, until
from management_api import ManagementTest
from webhook_receiver import WebhookReceiver


class RemovalTest(ManagementTest):
    def rows(self):
        """Returns the numbers of all jobs, inputs and endpoints in the database of the test's own server."""
        with sqlite3.connect(f"file:{self.server.data}/jobq.db?mode=ro", uri=True) as database:
            return [database.execute(question).fetchone()[0] for question in (
                "SELECT COUNT(*) FROM job", "SELECT COUNT(*) FROM job_input", "SELECT COUNT(*) FROM job_output",
                "SELECT COUNT(*) FROM record WHERE kind IN ('endpoint', 'pause')")]

    def removed(self):
        until(lambda: self.rows() == [0, 0, 0, 0], "everything of the endpoint is gone from the storage")


class GoneTest(RemovalTest):
    def test_every_call(self, subtests):
        """core/http/API.md, "Endpoint API": after DELETE later calls are 404, of `/v1` and of both mounts."""
        endpoint = self.new_endpoint()
        job = self.server.runsync(endpoint["id"], {})["id"]
        self.remove("/endpoints/" + endpoint["id"])
        for mount in ("/v2/", "/sdk/v2/"):
            for method, path in (("POST", "/run"), ("POST", "/runsync"), ("GET", "/status/" + job), ("GET", "/health"),
                                 ("GET", "/status-sync/" + job), ("GET", "/stream/" + job), ("GET", "/requests"),
                                 ("POST", "/cancel/" + job), ("POST", "/retry/" + job), ("POST", "/purge-queue")):
                with subtests.test(mount=mount, path=path):
                    body = {"input": {}} if path in ("/run", "/runsync") else None
                    answer = self.server.request(method, mount + endpoint["id"] + path, body)
                    self.assert_refused(answer, 404, endpoint["id"])
        for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", ""), ("POST", "/pause"), ("POST", "/resume")):
            with subtests.test(method=method, path=path):
                answer = self.server.request(method, f"/v1/endpoints/{endpoint['id']}{path}",
                                             None if method in ("GET", "DELETE") else {})
                self.assert_refused(answer, 404, endpoint["id"], member="message")
        assert endpoint["id"] not in [one["id"] for one in self.call("GET", "/endpoints")]

    def test_the_template_stays(self):
        """core/http/API.md, "Endpoint API": DELETE of an endpoint leaves its template, which another endpoint can
        use."""
        template = self.new_template()
        self.remove("/endpoints/" + self.new_endpoint(template)["id"])
        again = self.new_endpoint(template)
        assert self.server.runsync(again["id"], {"output": 1})["output"] == 1

    def test_other_endpoints(self, own_server):
        """core/decisions/endpoints.md: DELETE removes the jobs of this endpoint alone."""
        self.server, held = held_server(self.at_end, own_server)
        template = self.new_template(imageName="lua/held")
        first, second = self.new_endpoint(template), self.new_endpoint(template)
        running = self.server.run(second["id"], {"hold": True, "output": "stays"})
        self.in_progress(second, running)
        done = self.server.runsync(second["id"], {"output": 2})["id"]
        self.server.run(first["id"], {"hold": True})
        self.remove("/endpoints/" + first["id"])
        assert self.server.status(second["id"], running)["status"] == "IN_PROGRESS"
        held.release()
        assert self.server.finished(second["id"], running)["output"] == "stays"
        assert self.server.status(second["id"], done)["output"] == 2


class WaiterTest(RemovalTest):
    def answers(self, endpoint, calls):
        """Makes the calls, deletes the endpoint once its three jobs are there; the status of each call."""
        answers = [None] * len(calls)

        def ask(n, method, path, body):
            answers[n] = self.server.request(method, f"/v2/{endpoint['id']}{path}", body)
        callers = [threading.Thread(target=ask, args=(n, *call)) for n, call in enumerate(calls)]
        for caller in callers:
            caller.start()

        def present():
            counts = self.server.health(endpoint["id"])["jobs"]
            return counts["inQueue"] + counts["inProgress"]
        until(lambda: present() == 3, "the jobs are there")
        self.remove("/endpoints/" + endpoint["id"])
        join("every caller that waits for a job of an endpoint that is gone is answered", *callers, deadline=90)
        return [answer.status for answer in answers]

    def test_waiting_callers_are_answered(self, subtests):
        """core/decisions/endpoints.md: a caller waiting for a job of the endpoint, running or not, soon reads 404."""
        endpoint = self.new_endpoint(workersMax=1)
        running = self.server.run(endpoint["id"], {"sleepMs": 600_000})
        self.in_progress(endpoint, running)
        queued = self.server.run(endpoint["id"], {})
        # Five minutes, longer than the clients of these callers wait.
        calls = [("GET", f"/status-sync/{running}?wait=300000", None),
                 ("GET", f"/status-sync/{queued}?wait=300000", None),
                 ("GET", f"/stream/{queued}?wait=300000", None), ("POST", "/runsync?wait=300000", {"input": {"a": 1}})]
        for status, call in zip(self.answers(endpoint, calls), calls):
            with subtests.test(call=call[1]):
                assert status == 404


class StopTest(RemovalTest):
    def test_running_jobs_are_stopped(self, own_server):
        """core/decisions/endpoints.md: jobs are removed after the stop of the running jobs: the handler sees the stop
        token and returns."""
        self.server = own_server(server__drain="10m")
        endpoint = self.new_endpoint(workersMax=2)
        for _ in range(3):
            self.server.run(endpoint["id"], {"sleepMs": 600_000})
        until(lambda: self.server.health(endpoint["id"])["jobs"]["inProgress"] >= 1, "one runs")
        self.remove("/endpoints/" + endpoint["id"])
        self.removed()
        self.server.stop()  # fails after 90 s: no handler is left that the drain of ten minutes has to wait for

    def test_a_handler_ignoring_the_stop(self, own_server):
        """core/decisions/workers.md: a handler that ignores its stop is stuck after stopGraceMs, and no caller waits
        for the handler."""
        self.server = own_server(server__drain="200ms")
        endpoint = self.new_endpoint(stopGraceMs=100)
        self.server.run_ignoring_stop(endpoint["id"])
        self.remove("/endpoints/" + endpoint["id"])
        self.removed()
        assert "worker.stuck" in self.server.log()

    def test_no_webhook(self, own_server):
        """core/http/API.md, "When a webhook is called": no webhook is called on a removal, because the job never
        ended."""
        if is_foreign():
            pytest.skip("the server may be elsewhere, and cannot call a receiver on 127.0.0.1")
        self.server = own_server()
        receiver = self.at_end.enter_context(WebhookReceiver())
        endpoint = self.new_endpoint(workersMax=1)
        job = self.server.run(endpoint["id"], {"sleepMs": 600_000}, webhook=receiver.url())
        self.server.run(endpoint["id"], {}, webhook=receiver.url())
        self.in_progress(endpoint, job)
        self.remove("/endpoints/" + endpoint["id"])
        self.removed()
        self.server.runsync("echo", {}, webhook=receiver.url("/last"))
        receiver.wait(1, "/last")
        assert receiver.on("/hook") == []


class StorageTest(RemovalTest):
    def filled(self, jobs):
        """A paused endpoint with so many jobs that wait, and two that have ended."""
        endpoint = self.new_endpoint()
        self.server.runsync(endpoint["id"], {"output": "x"})
        self.server.runsync(endpoint["id"], {"fail": "x"})
        self.call("POST", f"/endpoints/{endpoint['id']}/pause")
        with concurrent.futures.ThreadPoolExecutor(16) as callers:  # the jobs share their commits
            list(callers.map(lambda n: self.server.run(endpoint["id"], {"n": n}), range(jobs)))
        return endpoint

    def test_jobs_of_every_state(self, own_server):
        """core/http/API.md, "Endpoint API": DELETE removes the job history too: queued, finished, cancelled, failed."""
        self.server = own_server()
        endpoint = self.filled(1_100)
        waiting = self.server.run(endpoint["id"], {})
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{waiting}")
        self.call("POST", f"/endpoints/{endpoint['id']}/resume")
        self.remove("/endpoints/" + endpoint["id"])
        self.removed()

    def test_kill_9_in_between(self, own_server):
        """core/decisions/endpoints.md: after a crash between two steps the removal goes on after the restart, and
        ends."""
        self.server = own_server()
        endpoint = self.filled(800)
        self.remove("/endpoints/" + endpoint["id"])
        self.server.kill()
        self.server.start()
        assert self.server.request("GET", f"/v2/{endpoint['id']}/health").status == 404
        self.removed()

    def test_after_a_restart(self, own_server):
        """core/decisions/endpoints.md: a deleted endpoint does not come back, and neither does a job running at the
        deletion."""
        self.server = own_server()
        endpoint = self.new_endpoint()
        job = self.server.run(endpoint["id"], {"sleepMs": 600_000, "log": ["ran-" + endpoint["id"]]})
        self.in_progress(endpoint, job)
        self.remove("/endpoints/" + endpoint["id"])
        self.server.restart()
        assert self.server.request("GET", f"/v2/{endpoint['id']}/status/{job}").status == 404
        self.removed()
        assert len(re.findall(r"endpoints\.damaged", self.server.log())) == 0

"""/cancel and /retry: which jobs can be stopped, and which can run again."""

import contextlib
import threading

from http_case import HttpTest
from jobq_server import join, until


class CancelTest(HttpTest):
    def cancel(self, endpoint, job):
        return self.server.request("POST", f"/v2/{endpoint}/cancel/{job}")

    def test_a_waiting_job_never_runs(self):
        """core/http/API.md, "/cancel": IN_QUEUE by /cancel to CANCELLED; `/cancel` returns only `id` and `status`."""
        job = self.server.run("parked", {})
        assert self.assert_job(self.cancel("parked", job)) == {"id": job, "status": "CANCELLED"}
        assert self.server.status("parked", job)["status"] == "CANCELLED"

    def test_a_running_job_is_told_to_stop(self):
        """core/http/API.md, "/cancel": an IN_PROGRESS job is CANCELLED, execution is stopped; the call answers at
        once."""
        job = self.server.run("trial", {"sleepMs": 300000})
        until(lambda: self.server.status("trial", job)["status"] == "IN_PROGRESS", "the job runs")
        assert self.assert_job(self.cancel("trial", job)) == {"id": job, "status": "CANCELLED"}
        self.server.quiet("trial")
        until(lambda: not self.server.health("trial")["workers"]["running"], "its worker is free again")
        assert self.server.status("trial", job)["status"] == "CANCELLED"

    def test_a_job_about_to_run_is_stopped_too(self, own_server):
        """core/decisions/jobs.md: the stop token fires, also when the cancel comes between the claim and the run."""
        server = own_server(endpoint__trial__workersMin=2, endpoint__trial__workersMax=2)
        with contextlib.closing(server.connect()) as connection:
            for _ in range(300):
                body = {"input": {"sleepMs": 300000}}
                job = server.request("POST", "/v2/trial/run", body, connection=connection).json()["id"]
                answer = server.request("POST", f"/v2/trial/cancel/{job}", connection=connection)
                assert self.assert_job(answer)["status"] == "CANCELLED"
        until(lambda: not server.health("trial")["workers"]["running"], "both workers are free")

    def test_a_waiter_is_answered(self):
        """core/http/API.md, "/status-sync": /status-sync waits for a terminal state, and CANCELLED is one."""
        job = self.server.run("parked", {})
        answers = []
        waiter = threading.Thread(target=lambda: answers.append(self.server.finished("parked", job)))
        waiter.start()
        self.cancel("parked", job)
        join("the caller that waits for the cancelled job is answered", waiter)
        assert answers[0]["status"] == "CANCELLED"

    def test_an_ended_job_stays(self):
        """core/http/API.md, "/cancel": cancel of a terminal job is 200 with its unchanged state."""
        job = self.server.finished("echo", self.server.run("echo", {}))["id"]
        assert self.assert_job(self.cancel("echo", job)) == {"id": job, "status": "COMPLETED"}

    def test_unknown(self):
        self.assert_refused(self.cancel("echo", "nobody"), 404, "nobody")
        job = self.server.run("parked", {})
        self.assert_refused(self.cancel("echo", job), 404)
        assert self.server.status("parked", job)["status"] == "IN_QUEUE"


class RetryTest(HttpTest):
    def retry(self, endpoint, job):
        return self.server.request("POST", f"/v2/{endpoint}/retry/{job}")

    def test_a_failed_job_runs_again(self):
        """core/http/API.md, "/retry": FAILED by /retry to IN_QUEUE, same id, original input, previous output
        removed."""
        job = self.server.finished("trial", self.server.run("trial", {"fail": "no", "output": 1}))["id"]
        assert self.assert_job(self.retry("trial", job)) == {"id": job, "status": "IN_QUEUE"}
        again = self.server.finished("trial", job)
        assert (again["status"], again["error"], again["retries"]) == ("FAILED", "no", 1)

    def test_other_states_are_refused(self):
        """core/http/API.md, "/retry": only FAILED or TIMED_OUT."""
        done = self.server.finished("echo", self.server.run("echo", {}))["id"]
        self.assert_refused(self.retry("echo", done), 400, "COMPLETED")
        self.assert_refused(self.retry("parked", self.server.run("parked", {})), 400, "IN_QUEUE")
        self.assert_refused(self.retry("echo", "nobody"), 404)

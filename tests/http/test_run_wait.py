"""Waiting for a job: `wait` of /runsync and /status-sync, and clients that leave."""

import json
import threading
import time

import pytest

from held_jobs import HeldJobs
from http_case import HttpTest
from jobq_server import join, until
from pace import judge_pace

BAD_WAITS = ["999", "300001", "abc", "1.5", "", "0", "-1000", "1e4", "0x1000", "2000x", "+2000", "%202000",
             "99999999999999999999"]


class WaitTest(HttpTest):
    def test_out_of_bounds(self, subtests):
        """core/http/API.md, "/runsync": `wait` outside 1000..300000 or not an integer is 400, and no job is made."""
        before = self.server.quiet("echo")
        job = self.server.run("echo", {})
        self.server.finished("echo", job)
        for wait in BAD_WAITS:
            with subtests.test(wait=wait):
                answer = self.server.request("POST", f"/v2/echo/runsync?wait={wait}", {"input": {}})
                self.assert_refused(answer, 400, "wait", "1000", "300000")
                answer = self.server.request("GET", f"/v2/echo/status-sync/{job}?wait={wait}")
                self.assert_refused(answer, 400, "wait", "1000", "300000")
        assert self.server.health("echo")["jobs"] == {**before, "completed": before["completed"] + 1}

    def test_both_ends_are_accepted(self):
        """core/http/API.md, "/runsync": `wait` is 1000 to 300000."""
        for wait in (1000, 300000):
            answer = self.server.request("POST", f"/v2/echo/runsync?wait={wait}", {"input": {}})
            job = self.assert_job(answer)["id"]  # a server that stands still for a second answers IN_QUEUE
            self.assert_job(self.server.request("GET", f"/v2/echo/status-sync/{job}?wait={wait}"))
            assert self.server.finished("echo", job)["status"] == "COMPLETED"

    def test_elapsed_wait_answers_in_progress_and_the_job_goes_on(self, own_server):
        """core/http/API.md, "/runsync": when `wait` elapses, 200 with IN_PROGRESS, and the job goes on. On a busy
        machine the wait of the first call may elapse in the queue; when the same call is repeated, the job runs."""
        held = self.at_end.enter_context(HeldJobs())
        server = own_server(**held.settings)
        body, once = {"input": held.input("done")}, {"Idempotency-Key": "once"}

        def call():
            started = time.monotonic()
            answer = server.request("POST", "/v2/held/runsync?wait=1000", body, once)
            waited = time.monotonic() - started
            assert waited >= 0.95
            judge_pace("/runsync?wait=1000 of a job that runs", waited, 5)
            return self.assert_job(answer)

        job = call()
        assert job["status"] in ("IN_QUEUE", "IN_PROGRESS")
        until(lambda: server.status("held", job["id"])["status"] == "IN_PROGRESS", "the job runs")
        again = call()
        assert (again["id"], again["status"]) == (job["id"], "IN_PROGRESS")
        assert "output" not in again
        held.release()
        end = server.finished("held", job["id"])
        assert (end["status"], end["output"]) == ("COMPLETED", "done")
        assert "retries" not in end, "it was not run again"
        assert held.asked == 1, "its handler has begun once"

    @pytest.mark.endpoints("parked")
    def test_elapsed_wait_of_a_queued_job(self):
        """core/http/API.md, "/runsync": when `wait` elapses, 200 with IN_QUEUE."""
        job = self.assert_job(self.server.request("POST", "/v2/parked/runsync?wait=1000", {"input": {}}))
        assert job["status"] == "IN_QUEUE"
        started = time.monotonic()
        again = self.assert_job(self.server.request("GET", f"/v2/parked/status-sync/{job['id']}?wait=1000"))
        assert again["status"] == "IN_QUEUE"
        assert time.monotonic() - started >= 0.95
        self.assert_job(self.server.request("POST", f"/v2/parked/cancel/{job['id']}"))

    def test_status_sync_wakes_at_the_end(self):
        """core/http/API.md, "/status-sync": `/status-sync` waits for a terminal state, and no longer."""
        job = self.server.run("trial", {"sleepMs": 400})
        answer = self.server.finished("trial", job, wait=300000)  # longer than its client waits
        assert answer["status"] == "COMPLETED"

    def test_many_waiters_of_one_job(self):
        """core/http/API.md, "/status-sync": every `/status-sync` of a job is answered when the job ends."""
        job = self.server.run("trial", {"sleepMs": 400})
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.server.finished("trial", job)))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        join("the answer of each waiter", *threads)
        assert [answer["status"] for answer in answers] == ["COMPLETED"] * 20

    def test_a_leaving_caller_does_not_cancel(self, own_server):
        """core/http/API.md, "/runsync": the client going away does not cancel the job."""
        held = self.at_end.enter_context(HeldJobs())
        server = own_server(**held.settings)
        connection = server.connect()
        connection.request("POST", "/v2/held/runsync", json.dumps({"input": held.input("done")}),
                           {"Authorization": server.key, "Content-Type": "application/json"})
        until(lambda: server.health("held")["jobs"]["inProgress"] > 0, "the job runs")
        connection.close()
        held.release()
        assert server.quiet("held") == {"completed": 1, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 0}

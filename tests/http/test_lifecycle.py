"""A server's life: drain, crash and what becomes of the jobs; its workers between min and max."""

import contextlib
import http.client
import re
import threading

from held_jobs import held_server
from http_case import HttpTest
from jobq_server import join, until
from pace import judge_pace

ONE_WORKER = {"endpoint.trial.workersMax": 1}


def in_progress(server, count=1):
    until(lambda: server.health("trial")["jobs"]["inProgress"] == count, f"{count} trial jobs run")


class DrainTest(HttpTest):
    def test_a_running_job_finishes(self, own_server):
        """etc/operation.md: on SIGTERM no new claims, running jobs get `server.drain` to finish."""
        server, held = held_server(self.at_end, own_server, server__drain="10m", **ONE_WORKER)
        answers = []
        caller = threading.Thread(target=lambda: answers.append(
            server.request("POST", "/v2/trial/runsync", {"input": {"hold": True, "output": "done"}})))
        caller.start()
        in_progress(server)
        waiting = server.run("trial", {"output": "later"})
        server.terminate()
        until(lambda: server.request("GET", "/readyz", key=None).status == 503, "the server says that it drains")
        held.release()
        assert server.ended() == 0
        join("the caller has its answer", caller)
        job = self.assert_job(answers[0])
        assert (job["status"], job["output"]) == ("COMPLETED", "done")

        server.start()
        assert server.finished("trial", waiting)["output"] == "later"
        assert server.status("trial", job["id"]) == job
        assert server.health("trial")["jobs"] == {
            "completed": 2, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 0}

    def test_no_new_jobs_during_the_drain(self, own_server):
        """core/http/API.md, "When the answer is 503": 503 with Retry-After when the node drains; /readyz says so,
        /status still answers."""
        server = own_server(server__drain="10m", **ONE_WORKER)
        job = server.run("trial", {"sleepMs": 600_000})
        in_progress(server)
        server.terminate()
        until(lambda: server.request("GET", "/readyz", key=None).status == 503, "the server says that it drains")
        self.assert_refused(server.request("GET", "/readyz", key=None), 503)
        for operation in ("run", "runsync"):
            answer = server.request("POST", f"/v2/trial/{operation}", {"input": {}})
            self.assert_refused(answer, 503)
            assert re.search(r"\A[1-9]\d*\Z", answer.headers.get("Retry-After", ""))
        assert server.request("GET", "/healthz", key=None).status == 200
        assert server.status("trial", job)["status"] == "IN_PROGRESS"
        self.assert_job(server.request("POST", f"/v2/trial/cancel/{job}"))
        assert server.ended() == 0

    def test_jobs_longer_than_the_drain_go_back_to_the_queue(self, own_server):
        """etc/operation.md: the remaining jobs go back into the queue; a drain is no loss, so no job counts as retried."""
        server, held = held_server(self.at_end, own_server, server__drain="500ms", **ONE_WORKER)
        job = server.run("trial", {"hold": True, "output": "done"})
        in_progress(server)
        server.terminate()
        assert server.ended() == 0
        server.start()
        held.release()
        end = server.finished("trial", job)
        assert (end["status"], end["output"]) == ("COMPLETED", "done")
        assert server.health("trial")["jobs"]["retried"] == 0

    def test_waiting_callers_do_not_hold_the_end(self, own_server):
        """core/README.md: every wait ends on stop, long before the wait is over and the drain has passed."""
        server = own_server(server__drain="10m")
        job = server.run("parked", {})

        def wait():
            try:
                server.request("GET", f"/v2/parked/status-sync/{job}?wait=300000")
            except (http.client.HTTPException, OSError):
                pass  # an answer is not owed to a job that cannot end, only the server's end is

        callers = [threading.Thread(target=wait) for _ in range(8)]
        for caller in callers:
            caller.start()
        idle = server.connect()
        self.at_end.callback(idle.close)
        server.request("GET", "/healthz", connection=idle)
        server.terminate()
        assert server.ended(60) == 0
        join("the waiting callers are told", *callers)

    def test_sigint_is_a_stop_too(self, own_server):
        """^C ends the server as cleanly as SIGTERM does."""
        server = own_server()
        server.process.send_signal(2)
        assert server.ended() == 0


class CrashTest(HttpTest):
    def test_kill_9(self, own_server):
        """core/http/API.md, "Attempts and lost workers": a crash loses nothing; a running job is counted as lost and
        runs again."""
        server, held = held_server(self.at_end, own_server, **ONE_WORKER)
        done = server.run("trial", {"output": "before"})
        server.finished("trial", done)
        running = server.run("trial", {"hold": True, "output": "again"})
        in_progress(server)
        queued = [server.run("trial", {"output": n}) for n in range(5)]
        server.kill()
        server.start()
        assert server.status("trial", done)["output"] == "before"
        lost = [line for line in server.log().splitlines() if "job.lost" in line]
        assert len(lost) == 1, "the job that ran when the process died is named"
        assert f"{running} of trial was running" in lost[0]
        assert "lost 1 time so far" in lost[0]
        held.release()
        end = server.finished("trial", running)
        assert (end["status"], end["output"], end["retries"]) == ("COMPLETED", "again", 1)
        for n, job in enumerate(queued):
            end = server.finished("trial", job)
            assert (end["status"], end["output"]) == ("COMPLETED", n)
            assert "retries" not in end
        assert server.health("trial")["jobs"] == {
            "completed": 7, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 1}

    def test_a_lost_job_keeps_its_place(self, own_server):
        """core/http/API.md, "Attempts and lost workers": a lost worker's job goes back into the queue with its old
        position."""
        server, held = held_server(self.at_end, own_server, **ONE_WORKER)
        first = server.run("trial", {"hold": True})
        in_progress(server)
        second = server.run("trial", {"hold": True})
        server.kill()
        server.start()
        in_progress(server)
        assert [server.status("trial", job)["status"] for job in (first, second)] == ["IN_PROGRESS", "IN_QUEUE"]
        held.release()
        assert server.finished("trial", first)["status"] == "COMPLETED"
        assert server.finished("trial", second)["status"] == "COMPLETED"

    def test_a_job_crashing_the_server(self, own_server):
        """core/http/API.md, "Attempts and lost workers": a job that ends the server's process is counted, and FAILED at
        maxAttempts."""
        server = self.server = own_server(**ONE_WORKER, **{"endpoint.trial.maxAttempts": 3})
        first = server.run("trial", {"sleepMs": 600_000})
        in_progress(server)
        job = server.run("trial", {"crash": "segv"})
        behind = server.run("trial", {"output": "behind"})
        with contextlib.suppress(OSError, http.client.HTTPException):  # the crash may come before the answer
            server.request("POST", f"/v2/trial/cancel/{first}")
        crashes = 0
        while crashes < 6 and not self._survives(server, job):
            assert server.ended() != 0
            crashes += 1
            server.start_unless_it_dies()
        assert crashes == 3
        end = server.finished("trial", job)
        assert end["status"] == "FAILED"
        assert isinstance(end["error"], str)
        assert "3" in end["error"], "the reason says how often"
        lost = [line for line in server.log().splitlines() if "job.lost" in line and job in line]
        assert len(lost) == 3, "each start names it"
        for line, word in zip(lost, ("lost 1 time so far", "lost 2 times so far", "the job is FAILED")):
            assert word in line
        assert server.finished("trial", behind)["output"] == "behind"
        assert server.finished("trial", first)["status"] == "CANCELLED"
        assert server.health("trial")["jobs"]["failed"] == 1

    @staticmethod
    def _survives(server, job):
        """Returns false if the server dies, and true once the job is over."""
        def ask():
            try:
                if server.status("trial", job)["status"] == "FAILED":
                    return "over"
            except (OSError, http.client.HTTPException):
                pass
            return None if server.running else "dead"
        return until(ask, "the job is over or the server dead") == "over"

    def test_every_acknowledged_job_survives(self, own_server):
        """core/http/API.md, "/run": the answer comes only when the job is durable; kill -9 in the middle of many
        callers."""
        server = own_server(**{"endpoint.echo.workersMax": 0})
        acknowledged = []

        def submit():
            connection = server.connect()
            try:
                while True:
                    answer = server.request("POST", "/v2/echo/run", {"input": {"n": 1}}, connection=connection)
                    acknowledged.append(answer.json()["id"])
            except (OSError, http.client.HTTPException):
                connection.close()  # the server is gone

        callers = [threading.Thread(target=submit) for _ in range(8)]
        for caller in callers:
            caller.start()
        until(lambda: len(acknowledged) >= 300, "300 jobs are acknowledged")
        server.kill()
        join("the callers of the killed server end", *callers)
        server.start()
        assert server.health("echo")["jobs"]["inQueue"] >= len(acknowledged)
        connection = server.connect()
        self.at_end.callback(connection.close)
        for job in acknowledged:
            answer = server.request("GET", f"/v2/echo/status/{job}", connection=connection)
            assert (answer.status, answer.json().get("status")) == (200, "IN_QUEUE")


class TimeoutTest(HttpTest):
    def test_execution_timeout(self, own_server):
        """core/http/API.md, "Policy": executionTimeout is enforced during execution; the job is TIMED_OUT."""
        server = own_server(**ONE_WORKER)
        job = server.run("trial", {"sleepMs": 60000}, policy={"executionTimeout": 5000})
        end = server.finished("trial", job)
        assert end["status"] == "TIMED_OUT"
        assert end["executionTime"] >= 4900, end
        judge_pace("a job with an executionTimeout of 5 s", end["executionTime"] / 1000, 7.5)
        assert "output" not in end
        jobs = server.health("trial")["jobs"]
        assert (jobs["failed"], jobs["inProgress"]) == (1, 0), "TIMED_OUT counts as failed"
        assert server.finished("trial", server.run("trial", {}))["status"] == "COMPLETED", "the worker is free"

    def test_ttl(self, own_server):
        """core/http/API.md, "Lifetime of jobs and results": in any state a job past its ttl is deleted, even while
        running; later status checks return 404."""
        server, held = held_server(self.at_end, own_server, **ONE_WORKER)
        running = server.run("trial", {"hold": True}, policy={"ttl": 10000})
        queued = server.run("parked", {}, policy={"ttl": 10000})
        held.wait(1)
        answer = server.request("GET", f"/v2/trial/status-sync/{running}?wait=60000")
        self.assert_refused(answer, 404)
        self.assert_refused(server.request("GET", f"/v2/trial/status/{running}"), 404)
        until(lambda: server.request("GET", f"/v2/parked/status/{queued}").status == 404, "the queued job is gone")
        until(lambda: server.health("trial")["workers"]["running"] == 0, "the handler was stopped")
        assert server.health("trial")["jobs"]["inProgress"] == 0


class WorkerTest(HttpTest):
    def test_between_min_and_max(self, own_server):
        """core/http/API.md, "Scaling": workersMin, workersMax and idleTimeout; worker counters show the present."""
        server, held = held_server(self.at_end, own_server, **{
            "endpoint.trial.workersMin": 1, "endpoint.trial.workersMax": 3, "endpoint.trial.idleTimeout": "1s"})

        def workers():
            return server.health("trial")["workers"]

        def total():
            now = workers()
            count = now["idle"] + now["running"] + now["initializing"]
            assert count <= 3, now
            return count

        until(lambda: total() == 1, "workersMin workers are there at the start")
        jobs = [server.run("trial", {"hold": True}) for _ in range(6)]
        until(lambda: total() == 3 and workers()["running"] == 3, "workersMax workers run")
        in_progress(server, 3)
        held.release()
        ends = [server.finished("trial", job) for job in jobs]
        assert {end["status"] for end in ends} == {"COMPLETED"}
        assert len({end["workerId"] for end in ends}) <= 6
        until(lambda: workers()["running"] == 0, "no worker runs")
        until(lambda: total() == 1, "idle workers above workersMin are released after idleTimeout")

    def test_scale_from_zero_and_back(self, own_server):
        """core/http/API.md, "Scaling": workersMin is 0 unless set; a job makes a worker, idleTimeout takes it away."""
        server = own_server(**{"endpoint.echo.idleTimeout": "1h", "endpoint.trial.idleTimeout": "500ms"})

        def workers(endpoint):
            counts = server.health(endpoint)["workers"]
            return counts["idle"], counts["running"] + counts["initializing"]

        for endpoint in ("echo", "trial"):
            assert workers(endpoint) == (0, 0)
            assert server.finished(endpoint, server.run(endpoint, {}))["status"] == "COMPLETED"
        until(lambda: workers("echo") == (1, 0), "the worker of echo idles")
        until(lambda: workers("trial") == (0, 0), "the worker of trial is released")
        assert workers("echo") == (1, 0)

    def test_no_worker_at_all(self, own_server):
        """core/http/API.md, "States and transitions": a job stays IN_QUEUE when the maximum worker count is reached,
        and a maximum may be 0."""
        server = own_server()
        server.run("parked", {})
        health = server.health("parked")
        assert (health["jobs"]["inQueue"], health["workers"]["running"]) == (1, 0)

    def test_endpoints_do_not_wait_for_each_other(self, own_server):
        """core/http/API.md, "Scaling": each endpoint has its own workers; a busy endpoint does not hold another
        endpoint back."""
        server = own_server(**ONE_WORKER)
        slow = server.run("trial", {"sleepMs": 600_000})
        in_progress(server)
        assert server.finished("echo", server.run("echo", {}))["status"] == "COMPLETED"
        assert server.status("trial", slow)["status"] == "IN_PROGRESS"
        self.assert_job(server.request("POST", f"/v2/trial/cancel/{slow}"))

    def test_environment_of_an_endpoint_is_accepted(self, own_server):
        """etc/README.md: `endpoint.<id>.env.<NAME>` is a setting of any name."""
        server = own_server(**{"endpoint.trial.env.MY_NAME": "value"})
        assert server.finished("trial", server.run("trial", {}))["status"] == "COMPLETED"

"""Jobs of /runsync whose runs are brief: the server stores job and outcome in one step (core/decisions/storage.md,
"SQLite: commits and syncs"), and shows them like any other job."""

import concurrent.futures
import os
import pathlib
import sys
import threading

import pytest

from http_case import HttpTest
from jobq_server import is_foreign, until
from keep_alive import KeepAlive
from pace import HANG, HANG_MS
from webhook_receiver import WebhookReceiver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from index_changes import BriefLives  # noqa: E402

CALLS = 40  # the first eight prove that the runs are brief
CALLERS = 8
LIVES = int(os.environ.get("JOBQ_BRIEF_LIVES", "4"))  # of a server under kill -9


class BriefRunsTest(HttpTest):
    @pytest.fixture(autouse=True, params=["memory", "sqlite"])
    def echo(self, request, question, own_server):  # behind `question`, which sets self.server too
        self.server = own_server(storage=request.param, endpoint__echo__workersMin=2)
        until(lambda: self.server.health("echo")["workers"]["idle"] >= 2, "two workers are idle")
        self.before = self.server.quiet("echo")

    def completed(self):
        """Returns the number of jobs that this test has completed. No other job may have come."""
        jobs = self.server.quiet("echo")
        assert jobs["failed"] == self.before["failed"], jobs
        return jobs["completed"] - self.before["completed"]

    def test_brief_jobs_are_shown_like_other_jobs(self):
        answers = [self.server.runsync("echo", {"n": n}) for n in range(CALLS)]
        for n, answer in enumerate(answers):
            assert (answer["status"], answer["output"]) == ("COMPLETED", {"n": n}), answer
            assert answer["workerId"] and answer["delayTime"] >= 0 and answer["executionTime"] >= 0, answer
            assert self.server.status("echo", answer["id"]) == answer
        assert self.completed() == CALLS

    def test_each_webhook_is_delivered_once(self):
        with WebhookReceiver() as receiver:
            url = receiver.url("/done")
            ids = {self.server.runsync("echo", {"n": n}, webhook=url)["id"] for n in range(CALLS)}
            until(lambda: len(receiver.calls) >= CALLS, "the webhooks have come")
            assert sorted(call.json()["id"] for call in receiver.calls) == sorted(ids)

    def test_a_repeated_key_names_the_first_job(self):
        for n in range(CALLS):
            key = {"Idempotency-Key": f"key{n // 2}"}
            answer = self.server.request("POST", "/v2/echo/runsync", {"input": {"n": n // 2}}, headers=key).json()
            assert answer["output"] == {"n": n // 2}
        assert self.completed() == CALLS // 2

    def test_many_callers_at_once(self):
        def call(number):
            with KeepAlive(self.server) as connection:
                for n in range(CALLS):
                    status, answer = connection.ask("POST", "/v2/echo/runsync", {"input": {"n": [number, n]}})
                    assert (status, answer["output"]) == (200, {"n": [number, n]}), answer
            return True

        with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
            assert all(pool.map(call, range(CALLERS), timeout=HANG))
        assert self.completed() == CALLERS * CALLS


class FailedRunsTest(HttpTest):
    def test_a_failed_job_can_be_retried(self, own_server):
        self.server = own_server(storage="sqlite", endpoint__trial__workersMin=1)
        until(lambda: self.server.health("trial")["workers"]["idle"] >= 1, "the worker is idle")
        jobs = [self.server.runsync("trial", {"fail": "no luck"}) for _ in range(CALLS)]
        for job in jobs:
            assert (job["status"], job["error"]) == ("FAILED", "no luck"), job
        again = self.server.request("POST", f"/v2/trial/retry/{jobs[-1]['id']}")
        assert again.status == 200, again
        assert self.server.finished("trial", jobs[-1]["id"])["status"] == "FAILED"


class KilledServerTest(HttpTest):
    """No answered job is lost when the process dies, and no job is half stored.

    JOBQ_BRIEF_LIVES=200 pytest -s tests/http/test_brief_runs.py -k kill    the long run, of a quarter of an hour
    """

    @pytest.mark.timeout(60 * LIVES + 240)
    def test_answered_jobs_survive_a_kill(self, own_server):
        self.server = own_server(storage="sqlite", endpoint__echo__workersMin=4, endpoint__echo__workersMax=4)
        total, before = 0, {}
        for life in range(LIVES):
            until(lambda: self.server.health("echo")["workers"]["idle"] >= 4, "the workers are idle")
            answered = {}
            self.kill_under_load(life, answered)
            total += len(answered)
            for job, output in {**before, **answered}.items():
                found = self.server.status("echo", job)
                assert (found.get("status"), found.get("output")) == ("COMPLETED", output), found
            before = answered
        jobs = self.server.quiet("echo")
        print(f"{total} answered jobs, {LIVES} kills, {jobs['completed']} completed jobs")
        assert jobs["completed"] >= total and jobs["failed"] == 0, jobs

    def kill_under_load(self, life, answered):
        """Callers work until the server dies under them, once each of them has had 100 answers."""
        busy = threading.Barrier(CALLERS + 1)

        def call(number):
            with KeepAlive(self.server) as connection:
                for n in range(1_000_000):
                    if n == 100:
                        busy.wait(HANG)
                    order = {"n": [life, number, n]}
                    try:
                        status, answer = connection.ask("POST", f"/v2/echo/runsync?wait={5 * HANG_MS}", {"input": order})
                    except (AssertionError, OSError, ValueError):  # the server has died
                        return
                    assert (status, answer["output"]) == (200, order), answer
                    answered[answer["id"]] = order

        with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
            callers = [pool.submit(call, number) for number in range(CALLERS)]
            busy.wait(HANG)
            self.server.kill()
            for caller in callers:
                caller.result(HANG)
        self.server.start()


class BriefLifeTest(HttpTest):
    @pytest.mark.skipif(is_foreign(), reason="reads the database of a server of this build")
    def test_a_brief_job_is_stored_with_the_outcome(self):
        """core/decisions/storage.md, "SQLite: commits and syncs": one commit stores the job and its outcome."""
        with BriefLives() as lives:
            until(lambda: lives.run()[1], "a job and its outcome are stored in one step")

"""jobqctl release status: complete, rolling and halted, at once and with --wait."""

import subprocess
import threading

import pytest

from jobq_server import JOBQCTL, until
from jobqctl_case import HALTED, NOWHERE, REFUSED, USAGE, WAIT_ELAPSED, FormTest
from pace import HANG


class ReleaseTest(FormTest):
    @pytest.fixture(autouse=True)
    def one_endpoint(self, question):
        self.template = self.make_template()
        self.endpoint = self.make_endpoint(self.template)
        self.server.runsync(self.endpoint, {})

    def update(self, **fields):
        answer = self.server.request("POST", f"/v1/templates/{self.template}/update", fields)
        assert answer.status == 200, answer.body

    def roll(self):
        """A release that cannot go on, because the only worker of the old version has a long job."""
        job = self.server.run(self.endpoint, {"sleepMs": 600000})
        until(lambda: self.server.status(self.endpoint, job)["status"] == "IN_PROGRESS", "the job runs")
        self.update(env={"A": "1"})
        return job

    def row(self, *more, **options):
        rows = self.rows("release", "status", self.endpoint, *more, **options)
        assert [row["ENDPOINT"] for row in rows] == [self.endpoint]
        return rows[0]

    def test_complete(self):
        """Exit code 0; the table says which workers have which version."""
        row = self.row("--wait", "--timeout", "20s")
        assert (row["VERSION"], row["STATE"], row["WORKERS"], row["REASON"]) == ("1", "complete", "1 has 1", "-")
        answer = self.json("release", "status", self.endpoint)
        assert answer["release"] == {"version": 1, "state": "complete"}
        assert [worker["slsVersion"] for worker in answer["workers"]] == [1]

    def test_all_endpoints(self):
        """Without an endpoint: a row for each."""
        rows = self.rows("release", "status")
        assert self.endpoint in [row["ENDPOINT"] for row in rows]
        assert [row["ENDPOINT"] for row in rows] == [entry["id"] for entry in self.json("release", "status")]

    def test_rolling(self):
        """`--wait` ends when the release is complete; `--timeout` ends it before, with exit code 6."""
        job = self.roll()
        row = self.row()
        assert (row["VERSION"], row["STATE"]) == ("2", "rolling")
        assert "1 has 1" in row["WORKERS"]
        assert self.row("--wait", "--timeout", "0s", code=WAIT_ELAPSED)["STATE"] == "rolling"
        answer = self.json("release", "status", self.endpoint, "--wait", "--timeout=300ms", code=WAIT_ELAPSED)
        assert answer["release"]["state"] == "rolling"
        with subprocess.Popen([JOBQCTL, "release", "status", self.endpoint, "--wait"], stdout=subprocess.PIPE,
                              env=self.environment()) as waiter:
            too_late = threading.Timer(HANG, waiter.kill)
            too_late.start()
            self.json("cancel", self.endpoint, job)
            text = waiter.stdout.read().decode()
            assert waiter.wait(HANG) == 0, text
            too_late.cancel()
        assert "complete" in text
        assert self.row()["WORKERS"] == "1 has 2"

    def test_halted(self):
        """Exit code 5 with --wait, and the table says why; without it the question was answered: 0."""
        self.update(imageName="plugin/nothing")
        row = self.row("--wait", "--timeout", "20s", code=HALTED)
        assert row["STATE"] == "halted"
        assert "nothing" in row["REASON"]
        assert self.row()["STATE"] == "halted"
        answer = self.json("release", "status", self.endpoint, "--wait", code=HALTED)
        assert "nothing" in answer["release"]["reason"]

    def test_refused_and_wrong_usage(self, subtests):
        """The times have a unit and a range."""
        assert "nothing" in self.sentence("release", "status", "nothing", code=REFUSED)
        for time in ("5", "1 s", "-1s", "2d", "25h", "", "s", "99999999999999999999s"):
            with subtests.test(time):
                sentence = self.sentence("release", "status", "x", "--wait", "--timeout", time, code=USAGE,
                                         JOBQ_URL=NOWHERE)
                assert "--timeout takes a time from 0" in sentence

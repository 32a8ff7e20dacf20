"""jobqctl job, requests, purge and webhook: every command, as a table and as --json."""

import json
import os
import re
import subprocess
import threading

import pytest

from jobq_server import JOBQCTL, is_foreign, until
from jobqctl_case import NOT_COMPLETED, NOWHERE, OK, REFUSED, USAGE, FormTest
from pace import HANG
from webhook_receiver import WebhookReceiver


class JobListTest(FormTest):
    @pytest.fixture(autouse=True)
    def three_jobs(self, question):
        self.endpoint = self.make_endpoint()
        self.done = self.server.runsync(self.endpoint, {})["id"]
        self.failed = self.server.runsync(self.endpoint, {"fail": "no \x1b[31m luck"})["id"]
        assert self.server.request("POST", f"/v1/endpoints/{self.endpoint}/pause").status == 200
        self.waiting = self.server.run(self.endpoint, {})

    def test_list(self):
        """The page of /requests: newest first, a row a job."""
        rows = self.rows("job", "list", self.endpoint)
        assert [row["JOB"] for row in rows] == [self.waiting, self.failed, self.done]
        assert [row["STATUS"] for row in rows] == ["IN_QUEUE", "FAILED", "COMPLETED"]
        assert [row["ERROR"] for row in rows] == ["-", "no ?[31m luck", "-"]
        assert rows[2]["WORKER"] == self.server.status(self.endpoint, self.done)["workerId"]
        answer = self.server.request("GET", f"/v2/{self.endpoint}/requests").body
        for command in (["job", "list"], ["requests"]):
            assert self.jobqctl(*command, self.endpoint, "--json").stdout == answer + b"\n"

    def test_ages_keys_and_filters(self):
        """A list shows the age and the key; `--key-id`, `--prefix` and `--cursor` ask for other pages."""
        key = self.server.new_key("client")
        mine = self.server.request("POST", f"/v2/{self.endpoint}/run", {"input": {}}, key=key["key"]).json()["id"]
        rows = self.rows("job", "list", self.endpoint, "--key-id", key["id"])
        assert [(row["JOB"], row["KEY"]) for row in rows] == [(mine, key["id"])]
        assert re.fullmatch(r"\d+[sm]", rows[0]["AGE"])
        assert [row["JOB"] for row in self.rows("job", "list", self.endpoint, "--prefix", self.done)] == [self.done]
        text = self.table("job", "list", self.endpoint, "--prefix", "", "--limit", "3")
        cursor = re.search(r"--cursor (\d+) shows the next", text)[1]
        assert self.done in self.table("job", "list", self.endpoint, "--cursor", cursor)
        assert "--cursor" in self.sentence("job", "list", self.endpoint, "--offset", "1", "--prefix", "a", code=USAGE)

    def test_a_job_with_its_input(self):
        job = self.server.run(self.endpoint, {"text": "hello"})
        assert "hello" not in self.table("job", "show", self.endpoint, job)
        shown = self.table("job", "show", self.endpoint, job, "--input")
        assert 'input:\n{"text": "hello"}' in shown
        assert re.search(r"created +\d{4}-", shown)

    def test_pages(self):
        """`--limit`, `--offset` and `--status` are the server's; the table says where the rest is."""
        text = self.table("requests", self.endpoint, "--limit", "1", "--offset", "1")
        assert self.failed in text
        assert "1 of 3 jobs; --offset 2 shows" in text
        rest = self.table("requests", self.endpoint, "--offset", "2")
        assert self.done in rest
        assert "--offset" not in rest
        page = self.json("job", "list", self.endpoint, "--status", "FAILED", "--limit", "1")
        assert ([job["id"] for job in page["requests"]], page["total"]) == ([self.failed], 1)

    def test_refused(self, subtests):
        """The server refuses a value out of range, and a value is data."""
        for arguments, word in ((["--limit", "0"], "limit"), (["--status", "LOST"], "IN_QUEUE"), (["--status", ""], "IN_QUEUE"),
                                (["--offset", "-1"], "offset"), (["--status", "FAILED&limit=x"], "FAILED&limit=x")):
            with subtests.test(arguments):
                assert word in self.sentence("job", "list", self.endpoint, *arguments, code=REFUSED)
        assert "nothing" in self.sentence("job", "list", "nothing", code=REFUSED)

    def test_cancel_and_retry(self):
        """`job cancel` and `job retry` are `cancel` and `retry`."""
        assert self.json("job", "cancel", self.endpoint, self.waiting) == {"id": self.waiting, "status": "CANCELLED"}
        assert "CANCELLED" in self.sentence("job", "retry", self.endpoint, self.waiting, code=REFUSED)
        assert "IN_QUEUE" in self.table("job", "retry", self.endpoint, self.failed)
        assert self.fields("job", "show", self.endpoint, self.failed)["status"] == "IN_QUEUE"

    def test_why_a_job_waits(self):
        """core/http/API.md, "Job object": queueReason and queuePosition are in the table of a queued job."""
        for command in (["status"], ["job", "show"]):
            fields = self.fields(*command, self.endpoint, self.waiting)
            assert (fields["reason"], fields["position"]) == ("paused", "1")

    def test_a_job_deep_in_the_queue(self):
        """The server counts to 100, so a place behind it has a plus."""
        for _ in range(98):
            self.server.run(self.endpoint, {})
        hundredth, next_one = self.server.run(self.endpoint, {}), self.server.run(self.endpoint, {})
        assert self.fields("status", self.endpoint, hundredth)["position"] == "100"
        for command in (["status"], ["job", "show"]):
            assert self.fields(*command, self.endpoint, next_one)["position"] == "100+"

    def test_purge(self):
        """Queued jobs are gone, ended jobs stay."""
        assert self.table("purge", self.endpoint, "--yes").startswith("1 waiting")
        assert self.json("purge", self.endpoint, "--yes") == {"removed": 0, "status": "completed"}
        assert len(self.json("job", "list", self.endpoint)["requests"]) == 2
        assert "nothing" in self.sentence("purge", "nothing", "--yes", code=REFUSED)

    def test_a_purge_asks_at_a_terminal(self):
        """A question before the waiting jobs are gone; a script says --yes."""
        for typed, code in ((b"n\n", USAGE), (b"\n", USAGE), (b"y\n", OK)):
            self.server.run(self.endpoint, {})
            terminal, stdin = os.openpty()
            try:
                os.write(terminal, typed)
                done = subprocess.run([JOBQCTL, "purge", self.endpoint], stdin=stdin, capture_output=True, timeout=60,
                                      env=self.environment(), check=False)
            finally:
                os.close(terminal)
                os.close(stdin)
            assert done.returncode == code, done.stderr
            assert done.stderr.startswith(f"Delete all waiting jobs of {self.endpoint}? [y/N] ".encode())
        assert done.stdout.startswith(b"4 waiting"), "the job of the fixture, and one for each question"
        assert "--yes" in self.sentence("purge", self.endpoint, code=USAGE)


class StreamTest(FormTest):
    @pytest.fixture(autouse=True)
    def one_endpoint(self, question):
        self.endpoint = self.make_endpoint()

    def test_until_the_end(self):
        """Each chunk is on a line of its own, from the first chunk to the job's end."""
        job = self.server.run(self.endpoint, {"chunks": 5, "chunkMs": 50})
        lines = self.table("job", "stream", self.endpoint, job).splitlines()
        assert [json.loads(line)["chunk"] for line in lines] == list(range(5))
        whole = self.table("job", "stream", self.endpoint, job, "--json").splitlines()
        assert [json.loads(line) for line in whole] == [{"output": json.loads(line)} for line in lines]

    def test_no_reader_loses_a_chunk(self):
        """core/http/API.md, "Reading a stream": a reader by offset consumes nothing."""
        job = self.server.run(self.endpoint, {"chunks": 2})
        self.jobqctl("job", "stream", self.endpoint, job)
        chunks = self.server.request("GET", f"/v2/{self.endpoint}/stream/{job}").json()
        assert [chunk["output"]["chunk"] for chunk in chunks] == [0, 1]

    def test_a_running_job(self):
        """A chunk is shown when it comes, not at the end."""
        job = self.server.run(self.endpoint, {"chunks": 10_000, "chunkMs": 500})
        with subprocess.Popen([JOBQCTL, "job", "stream", self.endpoint, job], stdout=subprocess.PIPE,
                              env=self.environment()) as reader:
            too_late = threading.Timer(HANG, reader.kill)
            too_late.start()
            assert json.loads(reader.stdout.readline())["chunk"] == 0
            assert self.server.status(self.endpoint, job)["status"] == "IN_PROGRESS"
            self.json("job", "cancel", self.endpoint, job)
            reader.stdout.read()
            assert reader.wait(HANG) == NOT_COMPLETED
            too_late.cancel()

    def test_other_ends(self):
        """Exit code 4 when the job did not end COMPLETED; a job that never emits has no chunk."""
        job = self.server.run(self.endpoint, {"chunks": 1, "fail": "no"})
        done = self.jobqctl("job", "stream", self.endpoint, job, code=NOT_COMPLETED)
        assert b'"chunk":0' in done.stdout
        assert done.stderr == b"jobqctl: the job is FAILED: no\n"
        silent = self.server.run(self.endpoint, {})
        assert self.table("job", "stream", self.endpoint, silent) == ""
        assert "nothing" in self.sentence("job", "stream", self.endpoint, "nothing", code=REFUSED)


class WebhookCommandsTest(FormTest):
    @pytest.fixture(autouse=True)
    def endpoint_and_receiver(self, question):
        if is_foreign() and self.server.address[0] not in ("127.0.0.1", "localhost"):
            pytest.skip("the server is elsewhere and cannot call a receiver on 127.0.0.1")
        self.endpoint = self.make_endpoint()
        self.receiver = self.at_end.enter_context(WebhookReceiver())

    def sent(self):
        """A job whose webhook was delivered, and the delivery."""
        job = self.server.runsync(self.endpoint, {}, webhook=self.receiver.url("/hook"))["id"]

        def delivered():
            deliveries = self.json("webhook", "list", "--job", job)
            return deliveries if deliveries and deliveries[0]["state"] == "delivered" else None
        return job, until(delivered, "the webhook is delivered")[0]

    def test_list(self):
        """A row for each delivery: its state, its attempts and the result of the last attempt."""
        job, delivery = self.sent()
        row, = self.rows("webhook", "list", "--job", job)
        assert row.pop("LAST").startswith("200"), row
        assert row == {**row, "ID": delivery["id"], "STATE": "delivered", "JOB": job, "JOB STATUS": "COMPLETED",
                       "ATTEMPTS": "1", "URL": self.receiver.url("/hook")}
        answer = self.server.request("GET", f"/v1/webhooks?endpointId={self.endpoint}&limit=5").body
        assert self.jobqctl("webhook", "list", "--endpoint", self.endpoint, "--limit", "5", "--json").stdout == answer + b"\n"
        assert self.rows("webhook", "list", "--job", "nothing") == []

    def test_replay(self):
        """The same call goes out again."""
        _, delivery = self.sent()
        assert "owed" in self.table("webhook", "replay", delivery["id"])
        calls = until(lambda: len(self.receiver.calls) >= 2 and self.receiver.calls, "the second call")
        assert calls[0].body == calls[1].body
        assert self.json("webhook", "replay", delivery["id"]) == {"id": delivery["id"], "state": "owed"}

    def test_refused_and_wrong_usage(self):
        """The job of the webhooks is a required argument; the server refuses a value out of range."""
        assert "nothing" in self.sentence("webhook", "replay", "nothing", code=REFUSED)
        assert "limit" in self.sentence("webhook", "list", "--job", "x", "--limit", "0", code=REFUSED)
        assert "--job" in self.sentence("webhook", "list", "--limit", "1", code=USAGE, JOBQ_URL=NOWHERE)

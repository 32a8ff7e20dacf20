"""jobqctl job, requests, purge and webhook: every verb, as a table and as --json."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import JOBQCTL, is_foreign, until  # noqa: E402
from jobqctl_case import NOT_COMPLETED, NOWHERE, REFUSED, USAGE, FormTest  # noqa: E402
from webhook_receiver import WebhookReceiver  # noqa: E402


class JobListTest(FormTest):
    def setUp(self):
        super().setUp()
        self.endpoint = self.make_endpoint()
        self.done = self.server.runsync(self.endpoint, {})["id"]
        self.failed = self.server.runsync(self.endpoint, {"fail": "no \x1b[31m luck"})["id"]
        self.assertEqual(self.server.request("POST", f"/v1/endpoints/{self.endpoint}/pause").status, 200)
        self.waiting = self.server.run(self.endpoint, {})

    def test_list(self):
        """The page of /requests: newest first, a row a job."""
        rows = self.rows("job", "list", self.endpoint)
        self.assertEqual([row["JOB"] for row in rows], [self.waiting, self.failed, self.done])
        self.assertEqual([row["STATUS"] for row in rows], ["IN_QUEUE", "FAILED", "COMPLETED"])
        self.assertEqual([row["ERROR"] for row in rows], ["-", "no ?[31m luck", "-"])
        self.assertEqual(rows[2]["WORKER"], self.server.status(self.endpoint, self.done)["workerId"])
        answer = self.server.request("GET", f"/v2/{self.endpoint}/requests").body
        for verb in (["job", "list"], ["requests"]):
            self.assertEqual(self.ctl(*verb, self.endpoint, "--json").stdout, answer)

    def test_pages(self):
        """`--limit`, `--offset` and `--status` are the server's; the table says where the rest is."""
        text = self.table("requests", self.endpoint, "--limit", "1", "--offset", "1")
        self.assertIn(self.failed, text)
        self.assertIn("1 of 3 jobs; --offset 2 shows", text)
        rest = self.table("requests", self.endpoint, "--offset", "2")
        self.assertIn(self.done, rest)
        self.assertNotIn("--offset", rest)
        page = self.json("job", "list", self.endpoint, "--status", "FAILED", "--limit", "1")
        self.assertEqual(([job["id"] for job in page["requests"]], page["total"]), ([self.failed], 1))

    def test_refused(self):
        """What is out of range is the server's no, and a value is data."""
        for arguments, word in ((["--limit", "0"], "limit"), (["--status", "LOST"], "IN_QUEUE"),
                                (["--offset", "-1"], "offset"), (["--status", "FAILED&limit=x"], "FAILED&limit=x")):
            with self.subTest(arguments):
                self.assertIn(word, self.sentence("job", "list", self.endpoint, *arguments, code=REFUSED))
        self.assertIn("nothing", self.sentence("job", "list", "nothing", code=REFUSED))

    def test_cancel_and_retry(self):
        """`job cancel` and `job retry` are `cancel` and `retry`."""
        self.assertEqual(self.json("job", "cancel", self.endpoint, self.waiting),
                         {"id": self.waiting, "status": "CANCELLED"})
        self.assertIn("CANCELLED", self.sentence("job", "retry", self.endpoint, self.waiting, code=REFUSED))
        self.assertIn("IN_QUEUE", self.table("job", "retry", self.endpoint, self.failed))
        self.assertEqual(self.fields("job", "show", self.endpoint, self.failed)["status"], "IN_QUEUE")

    def test_why_a_job_waits(self):
        """Issue 6: queueReason and queuePosition are in the table of a queued job."""
        for verb in (["status"], ["job", "show"]):
            fields = self.fields(*verb, self.endpoint, self.waiting)
            self.assertEqual((fields["reason"], fields["position"]), ("paused", "1"))

    def test_purge(self):
        """What waits is gone, what has ended stays."""
        self.assertTrue(self.table("purge", self.endpoint).startswith("1 waiting"))
        self.assertEqual(self.json("purge", self.endpoint), {"removed": 0, "status": "completed"})
        self.assertEqual(len(self.json("job", "list", self.endpoint)["requests"]), 2)
        self.assertIn("nothing", self.sentence("purge", "nothing", code=REFUSED))


class StreamTest(FormTest):
    def setUp(self):
        super().setUp()
        self.endpoint = self.make_endpoint()

    def test_until_the_end(self):
        """Each chunk on a line of its own, from the first one to the job's end."""
        job = self.server.run(self.endpoint, {"chunks": 5, "chunkMs": 50})
        lines = self.table("job", "stream", self.endpoint, job).splitlines()
        self.assertEqual([json.loads(line)["chunk"] for line in lines], list(range(5)))
        whole = self.table("job", "stream", self.endpoint, job, "--json").splitlines()
        self.assertEqual([json.loads(line) for line in whole], [{"output": json.loads(line)} for line in lines])

    def test_nobody_loses_a_chunk(self):
        """decisions.md, Jobs: a reader by offset consumes nothing."""
        job = self.server.run(self.endpoint, {"chunks": 2})
        self.ctl("job", "stream", self.endpoint, job)
        chunks = self.server.request("GET", f"/v2/{self.endpoint}/stream/{job}").json()
        self.assertEqual([chunk["output"]["chunk"] for chunk in chunks], [0, 1])

    def test_while_it_runs(self):
        """A chunk is shown when it comes, not at the end."""
        job = self.server.run(self.endpoint, {"chunks": 100, "chunkMs": 500})
        with subprocess.Popen([JOBQCTL, "job", "stream", self.endpoint, job], stdout=subprocess.PIPE,
                              env=self.environment()) as reader:
            self.assertEqual(json.loads(reader.stdout.readline())["chunk"], 0)
            self.assertEqual(self.server.status(self.endpoint, job)["status"], "IN_PROGRESS")
            self.json("job", "cancel", self.endpoint, job)
            reader.stdout.read()
            self.assertEqual(reader.wait(20), NOT_COMPLETED)

    def test_other_ends(self):
        """Exit code 4 when the job did not end COMPLETED; a job that never emits has no chunk."""
        job = self.server.run(self.endpoint, {"chunks": 1, "fail": "no"})
        self.assertIn('"chunk":0', self.table("job", "stream", self.endpoint, job, code=NOT_COMPLETED))
        silent = self.server.run(self.endpoint, {})
        self.assertEqual(self.table("job", "stream", self.endpoint, silent), "")
        self.assertIn("nothing", self.sentence("job", "stream", self.endpoint, "nothing", code=REFUSED))


class WebhookVerbsTest(FormTest):
    def setUp(self):
        super().setUp()
        if is_foreign() and self.server.address[0] not in ("127.0.0.1", "localhost"):
            self.skipTest("the server is elsewhere and cannot call a receiver on 127.0.0.1")
        self.endpoint = self.make_endpoint()
        self.receiver = self.enterContext(WebhookReceiver())

    def sent(self):
        """A job whose webhook was delivered, and the delivery."""
        job = self.server.runsync(self.endpoint, {}, webhook=self.receiver.url("/hook"))["id"]

        def delivered():
            deliveries = self.json("webhook", "list", "--job", job)
            return deliveries if deliveries and deliveries[0]["state"] == "delivered" else None
        return job, until(delivered, "the webhook is delivered")[0]

    def test_list(self):
        """A row a delivery: its state, its attempts and how the last one went."""
        job, delivery = self.sent()
        row, = self.rows("webhook", "list", "--job", job)
        self.assertEqual((row["ID"], row["STATE"], row["JOB"], row["JOB STATUS"], row["ATTEMPTS"], row["URL"]),
                         (delivery["id"], "delivered", job, "COMPLETED", "1", self.receiver.url("/hook")))
        self.assertTrue(row["LAST"].startswith("200"), row)
        answer = self.server.request("GET", f"/v1/webhooks?endpointId={self.endpoint}&limit=5").body
        self.assertEqual(self.ctl("webhook", "list", "--endpoint", self.endpoint, "--limit", "5", "--json").stdout,
                         answer)
        self.assertEqual(self.rows("webhook", "list", "--job", "nothing"), [])

    def test_replay(self):
        """The same call goes out again."""
        _, delivery = self.sent()
        self.assertIn("owed", self.table("webhook", "replay", delivery["id"]))
        calls = until(lambda: len(self.receiver.calls) >= 2 and self.receiver.calls, "the second call")
        self.assertEqual(calls[0].body, calls[1].body)
        self.assertEqual(self.json("webhook", "replay", delivery["id"]), {"id": delivery["id"], "state": "owed"})

    def test_refused_and_wrong_usage(self):
        """Whose webhooks has to be said; what is out of range is the server's no."""
        self.assertIn("nothing", self.sentence("webhook", "replay", "nothing", code=REFUSED))
        self.assertIn("limit", self.sentence("webhook", "list", "--job", "x", "--limit", "0", code=REFUSED))
        self.assertIn("--job", self.sentence("webhook", "list", "--limit", "1", code=USAGE, JOBQ_URL=NOWHERE))


if __name__ == "__main__":
    unittest.main()

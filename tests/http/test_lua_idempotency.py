"""core/decisions/lua.md: Idempotency-Key at an endpoint with filters: a job is judged once."""

from test_lua_filters import FilterTest


class IdempotencyKeyTest(FilterTest):
    """core/http/API.md, "Idempotency key": the key covers the body as sent by the caller."""

    def submit_once(self, endpoint, job_input, key, operation="run"):
        return self.submit(endpoint, job_input, operation, headers={"Idempotency-Key": key})

    def test_the_same_body(self):
        """The first job's answer, although the filter makes another input each time."""
        first = self.assert_job(self.submit_once("dice", {"n": 1}, "same"))
        again = self.assert_job(self.submit_once("dice", {"n": 1}, "same"))
        assert first["id"] == again["id"]
        job = self.server.finished("dice", first["id"])
        sync = self.assert_job(self.submit_once("dice", {"n": 1}, "same", "runsync"))
        assert (sync["id"], sync["output"]) == (job["id"], job["output"])

    def test_a_repeat_is_not_judged_again(self):
        """A filter that counts would refuse what it let in: the repeat of a call that was accepted is accepted."""
        job_input = {"name": "repeat"}
        first = self.assert_job(self.submit_once("once", job_input, "repeat"))
        self.assert_refused(self.submit_once("once", job_input, "a-new-call"), 400, "once is enough")
        for operation in ("run", "runsync"):
            again = self.assert_job(self.submit_once("once", job_input, "repeat", operation))
            assert again["id"] == first["id"]
        assert again["output"] == job_input, "a repeated /runsync waits for the first call's job"
        self.assert_refused(self.submit_once("once", {"name": "else"}, "repeat"), 400, "Idempotency-Key")
        assert len(self.server.request("GET", "/v2/once/requests").json()["requests"]) == 1

    def test_a_repeat_of_a_waiting_or_removed_job(self):
        first = self.assert_job(self.submit_once("waits", {"name": "gone"}, "gone"))
        waiting = self.assert_job(self.submit_once("waits", {"name": "gone"}, "gone", "runsync?wait=1000"))
        assert (waiting["id"], waiting["status"]) == (first["id"], "IN_QUEUE")
        self.server.request("POST", "/v2/waits/purge-queue")
        assert self.assert_job(self.submit_once("waits", {"name": "gone"}, "gone"))["id"] == first["id"]
        self.assert_refused(self.submit_once("waits", {"name": "gone"}, "gone", "runsync"), 404, first["id"])

    def test_a_different_body(self):
        """400, although the filter makes the same of both."""
        self.assert_job(self.submit_once("counts", {"n": 1}, "other"))
        self.assert_refused(self.submit_once("counts", {"n": 2}, "other"), 400, "Idempotency-Key")

    def test_a_refused_call_stores_no_key(self):
        """A refused call stores no job, so the key is free for the next call."""
        self.assert_refused(self.submit_once("verdict", {"which": "no"}, "free"), 400)
        self.assert_failed(self.submit_once("verdict", {"which": "number"}, "free"), "verdict")
        self.assert_job(self.submit_once("verdict", {"which": "yes"}, "free"))

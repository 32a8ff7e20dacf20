"""core/http/API.md, "Order of jobs": the order of jobs by the queue policies `fair` and `deadline`: chosen over REST,
in the file for a single endpoint and for all, on both storages. A paused endpoint is filled and resumed; the only
worker shows the order of the jobs."""

import pytest

from jobq_server import until
from management_api import ManagementTest

LONG = {"sleepMs": 600_000}  # the job runs until cancelled
HOUR = 3_600_000  # ms


class PolicyTests(ManagementTest):
    """STORAGE is the server's."""

    __test__ = False  # but the two subclasses are tests

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(
            storage=cls.STORAGE, queue__policy="deadline",
            **{f"endpoint__{name}__{field}": value for name in ("byFile", "byServer")
               for field, value in (("image", "plugin/trial"), ("workersMax", 1))},
            endpoint__byFile__queuePolicy="fair")

    @pytest.fixture(autouse=True)
    def no_keys(self, question):
        self.keys = {}

    def pause(self, endpoint):
        self.call("POST", f"/endpoints/{endpoint}/pause")
        self.names = {}

    def submit(self, endpoint, name, key=None, job_input=None, **policy):
        """Submits a job with the API key `key` or with the admin's; the test calls the job `name`."""
        if key and key not in self.keys:
            made = self.server.new_key("client")
            self.at_end.callback(self.remove, "/keys/" + made["id"])
            self.keys[key] = made["key"]
        answer = self.server.request("POST", f"/v2/{endpoint}/run", {"input": job_input or LONG, "policy": policy},
                                     key=self.keys[key] if key else True)
        self.names[self.assert_job(answer)["id"]] = name
        return answer.json()["id"]

    def place(self, endpoint, job):
        return self.server.status(endpoint, job)["queuePosition"]

    def running(self, endpoint):
        """Waits until a job runs, and returns the id."""
        def ask():
            jobs = self.server.request("GET", f"/v2/{endpoint}/requests?status=IN_PROGRESS").json()["requests"]
            return jobs and jobs[0]["id"]
        return until(ask, f"{endpoint} has a job that runs")

    def cancel(self, endpoint, job):
        assert self.assert_job(self.server.request("POST", f"/v2/{endpoint}/cancel/{job}"))["status"] == "CANCELLED"

    def taken(self, endpoint):
        """Resumes the endpoint; returns the names of the jobs in the order of the worker. Each job is cancelled as soon
        as the job runs."""
        self.call("POST", f"/endpoints/{endpoint}/resume")
        names = []
        for _ in self.names:
            job = self.running(endpoint)
            names.append(self.names[job])
            self.cancel(endpoint, job)
        return names

    def assert_turns(self, endpoint):
        """Keys take turns, jobs of low priority behind all other jobs."""
        self.pause(endpoint)
        for n in range(5):
            self.submit(endpoint, f"noisy {n}", "noisy")
        self.submit(endpoint, "noisy low", "noisy", lowPriority=True)
        for n in range(2):
            self.submit(endpoint, f"first {n}", "first")
        self.submit(endpoint, "second 0", "second")
        last = self.submit(endpoint, "second 1", "second")
        assert self.place(endpoint, last) == 6
        assert self.taken(endpoint) == ["noisy 0", "first 0", "second 0", "noisy 1", "first 1", "second 1", "noisy 2",
                                        "noisy 3", "noisy 4", "noisy low"]

    def assert_by_expiry(self, endpoint):
        """The earliest expiry is first, ties by arrival, jobs of low priority behind all other jobs."""
        self.pause(endpoint)
        self.submit(endpoint, "day")
        self.submit(endpoint, "two hours", ttl=2 * HOUR)
        self.submit(endpoint, "low", ttl=HOUR // 2, lowPriority=True)
        self.submit(endpoint, "hour", ttl=HOUR)
        self.submit(endpoint, "three hours", ttl=3 * HOUR)
        self.submit(endpoint, "week", ttl=168 * HOUR)
        assert self.taken(endpoint) == ["hour", "two hours", "three hours", "day", "week", "low"]

    def test_fair_over_rest(self):
        """core/decisions/jobs.md: queue_fair shares between API keys; queuePolicy of an endpoint selects the policy."""
        endpoint = self.new_endpoint(workersMax=1, queuePolicy="fair")
        assert endpoint["queuePolicy"] == "fair"
        self.assert_turns(endpoint["id"])

    def test_fair_in_the_file(self):
        """etc/README.md: queue_fair, selected by `endpoint.<id>.queuePolicy`."""
        self.assert_turns("byFile")

    def test_deadline_over_rest(self):
        """core/decisions/jobs.md: queue_deadline is earliest expiry first."""
        self.assert_by_expiry(self.new_endpoint(workersMax=1, queuePolicy="deadline")["id"])

    def test_deadline_in_the_file(self):
        """etc/README.md: queue_deadline, selected by `queue.policy` for endpoints that name no policy."""
        self.assert_by_expiry("byServer")

    def test_a_change_of_policy(self):
        """core/decisions/jobs.md: from the change on; queued jobs keep the rank."""
        endpoint = self.new_endpoint(workersMax=1, queuePolicy="fifo")["id"]
        self.pause(endpoint)
        for n in range(2):
            self.submit(endpoint, f"fifo {n}", "noisy")
        for policy in ("fair", "deadline"):
            self.call("PATCH", f"/endpoints/{endpoint}", {"queuePolicy": policy})
            for n in range(2):
                self.submit(endpoint, f"{policy} {n}", "noisy")
        self.submit(endpoint, "hour", "noisy", ttl=HOUR)
        assert self.taken(endpoint) == ["fifo 0", "fifo 1", "fair 0", "fair 1", "hour", "deadline 0", "deadline 1"]

    def test_a_retry_under_deadline(self):
        """core/decisions/jobs.md: ttl counts from the submission, `/status?ttl=` replaces the expiry: a retried job is
        ranked by the present expiry."""
        endpoint = self.new_endpoint(workersMax=1, queuePolicy="deadline")["id"]
        self.names = {}
        job = self.submit(endpoint, "retried", job_input={"fail": "once more"})
        assert self.server.finished(endpoint, job)["status"] == "FAILED"
        self.assert_job(self.server.request("GET", f"/v2/{endpoint}/status/{job}?ttl={HOUR * 3 // 2}"))
        self.pause(endpoint)
        after = self.submit(endpoint, "two hours", ttl=2 * HOUR)
        before = self.submit(endpoint, "hour", ttl=HOUR)
        self.assert_job(self.server.request("POST", f"/v2/{endpoint}/retry/{job}"))
        assert [self.place(endpoint, each) for each in (before, job, after)] == [1, 2, 3]
        self.call("POST", f"/endpoints/{endpoint}/resume")
        assert self.running(endpoint) == before
        assert self.server.status(endpoint, job)["status"] == "IN_QUEUE"
        self.cancel(endpoint, before)
        until(lambda: self.running(endpoint) == after, "the retried one has run, for a moment, and the last one runs")
        again = self.server.status(endpoint, job)
        assert (again["status"], again["retries"]) == ("FAILED", 1), "it ran in between"
        self.cancel(endpoint, after)


class MemoryPolicyTest(PolicyTests):
    __test__ = True
    STORAGE = "memory"


class SqlitePolicyTest(PolicyTests):
    __test__ = True
    STORAGE = "sqlite"

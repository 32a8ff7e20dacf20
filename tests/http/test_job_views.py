"""What a job shows of itself: /status?include=, the lists of jobs, and `retention.failed` (core/http/API.md, 6.7, 7.3, 7.8)."""

import re

import pytest

from http_case import HttpTest
from jobq_server import until

TIME = re.compile(r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
WEBHOOK = "http://127.0.0.1:9/nobody"


class IncludeTest(HttpTest):
    def status(self, endpoint, job, include=None):
        query = "" if include is None else f"?include={include}"
        return self.server.request("GET", f"/v2/{endpoint}/status/{job}{query}")

    def test_times_of_a_finished_job(self):
        job = self.server.runsync("trial", {"sleep": 0.05})["id"]
        plain = self.status("trial", job).json()
        assert not {"createdAt", "startedAt", "endedAt", "keyId", "input"} & set(plain)
        shown = self.status("trial", job, "times").json()
        assert {name: value for name, value in shown.items() if name in plain} == plain
        assert set(shown) - set(plain) == {"createdAt", "startedAt", "endedAt", "keyId"}
        moments = [shown["createdAt"], shown["startedAt"], shown["endedAt"]]
        assert all(TIME.match(moment) for moment in moments)
        assert moments == sorted(moments)

    def test_times_of_a_waiting_job(self):
        shown = self.status("parked", self.server.run("parked", {}), "times").json()
        assert TIME.match(shown["createdAt"])
        assert not {"startedAt", "endedAt", "input"} & set(shown)
        assert shown["queueReason"]

    @pytest.mark.parametrize("size", [1, 100_000, 2_000_000])
    def test_the_input_in_its_bytes(self, size):
        text = '{"n": 1.0,  "x":"%s"}' % ("x" * size)
        body = '{"input":%s,"webhook":"http://example.com/secret","s3Config":{"accessId":"a"}}' % text
        job = self.assert_job(self.server.request("POST", "/v2/parked/run", body.encode()))["id"]
        answer = self.status("parked", job, "input,times")
        assert b'"input":' + text.encode() in answer.body
        assert b"secret" not in answer.body
        assert b"accessId" not in answer.body
        assert b'"input"' not in self.status("parked", job).body
        assert b'"input"' not in self.status("parked", job, "times").body

    @pytest.mark.parametrize("include", ["webhook", "Input", "input,s3Config", "times&include=input"])
    def test_wrong_names(self, include):
        job = self.server.run("parked", {})
        self.assert_refused(self.status("parked", job, include), 400, "include")

    def test_no_stream_of_events(self):
        job = self.server.run("parked", {})
        answer = self.server.request("GET", f"/v2/parked/status/{job}?include=times",
                                     headers={"Accept": "text/event-stream"})
        self.assert_refused(answer, 400, "include", "stream of events")


class ListTest(HttpTest):
    @pytest.fixture(scope="class")
    def server(self, class_server):
        return class_server(endpoint__echo__image="plugin/echo", endpoint__trial__image="plugin/trial",
                            endpoint__parked__image="plugin/echo", endpoint__parked__workersMax=0,
                            limits__enabled="true")

    def jobs(self, query):
        answer = self.server.request("GET", f"/v1/jobs?{query}")
        assert answer.status == 200, answer.body
        return answer.json()

    def ids(self, query):
        return [job["id"] for job in self.jobs(query)["jobs"]]

    def test_lists_show_times_and_key_and_no_input(self):
        key = self.server.new_key("client", name="lister")
        job = self.server.request("POST", "/v2/parked/run", {"input": {"hidden": 1}}, key=key["key"]).json()["id"]
        for listed in (self.jobs("endpoint=parked")["jobs"][0],
                       self.server.request("GET", "/v2/parked/requests").json()["requests"][0]):
            assert (listed["id"], listed["keyId"]) == (job, key["id"])
            assert TIME.match(listed["createdAt"])
            assert "input" not in listed

    def test_filters(self):
        keys = [self.server.new_key("client", name=f"filters {n}") for n in range(2)]
        jobs = [self.server.request("POST", "/v2/parked/run", {"input": {}}, key=keys[n % 2]["key"]).json()["id"]
                for n in range(4)]
        done = self.server.request("POST", "/v2/echo/runsync", {"input": {}}, key=keys[0]["key"]).json()["id"]
        assert self.ids(f"endpoint=parked&keyId={keys[0]['id']}") == [jobs[2], jobs[0]]
        assert self.ids(f"endpoint=parked&id={jobs[3][:20]}") == [jobs[3]]
        assert self.ids(f"endpoint=parked&status=IN_QUEUE&keyId={keys[1]['id']}&id={jobs[1]}") == [jobs[1]]
        assert self.ids(f"endpoint=parked&status=COMPLETED&keyId={keys[1]['id']}") == []
        assert self.ids(f"endpoint=echo&status=COMPLETED&keyId={keys[0]['id']}") == [done]
        first = self.jobs(f"endpoint=parked&keyId={keys[0]['id']}&limit=1")
        assert [job["id"] for job in first["jobs"]] == [jobs[2]]
        assert first["hasMore"] is True
        assert self.ids(f"endpoint=parked&keyId={keys[0]['id']}&cursor={first['cursor']}") == [jobs[0]]
        assert "cursor" not in self.jobs(f"endpoint=parked&keyId={keys[0]['id']}")

    def test_it_counts_towards_the_rate_of_status(self):
        status = self.server.request("GET", f"/v2/echo/status/{self.server.run('echo', {})}")
        listed = self.server.request("GET", "/v1/jobs?endpoint=echo")
        assert listed.headers["RateLimit-Limit"] == status.headers["RateLimit-Limit"]
        assert int(listed.headers["RateLimit-Remaining"]) < int(status.headers["RateLimit-Remaining"])

    @pytest.mark.parametrize("query, status, word", [
        ("", 400, "endpoint"), ("endpoint=nosuch", 404, "nosuch"), ("endpoint=echo&status=DONE", 400, "status"),
        ("endpoint=echo&limit=0", 400, "limit"), ("endpoint=echo&limit=101", 400, "limit"),
        ("endpoint=echo&cursor=x", 400, "cursor"), ("endpoint=echo&keyId=a&keyId=b", 400, "keyId"),
        ("endpoint=echo&id=a&id=b", 400, "id")])
    def test_refusals(self, query, status, word):
        self.assert_refused(self.server.request("GET", f"/v1/jobs?{query}"), status, word, member="message")

    def test_a_key_for_another_endpoint(self):
        key = self.server.new_key("client", endpoints=["echo"])
        assert self.server.request("GET", "/v1/jobs?endpoint=echo", key=key["key"]).status == 200
        self.assert_refused(self.server.request("GET", "/v1/jobs?endpoint=parked", key=key["key"]), 401, member="message")


class RateTest(HttpTest):
    def test_refusals_of_foreign_jobs_count(self, own_server):
        """A key that can only submit must not look for jobs without a bound."""
        server = own_server(limits__enabled="true", limits__status__requests=2, limits__status__perWorker=1)
        job, key = server.run("parked", {}), server.new_key("submit")["key"]
        answers = [server.request("GET", f"/v2/parked/status/{job}", key=key).status for _ in range(3)]
        assert answers == [404, 404, 429]


class FailureTest(HttpTest):
    def test_failures_outlive_other_results(self, own_server):
        server = own_server(retention__run="1s", retention__failed="1h")
        failed = server.run("trial", {"fail": "no"})
        done = server.run("trial", {})
        until(lambda: server.request("GET", f"/v2/trial/status/{done}").status == 404, "the result to expire")
        assert server.status("trial", failed)["status"] == "FAILED"

    def test_webhooks_by_state(self, own_server):
        """core/http/API.md, 10.4 and 10.6: `webhook.attempts`, and the deliveries of all endpoints in a state."""
        server = own_server(webhook__attempts=1, net__allowPrivate="true")
        jobs = {server.request("POST", f"/v2/{endpoint}/run", {"input": {}, "webhook": WEBHOOK}).json()["id"]
                for endpoint in ("echo", "trial")}

        def abandoned():
            rows = server.request("GET", "/v1/webhooks?state=abandoned").json()
            return {row["jobId"] for row in rows} == jobs and all(len(row["attempts"]) == 1 for row in rows)

        until(abandoned, "one attempt of each webhook")
        assert server.request("GET", "/v1/webhooks?state=owed").json() == []
        one = server.request("GET", "/v1/webhooks?state=abandoned&endpointId=echo").json()
        assert [row["endpointId"] for row in one] == ["echo"]
        assert server.request("GET", f"/v1/webhooks?state=owed&jobId={one[0]['jobId']}").json() == []
        for query in ("", "state=", "state=lost", "state=owed&state=owed"):
            self.assert_refused(server.request("GET", f"/v1/webhooks?{query}"), 400, "state", member="message")

"""Submitting jobs and asking for them: /run, /runsync, /status, /status-sync."""

import re
import time

import pytest

from http_case import HttpTest
from jobq_server import until
from pace import judge_pace

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"



class RunTest(HttpTest):
    def test_run_answers_the_id_and_in_queue(self):
        """core/http/API.md, "/run": the answer has only `id` and `status`; success is 200 JSON."""
        job = self.assert_job(self.server.request("POST", "/v2/echo/run", {"input": {"a": 1}}))
        assert set(job) == {"id", "status"}
        assert job["status"] == "IN_QUEUE"

    def test_run_id_is_a_uuid_with_u1(self):
        """core/http/API.md, "Ids": job id `<uuid>-u1`, with random bits, so never the same twice."""
        ids = [self.server.run("echo", {}) for _ in range(20)]
        for job in ids:
            assert re.search(rf"\A{UUID}-u1\Z", job)
        assert len(set(ids)) == len(ids)

    def test_runsync_id_starts_with_sync(self):
        """core/http/API.md, "Ids": job ids from `/runsync` are `sync-<uuid>-u1`."""
        job = self.assert_job(self.server.request("POST", "/v2/echo/runsync", {"input": {}}))
        assert re.search(rf"\Async-{UUID}-u1\Z", job["id"])

    def test_run_then_status_sync_gives_the_output(self):
        """core/http/API.md, "States and transitions": a worker picks the job, the handler succeeds, COMPLETED with
        `output`."""
        job = self.server.finished("echo", self.server.run("echo", {"text": "hello"}))
        assert job["status"] == "COMPLETED"
        assert job["output"] == {"text": "hello"}

    def test_runsync_answers_the_finished_job(self):
        """core/http/API.md, "/runsync": `/runsync` answers the job with output, delayTime, executionTime."""
        job = self.assert_job(self.server.request("POST", "/v2/echo/runsync?wait=10000", {"input": {"n": [1, 2]}}))
        assert set(job) == {"id", "status", "output", "delayTime", "executionTime", "workerId"}
        assert (job["status"], job["output"]) == ("COMPLETED", {"n": [1, 2]})

    @pytest.mark.parametrize("output", [{"deep": [{}]}, [1, None], "text", 7, True, None])
    def test_trial_returns_the_requested_output(self, output):
        """core/http/API.md, "Job object": the handler chooses the keys of `output`, which need not be an object."""
        job = self.assert_job(self.server.request("POST", "/v2/trial/runsync", {"input": {"output": output}}))
        assert "output" in job
        assert job["output"] == output

    def test_unknown_top_level_keys_are_ignored(self):
        """core/http/API.md, "Job request body": unknown top-level keys are ignored."""
        body = {"input": {}, "webhookV3": 3, "note": {"status": "FAILED"}, "id": "mine"}
        job = self.assert_job(self.server.request("POST", "/v2/echo/runsync", body))
        assert job["status"] == "COMPLETED"
        assert job["id"] != "mine"

    @pytest.mark.parametrize("body", [
        b'{"input":{},"input":{}}', b'{"input":{"a":1},"\\u0069nput":{}}', b'{"input":{},"x":1,"x":1}',
        b'{"policy":{},"input":{},"policy":{}}'])
    def test_duplicate_top_level_keys_are_refused(self, body):
        """core/http/API.md, "Job request body": a duplicate top-level key is 400, also when one of the two is spelt
        with an escape."""
        self.assert_refused(self.server.request("POST", "/v2/echo/run", body), 400)

    def test_a_refusal_does_not_repeat_the_body(self):
        """core/http/API.md, "Shape": an error is one sentence, even after very long words of the caller."""
        key = b"k" * 1_000_000
        twice = b'{"%b":1,"%b":1,"input":{}}' % (key, key)
        self.assert_refused(self.server.request("POST", "/v2/echo/run", twice), 400)
        webhook = b'{"input":{},"webhook":"' + key + b'"}'
        self.assert_refused(self.server.request("POST", "/v2/echo/run", webhook), 400, "webhook")

    @pytest.mark.parametrize("operation", ["run", "runsync"])
    @pytest.mark.parametrize("body", [
        b"{}", b'{"input":null}', b'{"input":[]}', b'{"input":"text"}', b'{"input":1}', b'{"input":true}',
        b'{"Input":{}}'])
    def test_input_must_be_an_object(self, body, operation):
        """core/http/API.md, "Job request body": `input` missing, null or not an object is 400."""
        self.assert_refused(self.server.request("POST", f"/v2/echo/{operation}", body), 400, "input")

    @pytest.mark.parametrize("operation", ["run", "runsync"])
    def test_unknown_keys_are_ignored_with_a_warning_and_near_ones_refused(self, operation):
        """core/http/API.md, "Job request body": the mount of public SDKs refuses no unknown key."""
        for mount in ("/v2", "/sdk/v2"):
            good = self.server.request("POST", f"{mount}/echo/{operation}", {"input": {}, "priority": 1, "id": "x"})
            assert good.status == 200
            assert good.headers["Warning"] == '299 jobq "unknown keys were ignored: priority, id"'
            plain = self.server.request("POST", f"{mount}/echo/{operation}", {"input": {}})
            assert "Warning" not in plain.headers
        near = {"input": {}, "webhok": "https://example.com"}
        self.assert_refused(self.server.request("POST", f"/v2/echo/{operation}", near), 400, "did you mean webhook?")
        assert self.server.request("POST", f"/sdk/v2/echo/{operation}", near).status == 200

    def test_form_content_type_is_read_as_json(self):
        """core/http/API.md, "Requests": bodies are JSON, also when clients send raw JSON under a form content type."""
        answer = self.server.request("POST", "/v2/echo/runsync", b'{"input":{"a":1}}',
                                     {"Content-Type": "application/x-www-form-urlencoded"})
        assert self.assert_job(answer)["output"] == {"a": 1}


class PolicyTest(HttpTest):
    def test_ranges_are_named(self, subtests):
        """core/http/API.md, "Policy": a value out of range is 400 naming the field and its range."""
        cases = [("executionTimeout", value, "5000|5 s") for value in (4999, 0, -1, 604800001, 10**30)]
        cases += [("ttl", value, "10000|10 s") for value in (9999, 0, -1, 604800001, 10**30)]
        for field, value, lower in cases:
            with subtests.test(field=field, value=value):
                answer = self.server.request("POST", "/v2/echo/run", {"input": {}, "policy": {field: value}})
                sentence = self.assert_refused(answer, 400, field)
                assert re.search(lower, sentence)
                assert re.search("604800000|7 d", sentence)

    def test_seconds_are_asked_about(self):
        """core/http/API.md, "Answers": a duration that is too small in milliseconds and good in seconds."""
        submission = {"input": {}, "policy": {"executionTimeout": 60}}
        for path, body in (("/v2/echo/run", submission), ("/v2/echo/runsync?wait=60", {"input": {}}),
                           ("/v1/endpoints", {"templateId": "t", "executionTimeoutMs": 60})):
            answer = self.server.request("POST", path, body)
            assert answer.status == 400
            assert b"; you sent 60: milliseconds?" in answer.body

    def test_types_are_checked(self, subtests):
        """core/http/API.md, "Policy": integers of milliseconds and a boolean; a malformed parameter is 400."""
        for field, value in (("executionTimeout", "5000"), ("executionTimeout", 5000.5), ("executionTimeout", []),
                             ("ttl", "10000"), ("ttl", 10000.5), ("ttl", True), ("ttl", {}),
                             ("lowPriority", "true"), ("lowPriority", 1), ("lowPriority", [])):
            with subtests.test(field=field, value=value):
                answer = self.server.request("POST", "/v2/echo/run", {"input": {}, "policy": {field: value}})
                self.assert_refused(answer, 400, field)
        for policy in ([], "fast", 5, True):
            with subtests.test(policy=policy):
                self.assert_refused(self.server.request("POST", "/v2/echo/run", {"input": {}, "policy": policy}), 400,
                                    "policy")

    @pytest.mark.parametrize("policy", [
        {"executionTimeout": 5000, "ttl": 10000}, {"executionTimeout": 604800000, "ttl": 604800000},
        {"lowPriority": False}, {}])
    def test_the_ends_of_the_ranges_are_accepted(self, policy):
        """core/http/API.md, "Policy": executionTimeout 5 s to 7 d, ttl 10 s to 7 d, both ends included."""
        answer = self.server.request("POST", "/v2/echo/runsync", {"input": {}, "policy": policy})
        assert self.assert_job(answer)["status"] == "COMPLETED"


class PrivateFieldsTest(HttpTest):
    S3 = {"accessId": "id-5ad1", "accessSecret": "secret-77c1", "bucketName": "bucket-99e2",
          "endpointUrl": "https://s3.example"}
    HOOK = "http://127.0.0.1:9/hook-31f7"

    def test_private_fields_are_never_echoed(self):
        """core/http/API.md, "Job object": `/status` never echoes `input`, `webhook` or `s3Config`."""
        body = {"input": {"output": 1, "own": "input-8c11"}, "s3Config": self.S3, "webhook": self.HOOK}
        answers = [self.server.request("POST", "/v2/trial/runsync", body)]
        job = self.assert_job(answers[0])["id"]
        answers.append(self.server.request("POST", "/v2/trial/run", body))
        answers += [self.server.request("GET", f"/v2/trial/{operation}/{job}")
                    for operation in ("status", "status-sync")]
        for answer in answers:
            self.assert_job(answer)
            for word in (b"id-5ad1", b"secret-77c1", b"bucket-99e2", b"s3.example", b"hook-31f7", b"input-8c11"):
                assert word not in answer.body

    @pytest.mark.parametrize("config", [
        "text", [], 1, True, {"accessId": 1}, {"accessSecret": {}}, {"bucketName": []}, {"endpointUrl": False}])
    def test_s3_config_types(self, config):
        """core/http/API.md, "s3Config": an object of strings; any other value is a malformed parameter, 400."""
        self.assert_refused(self.server.request("POST", "/v2/echo/run", {"input": {}, "s3Config": config}), 400,
                            "s3Config")

    @pytest.mark.parametrize("hook", [
        1, [], {}, True, "text", "/hook", "ftp://host.example/x", "http://", "http:///path", "//host.example/x",
        "javascript:alert(1)"])
    def test_webhook_must_be_an_absolute_http_url(self, hook):
        """core/http/API.md, "Webhook URLs": not an absolute http or https URL with a host: 400 at submission."""
        self.assert_refused(self.server.request("POST", "/v2/echo/run", {"input": {}, "webhook": hook}), 400,
                            "webhook")

    @pytest.mark.parametrize("host", [
        "169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[::ffff:169.254.169.254]"])
    def test_webhook_to_a_forbidden_address(self, host):
        """core/http/API.md, "Webhook URLs": a literal forbidden address is 400; link-local, 0/8 and multicast always
        are."""
        body = {"input": {}, "webhook": f"http://{host}/hook"}
        self.assert_refused(self.server.request("POST", "/v2/echo/run", body), 400, "webhook")


class StatusTest(HttpTest):
    @pytest.mark.endpoints("parked")
    def test_queued_job_has_no_times(self):
        """core/http/API.md, "Job object": `delayTime` from IN_PROGRESS on; `output` only when there is one."""
        job = self.server.run("parked", {"a": 1})
        answer = self.assert_job(self.server.request("GET", f"/v2/parked/status/{job}"))
        assert (answer["id"], answer["status"]) == (job, "IN_QUEUE")
        assert not {"delayTime", "executionTime", "output", "error", "retries"} & set(answer), answer
        self.assert_job(self.server.request("POST", f"/v2/parked/cancel/{job}"))

    def test_running_job_has_delay_time_only(self):
        """core/http/API.md, "Job object": delayTime from IN_PROGRESS on, executionTime only on terminal answers."""
        job = self.server.run("trial", {"sleepMs": 600_000})
        answer = until(lambda: self._if_in(job, "IN_PROGRESS"), "the job runs")
        assert type(answer["delayTime"]) is int
        assert not {"executionTime", "output", "error"} & set(answer), answer
        self.assert_job(self.server.request("POST", f"/v2/trial/cancel/{job}"))

    def _if_in(self, job, state):
        answer = self.server.status("trial", job)
        return answer if answer["status"] == state else None

    def test_finished_job_has_both_times_and_its_worker(self):
        """core/http/API.md, "Job object": integer milliseconds, submission to taken and taken to terminal, with
        workerId."""
        job = self.server.finished("trial", self.server.run("trial", {"sleepMs": 300}))
        for field in ("delayTime", "executionTime"):
            assert type(job[field]) is int, job
        assert job["delayTime"] >= 0
        assert job["executionTime"] >= 300, job
        judge_pace("a job that sleeps 300 ms", job["executionTime"] / 1000, 5)
        assert re.search(r"\A[A-Za-z0-9_-]+\Z", job["workerId"])
        assert "retries" not in job, "retries only when above 0"

    def test_delay_time_counts_the_queue(self, own_server):
        """core/http/API.md, "Job object": delayTime is the time from submission to execution, here behind another
        job."""
        server = own_server(**{"endpoint.trial.workersMax": 1})
        started = time.monotonic()
        jobs = [server.run("trial", {"sleepMs": 400, "n": n}) for n in range(2)]
        between = (time.monotonic() - started) * 1000
        first, second = (server.finished("trial", job) for job in jobs)
        in_front = first["delayTime"] + first["executionTime"]
        assert first["executionTime"] >= 390
        assert second["delayTime"] >= in_front - between - 3, "each of the three times is rounded to milliseconds"
        assert first["workerId"] == second["workerId"]

    def test_get_and_post_answer_the_same(self):
        """core/http/API.md, "Requests": `/status` and `/status-sync` accept GET and POST."""
        job = self.server.run("echo", {"a": [1.0, {}]})
        self.server.finished("echo", job)
        answers = [self.server.request(method, f"/v2/echo/{operation}/{job}") for method in ("GET", "POST")
                   for operation in ("status", "status-sync")]
        for answer in answers:
            self.assert_job(answer)
            assert answer.body == answers[0].body

    def test_post_bodies_are_ignored(self, subtests):
        """core/http/API.md, "Requests": POST bodies that carry no parameters may be empty, `{}` or anything."""
        job = self.server.run("echo", {"a": 1})
        self.server.finished("echo", job)
        for body in (b"", b"{}", b"[]", b"not JSON", b"\x00\xff" * 50, b'{"id":"other"}', b" " * 100_000):
            for operation in ("status", "status-sync"):
                with subtests.test(body=body[:20], operation=operation):
                    answer = self.server.request("POST", f"/v2/echo/{operation}/{job}", body)
                    assert self.assert_job(answer)["status"] == "COMPLETED"

    def test_an_ignored_body_is_not_the_next_request(self):
        """core/http/API.md, "Requests": POST bodies are ignored; the next bytes on the connection are a request."""
        job = self.server.run("echo", {"a": 1})
        self.server.finished("echo", job)
        connection = self.server.connect()
        self.at_end.callback(connection.close)
        for body in (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"x" * 3000):
            answer = self.server.request("POST", f"/v2/echo/status/{job}", body, connection=connection)
            assert self.assert_job(answer)["id"] == job
        answer = self.server.request("GET", f"/v2/echo/status/{job}", connection=connection)
        assert self.assert_job(answer)["id"] == job

    def test_unknown_jobs_are_404(self, subtests):
        """core/http/API.md, "Statuses": 404 Not Found; a job of another endpoint is absent."""
        job = self.server.run("echo", {})
        paths = [f"/v2/trial/{{}}/{job}", "/v2/echo/{}/00000000-0000-4000-8000-000000000000-u1", "/v2/echo/{}/nothing",
                 "/v2/echo/{}/a.b%20c", f"/v2/echo/{{}}/{job}x", f"/v2/echo/{{}}/{job.upper()}"]
        for path in paths:
            for operation in ("status", "status-sync"):
                with subtests.test(path=path.format(operation)):
                    self.assert_refused(self.server.request("GET", path.format(operation)), 404)


class FailureTest(HttpTest):
    def test_failed_job_is_a_200_with_a_string_error(self, subtests):
        """core/http/API.md, "/runsync": `/runsync` whose job FAILED answers 200 with the job; `error` is always a
        string."""
        before = self.server.health("trial")["jobs"]["failed"]
        for how in ("fail", "throw"):
            with subtests.test(how=how):
                answer = self.server.request("POST", "/v2/trial/runsync", {"input": {how: 'no "luck" \u00e9\n'}})
                job = self.assert_job(answer)
                assert (job["status"], job["error"]) == ("FAILED", 'no "luck" \u00e9\n')
                assert "output" not in job
                for field in ("delayTime", "executionTime"):
                    assert type(job[field]) is int
                assert job["workerId"] != ""
                assert self.server.status("trial", job["id"]) == job
        assert self.server.health("trial")["jobs"]["failed"] == before + 2

    def test_a_worker_goes_on_after_a_failure(self, own_server):
        """core/README.md: a failing job is an outcome, never a server error."""
        server = own_server(**{"endpoint.trial.workersMax": 1})
        assert server.finished("trial", server.run("trial", {"throw": "x"}))["status"] == "FAILED"
        assert server.finished("trial", server.run("trial", {}))["status"] == "COMPLETED"


class HealthTest(HttpTest):
    JOBS = {"completed", "failed", "inProgress", "inQueue", "retried"}
    WORKERS = {"idle", "initializing", "ready", "running", "throttled", "unhealthy"}

    WEBHOOKS = {"owed", "oldestMs"}

    def test_health_has_every_counter_as_an_integer(self):
        """core/http/API.md, "/health": every counter, with the worker counters for public clients, and the webhooks
        owed to receivers."""
        health = self.assert_job(self.server.request("GET", "/v2/echo/health"))
        assert set(health) == {"jobs", "webhooks", "workers"}
        assert set(health["jobs"]) == self.JOBS
        assert set(health["webhooks"]) == self.WEBHOOKS
        assert set(health["workers"]) == self.WORKERS
        for group in health.values():
            for counter in group.values():
                assert type(counter) is int
                assert counter >= 0

    def test_counters_follow_the_jobs(self, own_server):
        """core/http/API.md, "/health": completed counts since the endpoint's creation; inQueue and inProgress show the
        present."""
        server = self.server = own_server(**{"endpoint.trial.workersMax": 1})
        long, *jobs = [server.run("trial", {"sleepMs": milliseconds}) for milliseconds in (600_000, 0, 0, 0)]
        during = until(lambda: self._with_running(server), "a job runs")
        assert (during["jobs"]["inProgress"], during["jobs"]["inQueue"]) == (1, 3)
        assert during["workers"]["running"] == 1
        self.assert_job(server.request("POST", f"/v2/trial/cancel/{long}"))
        for job in jobs:
            server.finished("trial", job)
        after = server.health("trial")["jobs"]
        assert after == {"completed": 3, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 0}

    @staticmethod
    def _with_running(server):
        health = server.health("trial")
        return health if health["jobs"]["inProgress"] and health["workers"]["running"] else None

    def test_process_health_needs_no_key(self):
        """core/http/API.md, "The process": `GET /healthz` (alive) and `GET /readyz` (ready), without a key."""
        for path, word in (("/healthz", "alive"), ("/readyz", "ready")):
            answer = self.server.request("GET", path, key=None)
            assert self.assert_job(answer) == {"status": word}

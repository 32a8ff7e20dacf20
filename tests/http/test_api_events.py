"""core/http/API.md, "Webhooks": the receivers, the content of a call, and its record.

Rules of long times (10 s between attempts, 24 h of records) are proved in process, on a manual clock.
"""

import os
import re
import socket
import time

import pytest

from http_case import HttpTest
from jobq_server import is_foreign, until
from webhook_receiver import WebhookReceiver

KIB = 1024


def values(answer):
    """Every scalar in a JSON answer, wherever it stands."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list):
        return [value for item in answer for value in values(item)]
    return [answer]


@pytest.mark.endpoints("echo", "trial", "parked")
class EventTest(HttpTest):
    @pytest.fixture(autouse=True)
    def near_by(self, question):
        if is_foreign() and self.server.address[0] not in ("127.0.0.1", "localhost"):
            pytest.skip("the server is elsewhere and cannot call a receiver on 127.0.0.1")

    def receiver(self, answers=None):
        return self.at_end.enter_context(WebhookReceiver(answers))

    def secret(self):
        """Returns the secret of the Standard Webhooks from any member of the answer: the prefix identifies the
        secret."""
        answer = self.server.request("GET", "/v1/webhooks/secret")
        assert answer.status == 200, answer.body
        return next(value for value in values(answer.json()) if isinstance(value, str) and value.startswith("whsec_"))

    def listed(self, job):
        """Returns the recorded calls for a job."""
        answer = self.server.request("GET", f"/v1/webhooks?jobId={job}")
        assert answer.status == 200, answer.body
        self.assert_json(answer)
        return answer.json()

    def recorded(self, job, value):
        """The records of a job once they hold `value`."""
        return until(lambda: value in values(listed := self.listed(job)) and listed, f"{value!r} is recorded")


class CallTest(EventTest):
    def test_method_headers_and_body(self):
        """core/http/API.md, "Webhook request": POST, application/json; the body is the /status object plus `input` and
        `webhook`."""
        receiver = self.receiver()
        hook = receiver.url("/hook?who=me")
        job_input = {"b": 1.5, "a": [None, "\u00e9"]}
        job = self.server.runsync("echo", job_input, webhook=hook)
        call = receiver.wait(path="/hook?who=me")[0]
        assert call.method == "POST"
        assert call.headers["Content-Type"].split(";")[0] == "application/json"
        assert call.headers["Host"] == f"127.0.0.1:{receiver.port}"
        assert call.json() == {**job, "input": job_input, "webhook": hook}
        assert call.json() == {**self.server.status("echo", job["id"]), "input": job_input, "webhook": hook}

    def test_the_callers_bytes(self):
        """core/http/API.md, "Webhook request": `input` and `output` are the caller's bytes in the webhook too."""
        receiver = self.receiver()
        raw = b'{"z":1.0,"a":-0,"n":1234567890123456789012345,"s":"\\u2028"}'
        body = b'{"webhook":"' + receiver.url().encode() + b'","input":' + raw + b"}"
        self.assert_job(self.server.request("POST", "/v2/echo/run", body))
        assert receiver.wait()[0].body.count(raw) == 2

    def test_every_terminal_state(self, subtests):
        """core/http/API.md, "When a webhook is called": on COMPLETED, FAILED, CANCELLED, once each (TIMED_OUT:
        test_api_states.py)."""
        server = self.server
        receiver = self.receiver()
        waiting = server.run("parked", {}, webhook=receiver.url())
        server.request("POST", f"/v2/parked/cancel/{waiting}")
        running = server.run("trial", {"sleepMs": 600000}, webhook=receiver.url())
        until(lambda: server.status("trial", running)["status"] == "IN_PROGRESS", "the job runs")
        server.request("POST", f"/v2/trial/cancel/{running}")
        for job_input in ({"output": 1}, {"fail": "no luck"}):
            server.runsync("trial", job_input, webhook=receiver.url())
        bodies = [call.json() for call in receiver.wait(4)]
        assert sorted(body["status"] for body in bodies) == ["CANCELLED", "CANCELLED", "COMPLETED", "FAILED"]
        assert len({body["id"] for body in bodies}) == 4
        for body in bodies:
            with subtests.test(body["status"]):
                endpoint = "parked" if body["id"] == waiting else "trial"
                status = {key: value for key, value in body.items() if key not in ("input", "webhook")}
                assert status == server.status(endpoint, body["id"])
        failed = next(body for body in bodies if body["status"] == "FAILED")
        assert failed["error"] == "no luck"

    def test_no_event_before_the_end_or_on_a_purge(self, own_server):
        """core/http/API.md, "When a webhook is called": called when the job ends, and at no other event; not on purge
        or expiry."""
        server = self.server = own_server()
        receiver = self.receiver()
        purged = server.run("parked", {"what": "purged"}, webhook=receiver.url())
        expired = server.run("parked", {"what": "expired"}, webhook=receiver.url())
        server.request("GET", f"/v2/parked/status/{expired}?ttl=1000")
        until(lambda: server.request("GET", f"/v2/parked/status/{expired}").status == 404, "the job expires")
        assert server.request("POST", "/v2/parked/purge-queue").status == 200
        silent = server.run("echo", {})  # without a webhook
        job = server.run("trial", {"progress": [1, 2], "chunks": 2, "sleepMs": 50}, webhook=receiver.url())
        assert receiver.wait()[0].json()["id"] == job
        assert server.finished("echo", silent)["status"] == "COMPLETED"
        assert [call.json()["status"] for call in receiver.calls] == ["COMPLETED"]
        for absent in (purged, expired, silent):
            assert absent not in values(self.listed(absent))

    def test_each_end_has_a_separate_call(self):
        """core/http/API.md, "When a webhook is called": written with the outcome, so a retried job has a call for each
        of its ends."""
        receiver = self.receiver()
        job = self.server.runsync("trial", {"fail": "no"}, webhook=receiver.url())["id"]
        receiver.wait(1)
        self.server.request("POST", f"/v2/trial/retry/{job}")
        first, second = receiver.wait(2)
        assert (first.json()["id"], second.json()["id"]) == (job, job)
        assert "retries" not in first.json()
        assert second.json()["retries"] == 1
        assert first.headers["webhook-id"] != second.headers["webhook-id"]

    def test_the_second_name(self):
        """core/http/API.md, "Job request body": `webhookV2` is used only if `webhook` is absent."""
        receiver = self.receiver()
        for body in ({"webhookV2": receiver.url("/v2")}, {"webhook": receiver.url("/v1"), "webhookV2": receiver.url()}):
            self.assert_job(self.server.request("POST", "/v2/echo/runsync", {"input": {}, **body}))
        assert receiver.wait(path="/v2")[0].json()["status"] == "COMPLETED"
        assert receiver.wait(path="/v1")[0].json()["webhook"] == receiver.url("/v1")
        assert len(receiver.calls) == 2

    def test_secrets_stay_here(self):
        """core/http/API.md, "Webhook request": never `s3Config`, nor the caller's key."""
        receiver = self.receiver()
        s3 = {"accessId": "id-6c20", "accessSecret": "secret-b7e8", "bucketName": "bucket-41aa",
              "endpointUrl": "https://s3.example"}
        self.server.runsync("echo", {}, webhook=receiver.url(), s3Config=s3)
        call = receiver.wait()[0]
        told = call.body + str(call.headers).encode()
        for word in ("s3Config", *s3.values(), self.server.key):
            assert word.encode() not in told


class SignatureTest(EventTest):
    def test_standard_webhooks(self):
        """core/http/API.md, "Webhook signature": signed with `webhook-id`, `webhook-timestamp`, `webhook-signature:
        v1,...`."""
        receiver = self.receiver()
        begun = int(time.time())
        self.server.runsync("echo", {"text": "\u00e9\U0001f600"}, webhook=receiver.url())
        call = receiver.wait()[0]
        assert re.search(r"\A[^.\s]\S*\Z", call.headers["webhook-id"])
        assert re.search(r"\A\d{10}\Z", call.headers["webhook-timestamp"])
        assert begun <= int(call.headers["webhook-timestamp"]) <= time.time(), "seconds, of the call"
        assert re.search(r"\Av1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*\Z", call.headers["webhook-signature"])
        secret = self.secret()
        assert call.is_signed_with(secret)
        call.body += b" "
        assert not call.is_signed_with(secret), "the check sees a changed body"

    def test_the_configured_secret(self, own_server):
        """core/http/API.md, "Webhook signature": the secret is `webhook.secret` where it is set."""
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        server = self.server = own_server(webhook__secret=secret)
        receiver = self.receiver()
        server.runsync("echo", {}, webhook=receiver.url())
        assert receiver.wait()[0].is_signed_with(secret)
        assert secret not in server.log()

    def test_the_secret_of_an_endpoint(self, own_server):
        """core/http/API.md, "Webhook signature": secret per endpoint, before that of the server."""
        theirs, ours = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
        server = self.server = own_server(webhook__secret=theirs, endpoint__echo__webhookSecret=ours)
        receiver = self.receiver()
        server.runsync("echo", {}, webhook=receiver.url("/echo"))
        server.runsync("trial", {}, webhook=receiver.url("/trial"))
        for path, signed, unsigned in (("/echo", ours, theirs), ("/trial", theirs, ours)):
            call = receiver.wait(path=path)[0]
            assert (call.is_signed_with(signed), call.is_signed_with(unsigned)) == (True, False)

    def test_the_generated_secret(self, own_server):
        """core/http/API.md, "Webhook signature"; core/decisions/auth.md: without another secret one is generated and
        kept in storage, encrypted at rest."""
        server = self.server = own_server()
        secret = self.secret()
        assert len(secret) >= len("whsec_") + 32
        server.restart()
        assert self.secret() == secret
        receiver = self.receiver()
        server.runsync("echo", {}, webhook=receiver.url())
        assert receiver.wait()[0].is_signed_with(secret)
        server.stop()
        for folder, _, names in os.walk(server.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    assert secret.removeprefix("whsec_").encode() not in file.read(), name
        assert secret not in server.log()
        other = self.server = own_server()
        assert self.secret() != secret
        assert other is not server


class RecordTest(EventTest):
    def test_an_attempt_is_recorded(self):
        """core/http/API.md, "Webhook attempts": every attempt is recorded: status, duration, first 1 KiB of the
        reply."""
        receiver = self.receiver({"/hook": (202, {}, b"thanks-5f1c-" + b"y" * 5000)})
        job = self.server.runsync("echo", {}, webhook=receiver.url())["id"]
        listed = self.recorded(job, 202)
        texts = [value for value in values(listed) if isinstance(value, str) and "thanks-5f1c-" in value]
        assert texts == ["thanks-5f1c-" + "y" * (KIB - len("thanks-5f1c-"))]
        assert re.search(r"(?i)duration", str(listed))
        assert len(receiver.calls) == 1, "any 2xx is success, so it is not called again"

    def test_a_failure_is_recorded(self):
        """core/http/API.md, "Webhook attempts": a failed call is tried again, 10 s later and no sooner; the answer is
        recorded."""
        receiver = self.receiver({"/hook": (503, {}, b"later-77aa")})
        job = self.server.runsync("echo", {}, webhook=receiver.url())
        listed = self.recorded(job["id"], 503)
        assert "later-77aa" in values(listed)
        assert len(receiver.calls) == 1
        assert self.server.status("echo", job["id"]) == job, "the job is not affected"

    def test_a_redirect_is_a_failure(self):
        """core/http/API.md, "Webhook attempts": redirects are failures and are not followed."""
        receiver = self.receiver()
        receiver.answers["/hook"] = (307, {"Location": receiver.url("/elsewhere")}, b"")
        job = self.server.runsync("echo", {}, webhook=receiver.url())["id"]
        self.recorded(job, 307)
        assert [call.path for call in receiver.calls] == ["/hook"]

    def test_replay(self):
        """core/http/API.md, "Deliveries over REST": attempts can be listed and replayed: the same call goes out
        again."""
        receiver = self.receiver()
        job = self.server.runsync("echo", {"a": 1}, webhook=receiver.url())["id"]
        first = receiver.wait(1)[0]
        self.recorded(job, 200)
        delivery = first.headers["webhook-id"]
        answer = self.server.request("POST", f"/v1/webhooks/{delivery}/replay")
        assert answer.status == 200, answer.body
        second = receiver.wait(2)[1]
        assert (second.body, second.headers["webhook-id"]) == (first.body, delivery)
        assert second.is_signed_with(self.secret())
        self.assert_refused(self.server.request("POST", "/v1/webhooks/nothing/replay"), 404, member="message")

    def test_only_admins_may_look(self, subtests):
        """core/http/API.md, "Webhook signature": only admins read the secret, under `/v1`."""
        key = self.server.new_key("client")
        self.at_end.callback(lambda: self.server.request("DELETE", f"/v1/keys/{key['id']}"))
        for method, path in (("GET", "/v1/webhooks/secret"), ("GET", "/v1/webhooks?jobId=x"),
                             ("POST", "/v1/webhooks/x/replay")):
            with subtests.test(path=path):
                self.assert_refused(self.server.request(method, path, key=key["key"]), 401, member="message")


class BoundTest(EventTest):
    """core/decisions/webhooks.md: webhook.maxAge and webhook.maxOwed, for webhooks that wait because their receiver hangs."""

    JOBS = 100  # more than calls at once, so that some wait

    def owe(self, server):
        """Jobs that have ended, and whose receiver takes calls and says nothing."""
        silent = self.at_end.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2 * self.JOBS))
        hook = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        jobs = [server.run("echo", {}, webhook=hook) for _ in range(self.JOBS)]
        for job in jobs:
            assert server.finished("echo", job)["status"] == "COMPLETED"
        return jobs

    def abandoned(self, server, setting):
        """The records of the deliveries that were given up for that setting, once there is one."""
        def listed():
            rows = server.request("GET", "/v1/webhooks?endpointId=echo&limit=1000").json()
            return [row for row in rows if any(setting in attempt["reason"] for attempt in row["attempts"])]
        return until(listed, f"a webhook is given up because of {setting}")

    def test_health_says_how_much_is_owed_and_for_how_long(self, own_server):
        """Owed until its last call has ended: 10 s at least."""
        server = own_server()
        assert server.health("echo")["webhooks"] == {"owed": 0, "oldestMs": 0}
        began = time.monotonic()
        self.owe(server)
        owed = server.health("echo")["webhooks"]
        assert owed["owed"] == self.JOBS
        until(lambda: server.health("echo")["webhooks"]["oldestMs"] > owed["oldestMs"], "the oldest grows older")
        assert server.health("echo")["webhooks"]["oldestMs"] <= (time.monotonic() - began) * 1000 + 1000
        assert server.health("trial")["webhooks"] == {"owed": 0, "oldestMs": 0}
        server.restart()
        assert server.health("echo")["webhooks"]["owed"] == self.JOBS

    @pytest.mark.parametrize(("setting", "value"), [("maxAge", "1s"), ("maxOwed", 5)])
    def test_a_waiting_delivery_is_given_up_with_the_reason(self, own_server, setting, value):
        """A failed delivery with the reason; the job keeps its outcome, and a replay is accepted."""
        server = own_server(**{f"webhook.{setting}": value})
        jobs = self.owe(server)
        given = self.abandoned(server, f"webhook.{setting}")
        assert {row["state"] for row in given} == {"abandoned"}
        assert all(f"webhook.{setting}" in row["attempts"][-1]["reason"] for row in given)
        assert min(len(row["attempts"]) for row in given) == 1, "one that waited was never called"
        assert server.health("echo")["webhooks"]["owed"] <= self.JOBS - len(given)
        for row in given:
            assert row["jobId"] in jobs
            assert server.status("echo", row["jobId"])["status"] == "COMPLETED"
        assert server.request("POST", f"/v1/webhooks/{given[0]['id']}/replay").json()["state"] == "owed"


class AddressTest(EventTest):
    def test_forbidden_addresses(self, own_server, subtests):
        """core/http/API.md, "Webhook URLs": loopback, private, 100.64/10, fc00::/7 and the NAT64 forms: 400 at
        submission."""
        self.server = own_server(net__allowPrivate="false")
        for host in ("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
                     "100.127.255.255", "[::1]", "[fc00::1]", "[fdff::1]", "[fe80::1]", "[::ffff:127.0.0.1]",
                     "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "169.254.169.254", "0.0.0.0",
                     "0.1.2.3", "224.0.0.1", "239.1.1.1", "[ff02::1]", "255.255.255.255"):
            with subtests.test(host=host):
                body = {"input": {}, "webhook": f"http://{host}/hook"}
                self.assert_refused(self.server.request("POST", "/v2/echo/run", body), 400, "webhook")
        for host in ("172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "198.20.0.1"):
            with subtests.test(host=host):
                body = {"input": {}, "webhook": f"http://{host}/hook"}
                self.assert_job(self.server.request("POST", "/v2/parked/run", body))

    def test_a_name_leading_to_a_forbidden_address(self, own_server):
        """core/http/API.md, "Webhook URLs": the check is made on the connected address, so no name leads to a forbidden
        address."""
        server = self.server = own_server(net__allowPrivate="false")
        receiver = self.receiver()
        job = server.runsync("echo", {}, webhook=receiver.url(host="localhost"))["id"]
        until(lambda: re.search(r"(?i)127\.0\.0\.1|::1|forbidden|private|allowPrivate", str(self.listed(job))),
              "the attempt is recorded with its reason")
        assert receiver.calls == []

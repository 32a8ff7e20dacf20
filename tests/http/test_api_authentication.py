"""core/http/API.md, "Keys and scopes": each route asks for a key, in each form, and callers without permission read
401."""

import pytest

from http_case import HttpTest

QUEUE = [("POST", "run"), ("POST", "runsync"), ("GET", "status/x"), ("POST", "status/x"), ("GET", "status-sync/x"),
         ("POST", "status-sync/x"), ("GET", "stream/x"), ("POST", "stream/x"), ("POST", "cancel/x"),
         ("POST", "retry/x"), ("POST", "purge-queue"), ("GET", "health"), ("GET", "requests")]
ADMIN = [("POST", "/v1/keys"), ("GET", "/v1/keys"), ("DELETE", "/v1/keys/x"), ("GET", "/v1/plugins"), ("GET", "/v1/nodes"),
         ("POST", "/v1/nodes/x/drain"), ("POST", "/v1/nodes/x/resume"),
         ("GET", "/v1/webhooks?jobId=x"), ("POST", "/v1/webhooks/x/replay"), ("GET", "/v1/webhooks/secret")]


def queue_routes(endpoint="echo"):
    return [(method, f"{mount}/{endpoint}/{path}") for mount in ("/v2", "/sdk/v2") for method, path in QUEUE]


EVERY_ROUTE = [(*route, "error") for route in queue_routes()] + [(*route, "message") for route in ADMIN]


@pytest.mark.endpoints("echo")
class KeyOnEveryRouteTest(HttpTest):
    def ask(self, method, path, value, name="Authorization"):
        """Returns the answer of the route to this header. The request has no header if `value` is None."""
        body = b'{"input":1}' if method == "POST" else None  # never a job, only a 400 for callers with permission
        return self.server.request(method, path, body, headers={} if value is None else {name: value}, key=None)

    @pytest.mark.parametrize("method, path, member", EVERY_ROUTE)
    def test_no_key(self, method, path, member):
        """core/http/API.md, "Sending a key": every request carries an API key."""
        self.assert_refused(self.ask(method, path, None), 401, member=member)

    @pytest.mark.parametrize("method, path, member", EVERY_ROUTE)
    @pytest.mark.parametrize("form", ["wrong", "Bearer wrong", "Bearer SHORT"])
    def test_an_invalid_key(self, form, method, path, member):
        """core/http/API.md, "Sending a key": an invalid key gives 401, in both forms."""
        value = form.replace("SHORT", self.server.key[:-1])
        self.assert_refused(self.ask(method, path, value), 401, member=member)

    def test_both_forms(self, subtests):
        """core/http/API.md, "Sending a key": queue API requests come with `Bearer <API_KEY>` and with the bare
        `<API_KEY>`."""
        key = self.server.new_key("admin")["key"]
        for name in ("authorization", "Authorization"):
            for value in (key, f"Bearer {key}"):
                for method, path in [*queue_routes(), ("GET", "/v1/keys"), ("GET", "/v1/webhooks?jobId=x")]:
                    if path.endswith("purge-queue"):
                        continue  # a foreign server counts these; the test above has asked
                    with subtests.test(method=method, path=path, name=name, bare=value == key):
                        assert self.ask(method, path, value, name).status in (200, 400, 404)


@pytest.mark.endpoints("echo", "trial")
class PermissionTest(HttpTest):
    def key(self, *scopes, **fields):
        key = self.server.new_key(*scopes, **fields)
        self.at_end.callback(lambda: self.server.request("DELETE", f"/v1/keys/{key['id']}"))
        return key["key"]

    def assert_all(self, subtests, key, routes, permitted, member="error"):
        for method, path in routes:
            if permitted and path.endswith("purge-queue"):
                continue
            with subtests.test(method=method, path=path):
                answer = self.server.request(method, path, b'{"input":1}' if method == "POST" else None, key=key)
                if permitted:
                    assert answer.status in (200, 204, 400, 404), answer.body
                else:
                    self.assert_refused(answer, 401, member=member)

    def test_a_key_without_permission(self, subtests):
        """core/http/API.md, "Scopes": a key without permission also gives 401."""
        client, worker = self.key("client"), self.key("worker")
        self.assert_all(subtests, client, queue_routes(), True)
        self.assert_all(subtests, client, ADMIN, False, member="message")
        self.assert_all(subtests, worker, queue_routes(), False)
        self.assert_all(subtests, worker, ADMIN, False, member="message")

    def test_a_key_of_another_endpoint(self, subtests):
        """core/http/API.md, "Scopes": a scope bound to endpoints gives no permission elsewhere: 401."""
        key = self.key("client", endpoints=["echo"])
        self.assert_all(subtests, key, queue_routes("echo"), True)
        self.assert_all(subtests, key, queue_routes("trial"), False)

    @pytest.mark.endpoints("parked")
    def test_purging_needs_permission(self):
        """core/http/API.md, "Scopes": a refused caller of /purge-queue has purged no job."""
        job = self.server.run("parked", {})
        for mount in ("/v2", "/sdk/v2"):
            answer = self.server.request("POST", f"{mount}/parked/purge-queue", key=self.key("worker"))
            self.assert_refused(answer, 401)
        assert self.server.status("parked", job)["status"] == "IN_QUEUE"
        answer = self.server.request("POST", "/v2/parked/purge-queue", key=self.key("client"))
        assert self.assert_job(answer)["removed"] >= 1

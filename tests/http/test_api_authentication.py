"""api.md, "Authentication": each route asks for a key, in each form, and who may not is told 401."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import HttpTest  # noqa: E402

QUEUE = [("POST", "run"), ("POST", "runsync"), ("GET", "status/x"), ("POST", "status/x"), ("GET", "status-sync/x"),
         ("POST", "status-sync/x"), ("GET", "stream/x"), ("POST", "stream/x"), ("POST", "cancel/x"),
         ("POST", "retry/x"), ("POST", "purge-queue"), ("GET", "health"), ("GET", "requests")]
ADMIN = [("POST", "/v1/keys"), ("GET", "/v1/keys"), ("DELETE", "/v1/keys/x"), ("GET", "/v1/plugins"),
         ("GET", "/v1/webhooks?jobId=x"), ("POST", "/v1/webhooks/x/replay"), ("GET", "/v1/webhooks/secret")]


def queue_routes(endpoint="echo"):
    return [(method, f"{mount}/{endpoint}/{path}") for mount in ("/v2", "/sdk/v2") for method, path in QUEUE]


class KeyOnEveryRouteTest(HttpTest):
    needs = ("echo",)

    def ask(self, method, path, value, name="Authorization"):
        """What the route says to this header; None sends none."""
        body = b'{"input":1}' if method == "POST" else None  # never a job, only a 400 to whom may ask
        return self.server.request(method, path, body, headers={} if value is None else {name: value}, key=None)

    def test_no_key(self):
        """api.md, Authentication: every request carries an API key."""
        for method, path in queue_routes():
            with self.subTest(method=method, path=path):
                self.assert_refused(self.ask(method, path, None), 401)
        for method, path in ADMIN:
            with self.subTest(method=method, path=path):
                self.assert_refused(self.ask(method, path, None), 401, member="message")

    def test_an_invalid_key(self):
        """api.md, Authentication: an invalid key gives 401, in both forms."""
        for value in ("wrong", "Bearer wrong", "Bearer " + self.server.key[:-1]):
            for method, path in queue_routes():
                with self.subTest(method=method, path=path, value=value[:10]):
                    self.assert_refused(self.ask(method, path, value), 401)
            for method, path in ADMIN:
                with self.subTest(method=method, path=path, value=value[:10]):
                    self.assert_refused(self.ask(method, path, value), 401, member="message")

    def test_both_forms(self):
        """api.md, Authentication: queue API requests come with `Bearer <API_KEY>` and with the bare `<API_KEY>`."""
        key = self.server.new_key("admin")["key"]
        for name in ("authorization", "Authorization"):
            for value in (key, f"Bearer {key}"):
                for method, path in [*queue_routes(), ("GET", "/v1/keys"), ("GET", "/v1/webhooks?jobId=x")]:
                    if path.endswith("purge-queue"):
                        continue  # a foreign server counts these; the test above has asked
                    with self.subTest(method=method, path=path, name=name, bare=value == key):
                        self.assertIn(self.ask(method, path, value, name).status, (200, 400, 404))


class PermissionTest(HttpTest):
    needs = ("echo", "trial")

    def key(self, *scopes, **fields):
        key = self.server.new_key(*scopes, **fields)
        self.addCleanup(lambda: self.server.request("DELETE", f"/v1/keys/{key['id']}"))
        return key["key"]

    def assert_all(self, key, routes, permitted, member="error"):
        for method, path in routes:
            if permitted and path.endswith("purge-queue"):
                continue
            with self.subTest(method=method, path=path):
                reply = self.server.request(method, path, b'{"input":1}' if method == "POST" else None, key=key)
                if permitted:
                    self.assertIn(reply.status, (200, 204, 400, 404), reply.body)
                else:
                    self.assert_refused(reply, 401, member=member)

    def test_a_key_without_permission(self):
        """api.md, Authentication: a key without permission also gives 401; decisions.md, Keys: the scopes."""
        client, worker = self.key("client"), self.key("worker")
        self.assert_all(client, queue_routes(), True)
        self.assert_all(client, ADMIN, False, member="message")
        self.assert_all(worker, queue_routes(), False)
        self.assert_all(worker, ADMIN, False, member="message")

    def test_a_key_of_another_endpoint(self):
        """decisions.md, Keys: a scope bound to endpoints gives no permission elsewhere: 401."""
        key = self.key("client", endpoints=["echo"])
        self.assert_all(key, queue_routes("echo"), True)
        self.assert_all(key, queue_routes("trial"), False)

    def test_purging_needs_permission(self):
        """api.md, Authentication: who may not purge has purged nothing."""
        self.need_endpoint("parked")
        job = self.server.run("parked", {})
        for mount in ("/v2", "/sdk/v2"):
            reply = self.server.request("POST", f"{mount}/parked/purge-queue", key=self.key("worker"))
            self.assert_refused(reply, 401)
        self.assertEqual(self.server.status("parked", job)["status"], "IN_QUEUE")
        reply = self.server.request("POST", "/v2/parked/purge-queue", key=self.key("client"))
        self.assertGreaterEqual(self.assert_job(reply)["removed"], 1)


if __name__ == "__main__":
    unittest.main()

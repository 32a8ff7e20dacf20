"""API keys: what each may do, how long, and where they are kept."""

import datetime
import os
import stat
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import HttpTest, Server, until  # noqa: E402

MOMENT = r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z\Z"
FIELDS = {"id", "name", "scopes", "endpoints", "createdAt", "expiresAt", "lastUsedAt"}


def utc(seconds):
    """The moment in so many seconds, as the API writes it."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class KeyTest(HttpTest):
    def new_key(self, *scopes, **fields):
        """A key that is revoked when the test ends."""
        key = self.server.new_key(*scopes, **fields)
        self.addCleanup(lambda: self.server.request("DELETE", f"/v1/keys/{key['id']}"))
        return key

    def status_with(self, key, method="GET", path="/v2/echo/health", body=None):
        return self.server.request(method, path, body, key=key["key"]).status

    def listed(self, key):
        keys = self.server.request("GET", "/v1/keys").json()
        return next((entry for entry in keys if entry["id"] == key["id"]), None)


class ScopeTest(KeyTest):
    QUEUE = [("POST", "/v2/echo/run"), ("POST", "/v2/echo/runsync"), ("GET", "/v2/echo/health")]
    ADMIN = [("GET", "/v1/keys"), ("GET", "/v1/plugins"), ("POST", "/v1/keys"), ("DELETE", "/v1/keys/nothing")]

    def assert_all(self, key, routes, status, member="error"):
        for method, path in routes:
            with self.subTest(scopes=key["scopes"], method=method, path=path):
                body = {"input": {}} if method == "POST" else None
                reply = self.server.request(method, path, body, key=key["key"])
                if status == 401:
                    self.assert_refused(reply, 401, member=member)
                else:
                    self.assertNotEqual(reply.status, 401, reply.body)

    def test_client(self):
        """decisions.md, Keys: scope `client` is the queue API; a key without permission is 401."""
        key = self.new_key("client")
        self.assert_all(key, self.QUEUE, 200)
        self.assert_all(key, self.ADMIN, 401, member="message")

    def test_worker(self):
        """decisions.md, Keys: scope `worker` is the worker routes, not the queue API and not `/v1`."""
        key = self.new_key("worker")
        self.assert_all(key, self.QUEUE, 401)
        self.assert_all(key, self.ADMIN, 401, member="message")

    def test_admin(self):
        """decisions.md, Keys: scope `admin` is all and `/v1`."""
        key = self.new_key("admin")
        self.assert_all(key, self.QUEUE, 200)
        self.assert_all(key, self.ADMIN, 200)

    def test_several_scopes(self):
        """decisions.md, Keys: a key may have several scopes."""
        key = self.new_key("client", "worker")
        self.assertEqual(sorted(key["scopes"]), ["client", "worker"])
        self.assert_all(key, self.QUEUE, 200)

    def test_endpoint_binding(self):
        """decisions.md, Keys: each scope optionally bound to endpoints; elsewhere the key has no permission, 401."""
        key = self.new_key("client", endpoints=["echo"])
        self.assertEqual(key["endpoints"], ["echo"])
        self.assertEqual(self.status_with(key), 200)
        self.assert_refused(self.server.request("GET", "/v2/trial/health", key=key["key"]), 401)
        self.assert_refused(self.server.request("POST", "/v2/trial/run", {"input": {}}, key=key["key"]), 401)
        both = self.new_key("client", endpoints=["echo", "trial"])
        self.assertEqual(self.status_with(both, path="/v2/trial/health"), 200)


class LifeTest(KeyTest):
    def test_shapes(self):
        """decisions.md, Keys: POST shows the key once; the list has the same fields without it."""
        key = self.new_key("client", name="shapes \u00e9 \"x\"", expiresAt="2099-01-01T00:00:00Z")
        self.assertEqual(set(key), FIELDS | {"key"})
        self.assertRegex(key["createdAt"], MOMENT)
        self.assertTrue(key["expiresAt"].startswith("2099-01-01T00:00:00"))
        self.assertRegex(key["expiresAt"], MOMENT)
        self.assertEqual((key["name"], key["scopes"], key["endpoints"], key["lastUsedAt"]),
                         ('shapes \u00e9 "x"', ["client"], [], None))
        self.assertGreaterEqual(len(key["key"]), 43, "256 random bits")
        reply = self.server.request("GET", "/v1/keys")
        self.assert_json(reply)
        self.assertNotIn(key["key"].encode(), reply.body)
        listed = self.listed(key)
        self.assertEqual(listed, {name: value for name, value in key.items() if name != "key"})

    def test_keys_without_expiry(self):
        """decisions.md, Keys: expiry is optional."""
        self.assertIsNone(self.new_key("client")["expiresAt"])
        self.assertIsNone(self.new_key("client", expiresAt=None)["expiresAt"])

    def test_expiry(self):
        """decisions.md, Keys: past its expiry a key is invalid, 401."""
        key = self.new_key("client", expiresAt=utc(3))
        self.assertEqual(self.status_with(key), 200)
        until(lambda: self.status_with(key) == 401, "the key ends", 6)
        self.assertIsNotNone(self.listed(key), "an expired key can still be seen")

    def test_revocation(self):
        """decisions.md, Keys: DELETE is 204; the revocation takes effect within 1 s."""
        key = self.server.new_key("client")
        self.assertEqual(self.status_with(key), 200)
        reply = self.server.request("DELETE", f"/v1/keys/{key['id']}")
        self.assertEqual((reply.status, reply.body), (204, b""))
        until(lambda: self.status_with(key) == 401, "the key is dead", 1)
        self.assertIsNone(self.listed(key))
        self.assert_refused(self.server.request("DELETE", f"/v1/keys/{key['id']}"), 404, member="message")

    def test_an_open_connection_does_not_outlive_its_key(self):
        """decisions.md, Keys: revocation takes effect within 1 s, on kept connections too."""
        key = self.server.new_key("client")
        connection = self.server.connect()
        self.addCleanup(connection.close)

        def status():
            return self.server.request("GET", "/v2/echo/health", key=key["key"], connection=connection).status

        self.assertEqual(status(), 200)
        self.server.request("DELETE", f"/v1/keys/{key['id']}")
        until(lambda: status() == 401, "the key is dead", 1)

    def test_last_use(self):
        """decisions.md, Keys: last use is kept, written at most once a minute."""
        key = self.new_key("client")
        self.assertIsNone(self.listed(key)["lastUsedAt"])
        self.assertEqual(self.status_with(key), 200)
        used = until(lambda: self.listed(key)["lastUsedAt"], "the use is noted", 5)
        self.assertRegex(used, MOMENT)
        self.assertEqual(self.status_with(key), 200)
        self.assertEqual(self.listed(key)["lastUsedAt"], used)

    def test_malformed_requests(self):
        """decisions.md, Answers: 400 malformed, `{"message":...}`, naming the field."""
        good = {"name": "x", "scopes": ["client"]}
        cases = [("name", value) for value in (None, "", 1, [])]
        cases += [("scopes", value) for value in (None, [], "client", ["root"], [1], ["client", "root"], {},
                                                  ["Client"])]
        cases += [("endpoints", value) for value in ("echo", [1], ["a b"], [""], {}, 1)]
        cases += [("expiresAt", value) for value in ("tomorrow", "", 1, [], "2099-13-01T00:00:00Z", "2099-01-01",
                                                     "2099-02-30T00:00:00Z", "2099-01-01T00:00:00+02:00",
                                                     "2099-01-01T00:00:00", "2099-01-01T25:00:00Z",
                                                     "2099-01-01T00:00:00Zx", "2020-01-01T00:00:00Z", utc(-5))]
        before = len(self.server.request("GET", "/v1/keys").json())
        for field, value in cases:
            with self.subTest(field=field, value=value):
                reply = self.server.request("POST", "/v1/keys", {**good, field: value})
                self.assert_refused(reply, 400, field, member="message")
        for field in ("name", "scopes"):
            with self.subTest(missing=field):
                body = {name: value for name, value in good.items() if name != field}
                self.assert_refused(self.server.request("POST", "/v1/keys", body), 400, field, member="message")
        for body in (b"", b"{", b"[]", b"null", b'"x"', b'{"name":"x","scopes":["client"]} x',
                     b'{"name":"\xff","scopes":["client"]}'):
            with self.subTest(body=body):
                self.assert_refused(self.server.request("POST", "/v1/keys", body), 400, member="message")
        self.assertEqual(len(self.server.request("GET", "/v1/keys").json()), before)


class KeepingTest(KeyTest):
    def files(self, server):
        return [os.path.join(folder, name) for folder, _, names in os.walk(server.data) for name in names]

    def test_modes(self):
        """decisions.md, Keys: data directory 0700, files 0600, admin.key among them."""
        server = self.own_server()
        self.assertEqual(stat.S_IMODE(os.stat(server.data).st_mode), 0o700)
        self.assertIn(os.path.join(server.data, "admin.key"), self.files(server))
        for path in self.files(server):
            with self.subTest(os.path.relpath(path, server.data)):
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_no_key_in_clear(self):
        """decisions.md, Keys: keys are stored as SHA-256; the start prints only the path of admin.key."""
        server = self.own_server()
        keys = [server.key] + [server.new_key(scope)["key"] for scope in ("client", "worker", "admin")]
        self.assertIn("admin.key", server.log())
        server.stop()
        for path in self.files(server):
            if os.path.basename(path) == "admin.key":
                continue
            with open(path, "rb") as file:
                content = file.read()
            for key in keys:
                self.assertNotIn(key.encode(), content, path)
        for key in keys:
            self.assertNotIn(key, server.log())

    def test_keys_survive_a_restart(self):
        """decisions.md, Keys: the key store is storage; only an empty one makes an admin key."""
        server = self.own_server()
        admin = server.key
        kept, gone = server.new_key("client"), server.new_key("client")
        server.request("DELETE", f"/v1/keys/{gone['id']}")
        server.restart()
        self.assertEqual(server.key, admin)
        self.assertEqual((self.status_with(kept), self.status_with(gone)), (200, 401))
        self.assertEqual(len(server.request("GET", "/v1/keys").json()), 2)

    def test_an_admin_key_that_is_there_is_taken_in(self):
        """decisions.md, Keys: an `admin.key` that is already there is taken in."""
        server = self.enterContext(Server(start=False))
        own = "0123456789abcdef" * 4
        os.mkdir(server.data, 0o700)
        path = os.path.join(server.data, "admin.key")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(own + "\n")
        server.start()
        self.assertEqual(server.key, own)
        self.assertEqual(server.request("GET", "/v1/keys").status, 200)


if __name__ == "__main__":
    unittest.main()

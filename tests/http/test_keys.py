"""API keys: their permissions, their lifetime, and their storage."""

import datetime
import os
import re
import stat
import time

from http_case import HttpTest
from jobq_server import Server, jobqd, until
from pace import judge_pace

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
        self.at_end.callback(lambda: self.server.request("DELETE", f"/v1/keys/{key['id']}"))
        return key

    def status_with(self, key, method="GET", path="/v2/echo/health", body=None):
        return self.server.request(method, path, body, key=key["key"]).status

    def listed(self, key):
        keys = self.server.request("GET", "/v1/keys").json()
        return next((entry for entry in keys if entry["id"] == key["id"]), None)


class ScopeTest(KeyTest):
    QUEUE = [("POST", "/v2/echo/run"), ("POST", "/v2/echo/runsync"), ("GET", "/v2/echo/health")]
    ADMIN = [("GET", "/v1/keys"), ("GET", "/v1/plugins"), ("POST", "/v1/keys"), ("DELETE", "/v1/keys/nothing")]

    def assert_all(self, subtests, key, routes, status, member="error"):
        for method, path in routes:
            with subtests.test(scopes=key["scopes"], method=method, path=path):
                body = {"input": {}} if method == "POST" else None
                answer = self.server.request(method, path, body, key=key["key"])
                if status == 401:
                    self.assert_refused(answer, 401, member=member)
                else:
                    assert answer.status != 401, answer.body

    def test_client(self, subtests):
        """core/http/API.md, "Scopes": scope `client` is the queue API; a key without permission is 401."""
        key = self.new_key("client")
        self.assert_all(subtests, key, self.QUEUE, 200)
        self.assert_all(subtests, key, self.ADMIN, 401, member="message")

    def test_worker(self, subtests):
        """core/http/API.md, "Scopes": scope `worker` is for the worker routes, not for the queue API and not for
        `/v1`."""
        key = self.new_key("worker")
        self.assert_all(subtests, key, self.QUEUE, 401)
        self.assert_all(subtests, key, self.ADMIN, 401, member="message")

    def test_admin(self, subtests):
        """core/http/API.md, "Scopes": scope `admin` permits everything, `/v1` included."""
        key = self.new_key("admin")
        self.assert_all(subtests, key, self.QUEUE, 200)
        self.assert_all(subtests, key, self.ADMIN, 200)

    def test_several_scopes(self, subtests):
        """core/http/API.md, "Scopes": a key may have several scopes."""
        key = self.new_key("client", "worker")
        assert sorted(key["scopes"]) == ["client", "worker"]
        self.assert_all(subtests, key, self.QUEUE, 200)

    def test_endpoint_binding(self):
        """core/http/API.md, "Scopes": each scope optionally bound to endpoints; elsewhere the key has no permission,
        401."""
        key = self.new_key("client", endpoints=["echo"])
        assert key["endpoints"] == ["echo"]
        assert self.status_with(key) == 200
        self.assert_refused(self.server.request("GET", "/v2/trial/health", key=key["key"]), 401)
        self.assert_refused(self.server.request("POST", "/v2/trial/run", {"input": {}}, key=key["key"]), 401)
        both = self.new_key("client", endpoints=["echo", "trial"])
        assert self.status_with(both, path="/v2/trial/health") == 200


    def test_read_and_monitor(self, subtests):
        """core/http/API.md, "Scopes": `read` and `monitor` change nothing, and a bound key sees its endpoints alone."""
        for scope in ("read", "monitor"):
            key = self.new_key(scope, endpoints=["echo"])
            self.assert_all(subtests, key, self.QUEUE[:2], 401)
            self.assert_all(subtests, key, self.ADMIN, 401, member="message")
            assert self.status_with(key) == 200
            health, = self.server.request("GET", "/v1/health", key=key["key"]).json()
            alone = self.server.request("GET", "/v2/echo/health", key=key["key"]).json()
            assert (health["id"], health["paused"]) == ("echo", False)
            assert set(health) == {"id", "name", "paused"} | set(alone)
            own = self.server.request("GET", "/v1/me", key=key["key"]).json()
            assert own == {name: key[name] for name in ("id", "name", "scopes", "endpoints", "expiresAt")}


class LifeTest(KeyTest):
    def test_shapes(self):
        """core/http/API.md, "Keys over REST": POST shows the key once; the list has the same fields without it."""
        key = self.new_key("client", name="shapes \u00e9 \"x\"", expiresAt="2099-01-01T00:00:00Z")
        assert set(key) == FIELDS | {"key"}
        assert re.search(MOMENT, key["createdAt"])
        assert key["expiresAt"].startswith("2099-01-01T00:00:00")
        assert re.search(MOMENT, key["expiresAt"])
        assert (key["name"], key["scopes"], key["endpoints"], key["lastUsedAt"]) == (
            'shapes \u00e9 "x"', ["client"], [], None)
        assert len(key["key"]) >= 43, "256 random bits"
        answer = self.server.request("GET", "/v1/keys")
        self.assert_json(answer)
        assert key["key"].encode() not in answer.body
        listed = self.listed(key)
        assert listed == {name: value for name, value in key.items() if name != "key"}

    def test_keys_without_expiry(self):
        """core/http/API.md, "Keys over REST": expiry is optional."""
        assert self.new_key("client")["expiresAt"] is None
        assert self.new_key("client", expiresAt=None)["expiresAt"] is None

    def test_expiry(self):
        """core/http/API.md, "Keys over REST": past its expiry a key is invalid, 401."""
        key = self.new_key("client", expiresAt=utc(3))
        expiry = datetime.datetime.fromisoformat(key["expiresAt"]).timestamp()
        status = self.status_with(key)
        assert status == 200 or time.time() >= expiry
        until(lambda: self.status_with(key) == 401, "the key ends")
        assert self.listed(key) is not None, "an expired key can still be seen"

    def test_revocation(self):
        """core/http/API.md, "Keys over REST": DELETE is 204; the revocation takes effect within 1 s."""
        key = self.server.new_key("client")
        assert self.status_with(key) == 200
        answer = self.server.request("DELETE", f"/v1/keys/{key['id']}")
        assert (answer.status, answer.body) == (204, b"")
        revoked = time.monotonic()
        until(lambda: self.status_with(key) == 401, "the key is dead")
        judge_pace("a revoked key is dead", time.monotonic() - revoked, 1)
        assert self.listed(key) is None
        self.assert_refused(self.server.request("DELETE", f"/v1/keys/{key['id']}"), 404, member="message")

    def test_an_open_connection_does_not_outlive_its_key(self):
        """core/http/API.md, "Keys over REST": revocation takes effect within 1 s, on kept connections too."""
        key = self.server.new_key("client")
        connection = self.server.connect()
        self.at_end.callback(connection.close)

        def status():
            return self.server.request("GET", "/v2/echo/health", key=key["key"], connection=connection).status

        assert status() == 200
        self.server.request("DELETE", f"/v1/keys/{key['id']}")
        revoked = time.monotonic()
        until(lambda: status() == 401, "the key is dead")
        judge_pace("a revoked key is dead on an open connection", time.monotonic() - revoked, 1)

    def test_last_use(self):
        """core/decisions/auth.md: last use is kept, written at most once a minute."""
        key = self.new_key("client")
        assert self.listed(key)["lastUsedAt"] is None
        assert self.status_with(key) == 200
        used = until(lambda: self.listed(key)["lastUsedAt"], "the use is noted")
        assert re.search(MOMENT, used)
        assert self.status_with(key) == 200
        assert self.listed(key)["lastUsedAt"] == used

    def test_malformed_requests(self, subtests):
        """core/http/API.md, "Shape": 400 malformed, `{"message":...}`, naming the field."""
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
            with subtests.test(field=field, value=value):
                answer = self.server.request("POST", "/v1/keys", {**good, field: value})
                self.assert_refused(answer, 400, field, member="message")
        for field in ("name", "scopes"):
            with subtests.test(missing=field):
                body = {name: value for name, value in good.items() if name != field}
                self.assert_refused(self.server.request("POST", "/v1/keys", body), 400, field, member="message")
        for body in (b"", b"{", b"[]", b"null", b'"x"', b'{"name":"x","scopes":["client"]} x',
                     b'{"name":"\xff","scopes":["client"]}', b'{"name":"x","scopes":["client"],"name":"y"}'):
            with subtests.test(body=body):
                self.assert_refused(self.server.request("POST", "/v1/keys", body), 400, member="message")
        assert len(self.server.request("GET", "/v1/keys").json()) == before

    def test_each_fault(self):
        """core/http/API.md, "Shape": `errors` has one element for each fault of a key."""
        body = {"name": "", "scopes": ["root"], "expiresAt": "2020-01-01T00:00:00Z", "endpoint": "echo"}
        answer = self.server.request("POST", "/v1/keys", body).json()
        assert [error["field"] for error in answer["errors"]] == ["name", "scopes", "endpoint", "expiresAt"], answer
        assert answer["message"] == "; ".join(error["message"] for error in answer["errors"])
        assert "the nearest one is endpoints" in answer["message"]
        answer = self.server.request("POST", "/v1/keys", {}).json()
        assert [error["field"] for error in answer["errors"]] == ["name", "scopes"], answer


class KeepingTest(KeyTest):
    def files(self, server):
        return [os.path.join(folder, name) for folder, _, names in os.walk(server.data) for name in names]

    def test_modes(self, own_server, subtests):
        """core/decisions/auth.md: data directory 0700, files 0600, admin.key among them."""
        server = self.server = own_server()
        assert stat.S_IMODE(os.stat(server.data).st_mode) == 0o700
        assert os.path.join(server.data, "admin.key") in self.files(server)
        for path in self.files(server):
            with subtests.test(os.path.relpath(path, server.data)):
                assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    def test_modes_of_a_restored_copy(self, own_server):
        """core/decisions/auth.md: data directory 0700, files 0600, also when created with other modes; the log reports
        the change."""
        server = self.server = own_server()
        server.stop()
        key = os.path.join(server.data, "secret.key")
        os.chmod(server.data, 0o755)
        os.chmod(key, 0o644)
        server.start()
        assert stat.S_IMODE(os.stat(server.data).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
        assert "secret.key was open to other users" in server.log()

    def test_no_key_in_clear(self, own_server):
        """core/decisions/auth.md: keys are stored as SHA-256; the start prints only the path of admin.key."""
        server = self.server = own_server()
        keys = [server.key] + [server.new_key(scope)["key"] for scope in ("client", "worker", "admin")]
        assert "admin.key" in server.log()
        server.stop()
        for path in self.files(server):
            if os.path.basename(path) == "admin.key":
                continue
            with open(path, "rb") as file:
                content = file.read()
            for key in keys:
                assert key.encode() not in content, path
        for key in keys:
            assert key not in server.log()

    def test_keys_survive_a_restart(self, own_server):
        """core/http/API.md, "The first admin key": the key store is storage; only an empty one makes an admin key."""
        server = self.server = own_server()
        admin = server.key
        kept, gone = server.new_key("client"), server.new_key("client")
        server.request("DELETE", f"/v1/keys/{gone['id']}")
        server.restart()
        assert server.key == admin
        assert (self.status_with(kept), self.status_with(gone)) == (200, 401)
        assert len(server.request("GET", "/v1/keys").json()) == 2

    def test_an_existing_admin_key_is_taken_over(self):
        """core/http/API.md, "The first admin key": an existing `admin.key` is taken over."""
        server = self.at_end.enter_context(Server(start=False))
        own = "0123456789abcdef" * 4
        os.mkdir(server.data, 0o700)
        path = os.path.join(server.data, "admin.key")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(own + "\n")
        server.start()
        assert server.key == own
        assert server.request("GET", "/v1/keys").status == 200

    def test_the_last_admin_key_stays(self, own_server):
        """core/decisions/auth.md: at least one admin key always remains; the answer names the remedy."""
        server = self.server = own_server()
        first = server.request("GET", "/v1/keys").json()[0]
        self.new_key("admin", expiresAt=utc(3600))
        answer = server.request("DELETE", f"/v1/keys/{first['id']}")
        self.assert_refused(answer, 409, "admin key", "another one", member="message")
        other = server.new_key("admin")
        assert server.request("DELETE", f"/v1/keys/{first['id']}").status == 204
        assert self.status_with(other, path="/v1/keys") == 200

    def test_reset(self, own_server):
        """etc/operation.md: `jobqd --reset-admin-key` writes a new admin key and keeps the others."""
        server = self.server = own_server()
        former, client = {"key": server.key}, server.new_key("client")
        assert "in use" in jobqd("--config", server.file, "--reset-admin-key").stderr
        server.stop()
        done = jobqd("--config", server.file, "--reset-admin-key")
        assert done.returncode == 0, done.stderr
        server.start()
        assert server.key != former["key"]
        assert server.key not in done.stdout + done.stderr
        assert server.request("GET", "/v1/keys").status == 200
        assert (self.status_with(former), self.status_with(client)) == (401, 200)

"""core/http/API.md, "Keys and scopes", on the queue API's own routes and for its secrets, beyond test_keys.py."""

import os

import pytest
import time

from http_case import HttpTest
from jobq_server import until
from pace import judge_pace


@pytest.mark.endpoints("echo", "parked")
class RevocationTest(HttpTest):
    def test_on_every_route_within_a_second(self):
        """core/http/API.md, "Keys over REST": revocation takes effect within 1 s, on both mounts."""
        key = self.server.new_key("client")
        job = self.server.run("parked", {})
        routes = [(method, f"{mount}/parked/{path}") for mount in ("/v2", "/sdk/v2") for method, path in
                  (("GET", f"status/{job}"), ("POST", f"status/{job}"), ("GET", "health"))]
        for method, path in routes:
            assert self.server.request(method, path, key=key["key"]).status == 200
        self.server.request("DELETE", f"/v1/keys/{key['id']}")
        revoked = time.monotonic()
        until(lambda: self.server.request("GET", "/v2/parked/health", key=key["key"]).status == 401, "it is dead")
        judge_pace("a revoked key is dead", time.monotonic() - revoked, 1)
        for method, path in routes:
            self.assert_refused(self.server.request(method, path, key=key["key"]), 401)


class AtRestTest(HttpTest):
    def test_secrets_of_a_job(self, own_server):
        """core/decisions/auth.md: `s3Config` is encrypted at rest; no part of the object is in a file or in the log."""
        server = own_server()
        s3 = {"accessId": "id-d10c4c", "accessSecret": "secret-d10c4c", "bucketName": "bucket-d10c4c",
              "endpointUrl": "https://s3-d10c4c.example"}
        for endpoint in ("echo", "parked"):
            server.run(endpoint, {}, s3Config=s3)
        server.quiet("echo")
        server.stop()
        for folder, _, names in os.walk(server.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    assert b"-d10c4c" not in file.read(), name
        assert "-d10c4c" not in server.log()

"""api.md, "Versioning": the prefixes, and that nothing answers beside them."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import HttpTest  # noqa: E402


class PrefixTest(HttpTest):
    needs = ("echo",)

    def test_the_queue_api_is_v2(self):
        """api.md, Versioning: the queue API's path prefix is /v2; the SDKs' second mount is /sdk/v2 (decisions.md)."""
        for mount in ("/v2", "/sdk/v2"):
            self.assert_job(self.server.request("GET", f"{mount}/echo/health"))
        for path in ("/echo/health", "/v3/echo/health", "/V2/echo/health", "/v2.0/echo/health", "/sdk/echo/health",
                     "/sdk/v1/echo/health", "/sdk/v3/echo/health", "/v2/sdk/v2/echo/health", "/sdk/sdk/v2/echo/health"):
            with self.subTest(path=path):
                self.assert_refused(self.server.request("GET", path), 404)

    def test_the_management_api_is_v1(self):
        """api.md, Versioning: the template API's path prefix is /v1; management has no second mount."""
        self.assert_json(self.server.request("GET", "/v1/keys"))
        for path, member in (("/keys", "error"), ("/sdk/v1/keys", "error"), ("/v1/echo/health", "message")):
            with self.subTest(path=path):
                self.assert_refused(self.server.request("GET", path), 404, member=member)
        self.assertEqual(self.server.request("GET", "/v2/keys").status, 404)


if __name__ == "__main__":
    unittest.main()

"""core/http/API.md, "Versions": the prefixes, and no answer beside them."""

import pytest

from http_case import HttpTest


@pytest.mark.endpoints("echo")
class PrefixTest(HttpTest):
    def test_the_queue_api_is_v2(self, subtests):
        """core/http/API.md, "Versions" and "The two mounts": the queue API's path prefix is /v2; the second mount for
        SDKs is /sdk/v2."""
        for mount in ("/v2", "/sdk/v2"):
            self.assert_job(self.server.request("GET", f"{mount}/echo/health"))
        for path in ("/echo/health", "/v3/echo/health", "/V2/echo/health", "/v2.0/echo/health", "/sdk/echo/health",
                     "/sdk/v1/echo/health", "/sdk/v3/echo/health", "/v2/sdk/v2/echo/health", "/sdk/sdk/v2/echo/health"):
            with subtests.test(path=path):
                self.assert_refused(self.server.request("GET", path), 404)

    def test_the_management_api_is_v1(self, subtests):
        """core/http/API.md, "Versions": the template API's path prefix is /v1; management has no second mount."""
        self.assert_json(self.server.request("GET", "/v1/keys"))
        for path, member in (("/keys", "error"), ("/sdk/v1/keys", "error"), ("/v1/echo/health", "message")):
            with subtests.test(path=path):
                self.assert_refused(self.server.request("GET", path), 404, member=member)
        assert self.server.request("GET", "/v2/keys").status == 404

"""GET / and the head of /docs, the pages for a browser at the server's address. And pages of other origins.
test_docs_page.py opens /docs in a browser."""

import re

from http_case import HttpTest

class DocsTest(HttpTest):
    def test_the_root_says_where_things_are(self):
        """core/http/API.md, "Addresses": GET / names the addresses, without a key; those without a placeholder
        answer."""
        answer = self.server.request("GET", "/", key=None)
        addresses = self.assert_job(answer)
        assert addresses.pop("service") == "jobq"
        for path in (addresses["docs"], addresses["openapi"], addresses["alive"], addresses["ready"]):
            assert self.server.request("GET", path, key=None).status == 200, path

    def test_the_page_loads_nothing_from_elsewhere(self):
        answer = self.server.request("GET", "/docs", key=None)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        page = answer.body.decode()
        assert not re.search(r"https?:|//[a-z]|\bsrc=|\bhref=|@import|innerHTML", page)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


class OriginsTest(HttpTest):
    def test_a_page_of_another_origin(self, own_server):
        """etc/jobq.properties: server.cors.origins; the rules are in tests/unit/request_pipeline_cors_test.cpp."""
        server = own_server(server__cors__origins="https://app.example")
        fields = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                  "Access-Control-Request-Headers": "authorization,content-type"}
        preflight = server.request("OPTIONS", "/v2/echo/run", headers=fields, key=None)
        assert preflight.status == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
        answer = server.request("POST", "/v2/echo/run", {"input": {}}, {"Origin": "https://app.example"})
        self.assert_job(answer)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert server.request("OPTIONS", "/v2/echo/run", key=None).status == 405

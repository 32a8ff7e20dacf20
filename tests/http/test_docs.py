"""GET / and /docs, the pages for a browser at the server's address. And pages of other origins."""

import json
import re
import shutil
import subprocess

import pytest

from http_case import HttpTest

# A document that keeps what the page's script makes; nothing of the script is changed.
BROWSER = """
const made = [];
const element = tag => ({tag, children: [], textContent: "", appendChild(child) { this.children.push(child); }});
globalThis.document = {
  byId: {about: element("p"), operations: element("div")},
  createElement(tag) { const fresh = element(tag); made.push(fresh); return fresh; },
  getElementById(id) { return this.byId[id]; },
};
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
globalThis.fetch = async path => ({json: async () => { if (path !== "openapi.json") throw path; return input.api; }});
eval(input.script);
setTimeout(() => console.log(JSON.stringify({
  about: document.byId.about.textContent,
  operations: made.filter(each => each.tag === "code").map(each => each.textContent),
})), 0);
"""


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

    @pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
    def test_the_page_shows_every_operation(self):
        api = self.server.request("GET", "/openapi.json", key=None).json()
        page = self.server.request("GET", "/docs", key=None).body.decode()
        script = re.search(r"<script>(.*)</script>", page, re.DOTALL).group(1)
        done = subprocess.run(["node", "-e", BROWSER], input=json.dumps({"api": api, "script": script}), text=True,
                              capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout)
        assert shown["about"] == api["info"]["description"]
        operations = {f"{method.upper()} {path}" for path, item in api["paths"].items() for method in item
                      if method != "parameters"}
        assert operations <= set(shown["operations"])


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

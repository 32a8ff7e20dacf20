"""Templates and endpoints for black-box tests: made with few words, and removed at the end of the test.

    template = self.new_template(imageName="plugin/trial", env={"A": "1"})
    endpoint = self.new_endpoint(template, workersMax=1)
    job = self.server.run(endpoint["id"], {"sleepMs": 500})

`self.call()` makes a call and requires success; `self.assert_faults()` requires a refusal with every field named.
"""

import re
import uuid

import pytest

from http_case import HttpTest
from jobq_server import until


class ManagementTest(HttpTest):
    @pytest.fixture(autouse=True)
    def remove_what_was_made(self, question, server):
        """Removes the records of the test from the shared server. A server of the test alone is removed with all
        data."""
        self._made = {"endpoints": [], "templates": []}
        yield
        if self.server is server:
            for kind, ids in self._made.items():
                for made in ids:
                    assert self.server.request("DELETE", f"/v1/{kind}/{made}").status in (204, 404)

    def call(self, method, path, body=None):
        """Calls /v1, requires exactly 200, and returns the answer."""
        return self.assert_job(self.server.request(method, "/v1" + path, body))

    def remove(self, path):
        """Sends a DELETE, and requires success."""
        answer = self.server.request("DELETE", "/v1" + path)
        assert (answer.status, answer.body) == (204, b""), answer

    def new_template(self, **fields):
        made = self.call("POST", "/templates",
                         {"name": f"test {uuid.uuid4()}", "imageName": "plugin/trial", **fields})
        self._made["templates"].append(made["id"])
        return made

    def new_endpoint(self, template=None, **fields):
        """An endpoint of the template; without a template, of a new template for the handler `trial`."""
        template = template or self.new_template()
        made = self.call("POST", "/endpoints", {"templateId": template["id"], **fields})
        self._made["endpoints"].append(made["id"])
        return made

    def endpoint(self, endpoint):
        """The present state of the endpoint, with the workers."""
        return self.call("GET", f"/endpoints/{endpoint['id']}?includeWorkers=true")

    def workers(self, endpoint):
        return self.endpoint(endpoint)["workers"]

    def complete(self, endpoint, version=None):
        """Waits until the endpoint's release is complete, at `version` if given; returns the endpoint."""
        def ask():
            now = self.endpoint(endpoint)
            there = now["release"]["state"] == "complete" and version in (None, now["version"])
            return there and all(worker["slsVersion"] == now["version"] for worker in now["workers"]) and now
        return until(ask, f"the release of {endpoint['id']} is complete")

    def in_progress(self, endpoint, job):
        until(lambda: self.server.status(endpoint["id"], job)["status"] == "IN_PROGRESS", f"{job} runs")

    def assert_faults(self, response, *fields):
        """Requires 400, and for exactly the given fields a sentence beginning with the field, all joined in
        `message`."""
        assert response.status == 400, response.body[:500]
        self.assert_json(response)
        answer = response.json()
        assert set(answer) == {"message", "errors"}, answer
        assert [error["field"] for error in answer["errors"]] == list(fields), answer
        for error in answer["errors"]:
            assert set(error) == {"field", "message"}
            assert re.search(r"\A[^\n]{5,400}\Z", error["message"])
            assert error["message"].startswith(error["field"]), answer
        assert answer["message"] == "; ".join(error["message"] for error in answer["errors"])
        return answer["message"]

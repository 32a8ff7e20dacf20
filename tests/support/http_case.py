"""A test that calls a server, with checks of the answers.

    class QuestionTest(HttpTest):
        def test_a_job(self):
            job = self.assert_job(self.server.request("POST", "/v2/echo/runsync", {"input": {}}))
"""

import re

import pytest


class HttpTest:
    """`server` is the shared server, unless the class overrides the fixture or the test sets self.server."""

    @pytest.fixture(autouse=True)
    def question(self, request, server, at_end):
        """Each test has a server, a name, and a stack of things to undo (see conftest.py)."""
        self.server = server
        self.name = request.node.nodeid.partition("::")[2]
        self.at_end = at_end

    def assert_json(self, answer):
        assert answer.headers.get("Content-Type", "").split(";")[0].strip() == "application/json", answer

    def assert_job(self, answer):
        """Expects a success, and returns the job."""
        assert answer.status == 200, answer.body[:500]
        self.assert_json(answer)
        return answer.json()

    def assert_refused(self, response, status, *words, member="error"):
        """Expects an error in the shape of core/http/API.md, "Shape"; `words` must appear in the sentence of the
        error."""
        assert response.status == status, response.body[:500]
        self.assert_json(response)
        answer = response.json()
        assert isinstance(answer, dict)
        assert not {"id", "status"} & set(answer), answer
        sentence = answer.get(member)
        assert isinstance(sentence, str), answer
        assert re.search(r"\A[^\n]{5,400}\Z", sentence)
        for word in words:
            assert word in sentence
        return sentence

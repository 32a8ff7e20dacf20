"""OpenAI's clients, unmodified: the Python package (tests/requirements.txt) and the npm package (package-lock.json)."""

import json
import os
import shutil
import subprocess
import threading

import openai
import pytest

from http_case import HttpTest
from jobq_server import ROOT, until
from npm_packages import LONGEST, installed

SETTINGS = {"scripts.path": os.path.join(ROOT, "scripts", "lua"), "endpoint.chat.image": "lua/openai_echo",
            "limits.enabled": "true"}
ASK = {"model": "m", "messages": [{"role": "user", "content": "the quick brown fox"}]}
STREAMS, WORDS = 8, 200


@pytest.mark.timeout(2 * LONGEST)
class OpenAiClientTest(HttpTest):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**SETTINGS)

    def client(self, **options):
        options = {"api_key": self.server.key, "max_retries": 0, **options}
        return openai.OpenAI(base_url=self.server.url + "/v2/chat/openai/v1", **options)

    def test_python(self):
        """core/http/API.md, "OpenAI's clients": models, a whole answer, a second route, and a stream."""
        client = self.client()
        assert [model.id for model in client.models.list()] == ["echo"]
        assert client.chat.completions.create(**ASK).choices[0].message.content == "the quick brown fox"
        assert client.completions.create(model="m", prompt="again").choices[0].text == "again"
        words = [event.choices[0].delta.content for event in client.chat.completions.create(**ASK, stream=True)]
        assert words == ["", "the", " quick", " brown", " fox", ""]

    def test_errors_of_python(self):
        with pytest.raises(openai.AuthenticationError, match="API key"):
            self.client(api_key="wrong").models.list()
        with pytest.raises(openai.BadRequestError, match="messages must be a list"):
            self.client().chat.completions.create(model="m", messages=[])
        with pytest.raises(openai.NotFoundError, match="no route /v1/embeddings"):
            self.client().embeddings.create(model="m", input="x")

    @pytest.mark.parametrize("more", [{"stream": None}, {"messages": [7]}, {"messages": [{"content": [7, {"text": None}]}]}])
    def test_null_and_strange_values(self, more):
        """lua/openai_echo refuses unreadable values, and treats null as absent."""
        answer = self.server.request("POST", "/v2/chat/openai/v1/chat/completions", {**ASK, "model": None, **more})
        assert answer.status in (200, 400), answer.body
        assert answer.json().get("object", "chat.completion") == "chat.completion"

    def test_streams_beside_each_other(self):
        """Each stream is whole, under the default limits of the server."""
        text = " ".join(f"w{i}" for i in range(WORDS))
        said = [""] * STREAMS

        def follow(number):
            ask = {"model": "m", "messages": [{"role": "user", "content": text}]}
            for event in self.client().chat.completions.create(**ask, stream=True):
                said[number] += event.choices[0].delta.content

        callers = [threading.Thread(target=follow, args=(number,)) for number in range(STREAMS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(LONGEST)
        assert said == [text] * STREAMS

    def test_a_leaving_python_client(self):
        """The server cancels the job of a client that leaves."""
        long = {"model": "m", "messages": [{"role": "user", "content": "word " * 100_000}]}
        stream = self.client().chat.completions.create(**long, stream=True)
        next(iter(stream))
        stream.close()
        until(lambda: self.server.request("GET", "/v2/chat/requests?status=CANCELLED").json()["total"] >= 1,
              "the job to be cancelled")

    @pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
    def test_npm(self):
        done = subprocess.run(["node", installed("openai.mjs") / "openai.mjs", self.server.url, self.server.key],
                              capture_output=True, text=True, check=False, timeout=LONGEST)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"models": ["echo"], "content": "the quick brown fox",
                                           "words": "the quick brown fox",
                                           "errors": ["BadRequestError 400", "AuthenticationError 401"]}

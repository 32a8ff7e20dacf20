"""/openai: the calls of OpenAI's clients as jobs, whole and as event streams."""

import json
import socket
import threading

import pytest

from http_case import HttpTest
from jobq_server import until
from lua_case import LuaTest
from pace import HANG
from process_watch import threads

SLOW = "return function(input, job) while not job:stopped() do end return {} end"
HANDLERS = {
    "mirror": "return function(input) return input end",
    "list": "return function(input) return { { seen = input.openai_route } } end",
    "pieces": """return function(input, job)
  job:emit("data: {\\"a\\":1}\\n\\n") job:emit("data: {\\"b\\"") job:emit(":2}\\n\\n") return {} end""",
    "objects": "return function(input, job) job:emit({ n = 1 }) job:emit({ n = 2 }) return {} end",
    "refusal": "return function() return { error = { message = 'too warm', code = 418 } } end",
    "failure": "return function() error('the model said HTTP 429: later', 0) end",
    "early": """return function(input, job)
  job:emit({ error = { message = 'no', code = 422 } }) job:emit({ n = 1 }) return {} end""",
    "late": """return function(input, job)
  job:emit({ n = 1 }) job:emit({ object = 'error', message = 'no' }) job:emit({ n = 2 }) return {} end""",
    "large": "return function(input, job) job:emit({ b64 = ('x'):rep(1500000) }) return {} end",
    "midway": "return function(input, job) job:emit('data: {}\\n\\n') error('it broke', 0) end",
    "slow": SLOW,
    "steps": """return function(input, job)
  job:emit({ n = 1 }) while not job:stopped() do end return {} end""",
}


def events(body):
    """The values of the events of a stream; "[DONE]" as text."""
    texts = [line[len("data: "):] for line in body.decode().split("\n") if line.startswith("data: ")]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


class OpenAiTest(LuaTest):
    handlers = HANDLERS
    settings = {"endpoint.slow.workersMax": 4, "endpoint.echo.image": "plugin/echo"}

    def ask(self, endpoint, body=None, route="v1/chat/completions", mount="/v2", **more):
        method = "GET" if body is None else "POST"
        return self.server.request(method, f"{mount}/{endpoint}/openai/{route}", body, **more)

    def assert_error(self, answer, status, word, kind):
        assert answer.status == status, answer.body
        self.assert_json(answer)
        error = answer.json()["error"]
        assert word in error["message"]
        assert error["type"] == kind
        assert set(error) == {"message", "type", "param", "code"}

    def begin_stream(self, endpoint, server=None):
        """A connection with a call for a stream, whose answer nobody has read."""
        server = server or self.server
        connection = server.connect()
        connection.request("POST", f"/v2/{endpoint}/openai/v1/x", json.dumps({"stream": True}),
                           {"Authorization": "Bearer " + server.key})
        return connection


class InputTest(OpenAiTest):
    @pytest.mark.parametrize("mount", ["/v2", "/sdk/v2"])
    def test_route_and_body(self, mount):
        """core/http/API.md, "OpenAI's clients": the input is the route and the body, byte for byte; a GET has no body."""
        body = b'{ "model": "m", "n": 1.0 }'
        answer = self.ask("echo", body, mount=mount)
        assert answer.status == 200
        assert answer.body == b'{"openai_route":"/v1/chat/completions","openai_input":' + body + b"}"
        assert self.ask("mirror", route="v1/models/ft:a.b", mount=mount).json() == {"openai_route": "/v1/models/ft:a.b"}

    @pytest.mark.parametrize("body", [b"[]", b"7", b"null", b'"a"'])
    def test_the_body_is_an_object(self, body):
        self.assert_error(self.ask("mirror", body), 400, "must be a JSON object", "invalid_request_error")

    @pytest.mark.parametrize("body", [b"", b"{", b'{"a":"\\ud800"}', b'{"a":' + b"[" * 600 + b"]" * 600 + b"}"])
    def test_a_body_other_than_json(self, body):
        answer = self.ask("mirror", body)
        self.assert_error(answer, 400, "the body is not valid JSON: ", "invalid_request_error")
        assert "at byte" in answer.json()["error"]["message"]

    @pytest.mark.parametrize("stream", ["true", 1, {}])
    def test_stream_is_a_boolean(self, stream):
        self.assert_error(self.ask("mirror", {"stream": stream}), 400, "stream must be", "invalid_request_error")

    def test_the_body_of_a_get_is_dropped(self):
        """The body would be a part of the submission."""
        answer = self.server.request("GET", "/v2/echo/openai/v1/models", b'1},"webhook":"http://x/","z":{"a":1')
        assert (answer.status, answer.json()) == (200, {"openai_route": "/v1/models"})

    def test_errors_of_the_server(self):
        """Every refusal has the shape of OpenAI's errors."""
        self.assert_error(self.ask("nobody", {}), 404, "there is no endpoint", "not_found_error")
        self.assert_error(self.ask("mirror", {}, route="v1/a%20b"), 404, "there is no route", "not_found_error")
        self.assert_error(self.ask("mirror", {}, key="wrong"), 401, "API key", "authentication_error")
        self.assert_error(self.server.request("PUT", "/v2/mirror/openai/v1/x"), 405, "not allowed", "invalid_request_error")
        for method in ("HEAD", "PUT"):
            refused = self.server.request(method, "/v2/mirror/openai/v1/models")
            assert (refused.status, refused.headers["Allow"]) == (405, "POST, GET")
        self.assert_error(self.ask("mirror", b'{"a":"' + b"x" * (20 << 20) + b'"}'), 413, "20 MB", "invalid_request_error")


class WholeTest(OpenAiTest):
    def test_a_list_of_one_element_is_the_element(self):
        assert self.ask("list", {}).json() == {"seen": "/v1/chat/completions"}

    def test_chunks_are_the_answer(self):
        assert self.ask("objects", {}).json() == [{"n": 1}, {"n": 2}]

    def test_a_value_over_a_megabyte(self):
        """It is stored in pieces."""
        assert len(self.ask("large", {}).json()["b64"]) == 1_500_000
        first, last = events(self.ask("large", {"stream": True}).body)
        assert (len(first["b64"]), last) == (1_500_000, "[DONE]")

    def test_an_error_of_the_handler(self):
        answer = self.ask("refusal", {})
        assert (answer.status, answer.json()) == (418, {"error": {"message": "too warm", "code": 418}})

    def test_a_failed_job(self):
        self.assert_error(self.ask("failure", {}), 429, "the model said", "rate_limit_error")

    def test_a_too_slow_job(self):
        """504 with x-should-retry: false, because the clients would run the job three times."""
        server = self.fresh_server({"slow": SLOW}, endpoint__slow__image="lua/slow",
                                   endpoint__slow__executionTimeout="5s")
        answer = server.request("POST", "/v2/slow/openai/v1/x", {})
        self.assert_error(answer, 504, "", "server_error")
        assert answer.headers["x-should-retry"] == "false"

    def test_a_cancelled_job(self):
        answers = []
        caller = threading.Thread(target=lambda: answers.append(self.ask("slow", {})))
        caller.start()
        job = until(lambda: self.running_job("slow"), "the job to run")
        self.server.request("POST", f"/v2/slow/cancel/{job}")
        caller.join(HANG)
        self.assert_error(answers[0], 500, "was cancelled", "server_error")
        assert answers[0].headers["x-should-retry"] == "false"

    def test_a_purged_job(self):
        """The clients would submit it again."""
        answers = []
        caller = threading.Thread(target=lambda: answers.append(self.ask("parked", {})))
        caller.start()
        until(lambda: self.server.health("parked")["jobs"]["inQueue"] == 1, "the job to wait")
        self.server.request("POST", "/v2/parked/purge-queue")
        caller.join(HANG)
        self.assert_error(answers[0], 500, "was purged", "server_error")
        assert answers[0].headers["x-should-retry"] == "false"

    def test_a_half_closed_connection(self):
        """Its client counts as one that has left, and reads why."""
        connection = self.server.connect()
        connection.request("POST", "/v2/slow/openai/v1/half", "{}", {"Authorization": "Bearer " + self.server.key})
        until(lambda: self.running_job("slow"), "the job to run")
        connection.sock.shutdown(socket.SHUT_WR)
        answer = connection.getresponse()
        assert (answer.status, "closed its side" in json.load(answer)["error"]["message"]) == (400, True)
        connection.close()
        until(lambda: not self.running_job("slow"), "the job to be cancelled")

    def running_job(self, endpoint):
        page = self.server.request("GET", f"/v2/{endpoint}/requests?status=IN_PROGRESS").json()["requests"]
        return page[0]["id"] if page else None

    def test_without_a_place_among_the_waiting_calls(self):
        server = self.fresh_server({"slow": SLOW}, endpoint__slow__image="lua/slow", server__waiting=1)
        connection = self.begin_stream("slow", server)
        until(lambda: server.health("slow")["jobs"]["inProgress"] == 1, "the job to run")
        answer = server.request("POST", "/v2/slow/openai/v1/x", {})
        self.assert_error(answer, 503, "server.waiting", "server_error")
        assert server.health("slow")["jobs"]["inQueue"] == 0, "no job was stored"
        connection.close()


class StreamTest(OpenAiTest):
    @pytest.mark.parametrize("endpoint, expected", [("pieces", [{"a": 1}, {"b": 2}, "[DONE]"]),
                                                    ("objects", [{"n": 1}, {"n": 2}, "[DONE]"]),
                                                    ("list", [{"seen": "/v1/chat/completions"}, "[DONE]"])])
    def test_events(self, endpoint, expected):
        answer = self.ask(endpoint, {"stream": True})
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert events(answer.body) == expected

    @pytest.mark.parametrize("endpoint, expected", [("pieces", [{"a": 1}, {"b": 2}, "[DONE]"]),
                                                    ("mirror", [{"openai_route": "/v1/x",
                                                                 "openai_input": {"stream": True}}, "[DONE]"])])
    def test_a_stream_of_an_ended_job(self, endpoint, expected):
        """The answer begins in the thread of the call, which never waits: so do streams of jobs that end at once."""
        headers = {"Idempotency-Key": f"ended-{endpoint}"}
        for _ in range(2):
            answer = self.ask(endpoint, {"stream": True}, route="v1/x", headers=headers)
            assert answer.status == 200
            assert events(answer.body) == expected

    def test_streams_of_brief_jobs(self):
        """A job of /runsync may run before the server stores it, but a stream reads its job from the storage."""
        for _ in range(20):
            assert self.ask("list", {"n": 1}, route="v1/x").status == 200
        for _ in range(20):
            answer = self.ask("list", {"stream": True}, route="v1/x")
            assert answer.status == 200, answer.body
            assert events(answer.body) == [{"seen": "/v1/x"}, "[DONE]"]

    def test_the_first_event_comes_while_the_job_runs(self):
        connection = self.begin_stream("steps")
        answer = connection.getresponse()
        assert answer.readline() == b'data: {"n":1}\n'
        assert self.server.health("steps")["jobs"]["inProgress"] == 1
        connection.close()

    def test_a_silent_stream_sends_comments(self):
        """core/decisions/openai.md: the head waits no longer than server.streamSilence, and neither does a comment."""
        server = self.fresh_server({"slow": SLOW}, endpoint__slow__image="lua/slow", server__streamSilence="1s")
        connection = self.begin_stream("slow", server)
        answer = connection.getresponse()
        assert answer.status == 200
        for _ in range(3):
            assert (answer.readline(), answer.readline()) == (b": the job goes on\n", b"\n")
        assert server.health("slow")["jobs"]["inProgress"] == 1
        connection.close()

    @pytest.mark.parametrize("endpoint", ["steps", "slow"])
    def test_a_leaving_client_cancels_the_job(self, endpoint):
        """Behind the head of the stream, and before."""
        connection = self.begin_stream(endpoint)
        until(lambda: self.server.health(endpoint)["jobs"]["inProgress"] == 1, "the job to run")
        connection.close()
        until(lambda: self.server.health(endpoint)["jobs"]["inProgress"] == 0, "the end of the job")
        page = self.server.request("GET", f"/v2/{endpoint}/requests?status=CANCELLED").json()
        assert page["total"] >= 1

    def test_an_early_error_has_the_right_status(self):
        assert self.ask("early", {"stream": True}).status == 422
        assert self.ask("refusal", {"stream": True}).status == 418
        self.assert_error(self.ask("failure", {"stream": True}), 429, "the model said", "rate_limit_error")

    def test_a_stream_beyond_the_end_of_the_server(self):
        """An error event says so: without one the clients hold the answer for complete."""
        server = self.fresh_server({"steps": HANDLERS["steps"]}, endpoint__steps__image="lua/steps", server__drain="200ms")
        answer = self.begin_stream("steps", server).getresponse()
        assert answer.readline() == b'data: {"n":1}\n'
        server.terminate()
        assert "shutting down" in events(answer.read())[-1]["error"]["message"]

    def test_a_later_error_is_the_last_event(self):
        answer = self.ask("midway", {"stream": True})
        assert answer.status == 200
        first, last = events(answer.body)
        assert first == {}
        assert "it broke" in last["error"]["message"]

    def test_a_later_error_of_the_handler_is_the_last_event(self):
        answer = self.ask("late", {"stream": True})
        assert (answer.status, events(answer.body)) == (200, [{"n": 1}, {"error": {"object": "error", "message": "no"}}])

    @pytest.mark.reactor("streams without threads")
    def test_many_streams_need_few_threads(self):
        """A stream holds no thread between its chunks."""
        server = self.fresh_server({"steps": HANDLERS["steps"]}, endpoint__steps__image="lua/steps",
                                   endpoint__steps__workersMax=1)
        connections = [self.begin_stream("steps", server) for _ in range(100)]
        until(lambda: server.health("steps")["jobs"]["inQueue"] == 99, "all calls to wait")
        until(lambda: threads(server.process.pid) < 64, "the threads to end")
        for connection in connections:
            connection.close()
        until(lambda: server.health("steps")["jobs"]["inQueue"] == 0, "all jobs to be cancelled")


class LimitTest(HttpTest):
    def test_a_post_counts_as_openai_and_a_get_as_status(self, own_server):
        server = own_server(limits__enabled="true", limits__openai__requests=1, limits__openai__perWorker=0)
        assert server.request("POST", "/v2/echo/openai/v1/x", {}).status == 200
        refused = server.request("POST", "/v2/echo/openai/v1/x", {})
        assert refused.status == 429
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert int(refused.headers["Retry-After"]) >= 1
        assert server.request("GET", "/v2/echo/openai/v1/models").status == 200

"""jobq behind a real nginx: whatever leaves piece by piece arrives piece by piece."""

import http.client
import json

import pytest

from lua_case import LuaTest
from pace import HANG
from request_log import RequestLog
from reverse_proxy import NGINX, ReverseProxy, missing, nginx_example

STEPS = """return function(input, job)
  job:emit("data: {\\"n\\":1}\\n\\n") job:log('a line')
  while not job:stopped() do end return {} end"""


class BrokenAnswers(RequestLog):
    """Resets the connection in the place of an answer."""

    breaks = False

    def _forward_piece(self, connection, direction, data, sink):
        if direction == "requests" or not self.breaks:
            return super()._forward_piece(connection, direction, data, sink)
        connection.reset()
        return False


@pytest.mark.skipif(missing("nginx") != "", reason=missing("nginx") or "nginx is installed")
class NginxTest(LuaTest):
    handlers = {"steps": STEPS}
    settings = {"endpoint.steps.workersMax": 4, "endpoint.echo.image": "plugin/echo",
                "endpoint.remote.image": "docker.io/acme/worker:1"}

    def call(self, proxy, method, target, body=None, **headers):
        """Returns an answer whose body is not read yet. Its connection ends with the test."""
        connection = http.client.HTTPConnection(*proxy.port.address, timeout=HANG)
        self.at_end.callback(connection.close)
        connection.request(method, target, body, {"Authorization": "Bearer " + self.server.key, **headers})
        return connection.getresponse()

    @pytest.mark.parametrize("example", [NGINX, nginx_example()], ids=["defaults", "example"])
    def test_events_arrive_while_the_job_runs(self, example):
        """core/http/API.md, "Event streams": also where nginx has its defaults, which gather answers."""
        job = self.server.request("POST", "/v2/steps/run", {"input": {}}).json()["id"]
        with ReverseProxy("nginx", self.server, example) as proxy:
            for call in ("stream", "status", "logs"):
                answer = self.call(proxy, "GET", f"/v2/steps/{call}/{job}", Accept="text/event-stream")
                assert answer.status == 200
                assert answer.getheader("Cache-Control") == "no-cache, no-transform"
                assert answer.readline(), f"the first line of an event of /{call}"
            answer = self.call(proxy, "POST", "/v2/steps/openai/v1/x", json.dumps({"stream": True}))
            assert answer.readline() == b'data: {"n":1}\n'
        assert self.server.request("POST", f"/v2/steps/cancel/{job}").status == 200

    def test_the_example_repeats_no_call_with_an_effect(self):
        """The connection breaks before the answer, and nginx cannot know what the call has done."""
        for _ in range(4):
            self.server.run("remote", {})
        calls = [("GET", "/v2/remote/job-take/w1"), ("GET", "/sdk/v2/remote/job-take-batch/w2"),
                 ("GET", "/v2/steps/stream/none"), ("POST", "/v2/echo/run")]
        with BrokenAnswers(self.server) as log, ReverseProxy("nginx", log.port, nginx_example()) as proxy:
            for method, target in calls:
                log.breaks = False
                assert self.call(proxy, "GET", "/healthz").read(), "nginx keeps the connection"
                log.breaks = True
                answer = self.call(proxy, method, target, '{"input":{}}' if method == "POST" else None)
                assert (answer.status, log.count(target)) == (502, 1)

    @pytest.mark.reactor("targets over 16 KB")
    def test_the_example_lets_large_calls_pass(self):
        body = json.dumps({"input": {"a": "x" * (15 << 20)}})
        with ReverseProxy("nginx", self.server, nginx_example()) as proxy:
            for target, payload in (("runsync", body), ("runsync?" + "x" * 100_000, '{"input":{}}')):
                answer = self.call(proxy, "POST", f"/v2/echo/{target}", payload)
                assert (answer.status, json.load(answer)["status"]) == (200, "COMPLETED")

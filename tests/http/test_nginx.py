"""jobq behind a real nginx: whatever leaves piece by piece arrives piece by piece."""

import http.client
import json

import pytest

from lua_case import LuaTest
from pace import HANG
from reverse_proxy import NGINX, ReverseProxy, missing, nginx_example

STEPS = """return function(input, job)
  job:emit("data: {\\"n\\":1}\\n\\n") job:log('a line')
  while not job:stopped() do end return {} end"""


@pytest.mark.skipif(missing("nginx") != "", reason=missing("nginx") or "nginx is installed")
class NginxTest(LuaTest):
    handlers = {"steps": STEPS}
    settings = {"endpoint.steps.workersMax": 4, "endpoint.echo.image": "plugin/echo"}

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

    def test_the_example_lets_large_calls_pass(self):
        body = json.dumps({"input": {"a": "x" * (15 << 20)}})
        with ReverseProxy("nginx", self.server, nginx_example()) as proxy:
            for target, payload in (("runsync", body), ("runsync?" + "x" * 100_000, '{"input":{}}')):
                answer = self.call(proxy, "POST", f"/v2/echo/{target}", payload)
                assert (answer.status, json.load(answer)["status"]) == (200, "COMPLETED")

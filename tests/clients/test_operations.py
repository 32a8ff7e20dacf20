"""Each operation of the npm SDK, unmodified, and of the Go SDK, and the errors of all SDKs, beside unmodified workers
of the Python package runpod. The Go SDK is not on the module proxy; operations.go makes the same calls.
tests/clients/test_runpod_workers.py has the operations of the Python client."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

from npm_packages import LONGEST, installed
from request_log import RequestLog
from runpod_case import CLIENTS, GENERATOR, HANDLER, RunpodTest
from runpod_process import MISSING, RemoteWorker, worker_key
from runpod_process import installed as has_runpod

pytestmark = [pytest.mark.skipif(not has_runpod(), reason=MISSING), pytest.mark.timeout(2 * LONGEST)]

QUEUED = 1_000
ERRORS = """import aiohttp
import requests
def nowhere():
    runpod.Endpoint("nowhere").run({"a": 1})
def gone():
    runpod.endpoint.runner.Job("remote", "no-such-job", endpoint.rp_client).status()
for call in (nowhere, gone):
    try:
        call()
    except requests.HTTPError as error:
        record(**{call.__name__: error.response.status_code})
async def main():
    async with aiohttp.ClientSession() as session:
        try:
            await runpod.AsyncioEndpoint("nowhere", session).run({})
        except KeyError as error:
            record(later=str(error))
asyncio.run(main())
"""
LIMITED = """import time
import requests
first = endpoint.health()
begun = time.monotonic()
again = endpoint.health()
waited = time.monotonic() - begun
endpoint.purge_queue()
try:
    endpoint.purge_queue()
except requests.HTTPError as error:
    record(purge=error.response.status_code)
record(same=first["jobs"] == again["jobs"], waited=waited)
"""


class HoldingLog(RequestLog):
    """Holds all requests from the first request of HELD until heal(). The SDK gives a job up after 1.5 s, the time of
    the call, between two requests. A slow machine may need 1.5 s. A call that waits for the end of a job is in
    tests/http/test_run_wait.py."""

    HELD = "GET /sdk/v2/remote/status-sync/"

    def note(self, direction, data):
        if direction == "requests" and data.startswith(self.HELD.encode()) and self.count(self.HELD) == 0:
            self.stall("requests")
        super().note(direction, data)


class OperationsTest(RunpodTest):
    endpoints = ("remote", "stream")

    @pytest.fixture(scope="class")
    @classmethod
    def workers(cls, server):
        with contextlib.ExitStack() as stack:
            yield {endpoint: stack.enter_context(RemoteWorker(server, endpoint, worker_key(server, endpoint), script,
                                                              concurrency=4))
                   for endpoint, script in (("remote", HANDLER), ("stream", GENERATOR))}

    @pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
    def test_npm(self, workers):
        for _ in range(QUEUED):
            self.server.run("parked", {})
        log = self.at_end.enter_context(HoldingLog(self.server))
        url = "http://{}:{}/sdk/v2".format(*log.port.address)
        with subprocess.Popen(["node", installed("operations.mjs") / "operations.mjs", url, self.server.key],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            try:
                log.wait(1, "POST /sdk/v2/remote/runsync?wait=1500")
                log.wait(1, HoldingLog.HELD)
                workers["remote"].allow("asked again")
                job = log.requests(HoldingLog.HELD)[0].removeprefix(HoldingLog.HELD).partition("?")[0]
                self.until_job("remote", job, status="COMPLETED")
                log.heal()
                output, errors = client.communicate(timeout=LONGEST)
            finally:
                client.kill()
        assert client.returncode == 0, errors
        done = json.loads(output.splitlines()[-1])  # the SDK prints errors before the last line
        self.assert_jobs(done)
        assert done["chunks"] == [{"output": {"n": number}} for number in range(3)]
        assert log.count(HoldingLog.HELD) == 1, "the SDK asks once for a job that has ended"
        assert done["idle"]["status"] == "IN_QUEUE"
        assert done["waited"] >= 1000
        assert done["purge"] == {"removed": QUEUED + 1, "status": "completed"}
        assert set(done["health"]["workers"]) == {"idle", "initializing", "ready", "running", "throttled", "unhealthy"}
        for name, status in (("nowhere", 404), ("gone", 404), ("refused", 401), ("malformed", 400)):
            assert done[name]["status"] == status, done[name]
            assert isinstance(done[name]["error"], str), done[name]

    @pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
    def test_go(self, workers):
        program = subprocess.run(["go", "run", CLIENTS / "operations.go", self.server.url + "/sdk/v2", self.server.key],
                                 capture_output=True, text=True, check=False, timeout=LONGEST,
                                 env={**os.environ, "GO111MODULE": "off"})
        assert program.returncode == 0, program.stderr
        done = json.loads(program.stdout)
        ends = {name: (done[name]["Status"], done[name].get("Output"), done[name].get("Error"))
                for name in ("sync", "failed", "ended", "cancelled")}
        assert ends == {"sync": ("COMPLETED", {"a": 1}, None), "failed": ("FAILED", None, '{"code": 7}'),
                        "ended": ("COMPLETED", [], None), "cancelled": ("CANCELLED", None, None)}
        assert json.loads(done["raised"]["Error"])["error_message"] == "cold"
        assert done["chunks"] == [{"output": {"n": number}} for number in range(3)]
        assert [done[name]["Status"] for name in ("begun", "waiting", "held")] == ["IN_QUEUE"] * 3
        assert done["cancel"] == {"Id": done["begun"]["Id"], "Status": "CANCELLED"}
        assert done["purge"] == {"Status": "completed", "Removed": 1}
        assert done["health"]["Workers"]["Running"] + done["health"]["Workers"]["Idle"] == 1
        assert (done["withoutInput"], done["nowhere"]) == ("response status 400 Bad Request", "response status 404 Not Found")

    @staticmethod
    def assert_jobs(done):
        """Success is a body with an id and a status: the SDK reads neither if the status of the answer is not 200."""
        assert done["begun"]["status"] == "IN_QUEUE"
        ends = {name: (done[name]["status"], done[name]["completed"], done[name]["succeeded"], done[name].get("output"),
                       done[name].get("error")) for name in ("sync", "failed", "late", "ended", "short", "cancelled")}
        assert ends == {
            "sync": ("COMPLETED", True, True, {"a": 1}, None), "failed": ("FAILED", True, False, None, "too warm"),
            "late": ("COMPLETED", True, True, {"until": "asked again"}, None), "ended": ("COMPLETED", True, True, [], None),
            "short": ("COMPLETED", True, True, {"b": 2}, None),
            "cancelled": ("CANCELLED", True, False, None, None)}
        assert done["cancel"] == {"id": done["begun"]["id"], "status": "CANCELLED"}

    def test_errors(self):
        """The Python client reads the status of a refusal. The asyncio client finds no `id` in the refusal, and fails
        at once."""
        assert self.client("remote", ERRORS) == {"nowhere": 404, "gone": 404, "later": "'id'"}

    def test_limits(self, own_server):
        """After 429 the Python client repeats a GET as Retry-After says, and gives up a POST at once."""
        self.server = own_server(**{"limits.enabled": "true", "limits.status.requests": 1, "limits.status.window": "10s",
                                    "limits.status.perWorker": 0, "limits.purgeQueue.requests": 1})
        found = self.client("parked", LIMITED)
        assert (found["same"], found["purge"]) == (True, 429)
        assert found["waited"] >= 1

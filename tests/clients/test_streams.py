"""Streams of public clients, unmodified, under the default limits of the server. The clients' stream() asks again at
once, so an answer for each chunk would be a request for each chunk, and /stream allows 2,000 requests in 10 s.

The npm SDK (pinned in package-lock.json) is installed under <build>/clients on the first run. The Go SDK is not on the
module proxy; streams.go makes the same calls.
"""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from http_case import HttpTest
from jobq_worker import JobqWorker
from npm_packages import LONGEST, installed

HERE = pathlib.Path(__file__).resolve().parent
STREAMS, CHUNKS, PAUSE = 8, 300, 20  # 50 chunks a second each: 400 in all, for 6 s
LIMIT = 2_000  # requests of /stream in 10 s


@pytest.mark.timeout(2 * LONGEST)
class StreamClientTest(HttpTest):
    def follow(self, own_server, workers, *command):
        """Each of the clients' streams is whole, in order, and without an error."""
        if workers == "remote":
            server = own_server(limits__enabled="true", endpoint__trial__image="docker.io/acme/worker:1")
            self.at_end.enter_context(JobqWorker(server, "trial", "plugin/trial", "--concurrency", str(STREAMS)))
        else:
            server = own_server(limits__enabled="true", endpoint__trial__workersMin=STREAMS,
                                endpoint__trial__workersMax=STREAMS)
        jobs = [server.run("trial", {"chunks": CHUNKS, "chunkMs": PAUSE}) for _ in range(STREAMS)]
        done = subprocess.run([*command, server.url + "/sdk/v2", server.key, "trial", *jobs], capture_output=True,
                              text=True, check=False, timeout=LONGEST, env={**os.environ, "GO111MODULE": "off"})
        assert done.returncode == 0, done.stderr
        for stream in json.loads(done.stdout):
            assert stream["error"] is None, stream["error"]
            assert stream["numbers"] == list(range(CHUNKS))
        # A call for a running job waits, even with a slow client, and does not count. The call that finds a job ended
        # is the last call of the stream.
        answer = server.request("GET", f"/sdk/v2/trial/stream/{jobs[0]}")
        remaining = int(answer.headers["RateLimit-Remaining"])
        print(f"{remaining} of {LIMIT} requests remain")
        assert remaining >= LIMIT - STREAMS - 1

    @pytest.mark.parametrize("workers", ["threads", "remote"])
    @pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
    def test_npm(self, own_server, workers):
        """core/http/API.md, "Streams for client libraries": stream() of the npm SDK."""
        self.follow(own_server, workers, "node", installed("streams.mjs") / "streams.mjs")

    @pytest.mark.parametrize("workers", ["threads", "remote"])
    @pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
    def test_go(self, own_server, workers):
        """core/http/API.md, "Streams for client libraries": stream() of the Go SDK."""
        self.follow(own_server, workers, "go", "run", HERE / "streams.go")

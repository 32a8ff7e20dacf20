"""Servers on a failing disk, and checks of data directories."""

import hashlib
import http.client
import os
import pathlib

import pytest
from http_case import HttpTest
from jobq_server import Server, until
from pace import HANG

PAGE = 4096  # bytes of a page of the database
BUSY_TIMEOUT = 5.0  # seconds: a statement waits so long for a lock


class NotReadyServer(Server):
    """A server that may start without becoming ready: start() returns once /healthz answers 200."""

    def _stage(self, address_file):
        stage = super()._stage(address_file)
        if stage or not self.url or not self.key:
            return stage
        try:
            return "ready" if self.request("GET", "/healthz", key=None).status == 200 else None
        except (OSError, http.client.HTTPException):
            return None


class DiskTest(HttpTest):
    @pytest.fixture
    def server(self, own_server):
        """Replaces the shared server: each test makes a server with `own_server`."""
        self.own_server = own_server

    def idle_server(self, **settings):
        return self.at_end.enter_context(NotReadyServer(start=False, **settings))

    def database(self, server, end=""):
        return os.path.join(server.data, "jobq.db" + end)

    def used_server(self, jobs=20, crash=False, **settings):
        """A server with stored jobs, stopped, or killed before SQLite moved the write-ahead log into the database."""
        server = self.idle_server(**settings)
        server.start()
        for number in range(jobs):
            server.run("parked", {"number": number, "text": "x" * 500})
        (server.kill if crash else server.stop)()
        return server

    def ready(self, server):
        return server.request("GET", "/readyz", key=None)

    def not_ready(self, server):
        """Waits until /readyz refuses, and returns the refusal. A positive result is cached for 1 s
        (core/http/api/readiness.h)."""
        return until(lambda: (answer := self.ready(server)).status != 200 and answer, "it is not ready", HANG)

    def fill(self, server, size, most=3000):
        """Submits jobs with `size` bytes of text until the server answers 503. Returns (number, id) of each acknowledged
        job. Fails after `most` jobs."""
        acknowledged = []
        for number in range(most):
            answer = server.request("POST", "/v2/parked/run", {"input": {"number": number, "text": "x" * size}})
            if answer.status != 200:
                self.assert_refused(answer, 503)
                assert answer.headers.get("Retry-After") == "1"
                return acknowledged
            acknowledged.append((number, answer.json()["id"]))
        return pytest.fail(f"{most} jobs of {size} bytes were acknowledged, and no 503 came")

    def assert_all_there(self, server, acknowledged):
        for number, job in acknowledged:
            assert server.status("parked", job)["status"] == "IN_QUEUE", f"job {number}"
        assert server.health("parked")["jobs"]["inQueue"] == len(acknowledged), "a job was stored that was not acknowledged"


def fingerprint(folder):
    """Returns the SHA-256 of each file in `folder` and the inner folders, by name. The file `lock` is left out, because
    each start creates the file."""
    found = {}
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file() and path.name != "lock":
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)

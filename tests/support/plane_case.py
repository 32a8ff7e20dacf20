"""A test that plays remote workers by hand: makes each call of a worker (core/http/API.md, "Remote workers")."""

import contextlib
import http.client
import json
import socket
import threading

import pytest

from http_case import HttpTest
from jobq_server import join

IMAGE = "docker.io/acme/worker:1"


class ParkedCall:
    """A call in a thread, over a separate connection. The end of a `with` cuts an unanswered call off."""

    def __init__(self, connection, call):
        connection.connect()
        self._connection, self._socket = connection, connection.sock
        self._call, self._is_over = call, False
        self.answers = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self.answers.append(self._call(self._connection))
        except (OSError, http.client.HTTPException):
            if not self._is_over:
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._is_over = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        join("a call that was given up", self._thread)
        self._connection.close()


class PlaneTest(HttpTest):
    settings = {}

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**{"endpoint.remote.image": IMAGE, "endpoint.other.image": IMAGE,
                               "endpoint.closed.image": IMAGE, "endpoint.closed.workersMax": 0,
                               "endpoint.echo.image": "plugin/echo", **cls.settings})

    @pytest.fixture(autouse=True)
    def key(self, server):
        self.worker_key = server.new_key("worker")["key"]

    def call(self, path, body=None, key=None, endpoint="remote", mount="/v2", **more):
        """A call of a worker: the key without `Bearer`, and a wrong type of the body."""
        headers = {"Authorization": key or self.worker_key, "Content-Type": "application/x-www-form-urlencoded"}
        return self.server.request("GET" if body is None else "POST", f"{mount}/{endpoint}/{path}", body,
                                   key=None, headers=headers, **more)

    def taken_job(self, worker, endpoint="remote", **more):
        """Submits a job, takes the job as the worker, and returns the job's id."""
        job = self.server.run(endpoint, {"a": 1}, **more)
        answer = self.call(f"job-take/{worker}?job_in_progress=0", endpoint=endpoint)
        assert answer.status == 200, answer.body
        assert answer.json()["id"] == job
        return job

    def done(self, worker, job, result, **more):
        body = result if isinstance(result, bytes) else json.dumps(result).encode()
        answer = self.call(f"job-done/{worker}/{job}?isStream=false", body, **more)
        assert (answer.status, answer.json()) == (200, {})

    def park(self, path):
        """Begins a call in a thread, and returns a list for the coming answer. The end of the test ends the call."""
        call = self.at_end.enter_context(ParkedCall(self.server.connect(), lambda line: self.call(path, connection=line)))
        return call.answers

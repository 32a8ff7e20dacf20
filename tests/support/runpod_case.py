"""A test of workers and clients with the package runpod of PyPI: each class has a server, and only remote workers serve
the endpoints."""

import pathlib

import pytest

from http_case import HttpTest
from jobq_server import ROOT, until
from runpod_process import RemoteWorker, client_results, worker_key

IMAGE = "docker.io/acme/worker:1"
CLIENTS = pathlib.Path(ROOT) / "tests" / "clients"
HANDLER = (CLIENTS / "runpod_handler.py").read_text(encoding="utf-8")
GENERATOR = (CLIENTS / "runpod_generator.py").read_text(encoding="utf-8")


class RunpodTest(HttpTest):
    """`endpoints` are the names of the server's remote endpoints; `settings` are more settings of the server."""

    endpoints = ("remote",)
    settings = {}

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(**{f"endpoint.{name}.image": IMAGE for name in cls.endpoints}, **cls.settings)

    def worker(self, endpoint, script=HANDLER, key=None, **more):
        """Starts a worker for a single test."""
        key = key or worker_key(self.server, endpoint)
        return self.at_end.enter_context(RemoteWorker(self.server, endpoint, key, script, **more))

    def client(self, endpoint, script, **arguments):
        """Runs a client to the end, and returns the recorded fields."""
        return client_results(self.server, endpoint, script, **arguments)

    def until_job(self, endpoint, job, **members):
        """Returns once the job has the given members."""
        until(lambda: members.items() <= self.server.status(endpoint, job).items(), f"{job} has {members}")

    def cancel(self, endpoint, job):
        """Cancels an unfinished job."""
        answer = self.assert_job(self.server.request("POST", f"/v2/{endpoint}/cancel/{job}"))
        assert answer == {"id": job, "status": "CANCELLED"}

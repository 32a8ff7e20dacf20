"""Tests of workers that the server launches as containers. Each test has a separate server."""

import re

import pytest

from jobq_server import until
from jobq_worker import PROGRAM
from management_api import ManagementTest
from pace import HANG

IMAGE = "registry.example/acme/worker:1"


class DockerTest(ManagementTest):
    @pytest.fixture(autouse=True)
    def remove_what_was_made(self, question):
        """Each test has a separate server, because some tests end the server. The server is removed with all data."""
        self._made = {"endpoints": [], "templates": []}

    def launch(self, image=IMAGE, command=("--image", "plugin/trial"), **fields):
        template = self.new_template(imageName=image, dockerEntrypoint=[PROGRAM], volumeInGb=1, env={"A": "b"},
                                     dockerStartCmd=list(command))
        return self.new_endpoint(template, **{"workersMax": 2, "scalerType": "REQUEST_COUNT", "scalerValue": 1,
                                              "idleTimeout": 3_600, **fields})["id"]

    def begin(self, endpoint):
        job = self.server.run(endpoint, {"progress": ["begun"], "sleepMs": 600_000})
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", f"{job} has begun", HANG)
        return job

    def read_the_output_of_a_failed_worker(self):
        """Expects the last line of the worker in the output, which outlives the container."""
        endpoint = self.launch(command=["--no-such-option"], workersMin=1)
        until(lambda: "worker.failed" in self.server.log(), "the worker has failed", HANG)
        worker = re.search(r"the launched worker (\S+) of", self.server.log())[1]
        answer = self.call("GET", f"/endpoints/{endpoint}/workers/{worker}/logs")
        assert answer["state"] == "ended" and "ended with exit code" in answer["reason"], answer
        assert any("no-such-option" in line["text"] for line in answer["lines"]), answer

    def kill_the_container_of_a_job(self):
        """Expects the loss of the job, and the next run in another container."""
        endpoint = self.launch(workersMax=1)
        job = self.begin(endpoint)
        first = self.server.status(endpoint, job)["workerId"]
        self.docker.call("POST", f"/containers/jobq-{first}/kill?signal=SIGKILL")
        until(lambda: self.server.status(endpoint, job).get("retries") == 1, "the loss is counted", HANG)
        until(lambda: self.server.status(endpoint, job).get("workerId") not in (None, "", first), "another runs it", HANG)

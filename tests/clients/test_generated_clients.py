"""Clients written by common generators from GET /openapi.json (tests/support/generated_clients.py), beside unmodified
workers of the Python package runpod. The clients submit, await, stream and cancel jobs, and read outputs and errors."""

import contextlib
import importlib
import json
import shutil
import subprocess

import pytest

from generated_clients import LONGEST, call_operation, described, python_client, typescript_program
from jobq_server import until
from pace import HANG_MS
from runpod_case import GENERATOR, HANDLER, RunpodTest
from runpod_process import MISSING, RemoteWorker, installed, worker_key

pytestmark = [pytest.mark.skipif(not installed(), reason=MISSING), pytest.mark.timeout(2 * LONGEST)]


class GeneratedTest(RunpodTest):
    endpoints = ("remote", "stream")

    @pytest.fixture(scope="class")
    @classmethod
    def workers(cls, server):
        with contextlib.ExitStack() as stack:
            yield {endpoint: stack.enter_context(RemoteWorker(server, endpoint, worker_key(server, endpoint), script))
                   for endpoint, script in (("remote", HANDLER), ("stream", GENERATOR))}

    def assert_ends(self, workers, jobs):
        """Checks the members of the jobs, and the stop of the cancelled job's handler."""
        ends = {name: (job["status"], job["workerId"], job.get("output"), job.get("error")) for name, job in jobs.items()}
        assert ends == {
            "sync": ("COMPLETED", "w-remote", {"hello": "typed"}, None),
            "waited": ("COMPLETED", "w-remote", {"n": [1, None]}, None),
            "failed": ("FAILED", "w-remote", None, "too warm"),
            "streamed": ("COMPLETED", "w-stream", [], None),
            "cancelled": ("CANCELLED", "w-remote", None, None)}
        for job in jobs.values():
            assert isinstance(job["delayTime"], int) and isinstance(job["executionTime"], int), job
        stopped, worker = jobs["cancelled"]["id"], workers["remote"]
        # A task of the SDK, cancelled before the first step, never starts the handler. The cancel is in the log.
        until(lambda: worker.recorded(event="cancelled", id=stopped) or worker.logged("Stopping job.", requestId=stopped),
              "the worker stops the cancelled job")

    def test_python(self, workers, tmp_path):
        with python_client(described(self.server, tmp_path), tmp_path) as package:
            models = importlib.import_module("generated_jobq.models")
            client = package.AuthenticatedClient(base_url=self.server.url, token=self.server.key, timeout=HANG_MS / 1000 + 5,
                                                 raise_on_unexpected_status=True)

            def call(operation, endpoint, **arguments):
                return call_operation(operation, endpoint=endpoint, client=client, **arguments)

            def submit(endpoint, job_input):
                return call("jobs.run", endpoint, body=models.JobRequest.from_dict({"input": job_input})).id

            def ended(endpoint, job):
                return call("jobs.status_sync", endpoint, id=job, wait=HANG_MS)

            sync = call("jobs.runsync", "remote", body=models.JobRequest.from_dict({"input": {"hello": "typed"}}), wait=HANG_MS)
            waited = ended("remote", submit("remote", {"n": [1, None]}))
            failed = ended("remote", submit("remote", {"evaluate": "{'error': 'too warm'}"}))
            assert (sync.output, waited.output, failed.error) == ({"hello": "typed"}, {"n": [1, None]}, "too warm")
            numbers, chunks, state = submit("stream", {"count": 3}), [], models.JobStatus.IN_QUEUE
            while state in (models.JobStatus.IN_QUEUE, models.JobStatus.IN_PROGRESS):
                answer = call("jobs_for_sd_ks.stream_for_sdk", "stream", id=numbers)
                chunks += [chunk.output for chunk in answer.stream]
                state = answer.status
            assert chunks == [{"n": 0}, {"n": 1}, {"n": 2}]
            stopped = submit("remote", {"until": "never"})
            workers["remote"].records(1, event="begun", id=stopped)
            assert call("jobs.cancel", "remote", id=stopped).status == models.JobStatus.CANCELLED
            health = call("jobs.health", "remote").workers
            assert health.idle + health.running == 1, health
            jobs = {"sync": sync, "waited": waited, "failed": failed, "streamed": ended("stream", numbers),
                    "cancelled": ended("remote", stopped)}
            self.assert_ends(workers, {name: job.to_dict() for name, job in jobs.items()})

    @pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
    def test_typescript(self, workers, tmp_path):
        program = typescript_program(described(self.server, tmp_path), "remote.ts")
        with subprocess.Popen(["node", program, self.server.url, self.server.key], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            try:
                if stopped := client.stdout.readline().strip():
                    workers["remote"].records(1, event="begun", id=stopped)
                output, errors = client.communicate("\n", timeout=LONGEST)
            finally:
                client.kill()
        assert client.returncode == 0, errors
        jobs = json.loads(output)
        assert jobs.pop("chunks") == [{"n": 0}, {"n": 1}, {"n": 2}]
        self.assert_ends(workers, jobs)

"""Workers of the Python package runpod (tests/clients/requirements.txt), unmodified. The server launches the workers as
processes, and as containers of a fake of Docker: a template and an endpoint make an autoscaled worker.
core/http/API.md, section 16.8."""

import json
import os
import shutil

import pytest

from docker_process import FakeDocker
from jobq_server import until
from management_api import ManagementTest
from pace import HANG
from runpod_process import MISSING, PYTHON, STEPS, installed

pytestmark = [pytest.mark.skipif(not installed(), reason=MISSING), pytest.mark.timeout(480)]

WORKERS = 4
HANDLER = """import os
import sys
import runpod
from handler_steps import allowed, record

record(event="started", arguments=sys.argv[1:], mode=os.environ["MODE"], pid=os.getpid())

async def handler(job):
    record(event="begun", id=job["id"])
    if "until" in job["input"]:
        await allowed(job["input"]["until"])
    return {"pid": os.getpid()}

runpod.serverless.start({"handler": handler})
"""


class LaunchedRunpod(ManagementTest):
    """The folder of the workers, with the files written by the workers."""

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("launched")
        shutil.copy(STEPS, folder)
        (folder / "worker.py").write_text(HANDLER, encoding="utf-8")
        return folder

    @pytest.fixture(autouse=True)
    def place(self, question, folder):
        self.folder = folder
        yield
        for file in folder.glob("records"):
            file.unlink()

    def records(self, **fields):
        file = self.folder / "records"
        if not file.exists():
            return []
        lines = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
        return [line for line in lines if fields.items() <= line.items()]

    def until_records(self, count, **fields):
        return until(lambda: len(self.records(**fields)) >= count and self.records(**fields),
                     f"{count} records have {fields}", HANG)

    def launch(self, **fields):
        template = self.new_template(imageName="acme/python:1", dockerEntrypoint=[str(PYTHON), "-u"],
                                     dockerStartCmd=["worker.py", "a word"], env={"MODE": "fast"})
        return self.new_endpoint(template, **{"workersMax": WORKERS, "scalerType": "REQUEST_COUNT", "scalerValue": 1,
                                              "idleTimeout": 1, **fields})["id"]

    def alive(self):
        return [record["pid"] for record in self.records(event="started") if os.path.exists(f"/proc/{record['pid']}")]

    def check_zero_four_zero(self):
        """Entrypoint, command and env of the template are seen inside; no worker is left at the end."""
        endpoint = self.launch()
        assert self.server.health(endpoint)["workers"]["initializing"] == 0
        jobs = [self.server.run(endpoint, {"until": "released"}) for _ in range(2 * WORKERS)]
        started = self.until_records(WORKERS, event="started")
        self.until_records(WORKERS, event="begun")
        assert [(record["arguments"], record["mode"]) for record in started] == [(["a word"], "fast")] * WORKERS
        assert self.server.health(endpoint)["workers"]["running"] == WORKERS
        (self.folder / "allowed-released").touch()
        ends = [self.server.finished(endpoint, job) for job in jobs]
        assert {end["status"] for end in ends} == {"COMPLETED"}, ends
        assert len({end["output"]["pid"] for end in ends}) == WORKERS
        until(lambda: not self.alive(), "all workers have left", HANG)
        assert "worker.failed" not in self.server.log(), self.server.log_tail()
        counts = self.server.health(endpoint)["jobs"]
        assert (counts["completed"], counts["retried"]) == (2 * WORKERS, 0)


class RunpodLauncherTest(LaunchedRunpod):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server, folder):
        return class_server(launcher="process", launcher__process__directory=str(folder))

    def test_zero_four_zero_under_a_burst(self):
        self.check_zero_four_zero()

    def test_no_worker_is_left_behind_a_killed_server(self, own_server):
        self.server = own_server(launcher="process", launcher__process__directory=str(self.folder), server__drain="100ms")
        endpoint = self.launch(workersMin=2)
        job = self.server.run(endpoint, {"until": "never"})
        self.until_records(2, event="started")
        self.until_records(1, event="begun", id=job)
        assert len(self.alive()) == 2
        self.server.kill()
        until(lambda: not self.alive(), "all workers are gone", HANG)
        self.server.start()
        self.until_records(2, event="begun", id=job)
        assert self.server.status(endpoint, job)["retries"] == 1


class RunpodDockerTest(LaunchedRunpod):
    @pytest.fixture(scope="class")
    @classmethod
    def docker(cls, folder):
        with FakeDocker({"images": {"acme/python:1": {"state": "remote"}}, "folder": str(folder)}) as docker:
            yield docker

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, docker, class_server):
        return class_server(launcher="docker", launcher__docker__socket=docker.socket)

    def test_zero_four_zero_under_a_burst(self, docker):
        self.check_zero_four_zero()
        until(lambda: not docker.report()["containers"], "all containers are removed", HANG)

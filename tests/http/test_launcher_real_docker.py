"""Workers that the server launches as containers of a real Docker (the package docker.io). test_launcher_docker.py tests the
rules with a fake of Docker; the tests here compare the fake with Docker."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

import real_registry
from docker_case import IMAGE, DockerTest
from jobq_server import BUILD, until
from jobq_worker import PROGRAM
from pace import HANG
from real_docker import Missing, RealDocker
from runpod_process import MISSING, PYTHON, installed

pytestmark = pytest.mark.timeout(480)  # the image with Python has 100 MB and more

PYTHON_IMAGE = "registry.example/acme/python:1"
HANDLER = """import asyncio, os, sys
import runpod
async def handler(job):
    if "hold" in job["input"]:
        await asyncio.sleep(600)
    return {**job["input"], "variable": os.environ["COLOUR"], "arguments": sys.argv[1:], "container": os.path.exists("/.dockerenv")}
runpod.serverless.start({"handler": handler})
"""
PLACES = "import os, sys, runpod; print(os.path.realpath(sys.executable), os.__file__, runpod.__file__)"
NOT_NEEDED = ("site-packages", "test", "idlelib", "__pycache__")  # of the folder of Python's modules
TRIAL = os.path.join(BUILD, "plugins", "libjobq_handler_trial.so")


@pytest.fixture(scope="module")
def docker():
    with contextlib.ExitStack() as stack:
        try:
            engine = stack.enter_context(RealDocker())
            engine.add_image(IMAGE, [PROGRAM, TRIAL])
            engine.try_container(IMAGE, [PROGRAM, "--help"])
        except Missing as missing:
            pytest.skip(f"no Docker: {missing}")
        yield engine


class RealDockerTest(DockerTest):
    settings = {}

    @pytest.fixture
    def server(self, docker, own_server):
        self.docker = docker
        server = own_server(launcher="docker", launcher__docker__socket=docker.socket, launcher__docker__network="host",
                            server__drain="100ms", **self.settings)
        yield server
        server.stop()
        for container in docker.containers():
            docker.remove(container["Id"])

    def running(self):
        return [each for each in self.docker.containers() if each["State"] == "running"]

    def cancel(self, endpoint, jobs):
        for job in jobs:
            assert self.server.request("POST", f"/v2/{endpoint}/cancel/{job}").status == 200


class LauncherRealDockerTest(RealDockerTest):
    def test_a_job_starts_a_container(self):
        endpoint = self.launch()
        job = self.server.runsync(endpoint, {"output": 1})
        assert (job["status"], job["output"]) == ("COMPLETED", 1), job
        # The worker may deliver its job before Docker says that the container runs.
        container, = until(self.running, "Docker says that the container runs", HANG)
        assert container["Names"] == ["/jobq-" + job["workerId"]]
        assert container["Labels"]["jobq.endpoint"] == endpoint
        details = self.docker.inspect(container["Id"])
        assert "A=b" in details["Config"]["Env"]
        assert details["Config"]["Cmd"] == ["--image", "plugin/trial"]
        assert details["Mounts"][0]["Destination"] == "/workspace"

    def test_the_output_of_a_container(self):
        self.read_the_output_of_a_failed_worker()

    def test_the_bounds_of_the_settings(self):
        """Docker takes the fields under these names."""
        self.server.stop()
        self.server.settings.update({"launcher.docker.shm": "256MB", "launcher.docker.memory": "512MB",
                                     "launcher.docker.pids": "100"})
        self.server.write_file()
        self.server.start()
        self.launch(workersMin=1)
        container, = until(self.running, "the container runs", HANG)
        host = self.docker.inspect(container["Id"])["HostConfig"]
        assert (host["ShmSize"], host["Memory"], host["PidsLimit"]) == (2**28, 2**29, 100)

    def test_a_burst_and_its_end(self):
        endpoint = self.launch(idleTimeout=1, workersMax=4)
        held = [self.server.run(endpoint, {"sleepMs": 600_000}) for _ in range(4)]
        until(lambda: len(self.running()) == 4, "four containers run", HANG)
        jobs = [self.server.run(endpoint, {"output": number}) for number in range(8)]
        self.cancel(endpoint, held)
        assert [self.server.finished(endpoint, job)["output"] for job in jobs] == list(range(8))
        until(lambda: not self.docker.containers(), "the containers are removed", HANG)

    def test_a_missing_image(self):
        endpoint = self.launch(image="127.0.0.1:9/absent:1")
        self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the failure is known", HANG)
        assert "127.0.0.1:9" in advice, advice

    def test_a_program_missing_in_the_image(self):
        template = self.new_template(imageName=IMAGE, dockerEntrypoint=["/absent"])
        endpoint = self.new_endpoint(template, workersMax=1)["id"]
        self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the failure is known", HANG)
        assert "/absent" in advice, advice
        assert not self.running()

    def test_a_killed_container(self):
        self.kill_the_container_of_a_job()

    def test_the_end_of_the_server_ends_the_containers(self):
        endpoint = self.launch(workersMin=2)
        until(lambda: len(self.running()) == 2, "two containers run", HANG)
        self.begin(endpoint)
        self.server.stop()
        assert self.docker.containers() == []

    def test_the_next_server_removes_the_containers_of_a_killed_server(self):
        endpoint = self.launch(workersMin=2)
        until(lambda: len(self.running()) == 2, "two containers run", HANG)
        before = {each["Id"] for each in self.docker.containers()}
        job = self.begin(endpoint)
        self.server.kill()
        assert {each["Id"] for each in self.running()} == before
        self.server.start()
        until(lambda: not before & {each["Id"] for each in self.docker.containers()}, "the former containers are gone", HANG)
        until(lambda: self.server.status(endpoint, job).get("retries") == 1, "the loss is counted", HANG)
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", "a new worker runs it", HANG)


@pytest.mark.skipif(not real_registry.installed(), reason=real_registry.MISSING)
class RegistryTest(RealDockerTest):
    """The image is in a registry with a password."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def registry(cls, docker):
        with real_registry.RealRegistry(docker) as registry, tempfile.NamedTemporaryFile("w") as auths:
            json.dump({"mine": {"server": registry.server, "user": real_registry.USER, "password": real_registry.PASSWORD},
                       "wrong": {"server": registry.server, "user": real_registry.USER, "password": "wrong"}}, auths)
            auths.flush()
            cls.settings = {"launcher__docker__auths": auths.name}
            cls.image = registry.server + "/acme/worker:2"
            docker.add_image(cls.image, [PROGRAM, TRIAL])
            registry.keep(docker, cls.image)
            yield

    def launch(self, auth):
        template = self.new_template(imageName=self.image, dockerEntrypoint=[PROGRAM], containerRegistryAuthId=auth,
                                     dockerStartCmd=["--image", "plugin/trial"])
        return self.new_endpoint(template, workersMax=2)["id"]

    @pytest.mark.parametrize("auth", ["", "wrong"])
    def test_without_the_password(self, auth):
        endpoint = self.launch(auth)
        self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the failure is known", HANG)
        assert self.image in advice, advice
        assert not self.running()

    def test_with_the_password(self):
        job = self.server.runsync(self.launch("mine"), {"output": 1})
        assert (job["status"], job["output"]) == ("COMPLETED", 1), job


@pytest.mark.skipif(not installed(), reason=MISSING)
class PythonInRealDockerTest(RealDockerTest):
    def test_a_burst_of_jobs_for_unmodified_workers(self):
        """From no container to four containers and back. Each container has the template's variables, entry point and
        command."""
        program, library, package = subprocess.run([PYTHON, "-c", PLACES], capture_output=True, text=True, check=True,
                                                   timeout=HANG).stdout.split()
        modules = [str(path) for path in pathlib.Path(library).parent.iterdir() if path.name not in NOT_NEEDED]
        packages = str(pathlib.Path(package).parent.parent)
        self.docker.add_image(PYTHON_IMAGE, [program], [*modules, packages], {"/worker.py": HANDLER})
        template = self.new_template(imageName=PYTHON_IMAGE, dockerEntrypoint=[program, "/worker.py"],
                                     dockerStartCmd=["--shade", "dark"], env={"COLOUR": "blue", "PYTHONPATH": packages})
        endpoint = self.new_endpoint(template, workersMax=4, scalerType="REQUEST_COUNT", scalerValue=1, idleTimeout=1)["id"]
        assert not self.docker.containers()
        held = [self.server.run(endpoint, {"hold": True}) for _ in range(4)]
        until(lambda: len({self.server.status(endpoint, job).get("workerId", "") for job in held} - {""}) == 4,
              "each job has a worker of its own", 2 * HANG)
        until(lambda: len(self.running()) == 4, "Docker says that four containers run", HANG)
        jobs = [self.server.run(endpoint, {"number": number}) for number in range(8)]
        self.cancel(endpoint, held)
        ends = [self.server.finished(endpoint, job) for job in jobs]
        assert [end["output"] for end in ends] == [
            {"number": number, "variable": "blue", "arguments": ["--shade", "dark"], "container": True} for number in range(8)]
        until(lambda: not self.docker.containers(), "the containers are removed", HANG)

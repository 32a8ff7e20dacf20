"""Workers that the server launches as containers: core/http/API.md, section 16.8. Docker is a fake whose containers are
processes of this machine, and the worker is the program jobq-worker."""

import pytest

from docker_case import IMAGE, DockerTest
from docker_process import FakeDocker
from jobq_server import until
from pace import HANG


class LauncherDockerTest(DockerTest):
    """Each test has a Docker and a server of its own, because some break them."""

    @pytest.fixture
    def server(self, own_server, at_end):
        self.docker = at_end.enter_context(FakeDocker({"images": {IMAGE: {"state": "remote"}}}))
        return own_server(launcher="docker", launcher__docker__socket=self.docker.socket, server__drain="100ms")

    def containers(self):
        return self.docker.report()["containers"]

    def created(self, count):
        """Waits for the containers, and returns the bodies of their creation. A first attempt may end with a pull."""
        self.until_containers(count, f"{count} containers run")
        names = {each["labels"]["jobq.worker"] for each in self.containers()}
        bodies = {body["Labels"]["jobq.worker"]: body for body in self.docker.report()["bodies"]}
        return [bodies[name] for name in sorted(names)]

    def until_containers(self, count, what):
        until(lambda: len([each for each in self.containers() if each["state"] == "running"]) == count, what, HANG)

    def test_a_job_starts_a_container(self):
        """The image is pulled, and the container has the names of the worker and of the endpoint."""
        endpoint = self.launch()
        job = self.server.runsync(endpoint, {"output": 1})
        assert (job["status"], job["output"]) == ("COMPLETED", 1), job
        container, = self.containers()
        assert container["name"] == "jobq-" + job["workerId"]
        assert container["labels"]["jobq.worker"] == job["workerId"]
        assert container["labels"]["jobq.endpoint"] == endpoint
        report = self.docker.report()
        assert [image for image, _ in report["pulls"]] == [IMAGE]
        assert "A=b" in report["bodies"][-1]["Env"]
        assert report["bodies"][-1]["HostConfig"]["Mounts"][0]["Target"] == "/workspace"

    def test_the_bounds_of_the_settings(self):
        """The way of a model server such as vLLM or ComfyUI: a GPU, a gigabyte of shared memory,
        bounds of memory and processes, and a chosen network."""
        self.server.stop()
        self.server.settings.update({"launcher.docker.shm": "1GB", "launcher.docker.memory": "16GB",
                                     "launcher.docker.pids": "4096", "launcher.docker.network": "host",
                                     "launcher.gpus": "0"})
        self.server.write_file()
        self.server.start()
        self.launch(workersMin=1)
        host = self.created(1)[0]["HostConfig"]
        assert (host["ShmSize"], host["Memory"], host["PidsLimit"], host["NetworkMode"]) == (2**30, 2**34, 4096, "host")
        assert host["DeviceRequests"] == [{"Driver": "", "DeviceIDs": ["0"], "Capabilities": [["gpu"]]}]

    def test_each_container_has_its_gpu(self):
        """With launcher.gpus a third worker waits for the GPU of another."""
        self.server.stop()
        self.server.settings["launcher.gpus"] = "0, 1"
        self.server.write_file()
        self.server.start()
        endpoint = self.launch(workersMin=2)
        created = self.created(2)
        requests = [body["HostConfig"]["DeviceRequests"] for body in created]
        assert sorted(request["DeviceIDs"] for request, in requests) == [["0"], ["1"]], requests
        assert all(request["Capabilities"] == [["gpu"]] for request, in requests), requests
        assert sorted(variable for body in created for variable in body["Env"] if variable.startswith("JOBQ_SLOT")) == [
            "JOBQ_SLOT=0", "JOBQ_SLOT=1"]
        other = self.launch(gpuCount=1)
        job = self.server.run(other, {})
        status = until(lambda: (now := self.server.status(other, job)).get("queueReason") == "no_gpu" and now,
                       "the job waits for a GPU", HANG)
        assert "all GPUs of launcher.gpus are in use" in status["queueAdvice"], status
        self.call("PATCH", f"/endpoints/{endpoint}", {"workersMin": 0, "workersMax": 1})
        assert self.server.finished(other, job)["status"] == "COMPLETED", "a worker has left its GPU"

    def test_too_many_gpus_are_a_fault(self):
        self.server.stop()
        self.server.settings["launcher.gpus"] = "0"
        self.server.write_file()
        self.server.start()
        endpoint = self.launch(gpuCount=2)
        job = self.server.run(endpoint, {})
        status = self.server.status(endpoint, job)
        assert status["queueReason"] == "no_gpu", status
        assert "gpuCount" in status["queueAdvice"], status

    @pytest.mark.parametrize("compute, gpus, asked", [("GPU", 2, {"Count": 2}), ("GPU", 0, None), ("CPU", 1, None)])
    def test_docker_chooses_the_gpus_without_a_list(self, compute, gpus, asked):
        """Docker with the runtime nvidia takes a number of GPUs."""
        self.server.stop()
        self.docker.set(runtimes=["runc", "nvidia"])
        self.server.start()
        self.launch(workersMin=1, computeType=compute, gpuCount=gpus)
        requests = self.created(1)[0]["HostConfig"].get("DeviceRequests")
        assert requests == (asked and [{"Driver": "", **asked, "Capabilities": [["gpu"]]}])

    def test_the_output_of_a_container(self):
        self.read_the_output_of_a_failed_worker()

    def test_an_idle_container_is_removed(self):
        endpoint = self.launch(idleTimeout=1)
        assert self.server.runsync(endpoint, {"output": 1})["output"] == 1
        until(lambda: not self.containers(), "the container is removed", HANG)
        until(lambda: "worker.ended" in self.server.log(), "the end is in the log", HANG)
        assert self.server.runsync(endpoint, {"output": 2})["output"] == 2

    def test_a_missing_image(self):
        endpoint = self.launch(image="registry.example/absent:1")
        job = self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the failure is known", HANG)
        assert "pull access denied for registry.example/absent" in advice, advice
        assert self.server.status(endpoint, job)["queueAdvice"] == advice

    def test_a_killed_container(self):
        """The job is lost at once, and runs again in the next container."""
        self.kill_the_container_of_a_job()

    def test_an_unreachable_docker_ends_no_job(self):
        endpoint = self.launch(workersMax=1)
        assert self.server.runsync(endpoint, {"output": 1})["output"] == 1
        self.docker.set(isDown=True)
        until(lambda: "launcher.unreachable" in self.server.log(), "the silence is in the log", HANG)
        assert self.server.runsync(endpoint, {"output": 2})["output"] == 2
        self.docker.set(isDown=False)
        until(lambda: "launcher.reachable" in self.server.log(), "the answer is in the log", HANG)
        assert self.server.runsync(endpoint, {"output": 3})["output"] == 3
        assert len(self.docker.report()["bodies"]) == 2, "one container, created again behind the pull"

    def test_the_end_of_the_server_ends_the_containers(self):
        endpoint = self.launch(workersMin=2)
        self.until_containers(2, "two containers run")
        self.begin(endpoint)
        self.server.stop()
        assert self.containers() == []

    def test_the_next_server_removes_the_containers_of_a_killed_server(self):
        endpoint = self.launch(workersMin=2)
        self.until_containers(2, "two containers run")
        before = {each["id"] for each in self.containers()}
        job = self.begin(endpoint)
        self.server.kill()
        assert {each["id"] for each in self.containers()} == before
        self.server.start()
        until(lambda: not before & {each["id"] for each in self.containers()}, "the former containers are gone", HANG)
        until(lambda: self.server.status(endpoint, job).get("retries") == 1, "the loss is counted", HANG)
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", "a new worker runs it", HANG)

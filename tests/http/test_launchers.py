"""Workers that the server launches: core/http/API.md, section 16.8. The launcher is `process`, the program jobq-worker."""

import contextlib
import os
import re
import signal

import pytest

from jobq_server import until
from jobq_worker import PROGRAM
from management_api import ManagementTest
from pace import HANG

IMAGE = "registry.example.com/acme/worker:1"
WAITS = {"progress": ["begun"], "sleepMs": 600_000}  # ends when it is stopped
# A program that ends with 3 and a last line, one that shows its environment, and one that leaves children behind.
BROKEN = ["/bin/sh", "-c", "echo no module named torch >&2; exit 3"]
CHILDREN = "for i in 1 2 3; do (trap '' TERM; exec -a jobq-test-orphan sleep 600) & done; setsid sleep 601 & exec "


def processes_with(text):
    """Returns the ids of all processes whose environment has the text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if text.encode() in file.read():
                found.append(int(pid))
    return found


class LaunchersTest(ManagementTest):
    """Each server has launcher = process. MARK is in the environment of all processes that it launches."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(launcher="process", server__drain="60s")

    @pytest.fixture(autouse=True)
    def mark(self, question, request):
        self.mark = f"JOBQ_TEST_MARK={os.getpid()}-{re.sub(r'[^a-z]', '', request.node.name.lower())}"

    def program(self, *words, image="plugin/trial"):
        return [PROGRAM, "--image", image, *words]

    def launch(self, command=None, entrypoint=(), env=None, image=IMAGE, **fields):
        """Makes an endpoint whose template has the command; jobq-worker with the handler `trial` unless given."""
        name, value = self.mark.split("=")
        template = self.new_template(imageName=image, dockerEntrypoint=list(entrypoint),
                                     dockerStartCmd=self.program() if command is None else list(command),
                                     env={name: value, **(env or {})})
        endpoint = self.new_endpoint(template, **{"idleTimeout": 3_600, "workersMax": 4, "scalerType": "REQUEST_COUNT",
                                                  "scalerValue": 1, **fields})
        return endpoint["id"], template["id"]

    def begin(self, endpoint, **fields):
        job = self.server.run(endpoint, WAITS, **fields)
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", f"{job} has begun", HANG)
        return job

    def until_gone(self, what="the launched processes are gone"):
        until(lambda: not processes_with(self.mark), what, HANG)

    def counts(self, endpoint):
        return self.server.health(endpoint)["workers"]

    def until_counts(self, endpoint, **counts):
        until(lambda: counts.items() <= self.counts(endpoint).items(), f"the workers of {endpoint} are {counts}", HANG)


class LaunchTest(LaunchersTest):
    def test_a_template_and_an_endpoint_make_a_worker(self):
        """The job starts it, and nobody else has to do anything."""
        endpoint, _ = self.launch()
        assert "advice" not in self.server.health(endpoint)
        job = self.server.runsync(endpoint, {"output": 1})
        assert (job["status"], job["output"]) == ("COMPLETED", 1), job
        # The caller of the job has its answer before the call that reports the result has freed the place of the worker.
        until(lambda: self.counts(endpoint)["idle"] == 1, "the worker is idle", HANG)
        worker, = self.workers({"id": endpoint})
        assert (worker["id"], worker["state"], worker["image"]) == (job["workerId"], "idle", IMAGE)

    def test_zero_four_zero(self):
        endpoint, _ = self.launch(idleTimeout=1)
        jobs = [self.begin(endpoint) for _ in range(4)]
        waiting = self.server.run(endpoint, {"output": "last"})
        assert self.counts(endpoint)["running"] == 4
        for job in jobs:
            self.assert_job(self.server.request("POST", f"/v2/{endpoint}/cancel/{job}"))
        assert self.server.finished(endpoint, waiting)["output"] == "last"
        self.until_counts(endpoint, idle=0, running=0, initializing=0)
        self.until_gone()
        assert self.server.runsync(endpoint, {"output": "again"})["output"] == "again"

    def test_workers_min_and_max(self):
        endpoint, _ = self.launch(workersMin=2)
        self.until_counts(endpoint, idle=2)
        self.call("PATCH", f"/endpoints/{endpoint}", {"workersMin": 0, "workersMax": 1})
        self.until_counts(endpoint, idle=1)
        self.call("PATCH", f"/endpoints/{endpoint}", {"workersMax": 0})
        self.until_gone()

    def test_entrypoint_command_and_env(self):
        """Entrypoint and command are one command line; the variables of the worker win over those of the template."""
        script = 'printf "%s|" "$0" "$@" >&2; echo "$A $RUNPOD_ENDPOINT_ID $RUNPOD_AI_API_KEY" >&2; exit 3'
        endpoint, _ = self.launch(["two", "with blank"], ["/bin/sh", "-c", script, "one"],
                                  env={"A": "ä b", "RUNPOD_AI_API_KEY": "stolen"})
        self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the end of the worker is known", HANG)
        assert re.search(rf"one\|two\|with blank\|ä b {endpoint} jobq_[0-9a-f]+$", advice), advice

    def test_a_program_ending_with_an_error(self):
        endpoint, _ = self.launch(BROKEN)
        job = self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the failure is known", HANG)
        assert "ended with exit code 3: no module named torch" in advice, advice
        self.until_counts(endpoint, throttled=1)
        # Between two pauses the next worker starts. An answer of that moment has no advice and another reason.
        status = until(lambda: (now := self.server.status(endpoint, job)).get("queueReason") == "worker_crashing" and now,
                       "the job waits because the worker crashes", HANG)
        assert status["queueAdvice"] == advice
        until(lambda: re.search("worker.failed.*no module named torch", self.server.log()), "the failure is logged", HANG)
        assert until(lambda: self.endpoint({"id": endpoint}).get("advice"), "the endpoint has advice", HANG) == advice
        key = {"Authorization": self.server.new_key("client")["key"]}

        def told(path, member):
            return until(lambda: self.server.request("GET", path, key=None, headers=key).json().get(member),
                         f"{path} has {member}", HANG)
        for sentence in (told(f"/v2/{endpoint}/health", "advice"), told(f"/v2/{endpoint}/status/{job}", "queueAdvice")):
            assert f"GET /v1/endpoints/{endpoint}" in sentence and "torch" not in sentence, sentence

    def test_workers_at_a_time_have_numbers(self):
        """A program may choose its GPU or its port by JOBQ_SLOT."""
        endpoint, _ = self.launch(workersMin=2, workersMax=2)
        self.until_counts(endpoint, idle=2)
        slots = set()
        for pid in processes_with(self.mark):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                slots |= set(re.findall(rb"JOBQ_SLOT=(\d+)", file.read()))
        assert slots == {b"0", b"1"}

    def test_a_missing_program(self):
        endpoint, _ = self.launch(["/does/not/exist"])
        self.server.run(endpoint, {})
        advice = until(lambda: self.server.health(endpoint).get("advice"), "the failure is known", HANG)
        assert "/does/not/exist" in advice and "No such file" in advice, advice
        assert self.endpoint({"id": endpoint})["release"]["state"] == "halted", "no worker of the version is left"

    def test_a_template_without_a_command(self):
        """The template may be meant for workers that other programs start."""
        endpoint, _ = self.launch([])
        self.server.run(endpoint, {})
        advice = until(lambda: "launcher" in self.server.health(endpoint).get("advice", "") and
                       self.server.health(endpoint)["advice"], "the launcher has judged the template", HANG)
        assert "jobqctl worker env" in advice and "dockerStartCmd" in advice, advice

    def test_a_new_version_replaces_the_workers(self):
        endpoint, template = self.launch(workersMin=2)
        self.until_counts(endpoint, idle=2)
        before = {worker["id"] for worker in self.workers({"id": endpoint})}
        self.call("PATCH", f"/templates/{template}", {"env": {self.mark.split("=")[0]: self.mark.split("=")[1], "B": "2"}})
        now = self.complete({"id": endpoint}, 2)
        self.until_counts(endpoint, idle=2)
        assert not before & {worker["id"] for worker in now["workers"]}
        assert self.server.runsync(endpoint, {"output": 1})["output"] == 1

    def test_a_broken_version_leaves_the_workers(self):
        endpoint, template = self.launch(workersMin=1)
        self.until_counts(endpoint, idle=1)
        before, = self.workers({"id": endpoint})
        self.call("PATCH", f"/templates/{template}", {"dockerStartCmd": BROKEN})
        until(lambda: "no module named torch" in (self.endpoint({"id": endpoint})["release"].get("reason") or ""),
              "the new version has failed", HANG)
        assert self.endpoint({"id": endpoint})["release"]["state"] == "halted"
        assert self.server.runsync(endpoint, {"output": 1})["workerId"] == before["id"]

    def test_a_killed_worker(self):
        """The job is lost at once, and runs again on the next worker."""
        endpoint, _ = self.launch(workersMax=1)
        job = self.server.run(endpoint, {"progress": ["begun"], "sleepMs": 600_000})
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", f"{job} has begun", HANG)
        first = self.server.status(endpoint, job)["workerId"]
        worker, = [pid for pid in processes_with(self.mark) if os.path.basename(os.readlink(f"/proc/{pid}/exe")) ==
                   "jobq-worker"]
        os.kill(worker, signal.SIGKILL)
        until(lambda: self.server.status(endpoint, job).get("retries") == 1, "the loss is counted", HANG)
        until(lambda: self.server.status(endpoint, job).get("workerId") not in ("", first), "another runs it", HANG)
        self.assert_job(self.server.request("POST", f"/v2/{endpoint}/cancel/{job}"))

    def test_a_handler_ignoring_the_stop(self):
        """The worker is replaced and killed; a thread inside the server would be held until the restart. A ping each second
        tells that the handler goes on."""
        endpoint, _ = self.launch(["/usr/bin/env", "RUNPOD_PING_INTERVAL=1000", *self.program()], stopGraceMs=100, workersMax=1)
        job = self.server.run(endpoint, {"progress": ["begun"], "ignoreStop": True, "sleepMs": 600_000})
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", f"{job} has begun", HANG)
        stuck = self.server.status(endpoint, job)["workerId"]
        self.assert_job(self.server.request("POST", f"/v2/{endpoint}/cancel/{job}"))
        after = self.server.runsync(endpoint, {"output": 1})
        assert after["output"] == 1 and after["workerId"] != stuck
        until(lambda: len(self.workers({"id": endpoint})) == 1, "the stuck worker is gone", HANG)

    def test_a_deleted_endpoint(self):
        endpoint, _ = self.launch(workersMin=2)
        self.until_counts(endpoint, idle=2)
        self.begin(endpoint)
        self.remove(f"/endpoints/{endpoint}")
        self.until_gone()

    def test_the_key_of_a_worker_opens_its_calls_alone(self):
        endpoint, _ = self.launch()
        self.server.runsync(endpoint, {"output": 1})
        pid = processes_with(self.mark)[0]
        with open(f"/proc/{pid}/environ", "rb") as file:
            key = re.search(rb"RUNPOD_AI_API_KEY=(jobq_[0-9a-f]+)", file.read())[1].decode()
        header = {"Authorization": f"Bearer {key}"}
        assert self.server.request("GET", f"/v2/{endpoint}/ping/x", headers=header, key=None).status == 200
        assert self.server.request("GET", "/v1/endpoints", headers=header, key=None).status in (401, 403)
        assert self.server.request("POST", f"/v2/{endpoint}/run", {"input": {}}, headers=header, key=None).status in (401, 403)
        assert self.server.request("GET", "/v2/echo/ping/x", headers=header, key=None).status in (401, 403)
        assert key not in self.server.request("GET", "/v1/keys").body.decode()


class ServerEndTest(LaunchersTest):
    def test_a_stop_lets_the_jobs_end(self, own_server):
        self.server = own_server(launcher="process", server__drain="60s")
        endpoint, _ = self.launch()
        job = self.server.run(endpoint, {"progress": ["begun"], "sleepMs": 300, "output": "whole"})
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", f"{job} has begun", HANG)
        self.server.stop()
        self.until_gone()
        self.server.start()
        answer = self.server.status(endpoint, job)
        assert (answer["status"], answer["output"]) == ("COMPLETED", "whole"), answer

    def test_a_stop_returns_unending_jobs(self, own_server):
        self.server = own_server(launcher="process", server__drain="100ms")
        endpoint, _ = self.launch()
        job = self.begin(endpoint)
        self.server.stop()
        self.until_gone()
        self.server.settings["launcher"] = ""
        self.server.write_file()
        self.server.start()
        answer = self.server.status(endpoint, job)
        assert answer["status"] == "IN_QUEUE" and "retries" not in answer, answer

    def test_no_process_is_left_after_kill(self, own_server):
        """Neither the workers, nor their children, nor those that have made themselves independent."""
        self.server = own_server(launcher="process", server__drain="100ms")
        endpoint, _ = self.launch(["/bin/bash", "-c", CHILDREN + " ".join(self.program())], workersMin=2)
        self.until_counts(endpoint, idle=2)
        job = self.begin(endpoint)
        assert len(processes_with(self.mark)) >= 10
        self.server.kill()
        self.until_gone()
        self.server.start()
        until(lambda: self.server.status(endpoint, job).get("retries") == 1, "the loss is counted", HANG)
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", "a new worker runs it", HANG)


class SettingsTest(LaunchersTest):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server()

    def test_without_the_setting_no_worker_is_launched(self):
        endpoint, _ = self.launch(workersMin=1)
        job = self.server.run(endpoint, {})
        answer = self.server.status(endpoint, job)
        assert answer["queueReason"] == "no_workers" and "jobqctl worker env" in answer["queueAdvice"]
        assert not processes_with(self.mark)

    @pytest.mark.parametrize("setting, word", [(("launcher", "rocket"), "launcher = rocket"),
                                               (("launcher.url", "ftp://x"), "launcher.url"),
                                               (("launcher.url", "http://x/path"), "launcher.url"),
                                               (("launcher.process.speed", "1"), "launcher.process.speed")])
    def test_wrong_settings(self, setting, word, own_server):
        server = own_server(start=False, launcher="process")
        server.settings[setting[0]] = setting[1]
        server.write_file()
        assert not server.start_unless_it_dies()
        assert word in server.log()

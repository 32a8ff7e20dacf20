"""core/http/API.md, "Releases": A change of a template reaches the workers of every endpoint with this template, and no
job is lost. The handler's reading of the env is proved in process (tests/server)."""

import concurrent.futures
import contextlib
import threading

import pytest

from held_jobs import HeldJobs
from jobq_api import REPLY_DEADLINE
from jobq_server import join, until
from management_api import ManagementTest


class ReleaseTest(ManagementTest):
    @pytest.fixture(autouse=True)
    def one_template(self, remove_what_was_made):
        self.template = self.new_template(env={"N": "0"})

    def release(self, **fields):
        """Changes the template."""
        return self.call("PATCH", "/templates/" + self.template["id"], fields)

    def version(self, endpoint):
        return self.call("GET", "/endpoints/" + endpoint["id"])["version"]

    def halted(self, endpoint):
        """The release once it is halted."""
        return until(lambda: (now := self.endpoint(endpoint)["release"])["state"] == "halted" and now, "it halts")

    def worker(self, endpoint, version):
        """The only worker, once it idles at that version."""
        def ask():
            workers = self.workers(endpoint)
            there = [(worker["state"], worker["slsVersion"]) for worker in workers] == [("idle", version)]
            return there and workers[0]
        return until(ask, f"one worker idles at version {version}")

    def shown_as_running(self, endpoint, job):
        """Returns the running workers, once the job runs and a worker is shown as running. The storage knows of a claim before the
        dispatcher has noted the worker of the job."""
        self.in_progress(endpoint, job)
        return until(lambda: [worker for worker in self.workers(endpoint) if worker["state"] == "running"],
                     "the worker is shown as running")

    def held_jobs(self, own_server, **settings):
        """A server for this test alone, with a template whose jobs run until they are released."""
        held = self.at_end.enter_context(HeldJobs())
        self.server = own_server(**held.settings, **settings)
        self.template = self.new_template(imageName=held.IMAGE, env={"N": "0"})
        return held


class VersionTest(ReleaseTest):
    def test_every_endpoint_of_the_template(self):
        """core/http/API.md, "Releases": an update is a release for every endpoint associated with it, and for no
        other."""
        users = [self.new_endpoint(self.template) for _ in range(3)]
        other = self.new_endpoint()
        self.release(env={"N": "1"})
        for endpoint in users:
            now = self.endpoint(endpoint)
            assert (now["version"], now["release"]["version"], now["env"]) == (2, 2, {"N": "1"})
        assert self.version(other) == 1
        assert self.version({"id": "echo"}) == 1

    def test_each_field(self, subtests):
        """core/http/API.md, "Releases": any update of a template triggers a release, by both methods."""
        endpoint = self.new_endpoint(self.template)
        changes = {"containerDiskInGb": 9, "containerRegistryAuthId": "a", "dockerEntrypoint": ["x"],
                   "dockerStartCmd": ["y"], "env": {}, "imageName": "plugin/echo", "isPublic": True, "ports": [],
                   "readme": "r", "volumeInGb": 1, "volumeMountPath": "/x", "name": "new " + self.template["id"]}
        for version, (name, value) in enumerate(changes.items(), 2):
            with subtests.test(field=name):
                if version % 2:
                    self.release(**{name: value})
                else:
                    self.call("POST", f"/templates/{self.template['id']}/update", {name: value})
                assert self.version(endpoint) == version

    def test_a_change_without_effect(self):
        """core/http/API.md, "Releases": an update without a change is no release, so a repeated update replaces no
        worker twice."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        worker = self.worker(endpoint, 1)
        for body in ({}, {"env": {"N": "0"}}, {"name": self.template["name"], "readme": ""}):
            self.release(**body)
        answer = self.server.request("PATCH", "/v1/templates/" + self.template["id"], {"volumeInGb": -1})
        self.assert_faults(answer, "volumeInGb")
        assert self.endpoint(endpoint)["version"] == 1
        assert self.workers(endpoint) == [worker]

    def test_changes_of_the_endpoint(self):
        """core/http/API.md, "Releases": `version` grows when template or env change: not with workersMax, a name, or a
        pause."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        worker = self.worker(endpoint, 1)
        path = "/endpoints/" + endpoint["id"]
        for fields in ({"workersMax": 9}, {"name": "n"}, {"idleTimeout": 60}, {"stopGraceMs": 1}, {"maxAttempts": 1},
                       {"rateLimits": {"run": {"requests": 9}}}, {"templateId": self.template["id"]}):
            assert self.call("PATCH", path, fields)["version"] == 1
        self.call("POST", path + "/pause")
        assert self.call("POST", path + "/resume")["version"] == 1
        assert self.workers(endpoint) == [worker]

    def test_a_different_template(self):
        """core/http/API.md, "Releases": another template is a release; later changes of the former template are no
        release."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        self.worker(endpoint, 1)
        other = self.new_template(imageName="plugin/echo", env={"O": "1"})
        now = self.call("PATCH", "/endpoints/" + endpoint["id"], {"templateId": other["id"]})
        assert (now["version"], now["env"], now["image"], now["templateId"]) == (
            2, {"O": "1"}, "plugin/echo", other["id"])
        worker = self.worker(endpoint, 2)
        assert (worker["image"], worker["env"], worker["templateId"]) == ("plugin/echo", {"O": "1"}, other["id"])
        assert self.server.runsync(endpoint["id"], {"output": 1})["output"] == {"output": 1}
        self.release(readme="of no concern")
        assert self.version(endpoint) == 2
        self.remove("/templates/" + self.template["id"])

    def test_updates_at_once(self):
        """core/http/API.md, "Releases": of several updates at once none is lost: the last env reaches the workers."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        with concurrent.futures.ThreadPoolExecutor(8) as callers:
            list(callers.map(lambda n: self.release(env={"N": str(n + 1)}), range(16)))
        env = self.call("GET", "/templates/" + self.template["id"])["env"]
        now = self.complete(endpoint)
        assert now["version"] <= 17
        assert now["env"] == env
        assert self.worker(endpoint, now["version"])["env"] == env


class RollingTest(ReleaseTest):
    def test_idle_workers_at_once(self):
        """core/http/API.md, "Releases": idle workers of the old version are replaced at once, with the env."""
        endpoint = self.new_endpoint(self.template, workersMin=3)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 3, "three workers idle")
        before = {worker["id"] for worker in self.workers(endpoint)}
        self.release(env={"N": "1"})
        now = self.complete(endpoint, 2)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 3, "three workers idle")
        for worker in now["workers"]:
            assert (worker["env"], worker["slsVersion"]) == ({"N": "1"}, 2)
            assert worker["id"] not in before

    def test_as_many_as_before(self):
        """core/http/API.md, "Releases": workers are replaced: afterwards there are as many as before."""
        endpoint = self.new_endpoint(self.template, workersMin=1, workersMax=6, idleTimeout=3600)
        self.worker(endpoint, 1)
        for version in range(2, 6):
            self.release(env={"N": str(version)})
            self.worker(endpoint, version)
        for version in range(6, 9):
            self.release(env={"N": str(version)})
        self.worker(endpoint, 8)

    def test_busy_workers_after_the_current_job(self, own_server):
        """core/http/API.md, "Releases": a busy worker ends its job first and is replaced afterwards."""
        held = self.held_jobs(own_server)
        endpoint = self.new_endpoint(self.template, workersMax=1, idleTimeout=3600)
        job = self.server.run(endpoint["id"], held.input("whole"))
        self.shown_as_running(endpoint, job)
        self.release(imageName="plugin/echo")
        now = self.endpoint(endpoint)
        assert (now["version"], now["image"], now["release"]) == (2, "plugin/echo", {"version": 2, "state": "rolling"})
        workers = [(worker["state"], worker["slsVersion"], worker["image"]) for worker in now["workers"]]
        assert workers == [("running", 1, held.IMAGE)]
        behind = self.server.run(endpoint["id"], {"output": 2})
        held.release()
        end = self.server.finished(endpoint["id"], job)
        assert (end["output"], end.get("retries")) == ("whole", None)
        assert self.server.finished(endpoint["id"], behind)["output"] == {"output": 2}, "by the new image"
        self.complete(endpoint, 2)

    def test_two_in_a_row(self, own_server):
        """core/http/API.md, "Releases": two updates in a row, while a worker is busy with the first version and others
        idle."""
        held = self.held_jobs(own_server)
        endpoint = self.new_endpoint(self.template, workersMin=3, workersMax=3)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 3, "three workers idle")
        job = self.server.run(endpoint["id"], held.input(1))
        self.in_progress(endpoint, job)
        self.release(env={"N": "1"})
        self.release(env={"N": "2"})
        held.release()
        now = self.complete(endpoint, 3)
        assert [worker["env"] for worker in now["workers"]] == [{"N": "2"}] * 3
        assert self.server.finished(endpoint["id"], job)["output"] == 1

    def test_under_load(self):
        """core/http/API.md, "Releases": updates while jobs run: no job is lost, no job runs twice, all workers are on
        the last version at the end."""
        endpoint = self.new_endpoint(self.template, workersMin=4, workersMax=4)
        jobs, failures, least = [], [], []
        stop = threading.Event()

        def submit():
            connection = self.server.connect()
            while not stop.is_set():
                answer = self.server.request("POST", f"/v2/{endpoint['id']}/run", {"input": {"sleepMs": 5}},
                                             connection=connection)
                (jobs if answer.status == 200 else failures).append(answer.json().get("id", answer))
            connection.close()

        def watch():
            while not stop.is_set():
                states = [worker["state"] for worker in self.workers(endpoint)]
                least.append(sum(state in ("idle", "running") for state in states))
        # A worker is listed from its start on: the watch would count those that are not ready yet as missing.
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 4, "four workers are idle")
        threads = [threading.Thread(target=submit), threading.Thread(target=watch)]
        for thread in threads:
            thread.start()
        for n in range(1, 11):
            self.release(env={"N": str(n)})
            until(lambda n=n: len(jobs) >= n * 40 and any(worker["slsVersion"] == n + 1
                                                          for worker in self.workers(endpoint)),
                  f"a worker of version {n + 1}")
        stop.set()
        join("the last request of the callers", *threads, deadline=2 * REPLY_DEADLINE)
        assert failures == []
        counts = self.server.quiet(endpoint["id"])
        assert (counts["completed"], counts["failed"], counts["retried"]) == (len(jobs), 0, 0)
        assert len(jobs) >= 400
        assert min(least) >= 3, "never fewer than one below the running count"
        now = self.complete(endpoint, 11)
        assert [worker["env"] for worker in now["workers"]] == [{"N": "10"}] * 4

    def test_a_stuck_handler_delays_no_release(self, own_server):
        """core/decisions/workers.md: a stuck worker is replaced; a release does not wait for the worker either."""
        self.server = own_server(server__drain="200ms")
        self.template = self.new_template(env={"N": "0"})
        endpoint = self.new_endpoint(self.template, workersMin=2, workersMax=2, stopGraceMs=100)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 2, "two workers idle")
        stuck = self.server.run_ignoring_stop(endpoint["id"])
        job = self.server.run(endpoint["id"], {"sleepMs": 600_000})
        self.in_progress(endpoint, job)
        self.release(env={"N": "1"})
        for each in (stuck, job):
            self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{each}")

        def versions():
            return [worker["slsVersion"] for worker in self.workers(endpoint) if worker["state"] != "stuck"]
        until(lambda: versions() == [2, 2] and self.endpoint(endpoint)["release"]["state"] == "complete",
              "two workers of version 2")

    def test_during_a_pause(self):
        """core/http/API.md, "Releases": a release of a paused endpoint comes to its workers; its jobs still wait."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        self.worker(endpoint, 1)
        self.call("POST", f"/endpoints/{endpoint['id']}/pause")
        job = self.server.run(endpoint["id"], {"output": 1})
        self.release(imageName="plugin/echo")
        self.worker(endpoint, 2)
        assert self.server.status(endpoint["id"], job)["queueReason"] == "paused"
        self.call("POST", f"/endpoints/{endpoint['id']}/resume")
        assert self.server.finished(endpoint["id"], job)["output"] == {"output": 1}

    def test_during_a_drain(self, own_server):
        """core/http/API.md, "Releases": an update during a drain: the job ends, the update is in force after the
        restart."""
        held = self.held_jobs(own_server, server__drain="60s")
        endpoint = self.new_endpoint(self.template, workersMax=1)
        job = self.server.run(endpoint["id"], held.input("drained"))
        self.in_progress(endpoint, job)
        self.server.terminate()
        until(lambda: self.server.request("GET", "/readyz", key=None).status == 503, "it drains")
        self.release(env={"N": "late"})
        held.release()
        assert self.server.ended() == 0
        self.server.start()
        assert self.server.finished(endpoint["id"], job)["output"] == "drained"
        self.server.runsync(endpoint["id"], held.input("late"))
        now = self.complete(endpoint, 2)
        assert [worker["env"] for worker in now["workers"]] == [{"N": "late"}]

    def test_to_remote_workers_and_back(self, own_server):
        """core/http/API.md, "Images": a new image of remote workers ends our workers after their job; later jobs wait
        for remote workers."""
        held = self.held_jobs(own_server)
        endpoint = self.new_endpoint(self.template, workersMin=2)
        until(lambda: [worker["state"] for worker in self.workers(endpoint)] == ["idle"] * 2, "two workers idle")
        job = self.server.run(endpoint["id"], held.input(1))
        self.in_progress(endpoint, job)
        self.release(imageName="me/worker:1")
        held.release()
        assert self.server.finished(endpoint["id"], job)["output"] == 1
        until(lambda: self.workers(endpoint) == [], "ours have left")
        waiting = self.server.run(endpoint["id"], {"output": 2})
        assert self.server.status(endpoint["id"], waiting)["queueReason"] == "no_workers"
        self.release(imageName="plugin/trial")
        assert self.server.finished(endpoint["id"], waiting)["output"] == 2
        self.complete(endpoint, 3)

    def test_busy_workers_of_the_other_kind_are_shown(self, own_server):
        """core/http/API.md, "Endpoint": a thread that ends its job after a release for remote workers, and a remote worker
        that ends its job after a release for threads, are workers with the release of their job."""
        held = self.held_jobs(own_server)
        key = self.server.new_key("worker")["key"]
        endpoint = self.new_endpoint(self.template, workersMax=1)
        path = "/v2/" + endpoint["id"]

        def shown():
            now = self.endpoint(endpoint)
            health = self.server.health(endpoint["id"])["workers"]
            return now["release"]["state"], health["running"], [
                (worker["id"], worker["state"], worker["slsVersion"], worker["image"]) for worker in now["workers"]]

        job = self.server.run(endpoint["id"], held.input(1))
        [thread] = self.shown_as_running(endpoint, job)
        self.release(imageName="me/worker:1")
        assert shown() == ("rolling", 1, [(thread["id"], "running", 1, held.IMAGE)])
        waiting = self.server.run(endpoint["id"], {})
        assert self.server.status(endpoint["id"], waiting)["queueReason"] == "no_workers", "the thread takes no more job"
        assert "worker env" in self.endpoint(endpoint)["advice"]
        held.release()
        until(lambda: self.workers(endpoint) == [], "the thread has left")

        with contextlib.closing(self.server.connect()) as connection:
            taken = self.server.request("GET", path + "/job-take-batch/mine?batch_size=3&job_in_progress=0",
                                        key=key, connection=connection)
            assert [job["id"] for job in taken.json()] == [waiting]
            assert shown() == ("complete", 1, [("mine", "running", 2, "me/worker:1")])
            self.release(imageName="plugin/trial")
            assert shown() == ("rolling", 1, [("mine", "running", 2, "me/worker:1")])
            done = self.server.request("POST", f"{path}/job-done/mine/{waiting}", {"output": 2}, key=key,
                                       connection=connection)
            assert done.status == 200
            assert self.server.finished(endpoint["id"], waiting)["output"] == 2
            until(lambda: self.workers(endpoint) == [], "the remote worker has left")
        assert shown()[0] == "complete"


class HaltTest(ReleaseTest):
    def test_a_missing_image(self):
        """core/http/API.md, "Releases": the release halts, old workers keep serving, the endpoint states the reason;
        the next good update goes on."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        before = self.worker(endpoint, 1)
        for version, image in ((2, "plugin/nosuch"), (3, "lua/later")):
            assert self.release(imageName=image, env={"N": "bad"})["imageName"] == image
            release = self.halted(endpoint)
            assert release["version"] == version
            assert (image.split("/")[1] if version == 2 else image) in release["reason"]
            assert self.server.runsync(endpoint["id"], {"output": version})["output"] == version
            assert self.worker(endpoint, 1)["id"] == before["id"]
        self.release(imageName="plugin/echo")
        now = self.complete(endpoint, 4)
        assert "reason" not in now["release"]
        assert self.server.runsync(endpoint["id"], {"output": 1})["output"] == {"output": 1}
        assert self.worker(endpoint, 4)["env"] == {"N": "bad"}

    def test_more_workers_while_halted(self):
        """core/http/API.md, "Releases": old workers keep serving: a worker started meanwhile has the old version and
        its env."""
        endpoint = self.new_endpoint(self.template, workersMax=1, idleTimeout=1)
        self.server.runsync(endpoint["id"], {})
        self.release(imageName="plugin/nosuch", env={"N": "bad"})
        until(lambda: self.workers(endpoint) == [], "the old one has left")
        self.call("PATCH", "/endpoints/" + endpoint["id"], {"idleTimeout": 3600})  # the next worker stays
        assert self.server.runsync(endpoint["id"], {"output": 1})["output"] == 1
        worker = self.worker(endpoint, 1)
        assert (worker["image"], worker["env"]) == ("plugin/trial", {"N": "0"})
        now = self.call("PATCH", "/endpoints/" + endpoint["id"], {"workersMax": 2})
        assert now["release"]["state"] == "halted", "still"

    def test_back_to_the_former_image(self):
        """core/http/API.md, "Releases": an update back to the image before is a good one."""
        endpoint = self.new_endpoint(self.template, workersMin=1)
        self.worker(endpoint, 1)
        self.release(imageName="plugin/nosuch")
        self.halted(endpoint)
        self.release(imageName="plugin/trial")
        self.complete(endpoint, 3)
        self.worker(endpoint, 3)

    def test_after_a_restart(self, own_server):
        """core/http/API.md, "Releases": a halted release is still halted after a restart, with its reason; a good
        update goes on."""
        self.server = own_server()
        self.template = self.new_template()
        endpoint = self.new_endpoint(self.template)
        done = self.server.runsync(endpoint["id"], {"output": 1})["id"]
        self.release(imageName="plugin/nosuch")
        reason = self.halted(endpoint)["reason"]
        self.server.restart()
        assert self.halted(endpoint)["reason"] == reason
        job = self.server.run(endpoint["id"], {"output": 2})
        assert self.server.status(endpoint["id"], job)["queueReason"] == "no_workers"
        assert self.server.status(endpoint["id"], done)["output"] == 1
        self.release(imageName="plugin/trial")
        assert self.server.finished(endpoint["id"], job)["output"] == 2
        self.complete(endpoint, 3)

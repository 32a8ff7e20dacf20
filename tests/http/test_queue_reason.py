"""core/http/API.md, "Job object" and "Pause": `queueReason` and `queuePosition` in /status of a queued job, and the
pause of an endpoint. `starting`, and `worker_crashing` of workers with a failing start, are proved in process
(tests/server)."""

import re
import threading

import pytest

from held_jobs import HeldJobs
from jobq_server import join, until
from management_api import ManagementTest


class WaitingTest(ManagementTest):
    def waiting(self, endpoint, job):
        """(reason, position) of a job that waits."""
        answer = self.server.status(endpoint["id"], job)
        assert answer["status"] == "IN_QUEUE", answer
        return answer["queueReason"], answer["queuePosition"]

    def occupied(self, **fields):
        """An endpoint whose only worker is busy with the job, which is returned too."""
        endpoint = self.new_endpoint(workersMax=1, **fields)
        job = self.server.run(endpoint["id"], {"sleepMs": 600_000})
        self.in_progress(endpoint, job)
        return endpoint, job

    def pause(self, endpoint):
        return self.call("POST", f"/endpoints/{endpoint['id']}/pause")

    def resume(self, endpoint):
        return self.call("POST", f"/endpoints/{endpoint['id']}/resume")


class ReasonTest(WaitingTest):
    def test_no_workers(self):
        """core/http/API.md, "Job object": no_workers: the endpoint has no worker and gets none, because workersMax is 0
        or its workers are remote."""
        endpoint = self.new_endpoint(workersMax=0)
        assert self.waiting(endpoint, self.server.run(endpoint["id"], {})) == ("no_workers", 1)
        remote = self.new_endpoint(self.new_template(imageName="busybox"))
        assert self.waiting(remote, self.server.run(remote["id"], {})) == ("no_workers", 1)

    def test_a_lone_low_priority_job(self):
        """core/http/API.md, "Policy": with workersMin = 0 a lone low-priority job waits with no_workers until a worker
        is there."""
        endpoint = self.new_endpoint()
        job = self.server.run(endpoint["id"], {"output": 1}, policy={"lowPriority": True})
        assert self.waiting(endpoint, job) == ("no_workers", 1)
        self.server.runsync(endpoint["id"], {})
        assert self.server.finished(endpoint["id"], job)["output"] == 1

    def test_workers_busy(self):
        """core/http/API.md, "Job object": workers_busy: all permitted workers have a job."""
        endpoint, running = self.occupied()
        job = self.server.run(endpoint["id"], {"output": 1})
        assert self.waiting(endpoint, job) == ("workers_busy", 1)
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{running}")
        assert self.server.finished(endpoint["id"], job)["output"] == 1

    def test_worker_crashing(self, own_server):
        """core/http/API.md, "Job object": worker_crashing: its only worker does not return from a stopped job."""
        self.server = own_server(server__drain="200ms")
        endpoint = self.new_endpoint(workersMax=1, stopGraceMs=0, maxStuck=0)
        stuck = self.server.run_ignoring_stop(endpoint["id"])
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{stuck}")
        until(lambda: self.server.health(endpoint["id"])["workers"]["unhealthy"] == 1, "it is stuck")
        job = self.server.run(endpoint["id"], {})
        assert self.waiting(endpoint, job) == ("worker_crashing", 1)

    def test_draining(self, own_server):
        """core/http/API.md, "Job object": draining: after SIGTERM no worker takes a job, while a running job goes
        on."""
        held = self.at_end.enter_context(HeldJobs())
        self.server = own_server(**held.settings, server__drain="60s")
        endpoint = self.new_endpoint(self.new_template(imageName=held.IMAGE), workersMax=1)
        running = self.server.run(endpoint["id"], held.input("drained"))
        self.in_progress(endpoint, running)
        jobs = [self.server.run(endpoint["id"], {}) for _ in range(2)]
        parked = self.server.run("parked", {})
        self.server.terminate()
        until(lambda: self.server.request("GET", "/readyz", key=None).status == 503, "it drains")
        assert [self.waiting(endpoint, job) for job in jobs] == [("draining", 1), ("draining", 2)]
        assert self.waiting({"id": "parked"}, parked) == ("draining", 1)
        assert self.server.status(endpoint["id"], running)["status"] == "IN_PROGRESS"
        held.release()
        assert self.server.ended() == 0

    def test_a_drain_by_an_administrator(self, own_server):
        """core/http/API.md, "Job object": draining: an administrator lets the only server drain, so its idle worker takes
        no job and is not ready."""
        self.server = own_server()
        endpoint = self.new_endpoint(workersMin=1)
        until(lambda: self.server.health(endpoint["id"])["workers"]["ready"] == 1, "its worker is idle")
        node = "/nodes/" + self.server.request("GET", "/v1/nodes").json()[0]["name"]
        self.call("POST", node + "/drain")
        until(lambda: self.server.request("GET", "/readyz", key=None).status == 503, "it drains")
        job = self.server.run(endpoint["id"], {"output": 1})
        assert self.waiting(endpoint, job) == ("draining", 1)
        assert self.server.health(endpoint["id"])["workers"]["ready"] == 0
        assert self.waiting({"id": "parked"}, self.server.run("parked", {})) == ("no_workers", 1)
        self.call("POST", node + "/resume")
        assert self.server.finished(endpoint["id"], job)["output"] == 1

    def test_only_of_waiting_jobs(self):
        """core/http/API.md, "Job object": /status of a queued job has both fields; a running or ended job has
        neither."""
        endpoint, running = self.occupied()
        assert not re.search("queue(Reason|Position)", str(self.server.status(endpoint["id"], running)))
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{running}")
        assert not re.search("queue(Reason|Position)", str(self.server.status(endpoint["id"], running)))
        done = self.server.runsync(endpoint["id"], {})
        assert not re.search("queue(Reason|Position)", str(done))

    def test_status_sync_and_the_sdk_mount(self):
        """core/http/API.md, "/status-sync": /status-sync is like /status, and the two mounts are equal."""
        endpoint = self.new_endpoint(workersMax=0)
        job = self.server.run(endpoint["id"], {})
        plain = self.server.request("GET", f"/v2/{endpoint['id']}/status/{job}").body
        for path in (f"/v2/{endpoint['id']}/status-sync/{job}?wait=1000", f"/sdk/v2/{endpoint['id']}/status/{job}",
                     f"/v2/{endpoint['id']}/status/{job}?ttl=60000"):
            assert self.server.request("GET", path).body == plain

    @pytest.mark.endpoints("parked")
    def test_endpoints_of_the_file(self):
        """core/http/API.md, "Job object": the same for endpoints of the properties file."""
        job = self.server.run("parked", {})
        assert self.server.status("parked", job)["queueReason"] == "no_workers"
        self.server.request("POST", f"/v2/parked/cancel/{job}")


class PositionTest(WaitingTest):
    def positions(self, endpoint, jobs):
        return [self.waiting(endpoint, job)[1] for job in jobs]

    def test_grows_with_the_queue(self):
        """core/http/API.md, "Job object": queuePosition is the position in the queue, from 1; it shrinks as earlier
        jobs leave."""
        endpoint, running = self.occupied()
        jobs = [self.server.run(endpoint["id"], {"sleepMs": 600_000}) for _ in range(5)]
        assert self.positions(endpoint, jobs) == [1, 2, 3, 4, 5]
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{jobs.pop(1)}")
        assert self.positions(endpoint, jobs) == [1, 2, 3, 4]
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{running}")
        self.in_progress(endpoint, jobs.pop(0))
        assert self.positions(endpoint, jobs) == [1, 2, 3]

    def test_low_priority_jobs_are_behind(self):
        """core/http/API.md, "Order of jobs": a low-priority job runs when no normal job waits, so its position is
        behind all normal jobs."""
        endpoint = self.new_endpoint(workersMax=0)
        low = [self.server.run(endpoint["id"], {}, policy={"lowPriority": True}) for _ in range(2)]
        assert self.positions(endpoint, low) == [1, 2]
        normal = [self.server.run(endpoint["id"], {}) for _ in range(3)]
        assert self.positions(endpoint, normal + low) == [1, 2, 3, 4, 5]

    def test_a_retried_job_is_last(self):
        """core/http/API.md, "/retry": a retried job goes to the end of the queue."""
        endpoint = self.new_endpoint()
        failed = self.server.runsync(endpoint["id"], {"fail": "x"})["id"]
        self.pause(endpoint)
        jobs = [self.server.run(endpoint["id"], {}) for _ in range(2)]
        assert self.server.request("POST", f"/v2/{endpoint['id']}/retry/{failed}").status == 200
        assert self.positions(endpoint, [*jobs, failed]) == [1, 2, 3]

    def test_each_endpoint_has_a_queue(self):
        """core/http/API.md, "Order of jobs": each endpoint has a queue of its own."""
        first, second = self.new_endpoint(workersMax=0), self.new_endpoint(workersMax=0)
        self.server.run(first["id"], {})
        assert self.waiting(second, self.server.run(second["id"], {}))[1] == 1
        assert self.waiting(first, self.server.run(first["id"], {}))[1] == 2


class PauseTest(WaitingTest):
    def test_pause_and_resume(self):
        """core/http/API.md, "Pause": jobs of a paused endpoint are accepted and wait, `paused`; resumed, they run in
        their order."""
        endpoint = self.new_endpoint(workersMin=1)
        assert self.pause(endpoint) == {**self.endpoint_now(endpoint), "paused": True}
        assert self.pause(endpoint)["paused"] is True, "twice is once"
        jobs = [self.server.run(endpoint["id"], {"output": n}) for n in range(3)]
        caller = threading.Thread(target=self.server.runsync, args=(endpoint["id"], {}))
        caller.start()
        until(lambda: self.server.health(endpoint["id"])["jobs"]["inQueue"] == 4, "four wait")
        assert [self.waiting(endpoint, job) for job in jobs] == [("paused", 1), ("paused", 2), ("paused", 3)]
        assert self.resume(endpoint)["paused"] is False
        assert [self.server.finished(endpoint["id"], job)["output"] for job in jobs] == [0, 1, 2]
        join("the caller that waited during the pause", caller)
        assert self.resume(endpoint)["paused"] is False, "twice is once"

    def endpoint_now(self, endpoint):
        return self.call("GET", "/endpoints/" + endpoint["id"])

    def test_running_jobs_go_on(self, own_server):
        """core/http/API.md, "Pause": a pause stops no running job."""
        held = self.at_end.enter_context(HeldJobs())
        self.server = own_server(**held.settings)
        endpoint = self.new_endpoint(self.new_template(imageName=held.IMAGE), workersMax=1)
        job = self.server.run(endpoint["id"], held.input("ends"))
        self.in_progress(endpoint, job)
        behind = self.server.run(endpoint["id"], held.input("waits"))
        self.pause(endpoint)
        held.release()
        assert self.server.finished(endpoint["id"], job)["output"] == "ends"
        assert self.waiting(endpoint, behind) == ("paused", 1)
        self.resume(endpoint)
        assert self.server.finished(endpoint["id"], behind)["output"] == "waits"

    def test_no_workers_for_a_pause(self):
        """core/http/API.md, "Pause": a paused endpoint starts no worker for its queued jobs, and lets its workers
        go."""
        endpoint = self.new_endpoint(idleTimeout=1)
        self.server.runsync(endpoint["id"], {})
        self.pause(endpoint)
        self.server.run(endpoint["id"], {})
        until(lambda: self.workers(endpoint) == [], "its worker leaves")

    def test_survives_a_restart(self, own_server):
        """core/http/API.md, "Pause": a pause is stored: a restart and a crash leave the endpoint paused."""
        self.server = own_server()
        endpoint = self.new_endpoint()
        self.pause(endpoint)
        self.pause({"id": "trial"})
        job = self.server.run(endpoint["id"], {"output": 1})
        static = self.server.run("trial", {"output": 2})
        self.server.restart()
        assert self.waiting(endpoint, job) == ("paused", 1)
        self.server.kill()
        self.server.start()
        assert self.waiting({"id": "trial"}, static) == ("paused", 1)
        assert self.endpoint_now(endpoint)["paused"] is True
        self.resume(endpoint)
        self.resume({"id": "trial"})
        self.server.kill()
        self.server.start()
        assert self.server.finished(endpoint["id"], job)["output"] == 1
        assert self.server.finished("trial", static)["output"] == 2

    def test_a_queued_job_may_be_cancelled_or_purged(self):
        """core/http/API.md, "Pause": queued jobs of a paused endpoint are cancelled, purged and refused like any
        other."""
        endpoint = self.new_endpoint()
        self.pause(endpoint)
        job, other = (self.server.run(endpoint["id"], {}) for _ in range(2))
        answer = self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{job}")
        assert answer.json()["status"] == "CANCELLED"
        answer = self.server.request("POST", f"/v2/{endpoint['id']}/purge-queue")
        assert answer.json()["removed"] == 1
        assert self.server.request("GET", f"/v2/{endpoint['id']}/status/{other}").status == 404

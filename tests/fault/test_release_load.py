"""Releases under load, and many templates and endpoints. 20,000 jobs on 8 workers while the template changes ten
times: no job is lost, no job runs twice, at most a single worker is missing at any time, all workers have the last
version in the end. 1,000 templates and 500 endpoints: lists within 50 ms, /run as cheap as with a single endpoint. A
change of a template with 500 endpoints reaches all endpoints within a second. Seconds are judged where paces are
(tests/support/pace.py); elsewhere the server's processor time is judged beside that of other requests."""

import statistics
import time

import pytest
from bench_load import submit_many
from jobq_server import until
from pace import HANG, JUDGED, judge_pace
from process_watch import processor_seconds

JOBS, WORKERS, UPDATES = 20000, 8, 10
TEMPLATES, ENDPOINTS = 1000, 500
MOST_FOR_A_LIST = 0.050  # seconds
MOST_FOR_A_CHANGE = 1.0  # seconds
MOST_COST = 1 / 0.9  # processor time of a /run / the time with a single endpoint: the difference of two runs
MOST_COST_BESIDE_OTHERS = 2.0
MOST_COST_OF_A_LIST = 0.25  # of the processor time for as many requests of one record each
MOST_COST_OF_A_CHANGE = 1.0  # of the processor time for the requests that created the endpoints


class ManagedServer:
    """The management API of a server, as far as needed by the tests."""

    def __init__(self, server):
        self.server = server

    def _call(self, method, path, body=None):
        answer = self.server.request(method, path, body)
        if answer.status not in (200, 204):
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body}")
        return answer.json() if answer.status == 200 else None

    def template(self, name, **fields):
        return self._call("POST", "/v1/templates", {"name": name, "imageName": "plugin/trial", **fields})["id"]

    def update(self, template, **fields):
        self._call("PATCH", f"/v1/templates/{template}", fields)

    def endpoint(self, template, **fields):
        return self._call("POST", "/v1/endpoints", {"templateId": template, **fields})["id"]

    def show(self, endpoint):
        return self._call("GET", f"/v1/endpoints/{endpoint}?includeWorkers=true")


@pytest.mark.timeout(900)
class ReleaseLoadTest:
    def test_ten_updates_under_load(self, own_server):
        """core/http/API.md, "Releases": a rolling release loses no job and runs no job twice."""
        server = own_server(limits__enabled="false", limits__queue="false")
        managed = ManagedServer(server)
        template = managed.template("rolled", env={"VERSION": "0"})
        endpoint = managed.endpoint(template, workersMin=WORKERS, workersMax=WORKERS, scalerType="REQUEST_COUNT",
                                    scalerValue=1)
        until(lambda: self.at_work(managed, endpoint) == WORKERS, "all workers are there", HANG)
        submit_many(server, endpoint, {"sleepMs": 1}, JOBS)
        fewest, versions, updates = WORKERS, set(), 0
        deadline = time.monotonic() + 3 * HANG
        while True:
            shown = managed.show(endpoint)
            fewest = min(fewest, sum(worker["state"] != "leaving" for worker in shown["workers"]))
            versions |= {worker["slsVersion"] for worker in shown["workers"]}
            done = server.health(endpoint)["jobs"]["completed"]
            if updates < UPDATES and done >= JOBS * (updates + 1) // (UPDATES + 2):
                updates += 1
                managed.update(template, env={"VERSION": str(updates)})
            if done >= JOBS and updates == UPDATES:
                break
            assert time.monotonic() < deadline, f"waited {3 * HANG:g} s: {done} jobs are done, {updates} updates"
        until(lambda: managed.show(endpoint)["release"]["state"] == "complete", "the last release is complete", HANG)
        last = managed.show(endpoint)
        jobs = server.health(endpoint)["jobs"]
        print(f"{JOBS} jobs on {WORKERS} workers through {updates} releases: versions at work {sorted(versions)}, "
              f"never fewer than {fewest} workers; {jobs}", flush=True)
        assert jobs == {"completed": JOBS, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 0}
        assert fewest >= WORKERS - 1
        assert last["version"] == UPDATES + 1
        assert {worker["slsVersion"] for worker in last["workers"]} == {UPDATES + 1}
        assert {worker["env"]["VERSION"] for worker in last["workers"]} == {str(UPDATES)}
        assert len(versions) > UPDATES // 2, "the releases really were under way while jobs ran"

    @staticmethod
    def at_work(managed, endpoint):
        return sum(worker["state"] in ("idle", "running") for worker in managed.show(endpoint)["workers"])

    def test_a_change_reaches_every_endpoint_within_a_second(self, own_server):
        """core/http/API.md, "Releases": a change takes effect within 1 s; on a disk, where a version is a commit or
        part of a commit."""
        server = own_server(storage="sqlite", limits__enabled="false")
        managed = ManagedServer(server)
        template = managed.template("shared")
        before = processor_seconds(server.process.pid)
        ids = {managed.endpoint(template, workersMax=0) for _ in range(ENDPOINTS)}
        creation = processor_seconds(server.process.pid) - before
        times, costs = [], []
        for version in (2, 3, 4):
            start, before = time.monotonic(), processor_seconds(server.process.pid)
            managed.update(template, env={"VERSION": str(version)})
            # One small request for each poll: the cost of the polls does not grow with a slow disk as lists would.
            for endpoint in ids:
                until(lambda e=endpoint: managed.show(e)["version"] == version, f"{endpoint} has version {version}", HANG)
            times.append(time.monotonic() - start)
            costs.append(processor_seconds(server.process.pid) - before)
            assert self.versions(managed, ids) == {version}
        print(f"a template of {ENDPOINTS} endpoints: all have its new version after {in_ms(times)} ms, "
              f"{in_ms(costs)} ms of processor time with the looks at it, {in_ms([creation])} ms for their creation",
              flush=True)
        judge_pace(f"a change of {ENDPOINTS} endpoints", statistics.median(times), MOST_FOR_A_CHANGE)
        assert statistics.median(costs) <= MOST_COST_OF_A_CHANGE * creation, "seconds of processor time for a change"

    @staticmethod
    def versions(managed, ids):
        """The versions of the given endpoints in the list of endpoints."""
        answer = managed.server.request("GET", "/v1/endpoints")
        return {endpoint["version"] for endpoint in answer.json() if endpoint["id"] in ids}

    def test_many_templates_and_endpoints(self, own_server):
        """Lists within 50 ms, and /run no dearer than with a single endpoint. The rounds alternate between two servers;
        without a disk, and by processor time, the machine's other load moves the figure little."""
        few, many = (ManagedServer(own_server(storage="memory", limits__enabled="false", limits__queue="false"))
                     for _ in range(2))
        ids = [few.endpoint(few.template("one"), workersMax=0)]
        templates = [many.template(f"template {i}", env={"NUMBER": str(i)}) for i in range(TEMPLATES)]
        ids.append([many.endpoint(templates[i], workersMax=0) for i in range(ENDPOINTS)][-1])
        self.check_list(many.server, "/v1/templates", TEMPLATES, f"/v1/templates/{templates[0]}")
        self.check_list(many.server, "/v1/endpoints?includeTemplate=true", ENDPOINTS,
                        f"/v1/endpoints/{ids[1]}?includeTemplate=true")
        paces, costs = [], []
        for _ in range(11 if JUDGED else 5):
            (pace, cost), (alone, alone_cost) = self.submit(many, ids[1]), self.submit(few, ids[0])
            paces.append(pace / alone)
            costs.append(cost / alone_cost)
        cost = statistics.median(costs)
        print(f"/run among {ENDPOINTS} endpoints: {cost:.2f} of the processor time with one "
              f"{[round(cost, 2) for cost in costs]}, {statistics.median(paces):.2f} of the pace", flush=True)
        judge_pace(f"processor time of /run among {ENDPOINTS} endpoints, of that with one", cost, MOST_COST, unit="")
        assert cost <= MOST_COST_BESIDE_OTHERS, "processor time of a /run, of that with one endpoint"

    @staticmethod
    def check_list(server, path, count, of_one):
        """Compares lists with as many requests of one record, at the path `of_one`."""
        times = []
        before = processor_seconds(server.process.pid)
        for _ in range(count):
            assert server.request("GET", of_one).status == 200
        twin = processor_seconds(server.process.pid) - before
        before = processor_seconds(server.process.pid)
        for _ in range(11):
            start = time.monotonic()
            answer = server.request("GET", path)
            times.append(time.monotonic() - start)
            assert answer.status == 200
        cost = (processor_seconds(server.process.pid) - before) / len(times)
        assert len(answer.json()) >= count
        print(f"GET {path}: {count} in {statistics.median(times) * 1000:.1f} ms, {cost * 1000:.1f} ms of processor "
              f"time ({twin * 1000:.0f} ms for as many single requests), {len(answer.body)} bytes", flush=True)
        judge_pace(f"GET {path} of {count}", statistics.median(times), MOST_FOR_A_LIST)
        assert cost <= MOST_COST_OF_A_LIST * twin, "seconds of processor time for a list"

    @staticmethod
    def submit(managed, endpoint):
        """Jobs a second, and the server's processor seconds for all jobs."""
        before = processor_seconds(managed.server.process.pid)
        pace = submit_many(managed.server, endpoint, {}, 20000)
        return pace, processor_seconds(managed.server.process.pid) - before


def in_ms(times):
    return ", ".join(f"{seconds * 1000:.0f}" for seconds in times)

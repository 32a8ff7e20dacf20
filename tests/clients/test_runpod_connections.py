"""Workers of the Python package runpod without lasting connections to the server: early versions close an idle
connection after 15 s, and reverse proxies close a connection after each answer, or some seconds later. Each job runs
once. All workers of a class work at the same time.

JOBQ_TEST_WORKERS=all (the tier nightly) adds a version of each year, generators, progress, longer jobs, and HAProxy."""

import contextlib
import itertools
import os
import subprocess

import pytest

from pace import HANG
from reverse_proxy import ReverseProxy, missing
from runpod_case import CLIENTS, IMAGE, RunpodTest
from runpod_process import DEFAULT_PING_MS, MISSING, OLD_PYTHON, PYTHON, VENVS, RemoteWorker, installed, worker_key

SLEEPER = (CLIENTS / "runpod_sleeper.py").read_text(encoding="utf-8")
ALL = os.environ.get("JOBQ_TEST_WORKERS") == "all"
PROXIES = ("nginx", "haproxy") if ALL else ("nginx",)
ROUTES = ("direct", *PROXIES)
# Versions of other years run with the packages required by 1.7.13.
OF_OTHER_YEARS = ("1.3.7", "1.7.4")
VERSIONS = ("1.7.13", "1.12.0", *(OF_OTHER_YEARS if ALL else ()))
# Groups of kinds of handlers. The workers of a group work at the same time; a worker takes 100 MB.
GROUPS = [("blocking",), ("waiting",), ("generator",), ("progressing",)] if ALL else [("blocking", "waiting")]
SECONDS = (25, 40, 90) if ALL else (25,)

pytestmark = [pytest.mark.skipif(not installed() or not OLD_PYTHON.exists(), reason=MISSING),
              pytest.mark.skipif(bool(missing(*PROXIES)), reason=missing(*PROXIES)), pytest.mark.timeout(480)]


def sdk(version):
    """Returns the arguments of RemoteWorker for a version of the package."""
    if version == "1.12.0":
        return {"python": PYTHON}
    if version == "1.7.13":
        return {"python": OLD_PYTHON}
    folder = VENVS / f"runpod-{version}"
    if not folder.exists():
        subprocess.run([OLD_PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder,
                        f"runpod=={version}"], check=True, timeout=300)
    return {"python": OLD_PYTHON, "variables": {"PYTHONPATH": str(folder)}}


class ConnectionTest(RunpodTest):
    """`routes` has a proxy for each name of ROUTES, and None for `direct`."""

    settings = {"limits__enabled": "false"}

    @pytest.fixture(scope="class")
    @classmethod
    def routes(cls, server):
        with contextlib.ExitStack() as stack:
            yield {"direct": None, **{name: stack.enter_context(ReverseProxy(name, server)) for name in PROXIES}}


def named(version, kind, route):
    return f"{kind}-{version.replace('.', '-')}-{route}"


class LiveAndKilledTest(ConnectionTest):
    """Workers are killed while the jobs of live workers run."""

    endpoints = ("direct", "proxied",
                 *(named(*case) for case in itertools.product(VERSIONS, itertools.chain(*GROUPS), ROUTES)))

    @pytest.fixture(scope="class", params=GROUPS, ids="-".join)
    @classmethod
    def workers(cls, server, routes, request):
        with contextlib.ExitStack() as stack:
            workers = {}
            for version, kind, route in itertools.product(VERSIONS, request.param, ROUTES):
                name = named(version, kind, route)
                workers[name] = stack.enter_context(RemoteWorker(
                    server, name, worker_key(server, name), SLEEPER, through=routes[route], kind=kind,
                    urls={"ping_ms": DEFAULT_PING_MS}, **sdk(version)))
            yield workers

    @pytest.fixture(scope="class", params=SECONDS)
    @classmethod
    def jobs(cls, server, workers, request):
        """A running job of each live worker, by the name of the worker, and the seconds of each job."""
        jobs = {name: server.run(name, {"seconds": request.param}) for name in workers}
        for name, job in jobs.items():
            workers[name].records(1, event="begun", id=job)
        return jobs, request.param

    def begin(self, endpoint, route):
        """Returns a worker and a running job of a quarter of an hour. The ping process outlives the worker, and
        continues to list the job."""
        worker = self.worker(endpoint, SLEEPER, through=route, kind="blocking", **sdk("1.7.13"))
        job = self.server.run(endpoint, {"seconds": 900})
        self.at_end.callback(self.server.request, "POST", f"/v2/{endpoint}/cancel/{job}")
        worker.records(1, event="begun", id=job)
        return worker, job

    @pytest.mark.usefixtures("jobs")
    def test_a_worker_is_killed_on_the_direct_way(self):
        """The worker makes no calls during the job: the end of the connection shows the death of the worker."""
        worker, job = self.begin("direct", None)
        worker.kill()
        other = self.worker("direct", SLEEPER, name="w-other", kind="blocking")
        other.records(1, event="begun", id=job)
        status = self.server.status("direct", job)
        assert (status["status"], status["workerId"]) == ("IN_PROGRESS", "w-other")

    @pytest.mark.usefixtures("jobs")
    def test_a_worker_is_killed_behind_a_proxy(self, routes):
        """The next process with the same id asks for jobs: the call shows the death of the worker."""
        worker, job = self.begin("proxied", routes["nginx"])
        worker.kill()
        again = self.worker("proxied", SLEEPER, through=routes["nginx"], kind="blocking", **sdk("1.7.13"))
        again.records(1, event="begun", id=job)
        assert self.server.status("proxied", job)["status"] == "IN_PROGRESS"

    def test_live_workers_run_their_jobs_once(self, workers, jobs):
        """Each job runs once, even if the worker has no open connection for a long time."""
        faults = {}
        for name, job in jobs[0].items():
            done = self.server.finished(name, job, wait=int(1000 * (jobs[1] + HANG)))
            begun = len(workers[name].recorded(event="begun", id=job))
            if (done["status"], begun, "retries" in done) != ("COMPLETED", 1, False):
                faults[name] = f"{done['status']}, begun {begun} times"
        assert not faults

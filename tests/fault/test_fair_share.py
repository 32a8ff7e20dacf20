"""One noisy key and nine quiet keys on a server under load, policy `fair`: 10,000 jobs of the noisy key wait, and the
others submit 100 each, on both storages. The places of the quiet keys' jobs in the queue are counted while the endpoint
is paused. The delays are measured: the quiet keys wait hardly longer than their twins, which submit at the same time to
an endpoint without a noisy key.

    build/venv/bin/pytest -s tests/fault/test_fair_share.py        (half a minute)

`tests/plugins/fairness_test.cpp` counts the same job by job on a clock moved by hand; this test uses real time.

A flood at an endpoint with 128 workers, and the first job of each of 12 endpoints without a worker: this job starts
within 100 ms. `tests/unit/dispatcher_test.cpp` counts the same in claims."""

import threading

import pytest
from bench_load import submit_many
from jobq_api import Api
from keep_alive import KeepAlive
from pace import HANG, HANG_MS, judge_pace

NOISY_JOBS, QUIET_KEYS, QUIET_JOBS = 10_000, 9, 100
# A worker takes a job longer than its submission takes, so that there is a line also without the noisy key.
WORKERS, JOB = 2, {"sleepMs": 5}
MOST_TIMES = 2.0  # the p99 of each key, where paces are judged
MOST_TIMES_IN_ALL = 3.0  # all delays together, where paces are judged; 12 when the noisy key goes first
TURNS = 9  # jobs of each quiet key whose places are counted: all of them are among the 100 places that are told apart
FLOOD_JOBS, FLOOD_JOB, FLOOD_WORKERS = 30_000, {}, 128
COLD_ENDPOINTS, FIRST_START = 12, 0.1


def at(delays, part):
    """Milliseconds; part 0.5 is the median."""
    return sorted(delays)[min(len(delays) - 1, int(part * len(delays)))]


@pytest.mark.timeout(600)
class FairShareTest:
    def test_memory(self, own_server):
        """core/decisions/jobs.md, "Order in the queue": a noisy key cannot starve the rest."""
        self.share("memory", own_server)

    def test_sqlite(self, own_server):
        """core/decisions/jobs.md, "Order in the queue": a noisy key cannot starve the rest."""
        self.share("sqlite", own_server)

    def share(self, storage, own_server):
        settings = {f"endpoint__{name}__{field}": value for name in ("without", "beside")
                    for field, value in (("image", "plugin/trial"), ("workersMin", WORKERS), ("workersMax", WORKERS))}
        server = own_server(storage=storage, queue__policy="fair", **settings)
        noisy, *quiet = [Api(server.url, server.new_key("client")["key"]) for _ in range(1 + QUIET_KEYS)]
        assert server.request("POST", "/v1/endpoints/beside/pause").status == 200
        submit_many(noisy, "beside", JOB, NOISY_JOBS)
        self.take_turns(server, quiet)
        before = server.health("beside")["jobs"]["completed"]
        # At the same time, each with workers of its own: other work of the machine meets both.
        delays = self.delays([(endpoint, key) for endpoint in ("without", "beside") for key in quiet])
        without, beside = delays[:QUIET_KEYS], delays[QUIET_KEYS:]
        jobs = server.health("beside")["jobs"]
        # After the purge no worker has a job when the server stops.
        removed = server.request("POST", "/v2/beside/purge-queue").json()["removed"]
        server.quiet("beside")
        self.print_delays(storage, without, beside)
        between = jobs["completed"] - before - QUIET_KEYS * QUIET_JOBS
        print(f"of the noisy key's jobs {before} were done when the others came, {between} between theirs, "
              f"{removed} waited in the end", flush=True)
        assert between > QUIET_JOBS // 2, "the noisy key had its own share"
        judge_pace(f"{storage}: jobs of the noisy key that waited in the end", removed, NOISY_JOBS // 2, unit="",
                   least=True)
        judge_pace(f"{storage}: delays of all quiet keys, of those without the noisy key",
                   sum(map(sum, beside)) / max(1, sum(map(sum, without))), MOST_TIMES_IN_ALL, unit="")
        for n, (alone, together) in enumerate(zip(without, beside), 1):
            judge_pace(f"{storage}: p99 of key {n}, of that without the noisy key",
                       at(together, 0.99) / max(1, at(alone, 0.99)), MOST_TIMES, unit="")

    def take_turns(self, server, quiet):
        """Counts, while the endpoint is paused, that the n-th job of each quiet key has at most n jobs of each other
        key before it, the noisy key included. Resumes the endpoint, and returns once the counted jobs have ended."""
        jobs = [(turn, api.run("beside", JOB)) for turn in range(1, TURNS + 1) for api in quiet]
        places = [(turn, server.status("beside", job)["queuePosition"]) for turn, job in jobs]
        assert [(turn, place) for turn, place in places if place > turn * (1 + QUIET_KEYS)] == []
        assert server.request("POST", "/v1/endpoints/beside/resume").status == 200
        for _, job in jobs:
            assert server.finished("beside", job)["status"] == "COMPLETED"

    def delays(self, callers):
        """All of them, each an endpoint and a key, submit at the same time; the delays of each one's jobs, in
        milliseconds, once they have ended."""
        delays = [[] for _ in callers]

        def submit_and_wait(endpoint, api, mine):
            with KeepAlive(api) as connection:
                ids = [connection.ask("POST", f"/v2/{endpoint}/run", {"input": JOB})[1]["id"]
                       for _ in range(QUIET_JOBS)]
                for job in ids:
                    answer = connection.ask("GET", f"/v2/{endpoint}/status-sync/{job}?wait={HANG_MS}")[1]
                    if answer["status"] == "COMPLETED":
                        mine.append(answer["delayTime"])
        threads = [threading.Thread(target=submit_and_wait, args=(*caller, mine), daemon=True)
                   for caller, mine in zip(callers, delays)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * HANG)
            if thread.is_alive():
                pytest.fail(f"waited {2 * HANG:g} s for a quiet key's jobs")
        assert [len(mine) for mine in delays] == [QUIET_JOBS] * len(callers), "every job completed"
        return delays

    @staticmethod
    def print_delays(storage, without, beside):
        print(f"{storage}: delay of {QUIET_KEYS} keys' {QUIET_JOBS} jobs each, ms: without the noisy key, beside it")
        rows = [(f"key {n}", *pair) for n, pair in enumerate(zip(without, beside), 1)]
        rows.append(("all", sum(without, []), sum(beside, [])))
        for name, alone, together in rows:
            print(f"  {name:6} p50 {at(alone, 0.5):5} {at(together, 0.5):5}   "
                  f"p99 {at(alone, 0.99):5} {at(together, 0.99):5}   {at(together, 0.99) / max(1, at(alone, 0.99)):.2f} times")


@pytest.mark.timeout(600)
class ColdEndpointTest:
    def test_memory(self, own_server):
        self.first_jobs("memory", own_server)

    def test_sqlite(self, own_server):
        self.first_jobs("sqlite", own_server)

    def first_jobs(self, storage, own_server):
        cold = [f"cold{n}" for n in range(COLD_ENDPOINTS)]
        settings = {f"endpoint__{name}__{field}": value for name in cold
                    for field, value in (("image", "plugin/trial"), ("workersMax", 1))}
        server = own_server(storage=storage, endpoint__flood__image="plugin/trial",
                            endpoint__flood__workersMin=FLOOD_WORKERS, endpoint__flood__workersMax=FLOOD_WORKERS,
                            **settings)
        submit_many(server, "flood", FLOOD_JOB, FLOOD_JOBS // 4)
        flood = threading.Thread(target=submit_many, args=(server, "flood", FLOOD_JOB, FLOOD_JOBS), daemon=True)
        flood.start()
        delays = []
        with KeepAlive(server) as connection:
            for name in cold:
                job = connection.ask("POST", f"/v2/{name}/run", {"input": {}})[1]["id"]
                answer = connection.ask("GET", f"/v2/{name}/status-sync/{job}?wait={HANG_MS}")[1]
                assert answer["status"] == "COMPLETED", answer
                delays.append(answer["delayTime"] / 1000)
        flooding = flood.is_alive() or server.health("flood")["jobs"]["inQueue"] > 0
        flood.join(2 * HANG)
        assert not flood.is_alive(), f"waited {2 * HANG:g} s for the end of the flood"
        server.request("POST", "/v2/flood/purge-queue")
        server.quiet("flood")
        print(f"{storage}: delays of first jobs, ms: {[round(delay * 1000) for delay in sorted(delays)]}"
              f"{'' if flooding else '; the flood was over before the last'}", flush=True)
        judge_pace(f"{storage}: the first job of {COLD_ENDPOINTS} cold endpoints beside a flood", max(delays),
                   FIRST_START)

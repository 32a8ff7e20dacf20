"""Remote workers behind the balancer of three nodes: each call of a worker goes to the next node. Under load a node is
killed with SIGKILL, and every acknowledged job ends with the right output, counted once. The long form:
JOBQ_CLUSTER_JOBS."""

import contextlib
import json
import os
import threading
import time
import uuid

import pytest
from jobq_api import join, until
from jobq_worker import JobqWorker
from node_cluster import LEASE, Cluster
from runpod_process import PYTHON, RemoteWorker

IMAGE = "docker.io/acme/worker:1"
JOBS = int(os.environ.get("JOBQ_CLUSTER_JOBS", "600"))
CALLERS = 4
WORKERS = 3
HANDLERS = 4
LONG = 9  # jobs that workers run when the node dies: each job has a home among the three nodes
TRANSIENT = (502, 503)  # the balancer says 502 when a node dies with the call

RUNPOD = """import asyncio
import runpod
from handler_steps import record

async def handler(job):
    ask = job["input"]
    try:
        await asyncio.sleep(ask.get("sleepMs", 0) / 1000)
    except asyncio.CancelledError:
        record(event="cancelled", id=job["id"])
        raise
    return ask["output"]

runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: 2})
"""


class BalancedCaller:
    """Calls through the balancer, and repeats a call after the death of the node. Submissions have an
    Idempotency-Key."""

    def __init__(self, cluster, endpoint="remote"):
        self.cluster, self.path = cluster, f"/v2/{endpoint}"

    def call(self, method, path, body=None):
        headers = {"Idempotency-Key": uuid.uuid4().hex} if body else {}
        give_up = time.monotonic() + 60
        while True:
            try:
                answer = self.cluster.request(method, path, body, headers=headers)
            except OSError as error:
                answer = error
            if isinstance(answer, tuple) and answer.status not in TRANSIENT:
                assert answer.status == 200, answer.body
                return answer.json()
            assert time.monotonic() < give_up, answer
            time.sleep(0.05)  # the pace of a caller

    def run(self, output, sleep_ms=0):
        """Submits a job. Returns the job's id."""
        return self.call("POST", f"{self.path}/run", {"input": {"output": output, "sleepMs": sleep_ms}})["id"]

    def status(self, job):
        return self.call("GET", f"{self.path}/status/{job}")

    def cancel(self, job):
        return self.call("POST", f"{self.path}/cancel/{job}")

    def finished(self, jobs, deadline=60.0):
        """Waits for the end of all jobs of the endpoint. Returns the answers of `jobs` by id."""
        answers, counts = {}, {}

        def ended():
            counts.update(self.call("GET", f"{self.path}/health")["jobs"])
            if counts["inQueue"] or counts["inProgress"]:
                return False
            for job in jobs:  # the counters may be a second old
                if job not in answers and (answer := self.status(job))["status"] not in ("IN_QUEUE", "IN_PROGRESS"):
                    answers[job] = answer
            return len(answers) == len(jobs)

        try:
            until(ended, f"the end of {len(jobs)} jobs", deadline)
        except AssertionError:
            open_jobs = [answer for job in jobs if (answer := self.status(job))["status"] in ("IN_QUEUE", "IN_PROGRESS")]
            print(f"counters {counts}, open {open_jobs}", flush=True)
            raise
        return answers


def worker_key(cluster, endpoint):
    """Makes a key, and waits until all nodes know the key: a refused key ends a jobq-worker."""
    key = cluster.new_key("worker", endpoints=[endpoint])["key"]
    for node in cluster.nodes:
        ping = f"/v2/{endpoint}/ping/nobody"
        until(lambda node=node, ping=ping: node.request("GET", ping, key=None, headers={"Authorization": key}).status == 200,
              f"{node.name} knows the key", 30)
    return key


@pytest.mark.timeout(3600)
class RemoteWorkersTest:
    @pytest.fixture(scope="class")
    @classmethod
    def cluster(cls):
        with Cluster(3, **{"endpoint.remote.image": IMAGE, "endpoint.remote.maxAttempts": 20,
                           "endpoint.public.image": IMAGE, "endpoint.witness.workersMin": 0}) as cluster:
            yield cluster

    @pytest.fixture(scope="class")
    @classmethod
    def workers(cls, cluster):
        key = worker_key(cluster, "remote")
        workers = [JobqWorker(cluster, "remote", "plugin/trial", "--concurrency", str(HANDLERS), name=f"w{i}", key=key)
                   for i in range(WORKERS)]
        with contextlib.ExitStack() as stack:
            for worker in workers:
                stack.enter_context(worker)
            yield workers

    def test_a_node_dies_under_load(self, cluster, workers):
        assert len(workers) == WORKERS
        caller, jobs, before = BalancedCaller(cluster), {}, cluster.health("remote")["jobs"]
        lock = threading.Lock()

        def submit(numbers):
            for number in numbers:
                job = caller.run(number, 20_000 if number < LONG else number % 40)
                with lock:
                    jobs[job] = number

        threads = [threading.Thread(target=submit, args=(range(first, JOBS, CALLERS),)) for first in range(CALLERS)]
        for thread in threads:
            thread.start()
        until(lambda: len(jobs) >= 4 * LONG, "the long jobs to run", 60)

        def are_known():
            """Each long job is in the records of two nodes. A known gap: the stop of an unknown job may reach the next
            run of the job."""
            texts = [row[0] for row in cluster.database.query("SELECT body FROM record WHERE kind = 'remoteNews'", "jobq")]
            with lock:
                long = [job for job, number in jobs.items() if number < LONG]
            return all(sum(job in text for text in texts) >= 2 for job in long)

        until(are_known, "the nodes to know the long jobs", 30)
        rows = cluster.database.query("SELECT id, body FROM record WHERE kind = 'remoteNews'", "jobq")
        in_hand = {name: sum(len(worker.get("jobs", {})) for worker in json.loads(body)["workers"]) for name, body in rows}
        victim = cluster.node(max(in_hand, key=in_hand.get))
        victim.kill()
        victim.start()  # the node's jobs go back to the queue at once
        join("the callers", *threads)
        cluster.balancer.await_ready(victim)
        answers = caller.finished(jobs, LEASE + 60)
        assert {job: answer.get("output") for job, answer in answers.items()} == jobs
        assert {answer["status"] for answer in answers.values()} == {"COMPLETED"}
        after = cluster.health("remote")["jobs"]
        print(f"{len(jobs)} jobs, run again {after['retried'] - before['retried']}", flush=True)
        assert after["completed"] - before["completed"] == JOBS, "each end is counted once"
        assert {job: caller.status(job) for job in jobs} == answers, "an end that was seen stays"

    def test_cancels_reach_the_handlers(self, cluster, workers):
        caller = BalancedCaller(cluster)
        handlers, begin = len(workers) * HANDLERS, time.monotonic()
        for _ in range(3):  # the second and third time begin when all handlers have ended
            jobs = [caller.run("never", 3_600_000) for _ in range(handlers)]
            until(lambda: all(caller.status(job)["status"] == "IN_PROGRESS" for job in jobs), "all handlers to be busy", 30)
            print(f"{handlers} handlers busy after {time.monotonic() - begin:.1f} s", flush=True)
            for job in jobs:
                assert caller.cancel(job)["status"] == "CANCELLED"
        job = caller.run("next")
        assert caller.finished([job], 30)[job]["output"] == "next"
        assert all(worker.running for worker in workers), [worker.log() for worker in workers]

    def test_a_worker_ends(self, cluster, workers):
        """At SIGTERM the worker announces the end to each node in turn, until all parked calls of the worker have
        ended."""
        caller = BalancedCaller(cluster)
        workers[0].terminate()
        assert workers[0].ended() == 0, workers[0].log()
        jobs = {caller.run(number, 10): number for number in range(50)}
        answers = caller.finished(jobs, 30)
        assert {job: answer.get("output") for job, answer in answers.items()} == jobs
        assert workers[0].name not in {answer["workerId"] for answer in answers.values()}

    @pytest.mark.skipif(not PYTHON.exists(), reason="the PyPI package runpod is not installed")
    def test_a_worker_of_the_public_package(self, cluster):
        caller = BalancedCaller(cluster, "public")
        with RemoteWorker(cluster, "public", worker_key(cluster, "public"), RUNPOD, name="public") as worker:
            jobs = {caller.run(number, 20): number for number in range(6)}
            answers = caller.finished(jobs, 60)
            assert {job: answer.get("output") for job, answer in answers.items()} == jobs
            long = caller.run("never", 3_600_000)
            until(lambda: caller.status(long)["status"] == "IN_PROGRESS", "the long job to run", 30)
            caller.cancel(long)
            worker.records(1, event="cancelled")
            next_job = caller.run("next")
            assert caller.finished([next_job], 30)[next_job]["output"] == "next"

"""The kill matrix: real nodes on one MariaDB server behind a balancer, under load, and each kind of death in turn.

JOBQ_CLUSTER_ROUNDS is the number of rounds of each kind, JOBQ_CLUSTER_MINUTES the time of the restarts of nodes;
JOBQ_SEED repeats the choice of the nodes. The checker (tests/support/cluster_history.py) judges each round.
"""

import contextlib
import os
import random
import time

import pytest
from node_cluster import FENCE, LEASE, Cluster, Hold
from cluster_traffic import KINDS, Traffic
from jobq_server import until
from pace import HANG, judge_pace

ROUNDS = int(os.environ.get("JOBQ_CLUSTER_ROUNDS", "1"))
MINUTES = float(os.environ.get("JOBQ_CLUSTER_MINUTES", "0"))
NODES = 3
EVERY = 5.0  # seconds between the begins of two restarts in the long form
# A webhook that a killed node was delivering is due a minute later: too long for the short form.
KILL_KINDS = KINDS if ROUNDS > 1 else tuple(kind for kind in KINDS if kind != "webhook")


@pytest.fixture(scope="class")
def cluster():
    with Cluster(NODES) as cluster:
        yield cluster


def answer_of(plain):
    """Returns the first bytes before the end of the connection, if any."""
    try:
        return plain.recv(65536)
    except ConnectionResetError:
        return b""


def seconds(since):
    return (time.monotonic_ns() - since) / 1e9


@pytest.mark.timeout(1800)
class KillMatrixTest:
    @pytest.fixture(autouse=True)
    def shared_cluster(self, cluster):
        self.cluster = cluster
        self.seed = int(os.environ.get("JOBQ_SEED", "0")) or random.randrange(1, 1 << 31)
        print(f"\nJOBQ_SEED={self.seed}", flush=True)
        self.dice = random.Random(self.seed)

    @contextlib.contextmanager
    def load(self, kinds=KILL_KINDS):
        """Load for the length of the block. At the end, expects a verdict without faults."""
        self.cluster.interruptions.clear()
        with Traffic(self.cluster, callers=4, kinds=kinds, work_ms=(0, 40), pause=0.02, seed=self.seed) as traffic:
            traffic.await_jobs(40)
            yield traffic
            traffic.await_jobs(40)
        self.verdict = traffic.verdict()
        assert self.verdict.faults == []
        assert self.verdict.figures["lost"] == 0

    def runner_of(self, number):
        """Waits until a node runs the job, and returns the node."""
        runs = until(lambda: [run for run in self.cluster.runs() if run.number == number], f"job {number} runs", HANG)
        return self.cluster.node(runs[-1].node)

    def restart(self, node):
        node.start()
        self.cluster.balancer.await_ready(*self.cluster.nodes)

    def test_a_node(self):
        for _ in range(ROUNDS):
            with self.load() as traffic:
                victim = self.dice.choice(self.cluster.nodes)
                victim.kill()
                traffic.await_jobs(60)
                self.restart(victim)

    def test_the_database(self):
        for _ in range(ROUNDS):
            with self.load() as traffic:
                begin = time.monotonic_ns()
                self.cluster.database.kill()
                self.cluster.database.start()
                back = time.monotonic_ns()
                answered = traffic.await_call_after(back)
                judge_pace("from the return of the database to the first accepted job", (answered - back) / 1e9, 5.0)
                if seconds(begin) > FENCE - 1.0:
                    self.cluster.record_for_all("cut off", begin)
                self.cluster.balancer.await_ready(*self.cluster.nodes)

    def test_the_node_running_the_job(self):
        for _ in range(ROUNDS):
            with self.load() as traffic, Hold(self.cluster) as hold:
                number, job = traffic.submit(0, until=hold.path)
                victim = self.runner_of(number)
                killed = time.monotonic_ns()
                victim.kill()
                hold.release()
                assert traffic.await_end(number, job).state == "COMPLETED"
                first, second = sorted((run for run in self.cluster.runs() if run.number == number),
                                       key=lambda run: run.began)
                assert (first.node, first.end, second.end) == (victim.name, None, "output")
                assert second.node != victim.name
                judge_pace("from the death of a node to the next run of its job", (second.began - killed) / 1e9, LEASE + 2.0)
                self.restart(victim)

    def test_the_node_of_the_waiting_caller(self):
        for _ in range(ROUNDS):
            with self.load() as traffic, Hold(self.cluster) as hold:
                number, job = traffic.submit(0, until=hold.path)
                runner = self.runner_of(number)
                victim = self.dice.choice([node for node in self.cluster.nodes if node is not runner])
                with victim.plug() as waiting:
                    waiting.sendall((f"GET /v2/witness/status-sync/{job}?wait=60000 HTTP/1.1\r\nHost: jobq\r\n"
                                     f"Authorization: Bearer {victim.key}\r\n\r\n").encode())
                    # A single thread of the node reads the calls in order, so the caller waits at the node by now.
                    assert victim.status("witness", job)["status"] == "IN_PROGRESS"
                    victim.kill()
                    assert answer_of(waiting) == b"", "the call has no answer"
                hold.release()
                assert traffic.await_end(number, job).state == "COMPLETED"
                assert len([run for run in self.cluster.runs() if run.number == number]) == 1
                self.restart(victim)

    def test_a_node_sleeping_past_the_lease(self):
        for _ in range(ROUNDS):
            with self.load() as traffic, Hold(self.cluster) as hold:
                sleeper = self.dice.choice(self.cluster.nodes)
                short, long = self.jobs_at(sleeper, traffic, hold)
                sleeper.pause()
                hold.release()
                until(lambda: all(self.others_run(job, sleeper) for job in (*short, *long)),
                      "other nodes run the jobs of the sleeper", 2 * HANG)
                for number, job in short.items():
                    assert traffic.await_end(number, job).output["attempt"] > 1
                sleeper.resume()
                ends = until(lambda: self.ends_at(sleeper, (*short, *long)), "the sleeper's handlers have ended", HANG)
                print(f"the sleeper's late runs: {ends}", flush=True)
                assert {ends[number] for number in short} == {"output"}, "a result that comes too late"
                assert {ends[number] for number in long} == {"stopped"}
                for number, job in long.items():
                    assert traffic.cancel(number, job).state == "CANCELLED"
                self.cluster.balancer.await_ready(*self.cluster.nodes)

    def jobs_at(self, node, traffic, hold):
        """Submits jobs until the node runs a held job with a handler that ignores stops, and a job of 10 minutes.
        Returns two dicts: number -> id."""
        found = {"poll": {}, "cancel": {}}
        orders = {"poll": {"work_ms": 0, "until": hold.path, "ignoreStop": 1}, "cancel": {"work_ms": 600_000}}
        rest = []

        def all_found():
            for kind, jobs in found.items():
                if not jobs:
                    number, job = traffic.submit(kind=kind, **orders[kind])
                    if self.runner_of(number) is node:
                        jobs[number] = job
                    elif kind == "cancel":
                        rest.append((number, job))
            return all(found.values())
        until(all_found, f"{node.name} runs jobs of both kinds", HANG)
        for number, job in rest:
            traffic.cancel(number, job)
        return found.values()

    def others_run(self, number, node):
        return any(run.number == number and run.node != node.name for run in self.cluster.runs())

    def ends_at(self, node, numbers):
        """Returns number -> end of the runs at the node, once all have ended."""
        ends = {run.number: run.end for run in self.cluster.runs() if run.node == node.name and run.number in numbers}
        return ends if all(ends.values()) else None

    def test_rolling_restart(self):
        """Each node is stopped and started without new calls from the balancer: no call is refused, no lost attempt is
        counted."""
        with self.load(KINDS) as traffic:
            begin, restarts = time.monotonic_ns(), 0
            while restarts < NODES * ROUNDS or seconds(begin) < 60.0 * MINUTES:
                node, due = self.cluster.nodes[restarts % NODES], time.monotonic() + EVERY
                self.cluster.balancer.take_out(node)
                node.stop()
                self.restart_out(node)
                restarts += 1
                traffic.await_jobs(10)
                if MINUTES:
                    until(lambda due=due: time.monotonic() >= due, "the next restart is due")
            lasted = seconds(begin)
        print(f"{restarts} restarts in {lasted:.1f} s, {traffic.statuses().total()} calls, "
              f"{self.cluster.balancer.refused} refused connections", flush=True)
        assert set(traffic.statuses()) == {200}
        assert self.verdict.figures["losses"] == 0

    def restart_out(self, node):
        """Starts a node that was taken out of the balancer, puts the node back, and waits until the node is ready."""
        node.start()
        self.cluster.balancer.put_back(node)
        self.cluster.balancer.await_ready(*self.cluster.nodes)

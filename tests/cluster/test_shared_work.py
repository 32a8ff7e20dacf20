"""Two and three nodes share the jobs of a database: no job is lost, no job succeeds twice. JOBQ_CLUSTER_JOBS is the
number of jobs of each test. Nodes stay up, so a further run of a job has a caller's retry for a reason, or is a
fault."""

import collections
import os

import pytest
from node_cluster import Cluster
from cluster_traffic import KINDS, Traffic

JOBS = int(os.environ.get("JOBQ_CLUSTER_JOBS", "2000"))
CALLERS = 8
PER_JOB = 0.2  # seconds for a job, on average: bounds a hang, and judges no pace


def inversions(order):
    """Returns the number of neighbours in the wrong order, and the largest distance of an element from the right
    place."""
    neighbours = sum(1 for first, second in zip(order, order[1:]) if second < first)
    places = sorted(range(len(order)), key=order.__getitem__)
    return neighbours, max((abs(place - rank) for rank, place in enumerate(places)), default=0)


class OrderTest:
    def test_inversions(self):
        assert inversions([1, 2, 3, 9]) == (0, 0)
        assert inversions([2, 1, 3, 5, 4]) == (2, 1)
        assert inversions([2, 3, 4, 1]) == (1, 3)


@pytest.mark.timeout(3600)
class SharedWorkTest:
    def play(self, nodes):
        with Cluster(nodes) as cluster:
            with Traffic(cluster, callers=CALLERS, kinds=KINDS, jobs=JOBS, work_ms=(0, 10)) as traffic:
                traffic.finish(60.0 + PER_JOB * JOBS)
            verdict = traffic.verdict()
            shares = collections.Counter(run.node for run in cluster.runs())
            print(f"{nodes} nodes: runs {dict(sorted(shares.items()))}, calls by status {dict(traffic.statuses())}", flush=True)
            assert verdict.faults == []
            figures = verdict.figures
            assert (figures["jobs"], figures["acknowledged"], figures["lost"]) == (JOBS, JOBS, 0)
            assert (figures["returned twice"], figures["losses"]) == (0, 0)
            assert set(traffic.statuses()) == {200}
            assert len(shares) == nodes, "each node has run jobs"

    def test_two_nodes(self):
        self.play(2)

    def test_three_nodes(self):
        self.play(3)


class QueueOrderTest:
    """A queue with more jobs than workers: prints a comparison of the order of begins with the order of submissions.
    Each node takes the first jobs of the moment, so the order across nodes is approximate."""

    WORKERS = 3

    def test_the_order_of_a_queue(self):
        jobs = min(JOBS, 1000)
        with Cluster(3, **{"queue.policy": "fifo", "endpoint.witness.workersMin": 0,
                           "endpoint.witness.workersMax": self.WORKERS}) as cluster:
            with Traffic(cluster, callers=0) as traffic:
                blockers = [traffic.submit(work_ms=1000) for _ in range(self.WORKERS)]
                queue = [traffic.submit(work_ms=1)[0] for _ in range(jobs)]
            assert traffic.verdict().faults == []
            begins = sorted((run for run in cluster.runs() if run.number in set(queue)), key=lambda run: run.began)
            neighbours, distance = inversions([run.number for run in begins])
            print(f"fifo: {len(begins)} jobs behind {len(blockers)}, {neighbours} neighbours in the wrong order, the "
                  f"largest distance from the own place {distance}, nodes "
                  f"{dict(collections.Counter(run.node for run in begins))}", flush=True)
            assert sorted(run.number for run in begins) == queue

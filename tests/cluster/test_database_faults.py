"""Faults of the database, and of the network between nodes and database, under load. Calls without a stored effect are
answered 503, running jobs finish, the nodes keep all outcomes until the database is back, and no job is lost.

Two nodes reach a MariaDB server through a TCP proxy each (tests/support/tcp_proxy.py). The checker
(tests/support/cluster_history.py) judges each test. Here the checker allows no overlap of two runs, because a
disconnected node stops the handlers before the end of the node's lease.
"""

import contextlib
import os
import time

import pytest
from node_cluster import FENCE, LEASE, Cluster, Hold
from cluster_traffic import Traffic
from jobq_server import until
from pace import HANG, judge_pace
from tcp_proxy import TcpProxy

ROUNDS = int(os.environ.get("JOBQ_CLUSTER_ROUNDS", "1"))


@pytest.fixture(scope="class")
def cluster():
    with Cluster(2, proxies=(TcpProxy, TcpProxy)) as cluster:
        yield cluster


class FaultCase:
    """Load on the cluster, and further calls by the tests."""

    @pytest.fixture(autouse=True)
    def shared_cluster(self, cluster):
        self.cluster = cluster
        self.one, self.two = cluster.nodes
        self.way = cluster.proxies[0]  # between the first node and the database
        self.parked = set()  # acknowledged jobs that no worker runs

    @contextlib.contextmanager
    def load(self, callers=4):
        """Load for the length of the block. At the end, expects a verdict without faults."""
        self.cluster.interruptions.clear()
        with Traffic(self.cluster, callers=callers, work_ms=(0, 40), pause=0.02) as traffic:
            traffic.await_jobs(5 * callers)
            yield traffic
            self.await_normal()
            traffic.await_jobs(5 * callers)
        verdict = traffic.verdict()
        assert verdict.faults == []
        assert verdict.figures["lost"] == 0
        assert set(traffic.statuses()) <= {0, 200, 400, 502, 503}  # 400: a repetition of an effective /retry
        for job in self.parked:
            assert self.one.status("parked", job)["status"] == "IN_QUEUE", "an acknowledged job is stored"

    def await_normal(self):
        self.cluster.balancer.await_ready(*self.cluster.nodes)

    def park(self, node):
        """Submits a job that no worker runs. Returns the answer."""
        answer = node.request("POST", "/v2/parked/run", {"input": {}})
        if answer.status == 200:
            self.parked.add(answer.json()["id"])
        return answer

    def await_refusal(self, *nodes):
        """Waits until each node refuses a submission, with the sentence and the field of the API."""
        for node in nodes:
            answer = until(lambda node=node: (answer := self.park(node)).status != 200 and answer,
                           f"{node.name} refuses a job", HANG)
            assert answer.status == 503, answer
            assert int(answer.headers["Retry-After"]) >= 1
            assert answer.json()["error"].startswith("the storage cannot serve this request now"), answer
            until(lambda node=node: node.request("GET", "/readyz", key=None).status == 503,
                  f"{node.name} is not ready", HANG)

    def await_accepted(self, node):
        until(lambda: self.park(node).status == 200, f"{node.name} accepts a job", HANG)

    def runs_of(self, number):
        return sorted((run for run in self.cluster.runs() if run.number == number), key=lambda run: run.began)

    def submit_at(self, traffic, node, work_ms, kind="poll", **fields):
        """Submits jobs until the node runs a job. Returns the number and the id of the job. Cancels all other jobs of
        the kind `cancel`."""
        found = []

        def run_one():
            number, job = traffic.submit(work_ms, kind, **fields)
            run = until(lambda: self.runs_of(number), f"job {number} runs", HANG)[0]
            if run.node == node.name:
                found.append((number, job))
            elif kind == "cancel":
                traffic.cancel(number, job)
            return found
        return until(run_one, f"{node.name} runs a job of {work_ms} ms", HANG)[0]


@pytest.mark.timeout(1200)
class NetworkTest(FaultCase):
    def test_refused(self):
        with self.load() as traffic:
            self.way.refuse()
            self.await_refusal(self.one)
            traffic.await_jobs(40)
            self.way.heal()
            self.await_accepted(self.one)

    @pytest.mark.parametrize("direction", ("requests", "answers"))
    def test_stalled(self, direction):
        with self.load() as traffic:
            self.way.stall(direction)
            until(lambda: self.cluster.balancer.ready_names() == {self.two.name}, "the balancer finds the node stalled", HANG)
            traffic.await_jobs(40)
            self.way.heal()

    def test_stalled_past_the_lease(self):
        """The fence stops the handlers of the node before another node runs the jobs."""
        with self.load() as traffic:
            long, job = self.submit_at(traffic, self.one, 600_000, "cancel")
            begin = time.monotonic_ns()
            self.way.stall()
            until(lambda: len(self.runs_of(long)) == 2, "another node runs the job", 2 * HANG)
            first, second = self.runs_of(long)
            print(f"stopped {(first.ended - begin) / 1e9:.1f} s after the cut and {(second.began - first.ended) / 1e9:.1f} s "
                  f"before the next run", flush=True)
            assert (first.node, first.end, second.node) == (self.one.name, "stopped", self.two.name)
            assert first.ended < second.began
            self.way.heal()
            self.cluster.record("cut off", self.one.name, begin)
            traffic.cancel(long, job)

    def test_stalled_while_a_handler_reports(self):
        """The fence stops a handler during the report of a chunk. The handler ends before another node runs the job.
        The chunk is due seven seconds after the cut, and the database has ten seconds to answer. Without other load the
        report gets an idle connection, so no earlier call on the connection fails at the time of the fence."""
        self.cluster.interruptions.clear()
        with Traffic(self.cluster, callers=0) as traffic:
            long, job = self.submit_at(traffic, self.one, 28_000, "cancel", chunks=3)
            begin = time.monotonic_ns()
            self.way.stall()
            until(lambda: "it has not answered this node" in self.one.log(), "the node cuts its connections", HANG)
            until(lambda: len(self.runs_of(long)) == 2, "another node runs the job", 2 * HANG)
            until(lambda: self.runs_of(long)[0].ended, "the first run ends", HANG)
            first, second = self.runs_of(long)
            print(f"stopped {(first.ended - begin) / 1e9:.1f} s after the cut and {(second.began - first.ended) / 1e9:.1f} s "
                  f"before the next run", flush=True)
            self.way.heal()
            self.cluster.record("cut off", self.one.name, begin)
            traffic.cancel(long, job)
            self.await_normal()
        assert (first.node, first.end, second.node) == (self.one.name, "stopped", self.two.name)
        assert first.ended < second.began
        assert traffic.verdict().faults == []

    def test_reset(self):
        with self.load() as traffic:
            for _ in range(5 * ROUNDS):
                before = self.way.accepted
                self.way.reset()
                until(lambda before=before: self.way.accepted > before, "the node connects again", HANG)
                traffic.await_jobs(5)

    def test_sliced(self):
        with self.load() as traffic:
            self.way.slice(1)
            traffic.await_jobs(40 * ROUNDS)
            self.way.heal()
        print(f"calls by status {dict(traffic.statuses())}", flush=True)

    def test_delayed(self):
        with self.load() as traffic:
            for proxy in self.cluster.proxies:
                proxy.delay(0.003)
            traffic.await_jobs(20 * ROUNDS)
            for proxy in self.cluster.proxies:
                proxy.heal()
        print(f"calls by status {dict(traffic.statuses())}", flush=True)

    def test_answers_of_commits_are_lost(self):
        """The effect of a repeated call happens once."""
        with self.load() as traffic:
            before = self.way.commits_lost
            for lost in range(1, 10 * ROUNDS + 1):
                self.way.lose_commits(1)
                until(lambda lost=lost: self.way.commits_lost >= before + lost, "the answer of a COMMIT is lost", HANG)
            traffic.await_jobs(20)
        print(f"{self.way.commits_lost - before} answers of COMMIT lost, calls by status {dict(traffic.statuses())}", flush=True)


@pytest.mark.timeout(1200)
class DatabaseTest(FaultCase):
    def come_back(self, traffic):
        """Starts the database again, and waits for the first accepted call."""
        self.cluster.database.start()
        back = time.monotonic_ns()
        judge_pace("from the return of the database to the first accepted job",
                   (traffic.await_call_after(back) - back) / 1e9, 5.0)

    def test_gone(self):
        """A job that runs without the database finishes once, and the node stores the outcome later."""
        for _ in range(ROUNDS):
            with self.load() as traffic:
                number, job = traffic.submit(work_ms=1500)
                until(lambda: self.runs_of(number), "the job runs", HANG)
                self.cluster.database.kill()
                self.await_refusal(*self.cluster.nodes)
                until(lambda: self.runs_of(number)[0].end == "output", "the handler returns without a database", HANG)
                self.come_back(traffic)
                end = traffic.await_end(number, job)
                assert (end.state, end.output["attempt"], end.retries) == ("COMPLETED", 1, 0)
                assert len(self.runs_of(number)) == 1

    def test_gone_past_the_fence(self):
        """Handlers stop 10 s after the last beat, and the jobs run again when the database is back."""
        with self.load() as traffic:
            number, job = traffic.submit(600_000, "cancel")
            until(lambda: self.runs_of(number), "the job runs", HANG)
            begin = time.monotonic_ns()
            self.cluster.database.kill()
            until(lambda: self.runs_of(number)[0].end, "the fence stops the handler", 2 * HANG)
            stopped = self.runs_of(number)[0]
            print(f"the handler was stopped {(stopped.ended - begin) / 1e9:.1f} s after the end of the database", flush=True)
            assert stopped.end == "stopped"
            judge_pace("from the last beat to the stop of the handlers", (stopped.ended - begin) / 1e9, FENCE + 2.0)
            self.cluster.record_for_all("cut off", begin)
            self.come_back(traffic)
            until(lambda: len(self.runs_of(number)) == 2, "the job runs again", HANG)
            print(f"its job was counted as lost {self.one.status('witness', job).get('retries', 0)} times", flush=True)
            traffic.cancel(number, job)

    def test_paused(self):
        with self.load() as traffic:
            self.cluster.database.pause()
            until(lambda: not self.cluster.balancer.ready_names(), "no node is ready", HANG)
            self.cluster.database.resume()
            back = time.monotonic_ns()
            judge_pace("from the end of the database's pause to the first accepted job",
                       (traffic.await_call_after(back) - back) / 1e9, 5.0)

    def test_restarted(self):
        for _ in range(2 * ROUNDS):
            with self.load() as traffic:
                self.cluster.database.stop()
                self.come_back(traffic)


@pytest.mark.timeout(600)
class DeadNodeTest(FaultCase):
    def test_jobs_run_again_after_the_lease(self):
        for _ in range(ROUNDS):
            with self.load(callers=0) as traffic, Hold(self.cluster) as hold:
                jobs = dict(self.submit_at(traffic, self.one, 0, until=hold.path) for _ in range(4))
                killed = time.monotonic_ns()
                self.one.kill()
                hold.release()
                for number, job in jobs.items():
                    assert traffic.await_end(number, job).state == "COMPLETED"
                waits = [(run.began - killed) / 1e9 for number in jobs for run in self.runs_of(number)[1:]]
                for wait in waits:
                    judge_pace("from the death of a node to the next run of its job", wait, LEASE + 2.0)
                print(f"{len(waits)} jobs ran again {min(waits):.1f} to {max(waits):.1f} s after the death", flush=True)
                self.one.start()
                self.await_normal()

"""Nodes of jobq on a Galera cluster of three database servers: with a single writer behind HAProxy, with the loss of a
server, and with a writer for each node. JOBQ_CLUSTER_ROUNDS repeats the losses."""

import collections
import os
import re
import time

import pytest

import balancer
import galera
import machine
from jobq_api import Api

ROUNDS = int(os.environ.get("JOBQ_CLUSTER_ROUNDS", "1"))
JOBS = 150  # acknowledged jobs between two events of a round
LONGEST_ROUND = 120  # seconds
LONGEST_CUT = 20.0  # seconds: longer than a wait for the cluster, shorter than the life of an idle session

pytestmark = [pytest.mark.skipif(bool(galera.reason_to_skip()), reason=str(galera.reason_to_skip())),
              pytest.mark.timeout(120 + LONGEST_ROUND * ROUNDS)]


@pytest.fixture(scope="module")
def cluster():
    made = galera.Galera()
    try:
        made.start_servers()
        yield made
        made.stop_nodes()
    finally:
        made.remove()


@pytest.fixture(scope="module")
def one_writer(cluster):
    """Three nodes with a shared writer."""
    cluster.start_nodes_at()
    return cluster


@pytest.fixture(scope="module")
def several_writers(cluster):
    """Three nodes with a writer each."""
    cluster.start_nodes_at(*(database.port for database in cluster.databases.all))
    return cluster


def check_jobs(cluster, load):
    """Expects that every acknowledged job has ended with the right output. Returns the text of the counts."""
    api = cluster.api()
    for job, output in load.acknowledged:
        ended = api.finished(galera.ENDPOINT, job)
        assert (ended["status"], ended["output"]) == ("COMPLETED", output), ended
    jobs = api.quiet(galera.ENDPOINT)
    counts = cluster.counts_of_jobs()
    assert {job for job, _ in load.acknowledged} <= set(counts)
    # A success counted twice would be in the counter, and a second begin of a handler is a line of the job's log.
    assert (jobs["completed"], jobs["failed"]) == (len(counts), 0)
    again = {job: count for job, count in counts.items() if count != (1, 0, 1)}
    for job, (attempt, losses, begun) in again.items():
        assert begun <= attempt and losses < attempt, (job, attempt, losses, begun)
    reasons = collections.Counter(reason[:60] for reason in load.refused)
    assert not [reason for reason in load.refused if re.match("4|200", reason)], reasons
    return (f"{len(load.acknowledged)} acknowledged, {len(counts)} stored in all, 0 lost, 0 counted twice, "
            f"{len(again)} begun again; calls without an acknowledgement: {dict(reasons) or 0}")


def check_servers(cluster):
    """Expects that all sessions of nodes are at the writer. The locks of a server exclude sessions of the same server
    only, and other servers show a commit of the writer a moment later. HAProxy has cut the sessions at other servers. A
    server notices the cut at the end of a statement that waits for the cluster. A session in use does not end."""
    machine.until(lambda: cluster.servers_in_use() == [cluster.balancer.writer()], "all sessions are at the writer",
                  LONGEST_CUT)


def writer_of(cluster):
    """Returns the writer. HAProxy may know no writer for a moment, for example after a late answer to a check."""
    return machine.until(cluster.writer, "HAProxy has a writer")


def await_work(load, begun):
    """Waits for the next acknowledged jobs and returns the seconds since `begun`."""
    load.await_more(1)
    return time.monotonic() - begun


class OneWriterTest:
    def test_all_jobs_once_and_no_conflict(self, one_writer):
        before = one_writer.conflicts()
        with galera.Load(one_writer.api()) as load:
            load.await_more(4 * JOBS)
        check_servers(one_writer)
        text = check_jobs(one_writer, load)
        conflicts = {name: value - before[name] for name, value in one_writer.conflicts().items()}
        print(f"one writer: {text}; {conflicts}")
        assert not load.refused
        assert conflicts == {"cert_failures": 0, "bf_aborts": 0}

    def test_the_writer_is_killed(self, one_writer):
        for _ in range(ROUNDS):
            with galera.Load(one_writer.api()) as load:
                load.await_more(JOBS)
                writer = writer_of(one_writer)
                begun = time.monotonic()
                writer.kill()
                passed = await_work(load, begun)
                load.await_more(JOBS)
                second = writer_of(one_writer)
                assert second is not writer
                check_servers(one_writer)
                one_writer.databases.restart(writer)
                machine.until(lambda: one_writer.writer() is writer, f"HAProxy takes {writer.name} back")
                load.await_more(JOBS)
            check_servers(one_writer)
            print(f"{writer.name} killed, {second.name} writes: back to work after {passed:.1f} s; {writer.name} is "
                  f"back; {check_jobs(one_writer, load)}")

    def test_another_server_is_killed(self, one_writer):
        for _ in range(ROUNDS):
            with galera.Load(one_writer.api()) as load:
                load.await_more(JOBS)
                writer = writer_of(one_writer)
                other = next(one for one in one_writer.databases.all if one is not writer)
                begun = time.monotonic()
                other.kill()
                passed = await_work(load, begun)
                load.await_more(JOBS)
            check_servers(one_writer)
            print(f"{other.name} killed, {writer_of(one_writer).name} writes: back to work after {passed:.1f} s; "
                  f"{check_jobs(one_writer, load)}")
            one_writer.databases.restart(other)

    def test_the_majority_is_lost(self, one_writer):
        """A server without a majority takes no writes and gets no connections, and works again after the return of the
        other servers."""
        with galera.Load(one_writer.api()) as load:
            load.await_more(JOBS)
            writer = writer_of(one_writer)
            others = [one for one in one_writer.databases.all if one is not writer]
            for other in others:
                other.kill()
            machine.until(lambda: one_writer.balancer.states("database")[writer.name] == "DOWN",
                          f"HAProxy sends no connection to {writer.name}, which has no majority")
            begun = time.monotonic()
            one_writer.databases.restart(*others)
            passed = await_work(load, begun)
            load.await_more(JOBS)
        check_servers(one_writer)
        print(f"all but {writer.name} killed and started again: back to work {passed:.1f} s after the start; "
              f"{check_jobs(one_writer, load)}")


class SeveralWritersTest:
    def test_no_job_is_lost_or_succeeds_twice(self, several_writers):
        before = several_writers.conflicts()
        for _ in range(ROUNDS):
            with galera.Load(several_writers.api()) as load:
                load.await_more(4 * JOBS)
            text = check_jobs(several_writers, load)
        conflicts = {name: value - before[name] for name, value in several_writers.conflicts().items()}
        print(f"a writer for each node: {text}; {conflicts}")
        faults = [line for node in several_writers.nodes for line in node.log.read_text().splitlines() if "fault" in line]
        assert not faults

    def test_each_node_knows_each_job_at_once(self, several_writers):
        """Each node finds jobs that another node has acknowledged, while all nodes write jobs."""
        nodes = several_writers.nodes
        connections = [node.connect() for node in nodes]
        with galera.Load(several_writers.api()):
            for number in range(JOBS):
                first, other = number % len(nodes), (number + 1) % len(nodes)
                job = nodes[first].request("POST", f"/v2/{galera.ENDPOINT}/run", {"input": {}},
                                           connection=connections[first]).json()["id"]
                answer = nodes[other].request("GET", f"/v2/{galera.ENDPOINT}/status/{job}",
                                              connection=connections[other])
                assert answer.status == 200, (number, answer)


class BalancerTest:
    def test_haproxy_accepts_the_example(self):
        assert balancer.judge_example() == ""

    def test_without_a_ready_node_the_caller_is_told_when_to_repeat_the_call(self, cluster, tmp_path):
        port = cluster.ports.reserve()
        alone = balancer.Balancer(tmp_path, cluster.ports, [port], cluster.balancer.servers["database"])
        alone.start()
        try:
            machine.until(lambda: set(alone.states("jobq").values()) == {"DOWN"}, "HAProxy has no node")
            answer = Api(alone.url, "").request("GET", "/v2/trial/health")
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert "no node can take the call now" in answer.json()["error"]
        finally:
            alone.stop()

    def test_a_node_connected_to_several_servers_is_refused(self, cluster, tmp_path):
        """The locks of a server exclude only sessions of the same server, so a load balancer must not spread
        connections."""
        spreading = balancer.Balancer(tmp_path, cluster.ports, [], cluster.balancer.servers["database"])
        spreading.start(lambda text: re.sub(r"(?m) on-marked-up .*$", "", text))
        try:
            machine.until(lambda: set(spreading.states("database").values()) == {"UP"}, "HAProxy has all databases")
            node = galera.Node("stray", cluster.folder, cluster.ports.reserve(), spreading.binds["database"])
            with pytest.raises(machine.ClusterError, match="two connections of this node reached two servers of a Galera"):
                node.start(galera.SETTINGS)
        finally:
            spreading.stop()

"""A Galera cluster of three database servers behind HAProxy, with nodes of jobq and a load, for tests.

The cluster comes from scripts/cluster.sh (pytest.ini has the folder of the script).
"""

import http.client
import os
import shutil
import tempfile
import threading

import cluster
import databases
import jobq_server
import machine
import nodes
from jobq_api import Api, join

BACK_TO_WORK = 60.0  # seconds: bounds a hang, and judges no pace
THREADS = 6
ENDPOINT = "trial"
SETTINGS = {**jobq_server.BASE_SETTINGS, **jobq_server.SHORT_DRAIN, f"endpoint.{ENDPOINT}.workersMax": 6}


def reason_to_skip():
    """Returns the reason why the machine cannot run the tests, or `None`."""
    name = databases.missing()
    return f"{name} is missing: scripts/setup.sh test installs it" if name else None


class Node(nodes.Node, Api):
    """A node of the cluster, with the calls of the API once the nodes have started."""

    def __init__(self, name, folder, port, database_port):
        nodes.Node.__init__(self, name, folder, port, database_port)
        Api.__init__(self, f"http://127.0.0.1:{port}", None)


class Galera(cluster.Cluster):
    """The database servers, HAProxy, and the nodes. remove() ends all processes."""

    NODE = Node

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="jobq-galera-")
        os.chmod(folder, 0o711)
        super().__init__(folder, 3, 3)
        self.seen = {}  # rows of jobs found by counts_of_jobs()

    def start_nodes_at(self, *database_ports):
        """Starts the nodes, each with a port of the database. Without ports all nodes use HAProxy and so a single
        writer."""
        self.stop_nodes()
        # With several writers, each read and transaction waits for the commits of the other servers.
        for database in self.databases.all:
            database.query(f"SET GLOBAL wsrep_sync_wait = {len(database_ports) and 1}")
        for node, port in zip(self.nodes, database_ports or [self.balancer.binds["database"]] * len(self.nodes)):
            node.database_port = port
        self.start_nodes(SETTINGS)
        for node in self.nodes:
            node.key = self.key

    def stop_nodes(self):
        for node in self.nodes:
            assert not machine.end(node.process), node.log.read_text()

    def api(self):
        """The nodes behind the load balancer."""
        return Api(self.balancer.url, self.key)

    def writer(self):
        """Returns the database server for the nodes' connections, or None while HAProxy knows no running server."""
        name = self.balancer.writer()
        return next((database for database in self.databases.all if database.name == name), None)

    def servers_in_use(self):
        """Returns the names of the running database servers that have sessions of nodes."""
        count = "SELECT count(*) FROM information_schema.processlist WHERE db = 'jobq'"
        return [database.name for database in self.databases.all
                if database.process.poll() is None and database.query(count) != [["0"]]]

    def conflicts(self):
        """Returns the numbers of failed certifications and of transactions aborted by transactions of other servers, on
        all servers."""
        found = [database.status() for database in self.databases.all]
        return {name: sum(int(status[f"wsrep_local_{name}"]) for status in found)
                for name in ("cert_failures", "bf_aborts")}

    def counts_of_jobs(self):
        """Returns the rows of all jobs by id: attempt, losses and lines of the log, from the last server. The result of
        a /runsync expires after five minutes; rows found by an earlier call are returned, too."""
        rows = self.databases[-1].query("SET SESSION wsrep_sync_wait = 1; SELECT id, attempt, losses, log_lines FROM job "
                                        f"WHERE endpoint = '{ENDPOINT}'", "jobq")
        self.seen.update({row[0]: tuple(map(int, row[1:])) for row in rows})
        return self.seen

    def remove(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    """Threads that submit jobs through the load balancer until stop(); every fifth call waits for the result. An id is
    acknowledged if the call was answered with 200. The server keeps a result for as long as a call may wait."""

    def __init__(self, api):
        self.api = api
        self.acknowledged, self.refused = [], []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(number,)) for number in range(THREADS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.over.set()
        join("the last calls of the load have ended", *self.threads, deadline=2 * jobq_server.REPLY_DEADLINE)

    def await_more(self, count):
        """Waits until so many more jobs are acknowledged than now."""
        wanted = len(self.acknowledged) + count
        machine.until(lambda: len(self.acknowledged) >= wanted, f"{count} more jobs are acknowledged", BACK_TO_WORK)

    def _work(self, number):
        connection, count = self.api.connect(), 0
        while not self.over.is_set():
            count += 1
            waits = count % 5 == 0
            path = f"/v2/{ENDPOINT}/{'runsync?wait=300000' if waits else 'run'}"
            body = {"input": {"sleepMs": 5, "log": ["begun"], "output": {"of": f"{number}.{count}"}}}
            try:
                answer = self.api.request("POST", path, body, connection=connection)
                if answer.status == 200:
                    with self.lock:
                        self.acknowledged.append((answer.json()["id"], body["input"]["output"]))
                    continue
                reason = f"{answer.status} {answer.body[:160]!r}"
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                reason = repr(error)
            with self.lock:
                self.refused.append(reason)
            self.over.wait(0.05)
        connection.close()

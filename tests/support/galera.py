"""A Galera cluster of three database servers behind HAProxy, with nodes of jobq and a load, for tests.

The servers and the load balancer come from scripts/cluster.sh (pytest.ini has the folder of the script); the nodes are
servers of jobq_server.py.
"""

import http.client
import os
import pathlib
import shutil
import tempfile
import threading

import balancer
import databases
import jobq_server
import machine
from jobq_api import Api, join

BACK_TO_WORK = 60.0  # seconds: bounds a hang, and judges no pace
THREADS = 6
ENDPOINT = "trial"


def reason_to_skip():
    """Returns the reason why the machine cannot run the tests, or `None`."""
    name = databases.missing()
    return f"{name} is missing: scripts/setup.sh test installs it" if name else None


class NodeServer(jobq_server.Server):
    """A node of jobq. `keys` is a folder with the key files of all nodes, filled by the first node."""

    KEYS = ("admin.key", "secret.key")

    def __init__(self, name, port, database_port, keys, **settings):
        super().__init__(start=False, storage="mysql", storage__mysql__port=database_port, node__name=name,
                         server__port=port, endpoint__trial__workersMax=6, **jobq_server.SHORT_DRAIN, **settings)
        os.makedirs(self.data, mode=0o700)
        self.keys = keys
        if os.path.exists(keys):
            for file in self.KEYS:
                shutil.copy(os.path.join(keys, file), self.data)

    def start(self):
        super().start()
        if not os.path.exists(self.keys):
            os.mkdir(self.keys, mode=0o700)
            for file in self.KEYS:
                shutil.copy(os.path.join(self.data, file), self.keys)
        return self


class Galera:
    """The database servers, HAProxy, and the nodes. remove() ends all processes."""

    NODES = 3

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="jobq-galera-"))
        self.folder.chmod(0o711)
        self.ports = machine.Ports()
        self.node_ports = [self.ports.reserve() for _ in range(self.NODES)]
        self.databases = databases.Databases(self.folder / "databases", 3, self.ports)
        self.balancer = balancer.Balancer(self.folder, self.ports, self.node_ports,
                                          [database.port for database in self.databases.all])
        self.nodes = []
        self.seen = {}  # rows of jobs found by counts_of_jobs()

    def start(self):
        self.databases.form()
        self.balancer.start()
        machine.until(lambda: set(self.balancer.states("database").values()) == {"UP"}, "HAProxy has all databases")
        return self

    def start_nodes(self, database_ports=None):
        """Starts the nodes, each with a port of the database. Without ports all nodes use HAProxy and so a single
        writer."""
        self.stop_nodes()
        # With several writers, each read and transaction waits for the commits of the other servers.
        for database in self.databases.all:
            database.query(f"SET GLOBAL wsrep_sync_wait = {int(bool(database_ports))}")
        for number, port in enumerate(database_ports or [self.balancer.binds["database"]] * self.NODES):
            node = NodeServer(f"node-{number + 1}", self.node_ports[number], port, self.folder / "keys")
            self.nodes.append(node)
            node.start()
        machine.until(lambda: set(self.balancer.states("jobq").values()) == {"UP"}, "HAProxy has all nodes")

    def stop_nodes(self):
        for node in self.nodes:
            node.stop()
            node.remove()
        self.nodes.clear()

    def api(self):
        """The nodes behind the load balancer."""
        return Api(self.balancer.url, self.nodes[0].key)

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
        for node in self.nodes:
            node.remove()
        if self.balancer.process:
            self.balancer.stop()
        self.databases.remove()
        self.ports.close()
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

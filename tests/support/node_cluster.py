"""Real nodes: several jobqd processes on a shared MariaDB server, behind a balancer.

    with Cluster(nodes=3) as cluster:
        cluster.nodes[0].kill()
        cluster.nodes[0].start()

All nodes have the endpoint `witness`. The handler (tests/fault/crash/witness_handler.cpp) records each run in the
journal of the node. Each interruption of a node is recorded for the checker (tests/support/cluster_history.py). Start
and restart nodes and databases on the main thread (tests/support/mariadb.py).
"""

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time

from node_balancer import Balancer
from cluster_history import Interruption, read_journal
from jobq_api import Api
from jobq_server import BUILD, PLUGINS, Server
from mariadb import Mariadb
from reserved_port import ReservedPort

WITNESS = os.path.join(BUILD, "tests", "witness")
LEASE = 15.0  # seconds: after so long without a beat of a node, other nodes run the node's jobs
FENCE = 10.0  # seconds: after so long without a beat, a node stops the local handlers


class Node(Server):
    """A server of the cluster with a constant name and address."""

    def __init__(self, cluster, name, database_port, settings):
        self.name = name
        self.cluster = cluster
        self.port = ReservedPort()
        super().__init__(start=False, **{
            **cluster.database.settings(database_port), "server.port": self.port.number, "node.name": name,
            "secret.keyFile": os.path.join(cluster.folder, "secret.key"), "server.drain": "20s",
            "plugins.path": f"{WITNESS}:{PLUGINS}", "endpoint.witness.image": "plugin/witness",
            "endpoint.witness.workersMin": 2 * cluster.size, "endpoint.witness.workersMax": 8 * cluster.size,
            "endpoint.witness.maxAttempts": 20, "endpoint.witness.env.JOURNAL": cluster.journal(name), **settings})
        os.mkdir(self.data, mode=0o700)
        with open(os.open(os.path.join(self.data, "admin.key"), os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as file:
            file.write(cluster.key + "\n")
        self._paused_since = None

    def kill(self):
        begin = time.monotonic_ns()
        super().kill()
        self.cluster.record("killed", self.name, begin)

    def stop(self):
        begin = time.monotonic_ns()
        super().stop()
        self.cluster.record("stopped", self.name, begin)

    def pause(self):
        self._paused_since = time.monotonic_ns()
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.cluster.record("paused", self.name, self._paused_since)

    def remove(self):
        super().remove()
        self.port.close()


class Hold:
    """A file awaited by jobs of the witness. The test ends the wait, at the latest at the end of the block."""

    def __init__(self, cluster):
        self.path = os.path.join(cluster.folder, f"release-{secrets.token_hex(8)}")

    def release(self):
        with open(self.path, "w", encoding="ascii"):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


class Cluster(Api):
    """Requests go through the balancer, requests of a node's object to the node."""

    def __init__(self, nodes=3, proxies=(), **settings):
        """`proxies` has a function for each node: the function makes a proxy for the address of the database."""
        self.folder = tempfile.mkdtemp(prefix="jobq-cluster-")
        self.size = nodes
        self.interruptions = []
        self.nodes = []
        self._stack = contextlib.ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.key = secrets.token_urlsafe(36)
        try:
            self._open(proxies, settings)
        except BaseException:
            self._stack.close()
            raise
        super().__init__(self.balancer.url, self.key)

    def _open(self, proxies, settings):
        with open(os.open(os.path.join(self.folder, "secret.key"), os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
        self.database = self._stack.enter_context(Mariadb())
        self.balancer = self._stack.enter_context(Balancer())
        self.proxies = [self._stack.enter_context(make(self.database.port.address)) for make in proxies]
        for number in range(self.size):
            port = self.proxies[number].port.number if self.proxies else None
            node = Node(self, f"node-{number + 1}", port, settings)
            self._stack.callback(node.remove)
            self.nodes.append(node)
            node.start()
            self.balancer.add(node)
        self.balancer.await_ready(*self.nodes)

    def journal(self, name):
        return os.path.join(self.folder, f"{name}.journal")

    def runs(self):
        """Returns the runs of all nodes, from the journals."""
        return [run for node in self.nodes for run in read_journal(node.name, self.journal(node.name))]

    def record(self, kind, name, begin):
        """Records an interruption that ends now."""
        self.interruptions.append(Interruption(kind, name, begin, time.monotonic_ns()))

    def record_for_all(self, kind, begin):
        for node in self.nodes:
            self.record(kind, node.name, begin)

    def node(self, name):
        return next(node for node in self.nodes if node.name == name)

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _trace):
        try:
            for node in self.nodes:
                if kind is None and node.running and self.database.running:
                    node.stop()
        finally:
            self._stack.close()

"""Starts database servers, nodes of jobq and a load balancer on this machine, and shows a table of all until Ctrl-C.

Two processes watch each other, so no process and no file remains. The outer process waits for the end of the inner
process, then kills all remaining descendants and removes the folder. The inner process starts the servers, shows the
table, and stops all in order on SIGTERM, or when the outer process ends.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time

import balancer
import databases
import load
import machine
import nodes
import view

PAUSE = 1.0  # seconds between two tables
DRAIN = "2s"


class Cluster:
    """The parts of the cluster in one folder."""

    NODE = nodes.Node

    def __init__(self, folder, count, databases_count):
        """`count` is the number of nodes."""
        self.folder = pathlib.Path(folder)
        self.ports = machine.Ports()
        self.databases = databases.Databases(self.folder / "databases", databases_count, self.ports)
        ports = [self.ports.reserve() for _ in range(count)]
        self.balancer = balancer.Balancer(self.folder, self.ports, ports,
                                          [database.port for database in self.databases.all])
        self.nodes = [self.NODE(f"node-{number}", self.folder, port, self.balancer.binds["database"])
                      for number, port in enumerate(ports, 1)]
        self.load, self.key = None, None

    @property
    def key_file(self):
        return self.folder / "node-1/admin.key"

    def start_servers(self):
        """Starts the database servers and HAProxy."""
        print(f"starting {len(self.databases)} database servers", flush=True)
        self.databases.form()
        print("starting HAProxy", flush=True)
        self.balancer.start()
        machine.until(lambda: set(self.balancer.states("database").values()) == {"UP"}, "HAProxy has all databases")

    def start_nodes(self, settings):
        """Starts the nodes in order. `settings` override etc/cluster.properties."""
        for node in self.nodes:
            print(f"starting {node.name}", flush=True)
            node.start(settings)
            self.key = self.key or self.key_file.read_text(encoding="ascii").strip()
            machine.until(lambda new=node: self._find_workers(new), f"a job has run at {node.name}")
        machine.until(lambda: set(self.balancer.states("jobq").values()) == {"UP"}, "HAProxy has all nodes")

    def start_load(self):
        self.load = load.Load(self.balancer.binds["jobq"], self.key)
        self.load.start()

    def stop(self):
        """Stops the parts in order: load, nodes, load balancer, databases."""
        if self.load:
            self.load.stop()
        self._end_all([node.process for node in self.nodes])
        self._end_all([self.balancer.process])
        self._end_all([database.process for database in self.databases.all])
        self.ports.close()

    def _find_workers(self, node):
        """Runs a job at the node. The first job with unknown workers has run at the most recently started node."""
        _, job = nodes.call(node.port, "POST", "/v2/echo/runsync", self.key, {"input": {}})
        workers = (job or {}).get("workerId", "").partition("-")[0]
        if workers and workers not in {other.workers for other in self.nodes}:
            node.workers = workers
        return node.workers

    @staticmethod
    def _end_all(processes):
        running = [process for process in processes if process and process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            machine.end(process)


def show(cluster, seconds, over):
    """Prints a table each second until the event or the end of the time. A terminal shows each table in the same
    place."""
    table, end = view.View(cluster), time.monotonic() + (seconds or float("inf"))
    while not over.is_set():
        lines = table.lines()
        if sys.stdout.isatty():
            print("\033[H\033[J" + "\n".join(lines) + "\n\nCtrl-C stops the cluster.", flush=True)
        else:
            print("\n".join(lines) + "\n", flush=True)
        if time.monotonic() >= end:
            return
        over.wait(min(PAUSE, max(0.0, end - time.monotonic())))


class Stopped(Exception):
    """A stop was requested during the start of the cluster."""


def run(folder, options):
    """The inner process. Returns the exit code."""
    over = threading.Event()
    cluster, started = None, False

    def stop(*_):
        over.set()
        if not started:
            raise Stopped

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    machine.end_with_parent(signal.SIGTERM)
    try:
        cluster = Cluster(folder, options.nodes, options.databases)
        cluster.start_servers()
        cluster.start_nodes({"server.drain": DRAIN})
        if options.load:
            cluster.start_load()
        started = True
        show(cluster, options.seconds, over)
    except Stopped:
        pass
    except (machine.ClusterError, OSError) as error:
        print(f"cluster: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        started = True
        if cluster:
            print("stopping", flush=True)
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)  # the outer process may have been killed
    return 0


def end_descendants():
    """Kills all children of this process. Orphans among the descendants have become children, too."""
    while True:
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def guard(folder, options):
    """The outer process. Returns the exit code of the inner process."""
    machine.adopt_orphans()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    inner = os.fork()
    if inner == 0:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = 1
        try:
            code = run(folder, options)
        finally:
            sys.stdout.flush()
            os._exit(code)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.kill(inner, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    status = os.waitpid(inner, 0)[1]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_descendants()
    return os.waitstatus_to_exitcode(status)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="cluster.sh", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, choices=range(1, 10), default=3, metavar="N", help="nodes of jobq, 1 to 9")
    parser.add_argument("--databases", type=int, choices=(1, 3), default=3, help="database servers")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so many seconds")
    parser.add_argument("--load", action="store_true", help="submit about 80 jobs a second")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    absent = databases.missing()
    if absent:
        sys.exit(f"cluster: {absent} is missing; scripts/setup.sh cluster installs it")
    folder = tempfile.mkdtemp(prefix="jobq-cluster-")
    os.chmod(folder, 0o711)
    try:
        return guard(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

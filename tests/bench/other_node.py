"""What a caller pays whose job runs at another node: /runsync at a node that drains, and at the node that runs the jobs.
Two nodes on a MariaDB server of this program; the calls alternate, so other work on the machine meets both alike.

    TMPDIR=/folder/on/a/real/disk build/venv/bin/python tests/bench/other_node.py [--calls N]

Also prints the statements that an idle node sends to the database in a second.
"""

import argparse
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from jobq_api import until  # noqa: E402
from jobq_server import Server  # noqa: E402
from mariadb import Mariadb  # noqa: E402

GOAL_WAIT = 25.0  # milliseconds that a waiter on another node may add, p50
GOAL_IDLE = 5.0  # statements of an idle node in a second
IDLE_SECONDS = 10


def statements(database):
    rows = database.query("SHOW GLOBAL STATUS WHERE variable_name IN ('Com_stmt_execute', 'Com_begin', 'Com_commit')")
    return sum(int(value) for _, value in rows)


def idle_rate(database):
    before, begun = statements(database), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (statements(database) - before) / (time.monotonic() - begun)


def measure(nodes, calls):
    """Returns the times of the calls in milliseconds, for each node."""
    times = {node: [] for node in nodes}
    for _ in range(calls):
        for node in nodes:
            begun = time.perf_counter()
            answer = node.request("POST", "/v2/echo/runsync", b'{"input":{}}').json()
            times[node].append(1000 * (time.perf_counter() - begun))
            if answer["status"] != "COMPLETED":
                raise RuntimeError(f"the job did not end: {answer}")
    return times


def node_on(database, name, key=None):
    """Starts a node. `key` is the admin key of an earlier node on the same database."""
    node = Server(start=False, **database.settings(), node__name=name,
                  secret__keyFile=os.path.join(database.folder, "secret.key"), endpoint__echo__workersMin="4",
                  endpoint__echo__workersMax="4")
    if key:
        os.mkdir(node.data, mode=0o700)
        with open(os.path.join(node.data, "admin.key"), "w", encoding="ascii") as file:
            file.write(key + "\n")
    return node.start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=200)
    calls = parser.parse_args().calls
    with Mariadb() as database, node_on(database, "worker") as worker:
        idle = idle_rate(database)
        with node_on(database, "other", worker.key) as other:
            worker.request("POST", "/v1/nodes/other/drain")
            until(lambda: other.request("GET", "/readyz").status == 503, "the other node drains")
            measure([worker, other], 10)
            times = measure([worker, other], calls)
    here, there = (statistics.median(times[node]) for node in (worker, other))
    print(f"/runsync, p50 of {calls} calls: {here:.1f} ms at the node that runs the job, {there:.1f} ms at another node: "
          f"{there - here:.1f} ms more (goal {GOAL_WAIT:.0f} ms)")
    print(f"statements of an idle node in a second: {idle:.1f} (goal {GOAL_IDLE:.0f})")


if __name__ == "__main__":
    main()

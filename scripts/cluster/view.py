"""The table of a cluster: the current nodes, databases and jobs."""
import http.client
import time

import machine
import nodes

LATEST = 3000  # rows of jobs for the shares of the nodes
SHARES = (f"SELECT SUBSTRING_INDEX(worker, '-', 1), COUNT(*) FROM (SELECT worker, finished_at FROM job ORDER BY num DESC "
          f"LIMIT {LATEST}) AS latest WHERE finished_at IS NOT NULL AND worker <> '' GROUP BY 1")
COUNTS = ("SELECT COALESCE(SUM(completed), 0), COALESCE(SUM(failed), 0), COALESCE(SUM(in_queue), 0), "
          "COALESCE(SUM(in_progress), 0) FROM endpoint_count")


def rows(columns, table):
    """Returns the lines of a table. Each column is as wide as the longest cell."""
    table = [columns, *([str(cell) for cell in row] for row in table)]
    widths = [max(len(row[at]) for row in table) for at in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]


class View:
    """Queries the parts of a cluster, and compares the counters with the counters of the previous call."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.begun = self.asked = time.monotonic()
        self.before = {}

    def lines(self):
        """Returns the lines of the table. The row of a part that does not answer has dashes."""
        now = time.monotonic()
        self.passed, self.asked = max(now - self.asked, 0.001), now
        lines = [f"jobq cluster, {now - self.begun:.0f} s: {self.cluster.balancer.url}   "
                 f"admin key: {self.cluster.key_file}", ""]
        lines += rows(("NODE", "PID", "STATE", "LAST BEAT", f"SHARE OF THE LATEST {LATEST} JOBS"),
                      self._nodes())
        lines += ["", *rows(("DATABASE", "PID", "STATE", "CLUSTER", "WRITER", "COMMITS/S", "WAITING",
                             "CONFLICTS", "ABORTED BY OTHERS"), self._databases()), "", *self._jobs()]
        return lines

    def _rate(self, name, value):
        """Returns the growth of a counter per second since the call before, or a dash."""
        before, self.before[name] = self.before.get(name), value
        return "-" if before is None else f"{max(0, value - before) / self.passed:.0f}"

    def _ask(self, sql):
        """Returns the rows of a query, from the first server that answers."""
        for database in self.cluster.databases.all:
            if database.process.poll() is None and database.status().get("wsrep_ready") == "ON":
                try:
                    return database.query(sql, "jobq")
                except machine.ClusterError:
                    continue
        return []

    def _nodes(self):
        try:
            _, known = nodes.call(self.cluster.balancer.binds["jobq"], "GET", "/v1/nodes", self.cluster.key, timeout=2)
            beats = {node["name"]: f"{node['beatAge']} ms" if node["alive"] else "gone" for node in known}
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            beats = {}
        shares = {worker: int(count) for worker, count in self._ask(SHARES)}
        finished = sum(shares.values())
        for node in self.cluster.nodes:
            share = f"{100 * shares.get(node.workers, 0) / finished:.0f} %" if finished else "-"
            yield (node.name, node.process.pid, node.state(), beats.get(node.name, "-"), share)

    def _databases(self):
        writer = self.cluster.balancer.writer()
        for database in self.cluster.databases.all:
            pid = database.process.pid
            status = database.status() if database.process.poll() is None else None
            if not status:
                yield database.name, pid, "dead" if status is None else "does not answer", *["-"] * 6
                continue
            yield (database.name, pid, status["wsrep_local_state_comment"],
                   f"{status['wsrep_cluster_status']}, {status['wsrep_cluster_size']}",
                   "yes" if database.name == writer else "", self._rate(database.name,
                                                                        int(status["wsrep_replicated"])),
                   status["wsrep_local_recv_queue"], status["wsrep_local_cert_failures"],
                   status["wsrep_local_bf_aborts"])

    def _jobs(self):
        counted = self._ask(COUNTS)
        if counted:
            completed, failed, queued, running = map(int, counted[0])
            yield (f"JOBS  completed {completed}, failed {failed}, queued {queued}, running {running}, "
                   f"completed per second {self._rate('completed', completed)}")
        else:
            yield "JOBS  -"
        if load := self.cluster.load:
            yield f"LOAD  calls with a result {load.done}, without {load.refused}"

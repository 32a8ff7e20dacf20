"""Planned switches of the database's primary under permanent traffic: an acknowledged job is always found.

Two MariaDB servers replicate, and one node of jobq reaches the servers through HAProxy. HAProxy sends new connections to
the primary alone and cuts no open connection.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading

import pytest

import balancer
import mariadb
from jobq_server import Server, die_with_parent, join, until
from pace import HANG
from reserved_port import ReservedPort

pytestmark = [pytest.mark.skipif(not (os.path.exists(mariadb.SERVER) and os.path.exists(balancer.program())),
                                 reason="mariadbd or haproxy is missing: scripts/setup.sh test installs them"),
              pytest.mark.timeout(300)]

BINARY_LOG = ("--log-bin=bin", "--log-slave-updates", "--binlog-format=ROW", "--sync-binlog=1")
CALLS = 40  # answered calls between two events
FOLLOW = ("CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='replica', master_password='replica', "
          "master_use_gtid=slave_pos; START SLAVE")


class Pair:
    """Two database servers behind HAProxy. The first server begins as the primary, and the second server as the
    replica."""

    def __init__(self, end):
        self.primary, self.replica = (end.enter_context(mariadb.Mariadb(*BINARY_LOG, f"--server-id={number}"))
                                      for number in (1, 2))
        for one in (self.primary, self.replica):
            one.query("CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'replica'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'")
        self.attach(self.replica, self.primary, self.primary.query("SELECT @@gtid_current_pos")[0][0])
        self.port = ReservedPort()
        end.callback(self.port.close)
        self.folder = tempfile.mkdtemp(prefix="jobq-haproxy-")
        end.callback(shutil.rmtree, self.folder)
        self.names = {self.primary: "one", self.replica: "two"}
        with open(f"{self.folder}/cfg", "w", encoding="utf-8") as file:
            file.write(f"global\n  stats socket {self.folder}/socket level admin\n"
                       "defaults\n  mode tcp\n  timeout connect 3s\n  timeout client 90s\n  timeout server 90s\n"
                       f"listen database\n  bind 127.0.0.1:{self.port.number}\n  balance roundrobin\n" +
                       "".join(f"  server {name} 127.0.0.1:{one.port.number}\n" for one, name in self.names.items()))
        process = subprocess.Popen([balancer.program(), "-db", "-f", f"{self.folder}/cfg"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        end.callback(process.wait)
        end.callback(process.kill)
        until(lambda: os.path.exists(f"{self.folder}/socket"), "HAProxy has its socket", HANG)
        self.lead()

    @staticmethod
    def attach(replica, primary, position=None):
        """Lets `replica` follow `primary`, from `position`, or else from the last change of the replica."""
        position = position or replica.query("SELECT @@gtid_current_pos")[0][0]
        replica.query(f"SET GLOBAL read_only = 1; SET GLOBAL gtid_slave_pos = '{position}'; "
                      + FOLLOW.format(primary.port.number))

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(HANG)
            plain.connect(f"{self.folder}/socket")
            plain.sendall(command.encode() + b"\n")
            return plain.recv(65536).decode()

    def lead(self):
        """New connections reach the primary alone. HAProxy ends no session."""
        self.ask(f"set server database/{self.names[self.primary]} state ready")
        self.ask(f"set server database/{self.names[self.replica]} state maint")

    def switch(self, reattach=False, end_sessions=False):
        old, new = self.primary, self.replica
        old.query("SET GLOBAL read_only = 1")
        until(lambda: old.query("SELECT @@gtid_binlog_pos") == new.query("SELECT @@gtid_slave_pos"),
              "the replica has all jobs", HANG)
        new.query("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0")
        self.primary, self.replica = new, old
        self.lead()
        if end_sessions:
            self.ask(f"shutdown sessions server database/{self.names[old]}")
        if reattach:
            self.attach(old, new)

    def sessions_at(self, database):
        return int(database.query(f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{mariadb.USER}'")[0][0])


class Traffic:
    """Callers of /runsync and /status without a pause. `answers` counts statuses; `lost` has the jobs with the answer
    404."""

    def __init__(self, server):
        self.server, self.answers, self.lost = server, {}, []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.call) for _ in range(3)]

    def call(self):
        known = []
        while not self.ended.is_set():
            answer = self.server.request("POST", "/v2/echo/runsync", {"input": {"n": 1}})
            self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
            if answer.status == 200:
                known.append(answer.json()["id"])
            elif answer.status == 404:
                self.lost.append(answer.json())
            for job in known[-2:]:
                if self.server.request("GET", f"/v2/echo/status/{job}").status == 404:
                    self.lost.append(job)

    def await_more(self):
        until_there = self.answers.get(200, 0) + CALLS
        until(lambda: self.answers.get(200, 0) >= until_there, f"{CALLS} more answers; so far {self.answers}", HANG)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        join("the callers end", *self.threads)


@pytest.fixture(scope="module")
def pair():
    with contextlib.ExitStack() as end:
        yield Pair(end)


@pytest.fixture(scope="module")
def node(pair):
    with Server(**pair.primary.settings(pair.port.number)) as server:
        yield server


@pytest.mark.parametrize("how", [{}, {"reattach": True}, {"end_sessions": True}],
                         ids=["old left alone", "old is a replica", "sessions ended"])
def test_no_acknowledged_job_is_missing(pair, node, how):
    if pair.replica.query("SHOW ALL SLAVES STATUS") == []:
        pair.attach(pair.replica, pair.primary)
    until(lambda: pair.primary.query("SELECT @@gtid_binlog_pos") == pair.replica.query("SELECT @@gtid_slave_pos"),
          "the replica follows", HANG)
    old = pair.primary
    with Traffic(node) as traffic:
        traffic.await_more()
        pair.switch(**how)
        traffic.await_more()
        until(lambda: pair.sessions_at(old) == 0, "the node has left the old server", HANG)
        traffic.await_more()
    print(f"answers {traffic.answers}", flush=True)
    assert traffic.lost == []
    assert set(traffic.answers) <= {200, 503}
    assert node.request("GET", "/readyz", key=None).status == 200


def test_a_node_between_two_servers_answers_503(pair, node):
    """Both servers take writes, and HAProxy spreads the connections. New connections reach two servers, and the node
    refuses the connections."""
    pair.replica.query("STOP ALL SLAVES; SET GLOBAL read_only = 0")
    pair.ask(f"set server database/{pair.names[pair.replica]} state ready")
    pair.ask(f"shutdown sessions server database/{pair.names[pair.primary]}")
    refused = until(lambda: (answer := node.request("POST", "/v2/parked/run", {"input": {}})).status == 503 and answer,
                    "the node refuses a job", HANG)
    assert "storage" in refused.json()["error"]
    pair.replica.query("SET GLOBAL read_only = 1")
    pair.lead()
    until(lambda: node.request("POST", "/v2/parked/run", {"input": {}}).status == 200, "the node works again", HANG)

"""Nodes of jobq on one machine, started with etc/cluster.properties, and calls of the API."""
import http.client
import json
import os
import pathlib

import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("JOBQ_BUILD", ROOT / "build"))
LONGEST_CALL = 60.0  # seconds


def call(address, method, path, key=None, body=None, timeout=LONGEST_CALL):
    """Returns the status and the JSON value of an answer. Raises OSError or HTTPException without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", address, timeout=timeout)
    try:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


class Node:
    """A jobqd process with a folder."""

    def __init__(self, name, folder, port, database_port):
        self.name, self.folder = name, pathlib.Path(folder)
        self.port, self.database_port = port, database_port
        self.data = self.folder / self.name
        self.log = self.folder / f"{self.name}.log"
        self.process = None
        self.workers = None  # the first part of the ids of the node's workers

    def start(self, settings):
        """Starts the node and waits until the node is ready. `settings` override etc/cluster.properties."""
        settings = {**settings, "node.name": self.name, "server.port": self.port, "data.dir": self.data,
                    "secret.keyFile": self.folder / "secret.key", "storage.mysql.port": self.database_port}
        options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        self.process = machine.start([str(BUILD / "bin/jobqd"), "--config", str(ROOT / "etc/cluster.properties"),
                                      *options], str(self.log), group_of_its_own=True)
        machine.until(self._has_started, f"{self.name} is ready")
        return self

    def state(self):
        """Returns `ready`, the reason why the node is not ready, or `dead`."""
        if self.process.poll() is not None:
            return "dead"
        try:
            status, answer = call(self.port, "GET", "/readyz", timeout=2)
        except TimeoutError:
            return "does not answer"
        except (OSError, http.client.HTTPException):
            return "starts"
        return "ready" if status == 200 else str((answer or {}).get("reason", f"status {status}"))

    def _has_started(self):
        if self.process.poll() is not None:
            log = self.log.read_text(encoding="utf-8", errors="replace")
            raise machine.ClusterError(f"{self.name} ended with {self.process.returncode}:\n{log}")
        return self.state() == "ready"

"""The fake of Docker (fake_docker.py) as a separate process.

    with FakeDocker({"images": {"acme/worker:1": {"state": "present"}}}) as docker:
        docker.socket                       # the setting launcher.docker.socket
        docker.set(pullError="no space")
        docker.report()["containers"]
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile

from jobq_server import die_with_parent, until
from pace import HANG

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_docker.py")


class UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path):
        super().__init__("docker", timeout=HANG)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(HANG)
        self.sock.connect(self.path)


class FakeDocker:
    """The end of a `with` removes the process and all containers."""

    def __init__(self, settings):
        self._folder = tempfile.TemporaryDirectory(prefix="jobq-docker-")
        self.socket = os.path.join(self._folder.name, "docker.sock")
        self._process = subprocess.Popen([sys.executable, PROGRAM, self.socket, json.dumps(settings)],
                                         stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        until(self._answers, "the fake of Docker answers", HANG)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(timeout=HANG)
        self._folder.cleanup()

    def _answers(self):
        """Returns the report, or None before the fake listens: the socket has a name a moment earlier."""
        try:
            return self.report()
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    def set(self, **settings):
        return self.call("POST", "/fake", settings)

    def report(self):
        return self.call("GET", "/fake")

    def call(self, method, path, body=None):
        """Makes a call and returns the JSON of the answer, or None without JSON."""
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            content = connection.getresponse().read()
            return json.loads(content) if content else None
        finally:
            connection.close()

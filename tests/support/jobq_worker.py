"""Processes of jobq-worker, the remote worker in C++.

    with JobqWorker(server, "remote", "plugin/trial", "--concurrency", "4", name="w") as worker:
        worker.until_logged("takes the jobs of")
"""

import os
import re
import subprocess
import tempfile

from jobq_server import BUILD, die_with_parent, until
from pace import HANG

PROGRAM = os.path.join(BUILD, "bin", "jobq-worker")


def run_worker(*arguments, **variables):
    """Runs jobq-worker to the end, for calls other than serving, and returns the finished process with the output."""
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=HANG, env={"PATH": os.environ["PATH"], **variables}, preexec_fn=die_with_parent)


class JobqWorker:
    """A worker of an endpoint. `through` is a proxy in front of the server; with `bare` only the variables name the
    server. The end of a `with` removes the process and all files."""

    live = []

    def __init__(self, server, endpoint, image, *arguments, name=None, key=None, through=None, bare=False, program=PROGRAM,
                 **variables):
        self.name = name or "w-" + endpoint
        url = "http://{}:{}".format(*through.port.address) if through else server.url
        key = key or server.new_key("worker", endpoints=[endpoint])["key"]
        self._log = tempfile.TemporaryFile()
        place = [] if bare else ["--url", url, "--endpoint", endpoint, "--worker", self.name]
        self.process = subprocess.Popen(
            [program, *place, "--image", image, *arguments],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, preexec_fn=die_with_parent,
            env={"PATH": os.environ["PATH"], "JOBQ_KEY": key, "RUNPOD_PING_INTERVAL": "1000", **variables})
        JobqWorker.live.append(self)

    @property
    def running(self):
        return self.process.poll() is None

    def log(self):
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")  # leaves the place where the worker writes

    def logged(self, pattern):
        return re.findall(pattern, self.log())

    def until_logged(self, pattern):
        return until(lambda: self.logged(pattern), f"{self.name} logs {pattern!r}", HANG)

    def terminate(self):
        """Sends SIGTERM, and does not wait for the end."""
        self.process.terminate()

    def ended(self):
        """Waits for the end of the process and returns the exit code."""
        try:
            return self.process.wait(HANG)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {HANG:g} s\n{self.log()}") from None

    def kill(self):
        self.process.kill()
        self.ended()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        JobqWorker.live.remove(self)
        self.kill()
        self._log.close()


def logs_of_live_workers():
    """Returns pairs of a name and the end of the log, for the report of a failed test."""
    return [(f"log of {worker.name}", "\n".join(worker.log().splitlines()[-60:])) for worker in JobqWorker.live]

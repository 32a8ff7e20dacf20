"""Processes with the package runpod of PyPI, unmodified (tests/clients/requirements.txt): workers and clients.

    with RemoteWorker(server, "remote", key, script) as worker:    # serves the endpoint
        worker.records(2, event="begun")                           # two handlers have begun
        worker.allow("finish")

    results = client_results(server, "remote", "record(output=endpoint.run_sync({'a': 1}))")

A process has a separate folder as HOME and for files, and a separate process group. At the end every process of the
group is killed, because the SDK's ping process outlives a killed worker. A script and a test communicate through
handler_steps.py.
"""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from jobq_server import ROOT, join, until
from pace import HANG

VENVS = pathlib.Path(ROOT) / "build" / "clients"
PYTHON = VENVS / "venv" / "bin" / "python"
OLD_PYTHON = VENVS / "venv-1.7.13" / "bin" / "python"  # before 1.10 the SDK has no calls for stops
MISSING = "the PyPI package runpod is not installed: `scripts/setup.sh test` installs it"
STEPS = pathlib.Path(__file__).with_name("handler_steps.py")
MOST_LINES = 10_000  # kept lines of output: a refused worker may write thousands of lines in a second
PING_MS = 1000  # the shortest interval of pings allowed by the SDK
DEFAULT_PING_MS = 10_000
GUARD = 'read -r line; kill -KILL "-$0"; rm -rf -- "$1"'  # the read ends when the tests' process does

CLIENT = """import asyncio
import runpod
from handler_steps import allowed, arguments, record
runpod.api_key = arguments["key"]
endpoint = runpod.Endpoint(arguments["endpoint"])
"""


def worker_environment(url, endpoint, key, worker, mount="/v2", query="?gpu=none", ping_ms=PING_MS):
    """Returns the environment variables of a worker, with the URLs of the calls. Planned: `jobqctl worker env ENDPOINT`
    prints the variables."""
    base = f"{url}{mount}/{endpoint}"
    return {"RUNPOD_WEBHOOK_GET_JOB": f"{base}/job-take/$ID{query}",
            "RUNPOD_WEBHOOK_POST_OUTPUT": f"{base}/job-done/$RUNPOD_POD_ID/$ID{query}",
            "RUNPOD_WEBHOOK_POST_STREAM": f"{base}/job-stream/$RUNPOD_POD_ID/$ID{query}",
            "RUNPOD_WEBHOOK_PING": f"{base}/ping/$RUNPOD_POD_ID{query}",
            "RUNPOD_POD_ID": worker, "RUNPOD_AI_API_KEY": key, "RUNPOD_ENDPOINT_ID": endpoint,
            "RUNPOD_PING_INTERVAL": str(ping_ms), "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "true"}


class PythonProcess:
    """A script in a separate process group and folder. The end of a `with` removes both."""

    live = []

    def __init__(self, name, script, variables, python=PYTHON, **arguments):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix="jobq-python-")
        shutil.copy(STEPS, self.folder)
        self._file("script.py").write_text(script, encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "TMPDIR": self.folder, "PYTHONUNBUFFERED": "1",
                       "ARGUMENTS": json.dumps(arguments), **variables}
        self.process = subprocess.Popen([python, "script.py"], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        # pytest-timeout ends the tests without a clean-up, and so does SIGKILL: then the guard kills the group.
        self._guard = subprocess.Popen(["sh", "-c", GUARD, str(self.process.pid), self.folder], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self._output = collections.deque(maxlen=MOST_LINES)
        self._output_lock = threading.Lock()
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        PythonProcess.live.append(self)

    def _read_output(self):
        for line in self.process.stdout:
            with self._output_lock:
                self._output.append(line.decode(errors="replace").rstrip("\n"))

    def _file(self, name):
        return pathlib.Path(self.folder) / name

    @property
    def running(self):
        return self.process.poll() is None

    def ended(self):
        """Waits for the end of the script and returns the exit code."""
        try:
            return self.process.wait(HANG)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {HANG:g} s\n{self.output_tail(40)}") from None

    def output(self):
        """Returns the last lines of output of the processes of the group."""
        with self._output_lock:
            return list(self._output)

    def forget_output(self):
        with self._output_lock:
            self._output.clear()

    def output_tail(self, lines):
        return "\n".join(self.output()[-lines:])

    def allow(self, step):
        """Lets the script pass allowed(step), now and later."""
        self._file("allowed-" + step).touch()

    def recorded(self, **fields):
        """Returns the records so far with the given fields, in order."""
        with contextlib.suppress(FileNotFoundError):
            lines = self._file("records").read_bytes().split(b"\n")[:-1]  # the last line may be half written
            return [line for line in map(json.loads, lines) if fields.items() <= line.items()]
        return []

    def records(self, count=1, **fields):
        """Waits for `count` records with the given fields, and returns the records."""
        def find():
            ended = not self.running  # asked first: the records of an ended process are complete
            found = self.recorded(**fields)
            if len(found) < count and ended:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}\n{self.output_tail(40)}")
            return found if len(found) >= count else None
        return until(find, f"{count} records of {self.name} with {fields}", HANG)

    def kill(self):
        """Kills the script's process alone, as the kernel does when memory is short; the child processes go on."""
        self.process.kill()
        self.ended()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._guard.kill()
        self._guard.stdin.close()
        self._guard.wait(HANG)
        self.process.wait(HANG)  # the last step: until here no other process gets the number of the group
        join(f"the end of the output of {self.name}", self._reader)
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        PythonProcess.live.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class RemoteWorker(PythonProcess):
    """A worker of an endpoint. `through` is a proxy in front of the server, `pod` is the id of the worker (by default
    the name), `urls` are more arguments of worker_environment(), `variables` are more variables."""

    def __init__(self, server, endpoint, key, script, name=None, through=None, pod=None, urls=None, variables=None, **arguments):
        name = name or "w-" + endpoint
        url = "http://{}:{}".format(*(through.port.address if through else server.address))
        environment = worker_environment(url, endpoint, key, name if pod is None else pod, **(urls or {}))
        super().__init__(name, script, {**environment, **(variables or {})}, **arguments)

    def logged(self, text, **fields):
        """Returns the lines of the SDK's log with the text in the message and with the given fields."""
        found = []
        for line in self.output():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and text in entry.get("message", "") and fields.items() <= entry.items():
                    found.append(entry)
        return found

    def until_logged(self, text):
        return until(lambda: self.logged(text), f"{self.name} logs {text!r}", HANG)


class RunpodClient(PythonProcess):
    """A client of an endpoint on /sdk/v2. The script can use `endpoint`, a runpod.Endpoint, and the names of CLIENT."""

    def __init__(self, server, endpoint, script, key=None, **arguments):
        super().__init__("a client of " + endpoint, CLIENT + script, {"RUNPOD_ENDPOINT_BASE_URL": server.url + "/sdk/v2"},
                         key=key or server.key, endpoint=endpoint, **arguments)

    def results(self):
        """Waits for the end of the script, and returns the fields of all records as a single object."""
        code = self.ended()
        if code != 0:
            raise AssertionError(f"{self.name} ended with {code}\n{self.output_tail(40)}")
        return {name: value for record in self.recorded() for name, value in record.items()}


def client_results(server, endpoint, script, **arguments):
    with RunpodClient(server, endpoint, script, **arguments) as client:
        return client.results()


def output_of_live_processes():
    """Returns pairs of a name and the end of the output, for the report of a failed test."""
    return [(f"output of {process.name}", process.output_tail(40)) for process in PythonProcess.live]


def worker_key(server, *endpoints):
    """Makes a key for workers of the endpoints."""
    return server.new_key("worker", endpoints=list(endpoints))["key"]


def installed():
    return PYTHON.exists() and sys.platform == "linux"

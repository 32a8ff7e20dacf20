"""A jobq server for black-box tests: started on a free port with a separate data directory, and removed afterwards.

Server(**settings) starts build/bin/jobqd (the build folder from JOBQ_BUILD). Settings are keys of jobq.properties; in
keyword form a double underscore stands for a dot: Server(storage="memory", server__drain="1s"). JOBQ_TRANSPORT gives all
servers a value of `server.transport`.

shared_server() is a server for all tests without special needs. When JOBQ_URL and JOBQ_KEY are set, the server at that
address is used instead (tests/conftest.py).

No test sleeps to make time pass. Ends of jobs and processes are awaited (/runsync, /status-sync, wait); other
conditions are polled in until(), with a deadline.
"""

import atexit
import ctypes
import http.client
import os
import resource
import shutil
import signal
import subprocess
import tempfile

from jobq_api import REPLY_DEADLINE, Answer, Api, PatientApi, join, until  # noqa: F401  (imported by tests from here)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("JOBQ_BUILD", os.path.join(ROOT, "build")))
JOBQD = os.path.join(BUILD, "bin", "jobqd")
JOBQCTL = os.path.join(BUILD, "bin", "jobqctl")
PLUGINS = os.path.join(BUILD, "plugins")

START_DEADLINE = 60.0  # seconds: deadlines that end a hang, and judge no pace
STOP_DEADLINE = 90.0

BASE_SETTINGS = {
    "server.port": "0",
    "limits.enabled": "false",
    "limits.queue": "false",
    "net.allowPrivate": "true",
    "endpoint.echo.image": "plugin/echo",
    "endpoint.trial.image": "plugin/trial",
    "endpoint.parked.image": "plugin/echo",
    "endpoint.parked.workersMax": "0",
}

TRANSPORT = os.environ.get("JOBQ_TRANSPORT", "reactor")
if TRANSPORT != "reactor":
    BASE_SETTINGS["server.transport"] = TRANSPORT

SHORT_DRAIN = {"server.drain": "200ms"}  # time for servers stopped while jobs still run

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Runs in the child: no server outlives the tests, and a deliberate crash leaves no core file."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Server(Api):
    """A jobqd process with a folder. The end of a `with` stops, checks and removes the server."""

    live = []

    def __init__(self, start=True, **settings):
        super().__init__(None, None)
        self.folder = tempfile.mkdtemp(prefix="jobq-test-")
        self.data = os.path.join(self.folder, "data")
        self.file = os.path.join(self.folder, "jobq.properties")
        self.log_file = os.path.join(self.folder, "log")
        self.program = JOBQD
        self.process = None
        self.settings = {**BASE_SETTINGS, "data.dir": self.data}
        self.settings.update({name.replace("__", "."): str(value) for name, value in settings.items()})
        self.write_file()
        Server.live.append(self)
        if start:
            try:
                self.start()
            except BaseException:
                self.remove()
                raise

    def write_file(self):
        with open(self.file, "w", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in self.settings.items())

    def start(self):
        """Starts and waits until the server is ready. Fails if the server ends or hangs instead."""
        if not self.start_unless_it_dies():
            raise AssertionError(f"jobqd ended at its start with {self.process.returncode}: \n{self.log_tail(20)}")
        return self

    def launch(self):
        """Starts the process, without waiting for the server."""
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen([self.program, "--config", self.file], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.folder, preexec_fn=die_with_parent)

    def start_unless_it_dies(self):
        """Starts the server. Returns true once the server is ready, and false if the server ended earlier."""
        address_file = os.path.join(self.data, "address")
        if os.path.exists(address_file):
            os.remove(address_file)
        self.launch()
        return until(lambda: self._stage(address_file), "jobqd is ready", START_DEADLINE) == "ready"

    def _stage(self, address_file):
        if self.process.poll() is not None:
            return "ended"
        try:
            with open(address_file, encoding="ascii") as file:
                text = file.read()
            if not text.endswith("\n"):
                return None
            self.url = text.strip()
            with open(os.path.join(self.data, "admin.key"), encoding="ascii") as file:
                self.key = file.read().strip()
            return "ready" if self.request("GET", "/readyz", key=None).status == 200 else None
        except (OSError, http.client.HTTPException):
            return None

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def ended_by_itself(self):
        """Returns whether a signal other than a test's SIGKILL ended the process, for example SIGSEGV or SIGABRT."""
        return self.process is not None and self.process.poll() is not None and self.process.returncode < 0 and \
            self.process.returncode != -signal.SIGKILL

    def terminate(self):
        """Sends SIGTERM, and does not wait for the end."""
        self.process.send_signal(signal.SIGTERM)

    def ended(self, deadline=STOP_DEADLINE):
        """Waits for the process's end and returns the exit code."""
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"jobqd still runs {deadline:g} s after it was told to end") from None

    def stop(self):
        """SIGTERM, and a clean end."""
        self.terminate()
        code = self.ended()
        if code != 0:
            raise AssertionError(f"jobqd ended with {code} after SIGTERM\n{self.log_tail(40)}")

    def kill(self):
        self.process.kill()
        self.ended()

    def restart(self):
        self.stop()
        return self.start()

    def rss(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))

    def log(self):
        try:
            with open(self.log_file, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def log_tail(self, lines=100):
        return "\n".join(self.log().splitlines()[-lines:])

    def remove(self):
        """Leaves no process and no file."""
        if self.running:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self in Server.live:
            Server.live.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _trace):
        try:
            if self.ended_by_itself:
                raise AssertionError(f"jobqd ended by itself with {self.process.returncode}\n{self.log_tail(40)}")
            if kind is None and self.running:
                self.stop()
        finally:
            self.remove()


_shared = None


def shared_server():
    """The server for tests that need no separate server; started at the first call, stopped by close_shared()."""
    global _shared
    if isinstance(_shared, Exception):
        raise AssertionError("the shared server did not start") from _shared
    if _shared is None:
        try:
            _shared = _remote_server() or Server()
        except (AssertionError, OSError) as error:
            _shared = error
            raise
    return _shared


def is_foreign():
    """Returns whether the tests use a running server instead of starting a server."""
    return bool(os.environ.get("JOBQ_URL") and os.environ.get("JOBQ_KEY"))


def _remote_server():
    return PatientApi(os.environ["JOBQ_URL"], os.environ["JOBQ_KEY"]) if is_foreign() else None


def shared_end():
    """Returns a text with the exit code and the end of the log of the ended shared server, or None if no shared server
    has ended."""
    if not isinstance(_shared, Server) or _shared.running:
        return None
    return f"the shared server ended with {_shared.process.returncode}\n{_shared.log_tail(40)}"


def forget_shared():
    """Makes the next test start a new shared server; called after shared_end()."""
    global _shared
    _shared.remove()
    _shared = None


def close_shared():
    """Stops the shared server, and fails if the server does not end cleanly."""
    global _shared
    server, _shared = _shared, None
    if isinstance(server, Server):
        with server:
            pass


def _remove_all():
    for server in list(Server.live):
        server.remove()


atexit.register(_remove_all)


def jobqd(*arguments):
    """Runs jobqd to the end, for calls other than serving, and returns the finished process with the output."""
    return subprocess.run([JOBQD, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=START_DEADLINE, preexec_fn=die_with_parent)

"""The measured servers: each is started on a free port with separate files, and taken away again."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("JOBQ_BUILD", os.path.join(ROOT, "build"))
PROGRAMS = os.path.join(BUILD, "tests")
BULLMQ = "bullmq@5.34.0"
JOB = b'{"input":{"prompt":"a photo of an astronaut riding a horse","steps":20,"seed":42}}'
LONGEST_LOAD = 1_800  # seconds of one run of the load generator, with a million jobs


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process):
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"{process.args[0]} does not listen")


def until(question, what, deadline=60.0):
    """Asks until the answer is true; fails with `what` after `deadline` seconds."""
    end = time.monotonic() + deadline
    while not question():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {deadline:g} s")
        time.sleep(0.005)


def end_with_parent():
    """Runs in the child: no process outlives the bench, even after a kill of the bench."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Running:
    """A process with a folder; the end of the context stops the process and removes the folder."""

    profile = None  # the file for perf's record of the first process under load; `None`: no record

    def __init__(self, name):
        os.makedirs(os.path.join(BUILD, "bench-data"), exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix=f"{name}-", dir=os.path.join(BUILD, "bench-data"))
        self.port = free_port()
        self.processes = []
        self.recorder = None

    def start(self, *command, listens=True):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=self.folder, preexec_fn=end_with_parent)
        self.processes.append(process)
        if listens:
            await_port(self.port, process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.recorder:
            self.recorder.send_signal(signal.SIGINT)  # perf's order to write and end
            self.recorder.wait(60)
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def load(self, protocol, connections, request, seconds=0.0, count=0, numbers=None):
        """Runs the load generator and returns the measurement. With `numbers` the first 00000 of the request counts up
        to this many, and again from the start."""
        path = self.file("request", request)
        if self.profile and not self.recorder:  # until the server is stopped: idle time has no samples
            self.recorder = subprocess.Popen(["perf", "record", "-q", "-g", "-F", "999", "-o", self.profile, "-p",
                                              str(self.processes[0].pid)], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, preexec_fn=end_with_parent)
        done = subprocess.run([os.path.join(PROGRAMS, "bench_load"), protocol, str(self.port), str(connections),
                               str(seconds), str(count), path, *([str(numbers)] if numbers else [])], capture_output=True, text=True, check=False,
                              preexec_fn=end_with_parent, timeout=LONGEST_LOAD)
        if done.returncode != 0:
            raise RuntimeError(f"the load on {self.folder} failed: {done.stderr}\n{self.log()}")
        return json.loads(done.stdout)

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]


class Jobq(Running):
    workers = 128

    def __init__(self, storage, more=None):
        """`more`: settings beside the bench's own."""
        super().__init__(f"jobq-{storage}")
        self.data = os.path.join(self.folder, "data")
        settings = {"server.port": self.port, "data.dir": self.data, "storage": storage, "log.level": "warning",
                    "limits.enabled": "false", "limits.queue": "false", "endpoint.parked.image": "plugin/echo",
                    "endpoint.parked.workersMax": 0, "endpoint.echo.image": "plugin/echo",
                    "endpoint.echo.workersMin": self.workers, "endpoint.echo.workersMax": self.workers,
                    **(more or {})}
        text = "".join(f"{key} = {value}\n" for key, value in settings.items())
        self.config = self.file("jobq.properties", text.encode())

    def __enter__(self):
        try:
            return self.launch()
        except BaseException:
            self.__exit__()
            raise

    def launch(self, *arguments):
        """Starts the server, and returns when the server is ready."""
        self.process = self.start(os.path.join(BUILD, "bin", "jobqd"), "--config", self.config, *arguments)
        end = time.monotonic() + 60
        while not self.ready():
            if time.monotonic() > end:
                raise RuntimeError(f"jobqd is not ready\n{self.log()}")
            time.sleep(0.005)
        with open(os.path.join(self.data, "admin.key"), encoding="ascii") as file:
            self.key = file.read().strip()
        return self

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        self.processes.remove(self.process)

    def ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()

    def request(self, method, path, body=b""):
        return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nUser-Agent: bench\r\nAccept: */*\r\n"
                f"Authorization: Bearer {self.key}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    def call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, method=method,
                                         headers={"Authorization": self.key, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=LONGEST_LOAD) as answer:
            return json.loads(answer.read())

    def memory(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


class Bare(Running):
    def __init__(self, answer):
        super().__init__("bare")
        self.answer = self.file("answer", answer)

    def __enter__(self):
        try:
            self.start(os.path.join(PROGRAMS, "bench_bare"), self.port, self.answer)
            return self
        except BaseException:
            self.__exit__()
            raise


def installed(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def install_bullmq():
    """BullMQ's folder, or `None` when npm cannot get BullMQ."""
    folder = os.path.join(BUILD, "bullmq")
    if not os.path.isdir(os.path.join(folder, "node_modules", "bullmq")):
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, BULLMQ],
                              capture_output=True, check=False, timeout=600)
        if done.returncode != 0:
            print(f"npm cannot install {BULLMQ}", file=sys.stderr)
            return None
    return folder

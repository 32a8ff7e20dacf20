"""A Docker for tests: dockerd with data, socket and containers in a temporary folder, without a network. The package
docker.io and the rights of root are needed.

    with RealDocker() as docker:
        docker.add_image("acme/worker:1", [PROGRAM])
        docker.socket                       # the setting launcher.docker.socket
        docker.containers()
"""

import contextlib
import ctypes
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile

from docker_process import UnixConnection
from jobq_server import until
from pace import HANG

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
SETTINGS = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--log-level=warn")
# The read ends when the tests' process does, also by SIGKILL. dockerd leaves the mount of a name space.
UNMOUNT = 'grep -o " $1/[^ ]*" /proc/self/mounts | tac | xargs -r umount; rm -rf -- "$1"'
GUARD = f'read -r line; kill -TERM "$0"; tail --pid="$0" -f /dev/null; {UNMOUNT}'


class Missing(Exception):
    """Docker does not run on the machine."""


class Refused(AssertionError):
    """Docker refused a call."""


def end_with_parent():
    """Runs in the child. At SIGTERM dockerd ends the containers and containerd; SIGKILL would leave both."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def libraries(program):
    """Returns the paths of the program's shared libraries and of the loader."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, timeout=HANG).stdout
    return re.findall(r"(/\S+) \(0x", listed)


class RealDocker:
    """The end of a `with` removes the processes, the containers and the folder. Raises Missing."""

    def __init__(self):
        program = shutil.which("dockerd") or shutil.which("dockerd", path="/usr/sbin:/sbin")
        if program is None:
            raise Missing("the package docker.io is not installed: `scripts/setup.sh test` installs it")
        if os.geteuid() != 0:
            raise Missing("dockerd needs root")
        self.folder = tempfile.mkdtemp(prefix="jobq-dockerd-")
        self.socket = os.path.join(self.folder, "docker.sock")
        self._log = tempfile.TemporaryFile()
        settings = pathlib.Path(self.folder, "settings.json")  # instead of the settings of the machine
        settings.write_text("{}", encoding="utf-8")
        places = [f"--{name}={os.path.join(self.folder, name)}" for name in ("data-root", "exec-root", "pidfile")]
        self._process = subprocess.Popen(
            [program, *SETTINGS, *places, f"--config-file={settings}", "--host=unix://" + self.socket],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, preexec_fn=end_with_parent)
        self._guard = subprocess.Popen(["sh", "-c", GUARD, str(self._process.pid), self.folder], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            until(lambda: self._process.poll() is not None or self._answers(), "dockerd answers", HANG)
            if self._process.poll() is not None:
                raise Missing(f"dockerd ends with {self._process.returncode} on this machine: {self.log().splitlines()[-1:]}")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self._remove_containers()
        finally:
            self._process.terminate()
            try:
                self._process.wait(timeout=HANG)
            finally:
                self._process.kill()
                self._process.wait(timeout=HANG)
                self._guard.kill()
                self._guard.stdin.close()
                self._guard.wait(timeout=HANG)
                subprocess.run(["sh", "-c", UNMOUNT, "sh", self.folder], check=True, timeout=HANG)

    def _remove_containers(self):
        for container in self.containers() if self._answers() else []:
            self.remove(container["Id"])

    def remove(self, container):
        """Removes a container, unless another client of Docker does so."""
        with contextlib.suppress(Refused):
            self.call("DELETE", f"/containers/{container}?force=1")

    def _answers(self):
        try:
            return self.call("GET", "/version")
        except OSError:
            return None

    def log(self):
        return os.pread(self._log.fileno(), 1 << 20, 0).decode(errors="replace")

    def call(self, method, path, body=None, headers=None):
        """Makes a call and returns the content of the answer, of a GET as an object."""
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status >= 400:
                raise Refused(method, path, answer.status, content)
            return json.loads(content) if method == "GET" else content
        finally:
            connection.close()

    def add_image(self, name, programs, folders=(), files=None):
        """Makes an image of programs of the machine with the libraries of the programs, of folders with the libraries
        of the Python modules inside, all at the same paths as on the machine, and of files with given contents."""
        modules = [str(path) for folder in folders for path in pathlib.Path(folder).rglob("*.so*") if path.is_file()]
        paths = {*programs, *folders, *(path for program in (*programs, *modules) for path in libraries(program))}
        with tempfile.TemporaryFile() as content:
            with tarfile.open(fileobj=content, mode="w") as image:
                for path in sorted(paths):
                    image.add(path if os.path.isdir(path) else os.path.realpath(path), arcname=path.lstrip("/"))
                for path, text in {**(files or {}), "/tmp/.keep": ""}.items():
                    entry = tarfile.TarInfo(path.lstrip("/"))
                    entry.size = len(text.encode())
                    image.addfile(entry, io.BytesIO(text.encode()))
            content.seek(0)
            repository, tag = name.rsplit(":", 1)
            said = self.call("POST", f"/images/create?fromSrc=-&repo={repository}&tag={tag}", content,
                             {"Content-Type": "application/x-tar"})
        assert b'"error"' not in said, said

    def try_container(self, image, command):
        """Runs a container to the end. Raises Missing if Docker runs no containers, as inside of a container without the rights
        for containers."""
        made = json.loads(self.call("POST", "/containers/create", json.dumps(
            {"Image": image, "Entrypoint": command, "HostConfig": {"NetworkMode": "host", "AutoRemove": True}}),
            {"Content-Type": "application/json"}))
        try:
            self.call("POST", f"/containers/{made['Id']}/start")
        except Refused as refused:
            raise Missing(f"Docker runs no containers on this machine: {refused}") from None
        until(lambda: not self.containers(), "the container ends", HANG)

    def containers(self):
        """Returns Docker's list of all containers, including ended containers."""
        return self.call("GET", "/containers/json?all=1")

    def inspect(self, name):
        return self.call("GET", f"/containers/{name}/json")

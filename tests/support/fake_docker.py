#!/usr/bin/env python3
"""A fake of Docker: the calls of the Engine API used by launcher_docker, on a Unix socket. A container is a local
process with all child processes; an image is a row of a table, and the container sees the files of the machine.

    fake_docker.py SOCKET [SETTINGS]

SETTINGS is JSON. `POST /fake` changes the settings later:

| setting | |
|---|---|
| images | name -> {"state": "present" or "remote", "entrypoint": [...], "cmd": [...], "user": ..., "password": ...} |
| isDown | true: every connection is closed without an answer |
| isSilent | true: no call is answered |
| holdsCreates | true: a creation is noted, and answered when the setting is false |
| holdsPulls | true: a pull sends news until the setting is false |
| pullError | a text: a pull fails with it inside an answer 200 |
| refusesDisk | true: the storage driver knows no size |
| minApi | the oldest version of the API, "1.24" by default |
| runtimes | the runtimes of the containers, ["runc"] by default |
| refusesRemoval | true: containers cannot be removed |
| folder | the working directory of the containers |

`GET /fake` answers with the facts for tests: the bodies of the containers, the pulls, the containers, the signals. The
containers end with the fake, also by SIGKILL.
"""
import base64
import http.server
import json
import os
import re
import shutil
import signal
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

API = "1.43"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "container_init.py")
LONGEST_LIFE = 3600  # seconds: bounds a hang
LONGEST_END = 30
STEP = 0.02  # seconds between two looks


class Failure(Exception):
    """An answer with a failure."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        self.message = message


class Container:
    """A container: the description, and the process after the start."""

    def __init__(self, name, body, image, folder, place):
        self.id = os.urandom(32).hex()
        self.name = name
        self.body = body
        self.state = "created"
        self.exit_code = 0
        self.is_out_of_memory = False
        self.args = (body.get("Entrypoint") or image.get("entrypoint", [])) + (
            body.get("Cmd") or ([] if body.get("Entrypoint") else image.get("cmd", [])))
        self.env = {"PATH": PATH, **dict(pair.split("=", 1) for pair in body.get("Env") or [])}
        self.log = os.path.join(folder, self.id)
        self.place = place
        self.process = None
        self.ended = threading.Event()

    def start(self):
        if not self.args:
            raise Failure(400, "no command specified")
        if shutil.which(self.args[0], path=self.env["PATH"]) is None:
            self.exit_code = 127
            raise Failure(400, "failed to create task for container: failed to create shim task: OCI runtime create "
                               f"failed: exec: \"{self.args[0]}\": executable file not found in $PATH: unknown")
        spec = json.dumps({"args": self.args, "env": self.env, "cwd": self.place})
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([sys.executable, INIT, spec], stdin=subprocess.PIPE,
                                            stdout=log, stderr=log, text=True, start_new_session=True)
        self.state = "running"
        threading.Thread(target=self.await_end, daemon=True).start()

    def await_end(self):
        self.exit_code = self.process.wait(timeout=LONGEST_LIFE)
        self.state = "exited"
        self.ended.set()

    def signal(self, name):
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the process is just ending

    def kill(self):
        if self.state == "running":
            self.signal("SIGKILL")
            self.ended.wait(LONGEST_END)

    def last_lines(self, count):
        """Returns the frames of the log: a head of 8 bytes before each line."""
        if not os.path.exists(self.log):
            return b""
        with open(self.log, "rb") as log:
            lines = log.read().splitlines(keepends=True)[-count:]
        return b"".join(struct.pack(">BxxxI", 1, len(line)) + line for line in lines)


class Daemon:
    """The images and containers."""

    def __init__(self, settings):
        self.lock = threading.RLock()
        self.settings = settings
        self.folder = tempfile.mkdtemp(prefix="jobq-docker-")
        self.containers = {}
        self.bodies = []
        self.pulls = []
        self.signals = []
        self.volumes = []  # names of removed containers with remaining anonymous volumes

    def image(self, name):
        """Returns the row of an image, or None."""
        last = name.rsplit("/", 1)[-1]
        names = [name] if ":" in last or "@" in last else [name, name + ":latest"]
        images = self.settings.get("images", {})
        return next((images[each] for each in names if each in images), None)

    def create(self, name, body):
        with self.lock:
            self.bodies.append(body)
        while self.settings.get("holdsCreates"):
            time.sleep(STEP)
        with self.lock:
            if self.settings.get("refusesDisk") and "StorageOpt" in body.get("HostConfig", {}):
                raise Failure(500, "--storage-opt is supported only for overlay over xfs with 'pquota' mount option")
            image = self.image(body["Image"])
            if image is None or image["state"] != "present":
                raise Failure(404, f"No such image: {body['Image']}")
            taken = next((each for each in self.containers.values() if each.name == name), None)
            if taken:
                raise Failure(409, f"Conflict. The container name \"/{name}\" is already in use by container "
                                   f"\"{taken.id}\". You have to remove (or rename) that container to be able to reuse "
                                   "that name.")
            container = Container(name, body, image, self.folder, self.settings.get("folder", self.folder))
            self.containers[container.id] = container
            return container

    def find(self, key):
        for container in list(self.containers.values()):
            if container.id.startswith(key) or container.name == key:
                return container
        raise Failure(404, f"No such container: {key}")

    def remove(self, container, force):
        if self.settings.get("refusesRemoval"):
            raise Failure(500, "driver failed to remove root filesystem: device or resource busy")
        if container.state == "running" and not force:
            raise Failure(409, f"You cannot remove a running container {container.id}.")
        container.kill()
        with self.lock:
            self.containers.pop(container.id, None)

    def check_pull(self, name, auth):
        """Returns the row of an image, if the credentials allow a pull."""
        image = self.image(name)
        denied = Failure(404, f"pull access denied for {name}, repository does not exist or may require 'docker login': "
                              "denied: requested access to the resource is denied")
        if image is None:
            raise denied
        if "user" in image:
            given = json.loads(base64.urlsafe_b64decode(auth)) if auth else {}
            if (given.get("username"), given.get("password")) != (image["user"], image["password"]):
                raise denied
        return image

    def end(self):
        for container in list(self.containers.values()):
            container.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def report(self):
        with self.lock:
            return {"bodies": self.bodies, "pulls": self.pulls, "signals": self.signals, "volumes": self.volumes,
                    "containers": [{"id": each.id, "name": each.name, "state": each.state,
                                    "labels": each.body.get("Labels") or {}} for each in self.containers.values()]}


class Handler(http.server.BaseHTTPRequestHandler):
    """One call."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def serve(self):
        daemon = self.server.daemon
        address = urllib.parse.urlsplit(self.path)
        self.query = {name: values[0] for name, values in urllib.parse.parse_qs(address.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length else b""
        if address.path == "/fake":
            return self.serve_settings(daemon)
        while daemon.settings.get("isSilent"):
            time.sleep(STEP)
        if daemon.settings.get("isDown"):
            self.close_connection = True
            return None
        try:
            return self.serve_call(daemon, self.checked_path(daemon, address.path))
        except Failure as failure:
            return self.answer(failure.status, {"message": failure.message})

    do_GET = do_POST = do_DELETE = serve

    def serve_settings(self, daemon):
        if self.command == "POST":
            daemon.settings.update(json.loads(self.body))
        self.answer(200, daemon.report())

    def checked_path(self, daemon, path):
        """Returns the path without the version of the API."""
        version, rest = re.fullmatch(r"(?:/v(\d+\.\d+))?(/.*)", path).groups()
        least = daemon.settings.get("minApi", "1.24")
        if version and [int(part) for part in version.split(".")] < [int(part) for part in least.split(".")]:
            raise Failure(400, f"client version {version} is too old. Minimum supported API version is {least}, please "
                               "upgrade your client to a newer version")
        return rest

    def serve_call(self, daemon, path):
        call = f"{self.command} {path}"
        if call == "GET /version":
            return self.answer(200, {"Version": "24.0.5", "ApiVersion": daemon.settings.get("api", API),
                                     "MinAPIVersion": daemon.settings.get("minApi", "1.24"), "Os": "linux"})
        if call == "GET /info":
            return self.answer(200, {"Driver": "overlay2", "Runtimes": dict.fromkeys(daemon.settings.get("runtimes", ["runc"]), {})})
        if call == "GET /containers/json":
            return self.answer(200, self.listed(daemon))
        if call == "POST /containers/create":
            created = daemon.create(self.query["name"], json.loads(self.body))
            return self.answer(201, {"Id": created.id, "Warnings": []})
        if call == "POST /images/create":
            return self.pull(daemon)
        container, action = re.fullmatch(r"/containers/([^/]+)(?:/(\w+))?", path).groups()
        return self.serve_container(daemon, daemon.find(container), f"{self.command} {action}")

    def serve_container(self, daemon, container, call):
        if call == "DELETE None":
            daemon.remove(container, self.query.get("force") == "true")
            if self.query.get("v") != "true":
                daemon.volumes.append(container.name)
            return self.answer(204)
        if call == "POST start":
            if container.state == "running":
                return self.answer(304)
            container.start()
            return self.answer(204)
        if call == "POST kill":
            if container.state != "running":
                raise Failure(409, f"Cannot kill container: {container.id}: container {container.id} is not running")
            daemon.signals.append([container.name, self.query["signal"]])
            container.signal(self.query["signal"])
            return self.answer(204)
        if call == "GET json":
            return self.answer(200, {"Id": container.id, "State": {
                "Status": container.state, "Running": container.state == "running", "OOMKilled":
                container.body["Labels"].get("fake.oom") == "true", "ExitCode": container.exit_code, "Error": ""}})
        if call == "GET logs" and self.query.get("follow") == "1":
            return self.follow(container)
        if call == "GET logs":
            return self.answer(200, container.last_lines(int(self.query["tail"])))
        raise Failure(404, "page not found")

    def follow(self, container):
        """Sends the output until the container has ended."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with open(container.log, "rb") as log:
            while True:
                has_ended = container.ended.is_set()
                while part := log.read(4096):
                    frame = struct.pack(">BxxxI", 1, len(part)) + part
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
                if has_ended or self.server.daemon.settings.get("isDown"):
                    break
                time.sleep(STEP)
        if container.ended.is_set():
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def listed(self, daemon):
        wanted = json.loads(self.query.get("filters", "{}")).get("label", [])
        rows = []
        for container in list(daemon.containers.values()):
            labels = container.body.get("Labels") or {}
            if all(f"{name}={value}" in [f"{key}={text}" for key, text in labels.items()]
                   for name, value in (each.split("=", 1) for each in wanted)):
                rows.append({"Id": container.id, "Names": ["/" + container.name], "Labels": labels,
                             "State": container.state})
        return rows

    def pull(self, daemon):
        name, version = self.query["fromImage"], self.query.get("tag", "latest")
        full = f"{name}@{version}" if ":" in version else f"{name}:{version}"
        daemon.pulls.append([full, self.headers.get("X-Registry-Auth", "")])
        image = daemon.check_pull(full, self.headers.get("X-Registry-Auth"))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.send_news({"status": f"Pulling from {name}", "id": version})
        while daemon.settings.get("holdsPulls"):
            self.send_news({"status": "Downloading", "progressDetail": {"current": 1, "total": 2}})
            time.sleep(STEP)
        error = daemon.settings.get("pullError")
        if error:
            self.send_news({"errorDetail": {"message": error}, "error": error})
        else:
            image["state"] = "present"
            self.send_news({"status": f"Status: Downloaded newer image for {full}"})
        self.wfile.write(b"0\r\n\r\n")

    def send_news(self, news):
        line = json.dumps(news).encode() + b"\r\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def answer(self, status, content=None):
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # the caller has gone


def main():
    daemon = Daemon(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    ended, ending = os.pipe()
    # An exception of the handler would be lost where Python ignores exceptions, as in the call-back of a weak reference.
    signal.signal(signal.SIGTERM, lambda *_: os.write(ending, b"."))
    with Server(sys.argv[1], Handler) as server:
        server.daemon = daemon
        threading.Thread(target=server.serve_forever, args=(STEP,), daemon=True).start()
        try:
            os.read(ended, 1)
        finally:
            server.shutdown()
            daemon.end()


if __name__ == "__main__":
    main()

"""A registry of images with a password (the package docker-registry), on a free port of 127.0.0.1.

    with RealRegistry(docker) as registry:
        registry.server                                  # such as "127.0.0.1:40123"
        registry.keep(docker, registry.server + "/acme/worker:1")
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from jobq_server import die_with_parent, until
from pace import HANG
from reserved_port import ReservedPort

USER, PASSWORD = "me", "secret"
USERS = "me:$2y$05$dgQcDwX/TdpSn7UdjxWjge7/RYg6viMr.ENAhZ.e7bCbs9Wtu4ypO\n"  # htpasswd -Bbn -C 5 me secret
MISSING = "the package docker-registry is not installed: `scripts/setup.sh test` installs it"


def installed():
    return shutil.which("docker-registry") is not None


class RealRegistry:
    """The end of a `with` removes the process and the files."""

    def __init__(self, docker):
        """The files are in the folder of the RealDocker."""
        with contextlib.ExitStack() as stack:
            self._port = stack.enter_context(contextlib.closing(ReservedPort()))
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="registry-", dir=docker.folder))
            self.server = "{}:{}".format(*self._port.address)
            users, settings = os.path.join(folder, "users"), os.path.join(folder, "settings.json")
            with open(users, "w", encoding="utf-8") as file:
                file.write(USERS)
            with open(settings, "w", encoding="utf-8") as file:
                json.dump({"version": 0.1, "log": {"level": "error"}, "http": {"addr": self.server},
                           "storage": {"filesystem": {"rootdirectory": os.path.join(folder, "images")}},
                           "auth": {"htpasswd": {"realm": "tests", "path": users}}}, file)
            process = subprocess.Popen(["docker-registry", "serve", settings], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
            stack.callback(process.wait, HANG)
            stack.callback(process.kill)
            until(self._answers, "the registry answers", HANG)
            self._at_end = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._at_end.close()

    def _answers(self):
        try:
            urllib.request.urlopen(f"http://{self.server}/v2/", timeout=HANG).close()
        except urllib.error.HTTPError as refused:
            return refused.code == 401
        except OSError:
            return False
        return False

    def keep(self, docker, image):
        """Moves an image of a RealDocker to the registry."""
        repository, tag = image.rsplit(":", 1)
        words = {"username": USER, "password": PASSWORD, "serveraddress": self.server}
        answer = docker.call("POST", f"/images/{repository}/push?tag={tag}",
                             headers={"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(words).encode()).decode()})
        assert b'"aux"' in answer, answer
        docker.call("DELETE", f"/images/{image}")

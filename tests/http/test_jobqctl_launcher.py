"""etc/workers.md: jobqctl launcher probe: whether the launcher of the settings can start workers, without a server."""

import json
import os
import subprocess

import pytest

from docker_process import FakeDocker
from jobq_server import JOBQCTL, ROOT
from jobqctl_case import NOWHERE, OK, REFUSED


def probe(*arguments, code):
    """Runs the command with the address of no server: the command needs none."""
    settings = [word for setting in arguments for word in ("--set", setting)]
    done = subprocess.run([JOBQCTL, "launcher", "probe", *settings, "--json"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "JOBQ_URL": NOWHERE}, check=False, cwd=ROOT)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def docker():
    with FakeDocker({}) as fake:
        yield fake


def test_reachable_docker(docker):
    found, = json.loads(probe("launcher=docker", f"launcher.docker.socket={docker.socket}", code=OK).stdout)
    assert (found["check"], found["result"]) == ("docker", "ok"), found
    assert "24.0.5" in found["text"], found


def test_unreachable_docker(tmp_path):
    socket = tmp_path / "docker.sock"
    found, = json.loads(probe("launcher=docker", f"launcher.docker.socket={socket}", code=REFUSED).stdout)
    assert found["result"] == "failed"
    assert str(socket) in found["text"] and "start Docker" in found["text"], found


def test_a_launcher_without_checks():
    assert json.loads(probe("launcher=process", code=OK).stdout) == []


def test_settings_without_a_launcher():
    assert "set launcher to docker or process" in probe(code=REFUSED).stderr

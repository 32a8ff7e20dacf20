"""scripts/cluster.sh starts a cluster, shows a table, and leaves no process and no file after each kind of end."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import cluster
import galera
import jobq_server
import machine

pytestmark = pytest.mark.skipif(bool(galera.reason_to_skip()), reason=str(galera.reason_to_skip()))


def commands():
    """Returns the command lines of all processes."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue


@pytest.fixture
def script(tmp_path):
    """Starts the program of the script, waits for the first table, and returns the process and the folder of the
    cluster."""
    output = tmp_path / "output"
    started = []

    def start(*options):
        with output.open("wb") as file:
            process = subprocess.Popen([sys.executable, "-B", cluster.__file__, "--nodes", "1", "--databases", "1",
                                        *options], stdout=file, stderr=file,
                                       env={**os.environ, "JOBQ_BUILD": jobq_server.BUILD})
        started.append(process)
        machine.until(lambda: process.poll() is not None or "JOBS  completed" in output.read_text(),
                      "the first table is printed")
        text = output.read_text()
        assert re.search(r"node-1 +\d+ +ready", text) and re.search(r"db-1 +\d+ +Synced", text), text
        return process, re.search(r"admin key: (\S+)/node-1/", text)[1]

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(machine.LONGEST_START)


def await_nothing_left(folder):
    machine.until(lambda: not any(folder in command for command in commands()), f"no process of {folder} is left")
    machine.until(lambda: not os.path.exists(folder), f"{folder} is removed")


class EndTest:
    def test_after_the_given_seconds(self, script):
        process, folder = script("--seconds", "1", "--load")
        assert process.wait(machine.LONGEST_START) == 0
        await_nothing_left(folder)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_after_a_signal(self, script, number):
        process, folder = script()
        process.send_signal(number)
        code = process.wait(machine.LONGEST_START)
        assert code == (-number if number == signal.SIGKILL else 0)
        await_nothing_left(folder)

    def test_after_the_loss_of_the_inner_process(self, script):
        process, folder = script()
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(children[0]), signal.SIGKILL)
        process.wait(machine.LONGEST_START)
        await_nothing_left(folder)

"""`jobq-guard -- PROGRAM`: a worker that another program starts, and all its processes (etc/workers.md)."""

import os
import signal
import subprocess

import pytest

from jobq_server import BUILD, until
from pace import HANG

GUARD = os.path.join(BUILD, "bin", "jobq-guard")
CHILD = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > \"$FOLDER/child\"; while :; do sleep 0.1; done' & "
READY = 'while [ ! -s "$FOLDER/child" ]; do sleep 0.01; done; '


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def guard(tmp_path, at_end):
    """Starts a shell under a guard."""
    def start(script):
        process = subprocess.Popen([GUARD, "--", "/bin/sh", "-c", script], env={**os.environ, "FOLDER": str(tmp_path)},
                                   stdin=subprocess.DEVNULL)
        at_end.callback(process.wait, HANG)
        at_end.callback(process.kill)
        return process
    return start


def child_of(folder):
    return until(lambda: (folder / "child").exists() and (folder / "child").read_text().strip(), "the child runs", HANG)


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 37", 37), ("kill -9 $$", 128 + 9)])
def test_the_exit_code_is_that_of_the_worker(guard, script, code):
    assert guard(script).wait(HANG) == code


def test_children_end_with_the_worker(guard, tmp_path):
    process = guard(CHILD + READY + "exit 5")
    child = child_of(tmp_path)
    assert process.wait(HANG) == 5
    assert not is_alive(child)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_goes_to_the_worker(guard, tmp_path, number):
    process = guard(f"trap 'exit 7' {number.name[3:]}; {CHILD} {READY} echo > \"$FOLDER/ready\"; "
                    "while :; do sleep 0.1; done")
    child = child_of(tmp_path)
    until((tmp_path / "ready").exists, "the worker is ready", HANG)
    process.send_signal(number)
    assert process.wait(HANG) == 7
    assert not is_alive(child)


def test_the_worker_ends_with_a_killed_guard(guard, tmp_path):
    process = guard('echo $$ > "$FOLDER/child"; while :; do sleep 0.1; done')
    worker = child_of(tmp_path)
    process.kill()
    until(lambda: not is_alive(worker), "the worker is gone", HANG)


@pytest.mark.parametrize("words, code, text", [(["--", "/does/not/exist"], 127, "No such file"),
                                               (["--"], 2, "jobq-guard -- PROGRAM")])
def test_refusals(words, code, text):
    done = subprocess.run([GUARD, *words], capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == code and text in done.stderr, done

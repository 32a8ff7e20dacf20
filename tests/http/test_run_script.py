"""scripts/run.sh starts the build of a clone that was moved."""

import os
import shutil
import signal
import subprocess

import jobq_server
from jobq_server import BUILD, ROOT, until

STOP_DEADLINE = 60  # seconds: bounds a hang, and judges no pace


def test_a_moved_clone_starts_its_build(tmp_path):
    """CMake refuses a build folder that was made elsewhere; the programs in it run at any place."""
    clone = tmp_path / "moved"
    for folder in ("etc", "scripts"):
        shutil.copytree(os.path.join(ROOT, folder), clone / folder, ignore=shutil.ignore_patterns("*-data"))
    (clone / "build").mkdir()
    for folder in ("bin", "plugins"):
        shutil.copytree(os.path.join(BUILD, folder), clone / "build" / folder)
    (clone / "build/CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/jobq\n")
    with open(tmp_path / "said", "w", encoding="utf-8") as said:
        script = subprocess.Popen([clone / "scripts/run.sh", "--set", "server.port=0"], stdin=subprocess.DEVNULL,
                                  stdout=said, stderr=subprocess.STDOUT, preexec_fn=jobq_server.die_with_parent)
    try:
        address = clone / "etc/jobq-data/address"
        until(lambda: script.poll() is not None or (address.exists() and address.read_text()), "the server is there", 60)
        text = (tmp_path / "said").read_text()
        assert script.poll() is None, text
        assert "run.sh: starting the build made at /elsewhere/jobq; after `rm -r " in text
        key = (clone / "etc/jobq-data/admin.key").read_text().strip()
        server = jobq_server.Api(address.read_text().strip(), key)
        assert server.runsync("echo", {"a": 1})["output"] == {"a": 1}
    finally:
        script.send_signal(signal.SIGTERM)
        script.wait(STOP_DEADLINE)

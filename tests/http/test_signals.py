"""Signals: sdk/README.md, "Programs that a handler starts", and the end of a process with threads of a library."""

import os
import signal

import pytest

from http_case import HttpTest
from jobq_server import BUILD, PLUGINS, jobqd
from jobq_worker import JobqWorker
from test_jobq_worker_isolation import children_of

CHILDREN = os.path.join(BUILD, "tests", "children")
ENDS = ["exit 7", "TERM", "INT", "HUP", "PIPE", "XFSZ"]  # of a forked process, then of programs


class SignalsTest(HttpTest):
    def test_a_handler_of_the_server(self, own_server):
        """A program ends by each signal that ends programs. The server ends with 0 although a library has a thread."""
        server = own_server(plugins__path=f"{PLUGINS}:{CHILDREN}", endpoint__children__image="plugin/children")
        assert server.runsync("children", {})["output"] == ENDS
        assert jobqd("--config", server.file, "--check").returncode == 0
        server.stop()
        assert "server.stopped" in server.log().strip().splitlines()[-1]

    @pytest.mark.parametrize("isolation", ["thread", "process"])
    def test_a_handler_of_a_worker(self, isolation, own_server):
        server = own_server(endpoint__remote__image="docker.io/library/any")
        with JobqWorker(server, "remote", "plugin/children", "--isolation", isolation, "--plugins", CHILDREN) as worker:
            assert server.runsync("remote", {})["output"] == ENDS
            children = children_of(worker.process.pid)
            assert bool(children) == (isolation == "process"), children
            for child in children:
                for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    os.kill(child, ending)
            assert server.runsync("remote", {})["output"] == ENDS
            assert not worker.logged("handler\\.")
            worker.terminate()
            assert worker.ended() == 0

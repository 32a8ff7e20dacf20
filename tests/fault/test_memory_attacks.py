"""Callers and workers that make the server hold much: large outputs, inputs, places, chunks, and texts without a key. Each attack
stays within the sum of its budgets and 100 MB, and the memory goes back. core/decisions/memory.md has the budgets."""

import contextlib
import json
import os
import socket

import pytest
from http_case import HttpTest
from jobq_server import until
from pace import HANG
from process_watch import forget_peak, memory
from waiting_callers import allow_descriptors

MB = 1 << 20
SHARE = 128 * MB  # of an endpoint: a quarter of 512 MB, for answers and for the inputs of claimed jobs
BESIDE = 100 * MB  # beside the budgets
BACK = 30 * MB  # above the beginning, when all is over
READERS = 400
NAMES = 1_000
KEYLESS = 1_000
SANITIZED = "asan" in os.environ.get("JOBQ_BUILD", "") or "tsan" in os.environ.get("JOBQ_BUILD", "")
SETTINGS = {f"endpoint.{name}.image": "docker.io/acme/worker:1" for name in ("fed", "crowded", "streamed")}


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory")
@pytest.mark.timeout(300)
class MemoryAttacksTest(HttpTest):
    @pytest.fixture
    def server(self, own_server):
        if not allow_descriptors(NAMES + 200):
            pytest.skip(f"{NAMES} connections need more descriptors than this machine allows")
        return own_server(server__bodyMemory="200MB", **SETTINGS)

    def test_each_attack_has_a_bound_and_the_memory_goes_back(self):
        self.worker_key = self.server.new_key("worker")["key"]
        self.server.request("POST", "/v2/echo/runsync", {"input": {"warm": "up"}})
        self.start = self.server.rss()
        # In the order of their budgets: freed memory stays with the process for ten seconds.
        self.bounded("places of parked calls", 0, self.park_crowds)
        self.bounded("texts without a key", 0, self.read_no_text)
        self.bounded("a chunk of many pieces", 100 * MB, self.repeat_a_chunk)
        self.bounded("answers that are not read", SHARE, self.read_nothing)
        self.bounded("inputs of claimed jobs", 2 * SHARE, self.take_all)
        until(lambda: self.server.rss() <= self.start + BACK, "the memory has gone back", HANG)

    def bounded(self, name, budgets, attack):
        forget_peak(self.server.process.pid)
        with contextlib.ExitStack() as crowd:
            attack(crowd)
        peak = memory(self.server.process.pid, "VmHWM") - self.start
        print(f"{name}: {peak // MB} MB above the beginning, budgets {budgets // MB} MB")
        assert peak <= budgets + BESIDE, name
        assert self.server.request("GET", "/healthz", key=None).status == 200

    def ask(self, crowd, path, key):
        """A connection with a request, of whose answer little is read."""
        plain = crowd.enter_context(socket.socket())
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(HANG)
        plain.connect(self.server.address)
        field = f"Authorization: {key}\r\n" if key else ""
        plain.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{field}\r\n".encode())
        return plain

    def status(self, crowd, path, key):
        """The status of the answer, of which nothing else is read."""
        return int(self.ask(crowd, path, key).recv(12).split()[1])

    def read_nothing(self, crowd):
        """core/http/API.md, "When the answer is 503": large outputs share the memory for answers, and an endpoint has a
        quarter. Another endpoint has its own."""
        jobs = {}
        for endpoint, size in (("echo", 19 * MB), ("trial", 2 * MB)):
            wanted = {"x": "y" * size} if endpoint == "echo" else {"output": "y" * size}
            answer = self.server.request("POST", f"/v2/{endpoint}/runsync", {"input": wanted})
            jobs[endpoint] = self.assert_job(answer)["id"]
        path = f"/v2/echo/status/{jobs['echo']}"
        assert {self.status(crowd, path, self.server.key) for _ in range(READERS)} == {200, 503}
        assert self.server.request("GET", f"/v2/trial/status/{jobs['trial']}").status == 200

    def take_all(self, crowd):
        """core/http/API.md, "/job-take": inputs are claimed as far as there is memory, and the others wait in the
        queue."""
        for _ in range(45):
            self.server.run("fed", {"x": "y" * (9 * MB)})
        batch = "batch_size=100&job_in_progress=0"
        assert self.status(crowd, f"/v2/fed/job-take-batch/w0?{batch}", self.worker_key) == 200
        for n in range(1, 4):
            self.ask(crowd, f"/v2/fed/job-take-batch/w{n}?{batch}", self.worker_key)
        assert self.server.health("fed")["jobs"]["inQueue"] > 0, "all were claimed: this proves nothing"

    def park_crowds(self, crowd):
        """core/http/API.md, "/job-take": among many workers a call waits for fewer jobs."""
        for n in range(NAMES):
            self.ask(crowd, f"/v2/crowded/job-take-batch/w{n}?batch_size=1000&job_in_progress=0", self.worker_key)
        until(lambda: self.server.health("crowded")["workers"]["idle"] == NAMES, "each worker is parked", HANG)

    def read_no_text(self, crowd):
        assert {self.status(crowd, "/openapi.json", None) for _ in range(KEYLESS)} == {200}

    def repeat_a_chunk(self, crowd):
        """core/decisions/jobs.md: a chunk with an old number is checked, too, and what is new of it is charged."""
        job = self.server.run("streamed", {})
        taken = self.server.request("GET", "/v2/streamed/job-take/w?job_in_progress=0", key=None,
                                    headers={"Authorization": self.worker_key})
        assert taken.json()["id"] == job
        chunk = {"output": "y" * (18 * MB), "metrics": {"m": "n" * MB}}
        for report in ({"output": 1}, chunk):
            answer = self.server.request("POST", f"/v2/streamed/job-stream/w/{job}?first=0", json.dumps(report).encode(),
                                         key=None, headers={"Authorization": self.worker_key})
            assert answer.status == 200
        ended = self.server.request("GET", f"/v2/streamed/status/{job}").json()
        assert ended["status"] == "FAILED"
        assert "metrics have 1048" in ended["error"]

"""The memory of the server: the allocator of jobqd, and the return of unused memory (core/process/heap_keeper.h)."""

import os

import pytest

from http_case import HttpTest
from jobq_server import until
from wire import MB

SIZE = 8 * MB  # of an input
BODIES = 12
SANITIZED = "asan" in os.environ.get("JOBQ_BUILD", "") or "tsan" in os.environ.get("JOBQ_BUILD", "")


def page_faults(pid):
    """Returns the number of pages that the system has given to a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[7])


@pytest.mark.skipif(SANITIZED, reason="a sanitizer has an allocator of its own")
class AllocatorTest(HttpTest):
    def test_a_large_body_uses_the_memory_of_the_previous_body(self, own_server):
        """core/decisions/http.md: freed pages are used again. Each body has 2,048 pages of 4 KB, and passes several
        buffers."""
        server = own_server(storage="sqlite")
        text = "x" * SIZE
        for _ in range(3):
            server.runsync("echo", {"text": text})
        before = page_faults(server.process.pid)
        for _ in range(BODIES):
            server.runsync("echo", {"text": text})
        faults = (page_faults(server.process.pid) - before) / BODIES
        print(f"{faults:.0f} page faults for a body of {SIZE >> 12} pages")
        assert faults < SIZE >> 12

    def test_unused_memory_is_returned(self, own_server):
        server = own_server(storage="memory")
        server.run("parked", {"n": 1})
        start = server.rss()
        for _ in range(BODIES):
            server.run("parked", {"text": "x" * SIZE})
        assert server.rss() > start + BODIES * SIZE
        assert server.request("POST", "/v2/parked/purge-queue").status == 200
        until(lambda: server.rss() < start + 40 * MB, "the memory of the bodies has gone back", 60)

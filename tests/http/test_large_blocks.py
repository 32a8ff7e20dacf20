"""Large bodies in memory: their blocks have huge pages (core/base/large_blocks.cpp)."""

import mmap
import os

import pytest

from http_case import HttpTest
from wire import MB

SIZE = 8 * MB  # of an input
HUGE = 2 * MB
SETTING = "/sys/kernel/mm/transparent_hugepage"
SANITIZED = "asan" in os.environ.get("JOBQ_BUILD", "") or "tsan" in os.environ.get("JOBQ_BUILD", "")


def huge_pages(pid):
    """Returns the bytes of a process on huge pages."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("AnonHugePages:"))


def gives_huge_pages():
    """Returns whether a program that asks the system for huge pages gets one."""
    with mmap.mmap(-1, 4 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        try:
            block.madvise(mmap.MADV_HUGEPAGE)
            block.write(bytes(4 * HUGE))
            return huge_pages(os.getpid()) >= HUGE
        except OSError:
            return False


class LargeBlocksTest(HttpTest):
    @pytest.mark.skipif(SANITIZED, reason="a sanitizer has allocation functions of its own")
    @pytest.mark.skipif(not gives_huge_pages(), reason="this system gives no huge pages: see " + SETTING)
    def test_large_bodies_have_huge_pages(self, own_server):
        """core/decisions/http.md: blocks of 2 MB and more ask for huge pages. The system gives small pages where no
        huge page is free, so the test wants one huge page."""
        server = own_server(storage="memory")
        server.run("parked", {"n": 1})
        before = huge_pages(server.process.pid)
        server.run("parked", {"text": "x" * SIZE})
        after = huge_pages(server.process.pid)
        print(f"huge pages: {before // HUGE} before, {after // HUGE} with a body of {SIZE // HUGE} pages")
        assert after >= before + HUGE

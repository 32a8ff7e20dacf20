"""Thousands of connections with endless heads: their memory is bounded and returned. A client address has its limit."""

import contextlib
import os
import resource
import socket

import pytest

from http_case import HttpTest
from jobq_server import until
from wire import GET, MB, connect

MOST = 12_000  # connections, fewer where the system allows fewer descriptors
LEAST = 3_000
HEAD = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\nX-Large: " + b"x" * (195 << 10)
SANITIZED = "asan" in os.environ.get("JOBQ_BUILD", "") or "tsan" in os.environ.get("JOBQ_BUILD", "")


class HeadMemoryTest(HttpTest):
    @pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory")
    def test_endless_heads(self, own_server):
        """core/decisions/http.md: bytes of heads beyond 8 KB share 64 MB; the memory of a departed crowd is
        returned."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        size = min(MOST, hard - 500)
        if size < LEAST:
            pytest.skip(f"this machine allows {hard} descriptors, the crowd needs {LEAST + 500}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        server = own_server(storage="memory", server__connectionsPerAddress=size + 10)
        for n in range(20):
            server.run("parked", {"n": n})
        start, most = server.rss(), 0
        with contextlib.ExitStack() as crowd:
            for n in range(size):
                plain = crowd.enter_context(connect(server))
                with contextlib.suppress(ConnectionError):  # a refused connection may be gone already
                    plain.sendall(HEAD)
                if n % 50 == 0:
                    most = max(most, server.rss())
            most = max(most, server.rss())
            assert server.request("GET", "/healthz").status == 200, "a small head needs none of the memory"
        print(f"{size} heads of 195 KB: {start // MB} MB before, {most // MB} MB at most, ", end="")
        assert most < 150 * MB
        assert most > start + 32 * MB, "the heads held nothing: this proves nothing"
        until(lambda: server.rss() < start + 20 * MB, "their memory has gone back", 60)
        print(f"{server.rss() // MB} MB when they have gone")

    def test_a_limit_for_each_address(self, own_server):
        """etc/README.md: server.connectionsPerAddress: a connection beyond the limit is closed, and a closed connection
        makes room."""
        server = own_server(server__connectionsPerAddress=5)
        with contextlib.ExitStack() as stack:
            crowd = []

            def five_are_in():
                plain = stack.enter_context(connect(server))
                if self.is_served(plain):
                    crowd.append(plain)
                return len(crowd) == 5

            until(five_are_in, "five connections are in")
            for _ in range(3):
                assert not self.newcomer_is_served(server)
            crowd.pop().close()
            until(lambda: self.newcomer_is_served(server), "there is room for one again")
        assert server.log().count("server.connectionsPerAddress") == 1, "one line in a minute"

    def newcomer_is_served(self, server):
        with connect(server) as plain:
            return self.is_served(plain)

    @staticmethod
    def is_served(plain):
        try:
            plain.sendall(GET)
            return plain.recv(1000).startswith(b"HTTP/1.1 200")
        except (ConnectionError, socket.timeout):
            return False

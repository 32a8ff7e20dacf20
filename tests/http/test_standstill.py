"""A storage that stands still: callers of /readyz wait without a thread, and /healthz needs none."""

import contextlib
import os

import pytest

from http_case import HttpTest
from jobq_server import BUILD, PLUGINS, until
from wire import answer_so_far, connect, post

PAUSED = os.path.join(BUILD, "tests", "paused")
THREADS = 4  # the least of server.threads
PLACES = 40  # of server.waiting
RUN = b'{"input":{}}'
READY = b"GET /readyz HTTP/1.1\r\nHost: jobq\r\n\r\n"


class Standstill:
    """Checks and inserts of the storage `paused` wait from the begin to the end of the object
    (tests/plugin_host/fixture_paused.cpp)."""

    def __init__(self, server):
        self.pipe, self.file = (os.path.join(server.data, name) for name in ("pause", "held"))
        os.mkfifo(self.pipe)

    def held(self, call):
        """Returns how many calls of that name have waited, or wait now."""
        with contextlib.suppress(FileNotFoundError), open(self.file, encoding="ascii") as file:
            return file.read().splitlines().count(call)
        return 0

    def end(self):
        with contextlib.suppress(FileNotFoundError):  # it has ended
            writer = os.open(self.pipe, os.O_RDWR)
            os.remove(self.pipe)
            os.close(writer)


class StandstillTest(HttpTest):
    @pytest.fixture
    def server(self, own_server):
        return own_server(storage="paused", plugins__path=f"{PLUGINS}:{PAUSED}", server__threads=THREADS,
                          server__waiting=PLACES)

    def call(self, request):
        plain = self.at_end.enter_context(connect(self.server))
        plain.sendall(request)
        return plain

    def begin_check(self, still):
        """Calls /readyz until the check of a call waits, because a good answer is good for a second. Returns the call."""
        plain = self.call(b"")

        def checks():
            plain.sendall(READY)
            until(lambda: still.held("check") or answer_so_far(plain), "a check, or an answer without one")
            return still.held("check")

        until(checks, "the storage is asked whether it takes writes")
        return plain

    def test_readyz_and_healthz(self):
        still = Standstill(self.server)
        self.at_end.callback(still.end)
        checking = self.begin_check(still)
        callers = [self.call(READY) for _ in range(PLACES + 1)]
        answers = until(lambda: {plain: answer for plain in callers if (answer := answer_so_far(plain))},
                        "one caller has no place")
        [(refused, answer)] = answers.items()
        assert b" 503 " in answer and b"the storage has not answered yet" in answer
        waiting = [checking, *(plain for plain in callers if plain is not refused)]
        assert self.server.request("GET", "/", key=None).status == 200, "the threads are free but for the one that checks"

        runs = [self.call(post(self.server, "/v2/parked/run", len(RUN), body=RUN)) for _ in range(THREADS - 1)]
        until(lambda: still.held("insert") == len(runs), "each thread waits for the storage")
        for _ in range(PLACES):
            assert self.server.request("GET", "/healthz", key=None).status == 200
        assert not any(answer_so_far(plain) for plain in [*waiting, *runs])

        still.end()
        for plain in [*waiting, *runs]:
            assert plain.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert still.held("check") == 1, "one question served all callers"

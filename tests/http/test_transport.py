"""`server.transport`: the same API over the own transport and over Poco's HTTP server, with the bounds of the latter."""

import contextlib
import signal

import pytest

from http_case import HttpTest
from jobq_api import REPLY_DEADLINE, until
from jobq_server import SHORT_DRAIN, jobqd
from wire import GET, all_but_one_wait, ends, post


def exchange(server, data):
    """Sends bytes, and returns all bytes until the server ends the connection."""
    with server.plug() as plain:
        plain.settimeout(REPLY_DEADLINE)
        plain.sendall(data)
        got = b""
        while part := plain.recv(65536):
            got += part
        return got


class UnknownTransportTest:
    def test_an_unknown_transport_ends_the_start(self, tmp_path):
        """core/decisions/http.md: one sentence names the transports."""
        settings = tmp_path / "jobq.properties"
        settings.write_text("server.transport = other\n")
        ended = jobqd("--check", "--config", str(settings))
        assert ended.returncode != 0
        assert "server.transport = other is not one of reactor, poco" in ended.stdout + ended.stderr


class PocoTransportTest(HttpTest):
    @pytest.fixture
    def server(self, class_server_of_poco):
        return class_server_of_poco

    @pytest.fixture(scope="class")
    def class_server_of_poco(self, class_server):
        return class_server(server__transport="poco", server__threads="8", **SHORT_DRAIN)

    def head(self, path, *fields, method="POST"):
        lines = [f"{method} {path} HTTP/1.1", "Host: jobq", f"Authorization: Bearer {self.server.key}", *fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def test_a_connection_serves_several_calls(self):
        connection = self.server.connect()
        for _ in range(3):
            self.assert_job(self.server.request("POST", "/v2/echo/runsync", {"input": {}}, connection=connection))
        connection.close()

    def test_a_large_body_is_refused_before_its_first_byte(self):
        """The client waits for `100 Continue`, and reads 413 instead."""
        got = exchange(self.server, self.head("/v2/echo/run", "Content-Length: 30000000", "Expect: 100-continue"))
        assert got.startswith(b"HTTP/1.1 413 "), got[:300]
        assert b"100 Continue" not in got

    def test_a_client_that_waits_for_the_permission_sends_its_body(self):
        with self.server.plug() as plain:
            plain.settimeout(REPLY_DEADLINE)
            plain.sendall(self.head("/v2/echo/run", "Content-Length: 12", "Expect: 100-continue", "Connection: close"))
            assert plain.recv(4096).startswith(b"HTTP/1.1 100 Continue\r\n")
            plain.sendall(b'{"input":{}}')
            got = b""
            while part := plain.recv(65536):
                got += part
        assert b" 200 OK\r\n" in got and b"IN_QUEUE" in got, got[:300]

    def test_a_chunked_body_over_the_limit_is_refused(self):
        answer = self.server.request("POST", "/v2/parked/run", b'{"input":{"x":"' + b"x" * (12 << 20), chunked=True)
        self.assert_refused(answer, 413)

    def test_a_chunked_body_is_read_and_ends_the_connection(self):
        """Poco may take bytes after the chunks for a request."""
        got = exchange(self.server, self.head("/v2/echo/run", "Transfer-Encoding: chunked") +
                       b'c\r\n{"input":{}}\r\n0\r\n\r\n' + self.head("/healthz", method="GET"))
        assert got.count(b"HTTP/1.1 ") == 1, got[:600]
        assert got.startswith(b"HTTP/1.1 200 ") and b"Connection: close" in got.replace(b"Close", b"close"), got[:300]

    @pytest.mark.parametrize("fields", [
        ("Content-Length: 2", "Content-Length: 3"), ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip, chunked",)], ids=["two lengths", "length and chunks", "coding"])
    def test_a_head_with_two_meanings_is_refused(self, fields):
        got = exchange(self.server, self.head("/v2/echo/run", *fields) + b"{}")
        assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), got[:300]
        assert got.count(b"HTTP/1.1 ") == 1

    def test_an_unread_body_is_not_the_next_request(self):
        body = self.head("/healthz", method="GET")
        got = exchange(self.server, b"POST /v2/echo/run HTTP/1.1\r\nHost: jobq\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert got.startswith(b"HTTP/1.1 401 ") and got.count(b"HTTP/1.1 ") == 1, got

    def test_head_has_the_length_of_the_body(self):
        got = exchange(self.server, self.head("/openapi.json", "Connection: close", method="HEAD"))
        assert got.startswith(b"HTTP/1.1 200 ") and b"Content-Length: " in got
        assert got.endswith(b"\r\n\r\n")

    def test_more_waiting_callers_than_places_read_the_present_state(self):
        """A quarter of the threads may wait, so that workers can always bring results."""
        job = self.server.run("parked", {})
        callers = []
        try:
            for _ in range(2):
                plain = self.server.plug()
                callers.append(plain)
                plain.sendall(self.head(f"/v2/parked/status/{job}?wait=60000", method="GET"))
            until(lambda: self.server.request("GET", f"/v2/parked/status/{job}?wait=60000").status == 200,
                  "a further caller is answered at once")
        finally:
            for plain in callers:
                plain.close()

    def test_a_caller_without_a_thread_reads_503(self):
        """The threads beyond `server.threads` answer 503, and the probe of a supervisor still works."""
        idle = [self.server.plug() for _ in range(8)]
        try:
            def refused():
                answer = self.server.request("GET", "/v2/echo/health")
                return answer if answer.status == 503 else None

            answer = until(refused, "all threads have a connection")
            assert answer.headers["Retry-After"] == "1"
            self.assert_refused(answer, 503, "server.threads")
            assert self.server.request("GET", "/healthz", key=None).status == 200
        finally:
            for plain in idle:
                plain.close()
        until(lambda: self.server.request("GET", "/v2/echo/health").status == 200, "the threads are free again")


class BurstTest:
    def test_a_burst_within_the_threads_is_answered(self, own_server):
        """Connections wait for threads that start; the bound of the queue counts from the last thread on."""
        server = own_server(server__transport="poco", server__threads="64", **SHORT_DRAIN)
        server.process.send_signal(signal.SIGSTOP)
        burst = [server.plug() for _ in range(64)]
        for plain in burst:
            plain.sendall(GET)
        server.process.send_signal(signal.SIGCONT)
        for plain in burst:
            with plain:
                assert plain.recv(12) == b"HTTP/1.1 200"


class EndOfPocoTransportTest:
    def test_a_stop_answers_waiting_callers_and_ends_idle_connections(self, own_server):
        server = own_server(server__transport="poco", server__threads="16", server__waiting="4", **SHORT_DRAIN)
        request = post(server, "/v2/parked/runsync?wait=300000", 12, body=b'{"input":{}}')
        idle = server.plug()
        callers = [server.plug() for _ in range(5)]
        for plain in callers:
            plain.sendall(request)
        waiting = all_but_one_wait(callers)
        server.stop()
        for plain in waiting:
            assert b"IN_QUEUE" in ends(plain)
            plain.close()
        with idle, contextlib.suppress(ConnectionError):
            assert idle.recv(1) == b""

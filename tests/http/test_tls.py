"""TLS: the same behaviour behind a handshake."""

import contextlib
import os
import signal
import ssl
import subprocess
import threading

import pytest

from early_refusal import run_unbroken
from http_case import HttpTest
from jobq_server import Server, until
from pace import HANG
from wire import GET, MB, all_but_one_wait, connect, ends, is_held, post

HALF_HELLO = b"\x16\x03\x01\x02\x00\x01"  # the first bytes of a handshake of 512 bytes


class TlsTest(HttpTest):
    """core/http/API.md, "Connections": TLS with the same behaviour."""

    @pytest.fixture(autouse=True)
    def tls_server(self, question):
        server = self.at_end.enter_context(Server(start=False, server__drain="2s", server__waiting="4"))
        files = self.files = [os.path.join(server.folder, name) for name in ("certificate.pem", "key.pem")]
        self.make_certificate()
        server.settings["server.tls.certificate"], server.settings["server.tls.key"] = files
        server.write_file()
        server.trust(files[0])
        self.server = server.start()

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", self.files[0],
                        "-keyout", self.files[1]], check=True, capture_output=True, timeout=HANG)

    def certificate(self):
        """Returns the certificate given to a new connection, as PEM."""
        return ssl.get_server_certificate(self.server.address)

    def test_sighup_reads_the_certificate_again(self):
        """core/decisions/operations.md: SIGHUP reads the certificate for new connections; a file without a certificate
        is refused with a line of the log."""
        old = self.certificate()
        with self.server.plug() as kept:
            self.make_certificate()
            assert self.certificate() == old, "nobody has said so yet"
            self.server.process.send_signal(signal.SIGHUP)
            until(lambda: self.certificate() != old, "the new certificate is there")
            kept.sendall(GET)
            assert kept.recv(12) == b"HTTP/1.1 200", "a connection that was there goes on"
        fresh = self.certificate()
        with open(self.files[0], "w", encoding="ascii") as file:
            file.write("no certificate")
        self.server.process.send_signal(signal.SIGHUP)
        until(lambda: "the old certificate stays in use" in self.server.log(), "it is refused")
        assert self.certificate() == fresh
        self.server.stop()

    def test_requests(self):
        assert self.server.url.startswith("https://")
        connection = self.server.connect()
        for n in range(20):
            answer = self.server.request("POST", "/v2/echo/runsync", {"input": {"n": n}}, connection=connection)
            assert answer.json()["output"] == {"n": n}
        until(lambda: self.threads() < 8, "the connection is parked")
        big = {"input": {"a": "x" * (9 * MB)}}
        assert self.server.request("POST", "/v2/echo/runsync", big, connection=connection).status == 200
        assert self.server.request("POST", "/v2/echo/run", b"x" * (60 * MB)).status == 413
        connection.close()

    def test_too_large_from_curl(self):
        """core/http/API.md, "Statuses": 413 as a status, over TLS too."""
        for extra in ("Expect: 100-continue", "Expect:", "Transfer-Encoding: chunked"):
            done = run_unbroken(["curl", "-sSk", "-o", os.devnull, "-w", "%{http_code}", "-H", extra,
                                 "-H", f"Authorization: {self.server.key}", "--data-binary", "@-",
                                 f"{self.server.url}/v2/echo/run"], input=bytes(60 * MB))
            assert (done.returncode, done.stdout) == (0, b"413"), done.stderr

    def threads(self):
        """The number of HTTP threads."""
        names = []
        for task in os.listdir(f"/proc/{self.server.process.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                with open(f"/proc/{self.server.process.pid}/task/{task}/comm", encoding="ascii") as name:
                    names.append(name.read().strip())
        return names.count("http")

    def test_pipelining(self):
        with self.server.plug() as secure:
            secure.sendall(GET * 200 + GET[:10])
            secure.sendall(GET[10:-2] + b"Connection: close\r\n\r\n")
            assert ends(secure).count(b"200 OK") == 201

    def test_pipelined_requests_that_fill_a_buffer(self):
        """Poco reads 4096 bytes, which is 64 of the requests; OpenSSL has read the others already."""
        padding = b"X-Padding: " + b"x" * (64 - len(GET) - 13) + b"\r\n\r\n"
        request = GET[:-2] + padding
        assert len(request) == 64
        with self.server.plug() as secure:
            secure.sendall(request * 200 + GET[:-2] + b"Connection: close\r\n\r\n")
            assert ends(secure).count(b"200 OK") == 201

    def test_clients_without_tls_harm_no_other_clients(self):
        half = connect(self.server)
        half.sendall(HALF_HELLO)
        with connect(self.server) as plain:
            plain.sendall(GET)
            assert b"200" not in ends(plain)
        assert self.server.request("GET", "/healthz").status == 200
        half.close()

    def test_leaving_clients_make_room_and_shutdown_is_bounded(self):
        body = b'{"input":{}}'
        request = post(self.server, "/v2/parked/runsync?wait=300000", len(body), body=body)

        def call():
            secure = self.server.plug()
            secure.sendall(request)
            return secure

        waiting = all_but_one_wait([call() for _ in range(5)])
        leaver = waiting.pop()
        ends_of_leaver = {leaver.getsockname()[1], leaver.getpeername()[1]}
        leaver.close()
        until(lambda: not is_held(ends_of_leaver), "the server has closed the connection of the one that left")
        waiting = all_but_one_wait([*waiting, call(), call()])
        self.server.stop()  # fails after 90 s: the shutdown does not wait for the five minutes of the callers
        for secure in waiting:
            assert b"IN_QUEUE" in ends(secure)
            secure.close()

    def test_a_large_answer_waits_for_its_reader(self):
        """core/decisions/http.md: a client that reads slowly holds no thread; the rest of its answer stays whole."""
        size = 12 << 20  # more than the buffers between both hold
        text = b'{"input":{"a":"%s"}}' % (b"x" * size)
        job = self.server.request("POST", "/v2/echo/runsync", text).json()["id"]
        with self.server.plug() as secure:
            secure.sendall(f"GET /v2/echo/status/{job} HTTP/1.1\r\nHost: jobq\r\nConnection: close\r\n"
                           f"Authorization: Bearer {self.server.key}\r\n\r\n".encode())
            for _ in range(20):  # the server has sent what the buffers hold, and answers others
                assert self.server.request("GET", "/healthz").status == 200
            answer = ends(secure)
        assert answer.count(b"x" * 1024) == size // 1024

    def test_silent_clients_delay_no_other_client(self):
        with contextlib.ExitStack() as silent:
            self.begin_handshakes(silent)
            self.finish_handshakes()

    @pytest.mark.reactor("names of threads, which show the processor time of the acceptor")
    def test_handshakes_take_no_time_of_the_acceptor(self):
        """core/decisions/http.md: handshakes run on the threads that serve; a silent client delays no other."""
        with contextlib.ExitStack() as silent:
            self.begin_handshakes(silent)
            self.finish_handshakes()
            used = self.processor_time()
        print(f"processor time of 200 handshakes: {used['reactor'] / 1e6:.0f} ms of the acceptor, "
              f"{used['http'] / 1e6:.0f} ms of the threads that serve")
        assert used["reactor"] < used["http"] / 2

    def begin_handshakes(self, stack):
        """Connects 50 clients that send nothing, and 50 that send the begin of a handshake."""
        for first in (b"", HALF_HELLO):
            for _ in range(50):
                stack.enter_context(connect(self.server)).sendall(first)

    def finish_handshakes(self):
        for _ in range(200):
            with self.server.plug() as secure:
                secure.sendall(GET)
                assert secure.recv(12) == b"HTTP/1.1 200"

    def test_a_handshake_does_not_delay_the_stop(self):
        """The client sends a byte of its handshake now and then: only the end of the connection ends the wait."""
        over = threading.Event()

        def drip(plain):
            with contextlib.suppress(OSError):  # the server has ended the connection
                plain.sendall(HALF_HELLO)
                while not over.wait(5):
                    plain.sendall(b"\x00")

        with connect(self.server) as plain:
            dripping = threading.Thread(target=drip, args=(plain,))
            dripping.start()
            try:
                assert self.server.request("GET", "/healthz").status == 200, "the earlier connection has a thread"
                self.server.stop()  # fails after 90 s
            finally:
                over.set()
                dripping.join(HANG)

    def processor_time(self):
        """Returns the nanoseconds of the threads of each name. An ended thread is not counted: threads stay idle a
        minute before their end. A thread that ends between the listing and the reading is left out, too: a thread that an
        earlier test of this server left idle may reach its minute at that moment."""
        folder, used = f"/proc/{self.server.process.pid}/task", {"reactor": 0, "http": 0}
        for thread in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"{folder}/{thread}/comm", encoding="ascii") as file:
                    name = file.read().strip()
                with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
                    used[name] = used.get(name, 0) + int(file.read().split()[0])
        return used

    def test_ciphers(self):
        """Those of TLS 1.2 whose keys a later theft of the server's key does not reveal, without CBC."""
        for ciphers, is_taken in (("ECDHE-RSA-AES128-GCM-SHA256", True), ("ECDHE-RSA-CHACHA20-POLY1305", True),
                                  ("AES256-GCM-SHA384", False), ("AES128-SHA", False),
                                  ("ECDHE-RSA-AES256-SHA384", False), ("ECDHE-RSA-AES128-SHA", False)):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers + ":@SECLEVEL=0")
            with connect(self.server) as plain:
                try:
                    context.wrap_socket(plain).close()
                    agreed = True
                except ssl.SSLError:
                    agreed = False
            assert agreed == is_taken, ciphers

    def test_an_invalid_certificate(self):
        with open(self.server.settings["server.tls.certificate"], "w", encoding="ascii") as file:
            file.write("no certificate")
        self.server.stop()
        assert not self.server.start_unless_it_dies()
        assert "server.tls.certificate" in self.server.log()

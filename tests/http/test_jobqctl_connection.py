"""jobqctl and the connection to a server: a server that does not answer, TLS, and a server of another program."""

import codecs
import contextlib
import http.server
import os
import socket
import ssl
import subprocess
import threading

from jobq_server import join
from jobqctl_case import REFUSED, UNREACHABLE, USAGE, JobqctlTest


class UnreachableTest(JobqctlTest):
    def test_no_server_there(self):
        """Exit code 3 when the server cannot be reached, by http, https and by name."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            for scheme in ("http", "https"):
                url = f"{scheme}://127.0.0.1:{port}"
                assert url in self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=url)
        self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL="http://host.invalid:8000")

    def test_https_where_http_is_spoken(self):
        """Exit code 3 when there is no TLS on the other side."""
        with socket.create_server(("127.0.0.1", 0)) as plain:
            def answer():
                caller, _ = plain.accept()
                with caller, contextlib.suppress(ConnectionError):
                    caller.recv(1)
                    caller.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    caller.shutdown(socket.SHUT_WR)
                    while caller.recv(65536):
                        pass  # a close with unread bytes would be a reset

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=f"https://127.0.0.1:{plain.getsockname()[1]}")
            join("the server without TLS ends", thread)

    def test_another_server(self, subtests):
        """Exit code 3 when what answers is not a jobq server, or stops in the middle of its answer."""
        answers = {"a page": (200, b"<html></html>", None), "other JSON": (200, b'"x"', None),
                   "half an answer": (200, b"[]", 100)}
        for name, answer in answers.items():
            with subtests.test(name), _OtherServer(*answer) as url:
                for arguments in (["key", "list"], ["health", "echo"], ["status", "echo", "x"],
                                  ["run", "echo", "{}", "--sync"]):
                    self.sentence(*arguments, code=UNREACHABLE, JOBQ_URL=url)
        for status in (302, 404, 500):
            with subtests.test(status=status), _OtherServer(status, b"<html>") as url:
                assert str(status) in self.sentence("key", "list", code=REFUSED, JOBQ_URL=url)


class TlsTest(JobqctlTest):
    @staticmethod
    def certificate(folder, host):
        """A self-signed certificate and its key in one file."""
        path = os.path.join(folder, host)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path, "-out",
                        path + ".pem", "-days", "2", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"],
                       check=True, capture_output=True, timeout=60)
        with open(path, "ab") as both, open(path + ".pem", "rb") as certificate:
            both.write(certificate.read())
        return path

    def test_certificates_are_checked(self, tmp_path):
        """An https server needs a certificate that the system trusts, for the host that was asked for."""
        own, foreign = (self.certificate(tmp_path, host) for host in ("localhost", "elsewhere.example"))
        with _OtherServer(200, b"[]", tls=own) as url:
            url = url.replace("127.0.0.1", "localhost")
            assert "ID" in self.table("key", "list", JOBQ_URL=url, SSL_CERT_FILE=own)
            assert "certificate" in self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=url)
            assert "ID" in self.table("key", "list", "--ca", own + ".pem", JOBQ_URL=url)
            assert "ID" in self.table("key", "list", JOBQ_URL=url, JOBQ_CA=own + ".pem")
            marked = own + ".marked"
            with open(marked, "wb") as file, open(own + ".pem", "rb") as plain:
                file.write(codecs.BOM_UTF8 + plain.read())
            assert "ID" in self.table("key", "list", "--ca", marked, JOBQ_URL=url), "a byte order mark is no part of it"
            self.sentence("key", "list", "--ca", foreign + ".pem", code=UNREACHABLE, JOBQ_URL=url, SSL_CERT_FILE=own)
            assert "--ca" in self.sentence("key", "list", "--ca", "/nowhere", code=USAGE, JOBQ_URL=url)
        with _OtherServer(200, b"[]", tls=foreign) as url:
            url = url.replace("127.0.0.1", "localhost")
            self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=url, SSL_CERT_FILE=foreign)


class _OtherServer:
    """Answers every request with the same bytes."""

    def __init__(self, status, body, length=None, tls=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                self.send_header("Content-Length", str(length or len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *arguments):
                pass

        self.scheme = "https" if tls else "http"
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a caller that rejects the certificate is no fault of this server
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_error):
        self.server.shutdown()
        join("the other server ends", self.thread)
        self.server.server_close()

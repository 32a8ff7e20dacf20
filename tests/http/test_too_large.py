"""413 before the body was read: every client has to see it as a status, not as a broken connection."""

import http.client
import os
import shutil
import subprocess

import pytest
import requests

from http_case import HttpTest
from jobq_server import ROOT
from pace import HANG

MEGABYTES = 30  # more than any buffer on the way, and to be sent within the two seconds that the server reads on
TIMES = 10
REFUSED = [413] * TIMES
CLIENTS = os.path.join(ROOT, "tests", "clients")
BODY = b"x" * (MEGABYTES << 20)


def parts():
    return (BODY[at:at + 65536] for at in range(0, len(BODY), 65536))


@pytest.fixture(scope="module")
def body_file(tmp_path_factory):
    """The body as a file, for clients that are programs."""
    file = tmp_path_factory.mktemp("too_large") / "body"
    file.write_bytes(BODY)
    yield file
    file.unlink()


class TooLargeTest(HttpTest):
    """core/http/API.md, "Bounds of heads and bodies": 413 before the body is read to its end, so that every client sees
    the status.

    Clients that are told to send an expectation send the body without waiting for the answer, but for curl.
    """

    @property
    def url(self):
        return self.server.url + "/v2/echo/run"

    @pytest.mark.parametrize("extra", [[], ["-H", "Expect:"], ["-H", "Expect: 100-continue"]])
    @pytest.mark.parametrize("framing", [[], ["-H", "Transfer-Encoding: chunked"]])
    def test_curl(self, body_file, framing, extra):
        def send():
            done = subprocess.run(["curl", "-sS", "-m", "30", "-o", os.devnull, "-w", "%{http_code}", "-H",
                                   f"Authorization: {self.server.key}", *extra, *framing, "--data-binary",
                                   f"@{body_file}", self.url], capture_output=True, text=True, check=False,
                                  timeout=HANG)
            return int(done.stdout) if done.returncode == 0 else done.stderr

        assert [send() for _ in range(TIMES)] == REFUSED

    @pytest.mark.parametrize("fields", [{}, {"Expect": "100-continue"}])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_python(self, chunked, fields):
        def send():
            connection = http.client.HTTPConnection(*self.server.address, timeout=30)
            try:
                connection.request("POST", "/v2/echo/run", parts() if chunked else BODY,
                                   {"Authorization": self.server.key, **fields}, encode_chunked=chunked)
                return connection.getresponse().status
            finally:
                connection.close()

        assert [send() for _ in range(TIMES)] == REFUSED

    @pytest.mark.parametrize("fields", [{}, {"Expect": "100-continue"}])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_python_requests(self, chunked, fields):
        def send():
            headers = {"Authorization": self.server.key, **fields}
            return requests.post(self.url, data=parts() if chunked else BODY, headers=headers, timeout=30).status_code

        assert [send() for _ in range(TIMES)] == REFUSED

    @pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
    def test_node(self):
        self.run_client("node", os.path.join(CLIENTS, "too_large.js"))

    @pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
    def test_go(self, tmp_path):
        program = tmp_path / "too_large"
        subprocess.run(["go", "build", "-o", program, os.path.join(CLIENTS, "too_large.go")], check=True, timeout=200,
                       env={**os.environ, "GO111MODULE": "off"})
        self.run_client(program)

    def run_client(self, *command):
        """Runs a client that prints `name: status status ...` lines."""
        done = subprocess.run([*command, self.url, self.server.key, str(MEGABYTES), str(TIMES)], capture_output=True,
                              text=True, check=False, timeout=200, env={**os.environ, "GO111MODULE": "off"})
        assert done.returncode == 0, done.stderr
        seen = dict(line.split(": ") for line in done.stdout.splitlines())
        assert seen
        assert seen == {name: " ".join(map(str, REFUSED)) for name in seen}

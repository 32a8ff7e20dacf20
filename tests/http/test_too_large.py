"""413 before the body was read: every client has to see it as a status, not as a broken connection."""

import http.client
import os
import shutil
import subprocess
import time

import pytest
import requests

from http_case import HttpTest
from jobq_server import ROOT
from pace import HANG

MEGABYTES = 30  # more than any buffer on the way
READS_ON = 2.0  # seconds that the server reads on behind its answer (core/http/API.md, "Bounds of heads and bodies")
TIMES = 10
CLIENTS = os.path.join(ROOT, "tests", "clients")
BODY = b"x" * (MEGABYTES << 20)


def parts():
    return (BODY[at:at + 65536] for at in range(0, len(BODY), 65536))


def assert_refused(calls):
    """Expects 413 from each call; a call is its status or fault, and its seconds. A client that a busy machine kept for
    longer than the server reads on may find a broken connection: such a call is printed, and proves nothing."""
    judged = [status for status, seconds in calls if seconds < READS_ON]
    if len(judged) < len(calls):
        print(f"{len(calls) - len(judged)} of {len(calls)} calls took longer than {READS_ON:g} s: {calls}")
    if not judged:
        pytest.skip(f"each call took longer than {READS_ON:g} s, for which the server reads on: the machine is too slow")
    assert set(judged) == {413}, calls


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
            start = time.monotonic()
            done = subprocess.run(["curl", "-sS", "-m", "30", "-o", os.devnull, "-w", "%{http_code}", "-H",
                                   f"Authorization: {self.server.key}", *extra, *framing, "--data-binary",
                                   f"@{body_file}", self.url], capture_output=True, text=True, check=False,
                                  timeout=HANG)
            return int(done.stdout) if done.returncode == 0 else done.stderr, time.monotonic() - start

        assert_refused([send() for _ in range(TIMES)])

    @pytest.mark.parametrize("fields", [{}, {"Expect": "100-continue"}])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_python(self, chunked, fields):
        def send():
            connection = http.client.HTTPConnection(*self.server.address, timeout=HANG)
            start = time.monotonic()
            try:
                connection.request("POST", "/v2/echo/run", parts() if chunked else BODY,
                                   {"Authorization": self.server.key, **fields}, encode_chunked=chunked)
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException) as error:
                status = repr(error)
            finally:
                connection.close()
            return status, time.monotonic() - start

        assert_refused([send() for _ in range(TIMES)])

    @pytest.mark.parametrize("fields", [{}, {"Expect": "100-continue"}])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_python_requests(self, chunked, fields):
        def send():
            headers = {"Authorization": self.server.key, **fields}
            start = time.monotonic()
            try:
                body = parts() if chunked else BODY
                status = requests.post(self.url, data=body, headers=headers, timeout=HANG).status_code
            except requests.RequestException as error:
                status = repr(error)
            return status, time.monotonic() - start

        assert_refused([send() for _ in range(TIMES)])

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
        """Runs a client that prints a line for each kind of call: its name, and status@seconds of each call."""
        done = subprocess.run([*command, self.url, self.server.key, str(MEGABYTES), str(TIMES)], capture_output=True,
                              text=True, check=False, timeout=200, env={**os.environ, "GO111MODULE": "off"})
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines
        for line in lines:
            name, _, calls = line.partition(": ")
            print(name)
            seen = [call.rpartition("@") for call in calls.split(" ")]
            assert len(seen) == TIMES, line
            assert_refused([(int(status) if status.isdigit() else status, float(seconds))
                            for status, _, seconds in seen])

"""413 before the body was read: every client has to see it as a status, not as a broken connection."""

import http.client
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest
import requests

import early_refusal
from early_refusal import READS_ON, run_unbroken
from http_case import HttpTest
from jobq_api import Api, join
from jobq_server import ROOT
from pace import HANG

MEGABYTES = 30  # more than any buffer on the way
TIMES = 10
ROUNDS = 3  # of TIMES calls, until a call of each kind has read a status
CLIENTS = os.path.join(ROOT, "tests", "clients")
BODY = b"x" * (MEGABYTES << 20)


def parts():
    return (BODY[at:at + 65536] for at in range(0, len(BODY), 65536))


def is_wrong(outcome, seconds):
    """Returns whether a call contradicts the rule. `outcome` is its status or its fault. Each status is judged, however
    long the call took. A broken connection is right only after the server has read on: the call has then taken at least
    READS_ON, and proves nothing."""
    return outcome != 413 if isinstance(outcome, int) else seconds < READS_ON


def assert_refused(send):
    """Expects that no call is wrong and that a call of each kind reads 413. `send` makes TIMES calls of each kind and
    returns for each kind a list of (outcome, seconds). The kinds whose calls all proved nothing are the reason for
    another round."""
    refused = {}
    for _ in range(ROUNDS):
        for kind, calls in send().items():
            assert len(calls) == TIMES, (kind, calls)
            assert not [call for call in calls if is_wrong(*call)], (kind, calls)
            statuses = sum(outcome == 413 for outcome, _ in calls)
            refused[kind] = refused.get(kind, 0) + statuses
            if statuses < TIMES:
                print(f"{kind}: {TIMES - statuses} of {TIMES} connections broke after {READS_ON:g} s: {calls}")
        if all(refused.values()):
            return
    raise AssertionError(f"waited {ROUNDS} rounds for a status of each kind of call: {refused}")


def repeated(send):
    """Returns what `assert_refused` asks for, of one kind of call. `send` makes a call and returns its outcome."""
    def timed():
        start = time.monotonic()
        return send(), time.monotonic() - start

    return lambda: {"calls": [timed() for _ in range(TIMES)]}


def parse_call(text):
    """Returns (outcome, seconds) of the text status@seconds."""
    outcome, _, seconds = text.rpartition("@")
    return int(outcome) if outcome.isdigit() else outcome, float(seconds)


def test_wrong_calls():
    calls = [(413, 0.1), (413, 60.0), ("reset", READS_ON), (200, 0.1), (200, 60.0), ("reset", 0.1)]
    assert [is_wrong(*call) for call in calls] == [False, False, False, True, True, True]


def test_a_round_without_proof_is_repeated():
    rounds = [("reset", READS_ON), (413, 0.1)]
    assert_refused(lambda: {"calls": [rounds.pop(0)] * TIMES})
    assert rounds == []
    with pytest.raises(AssertionError, match=f"waited {ROUNDS} rounds"):
        assert_refused(lambda: {"calls": [("reset", READS_ON)] * TIMES})


def test_an_early_break_is_raised_and_the_answer_before_a_late_break_is_read(monkeypatch):
    def refuse_and_break():
        with listener.accept()[0] as plain:
            plain.recv(1)
            plain.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(HANG)
        api = Api(f"http://127.0.0.1:{listener.getsockname()[1]}", "key")
        for reads_on in (0, 10 * HANG):
            monkeypatch.setattr(early_refusal, "READS_ON", reads_on)
            breaker = threading.Thread(target=refuse_and_break)
            breaker.start()
            if reads_on:
                with pytest.raises(ConnectionError):
                    api.request("POST", "/", BODY)
            else:
                assert api.request("POST", "/", BODY).status == 413
            join("the end of the connection", breaker)


def test_a_program_with_an_early_broken_connection_is_not_run_again(monkeypatch):
    monkeypatch.setattr(early_refusal, "READS_ON", 10 * HANG)
    assert run_unbroken(["sh", "-c", "exit 55"]).returncode == 55
    monkeypatch.setattr(early_refusal, "READS_ON", 0)
    assert run_unbroken(["sh", "-c", "exit 7"]).returncode == 7
    with pytest.raises(AssertionError, match=f"waited {early_refusal.ROUNDS} runs"):
        run_unbroken(["sh", "-c", "exit 55"])


@pytest.fixture(scope="module")
def body_file(tmp_path_factory):
    """The body as a file, for clients that are programs."""
    file = tmp_path_factory.mktemp("too_large") / "body"
    file.write_bytes(BODY)
    yield file
    file.unlink()


@pytest.mark.timeout(700)  # longer than ROUNDS runs of a client
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
            done = subprocess.run(["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "-H",
                                   f"Authorization: {self.server.key}", *extra, *framing, "--data-binary",
                                   f"@{body_file}", self.url], capture_output=True, text=True, check=False,
                                  timeout=HANG)
            return int(done.stdout) if done.returncode == 0 else done.stderr

        assert_refused(repeated(send))

    @pytest.mark.parametrize("fields", [{}, {"Expect": "100-continue"}])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_python(self, chunked, fields):
        def send():
            connection = http.client.HTTPConnection(*self.server.address, timeout=HANG)
            try:
                connection.request("POST", "/v2/echo/run", parts() if chunked else BODY,
                                   {"Authorization": self.server.key, **fields}, encode_chunked=chunked)
                return connection.getresponse().status
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException) as error:
                return repr(error)
            finally:
                connection.close()

        assert_refused(repeated(send))

    @pytest.mark.parametrize("fields", [{}, {"Expect": "100-continue"}])
    @pytest.mark.parametrize("chunked", [False, True])
    def test_python_requests(self, chunked, fields):
        def send():
            headers = {"Authorization": self.server.key, **fields}
            try:
                body = parts() if chunked else BODY
                return requests.post(self.url, data=body, headers=headers, timeout=HANG).status_code
            except requests.Timeout:
                raise
            except requests.RequestException as error:
                return repr(error)

        assert_refused(repeated(send))

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
        def send():
            done = subprocess.run([*command, self.url, self.server.key, str(MEGABYTES), str(TIMES)], timeout=200,
                                  capture_output=True, text=True, check=False, env={**os.environ, "GO111MODULE": "off"})
            assert done.returncode == 0, done.stderr
            lines = [line.partition(": ") for line in done.stdout.splitlines()]
            assert lines
            return {name: [parse_call(call) for call in calls.split(" ")] for name, _, calls in lines}

        assert_refused(send)

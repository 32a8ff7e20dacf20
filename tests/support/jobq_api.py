"""A jobq server at an address: requests, raw bytes, and the few calls of most tests.

    api = Api("http://127.0.0.1:8000", key)
    job = api.run("echo", {"a": 1})
    api.finished("echo", job)["output"]

The functions work with any running server; jobq_server.py starts a server.
"""

import http.client
import json
import socket
import ssl
import time
import urllib.parse

from early_refusal import sending
from pace import HANG_MS

REPLY_DEADLINE = 90.0  # seconds: bounds a hang, and judges no pace


def until(question, what, deadline=60.0):
    """Asks until the answer is truthy and returns the answer; fails with `what` after `deadline` seconds."""
    end = time.monotonic() + deadline
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {deadline:g} s")
        time.sleep(0.01)


def join(what, *threads, deadline=60.0):
    """Waits until the threads have ended; fails with `what` after `deadline` seconds."""
    end = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            raise AssertionError(f"{what}: not within {deadline:g} s")


class Answer(tuple):
    """(status, headers, body) of an HTTP answer, with names for the parts."""

    def __new__(cls, status, headers, body):
        return super().__new__(cls, (status, headers, body))

    status = property(lambda self: self[0])
    headers = property(lambda self: self[1])
    body = property(lambda self: self[2])

    def json(self):
        return json.loads(self.body)


class Api:
    """A server at an address, with an admin's key."""

    def __init__(self, url, key):
        self.url = url
        self.key = key
        self.tls = None

    def trust(self, certificate):
        """Speaks TLS from now on, to a server with exactly the given certificate."""
        self.tls = ssl.create_default_context(cafile=certificate)

    @property
    def address(self):
        parts = urllib.parse.urlsplit(self.url)
        return parts.hostname, parts.port or 80

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(*self.address, timeout=REPLY_DEADLINE, context=self.tls)
        return http.client.HTTPConnection(*self.address, timeout=REPLY_DEADLINE)

    def plug(self):
        """A plain or TLS socket to the server."""
        plain = socket.create_connection(self.address, timeout=REPLY_DEADLINE)
        return self.tls.wrap_socket(plain, server_hostname=self.address[0]) if self.tls else plain

    def request(self, method, path, body=None, headers=None, key=True, connection=None, chunked=False):
        """Sends one request and returns the answer. A dict as body is sent as JSON. The value True of `key` sends the
        admin's key, None sends no key, and a text is the key."""
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        elif isinstance(body, str):
            body = body.encode()
        all_headers = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            all_headers["Authorization"] = "Bearer " + (self.key if key is True else key)
        all_headers.update(headers or {})
        own = connection is None
        connection = self.connect() if own else connection
        try:
            if connection.sock is None:
                connection.connect()
            with sending():
                connection.request(method, path, body=body, headers=all_headers, encode_chunked=chunked)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            if own:
                connection.close()

    def raw(self, data, half_close=False):
        """Sends bytes on a plain socket and returns the bytes of the answer.

        The result is a single whole answer, because the connection may stay open. After a half close, the result is all
        bytes until EOF.
        """
        with self.plug() as plain:
            plain.sendall(data)
            if half_close:
                plain.shutdown(socket.SHUT_WR)
            answer = b""
            while half_close or not _is_whole(answer):
                part = plain.recv(65536)
                if not part:
                    break
                answer += part
            return answer

    def run(self, endpoint, job_input, **fields):
        """Submits a job by /run and returns the job's id."""
        answer = self.request("POST", f"/v2/{endpoint}/run", {"input": job_input, **fields})
        if answer.status != 200:
            raise AssertionError(f"/run answered {answer.status}: {answer.body[:500]!r}")
        return answer.json()["id"]

    def run_ignoring_stop(self, endpoint):
        """Submits a job with a handler that ignores the stop, and returns the job's id once the handler has begun.
        IN_PROGRESS is not enough: a handler never begins after a stop."""
        job = self.run(endpoint, {"progress": [1], "sleepMs": 600_000, "ignoreStop": True})
        until(lambda: self.request("GET", f"/v2/{endpoint}/status/{job}").json().get("output") == 1,
              f"the handler of {job} has begun")
        return job

    def runsync(self, endpoint, job_input, wait=HANG_MS, **fields):
        """Submits a job by /runsync and returns the finished job."""
        answer = self.request("POST", f"/v2/{endpoint}/runsync?wait={wait}", {"input": job_input, **fields})
        if answer.status != 200 or answer.json()["status"] in ("IN_QUEUE", "IN_PROGRESS"):
            raise AssertionError(f"/runsync answered {answer.status}: {answer.body[:500]!r}")
        return answer.json()

    def status(self, endpoint, job):
        return self.request("GET", f"/v2/{endpoint}/status/{job}").json()

    def finished(self, endpoint, job, wait=HANG_MS):
        """Waits until the job is in a terminal state, and returns the job."""
        answer = self.request("GET", f"/v2/{endpoint}/status-sync/{job}?wait={wait}").json()
        if answer.get("status") in (None, "IN_QUEUE", "IN_PROGRESS"):
            raise AssertionError(f"job {job} did not end within {wait} ms: {answer}")
        return answer

    def health(self, endpoint):
        return self.request("GET", f"/v2/{endpoint}/health").json()

    def quiet(self, endpoint):
        """Waits until no job of the endpoint waits or runs, and returns the endpoint's job counters."""
        def ask():
            jobs = self.health(endpoint)["jobs"]
            return None if jobs["inQueue"] or jobs["inProgress"] else jobs
        return until(ask, f"all jobs of {endpoint} have ended")

    def new_key(self, *scopes, endpoints=None, **fields):
        """Makes a key and returns the whole answer."""
        body = {"name": "test", "scopes": list(scopes), **fields}
        if endpoints is not None:
            body["endpoints"] = endpoints
        answer = self.request("POST", "/v1/keys", body)
        if answer.status != 200:
            raise AssertionError(f"/v1/keys answered {answer.status}: {answer.body[:500]!r}")
        return answer.json()


class PatientApi(Api):
    """A server with limits beyond our control: a caller with 429 waits as long as Retry-After says, and asks again."""

    MOST_TRIES = 4

    def request(self, method, path, body=None, headers=None, key=True, connection=None, chunked=False):
        for _ in range(self.MOST_TRIES):
            answer = super().request(method, path, body, headers, key, connection, chunked)
            if answer.status != 429 or "Retry-After" not in answer.headers:
                break
            time.sleep(int(answer.headers["Retry-After"]))
        return answer


def _is_whole(answer):
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return len(body) >= int(value)
    return False

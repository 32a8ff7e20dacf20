"""A jobq server by its address: requests, raw bytes, and the few questions that most tests ask.

    api = Api("http://127.0.0.1:8000", key)
    job = api.run("echo", {"a": 1})
    api.finished("echo", job)["output"]

Nothing here knows how the server came to be there; jobq_server.py starts one.
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
    """Asks until the answer is truthy and returns it; fails with `what` after `deadline` seconds."""
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
    """(status, headers, body) of an HTTP answer, with names for the parts that tests ask for most."""

    def __new__(cls, status, headers, body):
        return super().__new__(cls, (status, headers, body))

    status = property(lambda self: self[0])
    headers = property(lambda self: self[1])
    body = property(lambda self: self[2])

    def json(self):
        return json.loads(self.body)


class Api:
    """A server by its address and an admin's key."""

    def __init__(self, url, key):
        self.url = url
        self.key = key
        self.tls = None

    def trust(self, certificate):
        """Speaks TLS from now on, to a server with exactly this certificate."""
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
        admin's key, None sends no key, and a text is the key itself."""
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

        The result is one whole answer, as the connection may stay open; after a half close all bytes until EOF.
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
        """Submits a job by /run and returns its id."""
        answer = self.request("POST", f"/v2/{endpoint}/run", {"input": job_input, **fields})
        if answer.status != 200:
            raise AssertionError(f"/run answered {answer.status}: {answer.body[:500]!r}")
        return answer.json()["id"]

    def run_ignoring_stop(self, endpoint):
        """Submits a job whose handler ignores its stop, and returns its id once the handler has begun. IN_PROGRESS
        alone is not enough: a handler whose stop comes before its begin never begins."""
        job = self.run(endpoint, {"progress": [1], "sleepMs": 600_000, "ignoreStop": True})
        until(lambda: self.request("GET", f"/v2/{endpoint}/status/{job}").json().get("output") == 1,
              f"the handler of {job} has begun")
        return job

    def runsync(self, endpoint, job_input, wait=HANG_MS, **fields):
        """Submits a job by /runsync and returns it, finished."""
        answer = self.request("POST", f"/v2/{endpoint}/runsync?wait={wait}", {"input": job_input, **fields})
        if answer.status != 200 or answer.json()["status"] in ("IN_QUEUE", "IN_PROGRESS"):
            raise AssertionError(f"/runsync answered {answer.status}: {answer.body[:500]!r}")
        return answer.json()

    def status(self, endpoint, job):
        return self.request("GET", f"/v2/{endpoint}/status/{job}").json()

    def finished(self, endpoint, job, wait=HANG_MS):
        """The job once it is in a terminal state."""
        answer = self.request("GET", f"/v2/{endpoint}/status-sync/{job}?wait={wait}").json()
        if answer.get("status") in (None, "IN_QUEUE", "IN_PROGRESS"):
            raise AssertionError(f"job {job} did not end within {wait} ms: {answer}")
        return answer

    def health(self, endpoint):
        return self.request("GET", f"/v2/{endpoint}/health").json()

    def quiet(self, endpoint):
        """The endpoint's job counters once none of its jobs waits or runs."""
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

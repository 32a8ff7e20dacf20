"""Callers of every kind for hours: polite, waiting, large, slow, leaving, wrong. Each caller checks the answers.

Traffic(server, rate, callers, ttl).start() ... stop(); then `faults` is empty when every answer was right, and
`ended` says how many jobs of each endpoint must have been completed and failed by then.
"""

import http.client
import json
import random
import threading
import time

from jobq_api import REPLY_DEADLINE, join

WAITING_STATES = ("IN_QUEUE", "IN_PROGRESS")
MOST_FAULTS = 20
MB = 1 << 20


class Rate:
    """Lets requests through at a steady rate, for all threads together."""

    def __init__(self, rate):
        self.step = 1.0 / rate
        self.lock = threading.Lock()
        self.next = time.monotonic()
        self.stop = threading.Event()

    def wait_for_turn(self):
        with self.lock:
            now = time.monotonic()
            self.next = max(self.next, now - 1.0) + self.step
            delay = self.next - now
        if delay > 0:
            self.stop.wait(delay)


class Traffic:
    def __init__(self, server, rate, callers, ttl):
        self.server, self.ttl = server, ttl
        self.rate = Rate(rate)
        self.lock = threading.Lock()
        self.faults = []
        self.requests = 0
        self.done = {}  # kind -> how often
        self.ended = {"echo": [0, 0], "trial": [0, 0], "parked": [0, 0]}  # completed, failed
        self.threads = [threading.Thread(target=Caller(self, random.Random(n)).run) for n in range(callers)]

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def stop(self):
        self.rate.stop.set()
        join("the last request of each caller", *self.threads, deadline=2 * REPLY_DEADLINE)

    def note(self, kind, ended, fault=None):
        with self.lock:
            self.done[kind] = self.done.get(kind, 0) + 1
            for endpoint, (completed, failed) in ended.items():
                self.ended[endpoint][0] += completed
                self.ended[endpoint][1] += failed
            if fault and len(self.faults) < MOST_FAULTS:
                self.faults.append(f"{kind}: {fault}")


class Client:
    """The requests of a caller, on a single connection. The first request after close() opens the connection again.
    `ended` has the expected final numbers of completed and failed jobs of the current task, for each endpoint."""

    def __init__(self, traffic, dice):
        self.traffic, self.dice = traffic, dice
        self.api = traffic.server
        self.http = self.api.connect()
        self.ended = {}

    def close(self):
        self.http.close()

    def ask(self, method, path, body=None, wanted=200, **more):
        self.traffic.rate.wait_for_turn()
        with self.traffic.lock:
            self.traffic.requests += 1
        answer = self.api.request(method, path, body, connection=self.http, **more)
        expect(answer.status == wanted, f"{method} {path[:80]} answered {answer.status}: {answer.body[:300]!r}")
        return json.loads(answer.body)

    def submit(self, endpoint, job_input, how="/run", completed=0, failed=0):
        body = {"input": job_input, "policy": {"ttl": self.traffic.ttl, "lowPriority": self.dice.random() < 0.1}}
        answer = self.ask("POST", f"/v2/{endpoint}{how}", body)
        have = self.ended.setdefault(endpoint, [0, 0])
        have[0] += completed
        have[1] += failed
        return answer

    def await_end(self, endpoint, job):
        answer = self.ask("GET", f"/v2/{endpoint}/status-sync/{job}?wait=9000")
        expect(answer["status"] not in WAITING_STATES, f"{answer} after 9 s")
        return answer

    def cancel(self, endpoint, job):
        expect(self.ask("POST", f"/v2/{endpoint}/cancel/{job}") == {"id": job, "status": "CANCELLED"}, job)
        expect(self.ask("GET", f"/v2/{endpoint}/status/{job}")["status"] == "CANCELLED", job)

    def head(self, path, length):
        return (f"POST {path} HTTP/1.1\r\nHost: jobq\r\nAuthorization: {self.api.key}\r\n"
                f"Content-Length: {length}\r\n\r\n").encode()


class Caller:
    """A thread with a sequence of tasks, on a connection that stays open unless a task breaks the connection."""

    def __init__(self, traffic, dice):
        self.traffic, self.dice = traffic, dice
        self.client = Client(traffic, dice)

    def run(self):
        tasks, weights = zip(*self.TASKS)
        while not self.traffic.rate.stop.is_set():
            task = self.dice.choices(tasks, weights)[0]
            self.client.ended = {}
            fault = None
            try:
                task(self)
            except (AssertionError, OSError, http.client.HTTPException, ValueError, KeyError) as error:
                fault = f"{type(error).__name__}: {str(error)[:500]}"
                self.client.close()
            self.traffic.note(task.__name__, self.client.ended, fault)
        self.client.close()

    def input(self, size=None):
        length = self.dice.randrange(600) if size is None else size
        return {"n": self.dice.getrandbits(60), "text": "x" * length}

    # ---- tasks

    def runsync(self):
        sent = self.input()
        answer = self.client.submit("echo", sent, "/runsync?wait=9000", completed=1)
        expect((answer["status"], answer["output"]) == ("COMPLETED", sent), answer)

    def run_and_wait(self):
        sent = self.input()
        answer = self.client.await_end("echo", self.client.submit("echo", sent, completed=1)["id"])
        expect((answer["status"], answer["output"]) == ("COMPLETED", sent), answer)

    def run_and_poll(self):
        """A dozen jobs, each polled until the end."""
        inputs = [self.input() for _ in range(12)]
        jobs = [(sent, self.client.submit("echo", sent, completed=1)["id"]) for sent in inputs]
        for sent, job in jobs:
            answer = self.client.ask("GET", f"/v2/echo/status/{job}")
            if answer["status"] in WAITING_STATES:
                answer = self.client.await_end("echo", job)
            expect((answer["status"], answer["output"]) == ("COMPLETED", sent), answer)

    def trial(self):
        """A job that runs for a time, reports progress, emits chunks and writes a log."""
        sent = {"progress": [1, 2], "sleepMs": self.dice.randrange(200), "chunks": 3, "chunkBytes": 500,
                "log": ["a line", "another"], "output": {"done": self.dice.getrandbits(60)}}
        answer = self.client.submit("trial", sent, "/runsync?wait=9000", completed=1)
        expect((answer["status"], answer["output"]) == ("COMPLETED", sent["output"]), answer)

    def wait_in_vain(self):
        job = self.client.submit("parked", {})["id"]
        answer = self.client.ask("GET", f"/v2/parked/status-sync/{job}?wait=1000")
        expect(answer["status"] == "IN_QUEUE", answer)
        self.client.cancel("parked", job)

    def cancel_waiting(self):
        self.client.cancel("parked", self.client.submit("parked", self.input())["id"])

    def cancel_running(self):
        job = self.client.submit("trial", {"sleepMs": 60000})["id"]
        self.client.ask("GET", f"/v2/trial/status/{job}")
        self.client.cancel("trial", job)

    def fail_and_retry(self):
        job = self.client.submit("trial", {"fail": "no", "output": 1}, failed=1)["id"]
        expect(self.client.await_end("trial", job)["status"] == "FAILED", job)
        expect(self.client.ask("POST", f"/v2/trial/retry/{job}")["status"] == "IN_QUEUE", job)
        self.client.ended["trial"][1] += 1
        answer = self.client.await_end("trial", job)
        expect((answer["status"], answer["error"], answer["retries"]) == ("FAILED", "no", 1), answer)

    def large(self):
        sent = self.input(self.dice.choice((1, 2, 3)) * MB)
        answer = self.client.submit("echo", sent, "/runsync?wait=9000", completed=1)
        expect((answer["status"], answer["output"]) == ("COMPLETED", sent), "a large body came back changed")

    def read_overviews(self):
        for path in ("/v2/echo/health", "/v2/trial/health", "/healthz", "/readyz", "/v1/plugins", "/v1/keys"):
            self.client.ask("GET", path)

    def new_connection(self):
        self.client.close()
        self.read_overviews()

    def wrong(self):
        """Wrong requests, each with the expected status; some refusals end the connection."""
        self.client.ask("POST", "/v2/echo/run", '{"input":', wanted=400)
        self.client.ask("POST", "/v2/echo/run", {"input": 1}, wanted=400)
        self.client.ask("POST", "/v2/echo/runsync?wait=1", {"input": {}}, wanted=400)
        self.client.ask("GET", "/v2/echo/health", key="wrong", wanted=401)
        self.client.ask("GET", "/v2/nowhere/health", wanted=404)
        self.client.ask("GET", "/v2/echo/status/nobody", wanted=404)
        self.client.ask("GET", "/v2/echo/run", wanted=405)
        self.client.ask("POST", "/v2/echo/run", headers={"Content-Length": str(11 * MB)}, wanted=413)

    def no_http(self):
        self.traffic.rate.wait_for_turn()
        two_lengths = b"Content-Length: 1\r\nContent-Length: 2\r\n"
        answer = self.client.api.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + two_lengths + b"\r\n")
        expect(answer.startswith(b"HTTP/1.1 400 "), answer)

    def slow(self):
        """A request in ten parts over a second, with cuts in the head and in the body."""
        body = json.dumps({"input": {"slow": 1}, "policy": {"ttl": self.traffic.ttl}}).encode()
        data = self.client.head("/v2/echo/runsync", len(body)) + body
        with self.client.api.plug() as plain:
            for n in range(10):
                plain.sendall(data[n * len(data) // 10:(n + 1) * len(data) // 10])
                if n < 9:
                    threading.Event().wait(0.1)
            answer = plain.recv(4096)
        self.client.ended["echo"] = [1, 0]
        expect(b'"COMPLETED"' in answer, answer)

    def leave_while_sending(self):
        self.traffic.rate.wait_for_turn()
        with self.client.api.plug() as plain:
            part = b'{"input":{"a":"' + b"x" * self.dice.randrange(2 * MB)
            plain.sendall(self.client.head("/v2/echo/run", 3 * MB) + part)

    def leave_while_waiting(self):
        """The client leaves, and the job goes on."""
        sent = {"sleepMs": 100 + self.dice.randrange(200), "output": self.dice.getrandbits(60)}
        job = self.client.submit("trial", sent, completed=1)["id"]
        with self.client.api.plug() as plain:
            plain.sendall(f"GET /v2/trial/status-sync/{job} HTTP/1.1\r\nHost: jobq\r\n"
                          f"Authorization: {self.client.api.key}\r\n\r\n".encode())
            threading.Event().wait(0.05)
        answer = self.client.await_end("trial", job)
        expect((answer["status"], answer["output"]) == ("COMPLETED", sent["output"]), answer)

    TASKS = [(runsync, 300), (run_and_wait, 200), (run_and_poll, 30), (trial, 30), (wait_in_vain, 6),
             (cancel_waiting, 20), (cancel_running, 20), (fail_and_retry, 20), (large, 1), (read_overviews, 10),
             (new_connection, 10), (wrong, 10), (no_http, 5), (slow, 5), (leave_while_sending, 5),
             (leave_while_waiting, 10)]


def expect(right, otherwise):
    if not right:
        raise AssertionError(otherwise)

"""Callers of a cluster: each sends jobs of several kinds through the balancer and records every call for the checker.

    with Traffic(cluster, callers=6) as traffic:
        traffic.await_jobs(100)
        ...
    verdict = traffic.verdict()

A caller repeats a call without a good answer, submissions with the same Idempotency-Key, as the API asks of clients.
"""

import collections
import contextlib
import itertools
import json
import random
import socket
import threading
import time
import urllib.parse

from node_balancer import Broken, read_body, read_head
from cluster_history import FINAL, Plan, call_of, check, is_under_way
from jobq_api import join
from webhook_receiver import WebhookReceiver

KINDS = ("poll", "runsync", "webhook", "stream", "cancel", "retry")
LONGEST_REPETITION = 150.0  # seconds until a repeated call is a hang
LONGEST_STOP = 30.0  # seconds: bounds a hang; a node learns of a cancel within a second
REPEATED = {0, 429, 502, 503}  # statuses that make the caller repeat the call
_numbers = itertools.count(1)


class HttpCaller:
    """Calls over a single connection. A new connection replaces a broken connection."""

    def __init__(self, url, key):
        parts = urllib.parse.urlsplit(url)
        self._address = parts.hostname, parts.port
        self._fields = f"HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer {key}\r\n"
        self._plain = None

    def ask(self, method, path, body=None, fields=""):
        """Returns status, fields and body of the answer; status 0 without a whole answer."""
        data = b"" if body is None else json.dumps(body).encode()
        request = f"{method} {path} {self._fields}{fields}Content-Length: {len(data)}\r\n\r\n".encode() + data
        try:
            if self._plain is None:
                self._plain = socket.create_connection(self._address, timeout=400)
                self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._plain.sendall(request)
            head, rest = read_head(self._plain)
            if not head:
                raise Broken("the connection was closed")
            text = read_body(self._plain, head, rest)
        except (OSError, Broken):
            self.close()
            return 0, {}, b""
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if headers.get("connection", "") == "close" and "x-node" not in headers:
            self.close()  # the field of a node behind the balancer is about the balancer's connection
        return int(lines[0].split()[1]), headers, text

    def close(self):
        plain, self._plain = self._plain, None
        if plain:
            plain.close()


class JobCaller:
    """Brings single jobs to the end, and records the calls."""

    def __init__(self, traffic, seed):
        self.traffic = traffic
        self.dice = random.Random(seed)
        self.http = HttpCaller(traffic.url, traffic.key)
        self.asking = "nothing"  # the current call, for the message of a hang

    def bring(self, plan):
        order = {"number": plan.number, "workMs": self.dice.randint(*self.traffic.work_ms), "nameAttempt": 1}
        if plan.chunks:
            order["chunks"] = plan.chunks
        if plan.fails:
            order["failBelow"] = 2
        getattr(self, f"_bring_{plan.kind}")(plan.number, {"input": order})

    def ask(self, number, action, method, path, body=None):
        """Asks until a good answer comes, and returns the recorded call."""
        fields = f"Idempotency-Key: {self.traffic.name}-{number}\r\n" if action in ("run", "runsync") else ""
        deadline = time.monotonic() + LONGEST_REPETITION
        while True:
            asked = time.monotonic_ns()
            self.asking = f"{method} {path} for job {number} since {asked / 1e9:.3f}"
            status, headers, text = self.http.ask(method, f"/v2/witness{path}", body, fields)
            call = call_of(number, action, asked, time.monotonic_ns(), status, headers, text)
            self.traffic.record(call, text if status != 200 else b"")
            if status not in REPEATED:
                return call
            assert time.monotonic() < deadline, f"/{action} of {number} had no good answer within {LONGEST_REPETITION:g} s"
            time.sleep(0.1)  # the pace of a patient client

    def _submit(self, number, body):
        call = self.ask(number, "run", "POST", "/run", body)
        assert call.status == 200, f"/run of {number} answered {call.status}"
        self.traffic.record_submission(number, call)
        return call.job

    def submit(self, plan, work_ms, **fields):
        """Submits a job of `work_ms`. Returns the job's id."""
        order = {"number": plan.number, "workMs": work_ms, "nameAttempt": 1, **fields}
        return self._submit(plan.number, {"input": order})

    def cancel(self, number, job):
        return self.ask(number, "cancel", "POST", f"/cancel/{job}")

    def await_end(self, number, job):
        call = self.ask(number, "status", "GET", f"/status-sync/{job}?wait=20000")
        while call.status == 200 and call.state not in FINAL:
            call = self.ask(number, "status", "GET", f"/status-sync/{job}?wait=20000")
        return call

    def _bring_poll(self, number, body):
        job = self._submit(number, body)
        pause = 0.02
        while (call := self.ask(number, "status", "GET", f"/status/{job}")).status == 200 and call.state not in FINAL:
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _bring_runsync(self, number, body):
        call = self.ask(number, "runsync", "POST", "/runsync?wait=20000", body)
        if call.status == 200 and call.state not in FINAL:
            self.await_end(number, call.job)

    def _bring_webhook(self, number, body):
        self._submit(number, {**body, "webhook": self.traffic.receiver.url(f"/{number}")})

    def _bring_stream(self, number, body):
        job = self._submit(number, body)
        attempt, offset = 0, 0
        while True:
            call = self.ask(number, "stream", "GET", f"/stream/{job}?wait=20000&offset={offset}")
            if call.status != 200:
                return
            if call.attempt != attempt and offset > 0:  # the chunks begin anew
                attempt, offset = call.attempt, 0
                self.traffic.drop(call)
                continue
            attempt, offset = call.attempt, offset + len(call.chunks)
            if call.state in FINAL:
                return

    def _bring_cancel(self, number, body):
        job = self._submit(number, body)
        if self.dice.random() < 0.5:
            time.sleep(self.dice.random() * 0.05)  # half of the cancels meet a running job
        self.cancel(number, job)

    def _bring_retry(self, number, body):
        job = self._submit(number, body)
        if self.await_end(number, job).state == "FAILED":
            self.ask(number, "retry", "POST", f"/retry/{job}")  # 400 if an earlier retry had an effect
            self.await_end(number, job)


class Traffic:
    def __init__(self, cluster, callers=6, kinds=KINDS, jobs=None, work_ms=(0, 30), pause=0.0, seed=1):
        """Sends `jobs` jobs, or jobs until the end of the `with`. Each caller pauses for `pause` seconds after each job."""
        self.cluster, self.url, self.key = cluster, cluster.url, cluster.key
        self.kinds, self.work_ms, self._pause = kinds, work_ms, pause
        self.name = f"{cluster.balancer.url[-5:]}-{time.monotonic_ns()}"
        self.plans, self.submissions, self.refusals = {}, [], collections.Counter()
        self.receiver = WebhookReceiver()
        self._changed = threading.Condition()  # guards the fields below and above
        self._calls = []
        self._left = jobs
        self._done = 0
        self._faults = []
        self._stopping = threading.Event()
        self._own = JobCaller(self, seed - 1)  # makes the calls of the test
        self._callers = [JobCaller(self, seed + each) for each in range(callers)]
        self._threads = [threading.Thread(target=self._run, args=(caller,), daemon=True) for caller in self._callers]

    def _run(self, caller):
        try:
            with contextlib.closing(caller.http):
                while plan := self._next_plan():
                    caller.bring(plan)
                    with self._changed:
                        self._done += 1
                        self._changed.notify_all()
                    self._stopping.wait(self._pause)
        except Exception as error:  # pylint: disable=broad-except
            with self._changed:
                self._faults.append(repr(error))
                self._changed.notify_all()

    def _next_plan(self):
        with self._changed:
            if self._stopping.is_set() or self._left == 0:
                return None
            if self._left is not None:
                self._left -= 1
            number = next(_numbers)
            return self._add_plan(number, self.kinds[number % len(self.kinds)])

    def _add_plan(self, number, kind):
        self.plans[number] = Plan(number, kind, 3 if kind == "stream" else 0, kind == "retry")
        return self.plans[number]

    def submit(self, work_ms, kind="poll", **fields):
        """Submits a job for the test. Returns the number and the id of the job."""
        with self._changed:
            plan = self._add_plan(next(_numbers), kind)
        return plan.number, self._own.submit(plan, work_ms, **fields)

    def await_end(self, number, job):
        return self._own.await_end(number, job)

    def cancel(self, number, job):
        return self._own.cancel(number, job)

    def record(self, call, refusal):
        with self._changed:
            self._calls.append(call)
            if call.status != 200:
                self.refusals[f"/{call.action} {call.status} {refusal[:120].decode(errors='replace')}"] += 1

    def record_submission(self, number, call):
        with self._changed:
            self.submissions.append((number, call.job))

    def drop(self, call):
        """Forgets a call that read a stream at the offset of an earlier attempt."""
        with self._changed:
            self._calls.remove(call)

    def start(self):
        for thread in self._threads:
            thread.start()

    def await_jobs(self, count, deadline=120.0):
        """Waits until the callers are done with `count` further jobs."""
        with self._changed:
            goal = self._done + count
            assert self._changed.wait_for(lambda: self._done >= goal or self._faults, deadline), \
                f"{self._done} of {goal} jobs were done within {deadline:g} s; callers: {self.asked_now()}"
            assert self._faults == []

    def await_call_after(self, moment, deadline=120.0):
        """Waits for a submission asked after the moment and answered well; returns the time of the answer."""
        def good():
            return next((call.answered for call in reversed(self._calls)
                         if call.action in ("run", "runsync") and call.status == 200 and call.asked > moment), None)
        end = time.monotonic() + deadline
        while not (answered := good()):
            assert time.monotonic() < end, f"no submission was answered well within {deadline:g} s"
            time.sleep(0.02)
        return answered

    def finish(self, deadline=240.0):
        """Waits until the callers are done with all jobs."""
        join("the end of the callers", *self._threads, deadline=deadline)
        assert self._faults == []

    def asked_now(self):
        """Returns the open calls, for the message of a hang."""
        return f"{time.monotonic():.3f}: " + "; ".join(caller.asking for caller in self._callers)

    def statuses(self):
        with self._changed:
            return collections.Counter(call.status for call in self._calls)

    def verdict(self):
        """Awaits webhooks, reads the ends of all jobs of /run once more, and judges. The receiver is closed."""
        with self.receiver:
            self._confirm_ends()
            webhooks = self._await_webhooks()
        self._await_ends_of_handlers()
        verdict = check(self.plans, self._calls, self.cluster.runs(), webhooks, self.cluster.interruptions)
        print(verdict, flush=True)
        for text, count in self.refusals.most_common():
            print(f"    {count} x {text}", flush=True)
        return verdict

    def _confirm_ends(self):
        """Asks the nodes in turn about each job of /run."""
        with contextlib.closing(self._own.http):
            for number, job in self.submissions:
                self.await_end(number, job)

    def _await_ends_of_handlers(self):
        """Waits until no handler runs. A node learns of a cancel at another node within a second, and the checker
        reports a running handler as a fault."""
        def under_way():
            return [run for run in self.cluster.runs()
                    if run.number in self.plans and is_under_way(run, self.cluster.interruptions)]
        end = time.monotonic() + LONGEST_STOP
        while under_way() and time.monotonic() < end:
            time.sleep(0.1)

    def _await_webhooks(self):
        """Waits for the webhooks. A delivery begun by a dead node is due a minute later."""
        wanted = {number for number, _ in self.submissions if self.plans[number].kind == "webhook"}
        begin = time.monotonic()
        while wanted - {int(call.path[1:]) for call in self.receiver.calls} and time.monotonic() < begin + LONGEST_REPETITION:
            time.sleep(0.1)
        print(f"the last webhook came {time.monotonic() - begin:.1f} s after the end of the load", flush=True)
        return [(int(call.path[1:]), {**call.json(), "webhookId": call.headers["webhook-id"]})
                for call in self.receiver.calls]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, _error, _trace):
        self._stopping.set()
        try:
            if kind is None:
                self.finish()
        except BaseException:
            self.receiver.close()
            raise
        if kind is not None:
            self.receiver.close()

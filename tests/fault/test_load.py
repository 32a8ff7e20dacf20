"""The load proof: many jobs, many waiting callers, many large bodies. README.md explains each part."""

import contextlib
import json
import os
import socket
import subprocess
import time

import pytest
from http_case import HttpTest
from jobq_server import BUILD, until
from large_callers import LargeCallers
from latencies import Latencies
from pace import HANG, judge_pace
from process_watch import memory, threads, wakeups
from waiting_callers import WaitingCallers, allow_descriptors

MB = 1 << 20
LOAD_CLIENT = os.path.join(BUILD, "tests", "fault_load_client")


@pytest.mark.timeout(600)
class ManyJobsTest:
    JOBS = int(os.environ.get("JOBQ_LOAD_JOBS", "30000"))
    CONNECTIONS = 64

    def test_every_job_ends_with_the_right_output(self, own_server):
        """Many jobs over 64 connections, each with a different input, on the durable storage."""
        server = own_server(endpoint__echo__workersMax=64)
        before = server.health("echo")["jobs"]
        client = subprocess.run([LOAD_CLIENT, str(server.address[1]), server.key, "echo", str(self.CONNECTIONS),
                                 str(self.JOBS)], capture_output=True, text=True, check=False, timeout=500)
        assert client.returncode == 0, client.stderr
        seen = json.loads(client.stdout)
        print(f"{self.JOBS} jobs over {self.CONNECTIONS} connections in {seen['seconds']:.1f} s, "
              f"{self.JOBS / seen['seconds']:.0f} a second; {seen['askedAgain']} were not finished when asked for")
        assert seen["right"] == self.JOBS
        assert server.quiet("echo") == {**before, "completed": before["completed"] + self.JOBS}


class CrowdedEndpoints(WaitingCallers):
    """Five endpoints with 400 waiting callers each: three kinds of waiting, and how each is ended."""

    EACH = 400
    QUEUED = ("line1", "line2", "line3")  # a single worker, kept busy by a long job: /runsync waits
    SETTINGS = {"endpoint.busy.image": "plugin/trial", "endpoint.busy.workersMax": str(EACH), "server.drain": "1s"}
    for _name in QUEUED:
        SETTINGS.update({f"endpoint.{_name}.image": "plugin/trial", f"endpoint.{_name}.workersMax": "1"})
    LONG = {"sleepMs": 600000}

    def __init__(self, server):
        super().__init__(server)
        self.jobs = []  # (endpoint, id): to be cancelled in the end
        for endpoint in self.QUEUED:
            self.jobs.append((endpoint, server.run(endpoint, self.LONG)))
            for n in range(self.EACH):
                self.call("POST", f"/v2/{endpoint}/runsync?wait=300000", {"input": {"output": f"{endpoint} {n}"}})
        for endpoint in ("busy", "parked"):  # 400 running jobs, 400 jobs without a worker
            for _ in range(self.EACH):
                self.jobs.append((endpoint, server.run(endpoint, self.LONG)))
                self.call("GET", f"/v2/{endpoint}/status-sync/{self.jobs[-1][1]}?wait=300000")


@pytest.mark.timeout(600)
class WaitingCallersTest(HttpTest):
    """5 endpoints x 400 waiting callers: a caller without a wait is not disturbed. Calls without a wait are answered
    while the crowd waits, and wake as few of the server's threads as before the crowd came."""

    ALL = 5 * CrowdedEndpoints.EACH
    MOST_THREADS = CrowdedEndpoints.EACH + 64  # of the process with a worker for each running job
    ROUNDS = 400
    LONGEST_P99 = 1.0  # seconds, where paces are judged
    COUNTED_ROUNDS = 100
    MOST_WAKEUPS = 3.0  # times the wakeups without the crowd; waking an endpoint's waiters once would make 11

    @pytest.fixture
    def server(self, own_server, request):
        """The parameter of a test: the settings of the server."""
        if not allow_descriptors(3 * self.ALL):
            pytest.skip(f"{self.ALL} callers and their server need more descriptors than this machine allows")
        return own_server(**CrowdedEndpoints.SETTINGS, **getattr(request, "param", {}))

    def crowd(self):
        callers = CrowdedEndpoints(self.server)
        self.at_end.callback(callers.close)
        until(lambda: self.server.health("busy")["workers"]["running"] == CrowdedEndpoints.EACH, "400 jobs run", HANG)
        return callers

    def wakeups_a_round(self):
        """The wakeups of the server's threads for a few calls without a wait."""
        with contextlib.closing(self.server.connect()) as kept:
            before = wakeups(self.server.process.pid)
            for _ in range(self.COUNTED_ROUNDS):
                for endpoint in ("echo", CrowdedEndpoints.QUEUED[0], "busy"):
                    self.assert_job(self.server.request("GET", f"/v2/{endpoint}/health", connection=kept))
                for endpoint in ("echo", "parked"):
                    answer = self.server.request("POST", f"/v2/{endpoint}/run", {"input": {}}, connection=kept)
                    job = self.assert_job(answer)["id"]
                self.assert_job(self.server.request("POST", f"/v2/parked/cancel/{job}", connection=kept))
            return (wakeups(self.server.process.pid) - before) / self.COUNTED_ROUNDS

    def probe(self, places_left):
        """A caller beside the crowd, waiting only for jobs of an idle endpoint. Every call is a 200."""
        times, api = Latencies(), self.server
        kept = api.connect()
        self.at_end.callback(kept.close)

        def ask(name, method, path, body=None):
            with times.of(name):
                response = api.request(method, path, body, connection=kept)
            return self.assert_job(response)

        def finished(endpoint, job):
            """Asked for again and again, because there may be no place to wait left."""
            end = time.monotonic() + HANG
            while True:
                answer = ask("/status", "GET", f"/v2/{endpoint}/status/{job}")
                if answer["status"] not in ("IN_QUEUE", "IN_PROGRESS"):
                    return answer
                assert time.monotonic() < end, f"waited {HANG:g} s for the end of {answer}"

        for n in range(self.ROUNDS):
            job = ask("/run", "POST", "/v2/echo/run", {"input": {"n": n}})["id"]
            with times.of("run to finished"):
                assert finished("echo", job)["output"] == {"n": n}
            answer = ask("/runsync", "POST", "/v2/echo/runsync", {"input": {"n": n}})
            assert finished("echo", answer["id"])["output"] == {"n": n}
            if places_left:
                assert answer["status"] == "COMPLETED"
            ask("/health, crowded", "GET", f"/v2/{CrowdedEndpoints.QUEUED[n % 3]}/health")
            ask("/health", "GET", "/v2/echo/health")
            job = ask("/run, crowded", "POST", "/v2/parked/run", {"input": {}})["id"]
            assert ask("/cancel", "POST", f"/v2/parked/cancel/{job}")["status"] == "CANCELLED"
            if n % 4 == 0:
                failed = finished("trial", api.run("trial", {"fail": "no"}))["id"]
                assert ask("/retry", "POST", f"/v2/trial/retry/{failed}")["status"] == "IN_QUEUE"
        return times

    def check_wakeups_and_latencies(self, beside, before, *measured):
        print(f"{beside:.1f} wake-ups a round of calls beside the crowd, {before:.1f} before it came")
        assert beside <= self.MOST_WAKEUPS * before, "wake-ups a round of calls"
        for times in measured:
            name, seconds = times.worst(0.99)
            judge_pace(f"p99 of {name} beside {self.ALL} waiting callers", seconds, self.LONGEST_P99)

    def release(self, callers):
        """Ends every wait, and returns how long the /cancel calls took."""
        times, kept = Latencies(), self.server.connect()
        self.at_end.callback(kept.close)
        for endpoint, job in callers.jobs:
            with times.of("/cancel, waited for"):
                answer = self.server.request("POST", f"/v2/{endpoint}/cancel/{job}", connection=kept)
            assert self.assert_job(answer)["status"] == "CANCELLED"
            callers.collect(0)
        callers.collect(HANG)
        return times

    def check_answers(self, callers, answers):
        """Each waiter of a line has the output of the awaited job, each waiter of a cancelled job the cancellation."""
        for number, status, job in answers:
            assert status == 200, job
            place, n = divmod(number, CrowdedEndpoints.EACH)
            if place < 3:
                assert (job["status"], job["output"]) == ("COMPLETED", f"{CrowdedEndpoints.QUEUED[place]} {n}")
            else:
                wanted = callers.jobs[3 + number - 3 * CrowdedEndpoints.EACH][1]
                assert (job["status"], job["id"]) == ("CANCELLED", wanted)

    def test_all_callers_wait_and_no_caller_starves(self):
        """2,000 callers wait, and the calls without a wait take no longer than ever."""
        before = self.wakeups_a_round()
        callers = self.crowd()
        until(lambda: threads(self.server.process.pid) <= self.MOST_THREADS, "the threads of the arrival have ended", HANG)
        beside = self.wakeups_a_round()
        times = self.probe(places_left=True)
        assert callers.collect(0) == [], "a caller was answered before its job ended"
        print(f"beside {self.ALL} waiting callers ({threads(self.server.process.pid)} threads, "
              f"{memory(self.server.process.pid) >> 20} MB):\n{times.table()}")
        released = self.release(callers)
        print(released.table())
        assert len(callers.answers) == self.ALL
        self.check_answers(callers, callers.answers)
        self.check_wakeups_and_latencies(beside, before, times, released)

    @pytest.mark.parametrize("server", [{"server__waiting": 1536}], indirect=True, ids=["places for some"])
    def test_no_caller_waits_beyond_the_places_and_no_caller_starves(self):
        """core/http/API.md, "Places for waiting callers": a waiting call beyond server.waiting answers the present state
        of the job."""
        before = self.wakeups_a_round()
        callers = self.crowd()
        places = 1536
        callers.collect(HANG, self.ALL - places)
        beside = self.wakeups_a_round()
        times = self.probe(places_left=False)
        at_once = list(callers.collect(0))
        print(f"beside {places} waiting callers, {len(at_once)} were answered at once:\n"
              f"{times.table()}")
        assert len(at_once) == self.ALL - places
        for _, status, job in at_once:
            assert status == 200, job
            assert job["status"] in ("IN_QUEUE", "IN_PROGRESS")
        self.release(callers)
        assert len(callers.answers) == self.ALL
        self.check_answers(callers, callers.answers[len(at_once):])
        self.check_wakeups_and_latencies(beside, before, times)


@pytest.mark.timeout(600)
class LargeBodiesTest:
    """400 callers with 20 MB bodies at once: the server's memory stays within server.bodyMemory + 1 GB."""

    CALLERS = 400
    SIZE = 20 * MB
    BODY_MEMORY = int(os.environ.get("JOBQ_LOAD_BODY_MEMORY_MB", "200"))
    WHOLE = int(os.environ.get("JOBQ_LOAD_WHOLE_BODIES", "40"))
    DEADLINE = 300  # seconds: bounds a hang

    def test_memory_stays_within_the_bound(self, own_server):
        """core/http/API.md, "When the answer is 503": bodies over 1 MB share server.bodyMemory; a body without room
        reads 503 with Retry-After, and gets in later."""
        server = own_server(server__bodyMemory=f"{self.BODY_MEMORY}MB")
        every = max(1, self.CALLERS // self.WHOLE)
        whole = range(0, every * self.WHOLE, every)
        # Every eighth caller gets all 20 MB back, the other jobs have a small output.
        crowd = LargeCallers(server, self.CALLERS, self.SIZE,
                             endpoint_of=lambda n: "echo" if n // every % 8 == 0 else "trial",
                             cut=lambda n: n not in whole)
        start = time.monotonic()
        crowd.run(self.DEADLINE)
        peak = memory(server.process.pid, "VmHWM")
        print(f"{self.CALLERS} callers with {self.SIZE // MB} MB, server.bodyMemory {self.BODY_MEMORY} MB: "
              f"{len(crowd.done)} jobs done and {len(crowd.left)} callers gone in {time.monotonic() - start:.0f} s, "
              f"{crowd.refusals} times 503, {crowd.sent / MB:.0f} MB sent; at most {peak // MB} MB resident")
        assert crowd.faults == []
        assert len(crowd.done) == len(whole)
        assert len(crowd.left) == self.CALLERS - len(whole)
        assert peak <= self.BODY_MEMORY * MB + 1024 * MB


class LargeAnswersTest(HttpTest):
    SIZE = 9 * MB
    FIT = 13  # into the quarter of 512 MB that an endpoint has: one is there twice while its answer is made

    @pytest.fixture
    def server(self, own_server):
        return own_server()

    def unread(self, job):
        """A connection with a request for the job, reading only the status of the answer."""
        plain = self.at_end.enter_context(socket.socket())
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(HANG)
        plain.connect(self.server.address)
        plain.sendall(f"GET /v2/echo/status/{job} HTTP/1.1\r\nHost: x\r\nAuthorization: {self.server.key}\r\n\r\n"
                      .encode())
        return plain, int(plain.recv(12).split()[1])

    def test_unread_answers_have_a_bound(self):
        """core/http/API.md, "When the answer is 503": 503 with Retry-After; a refused result is readable a moment
        later."""
        job = self.server.run("echo", {"x": "y" * self.SIZE})
        assert self.server.finished("echo", job)["status"] == "COMPLETED"
        readers = [self.unread(job) for _ in range(self.FIT + 1)]
        assert [status for _, status in readers] == [200] * self.FIT + [503]
        refused = self.server.request("GET", f"/v2/echo/status/{job}")
        self.assert_refused(refused, 503, job, "in a moment")
        assert int(refused.headers["Retry-After"]) >= 1
        other = self.server.run("trial", {"output": "y" * self.SIZE})
        assert self.server.finished("trial", other)["status"] == "COMPLETED", "another endpoint has a quarter of its own"
        assert self.server.rss() < 300 * MB
        for plain, _ in readers:
            plain.close()
        answer = until(lambda: self.whole(job), "the memory is free again", HANG)
        assert len(answer["output"]["x"]) == self.SIZE

    def whole(self, job):
        answer = self.server.request("GET", f"/v2/echo/status/{job}")
        return answer.json() if answer.status == 200 else None

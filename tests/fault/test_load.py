"""The load proof: many jobs, many waiting callers, many large bodies. README.md says what each part shows."""

import json
import os
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import BUILD, HttpTest, until  # noqa: E402
from large_callers import LargeCallers  # noqa: E402
from latencies import Latencies  # noqa: E402
from process_watch import memory, threads  # noqa: E402
from waiting_callers import WaitingCallers, allow_descriptors  # noqa: E402

MB = 1 << 20
LOAD_CLIENT = os.path.join(BUILD, "tests", "fault_load_client")


class ManyJobsTest(HttpTest):
    JOBS = int(os.environ.get("JOBQ_LOAD_JOBS", "100000"))
    CONNECTIONS = 64

    def test_every_job_ends_with_its_own_output(self):
        """100,000 jobs over 64 connections, each with an input of its own, on the durable storage."""
        server = self.own_server(endpoint__echo__workersMax=64)
        before = server.health("echo")["jobs"]
        client = subprocess.run([LOAD_CLIENT, str(server.address[1]), server.key, "echo", str(self.CONNECTIONS),
                                 str(self.JOBS)], capture_output=True, text=True, check=False, timeout=220)
        self.assertEqual(client.returncode, 0, client.stderr)
        seen = json.loads(client.stdout)
        print(f"{self.JOBS} jobs over {self.CONNECTIONS} connections in {seen['seconds']:.1f} s, "
              f"{self.JOBS / seen['seconds']:.0f} a second; {seen['askedAgain']} were not finished when asked for")
        self.assertEqual(seen["right"], self.JOBS)
        self.assertEqual(server.quiet("echo"), {**before, "completed": before["completed"] + self.JOBS})


class CrowdedEndpoints(WaitingCallers):
    """Five endpoints with 400 waiting callers each: three kinds of waiting, and how each is ended."""

    EACH = 400
    IN_LINE = ("line1", "line2", "line3")  # one worker, which a long job keeps: /runsync behind it
    SETTINGS = {"endpoint.busy.image": "plugin/trial", "endpoint.busy.workersMax": str(EACH), "server.drain": "1s"}
    for _name in IN_LINE:
        SETTINGS.update({f"endpoint.{_name}.image": "plugin/trial", f"endpoint.{_name}.workersMax": "1"})
    LONG = {"sleepMs": 600000}

    def __init__(self, server):
        super().__init__(server)
        self.jobs = []  # (endpoint, id): to be cancelled in the end
        for endpoint in self.IN_LINE:
            self.jobs.append((endpoint, server.run(endpoint, self.LONG)))
            for n in range(self.EACH):
                self.call("POST", f"/v2/{endpoint}/runsync?wait=300000", {"input": {"output": f"{endpoint} {n}"}})
        for endpoint in ("busy", "parked"):  # 400 that run, 400 that nobody will run
            for _ in range(self.EACH):
                self.jobs.append((endpoint, server.run(endpoint, self.LONG)))
                self.call("GET", f"/v2/{endpoint}/status-sync/{self.jobs[-1][1]}?wait=300000")


class WaitingCallersTest(HttpTest):
    """5 endpoints x 400 waiting callers: whoever does not wait must not notice them."""

    ALL = 5 * CrowdedEndpoints.EACH
    ROUNDS = 400
    LONGEST_P99 = 1.0

    def crowd(self, **settings):
        if not allow_descriptors(3 * self.ALL):
            self.skipTest(f"{self.ALL} callers and their server need more descriptors than this machine allows")
        self.own_server(**{**CrowdedEndpoints.SETTINGS, **settings})
        callers = CrowdedEndpoints(self.server)
        self.addCleanup(callers.close)
        until(lambda: self.server.health("busy")["workers"]["running"] == CrowdedEndpoints.EACH, "400 jobs run", 30)
        return callers

    def probe(self, places_left):
        """One caller beside the crowd who waits for nothing but the jobs of an idle endpoint. Every call is a 200."""
        times, api = Latencies(), self.server
        door = api.connect()
        self.addCleanup(door.close)

        def ask(name, method, path, body=None):
            with times.of(name):
                reply = api.request(method, path, body, connection=door)
            return self.assert_job(reply)

        def finished(endpoint, job):
            """Asked for again and again, because there may be no place to wait left."""
            end = time.monotonic() + self.LONGEST_P99
            while True:
                answer = ask("/status", "GET", f"/v2/{endpoint}/status/{job}")
                if answer["status"] not in ("IN_QUEUE", "IN_PROGRESS"):
                    return answer
                self.assertLess(time.monotonic(), end, answer)

        for n in range(self.ROUNDS):
            job = ask("/run", "POST", "/v2/echo/run", {"input": {"n": n}})["id"]
            with times.of("run to finished"):
                self.assertEqual(finished("echo", job)["output"], {"n": n})
            answer = ask("/runsync", "POST", "/v2/echo/runsync", {"input": {"n": n}})
            self.assertEqual(finished("echo", answer["id"])["output"], {"n": n})
            if places_left:
                self.assertEqual(answer["status"], "COMPLETED")
            ask("/health, crowded", "GET", f"/v2/{CrowdedEndpoints.IN_LINE[n % 3]}/health")
            ask("/health", "GET", "/v2/echo/health")
            job = ask("/run, crowded", "POST", "/v2/parked/run", {"input": {}})["id"]
            self.assertEqual(ask("/cancel", "POST", f"/v2/parked/cancel/{job}")["status"], "CANCELLED")
            if n % 4 == 0:
                failed = finished("trial", api.run("trial", {"fail": "no"}))["id"]
                self.assertEqual(ask("/retry", "POST", f"/v2/trial/retry/{failed}")["status"], "IN_QUEUE")
        return times

    def release(self, callers):
        """Ends every wait, and returns how long the /cancel calls took."""
        times, door = Latencies(), self.server.connect()
        self.addCleanup(door.close)
        for endpoint, job in callers.jobs:
            with times.of("/cancel, waited for"):
                reply = self.server.request("POST", f"/v2/{endpoint}/cancel/{job}", connection=door)
            self.assertEqual(self.assert_job(reply)["status"], "CANCELLED")
            callers.collect(0)
        callers.collect(60)
        return times

    def check_answers(self, callers, answers):
        """Each waiter of a line has its own output, each of a cancelled job knows that."""
        for number, status, job in answers:
            self.assertEqual(status, 200, job)
            place, n = divmod(number, CrowdedEndpoints.EACH)
            if place < 3:
                self.assertEqual((job["status"], job["output"]),
                                 ("COMPLETED", f"{CrowdedEndpoints.IN_LINE[place]} {n}"))
            else:
                wanted = callers.jobs[3 + number - 3 * CrowdedEndpoints.EACH][1]
                self.assertEqual((job["status"], job["id"]), ("CANCELLED", wanted))

    def test_all_wait_and_nobody_starves(self):
        """With server.threads for all of them, 2,000 wait, and the calls that never wait take no longer than ever."""
        callers = self.crowd(server__threads=3000)
        until(lambda: threads(self.server.process.pid) > self.ALL, "all callers are being served")
        times = self.probe(places_left=True)
        self.assertEqual(callers.collect(0), [], "nobody was answered before his job ended")
        print(f"beside {self.ALL} waiting callers ({threads(self.server.process.pid)} threads, "
              f"{memory(self.server.process.pid) >> 20} MB):\n{times.table()}")
        released = self.release(callers)
        print(released.table())
        self.assertEqual(len(callers.answers), self.ALL)
        self.check_answers(callers, callers.answers)
        for measured in (times, released):
            self.assertLessEqual(measured.worst(0.99)[1], self.LONGEST_P99, measured.worst(0.99))

    def test_beyond_the_places_nobody_waits_and_nobody_starves(self):
        """README, The door: server.threads - 512 may wait; a waiting call beyond that answers its present state."""
        callers = self.crowd()
        places = 2048 - 512
        callers.collect(30, self.ALL - places)
        times = self.probe(places_left=False)
        at_once = list(callers.collect(0))
        print(f"beside {places} waiting callers (default server.threads), {len(at_once)} were answered at once:\n"
              f"{times.table()}")
        self.assertEqual(len(at_once), self.ALL - places)
        for _, status, job in at_once:
            self.assertEqual(status, 200, job)
            self.assertIn(job["status"], ("IN_QUEUE", "IN_PROGRESS"))
        self.release(callers)
        self.assertEqual(len(callers.answers), self.ALL)
        self.check_answers(callers, callers.answers[len(at_once):])
        self.assertLessEqual(times.worst(0.99)[1], self.LONGEST_P99, times.worst(0.99))


class LargeBodiesTest(HttpTest):
    """400 callers with 20 MB bodies at once: the server's memory stays within server.bodyMemory + 1 GB."""

    CALLERS = 400
    SIZE = 20 * MB
    BODY_MEMORY = int(os.environ.get("JOBQ_LOAD_BODY_MEMORY_MB", "200"))
    WHOLE = int(os.environ.get("JOBQ_LOAD_WHOLE_BODIES", "100"))
    DEADLINE = 200

    def test_memory_stays_within_its_bound(self):
        """Bodies over 1 MB share server.bodyMemory; who finds none reads 503 with Retry-After, and gets in later."""
        server = self.own_server(server__bodyMemory=f"{self.BODY_MEMORY}MB")
        every = max(1, self.CALLERS // self.WHOLE)
        whole = range(0, every * self.WHOLE, every)
        # Every eighth of them gets all his 20 MB back, the others' jobs have a small output.
        crowd = LargeCallers(server, self.CALLERS, self.SIZE,
                             endpoint_of=lambda n: "echo" if n // every % 8 == 0 else "trial",
                             cut=lambda n: n not in whole)
        start = time.monotonic()
        crowd.run(self.DEADLINE)
        peak = memory(server.process.pid, "VmHWM")
        print(f"{self.CALLERS} callers with {self.SIZE // MB} MB, server.bodyMemory {self.BODY_MEMORY} MB: "
              f"{len(crowd.done)} jobs done and {len(crowd.left)} callers gone in {time.monotonic() - start:.0f} s, "
              f"{crowd.refusals} times 503, {crowd.sent / MB:.0f} MB sent; at most {peak // MB} MB resident")
        self.assertEqual(crowd.faults, [])
        self.assertEqual(len(crowd.done), len(whole))
        self.assertEqual(len(crowd.left), self.CALLERS - len(whole))
        self.assertLessEqual(peak, self.BODY_MEMORY * MB + 1024 * MB)



class LargeAnswersTest(HttpTest):
    SIZE = 9 * MB
    FIT = 56  # into 512 MB

    def unread(self, server, job):
        """A connection that has asked for the job and reads nothing of the answer but its status."""
        plain = socket.socket()
        self.addCleanup(plain.close)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(server.address)
        plain.sendall(f"GET /v2/echo/status/{job} HTTP/1.1\r\nHost: x\r\nAuthorization: {server.key}\r\n\r\n".encode())
        return plain, int(plain.recv(12).split()[1])

    def test_answers_that_nobody_reads_have_a_bound(self):
        """decisions.md, Answers: 503 with Retry-After; a result that was refused is there a moment later."""
        server = self.own_server()
        job = server.run("echo", {"x": "y" * self.SIZE})
        self.assertEqual(server.finished("echo", job)["status"], "COMPLETED")
        readers = [self.unread(server, job) for _ in range(self.FIT + 1)]
        self.assertEqual([status for _, status in readers], [200] * self.FIT + [503])
        refused = server.request("GET", f"/v2/echo/status/{job}")
        self.assert_refused(refused, 503, job, "in a moment")
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
        self.assertLess(server.rss(), 700 * MB)
        for plain, _ in readers:
            plain.close()
        answer = until(lambda: self.whole(server, job), "the memory is free again")
        self.assertEqual(len(answer["output"]["x"]), self.SIZE)

    @staticmethod
    def whole(server, job):
        reply = server.request("GET", f"/v2/echo/status/{job}")
        return reply.json() if reply.status == 200 else None


if __name__ == "__main__":
    unittest.main()

"""HTTP transport under strain: shutdown, departing callers, no free slots, no descriptors, no memory, slow clients,
TLS."""

import collections
import json
import os
import resource
import select
import socket
import statistics
import threading
import time

import pytest

from held_jobs import HeldJobs
from http_case import HttpTest
from jobq_server import Server, join, until
from pace import HANG, judge_pace
from process_watch import is_asleep
from wire import GET, MB, all_but_one_wait, all_connections, connect, ends, is_held, post, unread


class ShutdownTest(HttpTest):
    """Memory and threads are bounded under any client behaviour."""

    def test_idle_connections_are_closed_at_once(self, own_server):
        server = own_server(server__drain="10m")
        idle = [connect(server) for _ in range(20)]
        used = connect(server)
        used.sendall(GET)
        used.recv(1000)
        server.terminate()
        for plain in [*idle, used]:
            with plain:
                assert ends(plain) == b""
        assert server.ended() == 0, "within 90 s, long before the end of the drain"

    def test_a_request_in_flight_is_answered_and_told_to_go(self, own_server):
        held = self.at_end.enter_context(HeldJobs())
        server = own_server(**held.settings, server__drain="60s")
        with connect(server) as plain:
            body = json.dumps({"input": held.input("done")}).encode()
            plain.sendall(post(server, "/v2/held/runsync", len(body), body=body))
            until(lambda: server.health("held")["jobs"]["inProgress"], "the job runs")
            server.terminate()
            until(lambda: server.request("GET", "/readyz", key=None).status == 503, "the server drains")
            held.release()
            answer = ends(plain)
        assert b" 200 OK\r\n" in answer
        assert b"\r\nConnection: close\r\n" in answer
        assert b'"output":"done"' in answer
        assert server.ended() == 0

    def refuses_callers(self):
        with socket.socket() as newcomer:
            return newcomer.connect_ex(self.server.address) != 0

    def test_clients_holding_connections(self, own_server):
        """Half a head, half a body, an unread answer, a byte now and then: no such client holds the server."""
        server = self.server = own_server(server__drain="4s")
        half_head, half_body, drip = connect(server), connect(server), connect(server)
        half_head.sendall(GET[:20])
        half_body.sendall(post(server, "/v2/echo/run", 5000, body=b"{"))
        deaf = socket.socket()
        deaf.settimeout(HANG)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(server.address)
        large = b'{"input":{"a":"%s"}}' % (b"x" * (19 * MB))
        deaf.sendall(post(server, "/v2/echo/runsync", len(large), body=large))
        until(lambda: server.health("echo")["jobs"]["completed"], "the large job has run")
        drip.sendall(post(server, "/v2/echo/run", 5000))
        over = threading.Event()

        def dripping():
            while not over.wait(0.1):
                try:
                    drip.sendall(b" ")
                except OSError:
                    return

        dripper = threading.Thread(target=dripping)
        dripper.start()
        start = time.monotonic()
        try:
            server.terminate()
            until(self.refuses_callers, "newcomers are refused")
            assert server.ended() == 0, "it ends, though nobody lets go"
            took = time.monotonic() - start
            assert took >= 3.9, "the clients held nothing: this proves nothing"
            judge_pace("an end with a drain of 4 s", took, 7)
        finally:
            over.set()
            join("the last byte of the dripping client", dripper)
            for plain in (half_head, half_body, drip, deaf):
                plain.close()

    def test_one_port_one_server(self, own_server):
        """core/http/transport/server.cpp: a second server cannot listen on the port of another by accident."""
        server = own_server()
        other = self.at_end.enter_context(Server(start=False, server__port=server.address[1]))
        assert not other.start_unless_it_dies()
        assert "cannot listen on" in other.log()


class PlacesTest(HttpTest):
    """core/http/API.md, "Places for waiting callers": at most server.waiting callers wait; beyond, a waiting call answers
    the present state."""

    @pytest.fixture(autouse=True)
    def eight_places(self, question, own_server):
        wide = {f"endpoint.wide{n}.image": "plugin/echo" for n in range(4)}
        self.server = own_server(server__waiting="8", server__threads="4", **wide)

    def wait_in_queue(self, operation="runsync"):
        """A caller that waits for five minutes, far longer than any wait of these tests, or is answered at once."""
        if operation == "runsync":
            body = b'{"input":{}}'
            request = post(self.server, "/v2/parked/runsync?wait=300000", len(body), body=body)
        else:
            job = self.server.run("parked", {})
            request = post(self.server, f"/v2/parked/status-sync/{job}?wait=300000", 0)
        plain = connect(self.server)
        plain.sendall(request)
        return plain

    def test_full_places_answer_and_a_leaver_makes_room(self):
        waiting = [self.wait_in_queue(("runsync", "status-sync")[n % 2]) for n in range(9)]
        waiting = all_but_one_wait(waiting)
        job = self.server.run("parked", {})
        for answer in (self.server.request("POST", "/v2/parked/run", {"input": {}}),
                       self.server.request("GET", f"/v2/parked/status/{job}"),
                       self.server.request("GET", "/v2/parked/health"), self.server.request("GET", "/healthz")):
            assert answer.status == 200
        freed = []
        for _ in range(20):
            before = self.server.health("parked")["jobs"]["inQueue"]
            leaver = waiting.pop(0)
            ends = {leaver.getsockname()[1], leaver.getpeername()[1]}
            leaver.close()
            start = time.monotonic()
            until(lambda ends=ends: not is_held(ends), "the server has closed the connection of the one that left")
            freed.append(time.monotonic() - start)
            # One of two callers finds the free place. An answer to the other as well is seen in the next round.
            waiting = all_but_one_wait([*waiting, self.wait_in_queue(), self.wait_in_queue()])
            assert self.server.health("parked")["jobs"]["inQueue"] >= before, "its job goes on"
        all_but_one_wait([*waiting, self.wait_in_queue()])
        for plain in waiting:
            plain.close()
        judge_pace("the median time until a place is free again", statistics.median(freed), 0.1)

    def test_full_places_serve_large_answers_whole(self):
        """core/decisions/http.md: a caller reading at full speed needs no slot."""
        job = self.server.request("POST", "/v2/echo/runsync", b'{"input":{"a":"%s"}}' % (b"x" * (12 * MB))).json()["id"]
        waiting = all_but_one_wait([self.wait_in_queue() for _ in range(9)])
        for _ in range(10):
            answer = self.server.request("GET", f"/v2/echo/status/{job}")
            assert len(answer.json()["output"]["a"]) == 12 * MB
        for plain in waiting:
            plain.close()

    def test_work_goes_to_few_threads(self, own_server):
        """core/http/transport/http_thread_pool.h: threads started for a busy moment stay idle afterwards, so they can
        end."""
        server = self.server = own_server(server__threads="64")

        def many_threads():
            for plain in [self.wait_in_queue() for _ in range(40)]:  # each holds a thread for a moment
                plain.close()
            return len(self.switches(server)) > 24

        until(many_threads, "a busy moment starts threads")
        until(lambda: self.all_rest(server), "their threads rest")
        before = self.switches(server)
        for _ in range(300):  # not /healthz: the reactor thread answers it
            assert server.request("GET", "/v2/parked/health").status == 200
        after = self.switches(server)
        worked = sorted((after[thread] - before.get(thread, 0) for thread in after), reverse=True)
        assert sum(worked[:12]) > 0.6 * sum(worked), "twelve of more than 24 threads did most of the work"

    @staticmethod
    def switches(server):
        """How often each of the threads that serve was put to sleep. A thread that ends between the listing and the
        reading is left out: a thread of the pool that rests for a while ends."""
        folder, found = f"/proc/{server.process.pid}/task", {}
        for thread in os.listdir(folder):
            try:
                with open(f"{folder}/{thread}/status", encoding="ascii") as file:
                    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if status["Name"] == "http":
                found[thread] = int(status["voluntary_ctxt_switches"])
        return found

    def all_rest(self, server):
        before = self.switches(server)
        server.request("GET", "/v2/parked/health")
        return sum(after != before.get(thread) for thread, after in self.switches(server).items()) <= 3

    def test_slow_readers_cannot_hold_all_threads(self):
        """core/decisions/http.md: 128 callers may read slowly, others that read nothing lose their connection for a
        further one, and a caller that reads has its answer whole."""
        # All 141 answers fit into the memory for large ones, of which an endpoint has a quarter, and none into the buffers
        # beneath.
        body = b'{"input":{"a":"%s"}}' % (b"x" * (7 * MB // 2))
        jobs = [f"{name}/status/" + self.server.request("POST", f"/v2/{name}/runsync", body).json()["id"]
                for name in ("wide0", "wide1", "wide2", "wide3", "echo")]
        silent = [self.ask_with_small_buffers(jobs[n % 5]) for n in range(140)]
        readers = [{plain.getsockname()[1], plain.getpeername()[1]} for plain in silent]
        until(lambda: self.established(readers) == 128, "so many hold a place, and the others have lost their connection")
        assert self.server.request("GET", "/v2/parked/health").status == 200
        reading, got = self.ask_with_small_buffers(jobs[0]), bytearray()

        def has_place():
            got.extend(reading.recv(1000))
            return self.established(readers) < 128

        until(has_place, "the caller that reads has the place of another one")
        silent += [self.ask_with_small_buffers(jobs[n % 5]) for n in range(20)]
        while not got.endswith(b'"}}'):
            piece = reading.recv(65536)
            assert piece, f"the answer ends after {len(got)} bytes"
            got += piece
        assert len(got) > 7 * MB // 2

    def ask_with_small_buffers(self, job):
        plain = socket.socket()
        self.at_end.callback(plain.close)
        plain.settimeout(HANG)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(self.server.address)
        plain.sendall(f"GET /v2/{job} HTTP/1.1\r\nHost: jobq\r\n"
                      f"Authorization: {self.server.key}\r\n\r\n".encode())
        return plain

    @staticmethod
    def established(callers):
        """Returns the number of connections held by both sides. A caller without a read does not know of the end of the
        connection. The number may be too small while connections come and go: the system shows its table in parts."""
        sides = collections.Counter(frozenset(ends) for ends, state, _ in all_connections() if state == 1)
        return sum(sides[frozenset(ends)] == 2 for ends in callers)


class ScarcityTest(HttpTest):
    def test_descriptors(self, own_server):
        """RLIMIT_NOFILE is raised at start; connections leave an eighth of it to the files of the server."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))  # inherited by the server
        try:
            server = self.server = own_server()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        with open(f"/proc/{server.process.pid}/limits", encoding="ascii") as file:
            soft, hard = next(line.split()[3:5] for line in file if line.startswith("Max open files"))
        assert soft == hard
        for plain in [connect(server) for _ in range(500)]:
            with plain:
                plain.sendall(GET)
                assert b"200 OK" in plain.recv(1000)
        until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) < 64, "the 500 are gone")
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (128, 128))
        crowd = [connect(server) for _ in range(200)]
        until(lambda: "http.acceptPaused" in server.log(), "connections have all that are theirs")
        until(lambda: is_asleep(server.process.pid, "reactor"), "the reactor sleeps and does not ask again and again")
        crowd[0].sendall(GET)
        assert b"200 OK" in crowd[0].recv(1000), "who is in is served"
        body = b'{"input":{"a":"%s"}}' % (b"x" * 300_000)  # a file in data.dir, as input and as output
        crowd[1].sendall(post(server, "/v2/echo/runsync", len(body), "Connection: close", body=body))
        assert b'"COMPLETED"' in ends(crowd[1])
        for plain in crowd:
            plain.close()
        assert server.request("GET", "/healthz").status == 200

    def test_body_memory(self, own_server):
        """core/http/API.md, "When the answer is 503": bodies over 1 MB draw on server.bodyMemory; without room the
        answer is 503 with Retry-After before reading."""
        server = self.server = own_server(server__bodyMemory="24MB")
        body = b'{"input":{"a":"%s"}}' % (b"x" * (15 * MB))
        with connect(server) as first:
            self.send_most_of(body, first)
            for framing in ({}, {"Transfer-Encoding": "chunked"}):
                parts = iter([body]) if framing else body
                answer = until(lambda p=parts, f=framing: self.refused(p, f), "there is no memory left")
                self.assert_refused(answer, 503, "server.bodyMemory")
                assert int(answer.headers["Retry-After"]) >= 1
            with connect(server) as third:
                third.sendall(post(server, "/v2/echo/runsync", len(body), "Expect: 100-continue"))
                assert b" 503 " in ends(third).split(b"\r\n")[0], "before anything of the body is asked for"
            assert server.request("POST", "/v2/echo/runsync", {"input": {}}).status == 200
            first.sendall(body[11 * MB:])
            assert b"200 OK" in first.recv(100)
        until(lambda: server.request("POST", "/v2/echo/runsync", body).status == 200, "the memory came back")
        with connect(server) as leaver:
            self.send_most_of(body, leaver)
            until(lambda: self.refused(body, {}), "there is no memory left")
        until(lambda: server.request("POST", "/v2/echo/runsync", body).status == 200, "the memory came back")

    def send_most_of(self, body, plain):
        """Sends 11 MB of the body, and waits until the server has read them: read bytes count."""
        plain.sendall(post(self.server, "/v2/echo/runsync", len(body), body=body[:11 * MB]))
        until(lambda: unread(plain) == 0, "the body has come")

    def refused(self, body, headers):
        answer = self.server.request("POST", "/v2/echo/runsync", body, headers, chunked=bool(headers))
        return answer if answer.status == 503 else None


class SlowTest(HttpTest):
    def test_silent_bodies_need_places(self, own_server):
        """core/decisions/http.md: a body that has waited a second needs a place of server.waiting, also when no further
        byte comes; without a free one the answer is 503."""
        places, clients = 4, 10
        self.server = own_server(server__waiting=places)
        silent = [connect(self.server) for _ in range(clients)]
        for plain in silent:
            self.at_end.callback(plain.close)
            plain.sendall(post(self.server, "/v2/echo/runsync", 14, body=b'{"input":'))
        refused = {}

        def note_answers():
            for plain in select.select(silent, [], [], 0)[0]:
                if plain not in refused:
                    refused[plain] = plain.recv(2000)
            return len(refused) >= clients - places

        until(note_answers, "the clients without a place are refused")
        for answer in refused.values():
            assert b" 503 " in answer and b"too many clients wait: the limit is " in answer, answer
        for plain in silent:
            if plain not in refused:
                plain.sendall(b'{}}  ')
                assert b"200 OK" in plain.recv(2000), "a client with a place is served"

    def test_deadlines(self, subtests):
        """Heads have 10 s, idle connections server.keepAlive, bodies 20 s and more
        (core/http/API.md, "Bounds of heads and bodies")."""
        shared, brief = self.server, self.at_end.enter_context(Server(server__keepAlive="1s"))
        results = {}

        def measure(name, plain):
            with plain:
                answer = ends(plain)
            results[name] = (time.monotonic() - start, answer[:12])

        def dripping(name, plain, data):
            def drip():
                for byte in data:
                    try:
                        plain.sendall(bytes([byte]))
                    except OSError:
                        return
                    if over.wait(0.4):
                        return
            threading.Thread(target=drip, daemon=True).start()
            measure(name, plain)

        over = threading.Event()
        start = time.monotonic()  # before the server's clocks start: a late thread shortens no figure
        silent = connect(shared)
        silent.sendall(GET)
        silent.recv(1000)
        half, stalled, head, body = (connect(shared) for _ in range(4))
        half.sendall(GET[:9])
        stalled.sendall(post(shared, "/v2/echo/run", 100, body=b"{"))
        body.sendall(post(shared, "/v2/echo/run", 1000))
        threads = [threading.Thread(target=measure, args=("idle", connect(brief))),
                   threading.Thread(target=measure, args=("half a head", half)),
                   threading.Thread(target=measure, args=("half a body", stalled)),
                   threading.Thread(target=dripping, args=("a dripping head", head, GET * 9)),
                   threading.Thread(target=dripping, args=("a dripping body", body, b"x" * 900))]
        for thread in threads:
            thread.start()
        join("the end of each slow connection", *threads)
        over.set()
        for name, low, high, status in (("idle", 0.9, 3, b""), ("half a head", 9, 13, b"HTTP/1.1 408"),
                                        ("a dripping head", 9, 13, b"HTTP/1.1 408"),
                                        ("half a body", 19, 25, b"HTTP/1.1 408"),
                                        ("a dripping body", 19, 25, b"HTTP/1.1 408")):
            with subtests.test(name):
                took, answer = results[name]
                assert took > low
                judge_pace(f"a connection with {name} is closed", took, high)
                assert answer == status
        with silent:  # 20 s later
            silent.sendall(GET)
            assert b"200 OK" in silent.recv(1000)

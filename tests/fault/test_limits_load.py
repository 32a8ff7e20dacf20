"""Rate limiting under load: 400 callers at once at full speed; places left by callers in every way."""

import contextlib
import itertools
import os
import socket
import struct
import subprocess
import time
from bisect import bisect_left, bisect_right, insort

import pytest
from http_case import HttpTest
from jobq_server import BUILD, SHORT_DRAIN, until
from pace import HANG, judge_pace
from request_stream import RequestStream
from waiting_callers import WaitingCallers, allow_descriptors

LIMITS_CLIENT = os.path.join(BUILD, "tests", "fault_limits_client")
MS = 1_000_000  # the clock of the client counts nanoseconds, the server's (the same clock) whole milliseconds


class Ledger:
    """The answers to 400 callers, judged without any tolerance.

    The server read the clock between a call's send and its receipt, cut the time to whole milliseconds, and may have
    counted the call a little later. A call therefore counted after `sent` - 1 ms and not after `received`. Over the
    limit: the calls with both ends in an interval are more than permitted. Wrongly refused: the calls with either end
    in the interval are fewer than a refusal needs.
    """

    def __init__(self, calls, requests, window_ms):
        self.requests, self.window = requests, window_ms * MS
        self.allowed = sorted((sent, received) for status, sent, received in calls if status == 200)
        self.refused = [(sent, received) for status, sent, received in calls if status == 429]
        self.sends = [sent for sent, _ in self.allowed]
        self.receipts = sorted(received for _, received in self.allowed)

    def _from_each(self):
        """Yields for each allowed call, from the last on: the send time, and the answer times of all calls sent then or
        later."""
        later = []
        for sent, received in reversed(self.allowed):
            insort(later, received)
            yield sent, later

    def most_in_windows(self, windows):
        """The most calls certain to lie within so many windows in a row: less than the length of the windows apart."""
        return max(bisect_right(later, sent + windows * self.window - MS) for sent, later in self._from_each())

    def over_window(self):
        """(windows, calls) for each number of windows with more calls than permitted."""
        span = self.receipts[-1] - self.sends[0]
        most = ((n, self.most_in_windows(n)) for n in range(1, span // self.window + 2))
        return [(n, calls) for n, calls in most if calls > n * self.requests]

    def over_bucket(self):
        """(milliseconds, calls) of each interval with more calls than a full bucket and its refill allow."""
        faults = []
        for sent, later in self._from_each():
            for calls, received in enumerate(later, 1):
                time_ms = -((sent - received) // MS)  # rounded up: the most whole milliseconds between the two instants
                if calls > self.requests + self.requests * time_ms * MS // self.window:
                    faults.append((time_ms, calls))
        return faults

    def refused_by_window_for_nothing(self):
        """Refusals after fewer than `requests` possibly allowed calls within a window."""
        def may_count(sent, received):
            return bisect_right(self.sends, received) - bisect_left(self.receipts, sent - MS - self.window)
        return [call for call in self.refused if may_count(*call) < self.requests]

    def refused_by_bucket_for_nothing(self):
        """Refusals although the bucket certainly had a whole token.

        The bucket has less than a token only if since some moment x the allowed calls exceed the refilled tokens plus
        the size of the bucket less a token. The greatest surplus is at the answer of a call, or now.
        """
        rate = self.requests / self.window
        surplus = list(itertools.accumulate((rate * (r + MS) - n for n, r in enumerate(self.receipts)), max))

        def must_have_had_one(sent, received):
            ended = bisect_right(self.receipts, received)
            since = max(surplus[ended - 1] if ended else float("-inf"), rate * received - ended)
            used = bisect_right(self.sends, received) + since - rate * (sent - MS)
            return used <= self.requests - 1
        return [call for call in self.refused if must_have_had_one(*call)]


class HammeredLimitsTest(HttpTest):
    """400 callers on persistent connections, on /run and /status in turns; each caller calls again upon the answer."""

    CALLERS = 400
    SECONDS = 4
    WINDOW = 500  # milliseconds
    LIMITS = {"run": 200, "status": 150}

    @pytest.fixture
    def server(self, own_server, request):
        """The limiter is the last word of the test's name."""
        if not allow_descriptors(2 * self.CALLERS):
            pytest.skip(f"{self.CALLERS} callers need more descriptors than this machine allows")
        settings = {"limiter": request.node.name.rpartition("_")[2], "limits.enabled": "true", "storage": "memory",
                    **SHORT_DRAIN}
        for name, requests in self.LIMITS.items():
            settings.update({f"limits.{name}.requests": requests, f"limits.{name}.window": f"{self.WINDOW}ms",
                             f"limits.{name}.concurrent": 0})
        return own_server(**settings)

    def hammered(self):
        """A ledger for each operation."""
        server = self.server
        # By /runsync, as every /run counts.
        self.job = server.request("POST", "/v2/parked/runsync?wait=1000", {"input": {}}).json()["id"]
        files = [self.file("run", "POST", "/v2/parked/run", '{"input":{}}'),
                 self.file("status", "GET", f"/v2/parked/status/{self.job}", "")]
        client = subprocess.run([LIMITS_CLIENT, str(server.address[1]), str(self.CALLERS), str(self.SECONDS), *files],
                                capture_output=True, text=True, check=False, timeout=60)
        assert client.returncode == 0, client.stderr
        calls = {name: [] for name in self.LIMITS}
        names = list(self.LIMITS)
        for line in client.stdout.splitlines():
            kind, status, sent, received = map(int, line.split())
            calls[names[kind]].append((status, sent, received))
        assert {status for each in calls.values() for status, _, _ in each} == {200, 429}
        return {name: Ledger(each, self.LIMITS[name], self.WINDOW) for name, each in calls.items()}

    def file(self, name, method, path, body):
        path_of_file = os.path.join(self.server.folder, name)
        with open(path_of_file, "w", encoding="ascii") as file:
            file.write(f"{method} {path} HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer {self.server.key}\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}")
        return path_of_file

    def check_ledgers(self, ledgers, over, for_nothing):
        for name, ledger in ledgers.items():
            longest = max(received - sent for sent, received in ledger.allowed + ledger.refused) / MS
            print(f"/{name}: {len(ledger.allowed)} allowed, {len(ledger.refused)} refused; "
                  f"{ledger.most_in_windows(1)} certainly within {self.WINDOW} ms, limit {ledger.requests}; "
                  f"longest answer {longest:.0f} ms")
            assert len(ledger.refused) > 0, name
            assert over(ledger)[:5] == [], f"{name}: more than the limit were allowed"
            assert for_nothing(ledger)[:5] == [], f"{name}: refused though the limit was not used up"

    def check_not_stuck(self):
        """A window after the storm a fresh caller has the whole limit to himself."""
        quiet = self.server.request("GET", f"/v2/parked/status-sync/{self.job}?wait=1000")  # with a separate bucket
        assert self.assert_job(quiet)["status"] == "IN_QUEUE"
        for name, method, path, body in (("run", "POST", "/v2/parked/run", {"input": {}}),
                                         ("status", "GET", f"/v2/parked/status/{self.job}", None)):
            with RequestStream(self.server) as stream:
                assert set(stream.statuses(method, path, self.LIMITS[name], body)) == {200}, name

    def test_window(self):
        """etc/README.md: with `limiter = window` no window has more than `requests`, and n windows have at most n times
        as many."""
        ledgers = self.hammered()
        self.check_ledgers(ledgers, Ledger.over_window, Ledger.refused_by_window_for_nothing)
        self.check_not_stuck()

    def test_bucket(self):
        """The same by `limiter = bucket`: in any t at most requests + requests * t / window."""
        ledgers = self.hammered()
        self.check_ledgers(ledgers, Ledger.over_bucket, Ledger.refused_by_bucket_for_nothing)
        self.check_not_stuck()


class PlacesTest(HttpTest):
    """400 callers of /runsync for 50 places, with ten ways to leave: no place is lost, no 51st caller gets in."""

    CALLERS = 400
    PLACES = 50
    FREE_AGAIN = 5.0  # seconds: a departed caller is noticed at once, on a machine with time to spare
    WAIT = 20_000  # milliseconds of a wait in vain; fifty callers have to be in before the end of the wait

    @pytest.fixture
    def server(self, own_server):
        if not allow_descriptors(2 * self.CALLERS):
            pytest.skip(f"{self.CALLERS} callers need more descriptors than this machine allows")
        limits = {f"limits.{name}.requests": 1_000_000 for name in ("runsync", "status", "cancel", "purgeQueue")}
        self.longest = 0.0
        return own_server(**{"limits.enabled": "true", "limits.runsync.concurrent": self.PLACES, "storage": "memory",
                             **limits, **SHORT_DRAIN})

    def in_queue(self):
        return self.server.health("parked")["jobs"]["inQueue"]

    def fill(self, wait=300000):
        """50 callers inside; each admitted caller has queued a job, and each other caller has read 429."""
        inside = self.callers()
        before, start = self.in_queue(), time.monotonic()
        while (held := len(inside.open)) < self.PLACES:
            wanted = held + self.callers_of(inside, self.PLACES - held, wait)
            until(lambda: self.settled(inside, before) == wanted, "each is in or refused", HANG)
            assert time.monotonic() - start < HANG, f"waited {HANG:g} s: {len(inside.open)} of {self.PLACES} are free"
        self.longest = max(self.longest, time.monotonic() - start)
        assert self.in_queue() - before == self.PLACES
        return inside

    def callers_of(self, callers, count, wait):
        callers.answers.clear()
        for _ in range(count):
            callers.call("POST", f"/v2/parked/runsync?wait={wait}", {"input": {}})
        return count

    def settled(self, callers, before):
        """How many of the callers' fates are known."""
        callers.collect(0)
        assert {status for _, status, _ in callers.answers} - {429} == set()
        return self.in_queue() - before + len(callers.answers)

    def callers(self):
        return self.at_end.enter_context(contextlib.closing(WaitingCallers(self.server)))

    def check_full(self, inside):
        """All other callers read 429, and no admitted caller is disturbed."""
        others = self.callers()
        self.callers_of(others, self.CALLERS - self.PLACES, 300000)
        others.collect(HANG)
        assert [status for _, status, _ in others.answers] == [429] * (self.CALLERS - self.PLACES)
        inside.collect(0)
        assert len(inside.open) == self.PLACES

    # Ways to leave. Each ends with all 50 gone.

    def answered(self, inside, status):
        answers = inside.answers
        answers.clear()
        inside.collect(HANG)
        assert [got for _, got, _ in answers] == [status] * self.PLACES
        return [job for _, _, job in answers]

    def close(self, inside):
        inside.close()

    def reset(self, inside):
        """RST: sent by the host of a killed program."""
        for plain, _ in inside.open.values():
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        inside.close()

    def half_close(self, inside):
        """core/http/API.md, "Connections": counts as leaving, and is answered."""
        for plain, _ in inside.open.values():
            plain.shutdown(socket.SHUT_WR)
        assert {job["status"] for job in self.answered(inside, 200)} == {"IN_QUEUE"}

    def cancelled(self, inside):
        jobs = self.server.request("GET", "/v2/parked/requests?status=IN_QUEUE&limit=100").json()["requests"]
        for job in jobs:
            self.assert_job(self.server.request("POST", f"/v2/parked/cancel/{job['id']}"))
        assert {job["status"] for job in self.answered(inside, 200)} == {"CANCELLED"}

    def purged(self, inside):
        self.assert_job(self.server.request("POST", "/v2/parked/purge-queue"))
        self.answered(inside, 404)

    def half(self, inside):
        """Some close, some reset, some stay until the jobs are gone."""
        for number, (plain, _) in list(inside.open.items())[::2]:
            if number % 4:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            inside.selector.unregister(plain)
            plain.close()
            del inside.open[number]
        self.assert_job(self.server.request("POST", "/v2/parked/purge-queue"))
        inside.answers.clear()
        inside.collect(HANG)
        assert [status for _, status, _ in inside.answers] == [404] * (self.PLACES // 2)

    def purge(self):
        self.assert_job(self.server.request("POST", "/v2/parked/purge-queue"))

    def senders(self, count):
        """Callers with a complete head and an unfinished body: in (100) or refused (429)."""
        head = (f"POST /v2/parked/runsync HTTP/1.1\r\nHost: jobq\r\nAuthorization: {self.server.key}\r\n"
                "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n").encode()
        inside, refused = [], 0
        for _ in range(count):
            plain = self.server.plug()
            self.at_end.callback(plain.close)
            plain.sendall(head)
            if plain.recv(12) == b"HTTP/1.1 100":
                plain.sendall(b'{"input":')
                inside.append(plain)
            else:
                plain.close()
                refused += 1
        return inside, refused

    def fill_with_senders(self):
        inside, start = [], time.monotonic()
        while len(inside) < self.PLACES:
            inside += self.senders(self.PLACES - len(inside))[0]
            assert time.monotonic() - start < HANG, f"waited {HANG:g} s: {len(inside)} of {self.PLACES} are free"
        self.longest = max(self.longest, time.monotonic() - start)
        more, refused = self.senders(self.CALLERS - self.PLACES)
        assert (len(inside), len(more), refused) == (self.PLACES, 0, self.CALLERS - self.PLACES)
        return inside

    def test_no_place_is_lost(self):
        """core/http/API.md, "Places for waiting callers": 50 of 400 callers are in, 350 read 429; ten rounds, and all
        50 places are usable in the end."""
        for leave in (self.close, self.reset, self.half_close, self.cancelled, self.purged, self.half):
            print(f"they leave: {leave.__name__}", flush=True)
            inside = self.fill()
            self.check_full(inside)
            leave(inside)
            self.purge()
        self.check_senders()
        self.check_half_heads()
        inside = self.fill(wait=self.WAIT)
        assert {job["status"] for job in self.answered(inside, 200)} == {"IN_QUEUE"}, "the wait elapses"
        inside = self.fill()
        self.check_full(inside)
        self.purged(inside)
        print(f"{self.PLACES} places, {self.CALLERS} callers, ten rounds: full again within {self.longest:.2f} s")
        judge_pace(f"{self.PLACES} places free again", self.longest, self.FREE_AGAIN)

    def check_senders(self):
        """Callers leave in the middle of a body."""
        for linger in (None, struct.pack("ii", 1, 0)):
            for plain in self.fill_with_senders():
                if linger:
                    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                plain.close()

    def check_half_heads(self):
        """Half a head takes no place."""
        heads = [self.at_end.enter_context(contextlib.closing(self.server.plug())) for _ in range(self.CALLERS)]
        for plain in heads:
            plain.sendall(b"POST /v2/parked/runsync HTTP/1.1\r\nHost: jo")
        inside = self.fill()
        for plain in heads:
            plain.close()
        self.check_full(inside)
        self.purged(inside)

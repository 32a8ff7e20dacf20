"""Simultaneous callers with different 20 MB bodies. A caller calls again after a 503, when Retry-After has passed.

    crowd = LargeCallers(api, count, size, endpoint_of, cut)
    crowd.run(seconds)      then crowd.done holds the callers with a 200, crowd.faults the faults

A caller with an even number asks first (Expect: 100-continue); a caller with an odd number sends at once, and stops at
an answer before the end of the body. A caller with `cut(n)` leaves in the middle of the body, once the server reads the
body. The bodies are slices of the same block, so 400 bodies need no memory of the test, and answers are hashed on
arrival.
"""

import hashlib
import json
import random
import re
import select
import threading
import time

from jobq_api import join

BLOCK = 24 << 20
STEP = 256 << 10
CRLF = "\r\n"
LONGEST_CALL = 300  # seconds: bounds a hang, and judges no pace


class LargeCallers:
    def __init__(self, api, count, size, endpoint_of, cut):
        self.api, self.size, self.endpoint_of, self.cut = api, size, endpoint_of, cut
        letters = bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=1 << 20))
        self.block = memoryview(letters * (BLOCK >> 20))
        self.lock = threading.Lock()
        self.start = threading.Barrier(count)
        self.over = threading.Event()
        self.done, self.left, self.faults, self.refusals, self.sent = [], [], [], 0, 0
        self.threads = [threading.Thread(target=self._live, args=(n,)) for n in range(count)]

    def run(self, seconds):
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        self.over.set()
        join("the last call of each caller", *self.threads, deadline=2 * LONGEST_CALL)

    def input(self, n):
        """The parts of caller n's input, for a body of exactly `size` bytes."""
        head = b'{"n":%d,"output":{"own":%d},"data":"%d-' % (n, n, n)
        tail = b'"}'
        room = self.size - len(b'{"input":}') - len(head) - len(tail)
        return head, self.block[n * 8191:n * 8191 + room], tail

    def _live(self, n):
        self.start.wait(60)
        dice = random.Random(n)
        while not self.over.is_set():
            try:
                status, pause = self._try(n)
            except (OSError, ValueError, AssertionError) as error:
                status, pause = f"{type(error).__name__} {error}", 0
            with self.lock:
                if status == 503:
                    self.refusals += 1
                elif status in (200, "left"):
                    (self.done if status == 200 else self.left).append(n)
                else:
                    self.faults.append(f"caller {n}: {status}")
            if status != 503:
                return
            self.over.wait(pause * (1 + dice.random() / 2))
        with self.lock:
            self.faults.append(f"caller {n}: not let in before the time was over")

    def _try(self, n):
        """(200, 0), (503, seconds to wait) or ("left", 0)."""
        endpoint = self.endpoint_of(n)
        parts = (b'{"input":', *self.input(n), b"}")
        head = (f"POST /v2/{endpoint}/runsync?wait=300000 HTTP/1.1\r\nHost: jobq\r\nAuthorization: {self.api.key}\r\n"
                f"Content-Length: {self.size}\r\n{'' if n % 2 else 'Expect: 100-continue' + CRLF}\r\n").encode()
        with self.api.plug() as plain:
            plain.settimeout(LONGEST_CALL)
            plain.sendall(head)
            if n % 2 == 0:
                answer = plain.recv(65536)
                # A 503 may come together with the 100, if another body has taken the room in between.
                continued, _, rest = answer.partition(b"\r\n\r\n")
                answer = rest if continued.startswith(b"HTTP/1.1 100 ") else answer
                if answer or not continued:
                    return self._refusal(plain, answer)
            budget = self.size // 2 if self.cut(n) else self.size
            if not self._send(plain, parts, budget):
                return self._refusal(plain, b"")
            return ("left", 0) if self.cut(n) else self._check(plain, n, endpoint)

    def _send(self, plain, parts, budget):
        """Sends the parts and counts the bytes. Returns false if an answer came first."""
        sent = 0
        try:
            for part in parts:
                view = memoryview(part)[:budget - sent]
                for at in range(0, len(view), STEP):
                    if select.select([plain], [], [], 0)[0]:
                        return False
                    plain.sendall(view[at:at + STEP])
                    sent += len(view[at:at + STEP])
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False
        finally:
            with self.lock:
                self.sent += sent

    @staticmethod
    def _refusal(plain, answer):
        while b"\r\n\r\n" not in answer:
            part = plain.recv(65536)
            if not part:
                raise AssertionError(f"cut off after {answer!r}")
            answer += part
        found = re.match(rb"HTTP/1.1 503 .*?\r\nRetry-After: (\d+)\r\n", answer, re.DOTALL)
        if not found:
            raise AssertionError(f"no 503 with Retry-After: {answer[:500]!r}")
        return 503, int(found[1])

    def _check(self, plain, n, endpoint):
        """200 when the job is COMPLETED with the right output; 503 when the last bytes of the body had no room."""
        text = b""
        while b'"output":' not in text:
            part = plain.recv(65536)
            if text.startswith(b"HTTP/1.1 503 ") or part.startswith(b"HTTP/1.1 503 "):
                return self._refusal(plain, text + part)
            if not part or len(text) > 4096:
                raise AssertionError(f"no output: {text[:500]!r}")
            text += part
        head, _, body = text.partition(b"\r\n\r\n")
        before, _, output = body.partition(b'"output":')
        if not head.startswith(b"HTTP/1.1 200 ") or b'"status":"COMPLETED"' not in before:
            raise AssertionError(f"no completed job: {text[:500]!r}")
        left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
        digest, ending = hashlib.sha256(output[:-1]), output[-1:]
        while left > 0:
            part = plain.recv(min(left, 1 << 20))
            if not part:
                raise AssertionError(f"cut off with {left} bytes to come")
            left -= len(part)
            digest.update(ending)
            digest.update(part[:-1])
            ending = part[-1:]
        wanted = hashlib.sha256()
        for part in self.input(n) if endpoint == "echo" else (json.dumps({"own": n}, separators=(",", ":")).encode(),):
            wanted.update(part)
        if ending != b"}" or digest.digest() != wanted.digest():
            raise AssertionError("the output is not its own")
        return 200, 0

"""Thousands of callers waiting for jobs, in a single thread. Each caller has a connection with a single request.

    callers = WaitingCallers(api)
    callers.call("POST", "/v2/slow/runsync?wait=300000", {"input": {}})      (as often as wanted)
    callers.collect(0.0)            takes the available answers, callers.collect(30, 400) waits for 400 in all

The answers lie in callers.answers, as (number of the call, status, JSON).
"""

import json
import resource
import selectors
import time


def allow_descriptors(needed):
    """Raises the process's limit as far as possible. Returns False if the limit stays too low."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard == resource.RLIM_INFINITY or hard >= needed


class WaitingCallers:
    def __init__(self, api):
        self.api = api
        self.selector = selectors.DefaultSelector()
        self.answers = []
        self.calls = 0
        self.open = {}  # number of the call -> (socket, received bytes)

    def call(self, method, path, body=None):
        """Sends a request and returns the number of the call, without waiting for the answer."""
        data = b"" if body is None else json.dumps(body).encode()
        plain = self.api.plug()
        plain.sendall(f"{method} {path} HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer {self.api.key}\r\n"
                      f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        plain.setblocking(False)
        number = self.calls
        self.calls += 1
        self.open[number] = (plain, bytearray())
        self.selector.register(plain, selectors.EVENT_READ, number)
        return number

    def collect(self, seconds, answers=None):
        """Reads until there are `count` answers in all (None: until no caller waits), or the time is over."""
        end = time.monotonic() + seconds
        while self.open and (answers is None or len(self.answers) < answers):
            ready = self.selector.select(max(0.0, end - time.monotonic()))
            for key, _ in ready:
                self._read(key.data)
            if not ready and time.monotonic() >= end:
                break
        return self.answers

    def _read(self, number):
        plain, text = self.open[number]
        part = plain.recv(1 << 20)
        text += part
        head, whole, body = bytes(text).partition(b"\r\n\r\n")
        length = next((int(line.partition(b":")[2]) for line in head.split(b"\r\n")
                       if line.lower().startswith(b"content-length:")), 0)
        if part and not (whole and len(body) >= length):
            return
        self.selector.unregister(plain)
        plain.close()
        del self.open[number]
        if not (whole and len(body) == length):
            raise AssertionError(f"call {number} was cut off after {bytes(text)[:200]!r}")
        self.answers.append((number, int(head.split(b" ")[1]), json.loads(body)))

    def close(self):
        for plain, _ in self.open.values():
            plain.close()
        self.open.clear()
        self.selector.close()

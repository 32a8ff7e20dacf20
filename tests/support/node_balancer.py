"""A load balancer for tests: HTTP/1.1, the nodes in turn, checks by /readyz.

    with Balancer() as balancer:
        balancer.add(node)             # anything with `name` and `address`
        balancer.take_out(node)        # sends no new call to the node, as an operator does before a restart
        balancer.put_back(node)

The rules match a careful configuration of a common balancer:
- A node gets calls after a /readyz that answered 200, until a check gets a different answer or is refused. A check
  comes every 100 ms and may last a second.
- A node that does not answer three checks in a row hangs: the node gets no further calls, and the open calls are cut off.
  (All nodes miss one check while a sync of the database takes a second.) A node that answers 503, or refuses connections,
  keeps the open calls: a node that stops closes the listener before the last calls are answered.
- A call goes to another node if the connection was refused, because the call was not sent. No other call is repeated.
- The balancer answers 502 if a call was sent and not answered whole; without any node, 503 with Retry-After.

Each answer has the field X-Node with the name of the node. Each call has a separate connection to the node.
"""

import contextlib
import socket
import threading

from jobq_api import join

CHECK_EVERY = 0.1  # seconds
CHECK_TIME = 1.0  # seconds: the limit of a check
LONGEST_CALL = 330.0  # seconds: more than the longest wait of the API
MOST_SILENT_CHECKS = 3
READY = b"HTTP/1.1 200 "


class Backend:
    """The balancer's knowledge of a node."""

    def __init__(self, node):
        self.name, self.address = node.name, node.address
        self.is_ready = False
        self.is_out = False  # taken out by an operator
        self.silent_checks = 0  # in a row
        self.calls = set()  # sockets of open calls
        self.cut = set()  # open calls cut off by the balancer
        self.posts = 0  # unanswered calls with the method POST, assigned to the node


class Broken(Exception):
    """A call was sent, and the answer did not come whole."""


def read_head(plain):
    """Returns the bytes of a head with the empty line, and the bytes after the head. The head is empty if the peer has
    closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = plain.recv(65536)
        if not part:
            return b"", data
        data += part
    end = data.index(b"\r\n\r\n") + 4
    return data[:end], data[end:]


def body_length(head):
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def read_body(plain, head, begun):
    length = body_length(head)
    parts, missing = [begun], length - len(begun)
    while missing > 0:
        part = plain.recv(65536)
        if not part:
            raise Broken(f"the last {missing} of {length} bytes are missing")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class Balancer:
    def __init__(self):
        self.refused = 0  # refused connections to nodes: each call then went to another node
        self._changed = threading.Condition()  # guards the backends
        self._backends = []
        self._next = 0
        self._closing = threading.Event()
        self._callers = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def add(self, node):
        """Begins to check the node."""
        backend = Backend(node)
        with self._changed:
            self._backends.append(backend)
        thread = threading.Thread(target=self._check, args=(backend,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def await_ready(self, *nodes, deadline=60.0):
        """Waits until each of the nodes gets calls."""
        names = {node.name for node in nodes}
        with self._changed:
            if not self._changed.wait_for(lambda: names <= self.ready_names(), deadline):
                raise AssertionError(f"{sorted(self.ready_names())} are ready, not {sorted(names)}, within {deadline:g} s")

    def ready_names(self):
        return {backend.name for backend in self._backends if backend.is_ready and not backend.is_out}

    def take_out(self, node, deadline=60.0):
        """Sends the node no new call, and waits until all calls that may change data have been answered."""
        backend = self._set_out(node, True)
        with self._changed:
            if not self._changed.wait_for(lambda: backend.posts == 0, deadline):
                raise AssertionError(f"{backend.posts} calls at {node.name} are not answered within {deadline:g} s")

    def put_back(self, node):
        self._set_out(node, False)

    def _set_out(self, node, is_out):
        with self._changed:
            backend = next(backend for backend in self._backends if backend.name == node.name)
            backend.is_out = is_out
            self._changed.notify_all()
            return backend

    def _check(self, backend):
        while not self._closing.wait(CHECK_EVERY):
            is_silent, is_ready = self._ask_ready(backend)
            with self._changed:
                backend.silent_checks = backend.silent_checks + 1 if is_silent else 0
                hangs = backend.silent_checks >= MOST_SILENT_CHECKS
                if hangs or not is_silent:
                    backend.is_ready = is_ready
                if hangs:
                    backend.cut |= backend.calls
                    for call in backend.calls:
                        with contextlib.suppress(OSError):
                            call.shutdown(socket.SHUT_RDWR)
                self._changed.notify_all()

    @staticmethod
    def _ask_ready(backend):
        """Returns whether the node gives no answer in time, and whether the node is ready."""
        try:
            with socket.create_connection(backend.address, timeout=CHECK_TIME) as plain:
                plain.sendall(b"GET /readyz HTTP/1.1\r\nHost: check\r\nConnection: close\r\n\r\n")
                return False, plain.recv(len(READY)) == READY
        except TimeoutError:
            return True, False
        except OSError:
            return False, False

    def _accept(self):
        while True:
            try:
                caller = self._listener.accept()[0]
            except OSError:
                return
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self._callers.add(caller)
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        with contextlib.suppress(OSError, Broken):
            while True:
                head, rest = read_head(caller)
                if not head:
                    break
                body = read_body(caller, head, rest)
                caller.sendall(self._forward(head[:-2] + b"Connection: close\r\n\r\n" + body))
        with self._changed:
            self._callers.discard(caller)
            self._changed.notify_all()
        caller.close()

    def _forward(self, request):
        """Sends the request to a node. Returns the whole answer."""
        tried, is_post = set(), request.startswith(b"POST")
        while backend := self._choose(tried, is_post):
            tried.add(backend.name)
            try:
                plain = socket.create_connection(backend.address, timeout=CHECK_TIME)
                with plain:
                    return self._exchange(backend, plain, request)
            except OSError:  # the call was not sent
                with self._changed:
                    self.refused += 1
            finally:
                with self._changed:
                    backend.posts -= is_post
                    self._changed.notify_all()
        return answer_of(503, "no node is ready", b"Retry-After: 1\r\n")

    def _exchange(self, backend, plain, request):
        with self._changed:
            backend.calls.add(plain)
        try:
            plain.settimeout(LONGEST_CALL)
            plain.sendall(request)
            head, rest = read_head(plain)
            if not head:
                raise Broken("no answer came")
            return head[:-2] + b"X-Node: " + backend.name.encode() + b"\r\n\r\n" + read_body(plain, head, rest)
        except (OSError, Broken) as error:
            reason = "the balancer has cut the call off" if plain in backend.cut else error
            return answer_of(502, f"the answer of {backend.name} is lost: {reason}", b"")
        finally:
            with self._changed:
                backend.calls.discard(plain)
                backend.cut.discard(plain)

    def _choose(self, tried, is_post):
        with self._changed:
            count = len(self._backends)
            for _ in range(count):
                self._next = (self._next + 1) % count
                backend = self._backends[self._next]
                if backend.is_ready and not backend.is_out and backend.name not in tried:
                    backend.posts += is_post
                    return backend
        return None

    def close(self):
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        join("the end of the balancer's threads", *self._threads)
        with self._changed:
            for caller in self._callers:
                with contextlib.suppress(OSError):
                    caller.shutdown(socket.SHUT_RDWR)
            assert self._changed.wait_for(lambda: not self._callers, 60), "the callers' connections end"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def answer_of(status, sentence, fields):
    body = b'{"error":"' + sentence.replace('"', "'").encode() + b'"}'
    return (f"HTTP/1.1 {status} Balancer\r\nContent-Length: {len(body)}\r\n".encode() + fields + b"\r\n" + body)

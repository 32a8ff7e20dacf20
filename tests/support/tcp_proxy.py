"""A TCP proxy between a node and the database, with the faults of a network.

    with TcpProxy(database.port.address) as proxy:
        proxy.stall("answers")     # `requests`, `answers`, or both: bytes stay in the proxy until heal()
        proxy.heal()
        proxy.lose_commits(1)      # forwards the next COMMIT, swallows the answer, and resets the connection

Each connection has a thread for each direction. Faults take effect at the next piece of bytes; refuse() and reset() take
effect at once.
"""

import contextlib
import socket
import struct
import threading
import time

from jobq_api import join
from reserved_port import ReservedPort

COMMIT = b"\x07\x00\x00\x00\x03COMMIT"  # a whole packet of the protocol: length, number, COM_QUERY, text
DIRECTIONS = ("requests", "answers")
PIECE = 65536  # bytes read at once


class Connection:
    """A connection of a node, and the matching connection to the database."""

    def __init__(self, node, database):
        self.node, self.database = node, database
        self.loses_answer = False  # swallows the next answer, and ends with a reset
        self._last_bytes = socket.SHUT_RDWR  # an orderly end

    def reset(self):
        """Makes the end of both halves a reset, as of a broken network path, and wakes the reading threads."""
        self._last_bytes = socket.SHUT_RD  # without a FIN: the close of the socket sends the reset
        for end in (self.node, self.database):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.end()

    def end(self):
        """Wakes the threads of both directions. Both threads then end."""
        for end in (self.node, self.database):
            with contextlib.suppress(OSError):
                end.shutdown(self._last_bytes)

    def close(self):
        self.node.close()
        self.database.close()


class TcpProxy:
    def __init__(self, target):
        self.target = target
        self.port = ReservedPort()
        self.commits_lost = 0
        self.accepted = 0
        self._changed = threading.Condition()  # guards the fields below
        self._stalled = frozenset()
        self._slice = 0  # bytes; 0 forwards whole pieces
        self._delay = 0.0  # seconds before each piece
        self._commits_to_lose = 0
        self._connections = set()
        self._threads = set()
        self._closing = False
        self._listener = None
        self._accept()

    def _accept(self):
        self._listener = self.port.listen()
        thread = threading.Thread(target=self._serve, args=(self._listener,), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _serve(self, listener):
        while True:
            try:
                node = listener.accept()[0]
            except OSError:
                return
            try:
                database = socket.create_connection(self.target, timeout=60)
            except OSError:
                Connection(node, node).reset()
                node.close()
                continue
            database.settimeout(None)
            connection = Connection(node, database)
            for end in (node, database):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self.accepted += 1
                self._connections.add(connection)
                for direction in DIRECTIONS:
                    thread = threading.Thread(target=self._forward, args=(connection, direction), daemon=True)
                    self._threads.add(thread)
                    thread.start()

    def _forward(self, connection, direction):
        ends = (connection.node, connection.database)
        source, sink = ends if direction == "requests" else ends[::-1]
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                if not self._forward_piece(connection, direction, data, sink):
                    break
        connection.end()  # the end of a direction ends both directions
        with self._changed:
            self._threads.discard(threading.current_thread())
            if connection in self._connections:
                self._connections.discard(connection)
            else:
                connection.close()

    def _forward_piece(self, connection, direction, data, sink):
        """Forwards the bytes under the present fault. Returns false if the connection has ended."""
        with self._changed:
            self._changed.wait_for(lambda: direction not in self._stalled or self._closing, 3600)
            if self._closing:
                return False
            size, delay = self._slice or len(data), self._delay
            if direction == "requests" and data == COMMIT and self._commits_to_lose:
                self._commits_to_lose -= 1
                connection.loses_answer = True
            loses = direction == "answers" and connection.loses_answer
        if loses:
            connection.reset()
            with self._changed:
                self.commits_lost += 1
                self._changed.notify_all()
            return False
        if delay:
            time.sleep(delay)
        for begin in range(0, len(data), size):
            sink.sendall(data[begin:begin + size])
        return True

    def refuse(self):
        """Resets the connections and refuses new connections."""
        listener, self._listener = self._listener, None
        if listener:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.reset()

    def reset(self):
        """Resets the open connections; new connections are served."""
        with self._changed:
            for connection in self._connections:
                connection.reset()

    def stall(self, *directions):
        self._set(_stalled=frozenset(directions or DIRECTIONS))

    def slice(self, size):
        self._set(_slice=size)

    def delay(self, seconds):
        self._set(_delay=seconds)

    def lose_commits(self, count):
        self._set(_commits_to_lose=count)

    def heal(self):
        self._set(_stalled=frozenset(), _slice=0, _delay=0.0, _commits_to_lose=0)
        if self._listener is None:
            self._accept()

    def _set(self, **faults):
        with self._changed:
            for name, fault in faults.items():
                setattr(self, name, fault)
            self._changed.notify_all()

    def close(self):
        self._set(_closing=True)
        self.refuse()
        with self._changed:
            threads = list(self._threads)
        join("the end of the proxy's threads", *threads)
        self.port.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

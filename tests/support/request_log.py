"""A proxy in front of a server, with a list of the method and the path of each request.

    with RequestLog(server) as log:          # clients call log.port.address
        log.wait(10, "/ping/")
        assert log.count("/job-take/") < 3

A request is found at the begin of a piece of bytes: a client that waits for an answer before the next request sends no
other bytes before a request.
"""

import re

from pace import HANG
from tcp_proxy import TcpProxy

REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.1\r\n")


class RequestLog(TcpProxy):
    def __init__(self, server):
        self._requests = []
        super().__init__(server.address)

    def _forward_piece(self, connection, direction, data, sink):
        self.note(direction, data)
        return super()._forward_piece(connection, direction, data, sink)

    def note(self, direction, data):
        """Notes the request at the begin of a piece of bytes."""
        if direction == "requests" and (request := REQUEST.match(data)):
            with self._changed:
                self._requests.append(b" ".join(request.groups()).decode())
                self._changed.notify_all()

    def requests(self, part=""):
        """Returns the requests so far that contain `part`, each as "GET /path"."""
        with self._changed:
            return [request for request in self._requests if part in request]

    def count(self, part=""):
        return len(self.requests(part))

    def wait(self, count, part):
        """Returns once there are `count` requests that contain `part`."""
        with self._changed:
            if not self._changed.wait_for(lambda: sum(part in request for request in self._requests) >= count, HANG):
                raise AssertionError(f"fewer than {count} requests with {part} within {HANG:g} s")

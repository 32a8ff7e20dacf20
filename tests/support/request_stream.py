"""Many requests in a row on a keep-alive connection, sent without waiting for each answer. Tests of limits of thousands
need the speed.

    with RequestStream(api) as stream:
        statuses = stream.statuses("GET", "/v2/echo/health", 2000)

The server answers the requests in order, so the stream counts as a single fast caller.
"""

import json

from keep_alive import KeepAlive

BATCH = 50  # requests: the answers fit into the socket's buffers, so neither side waits for the other to read


class RequestStream(KeepAlive):
    def statuses(self, method, path, count, body=None, headers=None):
        """The status of each answer."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: jobq", f"Authorization: Bearer {self.key}",
                 *(f"{name}: {value}" for name, value in (headers or {}).items())]
        if method != "GET":
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        request = "\r\n".join([*lines, "", ""]).encode() + data
        statuses = []
        while len(statuses) < count:
            batch = min(BATCH, count - len(statuses))
            self.plain.sendall(request * batch)
            statuses += [self.read(f"{method} {path}")[0] for _ in range(batch)]
        return statuses

"""A crowd of tiresome clients in a single process: idle clients, clients with a slow head, clients with a slow body.

    python3 crowd.py HOST PORT KEY IDLE SLOW_HEADS SLOW_BODIES

Prints `ready` once all clients are connected and have begun, then sends a byte each half second on each slow
connection. Prints `closed` once the server has closed all slow connections, or HANG seconds later. Ends at a line on
standard input, at the latest after HANG further seconds, and prints the results as JSON: the number of connections
closed by the server and the seconds of the first and the last close, for each kind, and the number of idle connections
that still answer.
"""

import json
import resource
import select
import socket
import sys
import time

from pace import HANG

STEP = 0.5


def main():
    host, port, key = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    counts = dict(zip(("idle", "head", "body"), map(int, sys.argv[4:7])))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    head = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\nX-Slow: "
    body = (f"POST /v2/echo/run HTTP/1.1\r\nHost: jobq\r\nAuthorization: {key}\r\n"
            "Content-Length: 1000000\r\n\r\n").encode()
    poll = select.epoll()
    crowd, born, ended = {}, {}, {"idle": [], "head": [], "body": []}
    for kind, count in counts.items():
        for _ in range(count):
            begun = time.monotonic()  # before the server's clock starts: a late process shortens no figure
            plain = socket.create_connection((host, port), timeout=HANG)
            plain.sendall({"idle": b"", "head": head, "body": body}[kind])
            plain.setblocking(False)
            crowd[plain.fileno()] = (kind, plain)
            born[plain.fileno()] = begun
            poll.register(plain.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
    poll.register(sys.stdin.fileno(), select.EPOLLIN)
    print("ready", flush=True)
    start = time.monotonic()
    next_drip = start
    slow = counts["head"] + counts["body"]
    announced = False
    while time.monotonic() < start + 2 * HANG:
        if not announced and (len(ended["head"]) + len(ended["body"]) == slow or time.monotonic() > start + HANG):
            print("closed", flush=True)
            announced = True
        over = False
        for number, _ in poll.poll(max(0.0, next_drip - time.monotonic())):
            if number == sys.stdin.fileno():
                over = True
                continue
            kind, plain = crowd.pop(number)
            poll.unregister(number)
            plain.close()
            ended[kind].append(time.monotonic() - born[number])
        if over:
            break
        if time.monotonic() >= next_drip:
            next_drip += STEP
            for kind, plain in crowd.values():
                if kind != "idle":
                    try:
                        plain.send(b"x")
                    except OSError:
                        pass
    alive = 0
    for kind, plain in crowd.values():
        if kind == "idle":
            plain.settimeout(HANG)
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: jobq\r\n\r\n")
            alive += plain.recv(1000).startswith(b"HTTP/1.1 200")
    kinds = {kind: {"closed": len(times), "first": min(times, default=0), "last": max(times, default=0)}
             for kind, times in ended.items()}
    print(json.dumps({"alive": alive, **kinds}))


main()

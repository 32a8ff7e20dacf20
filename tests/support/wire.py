"""Plain sockets to a server: requests as bytes, and all bytes until the server closes."""

import socket
import ssl

from jobq_api import REPLY_DEADLINE, until

MB = 1024 * 1024
GET = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\n\r\n"


def connect(server):
    return socket.create_connection(server.address, timeout=REPLY_DEADLINE)


def post(server, path, length, *fields, body=b""):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: jobq", f"Authorization: {server.key}",
                        f"Content-Length: {length}", *fields, "", ""]).encode() + body


def ends(plain):
    """Returns all further bytes until the server has closed."""
    got = b""
    try:
        while part := plain.recv(65536):
            got += part
    except ConnectionError:
        pass
    return got


def answer_so_far(plain):
    """Returns the received bytes of a plain or TLS connection, without waiting, or None without bytes. TLS has
    additional messages, so a readable socket may have no answer yet."""
    plain.setblocking(False)
    try:
        return plain.recv(65536)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    finally:
        plain.settimeout(REPLY_DEADLINE)


def all_but_one_wait(callers):
    """The callers wait for a parked job. Expects an answer to a single caller that has found no place. Returns all
    other callers: each holds a place."""
    def answers():
        seen = ((plain, answer_so_far(plain)) for plain in callers)
        return {plain: answer for plain, answer in seen if answer is not None}

    answered = until(answers, "one caller has no place")
    assert len(answered) == 1, answered
    for plain, answer in answered.items():
        plain.close()
        assert b" 200 OK\r\n" in answer
        assert b'"status":"IN_QUEUE"' in answer
    return [plain for plain in callers if plain not in answered]


def all_connections():
    """Yields the sides of all connections of the machine, at a single moment: the two ports, the state and the queued
    bytes of each side."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        for row in list(table)[1:]:
            _, local, remote, state, queues = row.split()[:5]
            ends = {int(local.split(":")[1], 16), int(remote.split(":")[1], 16)}
            yield ends, int(state, 16), sum(int(queue, 16) for queue in queues.split(":"))


def connections(ends):
    """Yields the sides of a connection of the machine, named by the two ports: the state and the queued bytes of each
    side."""
    return ((state, queued) for found, state, queued in all_connections() if found == ends)


def unread(plain):
    """Returns the number of bytes of a connection that the system holds on both sides: sent, and not read yet."""
    return sum(queued for _, queued in connections({plain.getsockname()[1], plain.getpeername()[1]}))


def is_held(ends):
    """Returns whether the server still holds a connection closed by the client: established, or waiting for the
    server's close."""
    return any(state in (1, 8) for state, _ in connections(ends))

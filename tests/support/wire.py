"""Plain sockets to a server: requests as bytes, and all that comes until the server closes."""

import socket

from jobq_api import REPLY_DEADLINE

MB = 1024 * 1024
GET = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\n\r\n"


def connect(server):
    return socket.create_connection(server.address, timeout=REPLY_DEADLINE)


def post(server, path, length, *fields, body=b""):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: jobq", f"Authorization: {server.key}",
                        f"Content-Length: {length}", *fields, "", ""]).encode() + body


def ends(plain):
    """All that still comes until the server has closed."""
    got = b""
    try:
        while part := plain.recv(65536):
            got += part
    except ConnectionError:
        pass
    return got

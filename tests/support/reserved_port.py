"""A port of 127.0.0.1 that belongs to a test, also while the server at the port is down.

The socket of the reservation is bound and never listens. With SO_REUSEADDR on both sockets, Linux lets a server bind the
port too, and refuses connections while no server listens. No other program gets the port meanwhile.
"""

import socket


class ReservedPort:
    def __init__(self):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = self._socket.getsockname()[1]

    @property
    def address(self):
        return "127.0.0.1", self.number

    def listen(self):
        """Returns a listening socket on the port."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(self.address)
        listener.listen(512)
        return listener

    def close(self):
        self._socket.close()

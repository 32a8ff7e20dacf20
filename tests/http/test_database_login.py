"""A program at the address of the database learns neither the password nor a file from a node without TLS."""

import os
import socket
import struct
import subprocess
import threading

import pytest

from jobq_server import JOBQCTL, join

PASSWORD = "the password of the database"
CAPABILITIES = 0x000FF7FF & ~0x0820  # of a server of MySQL, without TLS and compression
LOCAL_FILES = 0x80  # the capability of a client that sends files of its host
OK_PACKET = b"\0\0\0\2\0\0\0"


class FakeDatabase:
    """Greets a client like a database server, and then sends the packets of `script`, each after a packet of the client.
    `received` has the bytes of the client."""

    def __init__(self, script):
        self.script, self.received = script, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(30)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    @property
    def port(self):
        return self.listener.getsockname()[1]

    def serve(self):
        try:
            with self.listener.accept()[0] as client:
                client.settimeout(30)
                greeting = (b"\x0a8.0.30\0" + struct.pack("<I", 1) + b"a" * 8 + b"\0" + struct.pack("<H", CAPABILITIES & 0xFFFF)
                            + b"\x2d" + struct.pack("<HHB", 2, CAPABILITIES >> 16, 21) + b"\0" * 10 + b"b" * 12 + b"\0"
                            + b"mysql_native_password\0")
                self.send(client, greeting, 0)
                self.receive(client)
                for packet in self.script:
                    self.send(client, packet, self.number + 1)
                    self.receive(client)
        except OSError:
            pass

    def send(self, client, payload, number):
        client.sendall(struct.pack("<I", len(payload))[:3] + bytes([number]) + payload)

    def receive(self, client):
        head = client.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            raise OSError("the client has left")
        self.number = head[3]
        self.received += client.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        join("the fake database ends", self.thread)


def probe(database, *settings):
    arguments = [word for setting in (f"storage.mysql.port={database.port}", f"storage.mysql.password={PASSWORD}", *settings)
                 for word in ("--set", setting)]
    done = subprocess.run([JOBQCTL, "storage", "probe", "--config", "etc/cluster.properties", *arguments],
                          capture_output=True, text=True, timeout=60, check=False,
                          cwd=os.path.join(os.path.dirname(__file__), "../.."))
    return done.stdout + done.stderr


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog", "sha256_password"])
def test_the_password_is_not_sent_to_whatever_answers(plugin):
    with FakeDatabase([b"\xfe" + plugin.encode() + b"\0Password: \0"]) as database:
        said = probe(database)
    assert PASSWORD.encode() not in database.received
    assert "set storage.mysql.tls" in said


def test_no_file_of_the_host_is_sent(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a file of the host")
    with FakeDatabase([OK_PACKET, b"\xfb" + os.fsencode(secret)]) as database:
        said = probe(database)
    assert b"a file of the host" not in database.received
    assert "SET SESSION" in database.received.decode(errors="replace"), said
    offers, = struct.unpack_from("<I", database.received)
    assert not offers & LOCAL_FILES, "the node tells that it sends files"

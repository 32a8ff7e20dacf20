"""jobqctl backup: the place of the copy, the required scope, and the files left after a failure."""

import contextlib
import os
import socket
import sqlite3
import stat
import threading

import pytest

from http_case import HttpTest
from jobq_server import until
from jobqctl_case import NOWHERE, REFUSED, UNREACHABLE, USAGE, JobqctlTest

PATH = "/v1/backup"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@contextlib.contextmanager
def impostor(answer):
    """A server for a single call: sends the bytes of `answer`, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            door, _ = listener.accept()
            with door:
                door.recv(65536)
                door.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(60)  # s
        assert not thread.is_alive(), "jobqctl did not call"


class BackupCommandTest(JobqctlTest):
    @pytest.fixture(autouse=True)
    def folders(self, tmp_path):
        self.folder = str(tmp_path)
        self.there = os.path.join(self.folder, "new", "backup")

    def test_the_copy(self):
        """A database of mode 0600, in a new directory of mode 0700, and no other file."""
        job = self.server.run("parked", {"text": "kept"})
        text = self.table("backup", self.there)
        assert os.listdir(self.there) == ["jobq.db"]
        file = os.path.join(self.there, "jobq.db")
        assert (mode(self.there), mode(file)) == (0o700, 0o600)
        assert file in text and str(os.path.getsize(file)) in text
        assert "secret.key" in text
        with contextlib.closing(sqlite3.connect(file)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert database.execute("SELECT count(*) FROM job WHERE id = ?", (job,)).fetchone() == (1,)

    def test_json(self):
        told = self.json("backup", self.there)
        file = os.path.join(self.there, "jobq.db")
        assert told == {"file": file, "bytes": os.path.getsize(file)}

    def test_a_directory_with_an_earlier_copy(self):
        """Neither an older copy nor a server's own data is overwritten, and no request is sent."""
        for name in ("jobq.db", "jobq.db-wal"):
            folder = os.path.join(self.folder, name + ".there")
            os.mkdir(folder)
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write("precious")
            assert name in self.sentence("backup", folder, code=USAGE, JOBQ_URL=NOWHERE)
            with open(os.path.join(folder, name), encoding="ascii") as file:
                assert file.read() == "precious"

    def test_an_invalid_directory(self):
        file = os.path.join(self.folder, "file")
        with open(file, "w", encoding="ascii"):
            pass
        for folder in (file, os.path.join(file, "below")):
            assert folder in self.sentence("backup", folder, code=USAGE, JOBQ_URL=NOWHERE)

    def test_a_refusal_leaves_no_file(self):
        key = self.server.new_key("client")["key"]
        assert "API key" in self.sentence("backup", self.there, code=REFUSED, JOBQ_KEY=key)
        assert os.listdir(self.there) == []

    def test_a_storage_without_backups(self, own_server):
        self.server = own_server(storage="memory")
        assert "memory" in self.sentence("backup", self.there, code=REFUSED)
        assert os.listdir(self.there) == []

    def test_no_server_answers(self):
        assert "reach" in self.sentence("backup", self.there, code=UNREACHABLE, JOBQ_URL=NOWHERE)
        assert os.listdir(self.there) == []

    @pytest.mark.parametrize("answer", [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\nof unknown length",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nlogin",
    ], ids=["cut", "no-length", "no-file"])
    def test_a_partial_copy_is_no_backup(self, answer):
        with impostor(answer) as url:
            self.sentence("backup", self.there, code=UNREACHABLE, JOBQ_URL=url)
        assert os.listdir(self.there) == []

    def test_wrong_usage(self):
        self.sentence("backup", code=USAGE, JOBQ_URL=NOWHERE)
        self.sentence("backup", self.there, "--timeout", "soon", code=USAGE, JOBQ_URL=NOWHERE)
        assert not os.path.exists(self.there)


class BackupRouteTest(HttpTest):
    def test_the_answer(self):
        answer = self.server.request("POST", PATH)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        assert answer.body.startswith(b"SQLite format 3\0")

    def test_for_admins_alone(self):
        for key in (None, self.server.new_key("client")["key"], self.server.new_key("worker")["key"]):
            self.assert_refused(self.server.request("POST", PATH, key=key), 401, member="message")

    def test_get_and_head_make_no_copy(self):
        """GET and HEAD are for calls without an effect: a copy of gigabytes is an effect."""
        self.assert_refused(self.server.request("GET", PATH), 405, "POST", member="message")

    def test_memory_names_the_remedy(self, own_server):
        answer = own_server(storage="memory").request("POST", PATH)
        self.assert_refused(answer, 409, "memory", "sqlite", member="message")

    def test_the_data_directory_is_left_clean(self, own_server):
        server = own_server()
        before = sorted(os.listdir(server.data))
        assert server.request("POST", PATH).status == 200
        assert sorted(os.listdir(server.data)) == before

    def test_one_copy_at_a_time_until_the_end_of_reading(self, own_server):
        """A client that stops reading holds the place; when the client leaves, the place is free."""
        server = own_server()
        for _ in range(40):
            server.run("parked", {"text": "x" * 500_000})
        with server.plug() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                         f"Authorization: Bearer {server.key}\r\n\r\n".encode())
            assert slow.recv(16).startswith(b"HTTP/1.1 200")
            self.assert_refused(server.request("POST", PATH), 409, "another", member="message")
        until(lambda: server.request("POST", PATH).status == 200, "the place of the client that left is free")

"""Starts that are refused because of the data directory: a reason for the operator in one sentence, and nothing is
touched."""

import contextlib
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import time

import pytest
from disk_case import BUSY_TIMEOUT, PAGE, DiskTest, fingerprint, overwrite
from jobq_server import JOBQD, PLUGINS, die_with_parent
from pace import HANG, judge_pace


def as_nobody():
    die_with_parent()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


class RefusedStartTest(DiskTest):
    program = JOBQD

    def attempt(self, server, nobody=False):
        return subprocess.run([self.program, "--config", server.file], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=HANG, cwd=server.folder,
                              preexec_fn=as_nobody if nobody else die_with_parent)

    def refused(self, server, *words, nobody=False):
        """The server does not start, gives the reason in one sentence with the name of the thing, and changes no
        file."""
        before = fingerprint(server.data)
        done = self.attempt(server, nobody)
        assert done.returncode == 1, done.stderr
        assert re.search(r"\Ajobqd: [^\n]{30,600}\n\Z", done.stderr)
        for word in words:
            assert word in done.stderr
        if server.key:
            assert server.key not in done.stderr
        assert fingerprint(server.data) == before, "it touched what it refused"
        return done.stderr

    def give_to_nobody(self, server):
        """Root may do everything, so a server of root runs as user nobody; any other user is kept. The program is a
        copy, because user nobody may not enter every folder of the build."""
        if os.geteuid() != 0:
            return
        shutil.copytree(PLUGINS, os.path.join(server.folder, "plugins"))
        os.mkdir(os.path.join(server.folder, "bin"))
        self.program = shutil.copy2(JOBQD, os.path.join(server.folder, "bin"))
        for folder, _, files in os.walk(server.folder):
            for path in [folder, *(os.path.join(folder, file) for file in files)]:
                os.chown(path, 65534, 65534)

    def test_an_unwritable_directory(self):
        server = self.idle_server()
        os.mkdir(server.data)
        self.give_to_nobody(server)
        os.chmod(server.data, 0o500)
        self.refused(server, server.data, "Permission denied", "data.dir", nobody=True)
        assert os.listdir(server.data) == []

    def test_a_directory_in_an_unwritable_folder(self):
        server = self.idle_server()
        self.give_to_nobody(server)
        os.chmod(server.folder, 0o500)
        self.at_end.callback(os.chmod, server.folder, 0o700)
        self.refused(server, server.data, "Permission denied", nobody=True)
        assert not os.path.exists(server.data)

    def test_a_taken_address(self):
        """The start ends before it does anything: it makes no key and runs no job."""
        server = self.idle_server()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server.settings["server.port"] = str(taken.getsockname()[1])
            server.write_file()
            done = self.attempt(server)
        assert done.returncode == 1, done.stderr
        assert re.search(r"\Ajobqd: server.host and server.port: cannot listen on [^\n]+\n\Z", done.stderr)
        assert not os.path.exists(os.path.join(server.data, "admin.key"))

    def test_a_file_in_place_of_the_directory(self):
        server = self.idle_server()
        with open(server.data, "wb") as file:
            file.write(b"hello")
        self.refused(server, server.data, "data.dir")
        server.settings["data.dir"] = os.path.join(server.data, "below")
        server.write_file()
        self.refused(server, "below", "data.dir")
        with open(server.data, "rb") as file:
            assert file.read() == b"hello"

    @pytest.mark.parametrize("mode", [0o000, 0o400], ids=oct)
    def test_an_inaccessible_database(self, mode):
        server = self.used_server()
        before = fingerprint(server.data)
        self.give_to_nobody(server)
        os.chmod(self.database(server), mode)
        done = self.attempt(server, nobody=True)
        assert done.returncode == 1
        assert re.search(r"\Ajobqd: [^\n]*jobq\.db: Permission denied[^\n]*\n\Z", done.stderr)
        os.chmod(self.database(server), 0o600)
        assert fingerprint(server.data) == before

    def test_a_foreign_file_in_place_of_the_database(self):
        def foreign():
            os.remove(path)
            with contextlib.closing(sqlite3.connect(path)) as other:
                other.execute("CREATE TABLE t (a)")
                other.commit()

        noise = random.Random(1).randbytes(100)
        cases = {"header garbage": lambda: overwrite(path, 0, noise),
                 "cut to 10 bytes": lambda: os.truncate(path, 10),
                 "a text": lambda: (os.truncate(path, 0), overwrite(path, 0, b"a text of ours\n" * 40)),
                 "half a header": lambda: overwrite(path, 16, noise[:84]), "another program's": foreign,
                 "cut to a page": lambda: os.truncate(path, PAGE), "cut in a page": lambda: os.truncate(path, 6000)}
        server = self.used_server()
        path = self.database(server)
        kept = shutil.copy(path, path + ".kept")
        for name, spoil in cases.items():
            print(f"case: {name}", flush=True)
            shutil.copy(kept, path)
            spoil()
            self.refused(server, path)
        shutil.copy(kept, path)
        server.start()
        assert server.health("parked")["jobs"]["inQueue"] == 20

    def test_a_log_without_the_matching_database(self):
        """The write-ahead log holds acknowledged jobs: SQLite by itself would delete it, or pass over it."""
        server = self.used_server(crash=True)
        path, log = self.database(server), self.database(server, "-wal")
        assert os.path.getsize(log) > 100_000
        kept = shutil.copytree(server.data, server.data + ".kept")
        cases = {"no file": lambda: os.remove(path), "an empty file": lambda: os.truncate(path, 0),
                 "a garbage log": lambda: overwrite(log, 0, random.Random(2).randbytes(PAGE)),
                 "a log with another salt": lambda: overwrite(log, 0, b"\x37\x7f\x06\x82" + b"\1" * 28)}
        for name, spoil in cases.items():
            print(f"case: {name}", flush=True)
            shutil.rmtree(server.data)
            shutil.copytree(kept, server.data)
            spoil()
            self.refused(server, path, "-wal", "Nothing was touched")
        shutil.rmtree(server.data)
        shutil.copytree(kept, server.data)
        server.start()
        assert server.health("parked")["jobs"]["inQueue"] == 20

    @pytest.mark.parametrize("how", ["BEGIN IMMEDIATE", "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE"])
    def test_a_database_held_by_a_second_program(self, how):
        server = self.used_server(jobs=1)
        with contextlib.closing(sqlite3.connect(self.database(server), isolation_level=None)) as other:
            other.executescript(how)
            began = time.monotonic()
            done = self.attempt(server)
            judge_pace("a start that is refused because of a lock", time.monotonic() - began, 2 * BUSY_TIMEOUT)
            assert done.returncode == 1
            assert re.search(r"\Ajobqd: [^\n]*jobq\.db: [^\n]*locked[^\n]*\n\Z", done.stderr)
        server.start()
        assert server.health("parked")["jobs"]["inQueue"] == 1

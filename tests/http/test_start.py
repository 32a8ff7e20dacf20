"""Starting a server: the refusals with their messages; the command line."""

import contextlib
import os
import re
import sqlite3

import pytest

from http_case import HttpTest
from jobq_server import ROOT, Server, jobqd, until


class RefusedStartTest(HttpTest):
    def refused(self, server, *words):
        """The server does not start, and its last line says why in one sentence."""
        if server.start_unless_it_dies():
            pytest.fail("it started")
        assert server.ended() != 0
        assert server.process.returncode > 0, "it ended by a signal"
        last = server.log().strip().splitlines()[-1]
        for word in words:
            assert word in last
        assert "terminate called" not in server.log()
        return last

    def not_started(self, **settings):
        return self.at_end.enter_context(Server(start=False, **settings))

    def test_two_servers_on_one_data_directory(self, own_server):
        """etc/README.md: data.dir is locked by one server."""
        first = own_server()
        second = self.not_started(data__dir=first.data)
        address = os.path.join(first.data, "address")
        with open(address, encoding="ascii") as file:
            before = file.read()
        done = jobqd("--config", second.file)
        assert done.returncode > 0
        assert "data.dir" in done.stderr
        assert first.data in done.stderr
        with open(address, encoding="ascii") as file:
            assert file.read() == before, "the second one must not touch the first one's files"
        assert first.finished("echo", first.run("echo", {}))["status"] == "COMPLETED"

    def test_a_storage_without_its_secret_key(self, own_server):
        """etc/operation.md, "Backup": the secrets of a restored database need the file that sealed them. A database of an
        older server has no sealed word; its templates are opened instead."""
        server = own_server()
        made = server.request("POST", "/v1/templates", {"name": "t", "imageName": "plugin/echo", "env": {"A": "b"}})
        assert made.status == 200
        server.stop()
        key = os.path.join(server.data, "secret.key")
        os.rename(key, key + ".kept")
        self.refused(server, key, "is missing", "kept with the backup")
        assert not os.path.exists(key), "the start left a key of its own"
        with open(key, "w", encoding="ascii") as file:
            file.write("ab" * 32)
        self.refused(server, key, "is not the key")
        with contextlib.closing(sqlite3.connect(os.path.join(server.data, "jobq.db"))) as database:
            database.execute("DELETE FROM record WHERE kind = 'secretKey'")
            database.commit()
        self.refused(server, key, "is not the key")
        os.replace(key + ".kept", key)
        server.start()
        assert server.request("GET", f"/v1/templates/{made.json()['id']}").json()["env"] == {"A": "b"}

    def test_the_secrets_of_a_lost_key_can_be_given_up(self, own_server):
        """The statement of etc/operation.md, "Backup"."""
        with open(os.path.join(ROOT, "etc/operation.md"), encoding="utf-8") as page:
            statement = re.search(r"`(DELETE FROM record WHERE kind IN [^`]+)`", page.read()).group(1)
        server = own_server()
        server.request("POST", "/v1/templates", {"name": "t", "imageName": "plugin/echo", "env": {"A": "b"}})
        job = server.run("parked", {"n": 1})
        server.stop()
        os.remove(os.path.join(server.data, "secret.key"))
        with contextlib.closing(sqlite3.connect(os.path.join(server.data, "jobq.db"))) as database:
            database.execute(statement)
            database.commit()
        server.start()
        assert server.request("GET", "/v1/templates").json() == []
        assert server.status("parked", job)["status"] == "IN_QUEUE"

    def test_two_servers_on_one_port(self, own_server):
        """core/http/transport/server.cpp: the second server must get the error, not half of the connections."""
        first = own_server()
        port = str(first.address[1])
        self.refused(self.not_started(server__port=port), port)
        assert first.request("GET", "/readyz", key=None).status == 200

    def test_unknown_keys_name_the_nearest(self, subtests):
        """etc/README.md: an unknown key stops the start and names the nearest known one."""
        cases = {"server.prot": "server.port", "endpoint.echo.workerMax": "endpoint.echo.workersMax",
                 "strage": "storage", "log.lvl": "log.level", "storage.sqlite.reader": "storage.sqlite.readers",
                 "endpoint.echo.imag": "endpoint.echo.image"}
        for key, nearest in cases.items():
            with subtests.test(key=key):
                self.refused(self.not_started(**{key: "1"}), key, nearest)

    def test_bad_values_name_the_key(self, subtests):
        """etc/README.md: durations carry a unit; a value out of range stops the start."""
        cases = {"server.port": "65536", "server.drain": "30", "log.level": "loud", "endpoint.echo.workersMax": "many",
                 "endpoint.echo.workersMin": "-1", "endpoint.echo.idleTimeout": "5 parsecs",
                 "endpoint.echo.executionTimeout": "1ms", "endpoint.a b.image": "plugin/echo"}
        for key, value in cases.items():
            with subtests.test(key=key):
                self.refused(self.not_started(**{key: value}), key.split(".")[0])
        with subtests.test("min above max"):
            self.refused(self.not_started(**{"endpoint.echo.workersMin": 4}), "workersMin", "workersMax")
        with subtests.test("no image"):
            self.refused(self.not_started(**{"endpoint.new.workersMax": 4}), "endpoint.new.image")

    @pytest.mark.parametrize("endpoint", [
        "serverless", "templates", "pods", "clusters", "network-volumes", "registries", "catalog", "billing", "account",
        "docs"])
    def test_reserved_ids(self, endpoint):
        """core/decisions/endpoints.md: the reserved ids cannot name endpoints."""
        server = self.not_started(**{f"endpoint.{endpoint}.image": "plugin/echo"})
        self.refused(server, endpoint, "reserved")

    def test_unknown_plugins_stop_the_start(self, subtests):
        """An unknown plugin name never silently becomes a default."""
        cases = {"storage": ("cassandra", "memory, mysql, sqlite"), "limiter": ("none", "bucket, window"),
                 "endpoint.echo.image": ("plugin/nothing", "echo"), "queue.policy": ("random", "fifo, priority"),
                 "endpoint.echo.queuePolicy": ("random", "fifo, priority"), "plugins.required": ("nothing", "")}
        for key, (value, others) in cases.items():
            with subtests.test(key=key):
                self.refused(self.not_started(**{key: value}), key, value.rpartition("/")[2], others)

    def test_a_repeated_key(self):
        """etc/jobq.properties: of two lines with one key, none is dropped unseen."""
        server = self.not_started(storage="memory")
        with open(server.file, "a", encoding="utf-8") as file:
            file.write("storage = sqlite\n")
        self.refused(server, "storage appears twice")

    def test_all_mistakes_are_named_at_once(self, tmp_path):
        """etc/README.md: a line for each mistake of any part of the server, for --check and the start."""
        file = tmp_path / "jobq.properties"
        file.write_text("\ufeffstorage = cassandra\nstorage.mysql.port = many # unused\n"
                        "endpoint.a.image = plugin/nope\nendpoint.b.image = lua/nope\nendpoint.b.filters = plugin/none\n"
                        "storage.sqlite.reader = 1\nserver.cors.origins = nowhere\nqueue.policy = random\n"
                        "lua.memory = small\nlua.filterTime = 1\n", encoding="utf-8")
        done = jobqd("--config", str(file), "--check")
        assert done.returncode == 1
        lines = done.stderr.splitlines()
        for number, words in ((1, "storage = cassandra"), (3, "endpoint.a.image = plugin/nope: "),
                              (4, "endpoint.b.image = lua/nope needs"), (5, "endpoint.b.filters = plugin/none: "),
                              (6, "storage.sqlite.reader is not a setting"), (7, "server.cors.origins = nowhere"),
                              (8, "queue.policy = random"), (9, "lua.memory = small"), (10, "lua.filterTime = 1")):
            (line,) = [line for line in lines if line.startswith(f"jobqd: {file}:{number}: ")]
            assert words in line
        assert not (tmp_path / "jobq-data").exists()
        started = jobqd("--config", str(file), "--set", "data.dir=data")
        assert started.returncode == 1
        assert [line for line in started.stderr.splitlines() if line not in lines] == []

    def test_a_missing_file(self):
        """The message has the reason and the remedy."""
        done = jobqd("--config", "/nonexistent/jobq.properties")
        assert done.returncode > 0
        assert "/nonexistent/jobq.properties" in done.stderr


class CommandLineTest(HttpTest):
    @pytest.fixture(autouse=True)
    def idle_server(self, question):
        self.idle = self.at_end.enter_context(Server(start=False))

    def test_check_only_checks(self):
        """core/decisions/operations.md: `jobqd --check` only checks; no data directory is made and no port is
        opened."""
        done = jobqd("--config", self.idle.file, "--check")
        assert done.returncode == 0, done.stderr
        assert not os.path.exists(self.idle.data)

    @pytest.mark.parametrize("setting", [
        "server.prot=1", "server.port=x", "storage=cassandra", "endpoint.echo.image=plugin/nothing",
        "storage.sqlite.reader=1", "storage.sqlite.readers=many", "webhook.http.ca=/nonexistent.pem",
        "queue.policy=random", "limiter=none"])
    def test_check_finds_faults(self, setting):
        """core/decisions/operations.md: --check refuses every setting that a start would refuse."""
        done = jobqd("--config", self.idle.file, "--set", setting, "--check")
        assert done.returncode == 1
        assert re.search(r"\Ajobqd: [^\n]{20,600}\n\Z", done.stderr)
        assert setting.partition("=")[0] in done.stderr
        assert not os.path.exists(self.idle.data)

    def test_check_reads_the_tls_files(self):
        """etc/operation.md, "TLS": --check refuses files that are not there, as the start does."""
        done = jobqd("--config", self.idle.file, "--set", "server.tls.certificate=none.pem",
                     "--set", "server.tls.key=none.pem", "--check")
        assert done.returncode == 1
        assert "server.tls.certificate" in done.stderr

    def test_check_says_where_the_data_is(self):
        """scripts/run.sh finds the admin key there."""
        done = jobqd("--config", self.idle.file, "--set", "data.dir=elsewhere", "--check")
        assert f"\ndata.dir: {os.path.join(self.idle.folder, 'elsewhere')}\n" in done.stdout

    def test_check_refuses_images_close_to_local_ones(self, subtests):
        """core/decisions/endpoints.md: an image within two edits of a local one, the bare name of a handler, or with a
        blank is no image of remote workers."""
        for image, words in (("Plugin/echo", "is close to plugin/echo"), ("plugins/echo", "is close to plugin/echo"),
                             ("echo", "is close to plugin/echo"), ("lua:x", "is close to lua/x"),
                             ("word_frequency", "is close to lua/word_frequency"), ("acme/a b", "has a blank")):
            with subtests.test(image):
                done = jobqd("--config", self.idle.file, "--set", f"endpoint.e.image={image}", "--check")
                assert done.returncode == 1
                assert f"endpoint.e.image = {image} " in done.stderr
                assert words in done.stderr

    def test_check_prints_the_program_of_each_endpoint(self):
        """etc/operation.md: --check prints what each endpoint runs."""
        done = jobqd("--config", os.path.join(ROOT, "etc/jobq.properties"), "--set", "endpoint.far.image=acme/far:1",
                     "--set", f"data.dir={self.idle.data}", "--check")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert "endpoint echo: plugin/echo, a handler in the server" in lines
        script = os.path.join(ROOT, "scripts/lua/handlers/word_frequency.lua")
        assert f"endpoint words: lua/word_frequency, the script {script}" in lines
        assert "endpoint far: acme/far:1, remote workers" in lines

    def test_check_asks_selected_plugins_only(self):
        """core/decisions/operations.md: a plugin without a use does not stop the start."""
        done = jobqd("--config", self.idle.file, "--set", "webhook.http.ca=/nonexistent.pem",
                     "--set", "webhook.transports=file", "--check")
        assert done.returncode == 0, done.stderr

    def test_check_beside_a_running_server(self, own_server):
        """core/decisions/operations.md: --check only checks, so it does not need the data directory's lock."""
        server = own_server()
        done = jobqd("--config", server.file, "--check")
        assert done.returncode == 0, done.stderr

    def test_a_start_ends_a_drain(self, own_server):
        """core/decisions/nodes.md: the next start of a node ends its drain."""
        server = own_server(storage="sqlite")
        (node,) = server.request("GET", "/v1/nodes").json()
        assert server.request("POST", f"/v1/nodes/{node['name']}/drain").status == 200
        until(lambda: server.request("GET", "/readyz").status == 503, "the server drains")
        server.restart()
        assert server.request("GET", "/v1/nodes").json()[0]["draining"] is False

    def test_set_overrides_the_file(self):
        """etc/README.md: `--set key=value` overrides."""
        done = jobqd("--config", self.idle.file, "--set", "endpoint.echo.workersMin=9", "--check")
        assert done.returncode > 0, "workersMin 9 is above workersMax 3"
        done = jobqd("--config", self.idle.file, "--set", "endpoint.echo.workersMin=9",
                     "--set", "endpoint.echo.workersMax=9", "--check")
        assert done.returncode == 0, done.stderr

    def test_help(self):
        """The brief words of any command line: --help, and a refusal of what is unknown."""
        done = jobqd("--help")
        assert done.returncode == 0
        for option in ("--config", "--set", "--check", "--settings", "--fields", "--events", "--version"):
            assert option.lstrip("-") in done.stdout
        done = jobqd("--bogus")
        assert done.returncode > 0
        assert "bogus" in done.stderr

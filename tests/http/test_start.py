"""Starting a server: what it refuses, and what it then says; its command line."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import HttpTest, Server, jobqd  # noqa: E402


class RefusedStartTest(HttpTest):
    def refused(self, server, *words):
        """The server does not start, and its last line says why in one sentence."""
        if server.start_unless_it_dies():
            self.fail("it started")
        self.assertNotEqual(server.ended(), 0)
        self.assertGreater(server.process.returncode, 0, "it ended by a signal")
        last = server.log().strip().splitlines()[-1]
        for word in words:
            self.assertIn(word, last)
        self.assertNotIn("terminate called", server.log())
        return last

    def not_started(self, **settings):
        return self.enterContext(Server(start=False, **settings))

    def test_two_servers_on_one_data_directory(self):
        """design.md, Configuration: data.dir is locked by one server."""
        first = self.own_server()
        second = self.not_started(data__dir=first.data)
        address = os.path.join(first.data, "address")
        with open(address, encoding="ascii") as file:
            before = file.read()
        done = jobqd("--config", second.file)
        self.assertGreater(done.returncode, 0)
        self.assertIn("data.dir", done.stderr)
        self.assertIn(first.data, done.stderr)
        with open(address, encoding="ascii") as file:
            self.assertEqual(file.read(), before, "the second one must not touch the first one's files")
        self.assertEqual(first.finished("echo", first.run("echo", {}))["status"], "COMPLETED")

    def test_two_servers_on_one_port(self):
        """libraries.md 1e: the second server must get the error, not half of the connections."""
        first = self.own_server()
        port = str(first.address[1])
        self.refused(self.not_started(server__port=port), port)
        self.assertEqual(first.request("GET", "/readyz", key=None).status, 200)

    def test_unknown_keys_name_the_nearest(self):
        """design.md, Configuration: an unknown key stops the start and names the nearest known one."""
        cases = {"server.prot": "server.port", "endpoint.echo.workerMax": "endpoint.echo.workersMax",
                 "strage": "storage", "log.lvl": "log.level", "storage.sqlite.reader": "storage.sqlite.readers",
                 "endpoint.echo.imag": "endpoint.echo.image"}
        for key, nearest in cases.items():
            with self.subTest(key=key):
                self.refused(self.not_started(**{key: "1"}), key, nearest)

    def test_bad_values_name_the_key(self):
        """design.md, Configuration: durations carry a unit; a value out of range stops the start."""
        cases = {"server.port": "65536", "server.drain": "30", "log.level": "loud", "endpoint.echo.workersMax": "many",
                 "endpoint.echo.workersMin": "-1", "endpoint.echo.idleTimeout": "5 parsecs",
                 "endpoint.echo.executionTimeout": "1ms", "endpoint.a b.image": "plugin/echo"}
        for key, value in cases.items():
            with self.subTest(key=key):
                self.refused(self.not_started(**{key: value}), key.split(".")[0])
        with self.subTest("min above max"):
            self.refused(self.not_started(**{"endpoint.echo.workersMin": 4}), "workersMin", "workersMax")
        with self.subTest("no image"):
            self.refused(self.not_started(**{"endpoint.new.workersMax": 4}), "endpoint.new.image")

    def test_reserved_ids(self):
        """decisions.md, Images: the ids that wire.md 4.2 reserves are no endpoints."""
        for endpoint in ("serverless", "templates", "pods", "clusters", "network-volumes", "registries", "catalog",
                         "billing", "account", "docs"):
            with self.subTest(id=endpoint):
                server = self.not_started(**{f"endpoint.{endpoint}.image": "plugin/echo"})
                self.refused(server, endpoint, "reserved")

    def test_unknown_plugins_stop_the_start(self):
        """style.md: an unknown plugin name never silently becomes a default."""
        cases = {"storage": "cassandra", "endpoint.echo.image": "plugin/nothing", "queue.policy": "random",
                 "plugins.required": "nothing"}
        for key, value in cases.items():
            with self.subTest(key=key):
                self.refused(self.not_started(**{key: value}), value.rpartition("/")[2])

    def test_a_missing_file(self):
        """style.md, question 10: the operator reads the reason and the remedy."""
        done = jobqd("--config", "/nonexistent/jobq.properties")
        self.assertGreater(done.returncode, 0)
        self.assertIn("/nonexistent/jobq.properties", done.stderr)


class CommandLineTest(HttpTest):
    def setUp(self):
        self.idle = self.enterContext(Server(start=False))

    def test_check_only_checks(self):
        """design.md, Configuration: `jobqd --check` only checks; it makes no data directory and opens no port."""
        done = jobqd("--config", self.idle.file, "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.idle.data))

    def test_check_finds_faults(self):
        """design.md, Configuration: --check refuses what a start would refuse."""
        for setting in ("server.prot=1", "server.port=x", "storage=cassandra", "endpoint.echo.image=plugin/nothing",
                        "storage.sqlite.reader=1", "storage.sqlite.readers=many", "webhook.http.ca=/nonexistent.pem"):
            with self.subTest(setting):
                done = jobqd("--config", self.idle.file, "--set", setting, "--check")
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"\Ajobqd: [^\n]{20,600}\n\Z")
                self.assertIn(setting.partition("=")[0], done.stderr)
                self.assertFalse(os.path.exists(self.idle.data))

    def test_check_asks_selected_plugins_only(self):
        """style.md, question 10: what nobody uses stops nobody."""
        done = jobqd("--config", self.idle.file, "--set", "webhook.http.ca=/nonexistent.pem",
                     "--set", "webhook.transports=file", "--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_check_beside_a_running_server(self):
        """design.md, Configuration: --check only checks, so it does not need the data directory's lock."""
        server = self.own_server()
        done = jobqd("--config", server.file, "--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_set_overrides_the_file(self):
        """design.md, Configuration: `--set key=value` overrides."""
        done = jobqd("--config", self.idle.file, "--set", "endpoint.echo.workersMin=9", "--check")
        self.assertGreater(done.returncode, 0, "workersMin 9 is above workersMax 3")
        done = jobqd("--config", self.idle.file, "--set", "endpoint.echo.workersMin=9",
                     "--set", "endpoint.echo.workersMax=9", "--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_version_and_help(self):
        """The brief words of any command line: --version, --help, and a refusal of what is unknown."""
        done = jobqd("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\d+\.\d+")
        done = jobqd("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--config", "--set", "--check", "--version"):
            self.assertIn(option.lstrip("-"), done.stdout)
        done = jobqd("--bogus")
        self.assertGreater(done.returncode, 0)
        self.assertIn("bogus", done.stderr)


if __name__ == "__main__":
    unittest.main()

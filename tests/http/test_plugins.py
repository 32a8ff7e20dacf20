"""GET /v1/plugins: every plugin file, loaded or rejected, and what it can be told."""

import glob
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import PLUGINS, HttpTest, Server  # noqa: E402

KINDS = {"storage", "queue", "limiter", "filter", "handler", "webhook"}


def entries(plugins):
    """(kind, name) -> entry, of all loaded files."""
    return {(entry["kind"], entry["name"]): entry for plugin in plugins for entry in plugin.get("entries", [])}


class PluginListTest(HttpTest):
    def plugins(self):
        reply = self.server.request("GET", "/v1/plugins")
        self.assertEqual(reply.status, 200, reply.body)
        self.assert_json(reply)
        return reply.json()

    def test_shape(self):
        """decisions.md, Keys: `GET /v1/plugins` lists plugins with state and reason, as a bare array."""
        plugins = self.plugins()
        self.assertIsInstance(plugins, list)
        self.assertTrue(plugins)
        for plugin in plugins:
            with self.subTest(file=plugin.get("file")):
                self.assertTrue(plugin["file"].endswith(".so"), plugin)
                self.assertIn(plugin["state"], ("loaded", "rejected"))
                self.assertEqual("reason" in plugin, plugin["state"] == "rejected")
                self.assertIsInstance(plugin["entries"], list)
                if plugin["state"] == "loaded":
                    self.assertTrue(plugin["entries"], "a loaded file offers something")
                for entry in plugin["entries"]:
                    self.assert_entry(entry)

    def assert_entry(self, entry):
        self.assertEqual(set(entry), {"kind", "name", "version", "selected", "options", "scripts"})
        self.assertIn(entry["kind"], KINDS)
        self.assertRegex(entry["name"], r"\A[A-Za-z0-9_-]{1,64}\Z")
        self.assertRegex(entry["version"], r"\A\d+\.\d+")
        self.assertIs(type(entry["selected"]), bool)
        for option in entry["options"]:
            self.assertEqual(set(option), {"key", "type", "default", "range", "help"})
            own = f"{entry['name']}." if entry["name"] == "lua" else f"{entry['kind']}.{entry['name']}."
            self.assertTrue(option["key"].startswith(own), option)
            self.assertTrue(option["help"], option)

    def test_every_built_file_is_listed(self):
        """design.md, The tree: plugin folders build to libjobq_<folder>.so; what is installed is listed and loaded."""
        server = self.own_server()
        self.assertIs(server, self.server)
        built = {os.path.basename(path) for path in glob.glob(os.path.join(PLUGINS, "libjobq_*.so"))}
        self.assertTrue(built)
        loaded = {os.path.basename(plugin["file"]) for plugin in self.plugins() if plugin["state"] == "loaded"}
        self.assertEqual(loaded, built)

    def test_what_the_tests_use_is_there(self):
        """design.md, Top level: the storages sqlite and memory, the handlers echo and trial."""
        found = entries(self.plugins())
        for wanted in (("storage", "sqlite"), ("storage", "memory"), ("handler", "echo"), ("handler", "trial")):
            self.assertIn(wanted, found)

    def test_selected(self):
        """jobqctl's table says which plugins are in use: the storage, the policy, the endpoints' handlers."""
        for storage, other in (("sqlite", "memory"), ("memory", "sqlite")):
            with self.subTest(storage=storage), Server(storage=storage) as server:
                self.server = server
                found = entries(self.plugins())
                self.assertTrue(found["storage", storage]["selected"])
                self.assertFalse(found["storage", other]["selected"])
                self.assertTrue(found["handler", "echo"]["selected"])

    def test_an_options_value_is_read(self):
        """design.md, Configuration: `storage.<name>.*` goes to the plugin, which declares the key that is listed."""
        options = {option["key"]: option for option in entries(self.plugins())["storage", "sqlite"]["options"]}
        self.assertIn("storage.sqlite.readers", options)
        self.own_server(**{"storage.sqlite.readers": options["storage.sqlite.readers"]["default"]})
        self.assertEqual(self.server.request("GET", "/readyz", key=None).status, 200)

    def test_only_admins_may_ask(self):
        """decisions.md, Keys: scope `admin` is `/v1`."""
        key = self.server.new_key("client")
        self.addCleanup(self.server.request, "DELETE", f"/v1/keys/{key['id']}")
        self.assert_refused(self.server.request("GET", "/v1/plugins", key=key["key"]), 401, member="message")


class RejectedPluginTest(HttpTest):
    def setUp(self):
        self.bare = self.enterContext(Server(start=False))
        self.extra = os.path.join(self.bare.folder, "extra")
        os.mkdir(self.extra)

    def add(self, name, content):
        with open(os.path.join(self.extra, name), "wb") as file:
            file.write(content)

    def start(self, **settings):
        self.bare.settings.update({"plugins.path": f"{PLUGINS}:{self.extra}", **settings})
        self.bare.write_file()
        return self.bare.start()

    def rejected(self):
        plugins = self.bare.request("GET", "/v1/plugins").json()
        return {os.path.basename(plugin["file"]): plugin for plugin in plugins if plugin["state"] == "rejected"}

    def test_wrong_files_are_rejected_and_the_server_starts(self):
        """design.md, Handshake: a file that is no plugin is listed as rejected with the reason, and never loaded."""
        with open(os.path.join(PLUGINS, "libjobq_handler_echo.so"), "rb") as file:
            whole = file.read()
        self.add("libjobq_text.so", b"not a library\n")
        self.add("libjobq_empty.so", b"")
        for part in (64, 1000, len(whole) // 2, len(whole) - 100):
            self.add(f"libjobq_cut{part}.so", whole[:part])
        self.add("libjobq_other.so", _any_library())
        server = self.start()
        rejected = self.rejected()
        self.assertEqual(set(rejected), set(os.listdir(self.extra)))
        for name, plugin in rejected.items():
            with self.subTest(name):
                self.assertEqual(plugin["entries"], [])
                self.assertGreater(len(plugin["reason"]), 10)
        self.assertEqual(server.finished("echo", server.run("echo", {}))["status"], "COMPLETED")

    def test_files_of_other_names_are_not_looked_at(self):
        """design.md, The tree: plugins are named libjobq_*.so."""
        self.add("readme.txt", b"text")
        self.add("libother.so", b"text")
        self.start()
        self.assertEqual(self.rejected(), {})

    def test_a_second_plugin_of_one_name(self):
        """design.md, Handshake: of two entries with one kind and name the second file is rejected, and says so."""
        shutil.copy(os.path.join(PLUGINS, "libjobq_handler_echo.so"), os.path.join(self.extra, "libjobq_copy.so"))
        self.start()
        rejected = self.rejected()
        self.assertEqual(list(rejected), ["libjobq_copy.so"])
        self.assertIn("echo", rejected["libjobq_copy.so"]["reason"])

    def test_a_required_plugin_that_was_rejected(self):
        """design.md, Handshake: the server starts unless the configuration requires the plugin."""
        shutil.copy(os.path.join(PLUGINS, "libjobq_handler_echo.so"), os.path.join(self.extra, "whole.so"))
        for name in ("libjobq_storage_sqlite.so", "libjobq_handler_echo.so", "libjobq_handler_trial.so"):
            self.add(name, b"broken")
        self.bare.settings["plugins.path"] = self.extra
        self.bare.write_file()
        self.assertFalse(self.bare.start_unless_it_dies())
        self.assertGreater(self.bare.ended(), 0)


def _any_library():
    """The bytes of a healthy shared library that is no plugin."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    unittest.main()

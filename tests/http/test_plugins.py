"""GET /v1/plugins: every plugin file, loaded or rejected, and what it can be told."""

import glob
import os
import re
import shutil

import pytest

from http_case import HttpTest
from jobq_server import PLUGINS, Server

KINDS = {"storage", "queue", "limiter", "filter", "handler", "webhook", "launcher"}


def entries(plugins):
    """(kind, name) -> entry, of all loaded files."""
    return {(entry["kind"], entry["name"]): entry for plugin in plugins for entry in plugin.get("entries", [])}


class PluginListTest(HttpTest):
    def plugins(self):
        answer = self.server.request("GET", "/v1/plugins")
        assert answer.status == 200, answer.body
        self.assert_json(answer)
        return answer.json()

    def test_shape(self, subtests):
        """core/http/API.md, "Plugins and nodes": `GET /v1/plugins` lists plugins with state and reason, as a bare
        array."""
        plugins = self.plugins()
        assert isinstance(plugins, list)
        assert plugins
        for plugin in plugins:
            with subtests.test(file=plugin.get("file")):
                assert plugin["file"].endswith(".so"), plugin
                assert plugin["state"] in ("loaded", "rejected")
                assert ("reason" in plugin) == (plugin["state"] == "rejected")
                assert isinstance(plugin["entries"], list)
                if plugin["state"] == "loaded":
                    assert plugin["entries"], "a loaded file offers something"
                for entry in plugin["entries"]:
                    self.assert_entry(entry)

    def assert_entry(self, entry):
        assert set(entry) == {"kind", "name", "version", "selected", "options", "scripts"}
        assert entry["kind"] in KINDS
        assert re.search(r"\A[A-Za-z0-9_-]{1,64}\Z", entry["name"])
        assert re.search(r"\A\d+\.\d+", entry["version"])
        assert type(entry["selected"]) is bool
        for option in entry["options"]:
            assert set(option) == {"key", "value", "type", "default", "range", "help"}
            own = f"{entry['name']}." if entry["name"] == "lua" else f"{entry['kind']}.{entry['name']}."
            assert option["key"].startswith(own), option
            assert option["help"], option

    def test_every_built_file_is_listed(self, own_server):
        """sdk/README.md: plugin folders build to libjobq_<folder>.so; installed plugins are listed and loaded."""
        self.server = own_server()
        built = {os.path.basename(path) for path in glob.glob(os.path.join(PLUGINS, "libjobq_*.so"))}
        assert built
        loaded = {os.path.basename(plugin["file"]) for plugin in self.plugins() if plugin["state"] == "loaded"}
        assert loaded == built

    def test_the_plugins_of_the_tests_are_there(self):
        """The storages sqlite and memory, the handlers echo and trial."""
        found = entries(self.plugins())
        for wanted in (("storage", "sqlite"), ("storage", "memory"), ("handler", "echo"), ("handler", "trial")):
            assert wanted in found

    @pytest.mark.parametrize("storage, other", [("sqlite", "memory"), ("memory", "sqlite")])
    def test_selected(self, own_server, storage, other):
        """jobqctl's table says which plugins are in use: the storage, the policy, the endpoints' handlers."""
        self.server = own_server(storage=storage)
        found = entries(self.plugins())
        assert found["storage", storage]["selected"]
        assert not found["storage", other]["selected"]
        assert found["handler", "echo"]["selected"]

    def test_an_options_value_is_read(self, own_server):
        """etc/README.md: `storage.<name>.*` goes to the plugin, which declares the key that is listed."""
        options = {option["key"]: option for option in entries(self.plugins())["storage", "sqlite"]["options"]}
        assert "storage.sqlite.readers" in options
        self.server = own_server(**{"storage.sqlite.readers": options["storage.sqlite.readers"]["default"]})
        assert self.server.request("GET", "/readyz", key=None).status == 200

    def test_a_secret_is_not_shown(self, own_server):
        """core/http/API.md, "Plugins and nodes": a password is `set`."""
        self.server = own_server(**{"storage.mysql.password": "hunter2"})
        answer = self.server.request("GET", "/v1/plugins")
        assert b"hunter2" not in answer.body
        options = {option["key"]: option for option in entries(answer.json())["storage", "mysql"]["options"]}
        assert (options["storage.mysql.password"]["type"], options["storage.mysql.password"]["value"]) == ("secret", "set")

    def test_only_admins_may_ask(self):
        """core/http/API.md, "Scopes": scope `admin` is `/v1`."""
        key = self.server.new_key("client")
        self.at_end.callback(self.server.request, "DELETE", f"/v1/keys/{key['id']}")
        self.assert_refused(self.server.request("GET", "/v1/plugins", key=key["key"]), 401, member="message")


class RejectedPluginTest(HttpTest):
    @pytest.fixture(autouse=True)
    def extra_folder(self, question):
        self.bare = self.at_end.enter_context(Server(start=False))
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

    def test_wrong_files_are_rejected_and_the_server_starts(self, subtests):
        """core/http/API.md, "Plugins and nodes": a file that is no plugin is listed as rejected with the reason, and
        never loaded."""
        with open(os.path.join(PLUGINS, "libjobq_handler_echo.so"), "rb") as file:
            whole = file.read()
        self.add("libjobq_text.so", b"not a library\n")
        self.add("libjobq_empty.so", b"")
        for part in (64, 1000, len(whole) // 2, len(whole) - 100):
            self.add(f"libjobq_cut{part}.so", whole[:part])
        self.add("libjobq_other.so", _any_library())
        server = self.start()
        rejected = self.rejected()
        assert set(rejected) == set(os.listdir(self.extra))
        for name, plugin in rejected.items():
            with subtests.test(name):
                assert plugin["entries"] == []
                assert len(plugin["reason"]) > 10
        assert server.finished("echo", server.run("echo", {}))["status"] == "COMPLETED"

    def test_files_of_other_names_are_not_looked_at(self):
        """sdk/README.md: plugins are named libjobq_*.so."""
        self.add("readme.txt", b"text")
        self.add("libother.so", b"text")
        self.start()
        assert self.rejected() == {}

    def test_a_second_plugin_of_the_same_name(self):
        """core/http/API.md, "Plugins and nodes": of two entries with one kind and name the second file is rejected, and
        says so."""
        shutil.copy(os.path.join(PLUGINS, "libjobq_handler_echo.so"), os.path.join(self.extra, "libjobq_copy.so"))
        self.start()
        rejected = self.rejected()
        assert list(rejected) == ["libjobq_copy.so"]
        assert "echo" in rejected["libjobq_copy.so"]["reason"]

    def test_a_rejected_required_plugin(self):
        """etc/README.md: the server starts unless the configuration requires the plugin."""
        shutil.copy(os.path.join(PLUGINS, "libjobq_handler_echo.so"), os.path.join(self.extra, "whole.so"))
        for name in ("libjobq_storage_sqlite.so", "libjobq_handler_echo.so", "libjobq_handler_trial.so"):
            self.add(name, b"broken")
        self.bare.settings["plugins.path"] = self.extra
        self.bare.write_file()
        assert not self.bare.start_unless_it_dies()
        assert self.bare.ended() > 0


def _any_library():
    """The bytes of a healthy shared library that is no plugin."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
    with open(path, "rb") as file:
        return file.read()

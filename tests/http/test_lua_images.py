"""core/http/API.md, "Images": the sources of scripts: templates and the file, releases, missing and faulty scripts,
settings `lua.*`."""

import os
import re

import pytest

from jobq_server import jobqd, until
from lua_case import LuaTest, make_folder, returning

ENV = "return function(input, job) return job.env end"


class TemplateTest(LuaTest):
    handlers = {"env": ENV, "other": returning("'other'")}

    def test_env_of_a_release(self):
        """core/http/API.md, "Releases": job.env is the template's; a release with a changed env reaches the script."""
        template = self.new_template(imageName="lua/env", env={"N": "1"})
        endpoint = self.new_endpoint(template, workersMin=1)
        assert (endpoint["image"], endpoint["release"]["state"]) == ("lua/env", "complete")
        assert self.output(endpoint["id"], {}) == {"N": "1"}
        self.call("PATCH", "/templates/" + template["id"], {"env": {"N": "2", "M": "ä"}})
        self.complete(endpoint, 2)
        assert self.output(endpoint["id"], {}) == {"N": "2", "M": "ä"}
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/other"})
        self.complete(endpoint, 3)
        assert self.output(endpoint["id"], {}) == "other"
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "plugin/echo"})
        self.complete(endpoint, 4)
        assert self.output(endpoint["id"], {"a": 1}) == {"a": 1}

    def test_a_missing_script(self):
        """core/http/API.md, "Images": an endpoint with an image that cannot run here is 400, with the missing part in
        the message."""
        template = self.new_template(imageName="lua/later")
        message = self.assert_faults(
            self.server.request("POST", "/v1/endpoints", {"templateId": template["id"]}), "templateId")
        assert "lua/later cannot run: later.lua cannot be read" in message
        path = self.write("handlers", "later", returning("'now'"))
        self.at_end.callback(os.remove, path)
        assert self.output(self.new_endpoint(template)["id"], {}) == "now", "no restart is needed"

    def test_an_uncompilable_script(self):
        """scripts/README.md: refused with file and line."""
        path = self.write("handlers", "broken", "return function(\n  oops oops\nend")
        self.at_end.callback(os.remove, path)
        template = self.new_template(imageName="lua/broken")
        answer = self.server.request("POST", "/v1/endpoints", {"templateId": template["id"]})
        assert re.search(r"broken\.lua:2: ", self.assert_faults(answer, "templateId"))

    def test_a_faulty_release(self):
        """core/http/API.md, "Releases": a release with a faulty script halts with a reason, the old worker serves; the
        next good release goes on."""
        template = self.new_template(imageName="lua/env", env={"N": "1"})
        endpoint = self.new_endpoint(template, workersMin=1)
        assert self.output(endpoint["id"], {}) == {"N": "1"}
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/missing", "env": {"N": "2"}})
        release = until(lambda: (now := self.endpoint(endpoint)["release"])["state"] == "halted" and now, "it halts")
        assert "missing.lua cannot be read" in release["reason"]
        assert self.output(endpoint["id"], {}) == {"N": "1"}
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/env"})
        self.complete(endpoint, 3)
        assert self.output(endpoint["id"], {}) == {"N": "2"}

    @pytest.mark.parametrize("name, text", [("wrong_at_first", "return function("), ("missing_at_first", None)])
    def test_a_script_written_after_the_release(self, name, text):
        """core/decisions/endpoints.md: the reason names the remedy, and after the remedy the release goes on by
        itself."""
        if text:
            self.write("handlers", name, text)
        template = self.new_template(imageName="lua/other")
        endpoint = self.new_endpoint(template, workersMin=1)
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/" + name})
        until(lambda: self.endpoint(endpoint)["release"]["state"] == "halted", "it halts")
        assert self.output(endpoint["id"], {}) == "other"
        self.at_end.callback(os.remove, self.write("handlers", name, returning("'written'")))
        self.complete(endpoint, 2)
        assert self.output(endpoint["id"], {}) == "written"

    def test_a_restart_without_its_script(self):
        """core/decisions/endpoints.md: the server starts, the endpoint states the reason for its missing workers, its
        jobs wait."""
        server = self.fresh_server({"kept": returning("'kept'")})
        endpoint = self.new_endpoint(self.new_template(imageName="lua/kept"))
        assert self.output(endpoint["id"], {}) == "kept"
        server.stop()
        os.remove(os.path.join(self.scripts, "handlers", "kept.lua"))
        server.start()
        release = self.endpoint(endpoint)["release"]
        assert release["state"] == "halted"
        assert "kept.lua cannot be read" in release["reason"]
        job = server.run(endpoint["id"], {})
        assert server.status(endpoint["id"], job)["queueReason"] == "no_workers"
        self.write("handlers", "kept", returning("'again'"))
        assert server.finished(endpoint["id"], job)["output"] == "again"

    @pytest.mark.parametrize("image", [
        "lua/../x", "lua/a b", "lua/", "lua/a/b", "lua/.", "lua/a.lua", "lua/" + "n" * 65, "lua/%2e", "lua/a\0",
        "lua/ä", "lua/../handlers/env"])
    def test_invalid_names(self, image):
        """core/http/API.md, "Images": <name> matches [A-Za-z0-9_-]{1,64}, else 400: no path leads out of the folder."""
        answer = self.server.request("POST", "/v1/templates", {"name": "t", "imageName": image})
        self.assert_faults(answer, "imageName")


class StartTest(LuaTest):
    def refused(self, *words, handlers=None, **settings):
        """Expects --check and then the start to be refused with a message that has all of `words`."""
        server = self.fresh_server(handlers, start=False, **settings)
        checked = jobqd("--config", server.file, "--check")
        line = self.refused_start(server)
        for word in words:
            assert word in line
        return checked, line

    def test_a_missing_script(self):
        """core/decisions/lua.md: the start is refused with the names of the endpoint and the file; --check refuses
        too."""
        checked, _ = self.refused("endpoint.a", "lua/missing", "missing.lua", **{"endpoint.a.image": "lua/missing"})
        assert checked.returncode == 1
        missing = os.path.join(self.scripts, "handlers", "missing.lua")
        assert "endpoint.a.image = lua/missing needs " + missing in checked.stderr

    @pytest.mark.parametrize("name, text, words", [
        ("syntax", "return function( end", "syntax.lua:1:"), ("none", "local x = 1", "returns no function"),
        ("fails", "error('at once')", "fails.lua:1: at once"), ("loops", "while true do end", "longer than a second"),
        ("bytecode", "\x1bLua", "is bytecode")])
    def test_an_unrunnable_script(self, name, text, words):
        """core/decisions/lua.md: an error that the first job would meet stops the start; a check compiles no script."""
        checked, _ = self.refused(words, handlers={name: text}, **{"endpoint.a.image": "lua/" + name})
        assert checked.returncode == 0, checked.stderr

    @pytest.mark.parametrize("image", ["lua/../x", "lua/a b", "lua/"])
    def test_invalid_names(self, image):
        """core/http/API.md, "Images": no path leads out of the folder."""
        checked, _ = self.refused("endpoint.a.image", "[A-Za-z0-9_-]{1,64}", **{"endpoint.a.image": image})
        assert checked.returncode == 1

    def test_a_relative_folder(self):
        """etc/README.md: relative paths begin at the file's folder."""
        server = self.fresh_server(start=False, **{"endpoint.a.image": "lua/a"})
        server.settings["scripts.path"] = "my scripts"
        make_folder(os.path.join(server.folder, "my scripts"), {"a": returning("'a'")})
        server.write_file()
        server.start()
        assert self.output("a", {}) == "a"

    def test_a_missing_folder(self):
        """etc/README.md: scripts.path; a server without scripts needs none."""
        server = self.fresh_server(start=False)
        server.settings["scripts.path"] = "/nonexistent"
        server.write_file()
        server.start()
        assert server.runsync("echo", {})["status"] == "COMPLETED"

    def test_settings_of_the_library(self, subtests):
        """etc/README.md: an unknown key stops the start and names the nearest; values are checked."""
        for key, value, words in (("lua.htpp", "true", "lua.http"), ("lua.memroy", "64MB", "lua.memory"),
                                  ("lua.filterTme", "5ms", "lua.filterTime"), ("handler.lua.http", "true", "lua.http"),
                                  ("lua", "true", "`jobqd --settings` lists")):
            with subtests.test(key):
                checked, line = self.refused(key, words, **{key: value})
                assert checked.returncode == 1
                assert ("nearest" in line) == (key != "lua"), line
        for key, value in (("lua.http", "maybe"), ("lua.memory", "1"), ("lua.filterTime", "0ms")):
            with subtests.test(key):
                settings = {key: value, "endpoint.a.image": "lua/env"}
                checked, _ = self.refused(key, handlers={"env": ENV}, **settings)
                assert checked.returncode == 1

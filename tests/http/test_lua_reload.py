"""scripts/README.md: scripts edited while the server runs: the next job runs the new text. A faulty text leaves the
former text in force, with a line in the log, in GET /v1/plugins and in jobqctl."""

import concurrent.futures
import os
import re
import threading
import time

import pytest

from jobq_server import join, until
from jobqctl_case import REFUSED, USAGE, JobqctlTest
from lua_case import LuaTest, make_folder
from pace import HANG_MS


def says(word):
    return f"return function() return '{word}' end"


def refuses(word):
    return f"return function() return false, 'the word is {word}' end"


BROKEN = {
    "syntax": ("return function(\n\n  oops oops\nend", r"NAME\.lua:3: "),
    "no function": ("local x = 1", r"NAME\.lua returns no function"),
    "fails at once": ("local x = nil\nreturn x.y", r"NAME\.lua:2: attempt to index a nil value"),
    "loops at once": ("while true do end", "longer than a second"),
    "empty": ("", "returns no function"),
    "bytecode": ("\x1bLuaS", "is bytecode"),
    "not UTF-8": (b"return function() end '\xff\xfe'", r"NAME\.lua:1: .* near .*\ufffd\ufffd"),
    "too large": ("-- " + "x" * (1 << 20), "larger than 1 MB"),
}


class ReloadTest(LuaTest, JobqctlTest):
    settings = {"endpoint.guarded.image": "plugin/echo", "endpoint.guarded.filters": "gate", "lua.filterTime": "1s"}
    handlers = {"greet": says("one"), "other": says("other")}
    filters = {"gate": refuses("one"), "spare": refuses("spare")}

    @pytest.fixture(autouse=True)
    def scripts_as_they_were(self, question):
        """No test sees what another has left."""
        for kind, scripts in (("handlers", self.handlers), ("filters", self.filters)):
            for name, text in scripts.items():
                self.write(kind, name, text)
        assert (self.greeting(), self.word()) == ("one", "one")

    def greeting(self):
        return self.output("greet", {})

    def word(self):
        answer = self.submit("guarded")
        return self.assert_refused(answer, 400).removeprefix("the word is ")

    def logged(self, event, *words):
        """Returns a line of the log with that event and all of the words."""
        return until(lambda: next((line for line in self.server.log().splitlines()
                                   if event + ":" in line and all(word in line for word in words)), None), event)


class EditTest(ReloadTest):
    def test_the_next_job(self):
        """scripts/README.md: an edited handler takes effect for the next job, with a line in the log."""
        self.write("handlers", "greet", says("two"))
        assert self.greeting() == "two"
        self.logged("handler.lua.script.reloaded", "greet.lua was edited")
        assert self.output("other", {}) == "other"

    def test_the_next_request(self):
        """scripts/README.md: an edited filter takes effect for the next request."""
        self.write("filters", "gate", refuses("two"))
        assert self.word() == "two"
        self.logged("filter.lua.script.reloaded", "gate.lua was edited")
        self.write("filters", "gate", "return function() end")
        self.assert_job(self.submit("guarded"))

    def test_every_edit_and_every_worker(self):
        """scripts/README.md: the new text runs on every worker, also after fast edits of equal size."""
        assert self.call("GET", "/endpoints/greet")["workersMax"] == 3
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for n in range(100, 160):
                self.write("handlers", "greet", says(n))
                self.write("filters", "gate", refuses(n))
                heard = [pool.submit(self.greeting) for _ in range(6)] + [pool.submit(self.word) for _ in range(6)]
                assert {each.result() for each in heard} == {str(n)}

    def test_ways_to_write(self):
        """Files are written in place, replaced, or copied with an older date."""
        path = os.path.join(self.scripts, "handlers", "greet.lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write(says("in place"))
        assert self.greeting() == "in place"
        self.write("handlers", "greet", says("older"))
        os.utime(path, (1, 1))
        assert self.greeting() == "older"

    def test_links(self):
        """A link that leads elsewhere now is an edit, too, however long what it leads to has been there."""
        path = os.path.join(self.scripts, "handlers", "greet.lua")
        targets = {word: os.path.join(self.scripts, word) for word in ("link one", "link two")}
        for word, target in targets.items():
            with open(target, "w", encoding="utf-8") as file:
                file.write(says(word))
        until(lambda: time.time() - os.stat(targets["link two"]).st_ctime > 0.2, "no file is young any more")
        for word in ("link one", "link two") * 5:
            os.symlink(targets[word], path + ".new")
            os.replace(path + ".new", path)
            assert [self.greeting() for _ in range(6)] == [word] * 6

    def test_a_running_job(self):
        """scripts/README.md: a running job ends with the text of its start."""
        self.write("handlers", "greet", "return function(_, job) job:emit(1) while not job:stopped() do end end")
        running = self.server.run("greet", {})
        until(lambda: self.server.request("GET", f"/v2/greet/stream/{running}").json(), "it runs")
        self.write("handlers", "greet", says("two"))
        assert self.greeting() == "two"
        assert self.server.status("greet", running)["status"] == "IN_PROGRESS"
        self.server.request("POST", f"/v2/greet/cancel/{running}")

    def test_under_load(self):
        """scripts/README.md: no job fails and no job runs half of a text while its script is edited all the time."""
        done = threading.Event()
        edits = []

        def edit():
            while not done.is_set():
                n = len(edits)
                self.write("handlers", "greet", says("v" * (1 + n % 50)))
                self.write("filters", "gate", f"return function() return {{ input = {{ n = {n} }} }} end")
                edits.append(n)
        editor = threading.Thread(target=edit)
        editor.start()
        try:
            for _ in range(40):
                assert re.search(r"\A(one|v+)\Z", self.greeting())
                answer = self.submit("guarded", operation=f"runsync?wait={HANG_MS}")
                assert answer.status in (200, 400), answer.body
            until(lambda: len(edits) > 40, "the scripts were edited meanwhile")
        finally:
            done.set()
            join("the edits of the scripts end", editor)


class BrokenTest(ReloadTest):
    def test_a_handler(self, subtests):
        """scripts/README.md: a text that does not compile or does not run keeps the old text; a good text takes over
        again."""
        for name, (text, reason) in BROKEN.items():
            with subtests.test(name):
                reason = reason.replace("NAME", "greet")
                self.write("handlers", "greet", text)
                assert self.greeting() == "one"
                state, told = self.scripts_of("handler")["greet"]
                assert state == "faulty"
                assert re.search(reason, told)
                assert self.greeting() == "one"
                self.write("handlers", "greet", says("one"))
                assert self.scripts_of("handler")["greet"] == ("loaded", None)
        self.logged("handler.lua.script.faulty", "greet.lua was edited and does not run; the previous text stays")

    def test_a_filter(self, subtests):
        """scripts/README.md: filters as well: a broken filter permits no job."""
        for name, (text, reason) in BROKEN.items():
            with subtests.test(name):
                reason = reason.replace("NAME", "gate")
                self.write("filters", "gate", text)
                assert self.word() == "one"
                state, told = self.scripts_of("filter")["gate"]
                assert state == "faulty"
                assert re.search(reason, told)
                self.write("filters", "gate", refuses("one"))
                assert self.scripts_of("filter")["gate"] == ("loaded", None)
        self.logged("filter.lua.script.faulty", "gate.lua was edited and does not run; the previous text stays")

    def test_a_fault_is_reported_once(self):
        """scripts/README.md: one line in the log for each edit, not for each job."""
        before = self.server.log().count("script.faulty")
        self.write("handlers", "greet", "return function(")
        for _ in range(20):
            assert self.greeting() == "one"
        self.scripts_of("handler")
        assert self.server.log().count("script.faulty") == before + 1

    def test_removed(self):
        """core/decisions/lua.md: a removed script goes on with its last text, reported by GET /v1/plugins."""
        os.remove(os.path.join(self.scripts, "filters", "gate.lua"))
        os.remove(os.path.join(self.scripts, "handlers", "greet.lua"))
        assert (self.word(), self.greeting()) == ("one", "one")
        for kind, name in (("filter", "gate"), ("handler", "greet")):
            state, reason = self.scripts_of(kind)[name]
            assert state == "faulty"
            assert f"{name}.lua cannot be read" in reason
        assert (self.word(), self.greeting()) == ("one", "one")

    def test_new_workers_too(self):
        """core/decisions/lua.md: a text kept in force is used by later workers and endpoints too."""
        self.write("handlers", "greet", "broken")
        endpoint = self.new_endpoint(self.new_template(imageName="lua/greet"), workersMin=2, filters=["gate"])
        assert self.assert_refused(self.submit(endpoint["id"]), 400) == "the word is one"
        self.call("PATCH", "/endpoints/" + endpoint["id"], {"filters": []})
        assert self.output(endpoint["id"], {}) == "one"


class ReportTest(ReloadTest):
    def test_get_plugins(self):
        """scripts/README.md: each script of the folder is listed with its state, used or not; removed scripts are
        dropped after a while."""
        assert self.scripts_of("handler") == {"greet": ("loaded", None), "other": ("loaded", None)}
        assert self.scripts_of("filter") == {"gate": ("loaded", None), "spare": ("loaded", None)}
        path = self.write("handlers", "fresh", "return function(")
        with open(os.path.join(self.scripts, "handlers", "notes.txt"), "w", encoding="utf-8") as file:
            file.write("no script")
        found = self.scripts_of("handler")
        assert set(found) == {"fresh", "greet", "other"}
        assert re.search(r"fresh\.lua:1: ", found["fresh"][1])
        os.remove(path)
        assert set(self.scripts_of("handler")) == {"greet", "other"}

    def test_only_where_scripts_run(self):
        """GET /v1/plugins: other entries have none; nor has lua where no endpoint uses it."""
        for plugin in self.call("GET", "/plugins"):
            for entry in plugin["entries"]:
                assert (entry["scripts"] != []) == (entry["name"] == "lua"), entry
        self.fresh_server({"greet": says("one")}, {"gate": refuses("one")})
        assert (self.scripts_of("handler"), self.scripts_of("filter")) == ({}, {})

    def test_jobqctl_describe(self, subtests):
        """scripts/README.md: `jobqctl plugin describe` has a table of scripts after the options."""
        self.write("handlers", "greet", "return function(")
        self.write("filters", "gate", "return 1")
        for name, scripts in (("handler.lua", [["greet", "faulty", "greet.lua:1:"], ["other", "loaded", "-"]]),
                              ("filter.lua", [["gate", "faulty", "gate.lua"], ["spare", "loaded", "-"]])):
            with subtests.test(name):
                about, options, table = self.table("plugin", "describe", name).split("\n\n")
                assert "lua" in about
                assert "lua.memory" in options
                rows = [line.split()[:3] for line in table.splitlines()]
                assert rows == [["SCRIPT", "STATE", "REASON"], *scripts]
                entry = self.json("plugin", "describe", name)
                assert [script["name"] for script in entry["scripts"]] == [row[0] for row in scripts]
        assert len(self.table("plugin", "describe", "storage.memory").split("\n\n")) == 2
        assert "handler.lua" in self.sentence("plugin", "describe", "lua", code=USAGE)
        assert "queue.lua" in self.sentence("plugin", "describe", "queue.lua", code=REFUSED)

    def test_jobqctl_list(self):
        """scripts/README.md: `jobqctl plugin list` names the scripts with a newer text that does not run."""
        def reasons():
            return {row["KIND"]: (row["STATE"], row["REASON"]) for row in self.rows("plugin", "list")
                    if row["NAME"] == "lua"}
        assert reasons() == {"handler": ("loaded", "-"), "filter": ("loaded", "-")}
        self.write("handlers", "greet", "broken")
        self.write("handlers", "other", "broken")
        assert reasons() == {"handler": ("loaded", "faulty scripts: greet, other"), "filter": ("loaded", "-")}


class FolderTest(LuaTest):
    def test_a_later_folder(self):
        """A server starts without scripts; they may come, with their folder, while it runs."""
        self.fresh_server()
        for kind in ("handlers", "filters"):
            os.rmdir(os.path.join(self.scripts, kind))
        template = self.new_template(imageName="lua/late")
        body = {"templateId": template["id"], "filters": ["late"]}
        self.assert_faults(self.server.request("POST", "/v1/endpoints", body), "templateId", "filters")
        make_folder(self.scripts, {"late": says("late")}, {"late": "return function() end"})
        endpoint = self.new_endpoint(template, filters=["late"])
        assert self.output(endpoint["id"], {}) == "late"

"""scripts/README.md: jobqctl lua run and lua check: scripts in the server's own sandbox, without a server."""

import json
import os
import re
import subprocess

import pytest

from jobq_server import JOBQCTL, ROOT
from jobqctl_case import NOT_COMPLETED, NOWHERE, REFUSED, USAGE

SCRIPTS = os.path.join(ROOT, "scripts", "lua")
REVERSE = os.path.join(SCRIPTS, "handlers", "reverse_text.lua")
COUNT = os.path.join(SCRIPTS, "handlers", "count_stream.lua")
REQUIRE = os.path.join(SCRIPTS, "filters", "require_fields.lua")


class ScriptCommandTest:
    @pytest.fixture(autouse=True)
    def own_folder(self, tmp_path):
        self.folder = str(tmp_path)

    def script(self, text, name="script.lua", folder=""):
        os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
        path = os.path.join(self.folder, folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    @staticmethod
    def jobqctl(*arguments, **options):
        """Runs jobqctl lua with the address of no server: the command needs none."""
        return subprocess.run([JOBQCTL, "lua", *arguments], env={**os.environ, "JOBQ_URL": NOWHERE},
                              capture_output=True, text=True, timeout=60, check=False, **options)

    def good(self, *arguments, **options):
        done = self.jobqctl(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    def sentence(self, code, *arguments):
        done = self.jobqctl(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert re.search(r"jobqctl: .*\n\Z", done.stderr)
        return done.stderr.splitlines()[-1]


class RunHandlerTest(ScriptCommandTest):
    def test_output(self):
        """The output is all that standard output has."""
        done = self.good("run", REVERSE, "--input", '{"text":"olleh"}')
        assert (json.loads(done.stdout), done.stderr) == ({"text": "hello", "characters": 5}, "")

    def test_reports(self):
        """Chunks, progress and log lines come on standard error, as they happen."""
        done = self.good("run", COUNT, "--input", '{"to":1}')
        assert json.loads(done.stdout) == {"counted": 1}
        assert done.stderr.splitlines() == [
            "log counting to 1", 'chunk {"n":1} metrics {"left":0}', 'progress {"at":1,"to":1}']

    def test_where_the_input_comes_from(self):
        """`-` is standard input, @FILE a file, {} the default."""
        echo = self.script("return function(input) return input end")
        assert self.good("run", echo, "--input", "-", input='{"a":1}').stdout == '{"a":1}\n'
        assert self.good("run", echo, "--input", "@" + self.script('{"b":2.0}', "input.json")).stdout == '{"b":2.0}\n'
        assert self.good("run", echo).stdout == "{}\n"

    def test_job_and_env(self):
        """job.env has what --env says; the deadline is --timeout."""
        script = self.script(
            "return function(_, job) return {job.id, job.env.A, job.env.B, job:deadline() <= 5000} end")
        done = self.good("run", script, "--env", "A=1=2", "--env", "B=", "--timeout", "5s")
        assert json.loads(done.stdout) == ["local-job", "1=2", "", True]

    def test_failures(self):
        """Exit code 4, and the sentence that would be the job's error."""
        script = self.script("\nreturn function() error('bad luck') end")
        assert self.sentence(NOT_COMPLETED, "run", script) == "jobqctl: script.lua:2: bad luck"
        bomb = self.script("return function() local t = {} while true do t[#t + 1] = {} end end")
        sentence = self.sentence(NOT_COMPLETED, "run", bomb, "--set", "lua.memory=2MB")
        assert "not enough memory: a script has 2 MB" in sentence
        reason = self.script("return function() return nil, 'the model is not loaded' end")
        assert self.sentence(NOT_COMPLETED, "run", reason) == "jobqctl: the model is not loaded"
        loop = self.script("return function() while true do end end")
        assert "ran longer than its execution timeout" in self.sentence(NOT_COMPLETED, "run", loop, "--timeout", "50ms")

    def test_metrics(self):
        """Metrics have to be an object, as in the server."""
        script = self.script("return function(input, job) job:emit(1, 'x') end")
        assert "metrics that are not a JSON object" in self.sentence(NOT_COMPLETED, "run", script)

    def test_a_full_disk(self):
        """An output that was lost is no success."""
        with open("/dev/full", "wb") as full:
            done = subprocess.run([JOBQCTL, "lua", "run", REVERSE, "--input", '{"text":"x"}'], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        assert done.returncode == REFUSED
        assert "the output cannot be written" in done.stderr

    def test_a_reader_leaving_early(self):
        """`jobqctl ... | head` is no fault of the disk, and leaves standard error empty."""
        script = self.script("return function() return ('x'):rep(1000000) end")
        with subprocess.Popen([JOBQCTL, "lua", "run", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            assert running.stdout.read(10) == b'"xxxxxxxxx'
            running.stdout.close()
            assert running.stderr.read() == b""
            assert running.wait(60) == 0

    def test_settings(self):
        """--set is a setting of the server: http is off unless it says otherwise."""
        script = self.script("return function() return http.get('http://127.0.0.1:1/') == nil end")
        assert "lua.http = true" in self.sentence(NOT_COMPLETED, "run", script)
        assert self.good("run", script, "--set", "lua.http=true").stdout == "true\n"
        address = self.script("return function() return select(2, http.get('http://127.0.0.1:1/')) end", "address.lua")
        assert "is private" in self.good("run", address, "--set", "lua.http=true").stdout
        opened = self.good("run", address, "--set", "lua.http=true", "--set", "net.allowPrivate=true").stdout
        assert "is private" not in opened
        assert "true or false" in self.sentence(USAGE, "run", address, "--set", "net.allowPrivate=yes")
        assert "lua.memory" in self.sentence(REFUSED, "run", script, "--set", "lua.memroy=2MB")


class RunFilterTest(ScriptCommandTest):
    def test_verdicts(self):
        """A script in a folder `filters` is one; refused is exit code 4 with the message."""
        assert self.good("run", REQUIRE, "--env", "REQUIRE_FIELDS=a", "--input", '{"a":1}').stdout == "accepted\n"
        sentence = self.sentence(NOT_COMPLETED, "run", REQUIRE, "--env", "REQUIRE_FIELDS=a")
        assert sentence == "jobqctl: input.a is missing: this endpoint requires it"
        used_up = self.script("return function() return false, 'later', { status = 429 } end", folder="filters")
        assert self.sentence(NOT_COMPLETED, "run", used_up) == "jobqctl: later (429)"

    def test_changes(self):
        """The output shows the filter's changes to the job; --filter names the kind of a file outside of the
        folders."""
        script = self.script("return function(job) return {input = {n = job.size}, policy = {priority = 3}} end")
        assert self.good("run", script, "--filter", "--input", '{"a":1}').stdout.splitlines() == [
            "accepted", 'input {"n":7}',
            'policy {"executionTimeout":600000,"ttl":86400000,"lowPriority":false,"priority":3}']

    @pytest.mark.parametrize("made, words", [
        ("{policy = {ttl = -5}}", "the filter returned a wrong policy: policy.ttl"),
        ("{input = json.array()}", "the filter returned an input that is not a JSON object"),
        ("false, ''", "the filter script refuses this job")])
    def test_values_refused_by_the_server(self, made, words):
        """The result of a filter is judged like in the server."""
        script = self.script(f"return function() return {made} end", folder="filters")
        assert words in self.sentence(NOT_COMPLETED, "run", script)

    def test_overrun(self):
        """The filter has the time of the server's filters."""
        script = self.script("return function() while true do end end", folder="filters")
        assert "5 ms of processor time (lua.filterTime)" in self.sentence(NOT_COMPLETED, "run", script)


class CheckTest(ScriptCommandTest):
    def test_shipped(self):
        """All that is shipped is fine."""
        for kind in ("handlers", "filters"):
            for name in os.listdir(os.path.join(SCRIPTS, kind)):
                assert self.good("check", os.path.join(SCRIPTS, kind, name)).stdout == f"{name} is fine\n"

    @pytest.mark.parametrize("text, words", [
        ("\nx = = 1", "script.lua:2: "), ("return 1", "returns no function"),
        ("error('at once')", "script.lua:1: at once"), ("\x1bLua", "script.lua is bytecode")])
    def test_faults(self, text, words):
        """Exit code 1 and why: file and line, or what is missing."""
        assert words in self.sentence(REFUSED, "check", self.script(text))

    def test_libraries_of_its_kind(self):
        """http is a handler's, quota a filter's."""
        self.good("check", self.script("local get = http.get return function() end"))
        self.good("check", self.script("local take = quota.take return function() end", folder="filters"))


class WrongUsageTest(ScriptCommandTest):
    def test_sentences(self, subtests):
        """Exit code 2: nothing ran."""
        fine = self.script("return function() end")
        for arguments, words in ((["run", self.folder + "/none.lua"], "cannot be read"),
                                 (["run", self.script("", "a b.lua")], "letters, digits"),
                                 (["check", self.script("", "script.txt")], "word_count.lua"),
                                 (["run", fine, "--input", "[1]"], "not a JSON object"),
                                 (["run", fine, "--input", "{"], "not JSON"),
                                 (["run", fine, "--env", "A"], "NAME=VALUE"),
                                 (["run", fine, "--input", "@" + self.folder], "cannot be read"),
                                 (["run", fine, "--timeout", "5"], "--timeout"), (["run"], "FILE")):
            with subtests.test(arguments):
                assert words in self.sentence(USAGE, *arguments)

    def test_no_plugin(self):
        """Without the plugin there is no sandbox: the sentence says so."""
        script = self.script("return function() end")
        assert "no handler plugin named lua" in self.sentence(REFUSED, "run", script, "--plugins", self.folder)

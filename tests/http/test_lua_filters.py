"""scripts/README.md: admission filters as scripts: permission, permitted changes, and failures of a filter. Filters as
C++ plugins: tests/server/server_filter_test.cpp; edited scripts: test_lua_reload.py."""

import concurrent.futures
import os
import re

import pytest

from jobq_server import jobqd, until
from lua_case import LuaTest
from pace import HANG_MS, judge_pace

NAME_RULE = "1 to 64 letters, digits"  # in each refusal of a name that no filter can have


def trace(letter):
    return f"""return function(job)
      local input = job.input
      input.trace = (input.trace or "") .. "{letter}"
      return {{ input = input }}
    end"""


def filtered(name, *filters, parked=False, **settings):
    """Settings of an endpoint `name` that echoes, with these filters."""
    found = {f"endpoint.{name}.image": "plugin/echo", f"endpoint.{name}.filters": ", ".join(filters), **settings}
    return {**found, **({f"endpoint.{name}.workersMax": 0} if parked else {})}


class FilterTest(LuaTest):
    filters = {
        "a": trace("a"), "b": trace("b"), "c": trace("c"),
        "says": "return function(job) return false, job.input.says end",
        "about": """return function(job)
          return { input = { key = job.key, endpoint = job.endpoint, size = job.size, policy = job.policy,
                             env = job.env, unknown = job.unknown == nil } }
        end""",
        "policy": "return function(job) return { policy = job.input.policy } end",
        "verdict": """return function(job)
          local verdicts = { none = nil, yes = true, no = false, number = 7, text = "x", empty = {},
            unknown = { inputs = {} }, array = { input = json.array({ 1 }) }, nothing = { input = json.array() },
            nan = { input = { a = 0 / 0 } }, text_input = { input = "x" }, policy = { policy = 7 } }
          return verdicts[job.input.which]
        end""",
        "fails": "return function(job)\n  error(job.input.what)\nend",
        "loops": "return function() while true do pcall(function() while true do end end) end end",
        "large": "return function(job) if #job.input.text < 1 then return false end end",
        "prints": "return function(job) print('seen', job.input.text) end",
        "floods": "return function(job) for i = 1, job.input.lines do print(('x'):rep(job.input.bytes)) end end",
        "counts": "return function() seen = (seen or 0) + 1 return { input = { seen = seen } } end",
        "dice": "return function(job) job.input.dice = math.random() return { input = job.input } end",
        "once": "return function(job) return quota.take(job.input.name, 1, 3600), 'once is enough' end",
    }
    settings = {
        "filters": "a",
        **filtered("ab", "a", "b"), **filtered("ba", "b", "a"), **filtered("abc", "a", "b", "c"), **filtered("none"),
        "endpoint.servers.image": "plugin/echo",
        **filtered("says", "says", parked=True), **filtered("stops", "a", "says", "b", parked=True),
        **filtered("about", "about", **{"endpoint.about.env.LIMIT": "5"}),
        **filtered("policy", "policy", **{"endpoint.policy.image": "plugin/trial"}),
        **filtered("line", "policy", parked=True),
        **filtered("verdict", "verdict"), **filtered("fails", "fails", parked=True), **filtered("second", "a", "fails"),
        **filtered("loops", "loops", parked=True), **filtered("large", "large"), **filtered("prints", "prints"),
        **filtered("floods", "floods"), **filtered("counts", "counts"), **filtered("dice", "dice"),
        **filtered("once", "once"), **filtered("waits", "once", parked=True),
    }

    def assert_nothing_stored(self, endpoint):
        jobs = self.server.health(endpoint)["jobs"]
        assert (jobs["inQueue"], jobs["inProgress"], jobs["completed"], jobs["failed"]) == (0, 0, 0, 0)
        assert self.server.request("GET", f"/v2/{endpoint}/requests").json()["requests"] == []

    def assert_failed(self, answer, name, *words):
        """Expects a 500 with the name of the filter and a request id, which is in the log too."""
        sentence = self.assert_refused(answer, 500, f"the filter {name} of this endpoint failed: ", *words)
        request = sentence.rpartition(" ")[2]
        assert re.search(r"\A[0-9a-f]{16}\Z", request)
        line = next(line for line in self.server.log().splitlines() if request in line)
        assert f"the filter {name} of this endpoint failed" in line


class VerdictTest(FilterTest):
    def test_order(self):
        """core/http/API.md, "Admission filters": filters run in order; each filter sees the result of the filter
        before."""
        for endpoint in ("ab", "ba", "abc"):
            assert self.output(endpoint, {"n": 1}) == {"n": 1, "trace": endpoint}

    def test_the_servers_and_the_endpoints(self):
        """core/http/API.md, "Admission filters": filters belong to the server or to an endpoint; an empty list means no
        filter."""
        assert self.output("servers", {}) == {"trace": "a"}
        assert self.output("none", {}) == {}

    def test_reject(self):
        """core/http/API.md, "Admission filters": reject with a message is 400, on /run and /runsync and on the SDK
        mount; no job is stored."""
        for operation in ("run", "runsync"):
            answer = self.submit("says", {"says": "input.n is too large: send less"}, operation)
            assert self.assert_refused(answer, 400) == "input.n is too large: send less"
        answer = self.server.request("POST", "/sdk/v2/says/run", {"input": {"says": "not from here"}})
        assert self.assert_refused(answer, 400) == "not from here"
        self.assert_nothing_stored("says")

    def test_a_rejected_job_is_not_judged_further(self):
        """core/http/API.md, "Admission filters": the first refusal in order is the answer."""
        assert self.assert_refused(self.submit("stops", {"says": "enough of it"}), 400) == "enough of it"

    def test_messages(self, subtests):
        """core/http/API.md, "Shape": the answer is JSON with a sentence for every text of the script."""
        plain = "the filter says refuses this job"
        for says, error in ((None, plain), (7, plain), ({"a": 1}, plain), ("", plain), ("ä" * 3_000, "ä" * 2_048),
                            ("a\"b\\", "a\"b\\"), ("one\ntwo\0three", "one\ntwo\0three")):
            with subtests.test(says=str(says)[:20]):
                answer = self.submit("says", {"says": says})
                assert (answer.status, answer.json()) == (400, {"error": error})

    def test_allowed_results_of_a_filter(self, subtests):
        """scripts/README.md: no value or true permits; false refuses; a table changes the job; any other value is a
        fault of the script."""
        for which in ("none", "yes", "empty"):
            assert self.output("verdict", {"which": which}) == {"which": which}
        sentence = self.assert_refused(self.submit("verdict", {"which": "no"}), 400)
        assert sentence == "the filter verdict refuses this job"
        for which, words in (("number", "the filter returned a number"), ("text", "the filter returned a string"),
                             ("unknown", "unknown field inputs"), ("array", "not a JSON object"),
                             ("nothing", "not a JSON object"), ("nan", "nan at .a is not JSON"),
                             ("text_input", "not a JSON object"), ("policy", "not a table")):
            with subtests.test(which):
                self.assert_failed(self.submit("verdict", {"which": which}), "verdict", words)

    def test_fields_visible_to_a_filter(self):
        """scripts/README.md: job.size, job.endpoint, job.key; policy and env too. The size counts the received
        bytes."""
        text = '{"ä" : [1,  2 ]\n}'
        answer = self.server.request("POST", f"/v2/about/runsync?wait={HANG_MS}",
                                     '{"policy":null, "input": ' + text + " }")
        seen = self.assert_job(answer)["output"]
        assert re.search(r"\A\S+\Z", seen.pop("key"))
        assert seen == {"endpoint": "about", "size": len(text.encode()), "env": {"LIMIT": "5"}, "unknown": True,
                        "policy": {"executionTimeout": 600_000, "ttl": 86_400_000, "lowPriority": False, "priority": 0}}
        policy = {"executionTimeout": 5_000, "ttl": 10_000, "lowPriority": False, "priority": -7}
        assert self.output("about", {}, policy=policy)["policy"] == policy

    def test_keys(self):
        """scripts/README.md: job.key is the id of the caller's key, never the key."""
        seen = []
        for _ in range(2):
            key = self.server.new_key("client")
            answer = self.submit("about", {}, f"runsync?wait={HANG_MS}", key=key["key"])
            assert self.assert_job(answer)["output"]["key"] == key["id"]
            seen.append(key["id"])
        assert seen[0] != seen[1]
        assert self.output("about", {})["key"] not in seen

    def test_a_fresh_environment_for_each_job(self):
        """core/decisions/lua.md: no job reaches another job's globals."""
        assert [self.output("counts", {}) for _ in range(5)] == [{"seen": 1}] * 5

    def test_print_goes_into_the_log(self):
        """scripts/README.md: a print of a filter is a line of the log, and one line only."""
        self.output("prints", {"text": "a\n2026-01-01T00:00:00.000Z Error forged: line"})
        line = until(lambda: next((line for line in self.server.log().splitlines() if "prints: seen" in line), None),
                     "the line")
        assert "a\\n2026-01-01T00:00:00.000Z Error forged: line" in line

    @pytest.mark.parametrize("lines, size", [(1_000, 0), (300, 100), (2, 100_000)])
    def test_no_filter_fills_the_log(self, lines, size):
        """core/decisions/lua.md: a handler or a filter cannot harm the server: 4 KB of the log for each job."""
        before = len(self.server.log())
        self.submit("floods", {"lines": lines, "bytes": size})
        written = self.server.log()[before:]
        assert 2 <= written.count("floods: ") + (size > 4_096) <= 65, written.count("floods: ")
        assert len(written) < 12_000

    def test_many_at_once(self):
        """core/http/API.md, "Admission filters": each job is judged on its own."""
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            outputs = list(pool.map(lambda n: self.output("abc", {"n": n}), range(120)))
        assert outputs == [{"n": n, "trace": "abc"} for n in range(120)]


class PolicyTest(FilterTest):
    def run_with(self, rewritten, **fields):
        return self.server.run("line", {"policy": rewritten}, **fields)

    def position(self, job):
        return self.server.status("line", job)["queuePosition"]

    def test_priority(self):
        """scripts/README.md: a filter rewrites the policy, here the order in the queue."""
        low, plain = self.run_with({"lowPriority": True}), self.run_with({})
        high = self.run_with({"priority": 1_000})
        sent = self.run_with({"priority": 0}, policy={"priority": 1_000})
        assert [self.position(job) for job in (high, plain, sent, low)] == [1, 2, 3, 4]
        self.server.request("POST", "/v2/line/purge-queue")

    def test_times(self):
        """scripts/README.md: executionTimeout and ttl of a filter apply to the job; absent fields stay."""
        expires = self.run_with({"ttl": 10_000}, policy={"priority": 5})
        ahead = self.run_with({})
        assert [self.position(job) for job in (expires, ahead)] == [1, 2], "its own priority stayed"
        job = self.server.run("policy", {"sleepMs": 60_000, "policy": {"executionTimeout": 5_000}})
        end = self.server.finished("policy", job)
        assert end["status"] == "TIMED_OUT", end
        assert 5_000 <= end["executionTime"] < 60_000, end
        judge_pace("the end of a job after a filter's execution timeout", end["executionTime"] / 1000 - 5, 5)
        until(lambda: self.server.request("GET", f"/v2/line/status/{expires}").status == 404, "it expires")
        assert self.server.status("line", ahead)["status"] == "IN_QUEUE"
        self.server.request("POST", "/v2/line/purge-queue")

    def test_out_of_range(self, subtests):
        """core/decisions/lua.md: the ranges of callers apply; a filter beyond the ranges is a fault of the server,
        500."""
        for policy, words in (({"priority": 1_001}, "policy.priority"), ({"priority": -1_001}, "policy.priority"),
                              ({"priority": 1 << 40}, "policy.priority"), ({"ttl": 9_999}, "policy.ttl"),
                              ({"ttl": 604_800_001}, "policy.ttl"), ({"ttl": -1}, "policy.ttl"),
                              ({"executionTimeout": 4_999}, "policy.executionTimeout"),
                              ({"executionTimeout": 2 ** 63 - 1}, "policy.executionTimeout"),
                              ({"priority": 1.5}, "priority is not a whole number"),
                              ({"ttl": "10000"}, "ttl is not a whole"),
                              ({"lowPriority": 1}, "neither true nor false"), ({"speed": 1}, "unknown field speed"),
                              ([10_000], "unknown field")):
            with subtests.test(policy=policy):
                self.assert_failed(self.submit("line", {"policy": policy}), "policy", words)
        self.assert_nothing_stored("line")
        for policy in ({"priority": 1_000, "ttl": 604_800_000, "executionTimeout": 604_800_000},
                       {"priority": -1_000, "ttl": 10_000, "executionTimeout": 5_000, "lowPriority": False}):
            self.run_with(policy)
        self.server.request("POST", "/v2/line/purge-queue")


class FailureTest(FilterTest):
    def test_a_failing_filter(self):
        """core/decisions/lua.md: a failing filter is 500 and is named; no job is stored."""
        for operation in ("run", "runsync"):
            self.assert_failed(self.submit("fails", {"what": "no idea"}, operation), "fails", "fails.lua:2: no idea")
        self.assert_failed(self.submit("fails", {"what": None}), "fails", "the error is a json.null")
        self.assert_nothing_stored("fails")
        self.assert_failed(self.submit("second", {"what": "no"}), "fails", "fails.lua:2: no")

    def test_an_overrunning_filter(self):
        """scripts/README.md: a budget of 5 ms of processor time, even if the script catches errors."""
        for operation in ("run", "runsync"):
            self.assert_failed(self.submit("loops", {}, operation), "loops",
                               "the script took more than 5 ms of processor time (lua.filterTime)")
        self.assert_nothing_stored("loops")

    def test_many_overrunning_filters(self):
        """A hostile filter costs its own callers only."""
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: self.submit("loops", {}), range(60)))
        assert {answer.status for answer in answers} == {500}
        assert self.output("ab", {}) == {"trace": "ab"}

    def test_a_budget_for_decoded_values(self):
        """scripts/README.md: 20 ms more for each MB of decoded JSON."""
        assert len(self.output("large", {"text": "x" * (4 << 20)})["text"]) == 4 << 20
        self.assert_refused(self.submit("large", {"text": ""}), 400)

    def test_a_filter_allocating_without_end(self):
        """core/decisions/lua.md: time and memory are bounded, 500 either way; the server's memory is as before."""
        bomb = "return function() local s = 'x' while true do s = s .. s end end"
        tables = "return function() local t = {} while true do t[#t + 1] = { t } end end"
        server = self.fresh_server(filter_scripts={"bomb": bomb, "tables": tables, "ok": "return function() end"}, **{
            "lua.memory": "4MB", "lua.filterTime": "1s", **filtered("bomb", "bomb"), **filtered("tables", "tables"),
            **filtered("ok", "ok")})

        def forty_bombs():
            for _ in range(20):
                for name in ("bomb", "tables"):
                    self.assert_failed(self.submit(name), name, "not enough memory: a script has 4 MB (lua.memory)")

        forty_bombs()  # until every thread's heap has seen one
        before = server.rss()
        forty_bombs()
        self.assert_memory_is_back(server, before, 4 << 20)
        assert self.submit("ok").status == 200


class RestTest(FilterTest):
    def made(self, **fields):
        template = self.new_template(imageName="plugin/echo", env=fields.pop("env", {}))
        return self.new_endpoint(template, **fields)

    @pytest.mark.parametrize("fields, output", [
        ({}, {"trace": "a"}), ({"filters": None}, {"trace": "a"}), ({"filters": []}, {}),
        ({"filters": ["b", "a"]}, {"trace": "ba"})])
    def test_creation(self, fields, output):
        """core/decisions/lua.md: absent or null means the server's filters, [] no filter, a list exactly these
        filters."""
        endpoint = self.made(**fields)
        assert endpoint["filters"] == fields.get("filters")
        assert self.endpoint(endpoint)["filters"] == fields.get("filters")
        assert self.output(endpoint["id"], {}) == output

    def test_changes(self):
        """core/http/API.md, "Endpoint": PATCH takes effect for the next request, and is no release; null means the
        server's filters again."""
        endpoint = self.made(filters=["a"])
        path = "/endpoints/" + endpoint["id"]
        for filters, output in ((["b"], "b"), (["b", "c", "a"], "bca"), ([], None), (["c"], "c")):
            now = self.call("PATCH", path, {"filters": filters})
            assert (now["filters"], now["version"]) == (filters, 1)
            assert self.output(endpoint["id"], {}).get("trace") == output
        assert self.call("POST", path + "/update", {"workersMax": 2})["filters"] == ["c"]
        assert self.call("POST", path + "/update", {"filters": None})["filters"] is None
        assert self.output(endpoint["id"], {}) == {"trace": "a"}, "the server's again"

    def test_env_of_the_template(self):
        """core/decisions/lua.md: a filter's settings are the endpoint's env, which a release changes."""
        endpoint = self.made(filters=["about"], env={"LIMIT": "1"})
        assert self.output(endpoint["id"], {})["env"] == {"LIMIT": "1"}
        self.call("PATCH", "/templates/" + endpoint["templateId"], {"env": {"LIMIT": "2"}})
        assert self.output(endpoint["id"], {})["env"] == {"LIMIT": "2"}

    def test_wrong_lists(self, subtests):
        """core/decisions/lua.md: unknown filters, wrong names and repeated names are 400 with the reason; no change is
        stored."""
        endpoint = self.made(filters=["a"])
        cases = ((["nosuch"], "nosuch cannot run: nosuch.lua cannot be read"), (["a", "nosuch"], "nosuch.lua"),
                 (["a", "b", "a"], "the filter a appears twice"), (["plugin/none"], "no filter plugin named none"),
                 (["plugin/echo"], "no filter plugin named echo"), (["plugin/lua"], "use the script's name"),
                 (["../handlers/x"], NAME_RULE), (["a b"], NAME_RULE), ([""], NAME_RULE),
                 (["a.lua"], NAME_RULE), (["plugin/"], NAME_RULE), (["lua/a"], NAME_RULE),
                 (["n" * 65], NAME_RULE), (["A"], "A.lua cannot be read"),
                 ([f"f{n}" for n in range(17)], "16"), ("a", "array of strings"), ([1], "array of strings"),
                 ({"a": 1}, "array of strings"))
        for filters, words in cases:
            with subtests.test(filters=str(filters)[:40]):
                creation = {"templateId": endpoint["templateId"], "filters": filters}
                assert words in self.assert_faults(self.server.request("POST", "/v1/endpoints", creation), "filters")
                change = self.server.request("PATCH", "/v1/endpoints/" + endpoint["id"], {"filters": filters})
                assert words in self.assert_faults(change, "filters")
        assert self.endpoint(endpoint)["filters"] == ["a"]

    def test_endpoints_of_the_file_are_fixed(self):
        """core/decisions/lua.md: endpoints of the file cannot change while the server runs; their filters are shown,
        the server's included."""
        assert self.call("GET", "/endpoints/abc")["filters"] == ["a", "b", "c"]
        assert self.call("GET", "/endpoints/servers")["filters"] == ["a"]
        assert self.server.request("PATCH", "/v1/endpoints/abc", {"filters": []}).status == 400
        assert self.output("abc", {}) == {"trace": "abc"}

    def test_a_restart(self):
        """core/decisions/lua.md: filters are kept. A filter without its file refuses all jobs, and is named; other
        endpoints serve."""
        server = self.fresh_server(filter_scripts={"a": trace("a"), "b": trace("b")}, **filtered("other", "b"))
        endpoint = self.made(filters=["a"])
        server.restart()
        assert self.output(endpoint["id"], {}) == {"trace": "a"}
        server.stop()
        os.remove(os.path.join(self.scripts, "filters", "a.lua"))
        server.start()
        self.assert_failed(self.submit(endpoint["id"]), "a", "a.lua cannot be read")
        assert self.output("other", {}) == {"trace": "b"}
        self.write("filters", "a", trace("A"))
        assert self.output(endpoint["id"], {}) == {"trace": "A"}, "no restart is needed"


class StartTest(LuaTest):
    def assert_refused_start(self, *words, check=True, filter_scripts=None, **settings):
        server = self.fresh_server(filter_scripts={"a": trace("a"), **(filter_scripts or {})}, start=False, **settings)
        checked = jobqd("--config", server.file, "--check")
        line = self.refused_start(server)
        for word in words:
            assert word in line
        assert checked.returncode == (1 if check else 0), checked.stderr
        if check:
            assert words[0] in checked.stderr

    @pytest.mark.parametrize("value, words", [
        ("nosuch", "nosuch.lua"), ("a, nosuch", "nosuch.lua"), ("plugin/none", "none"), ("plugin/echo", "echo"),
        ("a, a", "twice"), ("../a", NAME_RULE), ("a b", NAME_RULE)])
    @pytest.mark.parametrize("key", ["filters", "endpoint.echo.filters"])
    def test_missing_filters(self, key, value, words):
        """core/decisions/lua.md: a missing filter stops the start with its name; so does --check."""
        self.assert_refused_start(key, words, **{key: value})

    def test_missing_filters_of_the_server(self):
        """core/decisions/lua.md: endpoints created over REST use the server's filters: these have to be installed."""
        own = {f"endpoint.{name}.filters": "" for name in ("echo", "trial", "parked")}
        self.assert_refused_start("filters", "nosuch.lua", **own, **{"filters": "nosuch"})

    def test_uncompilable_filters(self):
        """The message has file and line."""
        self.assert_refused_start("endpoint.echo.filters", "bad.lua:1:", check=False,
                                  filter_scripts={"bad": "return function( end"}, **{"endpoint.echo.filters": "bad"})

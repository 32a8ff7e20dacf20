"""scripts/README.md: handlers as scripts, `image = lua/<name>`: their functions, and the failures of their jobs.
Endless scripts: test_lua_endless.py; missing scripts: test_lua_images.py; the sandbox itself: tests/lua."""

import re

import pytest

from jobq_server import until
from lua_case import LuaTest, returning
from pace import HANG_MS

ECHO = "return function(input) return input end"
ENV = "return function(input, job) return job.env end"


class RunTest(LuaTest):
    handlers = {
        "echo_lua": ECHO,
        "env": ENV,
        "about": returning("{ id = job.id, endpoint = job.endpoint, attempt = job.attempt, left = job:deadline() }"),
        "chunks": """return function(input, job)
          for i = 1, input.count do job:emit({ n = i, text = "ä" .. i }, input.metrics and { at = i } or nil) end
          return "done"
        end""",
        "patient": """return function(input, job)
          job:progress({ percent = 10 })
          job:progress({ percent = 40, list = json.array() })
          while not job:stopped() do end
          job:log("stopped")
          return "never shown"
        end""",
        "logging": "return function(input, job) job:log('a', 1, json.null) print('b') return 1 end",
        "loads": """return function()
          x = 2
          return { load('y = x + 1 return y')(), y, string == load('return string')() }
        end""",
        "metrics": "return function(input, job) job:emit(1, input.metrics) end",
        "colon": "return function(input, job) job.emit('x') end",
    }
    settings = {"endpoint.env.env.NAME": "world", "endpoint.env.env.NUMBER": "7"}

    def test_run_and_runsync(self):
        """core/http/API.md, "Images": lua/<name> runs <scripts>/handlers/<name>.lua; the result is the job's output."""
        assert self.output("echo_lua", {"a": [1, "b"]}) == {"a": [1, "b"]}
        job = self.server.run("echo_lua", {"b": 2})
        end = self.server.finished("echo_lua", job)
        assert (end["status"], end["output"]) == ("COMPLETED", {"b": 2})
        assert re.search(r"\A.+-\d+\Z", end["workerId"])

    def test_data_of_a_job_about_itself(self):
        """scripts/README.md: job.id, job:deadline(); job.endpoint and job.attempt too."""
        job = self.job("about", {}, policy={"executionTimeout": 7_000})
        left = job["output"].pop("left")
        assert job["output"] == {"id": job["id"], "endpoint": "about", "attempt": 1}
        assert 0 < left <= 7_000, left

    def test_env_of_the_file(self):
        """scripts/README.md: job.env is the endpoint's env."""
        assert self.output("env", {}) == {"NAME": "world", "NUMBER": "7"}
        assert self.output("about", {})["endpoint"] == "about"

    def test_stream(self):
        """scripts/README.md: job:emit(chunk, metrics) feeds /stream; an output other than a chunk stays in /status."""
        for metrics in (True, False):
            job = self.server.run("chunks", {"count": 3, "metrics": metrics})
            self.server.finished("chunks", job)
            chunks = self.server.request("GET", f"/v2/chunks/stream/{job}").json()
            wanted = [{"output": {"n": n, "text": f"ä{n}"}, **({"metrics": {"at": n}} if metrics else {})}
                      for n in (1, 2, 3)]
            assert chunks == wanted
            assert self.server.status("chunks", job)["output"] == "done"

    def test_stream_of_a_running_job(self):
        """core/http/API.md, "Reading a stream": chunks come as they are emitted, before the job has ended."""
        self.write("handlers", "patient", """return function(input, job)
          job:emit("early")
          while not job:stopped() do end
        end""")
        self.at_end.callback(self.write, "handlers", "patient", self.handlers["patient"])
        job = self.server.run("patient", {})
        answer = self.server.request("GET", f"/v2/patient/stream/{job}?wait={HANG_MS}")
        assert (answer.json(), answer.headers["X-Job-Status"]) == ([{"output": "early"}], "IN_PROGRESS")
        self.server.request("POST", f"/v2/patient/cancel/{job}")

    def test_progress(self):
        """scripts/README.md: job:progress(v): /status shows the last value while the job runs; job:stopped() ends the
        script."""
        job = self.server.run("patient", {})
        until(lambda: self.server.status("patient", job).get("output") == {"percent": 40, "list": []}, "progress")
        assert self.server.status("patient", job)["status"] == "IN_PROGRESS"
        answer = self.server.request("POST", f"/v2/patient/cancel/{job}").json()
        assert answer["status"] == "CANCELLED"
        self.server.quiet("patient")
        assert self.server.status("patient", job)["status"] == "CANCELLED", "its late result is ignored"

    def test_methods_want_a_colon(self):
        """scripts/README.md: the error names the right spelling."""
        assert re.search(r"colon\.lua:1: .*job:emit\(...\), with a colon", self.failure("colon", {}))

    def test_log_and_print(self):
        """scripts/README.md: job:log(...) and print(...) do not change the job."""
        for _ in range(3):
            assert self.output("logging", {}) == 1

    def test_load(self):
        """`load` uses the job's own globals."""
        for _ in range(3):
            assert self.output("loads", {}) == [3, 3, True]

    @pytest.mark.parametrize("metrics", [5, "x", [1], False])
    def test_metrics_are_an_object(self, metrics):
        """core/http/API.md, "Stream chunk": `metrics` is an object."""
        error = self.failure("metrics", {"metrics": metrics})
        assert error == "metrics.lua:1: the handler emitted metrics that are not a JSON object"


class ValueTest(LuaTest):
    handlers = {
        "echo_lua": ECHO,
        "again": returning("json.decode(json.encode(input))"),
        "types": """return function(input)
          local types = {}
          for name, value in pairs(input) do
            types[name] = math.type(value) or (value == json.null and "null") or type(value)
          end
          return types
        end""",
        "made": returning("({ nothing = nil, null = json.null, empty = {}, array = json.array(), list = { 1, 2 },"
                          " text = 'ä\\u{1F600}\\0', most = math.maxinteger, least = math.mininteger, half = 0.5,"
                          " whole = 1.0, yes = true })[input.which]"),
    }

    VALUES = [
        0, 1, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 53 + 1, 0.5, -0.25, 1e300, "", "text", "ä€😀", "\x00\x1f\x7f\\\"/", True,
        False, None, [], {}, [[]], [{}], {"a": []}, {"a": {}}, [None], [1, [2, [3, {"deep": [None]}]]],
        {"": 1, "1": 2, "ключ": "значение", "a b": None}, {str(n): n for n in range(300)}, list(range(300)),
    ]

    def test_there_and_back(self, subtests):
        """scripts/README.md: arrays kept apart from objects, 64-bit integers exact, null kept, any text."""
        for endpoint in ("echo_lua", "again"):
            for value in self.VALUES:
                with subtests.test(endpoint=endpoint, value=value):
                    output = self.output(endpoint, {"v": value})["v"]
                    assert output == value
                    assert type(output) is type(value)

    def test_bytes_of_the_output(self):
        """scripts/README.md: integers are written as integers, floats as floats."""
        answer = self.submit("echo_lua", operation=f"runsync?wait={HANG_MS}",
                             job_input={"a": 9223372036854775807, "b": 1.0})
        assert b'"output":{"a":9223372036854775807,"b":1.0}' in answer.body.replace(b" ", b"")

    def test_numbers_beyond_64_bits(self):
        """core/decisions/lua.md: numbers of any length are accepted: a script sees numbers beyond 64 bits as floats."""
        answer = self.server.request("POST", f"/v2/types/runsync?wait={HANG_MS}",
                                     '{"input":{"a":9223372036854775808,"b":' + "9" * 400 + ',"c":1e2,"d":-0}}')
        assert answer.json()["output"] == {"a": "float", "b": "float", "c": "float", "d": "float"}

    def test_values_made_by_scripts(self, subtests):
        """scripts/README.md: nil and json.null are null; {} is an object, json.array() an array."""
        wanted = {"nothing": None, "null": None, "empty": {}, "array": [], "list": [1, 2], "text": "ä😀\0",
                  "most": 2 ** 63 - 1, "least": -2 ** 63, "half": 0.5, "whole": 1.0, "yes": True}
        for which, value in wanted.items():
            with subtests.test(which):
                output = self.output("made", {"which": which})
                assert (output, type(output)) == (value, type(value))

    def test_deep(self):
        """core/http/API.md, "JSON": nesting to 512 levels; a script's value may be as deep."""
        text = "[" * 500 + "]" * 500
        answer = self.server.request("POST", f"/v2/echo_lua/runsync?wait={HANG_MS}", '{"input":{"v":' + text + "}}")
        assert answer.json()["status"] == "COMPLETED", answer.body[:300]
        assert text.encode() in answer.body


class FailureTest(LuaTest):
    handlers = {
        "fails": "\n\nreturn function(input)\n  local none = nil\n  return none.field\nend",
        "says": "return function(input) error(input.what, input.level) end",
        "tables": "return function(input) error({ code = 7 }) end",
        "nothing": "return function(input) error() end",
        "returns": "return function(input) return nil, input.reason end",
        "ids": returning("{ names = { [101] = 'ann', [205] = 'bo' } }"),
        "bytes": "return function(input) error('\\xff\\xfe a', 0) end",
        "nan": returning("{ a = { 0 / 0 } }"),
        "infinite": returning("{ a = math.huge }"),
        "function": returning("{ list = { 1, print } }"),
        "cycle": "return function() local t = {} t.t = t return t end",
        "mixed": returning("{ 1, 2, name = 3 }"),
        "holes": returning("{ [1] = 1, [3] = 3 }"),
        "binary": returning("'\\xff'"),
        "deep": """return function()
          local function f(a, b, c, d, e, g, h) return 1 + f(a, b, c, d, e, g, h) end
          return f()
        end""",
        "catches": "return function() local ok, message = pcall(error, 'inside', 0) return { ok, message } end",
        "global": "return function(input) seen = (seen or 0) + 1 string.seen = 1 return seen end",
        "counts": "return function(input) seen = (seen or 0) + 1 return seen end",
        "large": "return function(input) return ('x'):rep(input.bytes) end",
        "emits_nan": "return function(input, job) job:emit(0 / 0) end",
    }
    settings = {"endpoint.fails.workersMax": 1}

    def test_file_and_line(self):
        """scripts/README.md: errors carry file and line into the job's `error`."""
        assert re.search(r"\Afails\.lua:5: attempt to index a nil value \(local 'none'\)\Z", self.failure("fails", {}))
        assert self.failure("says", {"what": "it is so"}) == "says.lua:1: it is so"
        assert self.failure("says", {"what": "it is so", "level": 0}) == "it is so"

    def test_errors_other_than_text(self):
        """core/http/API.md, "Job object": `error` is always a string."""
        assert self.failure("tables", {}) == '{"code":7}'
        assert self.failure("nothing", {}) == "the error is a nil"
        assert self.failure("says", {"what": 7, "level": 0}) == "7"
        assert self.failure("says", {"what": True}) == "the error is a boolean"

    def test_nil_and_a_reason(self):
        """scripts/README.md: `return nil, reason` fails the job; nil alone is an output."""
        assert self.failure("returns", {"reason": "the model is not loaded"}) == "the model is not loaded"
        assert self.failure("returns", {"reason": {"code": 7}}) == '{"code":7}'
        assert self.output("returns", {}) is None

    def test_errors_of_any_bytes(self):
        """core/http/API.md, "Answers": the answer is JSON for every error text of a script."""
        assert self.failure("bytes", {}) == "\ufffd\ufffd a"

    def test_a_long_error(self):
        """The script's text about its failure is kept, up to 16 KB."""
        error = self.failure("says", {"what": "ä" * 100_000, "level": 0})
        assert 10_000 < len(error.encode()) < 20_000, len(error)

    def test_outputs_other_than_json(self, subtests):
        """scripts/README.md: the job fails, and its error names the wrong place in the output."""
        wanted = {"nan": "nan at .a[1]", "infinite": "a number too large for a double at .a",
                  "function": "a function at .list[2]",
                  "cycle": "contains itself", "mixed": "number and string keys",
                  "ids": "write t[tostring(id)] for an object) at .names[1]",
                  "holes": "an array with holes (put json.null there, or write t[tostring(id)] for an object) at [2]",
                  "binary": "not UTF-8", "emits_nan": "nan"}
        for endpoint, words in wanted.items():
            with subtests.test(endpoint):
                assert words in self.failure(endpoint, {})

    def test_deep_recursion(self):
        """scripts/README.md: deep recursion is bounded: FAILED (stack)."""
        assert "stack overflow" in self.failure("deep", {})

    def test_a_caught_error_is_no_failure(self):
        """pcall is the script's own."""
        assert self.output("catches", {}) == [False, "inside"]

    def test_the_worker_goes_on(self):
        """scripts/README.md: a failing script harms no other job: the same worker serves the next job."""
        workers = set()
        for _ in range(20):
            job = self.job("fails", {})
            assert job["status"] == "FAILED"
            workers.add(job["workerId"])
        assert len(workers) == 1
        assert (self.server.quiet("fails")["failed"] >= 20) is True
        assert self.server.health("fails")["workers"]["unhealthy"] == 0

    def test_a_fresh_environment_for_each_job(self):
        """core/decisions/lua.md: no job reaches another job's globals; the libraries cannot be changed for the next."""
        assert [self.output("counts", {}) for _ in range(5)] == [1] * 5
        assert "libraries cannot be changed" in self.failure("global", {})

    def test_the_limit_of_outputs(self):
        """core/decisions/jobs.md: an output over 20 MB fails the job; it is never silently dropped."""
        assert len(self.output("large", {"bytes": (20 << 20) - 2})) == (20 << 20) - 2
        assert "20 MB" in self.failure("large", {"bytes": (20 << 20) + 1})

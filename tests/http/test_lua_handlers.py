"""Handlers that are scripts, `image = lua/<name>`: what they can do, what becomes of their jobs, and what they cannot do
to the server (issue 7). The sandbox itself is proved in tests/lua."""

import concurrent.futures
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import SHORT_DRAIN, jobqd, until  # noqa: E402
from lua_case import LuaTest  # noqa: E402
from process_watch import memory, processor_seconds, threads  # noqa: E402

ECHO = "return function(input) return input end"
ENV = "return function(input, job) return job.env end"
FIRST_LOOP = "local n = 0 while true do n = n + 1 end"


def returning(expression):
    return f"return function(input, job) return {expression} end"


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
        """decisions.md, Images: lua/<name> runs <scripts>/handlers/<name>.lua; its output is the job's."""
        self.assertEqual(self.output("echo_lua", {"a": [1, "b"]}), {"a": [1, "b"]})
        job = self.server.run("echo_lua", {"b": 2})
        end = self.server.finished("echo_lua", job)
        self.assertEqual((end["status"], end["output"]), ("COMPLETED", {"b": 2}))
        self.assertRegex(end["workerId"], r"\A.+-\d+\Z")

    def test_what_a_job_knows_of_itself(self):
        """issue 7: job.id, job:deadline(); job.endpoint and job.attempt too."""
        job = self.job("about", {}, policy={"executionTimeout": 7_000})
        left = job["output"].pop("left")
        self.assertEqual(job["output"], {"id": job["id"], "endpoint": "about", "attempt": 1})
        self.assertTrue(0 < left <= 7_000, left)

    def test_env_of_the_file(self):
        """issue 7: job.env is the endpoint's env."""
        self.assertEqual(self.output("env", {}), {"NAME": "world", "NUMBER": "7"})
        self.assertEqual(self.output("about", {})["endpoint"], "about")

    def test_stream(self):
        """issue 7: job:emit(chunk, metrics) is /stream's; an output that is no chunk stays /status's."""
        for metrics in (True, False):
            job = self.server.run("chunks", {"count": 3, "metrics": metrics})
            self.server.finished("chunks", job)
            chunks = self.server.request("GET", f"/v2/chunks/stream/{job}").json()
            wanted = [{"output": {"n": n, "text": f"ä{n}"}, **({"metrics": {"at": n}} if metrics else {})}
                      for n in (1, 2, 3)]
            self.assertEqual(chunks, wanted)
            self.assertEqual(self.server.status("chunks", job)["output"], "done")

    def test_stream_while_it_runs(self):
        """api.md, Stream: chunks come as they are emitted, before the job has ended."""
        self.write("handlers", "patient", """return function(input, job)
          job:emit("early")
          while not job:stopped() do end
        end""")
        self.addCleanup(self.write, "handlers", "patient", self.handlers["patient"])
        job = self.server.run("patient", {})
        reply = self.server.request("GET", f"/v2/patient/stream/{job}?wait=20000")
        self.assertEqual((reply.json(), reply.headers["X-Job-Status"]), ([{"output": "early"}], "IN_PROGRESS"))
        self.server.request("POST", f"/v2/patient/cancel/{job}")

    def test_progress(self):
        """issue 7: job:progress(v): /status shows the last one while the job runs; job:stopped() ends it."""
        job = self.server.run("patient", {})
        until(lambda: self.server.status("patient", job).get("output") == {"percent": 40, "list": []}, "progress")
        self.assertEqual(self.server.status("patient", job)["status"], "IN_PROGRESS")
        answer = self.server.request("POST", f"/v2/patient/cancel/{job}").json()
        self.assertEqual(answer["status"], "CANCELLED")
        self.server.quiet("patient")
        self.assertEqual(self.server.status("patient", job)["status"], "CANCELLED", "its late result is ignored")

    def test_methods_want_a_colon(self):
        """issue 7: an error that says what to write."""
        self.assertRegex(self.failure("colon", {}), r"colon\.lua:1: .*job:emit\(...\), with a colon")

    def test_log_and_print(self):
        """issue 7: job:log(...) and print(...) cost the job nothing."""
        for _ in range(3):
            self.assertEqual(self.output("logging", {}), 1)

    def test_load(self):
        """issue 7: load has the job's own globals."""
        for _ in range(3):
            self.assertEqual(self.output("loads", {}), [3, 3, True])

    def test_metrics_are_an_object(self):
        """api.md, Stream chunk: `metrics` is an object."""
        for metrics in (5, "x", [1], False):
            with self.subTest(metrics):
                self.assertEqual(self.failure("metrics", {"metrics": metrics}),
                                 "metrics.lua:1: the handler emitted metrics that are no JSON object")


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

    def test_there_and_back(self):
        """issue 7: arrays kept apart from objects, 64-bit integers exact, null kept, any text."""
        for endpoint in ("echo_lua", "again"):
            for value in self.VALUES:
                with self.subTest(endpoint=endpoint, value=value):
                    output = self.output(endpoint, {"v": value})["v"]
                    self.assertEqual(output, value)
                    self.assertIs(type(output), type(value))

    def test_bytes_of_the_output(self):
        """issue 7: integers are written as integers, floats as floats."""
        reply = self.submit("echo_lua", verb="runsync?wait=30000", job_input={"a": 9223372036854775807, "b": 1.0})
        self.assertIn(b'"output":{"a":9223372036854775807,"b":1.0}', reply.body.replace(b" ", b""))

    def test_numbers_beyond_64_bits(self):
        """decisions.md, Jobs: numbers of any length are fine: a script sees those beyond 64 bits as floats."""
        reply = self.server.request("POST", "/v2/types/runsync?wait=30000",
                                    '{"input":{"a":9223372036854775808,"b":' + "9" * 400 + ',"c":1e2,"d":-0}}')
        self.assertEqual(reply.json()["output"], {"a": "float", "b": "float", "c": "float", "d": "float"})

    def test_what_a_script_makes(self):
        """issue 7: nil and json.null are null; {} is an object, json.array() an array."""
        wanted = {"nothing": None, "null": None, "empty": {}, "array": [], "list": [1, 2], "text": "ä😀\0",
                  "most": 2 ** 63 - 1, "least": -2 ** 63, "half": 0.5, "whole": 1.0, "yes": True}
        for which, value in wanted.items():
            with self.subTest(which):
                output = self.output("made", {"which": which})
                self.assertEqual((output, type(output)), (value, type(value)))

    def test_deep(self):
        """decisions.md, Jobs: nesting to 512 levels; a script's value may be as deep."""
        text = "[" * 500 + "]" * 500
        reply = self.server.request("POST", "/v2/echo_lua/runsync?wait=30000", '{"input":{"v":' + text + "}}")
        self.assertEqual(reply.json()["status"], "COMPLETED", reply.body[:300])
        self.assertIn(text.encode(), reply.body)


class FailureTest(LuaTest):
    handlers = {
        "fails": "\n\nreturn function(input)\n  local none = nil\n  return none.field\nend",
        "says": "return function(input) error(input.what, input.level) end",
        "tables": "return function(input) error({ code = 7 }) end",
        "nothing": "return function(input) error() end",
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
        """issue 7: errors carry file and line into the job's `error`."""
        self.assertRegex(self.failure("fails", {}), r"\Afails\.lua:5: attempt to index a nil value \(local 'none'\)\Z")
        self.assertEqual(self.failure("says", {"what": "it is so"}), "says.lua:1: it is so")
        self.assertEqual(self.failure("says", {"what": "it is so", "level": 0}), "it is so")

    def test_errors_that_are_no_text(self):
        """decisions.md, Answers: `error` is always a string."""
        self.assertEqual(self.failure("tables", {}), '{"code":7}')
        self.assertEqual(self.failure("nothing", {}), "the error is a nil")
        self.assertEqual(self.failure("says", {"what": 7, "level": 0}), "7")
        self.assertEqual(self.failure("says", {"what": True}), "the error is a boolean")

    def test_errors_of_any_bytes(self):
        """decisions.md, Answers: the answer is JSON whatever a script puts into its error."""
        self.assertEqual(self.failure("bytes", {}), "\ufffd\ufffd a")

    def test_a_long_error(self):
        """What a script says of its failure is kept, up to 16 KB."""
        error = self.failure("says", {"what": "ä" * 100_000, "level": 0})
        self.assertTrue(10_000 < len(error.encode()) < 20_000, len(error))

    def test_outputs_that_are_no_json(self):
        """issue 7: the job fails, and reads where in its output the trouble is."""
        wanted = {"nan": "nan at .a[1]", "infinite": "beyond all doubles at .a", "function": "a function at .list[2]",
                  "cycle": "holds itself", "mixed": "keys of both kinds", "holes": "an array with holes (put json.null there) at [2]",
                  "binary": "not UTF-8", "emits_nan": "nan"}
        for endpoint, words in wanted.items():
            with self.subTest(endpoint):
                self.assertIn(words, self.failure(endpoint, {}))

    def test_deep_recursion(self):
        """issue 7: deep recursion is bounded: FAILED (stack)."""
        self.assertIn("stack overflow", self.failure("deep", {}))

    def test_what_a_script_catches_is_no_failure(self):
        """pcall is the script's own."""
        self.assertEqual(self.output("catches", {}), [False, "inside"])

    def test_the_worker_goes_on(self):
        """issue 7: a script that fails takes nobody with it: the same worker serves the next job."""
        workers = set()
        for _ in range(20):
            job = self.job("fails", {})
            self.assertEqual(job["status"], "FAILED")
            workers.add(job["workerId"])
        self.assertEqual(len(workers), 1)
        self.assertEqual(self.server.quiet("fails")["failed"] >= 20, True)
        self.assertEqual(self.server.health("fails")["workers"]["unhealthy"], 0)

    def test_a_fresh_environment_for_each_job(self):
        """issue 7: no job reaches another job's globals; the libraries cannot be changed for the next."""
        self.assertEqual([self.output("counts", {}) for _ in range(5)], [1] * 5)
        self.assertIn("libraries cannot be changed", self.failure("global", {}))

    def test_the_limit_of_outputs(self):
        """decisions.md, Jobs: an output over 20 MB fails the job; it is never silently dropped."""
        self.assertEqual(len(self.output("large", {"bytes": (20 << 20) - 2})), (20 << 20) - 2)
        self.assertIn("20 MB", self.failure("large", {"bytes": (20 << 20) + 1}))


class MemoryTest(LuaTest):
    handlers = {
        "strings": "return function() local s = 'x' while true do s = s .. s end end",
        "tables": "return function() local t = {} while true do t[#t + 1] = { 1, 2, 3 } end end",
        "rep": "return function() return #('x'):rep(1 << 40) end",
        "caught": """return function()
          local kept = {}
          while true do pcall(function() kept[#kept + 1] = ('x'):rep(1 << 20) .. #kept end) end
        end""",
        "small": "return function() local t = {} for i = 1, 20000 do t[i] = { i } end return #t end",
    }
    settings = {"lua.memory": "32MB"}

    def test_bombs(self):
        """issue 7: strings, tables and string.rep are bounded: FAILED, for that reason."""
        for endpoint in ("strings", "tables"):
            with self.subTest(endpoint):
                self.assertEqual(self.failure(endpoint, {}), "not enough memory: a script has 32 MB (lua.memory)")
        self.assertRegex(self.failure("rep", {}), "not enough memory|too large")
        self.assertEqual(self.output("small", {}), 20000)

    def test_rss_after_fifty(self):
        """issue 7: RSS back to where it was, after 50 bombs, several at once."""
        def bombs(count):
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                ends = list(pool.map(lambda n: self.job(("strings", "tables")[n % 2], {}), range(count)))
            self.assertEqual({end["status"] for end in ends}, {"FAILED"})
        bombs(6)  # what the server makes once: threads, pools
        pid = self.server.process.pid
        before, threads_before = memory(pid), threads(pid)
        bombs(50)
        self.assertLess(memory(pid) - before, 24 << 20)
        self.assertLessEqual(threads(pid), threads_before + 8)
        self.assertEqual(self.output("small", {}), 20000)


class TimeTest(LuaTest):
    handlers = {
        "loops": f"return function() {FIRST_LOOP} end",
        "caught": "return function() while true do pcall(function() while true do end end) end end",
        "coroutines": """return function()
          while true do
            local inner = coroutine.wrap(function() while true do pcall(function() while true do end end) end end)
            pcall(inner)
          end
        end""",
        "patterns": "return function() return (('a'):rep(60000)):find(('.-'):rep(12) .. 'b') end",
        "closes": """return function()
          local forever = setmetatable({}, { __close = function() while true do end end })
          while true do local ok = pcall(function() local x <close> = forever error('again') end) end
        end""",
        "handled": "return function() xpcall(function() error('x') end, function() while true do end end) end",
        "sorts": "return function() local t = {} for i = 1, 200000 do t[i] = i % 7 end"
                 " while true do table.sort(t, function(a, b) return a < b end) end end",
        "emits": "return function(input, job) while true do job:progress(1) end end",
        "one": f"return function(input) if input.loop then {FIRST_LOOP} end return 'free' end",
    }
    settings = {"endpoint.one.workersMax": 1, "endpoint.one.stopGrace": "60s"}

    def test_endless_loops(self):
        """issue 7: loops of every kind are TIMED_OUT after their executionTimeout, and nothing runs on."""
        endless = [name for name in self.handlers if name != "one"]
        begun = time.monotonic()
        jobs = {name: self.server.run(name, {}, policy={"executionTimeout": 5_000}) for name in endless}
        ends = {name: self.server.finished(name, job) for name, job in jobs.items()}
        taken = time.monotonic() - begun
        for name, end in ends.items():
            with self.subTest(name):
                self.assertEqual(end["status"], "TIMED_OUT", end)
                self.assertGreaterEqual(end["executionTime"], 5_000)
        self.assertLess(taken, 15)
        for name in endless:
            until(lambda name=name: not self.server.health(name)["workers"]["running"], f"the worker of {name} is free")
            self.assertEqual(self.server.health(name)["workers"]["unhealthy"], 0, name)
        pid = self.server.process.pid

        def is_quiet():
            before, end = processor_seconds(pid), time.monotonic() + 0.3
            until(lambda: time.monotonic() > end, "a moment")
            return processor_seconds(pid) - before < 0.15
        until(is_quiet, "no script runs on")

    def test_cancelled_while_it_loops(self):
        """issue 7: the stop token ends a script that does not look: its worker is free for the next job at once."""
        job = self.server.run("one", {"loop": True})
        self.in_progress({"id": "one"}, job)
        worker = self.server.status("one", job)["workerId"]
        self.assertEqual(self.server.request("POST", f"/v2/one/cancel/{job}").json()["status"], "CANCELLED")
        begun = time.monotonic()
        following = self.job("one", {})
        self.assertEqual((following["output"], following["workerId"]), ("free", worker))
        self.assertLess(time.monotonic() - begun, 5, "stopGrace is a minute: nobody replaced the worker")
        self.assertEqual(self.server.status("one", job)["status"], "CANCELLED")
        self.assertEqual(self.server.health("one")["workers"]["unhealthy"], 0)

    def test_expired_while_it_loops(self):
        """decisions.md, Jobs: past its ttl a job is deleted, even while running; its worker is free then."""
        job = self.server.run("one", {"loop": True}, policy={"ttl": 10_000})
        until(lambda: self.server.request("GET", f"/v2/one/status/{job}").status == 404, "it expires", 20)
        self.assertEqual(self.output("one", {}), "free")


class ShutdownTest(LuaTest):
    def test_a_loop_goes_back_in_line(self):
        """design.md, Truth of a job: what runs at the end of the drain goes back in line, and is no failure."""
        loops = "return function(input, job) if job.env.LOOP == '1' then while true do end end return job.attempt end"
        server = self.fresh_server({"loops": loops}, **{"endpoint.loops.image": "lua/loops",
                                                        "endpoint.loops.env.LOOP": "1"}, **SHORT_DRAIN)
        jobs = [server.run("loops", {}) for _ in range(3)]
        until(lambda: server.health("loops")["jobs"]["inProgress"] == 3, "all run")
        server.terminate()
        self.assertEqual(server.ended(15), 0)
        server.settings["endpoint.loops.env.LOOP"] = "0"
        server.write_file()
        server.start()
        for job in jobs:
            end = server.finished("loops", job)
            self.assertEqual(end["status"], "COMPLETED")
            self.assertGreater(end["output"], 1, "another attempt")
        self.assertEqual(server.health("loops")["jobs"]["retried"], 0)


class TemplateTest(LuaTest):
    handlers = {"env": ENV, "other": returning("'other'")}

    def test_env_of_a_release(self):
        """issue 7: job.env is the template's; a release that changes it reaches the script."""
        template = self.new_template(imageName="lua/env", env={"N": "1"})
        endpoint = self.new_endpoint(template, workersMin=1)
        self.assertEqual((endpoint["image"], endpoint["release"]["state"]), ("lua/env", "complete"))
        self.assertEqual(self.output(endpoint["id"], {}), {"N": "1"})
        self.call("PATCH", "/templates/" + template["id"], {"env": {"N": "2", "M": "ä"}})
        self.complete(endpoint, 2)
        self.assertEqual(self.output(endpoint["id"], {}), {"N": "2", "M": "ä"})
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/other"})
        self.complete(endpoint, 3)
        self.assertEqual(self.output(endpoint["id"], {}), "other")
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "plugin/echo"})
        self.complete(endpoint, 4)
        self.assertEqual(self.output(endpoint["id"], {"a": 1}), {"a": 1})

    def test_a_script_that_is_not_there(self):
        """decisions.md, Images: an endpoint that nobody here can run is 400, and says what is missing."""
        template = self.new_template(imageName="lua/later")
        message = self.assert_faults(
            self.server.request("POST", "/v1/endpoints", {"templateId": template["id"]}), "templateId")
        self.assertIn("lua/later cannot run: later.lua cannot be read", message)
        path = self.write("handlers", "later", returning("'now'"))
        self.addCleanup(os.remove, path)
        self.assertEqual(self.output(self.new_endpoint(template)["id"], {}), "now", "no restart is needed")

    def test_a_script_that_does_not_compile(self):
        """issue 7: refused with file and line."""
        path = self.write("handlers", "broken", "return function(\n  oops oops\nend")
        self.addCleanup(os.remove, path)
        template = self.new_template(imageName="lua/broken")
        reply = self.server.request("POST", "/v1/endpoints", {"templateId": template["id"]})
        self.assertRegex(self.assert_faults(reply, "templateId"), r"broken\.lua:2: ")

    def test_a_release_that_cannot_run(self):
        """decisions.md, Releases: it halts and says why, the old worker serves; the next good one goes on."""
        template = self.new_template(imageName="lua/env", env={"N": "1"})
        endpoint = self.new_endpoint(template, workersMin=1)
        self.assertEqual(self.output(endpoint["id"], {}), {"N": "1"})
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/missing", "env": {"N": "2"}})
        release = until(lambda: (now := self.endpoint(endpoint)["release"])["state"] == "halted" and now, "it halts")
        self.assertIn("missing.lua cannot be read", release["reason"])
        self.assertEqual(self.output(endpoint["id"], {}), {"N": "1"})
        self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/env"})
        self.complete(endpoint, 3)
        self.assertEqual(self.output(endpoint["id"], {}), {"N": "2"})

    def test_a_script_that_is_written_after_its_release(self):
        """issue 7: the reason says what to do, and doing it is enough: the release goes on by itself."""
        for name, text in (("wrong_at_first", "return function("), ("missing_at_first", None)):
            with self.subTest(name):
                if text:
                    self.write("handlers", name, text)
                template = self.new_template(imageName="lua/other")
                endpoint = self.new_endpoint(template, workersMin=1)
                self.call("PATCH", "/templates/" + template["id"], {"imageName": "lua/" + name})
                until(lambda endpoint=endpoint: self.endpoint(endpoint)["release"]["state"] == "halted", "it halts")
                self.assertEqual(self.output(endpoint["id"], {}), "other")
                self.addCleanup(os.remove, self.write("handlers", name, returning("'written'")))
                self.complete(endpoint, 2)
                self.assertEqual(self.output(endpoint["id"], {}), "written")

    def test_a_restart_without_its_script(self):
        """decisions.md, Releases: the server starts, the endpoint says why nobody serves it, its jobs wait."""
        server = self.fresh_server({"kept": returning("'kept'")})
        endpoint = self.new_endpoint(self.new_template(imageName="lua/kept"))
        self.assertEqual(self.output(endpoint["id"], {}), "kept")
        server.stop()
        os.remove(os.path.join(self.scripts, "handlers", "kept.lua"))
        server.start()
        release = self.endpoint(endpoint)["release"]
        self.assertEqual(release["state"], "halted")
        self.assertIn("kept.lua cannot be read", release["reason"])
        job = server.run(endpoint["id"], {})
        self.assertEqual(server.status(endpoint["id"], job)["queueReason"], "no_workers")
        self.write("handlers", "kept", returning("'again'"))
        self.assertEqual(server.finished(endpoint["id"], job)["output"], "again")

    def test_names_that_are_none(self):
        """decisions.md, Images: <name> matches [A-Za-z0-9_-]{1,64}, else 400: no path leads out of the folder."""
        for image in ("lua/../x", "lua/a b", "lua/", "lua/a/b", "lua/.", "lua/a.lua", "lua/" + "n" * 65, "lua/%2e",
                      "lua/a\0", "lua/ä", "lua/../handlers/env"):
            with self.subTest(image):
                reply = self.server.request("POST", "/v1/templates", {"name": "t", "imageName": image})
                self.assert_faults(reply, "imageName")


class StartTest(LuaTest):
    def refused(self, *words, handlers=None, **settings):
        """What the start says, and --check before it."""
        server = self.fresh_server(handlers, start=False, **settings)
        checked = jobqd("--config", server.file, "--check")
        line = self.refused_start(server)
        for word in words:
            self.assertIn(word, line)
        return checked, line

    def test_a_missing_script(self):
        """issue 7: the start is refused, and names the endpoint and the file; --check refuses it too."""
        checked, _ = self.refused("endpoint.a", "lua/missing", "missing.lua", **{"endpoint.a.image": "lua/missing"})
        self.assertEqual(checked.returncode, 1)
        self.assertIn("endpoint.a.image = lua/missing needs " + os.path.join(self.scripts, "handlers", "missing.lua"),
                      checked.stderr)

    def test_a_script_that_does_not_run(self):
        """issue 7: what the first job would meet stops the start; a check compiles nothing."""
        for name, text, words in (("syntax", "return function( end", "syntax.lua:1:"),
                                  ("none", "local x = 1", "returns no function"),
                                  ("fails", "error('at once')", "fails.lua:1: at once"),
                                  ("loops", "while true do end", "longer than a second"),
                                  ("bytecode", "\x1bLua", "binary chunk")):
            with self.subTest(name):
                checked, _ = self.refused(words, handlers={name: text}, **{"endpoint.a.image": "lua/" + name})
                self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_names_that_are_none(self):
        """decisions.md, Images: no path leads out of the folder."""
        for image in ("lua/../x", "lua/a b", "lua/"):
            with self.subTest(image):
                checked, _ = self.refused("endpoint.a.image", "[A-Za-z0-9_-]{1,64}", **{"endpoint.a.image": image})
                self.assertEqual(checked.returncode, 1)

    def test_a_missing_folder(self):
        """design.md, Configuration: scripts.path; a server without scripts needs none."""
        server = self.fresh_server(start=False)
        server.settings["scripts.path"] = "/nonexistent"
        server.write_file()
        server.start()
        self.assertEqual(server.runsync("echo", {})["status"], "COMPLETED")

    def test_settings_of_the_library(self):
        """design.md, Configuration: an unknown key stops the start and names the nearest; values are checked."""
        for key, value, words in (("lua.htpp", "true", "lua.http"), ("lua.memroy", "64MB", "lua.memory"),
                                  ("lua.filterTme", "5ms", "lua.filterTime"), ("handler.lua.http", "true", "lua.http"),
                                  ("lua", "true", "lua")):
            with self.subTest(key):
                checked, line = self.refused(key, words, **{key: value})
                self.assertEqual(checked.returncode, 1)
                self.assertIn("nearest", line)
        for key, value in (("lua.http", "maybe"), ("lua.memory", "1"), ("lua.filterTime", "0ms")):
            with self.subTest(key):
                settings = {key: value, "endpoint.a.image": "lua/env"}
                checked, _ = self.refused(key, handlers={"env": ENV}, **settings)
                self.assertEqual(checked.returncode, 1)


if __name__ == "__main__":
    unittest.main()

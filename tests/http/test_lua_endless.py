"""scripts/README.md: scripts that take all memory or never end: their jobs are FAILED, TIMED_OUT, CANCELLED or back in
the queue, and the server stays unharmed."""

import concurrent.futures
import re
import time

from jobq_server import SHORT_DRAIN, until
from lua_case import LuaTest
from pace import judge_pace
from process_watch import is_asleep, memory, threads

FIRST_LOOP = "local n = 0 while true do n = n + 1 end"


class MemoryTest(LuaTest):
    handlers = {
        "strings": "return function() local s = 'x' while true do s = s .. s end end",
        "tables": "return function() local t = {} while true do t[#t + 1] = { 1, 2, 3 } end end",
        "rep": "return function() return #('x'):rep(1 << 40) end",
        "caught": """return function()
          local kept = {}
          while true do pcall(function() kept[#kept + 1] = ('x'):rep(1 << 20) .. #kept end) end
        end""",
        "logs": "return function(_, job) for i = 1, 200 do job:log(('x'):rep(1000000)) end return 'said' end",
        "small": "return function() local t = {} for i = 1, 20000 do t[i] = { i } end return #t end",
    }
    settings = {"lua.memory": "32MB"}

    def test_bombs(self, subtests):
        """scripts/README.md: strings, tables and string.rep are bounded: the job is FAILED with the reason."""
        for endpoint in ("strings", "tables"):
            with subtests.test(endpoint):
                assert self.failure(endpoint, {}) == "not enough memory: a script has 32 MB (lua.memory)"
        assert re.search("not enough memory|too large", self.failure("rep", {}))
        job = self.server.run("caught", {}, policy={"executionTimeout": 5_000})
        end = self.server.finished("caught", job)
        assert end["status"] == "TIMED_OUT", f"the script catches each refusal, so its time limit ends it: {end}"
        assert self.output("small", {}) == 20000

    def test_rss_after_fifty(self):
        """scripts/README.md: RSS returns to its former value after 50 scripts with endless memory, several at once."""
        def bombs(count):
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                ends = list(pool.map(lambda n: self.job(("strings", "tables")[n % 2], {}), range(count)))
            assert {end["status"] for end in ends} == {"FAILED"}
        bombs(6)  # threads and pools that the server makes only once
        pid = self.server.process.pid
        before, threads_before = memory(pid), threads(pid)
        bombs(50)
        self.assert_memory_is_back(self.server, before, 24 << 20)
        assert threads(pid) <= threads_before + 8
        assert self.output("small", {}) == 20000

    def test_rss_after_a_flood_of_log_lines(self):
        """scripts/README.md: RSS returns to its former value after jobs that each write 200 log lines of 1 MB, of which
        8 KB are kept."""
        assert self.output("logs", {}) == "said"
        before = memory(self.server.process.pid)
        for _ in range(3):
            assert self.output("logs", {}) == "said"
        self.assert_memory_is_back(self.server, before, 32 << 20)


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

    def test_endless_loops(self, subtests):
        """scripts/README.md: endless loops of every kind are TIMED_OUT after their executionTimeout, and no script runs
        on."""
        endless = [name for name in self.handlers if name != "one"]
        begun = time.monotonic()
        jobs = {name: self.server.run(name, {}, policy={"executionTimeout": 5_000}) for name in endless}
        ends = {name: self.server.finished(name, job) for name, job in jobs.items()}
        taken = time.monotonic() - begun
        for name, end in ends.items():
            with subtests.test(name):
                assert end["status"] == "TIMED_OUT", end
                assert end["executionTime"] >= 5_000
        judge_pace(f"{len(endless)} endless scripts with an executionTimeout of 5 s", taken, 15)
        for name in endless:
            until(lambda name=name: not self.server.health(name)["workers"]["running"], f"the worker of {name} is free")
            assert self.server.health(name)["workers"]["unhealthy"] == 0, name
        until(lambda: is_asleep(self.server.process.pid, "worker"), "no script runs on")

    def test_a_looping_job_is_cancelled(self):
        """scripts/README.md: the stop token ends a script that ignores job:stopped(): its worker is free for the next
        job at once."""
        job = self.server.run("one", {"loop": True})
        self.in_progress({"id": "one"}, job)
        worker = self.server.status("one", job)["workerId"]
        assert self.server.request("POST", f"/v2/one/cancel/{job}").json()["status"] == "CANCELLED"
        following = self.job("one", {})
        assert (following["output"], following["workerId"]) == ("free", worker), "freed, and not replaced"
        assert self.server.status("one", job)["status"] == "CANCELLED"
        assert self.server.health("one")["workers"]["unhealthy"] == 0

    def test_a_looping_job_expires(self):
        """core/http/API.md, "Lifetime of jobs and results": past its ttl a job is deleted, even while running; its
        worker is free then."""
        job = self.server.run("one", {"loop": True}, policy={"ttl": 10_000})
        until(lambda: self.server.request("GET", f"/v2/one/status/{job}").status == 404, "it expires")
        assert self.output("one", {}) == "free"


class ShutdownTest(LuaTest):
    def test_a_loop_goes_back_to_the_queue(self):
        """etc/operation.md: a job running at the end of the drain goes back into the queue, and is no failure."""
        loops = "return function(input, job) if job.env.LOOP == '1' then while true do end end return job.attempt end"
        server = self.fresh_server({"loops": loops}, **{"endpoint.loops.image": "lua/loops",
                                                        "endpoint.loops.env.LOOP": "1"}, **SHORT_DRAIN)
        jobs = [server.run("loops", {}) for _ in range(3)]
        until(lambda: server.health("loops")["jobs"]["inProgress"] == 3, "all run")
        server.terminate()
        assert server.ended() == 0
        server.settings["endpoint.loops.env.LOOP"] = "0"
        server.write_file()
        server.start()
        for job in jobs:
            end = server.finished("loops", job)
            assert end["status"] == "COMPLETED"
            assert end["output"] > 1, "another attempt"
        assert server.health("loops")["jobs"]["retried"] == 0

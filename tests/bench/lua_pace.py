"""The cost of a script: the echo in Lua beside the echo in C++, and /run through a filter with two fields beside /run
without a filter. Each pair in the same server, in turns, by rate and by the server's processor time.

    lua_pace.py [--rounds N] [--jobs N] [--check]      --check: exit code 1 when a goal is missed

Goals: the echo through Lua at 0.7 of the rate or more, the filter at 10 % or less.
"""

import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from process_watch import processor_seconds  # noqa: E402
from servers import Jobq  # noqa: E402

JOB = b'{"input":{"prompt":"a photo of an astronaut riding a horse","steps":20,"seed":42}}'
ECHO = "return function(input) return input end\n"
FILTER = """return function(job)
  local input = job.input
  if type(input.prompt) ~= "string" or type(input.steps) ~= "number" then
    return false, "prompt and steps are needed"
  end
end
"""


class ScriptServer(Jobq):
    def __init__(self, storage):
        super().__init__(storage, {"endpoint.lua.image": "lua/echo", "endpoint.lua.workersMin": self.workers,
                                   "endpoint.lua.workersMax": self.workers, "endpoint.judged.image": "plugin/echo",
                                   "endpoint.judged.workersMax": 0, "endpoint.judged.filters": "two_fields",
                                   "scripts.path": "scripts"})
        for kind, name, text in (("handlers", "echo", ECHO), ("filters", "two_fields", FILTER)):
            os.makedirs(os.path.join(self.folder, "scripts", kind))
            self.file(os.path.join("scripts", kind, name + ".lua"), text.encode())

    def measured(self, act):
        """Rate and processor seconds of `jobs` jobs."""
        before, start = processor_seconds(self.processes[0].pid), time.monotonic()
        jobs = act()
        return jobs / (time.monotonic() - start), processor_seconds(self.processes[0].pid) - before

    def finish(self, endpoint, jobs):
        done = self.call("GET", f"/v2/{endpoint}/health")["jobs"]["completed"]
        self.load("http", 64, self.request("POST", f"/v2/{endpoint}/run", JOB), count=jobs)
        while self.call("GET", f"/v2/{endpoint}/health")["jobs"]["completed"] < done + jobs:
            time.sleep(0.005)
        return jobs

    def submit(self, endpoint, jobs):
        self.load("http", 64, self.request("POST", f"/v2/{endpoint}/run", JOB), count=jobs)
        self.call("POST", f"/v2/{endpoint}/purge-queue")
        return jobs


def compare(server, act, plain, scripted, options):
    """Medians of (rate with a script / without, processor time with / without) over the rounds."""
    act(plain, options.jobs // 4)
    act(scripted, options.jobs // 4)
    rates, costs = [], []
    for _ in range(options.rounds):
        (rate, cost), (rate_lua, cost_lua) = (server.measured(lambda name=name: act(name, options.jobs))
                                              for name in (plain, scripted))
        rates.append(rate_lua / rate)
        costs.append(cost_lua / cost)
    return statistics.median(rates), statistics.median(costs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    missed = []
    for storage in ("memory", "sqlite"):
        with ScriptServer(storage) as server:
            rate, cost = compare(server, server.finish, "echo", "lua", options)
            print(f"{storage:8s} echo in Lua: {rate:.2f} of the rate in C++, {cost:.2f} of its processor time", flush=True)
            if rate < 0.7:
                missed.append(f"echo {storage}")
            rate, cost = compare(server, server.submit, "parked", "judged", options)
            print(f"{storage:8s} /run through a filter: {rate:.2f} of the rate, {cost:.2f} of its processor time",
                  flush=True)
            if 1 / rate > 1.1:
                missed.append(f"filter {storage}")
    print("missed: " + ", ".join(missed) if missed else "all goals reached")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

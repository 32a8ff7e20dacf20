"""Tests of scripts: each class has a server with a folder of scripts, and the tests may write to the folder.

    class MyTest(LuaTest):
        handlers = {"greet": "return function(input) return 'hello ' .. input.name end"}
        filters = {"no": "return function() return false, 'never' end"}
        settings = {"endpoint.greet.filters": "no"}

Each handler serves an endpoint of the same name. `self.output("greet", {...})` is the output of a job of the endpoint.
"""

import os

import pytest

from jobq_server import ROOT, Server, is_foreign, until
from management_api import ManagementTest

SHIPPED = os.path.join(ROOT, "scripts", "lua")


def returning(expression):
    """A handler."""
    return f"return function(input, job) return {expression} end"


def write_script(folder, kind, name, text):
    """Replaces the file at once: no reader meets half of a script."""
    path = os.path.join(folder, kind, name + ".lua")
    mode = "wb" if isinstance(text, bytes) else "w"
    with open(path + ".new", mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
        file.write(text)
    os.replace(path + ".new", path)
    return path


def make_folder(folder, handlers=None, filters=None):
    for kind, scripts in (("handlers", handlers or {}), ("filters", filters or {})):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
        for name, text in scripts.items():
            write_script(folder, kind, name, text)


# The address sanitizer keeps up to 256 MB of freed memory, so the memory does not go back to the system.
SANITIZED = "asan" in os.environ.get("JOBQ_BUILD", "") or "tsan" in os.environ.get("JOBQ_BUILD", "")


class LuaTest(ManagementTest):
    handlers = {}
    filters = {}
    settings = {}

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server, tmp_path_factory):
        cls.scripts = str(tmp_path_factory.mktemp("scripts"))
        make_folder(cls.scripts, cls.handlers, cls.filters)
        endpoints = {f"endpoint.{name}.image": f"lua/{name}" for name in cls.handlers}
        return class_server(**{"storage": "memory", "scripts.path": cls.scripts, **endpoints, **cls.settings})

    @pytest.fixture(autouse=True)
    def provide_folders(self, tmp_path_factory):
        self.folders = tmp_path_factory

    def fresh_server(self, handlers=None, filter_scripts=None, start=True, **settings):
        """A server for a single test, with a separate folder. `filters` is a setting."""
        if is_foreign():
            pytest.skip("needs a server with scripts of its own, and JOBQ_URL names another one")
        self.scripts = str(self.folders.mktemp("scripts"))
        make_folder(self.scripts, handlers, filter_scripts)
        self.server = self.at_end.enter_context(Server(start=start, scripts__path=self.scripts, **settings))
        return self.server

    def write(self, kind, name, text):
        return write_script(self.scripts, kind, name, text)

    def job(self, endpoint, job_input, **fields):
        """The job, finished."""
        return self.server.runsync(endpoint, job_input, **fields)

    def assert_memory_is_back(self, server, before, most):
        """The server has less than `most` bytes more than `before`. The server returns memory to the system after ten
        seconds without use."""
        if SANITIZED:
            print(f"  {self.name}: a sanitizer keeps freed memory, its size is not judged", flush=True)
        else:
            until(lambda: server.rss() - before < most, "the memory has gone back", 60)

    def output(self, endpoint, job_input, **fields):
        job = self.job(endpoint, job_input, **fields)
        assert job["status"] == "COMPLETED", job
        return job["output"]

    def failure(self, endpoint, job_input, **fields):
        """Runs a job, expects a failure, and returns the error."""
        job = self.job(endpoint, job_input, **fields)
        assert job["status"] == "FAILED", str(job)[:500]
        assert isinstance(job["error"], str)
        return job["error"]

    def submit(self, endpoint, job_input=None, operation="run", **more):
        """The answer to /run or /runsync. `key` and `headers` are the request's, the rest the body's."""
        request = {name: more.pop(name) for name in ("key", "headers") if name in more}
        body = {"input": {} if job_input is None else job_input, **more}
        return self.server.request("POST", f"/v2/{endpoint}/{operation}", body, **request)

    def refused_start(self, server):
        """Expects a failure of the start, and returns the last line of the server's log."""
        assert not server.start_unless_it_dies(), "it started"
        assert server.ended() > 0, "it ended by a signal"
        return server.log().strip().splitlines()[-1]

    def scripts_of(self, kind):
        """name -> (state, reason) of the entry `lua`, as GET /v1/plugins tells."""
        plugins = self.call("GET", "/plugins")
        entry = next(entry for plugin in plugins for entry in plugin["entries"]
                     if (entry["kind"], entry["name"]) == (kind, "lua"))
        return {script["name"]: (script["state"], script.get("reason")) for script in entry["scripts"]}

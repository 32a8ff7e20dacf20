"""Jobs with steps and an end under control of the test, at any speed of the machine.

    held = self.at_end.enter_context(HeldJobs())
    server = own_server(**held.settings)             # has the endpoint `held`
    job = server.run("held", held.input("done"))
    held.wait(1)                                     # the handler has begun
    held.release()                                   # the job ends with its output, as do all later jobs

The handler is a Lua script that asks an HTTP server of the test before each step. A job emits `chunks` chunks
{"chunk": 0}, {"chunk": 1} and so on, waits for a further step if the input has `hold`, and ends with `output`. Step n
waits until the test has called allow(n + 1) or release(). The image is HeldJobs.IMAGE, for endpoints made by the test.
HeldJobs(statements) runs Lua statements after the last step.
"""

import contextlib
import http.server
import math
import os
import tempfile
import threading

from jobq_api import join
from pace import HANG

SCRIPT = """local function step(n)
  local answer, fault = http.get("http://127.0.0.1:PORT/" .. n)
  if not answer then error(fault) end
end

return function(input, job)
  local chunks = input.chunks or 0
  for n = 0, chunks - 1 do
    step(n)
    job:emit({ chunk = n })
  end
  if input.hold then step(chunks) end
  STATEMENTS
  return input.output
end
"""


class HeldJobs:
    """The HTTP server for the handlers' requests, and the folder with the script of the handlers. Any thread may call
    the methods."""

    IMAGE = "lua/held"

    def __init__(self, statements=""):
        self._changed = threading.Condition()
        self._asked = 0
        self._allowed = 0
        held = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                held._wait_for_step(int(self.path[1:]))
                with contextlib.suppress(ConnectionError):  # the job was cancelled, or the server was killed
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        self._folder = tempfile.TemporaryDirectory(prefix="jobq-held-")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        os.mkdir(os.path.join(self._folder.name, "handlers"))
        with open(os.path.join(self._folder.name, "handlers", "held.lua"), "w", encoding="ascii") as script:
            script.write(SCRIPT.replace("PORT", str(self._server.server_address[1])).replace("STATEMENTS", statements))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def settings(self):
        """The settings of a server with the image and the endpoint `held`."""
        return {"scripts.path": self._folder.name, "lua.http": "true", "lua.httpTimeout": "1h",
                "endpoint.held.image": self.IMAGE}

    @staticmethod
    def input(output):
        """The input of a job that waits for a step and ends with `output`."""
        return {"hold": True, "output": output}

    @property
    def asked(self):
        """The number of steps requested by handlers."""
        with self._changed:
            return self._asked

    def wait(self, count):
        """Returns once the handlers have asked for `count` steps in all, counted from the start."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._asked >= count, HANG):
                raise AssertionError(f"handlers asked for {self._asked} steps within {HANG:g} s, not {count}")

    def allow(self, steps):
        """Lets every job, also later jobs, take the first `steps` steps."""
        with self._changed:
            self._allowed = max(self._allowed, steps)
            self._changed.notify_all()

    def release(self):
        """Lets every job, also later jobs, run to the end."""
        self.allow(math.inf)

    def _wait_for_step(self, step):
        with self._changed:
            self._asked += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: step < self._allowed)

    def close(self):
        self.release()
        self._server.shutdown()
        self._server.server_close()
        join("the HTTP server of held jobs ends", self._thread)
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def held_server(at_end, own_server, **settings):
    """A server with held jobs at the endpoint `trial`, and the HeldJobs. At the end of the test the jobs are released
    before the server stops."""
    held = at_end.enter_context(HeldJobs())
    server = own_server(**{**held.settings, "endpoint.trial.image": HeldJobs.IMAGE}, **settings)
    at_end.callback(held.release)
    return server, held

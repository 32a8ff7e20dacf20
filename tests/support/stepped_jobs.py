"""Jobs whose steps and end the test decides: their handler is a Lua script that asks an HTTP server of the test before
each step.

    server, held = stepped_server(self.at_end, own_server, endpoint__trial__workersMax=1)
    job = server.run("trial", {"hold": True, "output": 1})
    held.wait(1)       # the handler has begun
    held.release()     # the job ends with its output, as do all later jobs of the endpoint

A job of the endpoint `trial` emits `chunks` chunks {"chunk": 0}, {"chunk": 1} and so on, waits for one more step if its
input has `hold`, and ends with `output`. Step n waits until the test has called allow(n + 1) or release(). The image is
`lua/held`, for endpoints that the test makes.
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
  return input.output
end
"""


class SteppedJobs:
    """The HTTP server that the handlers ask, and the folder with their script. Any thread may call the methods."""

    def __init__(self):
        self._changed = threading.Condition()
        self._asked = 0
        self._allowed = 0
        held = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                held._wait_for_step(int(self.path[1:]))
                with contextlib.suppress(ConnectionError):  # the job was cancelled, or its server killed
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        self._folder = tempfile.TemporaryDirectory(prefix="jobq-stepped-")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        os.mkdir(os.path.join(self._folder.name, "handlers"))
        with open(os.path.join(self._folder.name, "handlers", "held.lua"), "w", encoding="ascii") as script:
            script.write(SCRIPT.replace("PORT", str(self._server.server_address[1])))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def settings(self):
        """The settings of a server whose endpoint `trial` has such jobs."""
        return {"scripts.path": self._folder.name, "lua.http": "true", "lua.httpTimeout": "1h",
                "endpoint.trial.image": "lua/held"}

    def wait(self, count):
        """Returns once the handlers have asked for `count` steps in all, counted from the start."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._asked >= count, HANG):
                raise AssertionError(f"handlers asked for {self._asked} steps within {HANG:g} s, not {count}")

    def allow(self, steps):
        """Lets every job, also later ones, take its first `steps` steps."""
        with self._changed:
            self._allowed = max(self._allowed, steps)
            self._changed.notify_all()

    def release(self):
        """Lets every job, also later ones, run to its end."""
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


def stepped_server(at_end, own_server, **settings):
    """A server whose endpoint `trial` has held jobs, and the SteppedJobs. At the end of the test the jobs are released
    before the server stops."""
    held = at_end.enter_context(SteppedJobs())
    server = own_server(**held.settings, **settings)
    at_end.callback(held.release)
    return server, held

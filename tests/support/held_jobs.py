"""Jobs that run until the test releases them, however fast or slow the machine is.

    held = self.at_end.enter_context(HeldJobs())
    server = own_server(**held.settings)             the server has the endpoint `held`
    job = server.run("held", held.input("done"))
    held.release()                                   the job ends, COMPLETED with the output "done"

The handler is a Lua script. It calls an HTTP server of the test, which answers after release(); later jobs do not wait.
A template with the image HeldJobs.IMAGE has the same handler. HeldJobs(steps) runs Lua statements after the release.
"""

import tempfile
import threading

from lua_case import make_folder
from webhook_receiver import WebhookReceiver

LONGEST_HOLD = 600.0  # seconds: bounds a hang, and judges no pace

HANDLER = """return function(input, job)
  local answer, reason = http.get(input.url)
  if not answer then error(reason) end
  if answer.status ~= 200 then error("the test did not release the job") end
  STEPS
  return input.output
end"""


class HeldJobs(WebhookReceiver):
    IMAGE = "lua/held"

    def __init__(self, steps=""):
        self._released = threading.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="jobq-scripts-")
        make_folder(self._folder.name, {"held": HANDLER.replace("STEPS", steps)})
        super().__init__()

    @property
    def settings(self):
        """Settings of a server that has the image and the endpoint."""
        return {"scripts.path": self._folder.name, "lua.http": "true", "lua.httpTimeout": "1h",
                "endpoint.held.image": self.IMAGE}

    def input(self, output):
        return {"url": self.url(), "output": output}

    def release(self):
        self._released.set()

    def _take(self, call):
        super()._take(call)
        if not self._released.wait(LONGEST_HOLD):
            self.answers[call.path] = 503

    def close(self):
        self.release()
        super().close()
        self._folder.cleanup()

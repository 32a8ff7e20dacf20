"""The queue API as used by the demo: urllib, a single key, repeated calls after 429 and 503."""
import json
import time
import urllib.error
import urllib.request

FINAL = {"COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}
LONGEST_WAIT = 120
LONGEST_PAUSE = 0.5


class QueueError(Exception):
    """The server's refusal or the failed connection, in a sentence."""


class QueueClient:
    """Any thread."""

    def __init__(self, url, key, endpoint):
        self.base = f"{url.rstrip('/')}/v2/{endpoint}"
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, headers=self.headers, method=method)
        end = time.monotonic() + LONGEST_WAIT
        while True:
            try:
                with urllib.request.urlopen(request, timeout=LONGEST_WAIT) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                text = error.read().decode(errors="replace")[:300]
                if error.code not in (429, 503) or time.monotonic() > end:
                    raise QueueError(f"{method} {self.base + path} answered {error.code}: {text}") from None
                time.sleep(min(float(error.headers.get("Retry-After", 1)), 5))
            except OSError as error:
                raise QueueError(f"{method} {self.base + path} failed: {error}") from None

    def run_sync(self, job_input):
        """The finished job. If the server answers with an unfinished job, the client polls the job."""
        job = self.call("POST", "/runsync", {"input": job_input})
        return job if job["status"] in FINAL else self.wait(job["id"])

    def run(self, job_input):
        """The id of the job."""
        return self.call("POST", "/run", {"input": job_input})["id"]

    def wait(self, job_id):
        """The finished job; asks more and more seldom."""
        end, pause = time.monotonic() + LONGEST_WAIT, 0.02
        while True:
            job = self.call("GET", f"/status/{job_id}")
            if job["status"] in FINAL:
                return job
            if time.monotonic() > end:
                raise QueueError(f"job {job_id} is still {job['status']} after {LONGEST_WAIT} s")
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

"""Submits jobs as fast as a server accepts jobs, by means of tests/bench/load.cpp.

    rate = submit_many(server, "line", {"prompt": "a"}, jobs=20000, connections=500)
"""

import json
import os
import subprocess
import tempfile

from jobq_server import BUILD

LOAD = os.path.join(BUILD, "tests", "bench_load")


def submit_many(api, endpoint, job_input, jobs, connections=64, deadline=600):
    """Puts `jobs` jobs with the input in the queue of an endpoint; returns the rate in jobs a second."""
    body = json.dumps({"input": job_input}).encode()
    with tempfile.NamedTemporaryFile() as file:
        file.write((f"POST /v2/{endpoint}/run HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer {api.key}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
        file.flush()
        done = subprocess.run([LOAD, "http", str(api.address[1]), str(connections), "0", str(jobs), file.name],
                              capture_output=True, text=True, check=False, timeout=deadline)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["rate"]

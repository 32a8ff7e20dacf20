"""The communication between a test and the script of a process, copied into the folder of each process by
tests/support/runpod_process.py.

record(event="begun", id=job["id"])    # the test reads it: process.records(event="begun")
await allowed("finish")                # until the test calls process.allow("finish")
"""

import asyncio
import json
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(FOLDER, "records")
PAUSE = 0.01  # seconds between two looks at a file

arguments = json.loads(os.environ.get("ARGUMENTS", "{}"))


def record(**fields):
    """Appends a line with a single write, so any thread and any process may call the function."""
    line = json.dumps(fields) + "\n"
    descriptor = os.open(RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


async def allowed(step):
    """Returns once the test has allowed the step."""
    while not os.path.exists(os.path.join(FOLDER, "allowed-" + step)):
        await asyncio.sleep(PAUSE)

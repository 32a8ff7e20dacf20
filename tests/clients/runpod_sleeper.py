"""The worker of tests/clients/test_runpod_connections.py: each kind of handler runs for the seconds in the job's
input."""

import asyncio
import time

import runpod

from handler_steps import arguments, record


def blocking(job):
    record(event="begun", id=job["id"])
    time.sleep(job["input"]["seconds"])
    return "done"


async def waiting(job):
    record(event="begun", id=job["id"])
    await asyncio.sleep(job["input"]["seconds"])
    return "done"


async def generator(job):
    record(event="begun", id=job["id"])
    for second in range(job["input"]["seconds"]):
        await asyncio.sleep(1)
        yield second


def progressing(job):
    record(event="begun", id=job["id"])
    for _ in range(5):
        runpod.serverless.progress_update(job, "one fifth more")
        time.sleep(job["input"]["seconds"] / 5)
    return "done"


runpod.serverless.start({"handler": globals()[arguments["kind"]]})

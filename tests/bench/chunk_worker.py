"""A worker of the Python package runpod for remote_workers.py: its handler yields the time, as often as the input says."""

import asyncio
import os
import time

import runpod


async def handler(job):
    pause, due = 1 / job["input"]["rate"], time.time()
    while True:
        due = max(due + pause, time.time())  # a worker that is late does not hurry
        await asyncio.sleep(due - time.time())
        yield time.time()


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: int(os.environ["JOBS_AT_ONCE"])})

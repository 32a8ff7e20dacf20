"""The worker with a handler that returns a single value, for tests/clients/test_runpod_*.py. The input of a job has the
steps of the handler."""

import asyncio

import runpod

from handler_steps import allowed, arguments, record


async def handler(job):
    record(event="begun", id=job["id"], job=job)
    ask = job["input"]
    for value in ask.get("progress", []):
        runpod.serverless.progress_update(job, value)
        await allowed(f"behind-{value}")
    try:
        if "until" in ask:
            await allowed(ask["until"])
    except asyncio.CancelledError:
        record(event="cancelled", id=job["id"])
        if not ask.get("stubborn"):
            raise
    if "raise" in ask:
        raise ValueError(ask["raise"])
    return eval(ask["evaluate"]) if "evaluate" in ask else ask


runpod.serverless.start({"handler": handler, "refresh_worker": arguments.get("once", False),
                         "concurrency_modifier": lambda _: arguments.get("concurrency", 1)})

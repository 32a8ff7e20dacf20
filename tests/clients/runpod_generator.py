"""The worker with a generator as handler, for tests/clients/test_runpod_*.py. The generator yields numbers, or answers
a call of OpenAI's client."""

import asyncio
import json

import runpod

from handler_steps import arguments, record

TEXT = "a fine day, isn't it? \N{SUN BEHIND CLOUD}"


def answers(route, ask):
    """Yields the answer of a model server: a single object, or a stream of events, cut at any byte."""
    if route == "/v1/models":
        yield {"object": "list", "data": [{"id": "gauge", "object": "model", "created": 0, "owned_by": "acme"}]}
    elif ask.get("stream"):
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "gauge"}
        events = "".join(f"data: {json.dumps({**chunk, 'choices': [{'index': 0, 'delta': {'content': word}}]})}\n\n"
                         for word in TEXT.split(" ")) + "data: [DONE]\n\n"
        for begin in range(0, len(events), 100):
            yield events[begin:begin + 100]
    else:
        message = {"role": "assistant", "content": TEXT}
        yield {"id": "c", "object": "chat.completion", "created": 0, "model": "gauge",
               "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


async def handler(job):
    record(event="begun", id=job["id"], job=job)
    ask = job["input"]
    if "openai_route" in ask:
        for answer in answers(ask["openai_route"], ask.get("openai_input", {})):
            yield answer
        return
    for number in range(ask["count"]):
        yield {"n": number}
        await asyncio.sleep(ask.get("pause", 0))
    if "error" in ask:
        yield {"error": ask["error"]}
        yield {"n": "after the error"}
    if "raise" in ask:
        raise ValueError(ask["raise"])


runpod.serverless.start({"handler": handler, "return_aggregate_stream": arguments.get("aggregate", False),
                         "concurrency_modifier": lambda _: arguments.get("concurrency", 1)})

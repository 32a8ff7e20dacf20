"""Measures a server beside remote workers, whose calls are made byte by byte as the public SDK makes them.

    remote_workers.py [--workers N] [--jobs N] [--seconds S]

Prints the requests a second and the share of a core of idle workers, the threads of the server, and the time from a
chunk's report to its event at a reader of /stream. A second row compares jobq-worker with threads of the server:

    remote_workers.py --pace [--rounds N] [--count N]

A third row compares the handlers of one jobq-worker in processes with those on threads (--isolation):

    remote_workers.py --isolation [--rounds N] [--count N]

With --python the chunks come from unmodified workers of the Python package runpod (tests/clients/requirements.txt). Beside
them a job whose chunks are reported byte by byte shows which part of the time is the server's:

    remote_workers.py --python [--jobs N ...] [--processes N] [--seconds S]
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from machine import OtherWork
from servers import BUILD, JOB, ROOT, Jobq, end_with_parent, until

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from process_watch import processor_seconds as all_seconds, state_of  # noqa: E402
from runpod_process import PYTHON, worker_environment  # noqa: E402

IMAGE = "docker.io/acme/worker:1"
PING = 10.0  # seconds, as `jobqctl worker env` sets the interval
CHUNKS_A_SECOND = 50
PROCESSES, BATCH, ENOUGH = 4, 32, 60_000
ISOLATED = 8  # handlers of the one jobq-worker of the third row


class Connection:
    """One connection of a client, with one request at a time."""

    def __init__(self, server):
        self.server, self.reader, self.writer, self.requests = server, None, None, 0

    async def call(self, method, path, body=b"", more=""):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.requests += 1
        self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {self.server.key}\r\n{more}"
                          f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        return int(head[9:12]), await self.reader.readexactly(int(length)) if length else b""


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Threads:"))


async def repeat(connection, path, pause=0.0):
    while True:
        await connection.call("GET", path)
        await asyncio.sleep(pause)


async def idle(server, workers, seconds):
    """Idle workers, each with a call for jobs, a call for stops, and pings."""
    connections = [[Connection(server) for _ in range(3)] for _ in range(workers)]
    tasks = []
    for number, (take, stop, ping) in enumerate(connections):
        name = f"w-{number}"
        tasks += [asyncio.create_task(repeat(take, f"/v2/remote/job-take/{name}?job_in_progress=0")),
                  asyncio.create_task(repeat(stop, f"/v2/remote/job-stop/{name}")),
                  asyncio.create_task(repeat(ping, f"/v2/remote/ping/{name}", PING))]
        await asyncio.sleep(0)
    while server.call("GET", "/v2/remote/health")["workers"]["ready"] < workers:
        await asyncio.sleep(0.1)
    await asyncio.sleep(3)
    requests = sum(each.requests for three in connections for each in three)
    begun, used = time.monotonic(), processor_seconds(server.process)
    await asyncio.sleep(seconds)
    took = time.monotonic() - begun
    rate = (sum(each.requests for three in connections for each in three) - requests) / took
    share = (processor_seconds(server.process) - used) / took
    print(f"{workers} idle workers: {rate:.1f} requests/s, {100 * share:.2f} % of a core, {threads(server)} threads")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def stream_job(server, number, count, delays):
    """One job: its worker reports chunks, and its reader gets them as events."""
    client, worker = Connection(server), Connection(server)
    _, body = await client.call("POST", "/v2/remote/run", JOB)
    name = f"w-{number}"
    _, text = await worker.call("GET", f"/v2/remote/job-take/{name}?job_in_progress=0")
    job = text.split(b'"')[3].decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"GET /v2/remote/stream/{job} HTTP/1.1\r\nHost: x\r\nAuthorization: {server.key}\r\n"
                 "Accept: text/event-stream\r\n\r\n".encode())

    async def follow():
        got = 0
        while got < count:
            line = await reader.readline()
            if line.startswith(b"data: {\"output\":"):
                delays.append(time.monotonic() - float(line[len(b"data: {\"output\":"):].rstrip(b"}\r\n")))
                got += 1
    following = asyncio.create_task(follow())
    due = time.monotonic()
    for _ in range(count):
        due += 1 / CHUNKS_A_SECOND
        await asyncio.sleep(max(0, due - time.monotonic()))
        await worker.call("POST", f"/v2/remote/job-stream/{name}/{job}", b'{"output":%.6f}' % time.monotonic())
    await following
    await worker.call("POST", f"/v2/remote/job-done/{name}/{job}", b'{"output":[]}')
    writer.close()


async def stream(server, jobs, seconds):
    delays = []
    count = int(seconds * CHUNKS_A_SECOND)
    begun = time.monotonic()
    await asyncio.gather(*(stream_job(server, number, count, delays) for number in range(jobs)))
    took = time.monotonic() - begun
    delays.sort()
    print(f"{jobs} jobs of {CHUNKS_A_SECOND} chunks/s: {len(delays)} chunks in {took:.1f} s, from the report to the reader "
          f"p50 {1000 * delays[len(delays) // 2]:.1f} ms, p99 {1000 * delays[len(delays) * 99 // 100]:.1f} ms")


class PythonWorkers:
    """Processes of tests/bench/chunk_worker.py, each with `at_once` jobs at once. As a context, nothing is left of them."""

    def __init__(self, server, processes, at_once):
        script = os.path.join(ROOT, "tests", "bench", "chunk_worker.py")
        self.processes = []
        for number in range(processes):
            variables = worker_environment(f"http://127.0.0.1:{server.port}", "remote", server.key, f"w-{number}")
            variables |= {"PATH": os.environ["PATH"], "HOME": server.folder, "RUNPOD_LOG_LEVEL": "ERROR",
                          "RUNPOD_PING_INTERVAL": str(int(1000 * PING)), "JOBS_AT_ONCE": str(at_once)}
            with open(os.path.join(server.folder, f"log-{number}"), "wb") as log:
                self.processes.append(subprocess.Popen([PYTHON, script], env=variables, stdin=subprocess.DEVNULL, stdout=log,
                                                       stderr=log, start_new_session=True, preexec_fn=end_with_parent))

    def seconds(self):
        return sum(processor_seconds(process) for process in self.processes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes of their pings
            process.wait(30)


async def follow_times(server, job, delays):
    """Notes pairs of the arrival of a chunk and its delay; the output of a chunk is the time of its begin."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"GET /v2/remote/stream/{job} HTTP/1.1\r\nHost: x\r\nAuthorization: {server.key}\r\n"
                 "Accept: text/event-stream\r\n\r\n".encode())
    with contextlib.closing(writer):
        async for line in reader:
            if line.startswith(b"data: {\"output\":"):
                now = time.time()
                delays.append((now, now - float(line[len(b"data: {\"output\":"):].rstrip(b"}\r\n"))))


async def report_times(server, worker, job):
    connection = Connection(server)
    due = time.monotonic()
    while True:
        due += 1 / CHUNKS_A_SECOND
        await asyncio.sleep(max(0, due - time.monotonic()))
        await connection.call("POST", f"/v2/remote/job-stream/{worker}/{job}", b'{"output":%.6f}' % time.time())


def percentiles(delays):
    delays = sorted(delays)
    return f"p50 {1000 * delays[len(delays) // 2]:.1f} ms, p99 {1000 * delays[len(delays) * 99 // 100]:.1f} ms"


async def python_stream(server, processes, jobs, seconds):
    """All jobs run at once in unmodified workers, beside one job whose chunks this program reports."""
    client = Connection(server)

    async def submit():
        _, text = await client.call("POST", "/v2/remote/run", b'{"input":{"rate":%d}}' % CHUNKS_A_SECOND)
        return json.loads(text)["id"]

    probe, of_probe, of_workers = await submit(), [], []
    await client.call("GET", "/v2/remote/job-take/probe?job_in_progress=0")
    tasks = [asyncio.create_task(report_times(server, "probe", probe)),
             asyncio.create_task(follow_times(server, probe, of_probe))]
    with PythonWorkers(server, processes, -(-jobs // processes)) as workers:
        for _ in range(jobs):
            tasks.append(asyncio.create_task(follow_times(server, await submit(), of_workers)))
        end = time.monotonic() + 120
        while server.call("GET", "/v2/remote/health")["jobs"]["inProgress"] < jobs + 1:
            if time.monotonic() > end:
                raise RuntimeError(f"{jobs} jobs do not run at once within 120 s")
            await asyncio.sleep(0.1)
        await asyncio.sleep(3)
        begun, used, of_server = time.time(), workers.seconds(), processor_seconds(server.process)
        await asyncio.sleep(seconds)
        took = time.time() - begun
        used, of_server = workers.seconds() - used, processor_seconds(server.process) - of_server
        chunks = [delay for at, delay in of_workers if at >= begun]
        print(f"{jobs} jobs of {CHUNKS_A_SECOND} chunks/s in {processes} Python workers: {len(chunks) / took:.0f} chunks/s of "
              f"{jobs * CHUNKS_A_SECOND}, from the handler to the reader {percentiles(chunks)}; the job beside them "
              f"{percentiles([delay for at, delay in of_probe if at >= begun])}; processors: workers {used / took:.2f}, server "
              f"{of_server / took:.2f}")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def finished_rate(workers_of, count):
    """Returns the finished jobs a second on SQLite, and the processor seconds of the workers for a job. `workers_of` starts the
    workers of the endpoint `work`."""
    with Jobq("sqlite", workers_of.settings) as server:
        workers_of(server)
        server.load("http", 64, server.request("POST", "/v2/work/run", JOB), count=count // 6)  # warm
        done = lambda: server.call("GET", "/v2/work/health")["jobs"]["completed"]  # noqa: E731
        until(lambda: done() >= count // 6, "the first jobs are finished", 300)
        begun, used = time.monotonic(), workers_of.seconds()
        server.load("http", 64, server.request("POST", "/v2/work/run", JOB), count=count)
        until(lambda: done() >= count // 6 + count, "the jobs are finished", 300)
        return count / (time.monotonic() - begun), (workers_of.seconds() - used) / count


class Threads:
    settings = {"endpoint.work.image": "plugin/echo", "endpoint.work.workersMin": PROCESSES * BATCH,
                "endpoint.work.workersMax": PROCESSES * BATCH, "endpoint.echo.workersMin": 0}

    def __call__(self, server):
        until(lambda: server.call("GET", "/v2/work/health")["workers"]["idle"] == PROCESSES * BATCH, "threads are ready")

    def seconds(self):
        return 0.0  # of the server


class Processes:
    """`workers` processes of jobq-worker, each with `handlers` handlers."""

    settings = {"endpoint.work.image": IMAGE, "endpoint.echo.workersMin": 0}

    def __init__(self, workers=PROCESSES, handlers=BATCH, isolation="thread"):
        self.workers, self.handlers, self.isolation = workers, handlers, isolation

    def __call__(self, server):
        self.processes = []
        for number in range(self.workers):
            key = server.file(f"key-{number}", server.key.encode())
            self.processes.append(server.start(
                os.path.join(BUILD, "bin", "jobq-worker"), "--url", f"http://127.0.0.1:{server.port}", "--endpoint", "work",
                "--image", "plugin/echo", "--key-file", key, "--worker", f"w-{number}", "--concurrency", self.handlers,
                "--batch", self.handlers, "--isolation", self.isolation, listens=False))
        until(lambda: server.call("GET", "/v2/work/health")["workers"]["idle"] == self.workers, "all workers are connected")

    def seconds(self):
        workers = {process.pid for process in self.processes}
        handlers = (int(name) for name in os.listdir("/proc") if name.isdigit())
        handlers = {pid for pid in handlers if state_of(pid)[0] in workers}
        return sum(all_seconds(pid) for pid in workers | handlers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--jobs", type=int, nargs="*", default=[100])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--pace", action="store_true")
    parser.add_argument("--isolation", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=ENOUGH)
    parser.add_argument("--python", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="one for each processor by default")
    options = parser.parse_args()
    work = OtherWork()
    if options.pace:
        rates = [(finished_rate(Threads(), options.count)[0], finished_rate(Processes(), options.count)[0])
                 for _ in range(options.rounds)]
        for local, remote in rates:
            print(f"finished jobs a second: {local:.0f} by threads, {remote:.0f} by {PROCESSES} jobq-worker")
        print(f"ratio {statistics.median(remote / local for local, remote in rates):.2f}; other work took {work.share():.0%}")
        return
    if options.isolation:
        rounds = [[finished_rate(Processes(1, ISOLATED, kind), options.count) for kind in ("thread", "process")]
                  for _ in range(options.rounds)]
        for (threaded, of_threads), (isolated, of_processes) in rounds:
            print(f"finished jobs a second: {threaded:.0f} by {ISOLATED} handlers on threads, {isolated:.0f} in processes; "
                  f"processor time of the worker: {1e6 * of_threads:.0f} and {1e6 * of_processes:.0f} µs a job")
        print(f"ratio {statistics.median(isolated[0] / threaded[0] for threaded, isolated in rounds):.2f}; "
              f"other work took {work.share():.0%}")
        return
    if options.python:
        for jobs in options.jobs:
            with Jobq("sqlite", {"endpoint.remote.image": IMAGE, "endpoint.echo.workersMin": 0}) as server:
                asyncio.run(python_stream(server, min(options.processes, jobs), jobs, options.seconds))
        print(f"other work took {work.share():.0%}")
        return
    for workers in options.workers:
        with Jobq("sqlite", {"endpoint.remote.image": IMAGE, "endpoint.echo.workersMin": 0}) as server:
            asyncio.run(idle(server, workers, options.seconds))
    for jobs in options.jobs:
        with Jobq("sqlite", {"endpoint.remote.image": IMAGE, "endpoint.echo.workersMin": 0}) as server:
            asyncio.run(stream(server, jobs, options.seconds))
    print(f"other work took {work.share():.0%}")


if __name__ == "__main__":
    main()

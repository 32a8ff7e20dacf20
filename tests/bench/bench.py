"""Measures jobq against a bare Poco HTTPServer, and against its peers, in interleaved rounds of one run.

    bench.py [--quick] [--peers] [--million] [--rounds N] [--seconds S] [--workers N] [--out DIR] [--write-readme]
    bench.py --speed        only the rows that the goals of speed compare; with --million also the claims of a long queue
    bench.py --perf NAME    records one contestant, such as "finished sqlite", at 64 connections

tests/bench/run.sh builds first. Results: DIR/bench.json (all rounds), DIR/bench.md (the table), DIR/bench.svg (a chart).
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import deep_queue
import log_growth
import profile_report
import report
from machine import OtherWork
from servers import BUILD, JOB, PROGRAMS, Bare, Jobq, Running, end_with_parent, install_bullmq, installed, until

ANSWER = b'{"id":"4ddc7a64-0050-458a-b33d-a7f875f7b7ed-u1","status":"IN_QUEUE"}'
MB = 1 << 20
WARM_UP = 1.5  # seconds


def finish_jobs(server, path, connections, jobs):
    """Submits `jobs` jobs, and returns when the last of them is finished."""
    server.load("http", connections, server.request("POST", path, JOB), count=jobs)
    until(lambda: server.call("GET", "/v2/echo/health")["jobs"]["completed"] >= jobs, f"{jobs} jobs are completed", 600)


class Bench:
    def __init__(self, options):
        self.options = options
        self.rounds = {}  # (row, connections) -> list of measurements

    def note(self, row, connections, measured):
        """`measured`: rate in 1/s, p50 and p99 in microseconds, copies as growth of the peak memory / size of the body, log
        as bytes of the write-ahead log for each job."""
        self.rounds.setdefault((row, connections), []).append(measured)
        if "log" in measured:
            print(f"  {row:28s} {connections:4d}  {measured['log']:10.0f} bytes a job", flush=True)
            return
        print(f"  {row:28s} {connections:4d}  {measured.get('rate', 0):10.0f}/s  "
              f"p50 {measured.get('p50', 0):8.0f} us  p99 {measured.get('p99', 0):8.0f} us", flush=True)

    def bare(self, connections):
        with Bare(ANSWER) as server:
            request = (b"POST /v2/parked/run HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: bench\r\nAccept: */*\r\n"
                       b"Authorization: Bearer jobq_" + b"0" * 64 + b"\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (len(JOB), JOB))
            for count in connections:
                self.note("bare", count, server.load("http", count, request, self.options.seconds))

    def fdatasync(self):
        """Syncs of 4 KB in the middle of a file on the disk of the measured storages."""
        os.makedirs(os.path.join(BUILD, "bench-data"), exist_ok=True)
        with tempfile.TemporaryFile(dir=os.path.join(BUILD, "bench-data")) as file:
            os.pwrite(file.fileno(), b"x" * 64 * MB, 0)
            os.fsync(file.fileno())
            times = []
            for number in range(500 if self.options.quick else 1500):
                start = time.perf_counter()
                os.pwrite(file.fileno(), b"y" * 4096, number * 4096)
                os.fdatasync(file.fileno())
                times.append(1e6 * (time.perf_counter() - start))
            times.sort()
            self.note("fdatasync 4 KB", 1, {"rate": 1e6 / statistics.mean(times), "p50": times[len(times) // 2],
                                            "p99": times[len(times) * 99 // 100]})

    def run(self, storage, connections):
        for count in connections:
            with Jobq(storage) as server:
                request = server.request("POST", "/v2/parked/run", JOB)
                self.note(f"/run {storage}", count, server.load("http", count, request, self.options.seconds))

    def runsync(self, storage, connections):
        with Jobq(storage) as server:
            request = server.request("POST", "/v2/echo/runsync", JOB)
            # SQLite's log has the full size afterwards, as the file of fdatasync(): a sync takes longer while a file grows.
            server.load("http", connections[0], request, min(self.options.seconds, WARM_UP))
            for count in connections:
                self.note(f"/runsync {storage}", count, server.load("http", count, request, self.options.seconds))

    def status(self, storage, connections):
        with Jobq(storage) as server:
            job = server.call("POST", "/v2/echo/run", JOB)["id"]  # kept for longer than one of /runsync
            until(lambda: server.call("GET", f"/v2/echo/status/{job}")["status"] == "COMPLETED", f"{job} is completed")
            for count in connections:
                request = server.request("GET", f"/v2/echo/status/{job}")
                self.note(f"/status {storage}", count, server.load("http", count, request, self.options.seconds))

    def refused(self, connections):
        """Calls beyond the rate limit: each answer is a 429, and its body, equal for all callers, is skipped."""
        with Jobq("memory", {"limits.enabled": "true", "limits.run.requests": 1, "limits.run.window": "1h"}) as server:
            server.call("POST", "/v2/parked/run", JOB)
            request = server.request("POST", "/v2/parked/run", JOB)
            for count in connections:
                self.note("429", count, server.load("http429", count, request, self.options.seconds))

    def finished(self, storage, connections):
        """Jobs from the first submission until the last of them is finished."""
        for count in connections:
            jobs = 4000 if self.options.quick else 30000
            with Jobq(storage) as server:
                start = time.monotonic()
                finish_jobs(server, "/v2/echo/run", count, jobs)
                self.note(f"finished {storage}", count, {"rate": jobs / (time.monotonic() - start)})

    def log_bytes(self):
        """The write-ahead log of SQLite for each finished job, beyond the job's own bytes."""
        works = (("finished", "run", 64, 30000), ("/runsync", "runsync", 1, 3000), ("/runsync", "runsync", 32, 10000))
        for name, path, count, jobs in works:
            jobs = jobs // 10 if self.options.quick else jobs
            with Jobq("sqlite", log_growth.SETTINGS) as server:
                growth = log_growth.LogGrowth(server)
                finish_jobs(server, f"/v2/echo/{path}", count, jobs)
                self.note(f"log of {name} sqlite", count, {"log": growth.bytes_beyond(jobs)})

    def large(self, storage):
        """20 MB: refused at its last byte (received and judged only), queued, and echoed."""
        frame = b'{"input":{"a":"%s"}}'
        body = frame % (b"x" * (20 * MB - len(frame % b"")))
        with Jobq(storage) as server:
            times = [self.refusal(server, body[:-1] + b"]") for _ in range(5)]
            judged = statistics.median(times)
            self.note(f"20 MB judged {storage}", 1, {"rate": 1 / judged, "p50": judged * 1e6, "p99": max(times) * 1e6})
        with Jobq(storage) as server:
            before = server.memory()
            server.load("http", 1, server.request("POST", "/v2/parked/runsync?wait=1000", body), count=1)
            copies = (server.memory("VmHWM") - before) / (20 * MB)
            measured = server.load("http", 1, server.request("POST", "/v2/echo/runsync", body), count=5)
            self.note(f"20 MB echoed {storage}", 1, {**measured, "copies": copies})

    @staticmethod
    def refusal(server, body):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        start = time.monotonic()
        connection.request("POST", "/v2/parked/runsync", body, {"Authorization": server.key})
        assert connection.getresponse().status == 400
        connection.close()
        return time.monotonic() - start

    def beanstalkd(self, suffix, *extra):
        for what, protocol in (("put", "beanstalk"), ("finished", "beanstalk-finished")):
            self.beanstalkd_row(f"beanstalkd {what}{suffix}", protocol, *extra)

    def beanstalkd_row(self, name, protocol, *extra):
        with Running("beanstalkd") as server:
            os.makedirs(os.path.join(server.folder, "log.d"))
            server.start(installed("beanstalkd"), "-l", "127.0.0.1", "-p", server.port, "-z", 65535, *extra)
            self.note(name, 64, server.load(protocol, 64, JOB, self.options.seconds))

    def gearmand(self):
        with Running("gearmand") as server:
            server.start(installed("gearmand"), "--listen=127.0.0.1", f"--port={server.port}", "--log-file=none",
                         "--user=root" if os.geteuid() == 0 else "--threads=4")
            server.start(os.path.join(PROGRAMS, "bench_gearman_worker"), server.port, 8, listens=False)
            self.note("gearmand foreground", 32, server.load("gearman", 32, JOB, self.options.seconds))

    def bullmq(self, folder):
        jobs = 2000 if self.options.quick else 10000
        with Running("redis") as server:
            server.start(installed("redis-server"), "--port", server.port, "--bind", "127.0.0.1", "--dir", server.folder,
                         "--appendonly", "yes", "--appendfsync", "always", "--save", "")
            script = shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bullmq.js"), folder)
            payload = server.file("job.json", JOB)
            done = subprocess.run(["node", script, str(server.port), str(jobs), payload], capture_output=True, text=True,
                                  check=True, timeout=120, preexec_fn=end_with_parent)
            self.note("BullMQ, Redis fsync always", 64, json.loads(done.stdout))

    def peers(self):
        if installed("beanstalkd"):
            self.beanstalkd("")
            self.beanstalkd(" -f 0", "-b", "log.d", "-f", 0)
        if installed("gearmand"):
            self.gearmand()
        if installed("redis-server") and self.bullmq_folder:
            self.bullmq(self.bullmq_folder)

    def whole_round(self):
        some = [1, 16, 64] if self.options.quick else [1, 16, 64, 256]
        with_32 = sorted({*some, 32})
        self.bare(with_32)
        self.refused(some)
        self.fdatasync()
        for storage in ("memory", "sqlite"):
            self.run(storage, some)
            self.runsync(storage, with_32)
            self.finished(storage, [64])
            self.status(storage, some)
            self.large(storage)
        self.log_bytes()

    def speed_round(self):
        self.bare([1, 64])
        self.fdatasync()
        for storage in ("memory", "sqlite"):
            self.run(storage, [64])
            self.runsync(storage, [1, 32])
            self.finished(storage, [64])
            self.large(storage)
        self.log_bytes()
        if installed("gearmand") and not self.options.peers:
            self.gearmand()

    def all(self):
        self.bullmq_folder = install_bullmq() if self.options.peers and installed("redis-server") else None
        for number in range(self.options.rounds):
            print(f"round {number + 1} of {self.options.rounds}", flush=True)
            if self.options.speed:
                self.speed_round()
            else:
                self.whole_round()
            if self.options.peers:
                self.peers()
        if self.options.million:
            self.rounds[("million", 0)] = [deep_queue.measure(1_000_000, self.options.rounds)]
        return {key: {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
                for key, rounds in self.rounds.items()}


def perf(bench, name):
    """Runs a single contestant under perf."""
    what, _, storage = name.lstrip("/").rpartition(" ")
    contestants = {"run": bench.run, "runsync": bench.runsync, "status": bench.status, "finished": bench.finished}
    if name not in ("bare", "429") and (what not in contestants or storage not in ("memory", "sqlite")):
        sys.exit(f"--perf knows bare, 429, and {', '.join(contestants)} with memory or sqlite; not {name}")
    if not installed("perf"):
        sys.exit("perf is not installed")
    os.makedirs(bench.options.out, exist_ok=True)
    file = f"perf-{name.lstrip('/').replace(' ', '-')}.data"
    Running.profile = os.path.join(os.path.abspath(bench.options.out), file)
    if name == "bare":
        bench.bare([64])
    elif name == "429":
        bench.refused([64])
    else:
        contestants[what](storage, [64])
    profile_report.write(Running.profile)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round, to show that the benchmark works")
    parser.add_argument("--speed", action="store_true", help="measure only the rows that the goals of speed compare")
    parser.add_argument("--peers", action="store_true", help="measure beanstalkd, gearmand and BullMQ on Redis too")
    parser.add_argument("--million", action="store_true", help="measure restart, memory and pace with a million queued jobs")
    parser.add_argument("--perf", metavar="NAME", help="records one contestant instead, such as 'finished sqlite'")
    parser.add_argument("--workers", type=int, default=Jobq.workers, help="of the endpoint echo (%(default)s)")
    parser.add_argument("--rounds", type=int, help="3, with --quick 1")
    parser.add_argument("--seconds", type=float, help="seconds of load for each measurement: 2.0, with --quick 0.5")
    parser.add_argument("--out", default=os.path.join(BUILD, "bench"))
    parser.add_argument("--write-readme", action="store_true", help="puts the table into tests/bench/README.md")
    options = parser.parse_args()
    if options.speed and options.write_readme:
        parser.error("--write-readme needs all rows, and --speed leaves some out")
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (0.5 if options.quick else 2.0)
    Jobq.workers = options.workers
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the contexts then stop their processes
    bench = Bench(options)
    try:
        if options.perf:
            return perf(bench, options.perf)
        others = OtherWork()
        medians = bench.all()
        other_work = others.share()
    finally:
        shutil.rmtree(os.path.join(BUILD, "bench-data"), ignore_errors=True)
    report.write(options, bench.rounds, medians, {"workers": options.workers, "job bytes": len(JOB)},
                 other_work)
    return 0


if __name__ == "__main__":
    sys.exit(main())

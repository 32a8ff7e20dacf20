"""Measures what event streams of /status cost while their job does not change.

    event_streams.py [--streams N] [--storage memory|sqlite] [--progress BYTES]

Prints the cores that the server uses for ten seconds with all streams open, and without them.
"""

import argparse
import json
import os
import socket
import time

from servers import Jobq, until

SECONDS = 10.0


def processor_seconds(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cores(server):
    before = processor_seconds(server)
    time.sleep(SECONDS)
    return (processor_seconds(server) - before) / SECONDS


def open_stream(server, path):
    """Returns a connection whose first event was read."""
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    plain.sendall(server.request("GET", path).replace(b"*/*", b"text/event-stream"))
    end = b""
    while not end.endswith(b"\n\n\r\n"):  # the end of the chunk with the event
        piece = plain.recv(1 << 20)
        if not piece:
            raise RuntimeError(f"the stream ended: {end!r}")
        end = (end + piece)[-200:]
    return plain


def measure(options):
    with Jobq(options.storage, {"endpoint.trial.image": "plugin/trial"}) as server:
        wanted = {"progress": ["x" * options.progress], "sleepMs": 300_000}
        job = server.call("POST", "/v2/trial/run", json.dumps({"input": wanted}).encode())["id"]
        until(lambda: "output" in server.call("GET", f"/v2/trial/status/{job}"), "the job has its progress")
        alone = cores(server)
        streams = [open_stream(server, f"/v2/trial/status/{job}") for _ in range(options.streams)]
        used = cores(server)
        print(f"{options.storage}: {len(streams)} streams over a job with {options.progress} bytes of progress use "
              f"{used:.3f} cores; {alone:.3f} without them")
        server.call("POST", f"/v2/trial/cancel/{job}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--streams", type=int, default=400)
    options.add_argument("--storage", choices=("memory", "sqlite"), default="sqlite")
    options.add_argument("--progress", type=int, default=900_000)
    measure(options.parse_args())


if __name__ == "__main__":
    main()

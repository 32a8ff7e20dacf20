"""Sends a batch of pictures through a running jobq server, half by /runsync, half by /run and /status, and looks at
every result. Python 3.11, standard library only.

    python3 scripts/demo/demo.py --url http://127.0.0.1:8000 --key-file etc/jobq-data/admin.key --out /tmp/pictures

Pictures are rendered on the spot (make_pictures.py); three pictures are first made into JPEG and WebP photos by the
server. Ends with 0 only if every result is right: the format, the dimensions, the decoded picture, and the mean colour,
equal to the colour of the source or of the part shown. JPEG and WebP results are sent back for conversion to PNG.
"""
import argparse
import base64
import concurrent.futures
import dataclasses
import pathlib
import sys
import time

import make_pictures
import picture_check
import png_file
from queue_client import QueueClient, QueueError

WORKERS = 4
EXTENSIONS = {"jpeg": "jpg", "png": "png", "webp": "webp"}
# The largest difference of a colour channel's mean, 0 to 255: resampling moves a mean by little, lossy formats by more.
TOLERANCE = {"png": 3, "jpeg": 5, "webp": 5}


@dataclasses.dataclass
class Task:
    source: str
    operations: list
    format: str
    size: tuple  # of the result
    part: tuple = None  # x, y, width, height of the part of the source in the result; `None`: the whole source
    quality: int = 90

    @property
    def name(self):
        steps = "-".join(next(iter(step)) for step in self.operations) or "convert"
        return f"{self.source}-{steps}.{EXTENSIONS[self.format]}"


def resize(**how):
    return {"resize": how}


# Name of the photo, rendered picture of the same content, format of the photo.
PHOTOS = [("spheres-photo", "spheres", "jpeg"), ("mountains-photo", "mountains", "jpeg"),
          ("clouds-photo", "clouds", "webp")]

TASKS = [
    Task("gradient", [resize(width=200)], "png", (200, 120)),
    Task("mandelbrot", [resize(width=160, height=160)], "png", (160, 120)),
    Task("julia", [{"rotate": {"degrees": 90}}], "png", (200, 300)),
    Task("plasma", [{"crop": {"x": 40, "y": 60, "width": 128, "height": 96}}], "png", (128, 96), (40, 60, 128, 96)),
    Task("rings", [], "webp", (240, 240)),
    Task("badge", [resize(width=100), {"rotate": {"degrees": 180}}], "png", (100, 100)),
    Task("badge", [], "jpeg", (200, 200)),
    Task("spheres", [resize(width=200, height=200, fit="cover")], "png", (200, 200), (60, 0, 200, 200)),
    Task("clouds", [resize(width=420, height=90, fit="stretch")], "webp", (420, 90)),
    Task("mountains", [{"crop": {"width": 360, "height": 110}}, resize(height=55)], "jpeg", (180, 55),
         (0, 0, 360, 110)),
    Task("spheres-photo", [resize(width=640)], "jpeg", (640, 400)),
    Task("mountains-photo", [{"rotate": {"degrees": 270}}], "png", (220, 360)),
    Task("clouds-photo", [resize(width=140)], "png", (140, 90)),
    Task("mountains-photo", [resize(height=100)], "webp", (164, 100)),
]


class Progress:
    """A line filled up step by step, drawn only on a terminal."""

    def __init__(self, total):
        self.done, self.total, self.shown = 0, total, sys.stdout.isatty()
        self.draw()

    def step(self):
        self.done += 1
        self.draw()

    def draw(self):
        if not self.shown:
            return
        full = 40 * self.done // self.total
        end = "\n" if self.done == self.total else ""
        print(f"\r[{'#' * full}{'.' * (40 - full)}] {self.done}/{self.total}", end=end, flush=True)


def to_base64(file):
    return base64.b64encode(file).decode()


def file_of(job):
    if job["status"] != "COMPLETED":
        raise ValueError(f"the job is {job['status']}: {job.get('error', 'no error given')}")
    return base64.b64decode(job["output"]["image"], validate=True)


def pixels_of(client, file):
    """The decoded picture; the server first converts JPEG and WebP to PNG."""
    if not file.startswith(png_file.SIGNATURE):
        file = file_of(client.run_sync({"image": to_base64(file), "format": "png"}))
    return png_file.read(file)


def check(client, task, source, job, file):
    """Raises ValueError unless the result is right."""
    output = job["output"]
    found = picture_check.identify(file)
    if found != (task.format, *task.size):
        raise ValueError(f"the result is {found} instead of {(task.format, *task.size)}")
    said = output["format"], output["width"], output["height"]
    if said != found or output["bytes"] != len(file):
        raise ValueError(f"the output says {said} and {output['bytes']} bytes")
    mean = png_file.mean_colour(pixels_of(client, file))
    wanted = png_file.mean_colour(pixels_of(client, source), task.part)
    picture_check.demand_near(mean, wanted, TOLERANCE[task.format])


def input_of(task, source):
    return {"image": to_base64(source), "operations": task.operations, "format": task.format, "quality": task.quality}


def make_sources(client, out):
    """Name to file: rendered pictures, and photos made by the server of some pictures."""
    sources = {name: path.read_bytes() for name, path in make_pictures.make_all(out / "source").items()}
    for name, origin, fmt in PHOTOS:
        job = client.run_sync({"image": to_base64(sources[origin]), "format": fmt, "quality": 92})
        sources[name] = file_of(job)
        (out / "source" / f"{name}.{EXTENSIONS[fmt]}").write_bytes(sources[name])
    return sources


def send_all(client, sources):
    """(task, call, job) in the order of TASKS. Every second job is submitted at once and polled for afterwards."""
    progress = Progress(len(TASKS))
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        pending = {}
        for number, task in enumerate(TASKS):
            job_input = input_of(task, sources[task.source])
            if number % 2 == 0:
                pending[pool.submit(client.run_sync, job_input)] = number, "runsync"
            else:
                pending[pool.submit(client.wait, client.run(job_input))] = number, "run"
        jobs = {}
        for future in concurrent.futures.as_completed(pending):
            number, call = pending[future]
            jobs[number] = TASKS[number], call, future.result()
            progress.step()
    return [jobs[number] for number in sorted(jobs)]


def save_and_check(client, task, job, source, out):
    """The file, and the fault of the result ("" without a fault)."""
    file = b""
    try:
        file = file_of(job)
        (out / task.name).write_bytes(file)
        check(client, task, source, job, file)
    except (ValueError, KeyError, TypeError, QueueError) as fault:
        return file, str(fault) or repr(fault)
    return file, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key-file", type=pathlib.Path, required=True)
    parser.add_argument("--endpoint", default="image")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    start = time.monotonic()
    try:
        client = QueueClient(options.url, options.key_file.read_text().strip(), options.endpoint)
        sources = make_sources(client, options.out)
        finished = send_all(client, sources)
    except (QueueError, OSError, ValueError) as fault:
        sys.exit(f"demo: {fault}")

    print(f"{'job':<36} {'call':<8} {'state':<10} {'delay ms':>8} {'time ms':>8} {'size in -> out':>18} dimensions")
    wrong = 0
    for task, call, job in finished:
        file, fault = save_and_check(client, task, job, sources[task.source], options.out)
        wrong += bool(fault)
        sizes = f"{len(sources[task.source])} -> {len(file)}"
        output = job.get("output") if isinstance(job.get("output"), dict) else {}
        dimensions = f"{output.get('width', '?')} x {output.get('height', '?')}"
        print(f"{task.name:<36} {call:<8} {job['status']:<10} {job.get('delayTime', '-'):>8} "
              f"{job.get('executionTime', '-'):>8} {sizes:>18} {dimensions}")
        if fault:
            print(f"    wrong: {fault}")
    seconds = time.monotonic() - start
    print(f"{len(finished) - wrong} of {len(finished)} pictures are right, in {options.out}, after {seconds:.1f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

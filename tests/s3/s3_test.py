"""The image handler against two S3 servers: verify_sigv4.py, which checks every signature, and s3rver, a foreign
implementation, which proves that what was uploaded can be read back by other means.

    python3 tests/s3/s3_test.py --build build [--without-s3rver]

s3rver (an npm package, pinned in package-lock.json) is installed under <build>/s3rver on the first run.
Ends with 0 and the line `N passed, 0 failed` when all is well.
"""
import argparse
import base64
import contextlib
import json
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import urllib.request
import zlib

from verify_sigv4 import VerifyingS3, signature_of

HERE = pathlib.Path(__file__).resolve().parent
ACCESS_ID = "S3RVER"  # the only account that s3rver knows
SECRET = "S3RVER"
BUCKET = "pictures"
START_SECONDS = 30


def png(width, rows):
    """A grey picture; a row is one byte a pixel."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


WEDGE = png(40, [bytes(range(0, 240, 6))] * 20)


class Driver:
    """Runs the handler's jobs through build/bin/run_handler."""

    def __init__(self, build, scratch):
        self.build = build
        self.program = next(p for p in (build / "tests/run_handler", build / "bin/run_handler", build / "run_handler") if p.exists())
        self.library = build / "plugins/libjobq_handler_image.so"
        self.scratch = scratch

    def run(self, endpoint, job="job-1-u1", secret=SECRET, bucket=BUCKET, picture=WEDGE,
            operations=({"resize": {"width": 20}},), **more):
        """The parsed output, or the error as a string. `more` goes into the s3Config."""
        config = {"accessId": ACCESS_ID, "accessSecret": secret, "bucketName": bucket, "endpointUrl": endpoint, **more}
        file = self.scratch / "s3.json"
        file.write_text(json.dumps(config))
        job_input = {"image": base64.b64encode(picture).decode(), "operations": list(operations)}
        done = subprocess.run(
            [self.program, self.library, "image", "--s3", file, "--allow-private", "--id", job],
            input=json.dumps(job_input), capture_output=True, text=True, timeout=60)
        if secret in done.stdout or (secret != ACCESS_ID and secret in done.stderr):
            raise AssertionError("the secret was printed")
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


def same(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def holds(found, part):
    if part not in str(found):
        raise AssertionError(f"{found!r} does not hold {part!r}")


def test_a_signature_is_accepted(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET) as server:
        output = driver.run(server.url)
        same(output, {"width": 20, "height": 10, "format": "png", "bytes": output["bytes"],
                      "url": f"{server.url}/{BUCKET}/job-1-u1.png"})
        body, media_type = server.objects["job-1-u1.png"]
        same((len(body), media_type, body[:4]), (output["bytes"], "image/png", b"\x89PNG"))


def test_keys_of_any_spelling_are_signed_as_they_are_sent(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET) as server:
        keys = ["plain.png", "a/b/c.png", "a b=(1)+2,3;4:5@6&7$8!'*.png", "äöü/漢字.png", "100%25.png",
                "a?b#c.png", "~tilde-_.png", "[brackets]{}|^`\"<>\\.png"]
        for key in keys:
            holds(driver.run(server.url, objectPath=key), "'url'")
        same(sorted(server.objects), sorted(keys))


def test_other_regions_are_signed(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET, region="eu-north-1") as server:
        holds(driver.run(server.url, region="eu-north-1"), "'url'")
        holds(driver.run(server.url), "answered 400 AuthorizationHeaderMalformed")


def test_a_body_over_a_megabyte_is_signed(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET) as server:
        noise = random.Random(1).randbytes(2000 * 1000)
        output = driver.run(server.url, picture=png(2000, [noise[i * 2000:(i + 1) * 2000] for i in range(1000)]),
                            operations=[])
        same(output["bytes"], len(server.objects["job-1-u1.png"][0]))
        if output["bytes"] < 1 << 20:
            raise AssertionError("the object is smaller than a megabyte")


def test_a_wrong_secret_is_refused(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET) as server:
        holds(driver.run(server.url, secret="not-the-secret"),
              "the storage answered 403 SignatureDoesNotMatch (The signature we calculated does not match the one "
              "provided); check accessId, accessSecret, region and bucketName")
        same(server.objects, {})


def test_an_unknown_bucket_is_named(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET) as server:
        holds(driver.run(server.url, bucket="other"), "answered 404 NoSuchBucket")


def test_the_verifier_knows_the_published_example(_):
    """AWS's own example of a signed PUT: "Signature Calculations for the Authorization Header", example 2."""
    headers = {
        "date": "Fri, 24 May 2013 00:00:00 GMT", "host": "examplebucket.s3.amazonaws.com",
        "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "x-amz-date": "20130524T000000Z", "x-amz-storage-class": "REDUCED_REDUNDANCY",
    }
    same(signature_of("PUT", "/test%24file.text", headers, sorted(headers),
                                   headers["x-amz-content-sha256"], headers["x-amz-date"],
                                   "20130524/us-east-1/s3/aws4_request", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")


def install_s3rver(build):
    folder = build / "s3rver"
    if not (folder / "node_modules/s3rver").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder,
                       check=True, stdout=sys.stderr)
    return folder / "node_modules/s3rver/bin/s3rver.js"


@contextlib.contextmanager
def s3rver(build, scratch):
    """Its address. It is told to take a free port and prints which."""
    program = install_s3rver(build)
    server = subprocess.Popen(
        ["node", program, "--directory", scratch / "objects", "--address", "127.0.0.1", "--port", "0",
         "--configure-bucket", BUCKET], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    signal.signal(signal.SIGALRM, lambda *_: server.kill())
    signal.alarm(START_SECONDS)
    try:
        for line in server.stdout:
            if "listening" in line.lower():
                break
        else:
            raise AssertionError("s3rver did not start")
        signal.alarm(0)
        yield "http://127.0.0.1:" + line.strip().rsplit(":", 1)[1]
    finally:
        signal.alarm(0)
        server.kill()
        server.wait()


def test_s3rver_keeps_the_object(driver):
    with s3rver(driver.build, driver.scratch) as url:
        for key in ("job.png", "a folder/ä=(1)+.png"):
            output = driver.run(url, objectPath=key)
            holds(output, "'url'")
            with urllib.request.urlopen(output["url"], timeout=10) as answer:
                body = answer.read()
                same((len(body), body[:4], answer.headers["Content-Type"]),
                     (output["bytes"], b"\x89PNG", "image/png"))
        holds(driver.run(url, bucket="missing"), "answered 404 NoSuchBucket")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--without-s3rver", action="store_true")
    options = parser.parse_args()
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    if options.without_s3rver:
        tests = [test for test in tests if "s3rver" not in test.__name__]
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        driver = Driver(options.build.resolve(), pathlib.Path(scratch))
        for test in tests:
            try:
                test(driver)
                print(f"ok    {test.__name__}")
            except Exception as fault:  # every test is run, whatever befalls another
                failed += 1
                print(f"FAIL  {test.__name__}: {fault}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The image handler against two S3 servers: verify_sigv4.py, which checks every signature, and s3rver, a foreign
implementation, which proves that what was uploaded can be read back by other means.

s3rver (an npm package, pinned in package-lock.json) is installed under <build>/s3rver on the first run.
"""

import base64
import json
import os
import pathlib
import random
import shutil
import subprocess
import threading
import urllib.request

import pytest

from jobq_server import BUILD, die_with_parent
from pace import HANG
from pictures import WEDGE, png
from verify_sigv4 import VerifyingS3, signature_of

HERE = pathlib.Path(__file__).resolve().parent
ACCESS_ID = "S3RVER"  # the only account that s3rver knows
SECRET = "S3RVER"
BUCKET = "pictures"
INSTALL_SECONDS = 200  # on a busy machine


class Driver:
    """Runs the handler's jobs through build/tests/run_handler."""

    def __init__(self, scratch):
        self.program = os.path.join(BUILD, "tests", "run_handler")
        self.library = os.path.join(BUILD, "plugins", "libjobq_handler_image.so")
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
            input=json.dumps(job_input), capture_output=True, text=True, timeout=HANG)
        assert secret not in done.stdout
        assert secret == ACCESS_ID or secret not in done.stderr
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


@pytest.fixture
def driver(tmp_path):
    return Driver(tmp_path)


@pytest.fixture
def verifier():
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET) as server:
        yield server


def test_a_signature_is_accepted(driver, verifier):
    output = driver.run(verifier.url)
    assert output == {"width": 20, "height": 10, "format": "png", "bytes": output["bytes"],
                      "url": f"{verifier.url}/{BUCKET}/job-1-u1.png"}
    body, media_type = verifier.objects["job-1-u1.png"]
    assert (len(body), media_type, body[:4]) == (output["bytes"], "image/png", b"\x89PNG")


@pytest.mark.parametrize("key", [
    "plain.png", "a/b/c.png", "a b=(1)+2,3;4:5@6&7$8!'*.png", "äöü/漢字.png", "100%25.png", "a?b#c.png", "~tilde-_.png",
    "[brackets]{}|^`\"<>\\.png"])
def test_keys_of_any_spelling_are_signed_as_they_are_sent(driver, verifier, key):
    assert "url" in driver.run(verifier.url, objectPath=key)
    assert list(verifier.objects) == [key]


def test_other_regions_are_signed(driver):
    with VerifyingS3(ACCESS_ID, SECRET, BUCKET, region="eu-north-1") as server:
        assert "url" in driver.run(server.url, region="eu-north-1")
        assert "answered 400 AuthorizationHeaderMalformed" in driver.run(server.url)


def test_a_body_over_a_megabyte_is_signed(driver, verifier):
    noise = random.Random(1).randbytes(2000 * 1000)
    output = driver.run(verifier.url, picture=png(2000, [noise[i * 2000:(i + 1) * 2000] for i in range(1000)]),
                        operations=[])
    assert output["bytes"] == len(verifier.objects["job-1-u1.png"][0])
    assert output["bytes"] >= 1 << 20


def test_a_wrong_secret_is_refused(driver, verifier):
    assert ("the storage answered 403 SignatureDoesNotMatch (The signature we calculated does not match the one "
            "provided); check accessId, accessSecret, region and bucketName") in driver.run(
                verifier.url, secret="not-the-secret")
    assert verifier.objects == {}


def test_an_unknown_bucket_is_named(driver, verifier):
    assert "answered 404 NoSuchBucket" in driver.run(verifier.url, bucket="other")


def test_the_verifier_knows_the_published_example():
    """AWS's own example of a signed PUT: "Signature Calculations for the Authorization Header", example 2."""
    headers = {
        "date": "Fri, 24 May 2013 00:00:00 GMT", "host": "examplebucket.s3.amazonaws.com",
        "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "x-amz-date": "20130524T000000Z", "x-amz-storage-class": "REDUCED_REDUNDANCY",
    }
    signature = signature_of("PUT", "/test%24file.text", headers, sorted(headers), headers["x-amz-content-sha256"],
                             headers["x-amz-date"], "20130524/us-east-1/s3/aws4_request",
                             "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    assert signature == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"


@pytest.fixture(scope="session")
def s3rver_program():
    folder = pathlib.Path(BUILD) / "s3rver"
    if not (folder / "node_modules/s3rver").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder,
                       check=True, timeout=INSTALL_SECONDS)
    return folder / "node_modules/s3rver/bin/s3rver.js"


@pytest.fixture
def s3rver(s3rver_program, tmp_path):
    """Returns the server's address. The server takes a free port and prints the number."""
    server = subprocess.Popen(
        ["node", s3rver_program, "--directory", tmp_path / "objects", "--address", "127.0.0.1", "--port", "0",
         "--configure-bucket", BUCKET], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=die_with_parent)
    too_late = threading.Timer(HANG, server.kill)
    too_late.start()
    try:
        line = next((line for line in server.stdout if "listening" in line.lower()), None)
        too_late.cancel()
        assert line, f"s3rver does not listen within {HANG:g} s"
        yield "http://127.0.0.1:" + line.strip().rsplit(":", 1)[1]
    finally:
        too_late.cancel()
        server.kill()
        server.wait(HANG)
        server.stdout.close()


def test_s3rver_keeps_the_object(driver, s3rver):
    for key in ("job.png", "a folder/ä=(1)+.png"):
        output = driver.run(s3rver, objectPath=key)
        assert "url" in output
        with urllib.request.urlopen(output["url"], timeout=HANG) as answer:
            body = answer.read()
            assert (len(body), body[:4], answer.headers["Content-Type"]) == (
                output["bytes"], b"\x89PNG", "image/png")
    assert "answered 404 NoSuchBucket" in driver.run(s3rver, bucket="missing")

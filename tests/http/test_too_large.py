"""413 before the body was read: every client has to see it as a status, not as a broken connection."""

import http.client
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import BUILD, ROOT, HttpTest  # noqa: E402

MEGABYTES = 100
TIMES = 10
REQUESTS = "requests==2.32.3"
CLIENTS = os.path.join(ROOT, "tests", "clients")


class TooLargeTest(HttpTest):
    """decisions.md, Answers: 413 before the body is read to its end; design.md: so that every client sees the status."""

    def setUp(self):
        self.url = self.server.url + "/v2/echo/run"
        self.body = b"x" * (MEGABYTES << 20)

    def expect_413(self, name, send):
        with self.subTest(name):
            self.assertEqual([send() for _ in range(TIMES)], [413] * TIMES)

    def program(self, *command):
        """Runs a client that prints `name: status status ...` lines."""
        done = subprocess.run([*command, self.url, self.server.key, str(MEGABYTES), str(TIMES)], capture_output=True,
                              text=True, check=False, timeout=200, env={**os.environ, "GO111MODULE": "off"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout)
        for line in done.stdout.splitlines():
            name, _, seen = line.partition(": ")
            with self.subTest(name):
                self.assertEqual(seen.split(), ["413"] * TIMES)

    def test_curl(self):
        with tempfile.NamedTemporaryFile(prefix="jobq-test-") as file:
            file.write(self.body)
            file.flush()

            def curl(*extra):
                done = subprocess.run(["curl", "-sS", "-m", "30", "-o", os.devnull, "-w", "%{http_code}", "-H",
                                       f"Authorization: {self.server.key}", *extra, "--data-binary", f"@{file.name}",
                                       self.url], capture_output=True, text=True, check=False)
                return int(done.stdout) if done.returncode == 0 else done.stderr

            for extra in ([], ["-H", "Expect:"], ["-H", "Expect: 100-continue"]):
                for framing in ([], ["-H", "Transfer-Encoding: chunked"]):
                    self.expect_413(f"curl {extra} {framing}", lambda e=extra, f=framing: curl(*e, *f))

    def test_python(self):
        def parts():
            return (self.body[at:at + 65536] for at in range(0, len(self.body), 65536))

        def send(chunked, **fields):
            connection = http.client.HTTPConnection(*self.server.address, timeout=30)
            try:
                connection.request("POST", "/v2/echo/run", parts() if chunked else self.body,
                                   {"Authorization": self.server.key, **fields}, encode_chunked=chunked)
                return connection.getresponse().status
            finally:
                connection.close()

        self.expect_413("http.client, length", lambda: send(False))
        self.expect_413("http.client, chunks", lambda: send(True))
        # It sends the expectation and, without waiting, the body.
        self.expect_413("http.client, length, expect", lambda: send(False, Expect="100-continue"))
        self.expect_413("http.client, chunks, expect", lambda: send(True, Expect="100-continue"))

    def test_python_requests(self):
        folder = os.path.join(BUILD, "python", REQUESTS)
        if not os.path.isdir(folder):
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, REQUESTS],
                                  capture_output=True, text=True, check=False, timeout=200)
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                self.skipTest(f"pip cannot install {REQUESTS}: {done.stderr[-200:]}")
        sys.path.insert(0, folder)
        self.addCleanup(sys.path.remove, folder)
        requests = importlib.import_module("requests")

        def send(body, fields):
            headers = {"Authorization": self.server.key, **fields}
            return requests.post(self.url, data=body, headers=headers, timeout=30).status_code

        for fields in ({}, {"Expect": "100-continue"}):  # sent without waiting for its answer
            self.expect_413(f"requests, length {fields}", lambda f=fields: send(self.body, f))
            self.expect_413(f"requests, chunks {fields}", lambda f=fields: send(
                (self.body[at:at + 65536] for at in range(0, len(self.body), 65536)), f))

    def test_node(self):
        if shutil.which("node") is None:
            self.skipTest("node is not installed")
        self.program("node", os.path.join(CLIENTS, "too_large.js"))

    def test_go(self):
        if shutil.which("go") is None:
            self.skipTest("go is not installed")
        program = os.path.join(BUILD, "too_large_go")
        subprocess.run(["go", "build", "-o", program, os.path.join(CLIENTS, "too_large.go")], check=True, timeout=200,
                       env={**os.environ, "GO111MODULE": "off"})
        self.program(program)


if __name__ == "__main__":
    unittest.main()

"""jobqctl: keys, plugins, one job; its help, wrong usage, and servers that cannot be reached.

Templates, endpoints, releases, the queue and the live view have their own files beside this one."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobqctl_case import NOT_COMPLETED, NOWHERE, REFUSED, UNREACHABLE, USAGE, CtlTest  # noqa: E402

VERBS = {"key create": "NAME", "key list": "", "key revoke": "ID", "plugin list": "", "plugin describe": "NAME",
         "template list": "", "template show": "ID", "template create": "", "template update": "ID",
         "template delete": "ID", "endpoint list": "", "endpoint show": "ID", "endpoint create": "",
         "endpoint update": "ID", "endpoint delete": "ID", "endpoint pause": "ID", "endpoint resume": "ID",
         "release status": "[ENDPOINT]", "run": "ENDPOINT JSON", "job list": "ENDPOINT", "job show": "ENDPOINT JOB",
         "job stream": "ENDPOINT JOB", "job cancel": "ENDPOINT JOB", "job retry": "ENDPOINT JOB",
         "requests": "ENDPOINT", "status": "ENDPOINT JOB", "cancel": "ENDPOINT JOB", "retry": "ENDPOINT JOB",
         "purge": "ENDPOINT", "health": "ENDPOINT", "top": "[ENDPOINT]", "webhook list": "", "webhook replay": "ID"}


class KeyVerbsTest(CtlTest):
    def create(self, *arguments):
        key = self.json("key", "create", *arguments)
        self.addCleanup(self.server.request, "DELETE", f"/v1/keys/{key['id']}")
        return key

    def test_create(self):
        """decisions.md, Keys: `POST /v1/keys {name, scopes, endpoints, expiresAt}`; a client key by default."""
        key = self.create("plain")
        self.assertEqual((key["name"], key["scopes"]), ("plain", ["client"]))
        self.assertEqual((key["endpoints"], key["expiresAt"]), ([], None))
        self.assertEqual(self.server.request("GET", "/v2/echo/health", key=key["key"]).status, 200)

    def test_create_with_everything(self):
        """decisions.md, Keys: scopes, endpoints and expiry."""
        key = self.create('a "name" \u00e9', "--scope", "client", "--scope=worker", "--endpoint", "echo", "--endpoint",
                          "trial", "--expires", "2099-01-01T00:00:00Z")
        self.assertEqual(key["name"], 'a "name" \u00e9')
        self.assertEqual((sorted(key["scopes"]), sorted(key["endpoints"])), (["client", "worker"], ["echo", "trial"]))
        self.assertTrue(key["expiresAt"].startswith("2099-01-01T00:00:00"))

    def test_create_for_people(self):
        """The table shows the key, and says that it is the only time."""
        text = self.table("key", "create", "for-people", "--scope", "admin")
        fields = dict(line.split(None, 1) for line in text.split("\n\n")[0].splitlines())
        self.addCleanup(self.server.request, "DELETE", f"/v1/keys/{fields['id']}")
        self.assertEqual((fields["name"], fields["scopes"], fields["endpoints"], fields["expires"]),
                         ("for-people", "admin", "all", "-"))
        self.assertEqual(self.server.request("GET", "/v1/keys", key=fields["key"]).status, 200)
        self.assertIn("only", text)

    def test_create_refused(self):
        """Exit code 1 and the server's own sentence when the server says no."""
        self.assertIn("scopes", self.sentence("key", "create", "x", "--scope", "root", code=REFUSED))
        self.assertIn("expiresAt", self.sentence("key", "create", "x", "--expires", "tomorrow", code=REFUSED))

    def test_list(self):
        """decisions.md, Keys: `GET /v1/keys`."""
        key = self.create("listed")
        rows = self.table("key", "list").splitlines()
        self.assertEqual(rows[0].split("  ")[0], "ID")
        row = next(row for row in rows if key["id"] in row)
        for word in ("listed", "client", "all", key["createdAt"]):
            self.assertIn(word, row)
        self.assertNotIn(key["key"], "\n".join(rows))
        answer = self.server.request("GET", "/v1/keys")
        self.assertEqual({entry["id"] for entry in self.json("key", "list")}, {entry["id"] for entry in answer.json()})

    def test_names_cannot_steer_the_terminal(self):
        """A table shows control characters as ?, because a key's name is anybody's text."""
        key = self.create("red \x1b[31m \u009b2J text\nline")
        text = self.table("key", "list")
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u009b", text)
        self.assertIn("red ?[31m ?2J text?line", next(row for row in text.splitlines() if key["id"] in row))

    def test_revoke(self):
        """decisions.md, Keys: `DELETE /v1/keys/{id}`; a second time there is no such key."""
        key = self.create("revoked")
        self.assertIn(key["id"], self.table("key", "revoke", key["id"]))
        self.assertEqual(self.server.request("GET", "/v2/echo/health", key=key["key"]).status, 401)
        self.sentence("key", "revoke", key["id"], code=REFUSED)
        other = self.create("revoked too")
        self.assertEqual(self.ctl("key", "revoke", other["id"], "--json").stdout, b"", "a 204 has no body")

    def test_an_id_is_one_segment_of_the_path(self):
        """An id is data: it cannot turn the request into another one."""
        key = self.create("kept")
        for word in (f"x/../{key['id']}", f"{key['id']}/", f"{key['id']}?x", f"%2e%2e/{key['id']}", " ", "\u00e9"):
            self.sentence("key", "revoke", word, code=REFUSED)
        self.assertEqual(self.server.request("GET", "/v2/echo/health", key=key["key"]).status, 200)


class PluginVerbsTest(CtlTest):
    def test_list(self):
        """decisions.md, Keys: `GET /v1/plugins` lists plugins with state and reason."""
        rows = self.table("plugin", "list").splitlines()
        self.assertEqual(rows[0].split(), ["FILE", "STATE", "KIND", "NAME", "VERSION", "SELECTED", "REASON"])
        words = [row.split() for row in rows[1:]]
        self.assertTrue(any(row[1:4] == ["loaded", "storage", "sqlite"] for row in words), rows)
        self.assertEqual(self.ctl("plugin", "list", "--json").stdout, self.server.request("GET", "/v1/plugins").body)

    def test_describe(self):
        """design.md, Plugin interfaces: the declared table is what `jobqctl plugin describe` prints."""
        text = self.table("plugin", "describe", "sqlite")
        self.assertIn("KEY", text)
        entry = self.json("plugin", "describe", "storage.sqlite")
        self.assertEqual((entry["kind"], entry["name"]), ("storage", "sqlite"))
        for option in entry["options"]:
            self.assertIn(option["key"], text)
            self.assertIn(option["help"], text)

    def test_describe_without_options(self):
        """A plugin that declares nothing is described too."""
        self.assertIn("no options", self.table("plugin", "describe", "trial"))

    def test_describe_unknown(self):
        """Exit code 1: the server has no such plugin."""
        self.assertIn("nothing", self.sentence("plugin", "describe", "nothing", code=REFUSED))


class JobVerbsTest(CtlTest):
    RAW = b'{"b": 1.0,"a":[-0,1e400,12345678901234567890123],"s":"\\u2028\xe2\x80\xa8"}'

    def test_run_and_status(self):
        """api.md, Queue API: `/run`, then `/status`."""
        job = self.json("run", "echo", '{"a":1}')
        self.assertEqual(set(job), {"id", "status"})
        end = self.server.finished("echo", job["id"])
        self.assertEqual(self.json("status", "echo", job["id"]), end)
        text = self.table("status", "echo", job["id"])
        for word in (job["id"], "COMPLETED", end["workerId"], 'output:\n{"a":1}\n'):
            self.assertIn(word, text)
        self.assertIn("IN_QUEUE", self.table("run", "echo", "{}"))

    def test_run_sync(self):
        """design.md, sentence 5: the output is printed as the bytes it is."""
        text = self.ctl("run", "echo", self.RAW, "--sync").stdout
        self.assertIn(b"output:\n" + self.RAW + b"\n", text)
        self.assertIn(b'"output":' + self.RAW, self.ctl("run", "echo", self.RAW, "--sync", "--json").stdout)

    def test_input_from_standard_input_and_from_a_file(self):
        """`-` is standard input, `@FILE` a file."""
        self.assertIn(self.RAW, self.ctl("run", "echo", "-", "--sync", stdin=self.RAW + b"\n").stdout)
        with tempfile.NamedTemporaryFile(prefix="jobq-test-") as file:
            file.write(self.RAW)
            file.flush()
            self.assertIn(self.RAW, self.ctl("run", "echo", "@" + file.name, "--sync").stdout)
        self.assertIn("nowhere", self.sentence("run", "echo", "@/nowhere", code=USAGE))

    def test_large_input(self):
        """api.md, Limits: `/runsync` takes 20 MB; 413 is the server's no."""
        large = b'{"v":"' + b"x" * (19 * 1024 * 1024) + b'"}'
        answer = self.ctl("run", "echo", "-", "--sync", "--json", stdin=large).stdout
        self.assertIn(large, answer)
        self.sentence("run", "echo", "-", stdin=large, code=REFUSED)

    def test_input_that_is_no_object(self):
        """Wrong usage, found before anything is sent; text that would add members to the request is not sent either."""
        for text in ("", "{", "[]", "null", '"x"', "{} x", '{},"webhook":"http://x.example/"', '{"a":1,}'):
            with self.subTest(text):
                self.sentence("run", "echo", text, code=USAGE, JOBQ_URL=NOWHERE)

    def test_run_sync_of_a_failing_job(self):
        """Exit code 4 when the job did not end COMPLETED, with the job's own error."""
        text = self.table("run", "trial", '{"fail":"no \\u001b[31m luck"}', "--sync", code=NOT_COMPLETED)
        self.assertIn("FAILED", text)
        self.assertIn("no ?[31m luck", text)
        self.assertEqual(self.json("run", "trial", '{"fail":"x"}', "--sync", code=NOT_COMPLETED)["error"], "x")

    def test_run_sync_of_a_job_that_takes_longer(self):
        """Exit code 4 when `--wait` elapsed; the wait goes to the server, which judges its range."""
        job = self.json("run", "trial", '{"sleepMs":1500}', "--sync", "--wait", "1000", code=NOT_COMPLETED)
        self.assertEqual(job["status"], "IN_PROGRESS")
        self.assertEqual(self.server.finished("trial", job["id"])["status"], "COMPLETED")
        self.assertIn("wait", self.sentence("run", "echo", "{}", "--sync", "--wait", "999", code=REFUSED))

    def test_cancel_and_retry(self):
        """api.md, Queue API: `/cancel` and `/retry` return only `id` and `status`."""
        job = self.json("run", "parked", "{}")["id"]
        self.assertEqual(self.json("cancel", "parked", job), {"id": job, "status": "CANCELLED"})
        self.assertIn("CANCELLED", self.sentence("retry", "parked", job, code=REFUSED))
        failed = self.server.finished("trial", self.server.run("trial", {"fail": "no"}))["id"]
        self.assertIn("IN_QUEUE", self.table("retry", "trial", failed))
        self.assertEqual(self.server.finished("trial", failed)["retries"], 1)

    def test_refusals(self):
        """Exit code 1 with the server's sentence: unknown endpoint, unknown job, wrong key."""
        self.assertIn("nothing", self.sentence("run", "nothing", "{}", code=REFUSED))
        self.sentence("status", "echo", "nothing", code=REFUSED)
        self.sentence("health", "../echo", code=REFUSED)
        self.sentence("health", "echo", code=REFUSED, JOBQ_KEY="wrong")
        self.sentence("health", "echo", code=REFUSED, JOBQ_KEY=None)

    def test_health(self):
        """api.md, Health object: every counter by its name."""
        text = self.table("health", "echo")
        health = self.json("health", "echo")
        for group, counters in health.items():
            self.assertIn(group, text)
            for name in counters:
                self.assertIn(name, text)
        self.assertEqual(set(health), {"jobs", "workers"})


class UsageTest(CtlTest):
    def test_help(self):
        """`--help` for the program and for each verb, without a server."""
        text = self.table("--help", JOBQ_URL=None)
        for verb, arguments in VERBS.items():
            self.assertIn(f"{verb} {arguments}".strip(), text)
            own = self.table(*verb.split(), "--help", JOBQ_URL=None)
            self.assertTrue(own.startswith(f"usage: jobqctl {verb} {arguments}".strip()), own)
            for option in ("--url", "--key", "--json"):
                self.assertIn(option, own)
        self.assertIn("--scope", self.table("key", "create", "--help"))
        self.assertIn("--wait", self.table("run", "--help"))

    def test_help_of_a_group(self):
        """`GROUP --help` lists the group's verbs alone; `help ...` is `... --help`."""
        text = self.table("template", "--help", JOBQ_URL=None)
        for verb in VERBS:
            (self.assertIn if verb.startswith("template ") else self.assertNotIn)(f"  {verb} ", text)
        self.assertEqual(self.table("help", "template"), text)
        self.assertEqual(self.table("help"), self.table("--help"))
        self.assertEqual(self.table("help", "key", "create"), self.table("key", "create", "--help"))
        self.sentence("help", "bogus", code=USAGE)

    def test_wrong_usage(self):
        """Exit code 2 and one sentence; nothing is sent."""
        cases = [[], ["bogus"], ["key"], ["key", "bogus"], ["keys", "list"], ["key", "create"],
                 ["key", "create", "a", "b"], ["key", "list", "x"], ["key", "revoke"], ["plugin"],
                 ["plugin", "describe"], ["run"], ["run", "echo"],
                 ["run", "echo", "{}", "x"], ["status", "echo"], ["health"], ["key", "list", "--bogus"],
                 ["key", "create", "x", "--scope"], ["key", "list", "--scope", "client"], ["key", "list", "--json=1"],
                 ["run", "echo", "{}", "--wait", "1000"], ["run", "echo", "{}", "--sync", "--wait", "soon"],
                 ["run", "echo", "{}", "--sync", "--wait", ""], ["key", "list", "--url", "ftp://x"],
                 ["key", "list", "--url", ""], ["key", "list", "--url", "127.0.0.1:8000"],
                 ["template"], ["template", "show"], ["endpoint", "show", "a", "b"], ["top", "a", "b"], ["job"],
                 ["release"], ["release", "status", "a", "b"], ["release", "status", "--timeout", "1s"],
                 ["release", "status", "--wait", "--timeout", "soon"], ["release", "status", "--wait=1"],
                 ["job", "list"], ["job", "stream", "echo"], ["webhook", "list"], ["webhook", "replay"], ["purge"],
                 ["key", "list", "--key", "two words"], ["key", "list", "--key", "a\r\nHost: x"]]
        for arguments in cases:
            with self.subTest(arguments):
                self.sentence(*arguments, code=USAGE, JOBQ_URL=NOWHERE)

    def test_options_and_environment(self):
        """JOBQ_URL and JOBQ_KEY, and --url and --key before them, wherever they stand."""
        url, key = self.server.url, self.server.key
        self.table("--url", url, "health", "echo", "--key", key, JOBQ_URL=NOWHERE, JOBQ_KEY="wrong")
        self.table("health", f"--url={url}/", "--json", "echo", JOBQ_URL=None)
        self.table("health", "echo", "--url", url.replace("http", "HTTP", 1), JOBQ_URL=None)

    def test_json_is_the_servers_answer(self):
        """--json is the server's answer byte for byte."""
        job = self.server.run("echo", {"a": 1.5})
        self.server.finished("echo", job)
        answer = self.server.request("GET", f"/v2/echo/status/{job}").body
        self.assertEqual(self.ctl("status", "echo", job, "--json").stdout, answer)


class UnreachableTest(CtlTest):
    def test_nobody_there(self):
        """Exit code 3 when the server cannot be reached, by http, https and by name."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            for scheme in ("http", "https"):
                url = f"{scheme}://127.0.0.1:{port}"
                self.assertIn(url, self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=url))
        self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL="http://host.invalid:8000")

    def test_https_where_http_is_spoken(self):
        """Exit code 3 when there is no TLS on the other side."""
        with socket.create_server(("127.0.0.1", 0)) as plain:
            def answer():
                caller, _ = plain.accept()
                with caller, contextlib.suppress(ConnectionError):
                    caller.recv(1)
                    caller.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    caller.shutdown(socket.SHUT_WR)
                    while caller.recv(65536):
                        pass  # a close with unread bytes would be a reset

            thread = threading.Thread(target=answer)
            thread.start()
            self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=f"https://127.0.0.1:{plain.getsockname()[1]}")
            thread.join()

    def test_another_server(self):
        """Exit code 3 when what answers is not a jobq server, or stops in the middle of its answer."""
        answers = {"a page": (200, b"<html></html>", None), "other JSON": (200, b'"x"', None),
                   "half an answer": (200, b"[]", 100)}
        for name, answer in answers.items():
            with self.subTest(name), _OtherServer(*answer) as url:
                for arguments in (["key", "list"], ["health", "echo"], ["status", "echo", "x"],
                                  ["run", "echo", "{}", "--sync"]):
                    self.sentence(*arguments, code=UNREACHABLE, JOBQ_URL=url)
        for status in (302, 404, 500):
            with self.subTest(status=status), _OtherServer(status, b"<html>") as url:
                self.assertIn(str(status), self.sentence("key", "list", code=REFUSED, JOBQ_URL=url))


class TlsTest(CtlTest):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="jobq-test-"))

    def certificate(self, host):
        """A self-signed certificate and its key in one file."""
        path = os.path.join(self.folder, host)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path, "-out",
                        path + ".pem", "-days", "2", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"],
                       check=True, capture_output=True)
        with open(path, "ab") as both, open(path + ".pem", "rb") as certificate:
            both.write(certificate.read())
        return path

    def test_certificates_are_checked(self):
        """An https server needs a certificate that the system trusts, for the host that was asked for."""
        own, foreign = self.certificate("localhost"), self.certificate("elsewhere.example")
        with _OtherServer(200, b"[]", tls=own) as url:
            url = url.replace("127.0.0.1", "localhost")
            self.assertIn("ID", self.table("key", "list", JOBQ_URL=url, SSL_CERT_FILE=own))
            self.assertIn("certificate", self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=url))
        with _OtherServer(200, b"[]", tls=foreign) as url:
            url = url.replace("127.0.0.1", "localhost")
            self.sentence("key", "list", code=UNREACHABLE, JOBQ_URL=url, SSL_CERT_FILE=foreign)


class _OtherServer:
    """Answers every request with the same bytes."""

    def __init__(self, status, body, length=None, tls=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                self.send_header("Content-Length", str(length or len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *arguments):
                pass

        self.scheme = "https" if tls else "http"
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a caller that rejects the certificate is no fault of this server
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_error):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


if __name__ == "__main__":
    unittest.main()

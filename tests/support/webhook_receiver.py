"""A webhook receiver: an HTTP server on a free port of 127.0.0.1 with a record of every call.

    with WebhookReceiver() as receiver:
        api.run("echo", {}, webhook=receiver.url())
        call = receiver.wait()[0]
        call.is_signed_with(secret)

`answers` maps a path to an answer: a status, or (status, headers, body). The answer at all other paths is 200 and {}.
is_signed_with() goes by the words of the Standard Webhooks alone: HMAC-SHA256, with the decoded part of the secret
after `whsec_`, over "<webhook-id>.<webhook-timestamp>.<body>".
"""

import base64
import hashlib
import hmac
import http.server
import json
import sys
import threading
import time

from jobq_api import join

DEADLINE = 60.0  # seconds: bounds a hang, and judges no pace


class ReceivedCall:
    """A received request."""

    def __init__(self, method, path, headers, body):
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.time = time.time()

    def json(self):
        return json.loads(self.body)

    def is_signed_with(self, secret):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        text = b".".join([self.headers["webhook-id"].encode(), self.headers["webhook-timestamp"].encode(), self.body])
        expected = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
        return any(hmac.compare_digest(expected, given) for given in self.headers["webhook-signature"].split())


class _ReceivingServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """The death of a caller during a call is not a fault of the receiver."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class WebhookReceiver:
    def __init__(self, answers=None):
        self.answers = answers or {}
        self.calls = []
        self._changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = DEADLINE

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver._record(ReceivedCall(self.command, self.path, self.headers, body))
                answer = receiver.answers.get(self.path, 200)
                status, headers, text = answer if isinstance(answer, tuple) else (answer, {}, b"{}")
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text)), "Connection": "close"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_POST

            def log_message(self, *_):
                pass

        self._server = _ReceivingServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def port(self):
        return self._server.server_address[1]

    def url(self, path="/hook", host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def _record(self, call):
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()

    def on(self, path):
        return [call for call in self.calls if call.path == path]

    def wait(self, count=1, path="/hook"):
        """The calls on `path`, once there are so many."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.on(path)) >= count, DEADLINE):
                raise AssertionError(f"{len(self.on(path))} calls on {path} within {DEADLINE:g} s, not {count}")
            return self.on(path)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        join("the end of the receiver", self._thread, deadline=DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

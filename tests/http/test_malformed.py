"""Malformed requests: each is refused with the right status and one sentence, and leaves no trace."""

import pytest

from early_refusal import run_unbroken
from http_case import HttpTest
from jobq_server import Answer

MB = 1024 * 1024

MALFORMED = {
    "nothing": b"",
    "blanks only": b" \r\n\t ",
    "an open brace": b"{",
    "a brace that is not closed": b'{"input":{}',
    "a brace too many": b'{"input":{}}}',
    "text after the object": b'{"input":{}} x',
    "a second object": b'{"input":{}}{"input":{}}',
    "a comma after the last member": b'{"input":{},}',
    "a comma after the last inner member": b'{"input":{"a":1,}}',
    "a comma after the last element": b'{"input":{"a":[1,]}}',
    "a comma before the first element": b'{"input":{"a":[,1]}}',
    "two commas": b'{"input":{"a":[1,,2]}}',
    "a missing comma": b'{"input":{"a":1 "b":2}}',
    "a missing colon": b'{"input" {}}',
    "a member without a value": b'{"input":{"a":}}',
    "a member without a key": b'{"input":{:1}}',
    "single quotes": b"{'input':{}}",
    "keys without quotes": b"{input:{}}",
    "brackets that cross": b'{"input":{"a":[1}]}',
    "NaN": b'{"input":{"a":NaN}}',
    "Infinity": b'{"input":{"a":-Infinity}}',
    "a leading zero": b'{"input":{"a":01}}',
    "a plus sign": b'{"input":{"a":+1}}',
    "no digits after the point": b'{"input":{"a":1.}}',
    "no digits before the point": b'{"input":{"a":.5}}',
    "a hexadecimal number": b'{"input":{"a":0x10}}',
    "an empty exponent": b'{"input":{"a":1e}}',
    "a lone minus": b'{"input":{"a":-}}',
    "a string that does not end": b'{"input":{"a":"text}}',
    "a raw line break in a string": b'{"input":{"a":"x\ny"}}',
    "a raw tab in a string": b'{"input":{"a":"x\ty"}}',
    "a raw NUL in a string": b'{"input":{"a":"x\x00y"}}',
    "an unknown escape": b'{"input":{"a":"\\x41"}}',
    "a \\u with three digits": b'{"input":{"a":"\\u12g4"}}',
    "a \\u with a sign": b'{"input":{"a":"\\u-123"}}',
    "a lone high surrogate": b'{"input":{"a":"\\ud83d"}}',
    "a lone low surrogate": b'{"input":{"a":"\\ude00"}}',
    "surrogates in the wrong order": b'{"input":{"a":"\\ude00\\ud83d"}}',
    "a comment": b'{"input":{} /* note */}',
    "a line comment": b'{"input":{} // note\n}',
    "a word that is cut": b'{"input":{"a":tru}}',
    "a word in capitals": b'{"input":{"a":True}}',
    "two byte-order marks": b'\xef\xbb\xbf\xef\xbb\xbf{"input":{}}',
    "a byte-order mark after a blank": b' \xef\xbb\xbf{"input":{}}',
    "UTF-16": '{"input":{}}'.encode("utf-16"),
    "text after a NUL": b'{"input":{}}\x00{"input":{}}',
    "a NUL at the end": b'{"input":{}}\x00',
    "a form feed as blank": b'{"input":\x0c{}}',
    "a no-break space as blank": b'{"input":\xc2\xa0{}}',
    "a form": b"input=%7B%7D",
    "an array": b'[{"input":{}}]',
    "a string": b'"input"',
    "a number": b"1",
    "null": b"null",
}

BAD_UTF8 = {
    "overlong, 2 bytes": b"\xc0\x80",
    "overlong slash": b"\xc0\xaf",
    "overlong, 3 bytes": b"\xe0\x80\x80",
    "overlong, 4 bytes": b"\xf0\x80\x80\x80",
    "a surrogate": b"\xed\xa0\x80",
    "a surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "a lead byte of 5": b"\xf8\x88\x80\x80\x80",
    "a lone continuation": b"\x80",
    "a cut sequence": b"\xe2\x82",
    "a cut sequence before ASCII": b"\xf0\x9f\x98x",
    "0xff": b"\xff",
    "Latin-1": "\u00e9".encode("latin-1"),
}


class MalformedTest(HttpTest):
    """Every test here ends with the question whether anything was stored."""

    @pytest.fixture(autouse=True)
    def nothing_is_stored(self, question):
        before = self.server.quiet("echo")
        yield
        assert self.server.health("echo")["jobs"] == before, "a refused request left a job behind"

    def raw_answer(self, data, half_close=False):
        answer = self.server.raw(data, half_close)
        head, found, body = answer.partition(b"\r\n\r\n")
        assert found, f"no answer but {answer[:200]!r}"
        lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:])
        headers = {name.strip().title(): value.strip() for name, _, value in fields}
        assert len(body) == int(headers["Content-Length"]), f"more than one answer: {answer!r}"
        return Answer(int(lines[0].split()[1]), headers, body)

    def head(self, *lines, path="/v2/echo/run"):
        return "\r\n".join([f"POST {path} HTTP/1.1", "Host: jobq", f"Authorization: {self.server.key}",
                            "Content-Type: application/json", *lines, "", ""]).encode()


class BodyTest(MalformedTest):
    @pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
    @pytest.mark.parametrize("operation", ["run", "runsync"])
    def test_malformed_json(self, operation, body):
        """core/http/API.md, "Shape": 400 malformed, with one sentence in `error` and never `id` or `status`."""
        self.assert_refused(self.server.request("POST", f"/v2/echo/{operation}", body), 400)

    @pytest.mark.parametrize("tail", [b"", b"}", b"}}}", b"}}\x00", b',"b":\xff}}'])
    def test_malformed_json_after_a_long_valid_part(self, tail):
        """core/http/API.md, "Statuses": 400 malformed, for a fault in any part of the body."""
        long = b'{"input":{"a":"' + b"x" * (2 * MB) + b'"'
        self.assert_refused(self.server.request("POST", "/v2/echo/run", long + tail), 400)

    @pytest.mark.parametrize("text", BAD_UTF8.values(), ids=BAD_UTF8)
    @pytest.mark.parametrize("left, right", [
        (b'{"input":{"a":"x', b'"}}'), (b'{"input":{"', b'":1}}'), (b'{"input":{},"', b'":1}'),
        (b'{"input":{"a":"' + b"y" * 61, b'"}}')], ids=["string", "key", "key of the request", "behind 64 bytes"])
    def test_invalid_utf8(self, left, right, text):
        """core/http/API.md, "JSON": a body other than JSON is 400; JSON is UTF-8, in strings and in keys."""
        self.assert_refused(self.server.request("POST", "/v2/echo/run", left + text + right), 400)

    def test_nesting(self, subtests):
        """core/http/API.md, "JSON": nesting over 512 is 400."""
        for depth in (511, 10_000, 1_000_000):
            for left, right in ((b"[", b"]"), (b'{"a":', b"}")):
                with subtests.test(depth=depth, left=left):
                    body = b'{"input":{"a":' + left * depth + b"1" + right * depth + b"}}"
                    self.assert_refused(self.server.request("POST", "/v2/echo/run", body), 400)
        for depth in (10_000, 1_000_000):
            with subtests.test(depth=depth, closed=False):
                self.assert_refused(self.server.request("POST", "/v2/echo/run", b"[" * depth), 400)


class NestingTest(HttpTest):
    def test_the_deepest_nesting(self):
        """core/http/API.md, "JSON": nesting of 512 is accepted; the request's own object and `input` are two of
        them."""
        body = b'{"input":{"a":' + b"[" * 510 + b"]" * 510 + b"}}"
        job = self.assert_job(self.server.request("POST", "/v2/echo/runsync", body))
        assert job["status"] == "COMPLETED"


class FramingTest(MalformedTest):
    def test_no_length_and_no_chunks(self):
        """core/http/API.md, "Statuses": malformed is 400; for a POST without a length the test also accepts 411, the
        status of HTTP."""
        answer = self.raw_answer(self.head())
        assert answer.status in (400, 411)
        self.assert_refused(answer, answer.status)

    @pytest.mark.parametrize("length", ["abc", "-5", "0x5", "5, 5", "1" * 30, ""])
    def test_a_length_other_than_a_number(self, length):
        """core/http/API.md, "Statuses": malformed is 400."""
        data = self.head(f"Content-Length: {length}") + b'{"input":{}}'
        self.assert_refused(self.raw_answer(data), 400)

    def test_more_length_than_body(self, subtests):
        """core/http/API.md, "Statuses": malformed is 400; a body that ends before its Content-Length is not a body."""
        body = b'{"input":{"a":1}}'
        for length in (len(body) + 1, 1000, 5 * MB):
            with subtests.test(length=length):
                answer = self.raw_answer(self.head(f"Content-Length: {length}") + body, half_close=True)
                self.assert_refused(answer, 400)

    def test_chunks_ending_early(self, subtests):
        """core/http/API.md, "Statuses": malformed is 400; a chunked body without its last chunk is not a body."""
        body = b'{"input":{"a":1}}'
        whole_chunk = b"%x\r\n%s\r\n" % (len(body), body)
        for name, sent in {"no last chunk": whole_chunk, "half a chunk": b"%x\r\n%s" % (len(body) + 10, body),
                           "half a size": whole_chunk + b"0", "no chunk": b""}.items():
            with subtests.test(name):
                answer = self.raw_answer(self.head("Transfer-Encoding: chunked") + sent, half_close=True)
                self.assert_refused(answer, 400)

    def test_invalid_chunk_sizes(self, subtests):
        """A bad chunk gets 400; later bytes are never read as a request."""
        hidden = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\n\r\n"
        for size in (b"xyz", b"-5", b""):
            for rest in (b'{"input":{}}\r\n0\r\n\r\n', hidden):
                with subtests.test(size=size, rest=rest):
                    data = self.head("Transfer-Encoding: chunked") + size + b"\r\n" + rest
                    self.assert_refused(self.raw_answer(data, half_close=True), 400)


class ChunkedTest(HttpTest):
    def test_chunked_bodies_are_accepted(self):
        """core/http/API.md, "Bounds of heads and bodies": only malformed bodies are refused; chunks are a valid way to
        send a body."""
        parts = [b'{"in', b'put":{"a":"', b"x" * 100_000, b'"}}']
        for operation in ("run", "runsync"):
            answer = self.server.request("POST", f"/v2/echo/{operation}", iter(parts),
                                         {"Transfer-Encoding": "chunked"}, chunked=True)
            job = self.assert_job(answer)
            end = self.server.finished("echo", job["id"])
            assert end["output"] == {"a": "x" * 100_000}


class SizeTest(MalformedTest):
    @staticmethod
    def body_of(size):
        head, tail = b'{"input":{"a":"', b'"}}'
        return head + b"x" * (size - len(head) - len(tail)) + tail

    @pytest.mark.parametrize("operation, limit", [("run", 10 * MB), ("runsync", 20 * MB)])
    def test_a_byte_too_many(self, operation, limit):
        """core/http/API.md, "Bounds of heads and bodies": `/run` 10 MB, `/runsync` 20 MB; a larger
        body is 413."""
        answer = self.server.request("POST", f"/v2/echo/{operation}", self.body_of(limit + 1))
        self.assert_refused(answer, 413)

    def test_one_hundred_megabytes(self, subtests):
        """core/http/API.md, "Bounds of heads and bodies": 413 before the body is read to its end, and every client sees
        the status."""
        body = self.body_of(100 * MB)
        for operation in ("run", "runsync"):
            with subtests.test(operation=operation, framing="length"):
                self.assert_refused(self.server.request("POST", f"/v2/echo/{operation}", body), 413)
            with subtests.test(operation=operation, framing="chunks"):
                parts = (body[at:at + 65536] for at in range(0, len(body), 65536))
                answer = self.server.request("POST", f"/v2/echo/{operation}", parts, {"Transfer-Encoding": "chunked"},
                                             chunked=True)
                self.assert_refused(answer, 413)

    def test_one_hundred_megabytes_from_curl(self, subtests, tmp_path):
        """core/http/API.md, "Bounds of heads and bodies": 413, seen by curl with and without `Expect: 100-continue`, by
        length and by chunks."""
        file = tmp_path / "body"
        file.write_bytes(self.body_of(100 * MB))
        self.at_end.callback(file.unlink)
        for extra in ([], ["-H", "Expect:"], ["-H", "Transfer-Encoding: chunked"]):
            with subtests.test(extra=extra):
                done = run_unbroken(
                    ["curl", "-sS", "-w", "\n%{http_code} %{content_type}", "-H", f"Authorization: {self.server.key}",
                     "-H", "Content-Type: application/json", *extra, "--data-binary", f"@{file}",
                     f"{self.server.url}/v2/echo/run"], text=True)
                assert done.returncode == 0, done.stderr
                body, _, end = done.stdout.rpartition("\n")
                code, _, content_type = end.partition(" ")
                self.assert_refused(Answer(int(code), {"Content-Type": content_type}, body), 413)


class LargestBodyTest(HttpTest):
    @pytest.mark.parametrize("operation, size", [("run", 10 * MB), ("runsync", 15 * MB), ("runsync", 20 * MB - 100)])
    def test_the_limits_themselves(self, operation, size):
        """core/http/API.md, "Bounds of heads and bodies": 10 MB on `/run` and 20 MB on `/runsync` are accepted."""
        job = self.assert_job(self.server.request("POST", f"/v2/echo/{operation}", SizeTest.body_of(size)))
        assert self.server.finished("echo", job["id"])["status"] == "COMPLETED"


class AddressTest(MalformedTest):
    BODY = b'{"input":{}}'

    @pytest.mark.parametrize("endpoint", ["nothing", "Echo", "echo2", "a.b", "%2e%2e", "x" * 500])
    @pytest.mark.parametrize("method, operation", [
        ("POST", "run"), ("POST", "runsync"), ("GET", "status/x"), ("POST", "status/x"), ("GET", "status-sync/x"),
        ("GET", "health")])
    def test_unknown_endpoint(self, method, operation, endpoint):
        """core/http/API.md, "Statuses": 404 unknown endpoint id, under every operation."""
        body = self.BODY if method == "POST" else None
        answer = self.server.request(method, f"/v2/{endpoint}/{operation}", body)
        self.assert_refused(answer, 404)

    def test_unknown_path(self, subtests):
        """core/http/API.md, "Shape": 404 unknown path, `error` in the queue API and `message` under `/v1`."""
        for path in ("/docs/", "/v2", "/v2/", "/v2/echo", "/v2/echo/", "/v2/echo/bogus", "/v2/echo/run/x", "/v2/echo/status",
                     "/v2/echo/status/", "/v2/echo/health/x", "/v3/echo/run", "//v2/echo/health", "/healthz/x",
                     "/v2/echo/%72un%2f"):
            with subtests.test(path=path):
                self.assert_refused(self.server.request("GET", path), 404)
                self.assert_refused(self.server.request("POST", path, self.BODY), 404)
        for path in ("/v1", "/v1/", "/v1/bogus", "/v1/plugins/x", "/v1/keys/x/y"):
            with subtests.test(path=path):
                self.assert_refused(self.server.request("GET", path), 404, member="message")
                self.assert_refused(self.server.request("POST", path, self.BODY), 404, member="message")

    def test_wrong_method(self, subtests):
        """core/http/API.md, "Statuses": 405 wrong method with `Allow`."""
        cases = [("/v2/echo/run", "error", "POST", ("GET", "PUT", "DELETE", "PATCH")),
                 ("/v2/echo/runsync", "error", "POST", ("GET", "PUT")),
                 ("/v2/echo/status/x", "error", "GET, POST", ("PUT", "DELETE", "BREW")),
                 ("/v2/echo/status-sync/x", "error", "GET, POST", ("PUT", "DELETE")),
                 ("/v2/echo/health", "error", "GET", ("POST", "DELETE")),
                 ("/healthz", "error", "GET", ("POST", "DELETE")), ("/readyz", "error", "GET", ("POST", "PUT")),
                 ("/v1/keys", "message", "GET, POST", ("PUT", "DELETE", "PATCH")),
                 ("/v1/keys/x", "message", "DELETE", ("GET", "POST", "PUT")),
                 ("/v1/plugins", "message", "GET", ("POST", "DELETE"))]
        for path, member, allowed, methods in cases:
            for method in methods:
                with subtests.test(path=path, method=method):
                    body = self.BODY if method in ("POST", "PUT", "PATCH") else None
                    answer = self.server.request(method, path, body)
                    self.assert_refused(answer, 405, member=member)
                    allow = {word.strip() for word in answer.headers.get("Allow", "").split(",")} - {"HEAD", "OPTIONS"}
                    assert allow == set(allowed.split(", "))


class AuthorizationTest(HttpTest):
    PATH = "/v2/echo/health"

    def ask(self, path, **headers):
        return self.server.request("GET", path, headers=headers, key=None)

    def test_keys_in_every_form(self, subtests):
        """core/http/API.md, "Sending a key": `Bearer <key>`, with `Bearer ` in any case, or the bare key."""
        key = self.server.key
        for value in (key, f"Bearer {key}", f"bearer {key}", f"BEARER {key}"):
            for name in ("Authorization", "authorization", "AUTHORIZATION"):
                with subtests.test(form=value.replace(key, "<key>"), name=name):
                    assert self.ask(self.PATH, **{name: value}).status == 200

    def test_wrong_keys(self, subtests):
        """core/http/API.md, "Order of the checks": an invalid key gives 401 on every route, before any other check of
        the request."""
        key = self.server.key
        wrong = ["", "Bearer", "Bearer ", key[:-1], key + "0", key.swapcase() if key.swapcase() != key else key[::-1],
                 f"Bearer Bearer {key}", f"Basic {key}", f"{key} {key}", "x" * 5000, "'; drop table keys; --", "\u00e9"]
        for value in wrong:
            with subtests.test(form=value[:60].replace(key, "<key>")):
                sentence = self.assert_refused(self.ask(self.PATH, Authorization=value.encode("utf-8")), 401)
                assert key not in sentence

    @pytest.mark.parametrize("method, path, member", [
        ("POST", "/v2/echo/run", "error"), ("POST", "/v2/echo/runsync?wait=1", "error"),
        ("GET", "/v2/echo/status/x", "error"), ("GET", "/v2/nothing/health", "error"),
        ("GET", "/v2/echo/status-sync/x", "error"), ("GET", "/v1/keys", "message"), ("POST", "/v1/keys", "message"),
        ("DELETE", "/v1/keys/x", "message"), ("GET", "/v1/plugins", "message")])
    def test_no_key(self, method, path, member):
        """core/http/API.md, "Order of the checks": 401 without a key; also where the endpoint, the job or the body
        would be wrong too."""
        body = b"not JSON" if method == "POST" else None
        self.assert_refused(self.server.request(method, path, body, key=None), 401, member=member)

    def test_a_large_body_without_a_key(self):
        """core/http/API.md, "Order of the checks": 401 before the body is read, and still readable as a status."""
        body = SizeTest.body_of(9 * MB)
        self.assert_refused(self.server.request("POST", "/v2/echo/run", body, key="wrong"), 401)


class MemoryTest(HttpTest):
    def test_bad_bodies_leave_no_memory_behind(self, own_server):
        """No part of a refused request is stored; memory is flat after 200 large ones."""
        server = own_server()
        faulty = SizeTest.body_of(6 * MB)[:-1]
        too_big = SizeTest.body_of(11 * MB)
        deep = b"[" * (4 * MB)

        def refuse_all(times):
            for _ in range(times):
                assert server.request("POST", "/v2/echo/run", faulty).status == 400
                assert server.request("POST", "/v2/echo/run", too_big).status == 413
                assert server.request("POST", "/v2/echo/run", deep).status == 400
                assert server.request("POST", "/v2/echo/run", faulty, key="wrong").status == 401

        refuse_all(25)  # until every thread's heap has seen the largest body
        before = server.rss()
        # AddressSanitizer's quarantine holds 256 MB of freed bodies; the resident set repeats 19, 8, 31 MB above the start,
        # for as long as the test runs, as other bodies are at the end of the quarantine. A leak raises every later sample:
        # a body of each refusal would be 1,350 MB.
        samples = []
        for _ in range(3):
            refuse_all(50)
            samples.append(server.rss() - before)
        print("growth after 200, 400 and 600 refusals, in MB:", [round(sample / MB, 1) for sample in samples])
        assert min(samples) < 16 * MB
        assert server.health("echo")["jobs"] == {
            "completed": 0, "failed": 0, "inProgress": 0, "inQueue": 0, "retried": 0}

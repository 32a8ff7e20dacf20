"""The bytes of `input` and `output` come back exactly as they were sent, through every storage and both ways in."""

import pytest

from http_case import HttpTest

MB = 1024 * 1024

SMALL = {
    "an empty object": b"{}",
    "key order": b'{"b":1,"a":2,"10":3,"9":4,"":5}',
    "keys that are equal": b'{"a":1,"a":2,"\\u0061":3}',
    "the answer's own keys": b'{"id":"x","status":"FAILED","output":{"output":1},"error":null,"input":{}}',
    "1.0 stays 1.0": b'{"v":[1.0,1.00,1,10e-1,1E0,1e+00]}',
    "minus zero": b'{"v":[-0,0,-0.0,-0e5]}',
    "integers of 25 digits": b'{"v":[1234567890123456789012345,-1234567890123456789012345]}',
    "integers around 2^53 and 2^64": b'{"v":[9007199254740993,18446744073709551616,9223372036854775808]}',
    "numbers beyond a double": b'{"v":[1e400,-1e400,1e-400,0.1e99999]}',
    "a number of 1000 digits": b'{"v":' + b"7" * 1000 + b"." + b"3" * 1000 + b"}",
    "decimals": b'{"v":[0.1,0.10,3.141592653589793238462643383279]}',
    "U+2028 escaped": b'{"v":"\\u2028\\u2029"}',
    "U+2028 raw": '{"v":"\u2028\u2029"}'.encode(),
    "emoji raw": '{"v":"\U0001f600","\U0001f511":1}'.encode(),
    "emoji escaped": b'{"v":"\\ud83d\\ude00\\uD83D\\uDE00"}',
    "escapes that need not be": b'{"v":"\\u0041\\/\\u002f/\\u0022"}',
    "control characters": b'{"v":"\\u0000\\u001f\\b\\f\\n\\r\\t\\u007f\x7f"}',
    "noncharacters": '{"v":"\uffff\ufffe\ufdd0"}'.encode(),
    "combining characters": '{"v":"e\u0301 \u00e9 \u202e"}'.encode(),
    "blanks inside": b'{ "a" :\t[ 1 ,\r\n 2 ] ,\n"b":{ } }',
    "text that looks like JSON": b'{"v":"{\\"input\\":null}"}',
    "nested 100 deep": b'{"v":' + b"[" * 98 + b"{}" + b"]" * 98 + b"}",
    "many keys": b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(5000)) + b"}",
}

LARGE = {
    "one string of 9.9 MB": b'{"v":"' + b"a" * (int(9.9 * MB) - 40) + b'"}',
    "9.9 MB of small numbers": b'{"v":[' + b"1.0," * (int(9.9 * MB) // 4 - 20) + b"-0]}",
    "9.9 MB of raw emoji": b'{"v":"' + "\U0001f600".encode() * (int(9.9 * MB) // 4 - 20) + b'"}',
}


class PayloadTests(HttpTest):
    """One server for the class, because each class tests a storage."""

    __test__ = False  # but its two subclasses are tests
    storage = ""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(storage=cls.storage)

    def assert_output(self, answer, raw):
        """The answer holds `raw` as its output, byte for byte."""
        assert answer.status == 200, answer.body[:500]
        start = answer.body.find(b'"output":')
        assert start > 0, answer.body[:500]
        start += len(b'"output":')
        end = start + len(raw)
        if answer.body[start:end] != raw:
            pytest.fail(f"sent {raw[:300]!r}, came back {answer.body[start:end][:300]!r}")
        assert answer.body[end:end + 1] in (b",", b"}")

    def through_run(self, endpoint, request):
        answer = self.server.request("POST", f"/v2/{endpoint}/run", request)
        assert answer.status == 200, answer.body[:500]
        job = answer.json()["id"]
        assert self.server.finished(endpoint, job)["status"] == "COMPLETED"
        return self.server.request("GET", f"/v2/{endpoint}/status/{job}")

    @pytest.mark.parametrize("raw", SMALL.values(), ids=SMALL)
    def test_small_payloads(self, raw):
        """core/http/API.md, "Job request body": key order, number spelling and escapes come back exactly as they were
        sent."""
        request = b'{"input":' + raw + b"}"
        self.assert_output(self.through_run("echo", request), raw)
        self.assert_output(self.server.request("POST", "/v2/echo/runsync", request), raw)

    def test_blanks_around_the_input_are_not_carried(self):
        """core/http/API.md, "Job request body": the value of `input` is carried, from its first byte to its last."""
        raw = b'{"a": [ ]}'
        request = b' \r\n{ "x" : 1 , "input" \t:\n ' + raw + b' \n, "y" : {} } \n'
        self.assert_output(self.server.request("POST", "/v2/echo/runsync", request), raw)

    def test_an_escaped_input_key(self):
        """core/http/API.md, "Job request body": keys are JSON strings, so "\\u0069nput" is `input`."""
        answer = self.server.request("POST", "/v2/echo/runsync", b'{"\\u0069nput":{"a":1.0}}')
        self.assert_output(answer, b'{"a":1.0}')

    @pytest.mark.parametrize("raw", [
        b"1.0", b"-0", b'"\\u2028"', b"[1e400]", b"null", b"false", b'""', b'{"status":"FAILED"}', b"[ ]"])
    def test_outputs_of_every_kind(self, raw):
        """core/http/API.md, "Job object": `output` is any JSON, shaped by the handler; it keeps its bytes too."""
        request = b'{"input":{"output":' + raw + b"}}"
        self.assert_output(self.server.request("POST", "/v2/trial/runsync", request), raw)
        self.assert_output(self.through_run("trial", request), raw)

    @pytest.mark.parametrize("raw", LARGE.values(), ids=LARGE)
    def test_large_payloads(self, raw):
        """core/http/API.md, "Bounds of heads and bodies": `/run` takes 10 MB and `/runsync` 20 MB; they come back
        whole."""
        request = b'{"input":' + raw + b"}"
        self.assert_output(self.through_run("echo", request), raw)
        self.assert_output(self.server.request("POST", "/v2/echo/runsync", request), raw)

    def test_runsync_of_19_mb(self):
        """core/http/API.md, "Bounds of heads and bodies": `/runsync` maximum payload 20 MB."""
        raw = b'{"v":"' + b"b" * (19 * MB) + b'"}'
        self.assert_output(self.server.request("POST", "/v2/echo/runsync", b'{"input":' + raw + b"}"), raw)


class SqlitePayloadTest(PayloadTests):
    __test__ = True
    storage = "sqlite"

    def test_payloads_survive_a_restart(self):
        """core/http/API.md, "Job object": an acknowledged input is durable byte for byte."""
        raw = SMALL["numbers beyond a double"]
        answer = self.server.request("POST", "/v2/echo/run", b'{"input":' + raw + b"}")
        job = answer.json()["id"]
        self.server.finished("echo", job)
        self.server.restart()
        self.assert_output(self.server.request("GET", f"/v2/echo/status/{job}"), raw)


class MemoryPayloadTest(PayloadTests):
    __test__ = True
    storage = "memory"

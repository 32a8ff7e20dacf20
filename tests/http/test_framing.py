"""Where one request ends and the next begins: attacks on it, each with its answer, and nothing behind it is served."""

import random
import socket
import threading

import pytest

from early_refusal import sending
from http_case import HttpTest
from jobq_server import Answer, join

BODY = b'{"input":{"a":1}}'
CHUNKED = b"11\r\n" + BODY + b"\r\n0\r\n\r\n"


def parse_answers(data, heads=()):
    """All whole answers in `data`, as (status, headers, body); the rest must be nothing.

    `heads`: the numbers of the answers that have no body, as they answer a HEAD.
    """
    answers = []
    while data:
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found:
            raise AssertionError(f"half an answer: {data[:200]!r}")
        lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:])
        headers = {name.strip().title(): value.strip() for name, _, value in fields}
        status = int(lines[0].split()[1])
        length = 0 if status == 100 or len(answers) in heads else int(headers["Content-Length"])
        answers.append(Answer(status, headers, rest[:length]))
        data = rest[length:]
    return answers


class WireTest(HttpTest):
    """Sends bytes, reads until the server closes."""

    def request(self, *fields, line=None, body=b"", host=True):
        line = line or "POST /v2/parked/run HTTP/1.1"
        lines = [line] + (["Host: jobq"] if host else []) + [f"Authorization: {self.server.key}", *fields, "", ""]
        return "\r\n".join(lines).encode("latin-1") + body

    def queued(self):
        return self.server.health("parked")["jobs"]["inQueue"]

    def refuse(self, data, *statuses, hidden=True, half_close=False):
        """The answer is one of `statuses`, the only one, and the last; a request hidden behind is not served.

        Without `half_close` the server has to see the fault itself: no end of the stream helps it.
        """
        before = self.queued()
        behind = self.request(f"Content-Length: {len(BODY)}", body=BODY)
        with socket.create_connection(self.server.address, timeout=60) as plain:
            with sending():
                plain.sendall(data + (behind if hidden else b""))
            if half_close:
                plain.shutdown(socket.SHUT_WR)
            got = b""
            try:
                while part := plain.recv(65536):
                    got += part
            except TimeoutError:
                pytest.fail(f"no end of the answer, which is {got[:400]!r} so far")
        answers = parse_answers(got)
        assert len(answers) == 1, got[:400]
        assert answers[0].status in statuses, got[:400]
        assert answers[0].headers.get("Connection") == "close"
        self.assert_refused(answers[0], answers[0].status)
        assert self.queued() == before, "what followed was taken for a request"
        assert self.server.request("GET", "/healthz", key=None).status == 200

    def talk(self, data, heads=()):
        """Every answer to `data`, which ends with a request that closes."""
        with socket.create_connection(self.server.address, timeout=60) as plain:
            plain.sendall(data)
            got = b""
            while part := plain.recv(65536):
                got += part
        return parse_answers(got, heads)

    LAST = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\nConnection: close\r\n\r\n"


class LengthTest(WireTest):
    @pytest.mark.parametrize("second", [len(BODY), 3, 0])
    def test_two_lengths(self, second):
        """core/decisions/http.md: RFC 9112, 6.3: an ambiguous length is 400, also when both lengths are equal."""
        fields = (f"Content-Length: {len(BODY)}", f"Content-Length: {second}")
        self.refuse(self.request(*fields, body=BODY), 400)

    @pytest.mark.parametrize("length", ["5, 5", "abc", "-5", "+5", "0x5", "", "1" * 25, "5 5", "18446744073709551617"])
    def test_a_length_other_than_a_number(self, length):
        """RFC 9112, 6.3: an invalid Content-Length is 400."""
        self.refuse(self.request(f"Content-Length: {length}", body=BODY), 400)

    def test_length_and_chunks(self):
        """RFC 9112, 6.1: both is an attempt to smuggle."""
        for fields in (("Content-Length: 5", "Transfer-Encoding: chunked"),
                       ("Transfer-Encoding: chunked", "Content-Length: 5")):
            self.refuse(self.request(*fields, body=CHUNKED), 400)

    def test_codings(self, subtests):
        """RFC 9112, 6.1: chunked once and last is 400 otherwise; an unknown coding is 501."""
        for coding, status in (("gzip", 501), ("gzip, chunked", 501), ("identity", 501), ("xchunked", 501),
                               ("chunked, gzip", 400), ("chunked, chunked", 400), ("", 400), (",", 400),
                               ("\"chunked\"", 501), ("chunked;q=1", 501)):
            with subtests.test(coding=coding):
                self.refuse(self.request(f"Transfer-Encoding: {coding}", body=CHUNKED), status)
        self.refuse(self.request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKED), 400)
        self.refuse(self.request("Transfer-Encoding : chunked", body=CHUNKED), 400)
        self.refuse(self.request("Transfer-Encoding: chunked", line="POST /v2/parked/run HTTP/1.0", body=CHUNKED), 400)

    def test_chunked_in_other_words(self):
        """RFC 9110, 5.6.1: list elements may be empty, and codings have no case."""
        for coding in ("Chunked", " , chunked ,", "CHUNKED"):
            answers = self.talk(self.request(f"Transfer-Encoding: {coding}", body=CHUNKED) + self.LAST)
            assert [answer.status for answer in answers] == [200, 200]

    def test_a_body_longer_than_said(self):
        """RFC 9112, 9.3.2: the surplus is the next request."""
        answers = self.talk(self.request(f"Content-Length: {len(BODY)}", body=BODY + b"surplus\r\n\r\n"))
        assert [answer.status for answer in answers] == [200, 400]
        answers = self.talk(self.request(f"Content-Length: {len(BODY)}", body=BODY + self.LAST))
        assert [answer.status for answer in answers] == [200, 200]

    def test_a_body_shorter_than_said(self):
        """core/http/API.md, "Statuses": malformed is 400."""
        self.refuse(self.request("Content-Length: 5000", body=BODY), 400, half_close=True)


class ChunkTest(WireTest):
    def chunked(self, body):
        return self.request("Transfer-Encoding: chunked", body=body)

    @pytest.mark.parametrize("size", [
        b"f" * 16, b"1" + b"0" * 16, b"-1", b"", b"0x5", b"5 ", b" 5", b"5 junk", b"g", b"5\t", b"+5", b"5;name=\x00",
        b"5;" + b"x" * 100_000])
    def test_sizes(self, size):
        """RFC 9112, 7.1: a size is hexadecimal digits, and nothing else."""
        self.refuse(self.chunked(size + b"\r\n" + BODY + b"\r\n0\r\n\r\n"), 400)

    @pytest.mark.parametrize("body", [
        b"11\n" + BODY + b"\r\n0\r\n\r\n", b"11\r\n" + BODY + b"\n0\r\n\r\n", b"11\r" + BODY,
        b"11\r\n" + BODY + b"x\r\n0\r\n\r\n", b"11\r\n" + BODY + b"\r\n0\r\n\n", b"10\r\n" + BODY + b"\r\n"])
    def test_line_ends(self, body):
        """RFC 9112, 7.1: CR LF behind the size and behind the data."""
        self.refuse(self.chunked(body), 400)

    @pytest.mark.parametrize("end", range(1, len(CHUNKED)))
    def test_cut(self, end):
        """A chunked body that ends early is no body."""
        self.refuse(self.chunked(CHUNKED[:end]), 400, hidden=False, half_close=True)

    def test_too_large(self):
        """core/http/API.md, "Bounds of heads and bodies": 413 once the limit is passed."""
        self.refuse(self.chunked(b"d00000\r\n" + b"x" * (13 * 1024 * 1024) + b"\r\n0\r\n\r\n"), 413)

    @pytest.mark.parametrize("size", [b"a00001", b"FFFFFFFF"])
    def test_a_too_large_size(self, size):
        """core/http/API.md, "Bounds of heads and bodies": 413 before the body is read; the announced size is enough, no
        data has to come."""
        self.refuse(self.chunked(size + b"\r\n"), 413, hidden=False)

    def test_extensions_and_trailers_are_dropped(self):
        """RFC 9112, 7.1: extensions and trailers are allowed and without effect, and the connection goes on."""
        for body in (b"11;name=value;x\r\n" + BODY + b"\r\n0;last\r\n\r\n",
                     b"0000011\r\n" + BODY + b"\r\n000\r\nTrailer: a\r\nContent-Length: 99\r\n\r\n"):
            answers = self.talk(self.chunked(body) + self.LAST)
            assert [answer.status for answer in answers] == [200, 200]

    @pytest.mark.parametrize("trailer", [
        b"no colon\r\n", b" folded: x\r\n", b"a: \x00\r\n", b": x\r\n", b"a b: x\r\n", b"a: b\n",
        b"x" * 20_000 + b": y\r\n"])
    def test_bad_trailers(self, trailer):
        """RFC 9112, 7.1.2: trailers are fields."""
        self.refuse(self.chunked(b"11\r\n" + BODY + b"\r\n0\r\n" + trailer + b"\r\n"), 400)


class HeadTest(WireTest):
    @pytest.mark.parametrize("field", [
        " folded", "A: b\r\n folded", "A: b\r\n\tfolded", "A: b\rc", "A: b\nB: c", "A: b\x00c", "A: \x07", "A\x00: b",
        "A : b", ": b", "nocolon", "A(b): c", "A b: c", "\x80: b", "A: \x7f"])
    def test_malformed_fields(self, field):
        """RFC 9112, 5: a field is name, colon, value, on one line."""
        self.refuse(self.request(f"Content-Length: {len(BODY)}", field, body=BODY), 400)

    @pytest.mark.parametrize("field", ["A: b\tc", "A: \xe9", "A:", "A: ", "!#$%&'*+-.^_`|~1a: b"])
    def test_odd_but_allowed(self, field):
        """RFC 9110, 5.5: tabs and bytes above 0x7f may stand in a value."""
        answers = self.talk(self.request(f"Content-Length: {len(BODY)}", field, "Connection: close", body=BODY))
        assert answers[0].status == 200

    def test_sizes(self):
        """core/http/API.md, "Bounds of heads and bodies": 431 head over 200 KiB or 100 fields, 414 target over 128
        KiB."""
        fill = [f"X-{n}: y" for n in range(98)]
        assert self.talk(self.request(*fill[:97], "Connection: close", line="GET /healthz HTTP/1.1"))[0].status == 200
        self.refuse(self.request(*fill, "X: y", line="GET /healthz HTTP/1.1"), 431)
        large = "X: " + "y" * (190 * 1024)
        assert self.talk(self.request(large, "Connection: close", line="GET /healthz HTTP/1.1"))[0].status == 200
        self.refuse(self.request(large, "Z: " + "y" * (12 * 1024), line="GET /healthz HTTP/1.1"), 431)
        self.refuse(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * (210 * 1024), 431, hidden=False)
        path = "/" + "x" * (127 * 1024)
        assert self.talk(self.request("Connection: close", line=f"GET {path} HTTP/1.1"))[0].status == 404
        self.refuse(self.request(line=f"GET {path}{'x' * 2048} HTTP/1.1"), 414)
        self.refuse(b"GET /" + b"x" * (210 * 1024), 414, hidden=False)

    def test_request_lines(self, subtests):
        """RFC 9112, 3: method, target, version, one space between them."""
        for line, status in (("GET /healthz", 400), ("GET /healthz HTTP/1.1x", 400), ("GET /healthz http/1.1", 400),
                             ("GET /healthz HTTP/1", 400), ("GET /healthz HTTP/2.0", 505), ("GET /h HTTP/3.0", 505),
                             ("GET  /healthz HTTP/1.1", 400), ("GET /healthz  HTTP/1.1", 400), ("G(T / HTTP/1.1", 400),
                             (" GET / HTTP/1.1", 400), ("GET / x HTTP/1.1", 400), ("GET healthz HTTP/1.1", 400),
                             ("GET /a\x01 HTTP/1.1", 400), ("GET example.com:80 HTTP/1.1", 400),
                             ("CONNECT example.com:443 HTTP/1.1", 400), ("GET * HTTP/1.1", 400), ("", 400),
                             ("GET ftp://x/ HTTP/1.1", 400), ("GET http:///x HTTP/1.1", 400)):
            with subtests.test(line=line):
                data = self.request(line=line or "\r\n\r\n\r\n")
                self.refuse(data, status)
        self.refuse(b"GET /healthz\r\n", 400, hidden=False)  # HTTP/0.9, and the whole of it
        self.refuse(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
        self.refuse(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400)

    def test_empty_lines_in_front(self):
        """RFC 9112, 2.2: an empty line or two before a request line are skipped, also between two requests."""
        for lines in (b"\r\n", b"\r\n\r\n"):
            answers = self.talk(lines + self.request(f"Content-Length: {len(BODY)}", body=BODY) + lines + self.LAST)
            assert [answer.status for answer in answers] == [200, 200]

    def test_allowed_targets(self, subtests):
        """RFC 9112, 3.2: absolute targets are served as their path; `OPTIONS *` is a ping."""
        for line in ("GET http://anything/healthz HTTP/1.1", "GET HTTPS://a:1/healthz?x=y HTTP/1.1",
                     "GET /healthz#part HTTP/1.1", "GET /%68ealthz HTTP/1.1", "GET /healthz HTTP/1.2",
                     "OPTIONS * HTTP/1.1"):
            with subtests.test(line=line):
                answer = self.talk(self.request("Connection: close", line=line))[0]
                assert answer.status == 200
        assert "GET" in answer.headers["Allow"]

    def test_hosts(self):
        """RFC 9112, 3.2: one Host in HTTP/1.1; HTTP/1.0 needs no Host."""
        self.refuse(self.request(line="GET /healthz HTTP/1.1", host=False), 400)
        self.refuse(self.request("Host: other", line="GET /healthz HTTP/1.1"), 400)
        answers = self.talk(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (answers[0].status, answers[0].headers["Connection"]) == (200, "close")

    def test_expectations(self, subtests):
        """RFC 9110, 10.1.1: 100 comes only when the body is wanted; a 413 is decided before."""
        self.refuse(self.request("Content-Length: 5", "Expect: magic"), 417)
        expects = "Expect: 100-continue"
        self.refuse(self.request("Content-Length: 99999999", expects), 413, hidden=False)
        for line, status in (("POST /nothing HTTP/1.1", 404), ("POST /v2/nothing/run HTTP/1.1", 404),
                             ("POST /healthz HTTP/1.1", 405)):
            for framing in (f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"):
                with subtests.test(line=line, framing=framing):
                    self.refuse(self.request(framing, expects, line=line), status, hidden=False)
        without_key = self.request(f"Content-Length: {len(BODY)}", expects).replace(self.server.key.encode(), b"wrong")
        self.refuse(without_key, 401, hidden=False)
        with socket.create_connection(self.server.address, timeout=60) as plain:
            plain.sendall(self.request(f"Content-Length: {len(BODY)}", expects, "Connection: close"))
            assert plain.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            plain.sendall(BODY)
            assert plain.recv(1000).split()[1] == b"200"


class ConnectionTest(WireTest):
    def test_head_is_get_without_a_body(self, subtests):
        """RFC 9110, 9.3.2: the same status and length, no body, and the connection goes on."""
        job = self.server.run("parked", {})
        for path in ("/healthz", "/readyz", "/v2/parked/health", f"/v2/parked/status/{job}", "/v2/parked/status/none",
                     "/v1/keys", "/v1/plugins", "/nothing"):
            with subtests.test(path=path):
                get, head, _ = self.talk(self.request(line=f"GET {path} HTTP/1.1") +
                                         self.request(line=f"HEAD {path} HTTP/1.1") + self.LAST, heads=(1,))
                assert head.status == get.status
                for name in ("Content-Length", "Content-Type"):
                    assert head.headers[name] == get.headers[name]

    def test_head_where_get_is_not(self):
        """core/http/API.md, "Statuses": 405, and no body behind a HEAD."""
        for path in ("/v2/parked/run", "/v2/parked/runsync"):
            head, last = self.talk(self.request(line=f"HEAD {path} HTTP/1.1") + self.LAST, heads=(0,))
            assert (head.status, last.status) == (405, 200)

    def test_a_client_asks_to_close(self, subtests):
        """RFC 9112, 9.3: close wins; HTTP/1.0 has to ask for keep-alive."""
        get = "GET /healthz HTTP/1.1"
        for fields, line, stays in (((), get, True), (("Connection: close",), get, False),
                                    (("Connection: keep-alive, Close",), get, False),
                                    (("Connection: keep-alive", "Connection: close"), get, False),
                                    (("Connection: x, keep-alive",), "GET /healthz HTTP/1.0", True),
                                    ((), "GET /healthz HTTP/1.0", False)):
            with subtests.test(fields=fields, line=line):
                answers = self.talk(self.request(*fields, line=line) + self.LAST)
                assert len(answers) == (2 if stays else 1)
                assert (answers[0].headers.get("Connection") == "close") == (not stays)

    def test_a_thousand_requests_in_one_stream(self):
        """RFC 9112, 9.3.2: pipelined requests are answered in order, whatever bodies they have."""
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        dice = random.Random(seed)
        self.check(self.mix(dice, 1000))
        # A small refused body is dropped after its arrival and the connection goes on; a refused body still on its way
        # ends the connection. These bodies therefore come in one piece, for one read of the server.
        for _ in range(20):
            self.check(self.mix(dice, 10, refused_bodies=True, size=300))
        requests = self.mix(dice, 60)
        stream = b"".join(data for data, *_ in requests) + self.LAST
        self.check(requests, [stream[i:i + 1] for i in range(len(stream))])
        cuts = [0, *sorted(dice.sample(range(1, len(stream)), 40)), len(stream)]
        self.check(requests, [stream[a:b] for a, b in zip(cuts, cuts[1:])])

    def check(self, requests, pieces=None):
        """Sends the requests of mix(), in `pieces` or in one; each has its own answer, in its turn."""
        heads = {n for n, (data, _, _) in enumerate(requests) if data.startswith(b"HEAD")}
        pieces = pieces or [b"".join(data for data, *_ in requests) + self.LAST]
        answers = self.exchange(pieces, heads)
        assert [a.status for a in answers] == [status for _, status, _ in requests] + [200]
        for answer, (_, _, word) in zip(answers, requests):
            assert word in answer.body

    def mix(self, dice, count, refused_bodies=False, size=3000):
        """Requests as (bytes, status, what the answer's body must hold)."""
        wrong_key = self.server.key.encode(), b"wrong"

        def chunks(body):
            parts = []
            while body:
                step = dice.randrange(1, len(body) + 1)
                parts.append(b"%x\r\n%s\r\n" % (step, body[:step]))
                body = body[step:]
            return b"".join(parts) + b"0\r\n\r\n"

        def one(n):
            body = b'{"input":{"a":"%s"}}' % (b"x" * dice.randrange(size))
            length = f"Content-Length: {len(body)}"
            kinds = [lambda: (self.request(line="GET /healthz HTTP/1.1"), 200, b"alive"),
                     lambda: (self.request(line="HEAD /healthz HTTP/1.1"), 200, b""),
                     lambda: (self.request(length, body=body), 200, b"IN_QUEUE"),
                     lambda: (self.request("Transfer-Encoding: chunked", body=chunks(body)), 200, b"IN_QUEUE"),
                     lambda: (self.request(line=f"GET /v2/parked/status/turn-{n} HTTP/1.1"), 404, b"turn-%d " % n),
                     lambda: (self.request(line="GET /v2/parked/health HTTP/1.1").replace(*wrong_key), 401, b"key"),
                     lambda: (self.request("Content-Length: 3", body=b"{x}"), 400, b"error"),
                     lambda: (self.request("Transfer-Encoding: chunked", line="GET /v2/parked/health HTTP/1.1",
                                           body=chunks(b"x")), 200, b"inQueue")]
            refused = [lambda: (self.request(length, line=f"POST /turn-{n} HTTP/1.1", body=body), 404, b"turn-%d:" % n),
                       lambda: (self.request(length, body=body).replace(*wrong_key), 401, b"key")]
            return dice.choice(kinds + refused if refused_bodies else kinds)()

        return [one(n) for n in range(count)]

    def exchange(self, pieces, heads):
        """Writes on a thread while this one reads, so that neither side's buffers can stop the other."""
        with socket.create_connection(self.server.address, timeout=60) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def write():
                try:
                    for piece in pieces:
                        plain.sendall(piece)
                except OSError:
                    pass  # the server has closed: the answers show it

            writer = threading.Thread(target=write)
            writer.start()
            got = b""
            try:
                while part := plain.recv(1 << 20):
                    got += part
            finally:
                plain.shutdown(socket.SHUT_RDWR)
                join("the writer ends with its connection", writer)
            return parse_answers(got, heads)

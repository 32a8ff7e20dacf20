"""Where one request ends and the next begins: attacks on it, each with its answer, and nothing behind it ever served."""

import os
import random
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import HttpTest, Reply  # noqa: E402

BODY = b'{"input":{"a":1}}'
CHUNKED = b"11\r\n" + BODY + b"\r\n0\r\n\r\n"


def parse_answers(data):
    """All whole answers in `data`, as (status, headers, body); the rest must be nothing."""
    answers = []
    while data:
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found:
            raise AssertionError(f"half an answer: {data[:200]!r}")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().title(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        status = int(lines[0].split()[1])
        length = 0 if status == 100 else int(headers["Content-Length"])
        answers.append(Reply(status, headers, rest[:length]))
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

    def refuse(self, data, *statuses, cut=True):
        """The answer is one of `statuses`, the only one, and the last; a request hidden behind is not served."""
        before = self.queued()
        hidden = self.request(f"Content-Length: {len(BODY)}", body=BODY)
        with socket.create_connection(self.server.address, timeout=15) as plain:
            plain.sendall(data + (hidden if cut else b""))
            plain.shutdown(socket.SHUT_WR)
            got = b""
            while part := plain.recv(65536):
                got += part
        answers = parse_answers(got)
        self.assertEqual(len(answers), 1, got[:400])
        self.assertIn(answers[0].status, statuses, got[:400])
        self.assertEqual(answers[0].headers.get("Connection"), "close")
        self.assert_refused(answers[0], answers[0].status)
        self.assertEqual(self.queued(), before, "what followed was taken for a request")
        self.assertEqual(self.server.request("GET", "/healthz", key=None).status, 200)

    def talk(self, data):
        """Every answer to `data`, which ends with a request that closes."""
        with socket.create_connection(self.server.address, timeout=15) as plain:
            plain.sendall(data)
            got = b""
            while part := plain.recv(65536):
                got += part
        return parse_answers(got)

    LAST = b"GET /healthz HTTP/1.1\r\nHost: jobq\r\nConnection: close\r\n\r\n"


class LengthTest(WireTest):
    def test_two_lengths(self):
        """RFC 9112, 6.3; design.md: what is ambiguous is 400, also when both lengths are equal."""
        for second in (len(BODY), 3, 0):
            with self.subTest(second=second):
                fields = (f"Content-Length: {len(BODY)}", f"Content-Length: {second}")
                self.refuse(self.request(*fields, body=BODY), 400)

    def test_a_length_that_is_no_number(self):
        """RFC 9112, 6.3: an invalid Content-Length is 400."""
        for length in ("5, 5", "abc", "-5", "+5", "0x5", "", "1" * 25, "5 5", "18446744073709551617"):
            with self.subTest(length=length):
                self.refuse(self.request(f"Content-Length: {length}", body=BODY), 400)

    def test_length_and_chunks(self):
        """RFC 9112, 6.1: both is an attempt to smuggle."""
        for fields in (("Content-Length: 5", "Transfer-Encoding: chunked"),
                       ("Transfer-Encoding: chunked", "Content-Length: 5")):
            self.refuse(self.request(*fields, body=CHUNKED), 400)

    def test_codings(self):
        """RFC 9112, 6.1: chunked once and last is 400 otherwise; an unknown coding is 501."""
        for coding, status in (("gzip", 501), ("gzip, chunked", 501), ("identity", 501), ("xchunked", 501),
                               ("chunked, gzip", 400), ("chunked, chunked", 400), ("", 400), (",", 400),
                               ("\"chunked\"", 501), ("chunked;q=1", 501)):
            with self.subTest(coding=coding):
                self.refuse(self.request(f"Transfer-Encoding: {coding}", body=CHUNKED), status)
        self.refuse(self.request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKED), 400)
        self.refuse(self.request("Transfer-Encoding : chunked", body=CHUNKED), 400)
        self.refuse(self.request("Transfer-Encoding: chunked", line="POST /v2/parked/run HTTP/1.0", body=CHUNKED), 400)

    def test_chunked_in_other_words(self):
        """RFC 9110, 5.6.1: list elements may be empty, and codings have no case."""
        for coding in ("Chunked", " , chunked ,", "CHUNKED"):
            answers = self.talk(self.request(f"Transfer-Encoding: {coding}", body=CHUNKED) + self.LAST)
            self.assertEqual([answer.status for answer in answers], [200, 200])

    def test_a_body_longer_than_said(self):
        """RFC 9112, 9.3.2: the surplus is the next request."""
        answers = self.talk(self.request(f"Content-Length: {len(BODY)}", body=BODY + b"surplus\r\n\r\n"))
        self.assertEqual([answer.status for answer in answers], [200, 400])

    def test_a_body_shorter_than_said(self):
        """decisions.md, Answers: malformed is 400."""
        self.refuse(self.request("Content-Length: 5000", body=BODY), 400)


class ChunkTest(WireTest):
    def chunked(self, body):
        return self.request("Transfer-Encoding: chunked", body=body)

    def test_sizes(self):
        """RFC 9112, 7.1: a size is hexadecimal digits, and nothing else."""
        for size in (b"f" * 16, b"1" + b"0" * 16, b"-1", b"", b"0x5", b"5 ", b" 5", b"5 junk", b"g", b"5\t", b"+5",
                     b"5;name=\x00", b"5;" + b"x" * 100_000):
            with self.subTest(size=size[:30]):
                self.refuse(self.chunked(size + b"\r\n" + BODY + b"\r\n0\r\n\r\n"), 400)

    def test_line_ends(self):
        """RFC 9112, 7.1: CR LF behind the size and behind the data."""
        for body in (b"11\n" + BODY + b"\r\n0\r\n\r\n", b"11\r\n" + BODY + b"\n0\r\n\r\n", b"11\r" + BODY,
                     b"11\r\n" + BODY + b"x\r\n0\r\n\r\n", b"11\r\n" + BODY + b"\r\n0\r\n\n", b"10\r\n" + BODY + b"\r\n"):
            with self.subTest(body=body):
                self.refuse(self.chunked(body), 400)

    def test_cut(self):
        """design.md, Threads and connections: a chunked body that ends early is no body."""
        for end in range(1, len(CHUNKED)):
            with self.subTest(end=end):
                self.refuse(self.chunked(CHUNKED[:end]), 400, cut=False)

    def test_too_large(self):
        """decisions.md, Answers: 413 as soon as the limit is passed."""
        self.refuse(self.chunked(b"d00000\r\n" + b"x" * (13 * 1024 * 1024) + b"\r\n0\r\n\r\n"), 413)

    def test_extensions_and_trailers_are_dropped(self):
        """RFC 9112, 7.1: they are allowed, mean nothing here, and the connection goes on."""
        for body in (b"11;name=value;x\r\n" + BODY + b"\r\n0;last\r\n\r\n",
                     b"0000011\r\n" + BODY + b"\r\n000\r\nTrailer: a\r\nContent-Length: 99\r\n\r\n"):
            answers = self.talk(self.chunked(body) + self.LAST)
            self.assertEqual([answer.status for answer in answers], [200, 200])

    def test_bad_trailers(self):
        """RFC 9112, 7.1.2: trailers are fields."""
        for trailer in (b"no colon\r\n", b" folded: x\r\n", b"a: \x00\r\n", b": x\r\n", b"a b: x\r\n", b"a: b\n",
                        b"x" * 20_000 + b": y\r\n"):
            with self.subTest(trailer=trailer[:30]):
                self.refuse(self.chunked(b"11\r\n" + BODY + b"\r\n0\r\n" + trailer + b"\r\n"), 400)


class HeadTest(WireTest):
    def test_malformed_fields(self):
        """RFC 9112, 5: a field is name, colon, value, on one line."""
        for field in (" folded", "A: b\r\n folded", "A: b\r\n\tfolded", "A: b\rc", "A: b\nB: c", "A: b\x00c", "A: \x07",
                      "A\x00: b", "A : b", ": b", "nocolon", "A(b): c", "A b: c", "\x80: b", "A: \x7f"):
            with self.subTest(field=field):
                self.refuse(self.request(f"Content-Length: {len(BODY)}", field, body=BODY), 400)

    def test_odd_but_allowed(self):
        """RFC 9110, 5.5: tabs and bytes above 0x7f may stand in a value."""
        for field in ("A: b\tc", "A: \xe9", "A:", "A: ", "!#$%&'*+-.^_`|~1a: b"):
            with self.subTest(field=field):
                answers = self.talk(self.request(f"Content-Length: {len(BODY)}", field, "Connection: close", body=BODY))
                self.assertEqual(answers[0].status, 200)

    def test_sizes(self):
        """decisions.md, Answers: 431 head over 200 KiB or 100 fields, 414 target over 128 KiB."""
        fill = [f"X-{n}: y" for n in range(98)]
        self.assertEqual(self.talk(self.request(*fill[:97], "Connection: close", line="GET /healthz HTTP/1.1"))[0].status,
                         200)
        self.refuse(self.request(*fill, "X: y", line="GET /healthz HTTP/1.1"), 431)
        large = "X: " + "y" * (190 * 1024)
        self.assertEqual(self.talk(self.request(large, "Connection: close", line="GET /healthz HTTP/1.1"))[0].status, 200)
        self.refuse(self.request(large, "Z: " + "y" * (12 * 1024), line="GET /healthz HTTP/1.1"), 431)
        self.refuse(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * (210 * 1024), 431, cut=False)
        path = "/" + "x" * (127 * 1024)
        self.assertEqual(self.talk(self.request("Connection: close", line=f"GET {path} HTTP/1.1"))[0].status, 404)
        self.refuse(self.request(line=f"GET {path}{'x' * 2048} HTTP/1.1"), 414)
        self.refuse(b"GET /" + b"x" * (210 * 1024), 414, cut=False)

    def test_request_lines(self):
        """RFC 9112, 3: method, target, version, one space between them."""
        for line, status in (("GET /healthz", 400), ("GET /healthz HTTP/1.1x", 400), ("GET /healthz http/1.1", 400),
                             ("GET /healthz HTTP/1", 400), ("GET /healthz HTTP/2.0", 505), ("GET /h HTTP/3.0", 505),
                             ("GET  /healthz HTTP/1.1", 400), ("GET /healthz  HTTP/1.1", 400), ("G(T / HTTP/1.1", 400),
                             (" GET / HTTP/1.1", 400), ("GET / x HTTP/1.1", 400), ("GET healthz HTTP/1.1", 400),
                             ("GET /a\x01 HTTP/1.1", 400), ("GET example.com:80 HTTP/1.1", 400),
                             ("CONNECT example.com:443 HTTP/1.1", 400), ("GET * HTTP/1.1", 400), ("", 400),
                             ("GET ftp://x/ HTTP/1.1", 400), ("GET http:///x HTTP/1.1", 400)):
            with self.subTest(line=line):
                data = self.request(line=line or "\r\n\r\n\r\n")
                self.refuse(data, status)
        self.refuse(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
        self.refuse(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400)

    def test_targets_that_are_allowed(self):
        """RFC 9112, 3.2: absolute targets are served as their path; `OPTIONS *` is a ping."""
        for line in ("GET http://anything/healthz HTTP/1.1", "GET HTTPS://a:1/healthz?x=y HTTP/1.1",
                     "GET /healthz#part HTTP/1.1", "GET /%68ealthz HTTP/1.1", "GET /healthz HTTP/1.2",
                     "OPTIONS * HTTP/1.1"):
            with self.subTest(line=line):
                answer = self.talk(self.request("Connection: close", line=line))[0]
                self.assertEqual(answer.status, 200)
        self.assertIn("GET", answer.headers["Allow"])

    def test_hosts(self):
        """RFC 9112, 3.2: one Host in HTTP/1.1; HTTP/1.0 needs none."""
        self.refuse(self.request(line="GET /healthz HTTP/1.1", host=False), 400)
        self.refuse(self.request("Host: other", line="GET /healthz HTTP/1.1"), 400)
        answers = self.talk(b"GET /healthz HTTP/1.0\r\n\r\n")
        self.assertEqual((answers[0].status, answers[0].headers["Connection"]), (200, "close"))

    def test_expectations(self):
        """RFC 9110, 10.1.1: 100 comes only when the body is wanted; decisions.md: a 413 is decided before it."""
        self.refuse(self.request("Content-Length: 5", "Expect: magic"), 417)
        expects = "Expect: 100-continue"
        self.refuse(self.request("Content-Length: 99999999", expects), 413, cut=False)
        with socket.create_connection(self.server.address, timeout=15) as plain:
            plain.sendall(self.request(f"Content-Length: {len(BODY)}", expects, "Connection: close"))
            self.assertEqual(plain.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n")
            plain.sendall(BODY)
            self.assertEqual(plain.recv(1000).split()[1], b"200")


class ConnectionTest(WireTest):
    def test_head_is_get_without_a_body(self):
        """RFC 9110, 9.3.2."""
        for path in ("/healthz", "/readyz", "/v2/parked/health", "/v2/parked/status/none", "/v1/keys", "/nothing"):
            with self.subTest(path=path), socket.create_connection(self.server.address, timeout=15) as plain:
                plain.sendall(self.request(line=f"HEAD {path} HTTP/1.1") + self.LAST)
                got = b""
                while part := plain.recv(65536):
                    got += part
                first, _, rest = got.partition(b"\r\n\r\n")
                whole = self.server.request("GET", path)
                self.assertEqual(int(first.split()[1]), whole.status)
                self.assertTrue(rest.startswith(b"HTTP/1.1 200"), "a body followed")

    def test_head_where_get_is_not(self):
        """decisions.md, Answers: 405, and no body behind a HEAD."""
        with socket.create_connection(self.server.address, timeout=15) as plain:
            plain.sendall(self.request(line="HEAD /v2/parked/run HTTP/1.1") + self.LAST)
            got = b""
            while part := plain.recv(65536):
                got += part
        head, _, rest = got.partition(b"\r\n\r\n")
        self.assertEqual(int(head.split()[1]), 405)
        self.assertTrue(rest.startswith(b"HTTP/1.1 200"), "a body followed")

    def test_who_wants_to_close(self):
        """RFC 9112, 9.3: close wins; HTTP/1.0 has to ask for keep-alive."""
        get = "GET /healthz HTTP/1.1"
        for fields, line, stays in (((), get, True), (("Connection: close",), get, False),
                                    (("Connection: keep-alive, Close",), get, False),
                                    (("Connection: keep-alive", "Connection: close"), get, False),
                                    (("Connection: x, keep-alive",), "GET /healthz HTTP/1.0", True),
                                    ((), "GET /healthz HTTP/1.0", False)):
            with self.subTest(fields=fields, line=line):
                answers = self.talk(self.request(*fields, line=line) + self.LAST)
                self.assertEqual(len(answers), 2 if stays else 1)
                self.assertEqual(answers[0].headers.get("Connection") == "close", not stays)

    def test_a_thousand_requests_in_one_stream(self):
        """RFC 9112, 9.3.2: pipelined requests are answered in order, whatever bodies they have."""
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        dice = random.Random(seed)
        stream, expected = self.mix(dice, 1000, unread=False)
        self.assertEqual([a.status for a in self.exchange([stream + self.LAST])], expected + [200])
        stream, expected = self.mix(dice, 10)
        self.assertEqual([a.status for a in self.exchange([stream + self.LAST])], expected + [200])
        # A body that is refused unread ends the connection unless it has come already: none of those in pieces.
        stream, expected = self.mix(dice, 60, unread=False)
        stream += self.LAST
        self.assertEqual([a.status for a in self.exchange([stream[i:i + 1] for i in range(len(stream))])],
                         expected + [200])
        cuts = sorted(dice.sample(range(len(stream)), 40)) + [len(stream)]
        pieces = [stream[a:b] for a, b in zip([0] + cuts, cuts)]
        self.assertEqual([a.status for a in self.exchange(pieces)], expected + [200])

    def mix(self, dice, count, unread=True):
        def chunks(body):
            parts = []
            while body:
                size = dice.randrange(1, len(body) + 1)
                parts.append(b"%x\r\n%s\r\n" % (size, body[:size]))
                body = body[size:]
            return b"".join(parts) + b"0\r\n\r\n"

        def one():
            kind = dice.choice((0, 1, 2, 3, 4, 5) if unread else (0, 1, 2, 4, 5))
            body = b'{"input":{"a":"%s"}}' % (b"x" * dice.randrange(3000))
            if kind == 0:
                return self.request(line="GET /healthz HTTP/1.1"), 200
            if kind == 1:
                return self.request(f"Content-Length: {len(body)}", body=body), 200
            if kind == 2:
                return self.request("Transfer-Encoding: chunked", body=chunks(body)), 200
            if kind == 3:
                return self.request(f"Content-Length: {len(body)}", line="POST /nothing HTTP/1.1", body=body), 404
            if kind == 4:
                return self.request("Content-Length: 3", body=b"{x}"), 400
            return self.request("Transfer-Encoding: chunked", line="GET /v2/parked/health HTTP/1.1", body=chunks(b"x")), 200

        requests = [one() for _ in range(count)]
        return b"".join(data for data, _ in requests), [status for _, status in requests]

    def exchange(self, pieces):
        with socket.create_connection(self.server.address, timeout=30) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def write():
                for piece in pieces:
                    plain.sendall(piece)

            writer = threading.Thread(target=write)
            writer.start()
            got = b""
            while part := plain.recv(1 << 20):
                got += part
            writer.join()
            return parse_answers(got)


if __name__ == "__main__":
    unittest.main()

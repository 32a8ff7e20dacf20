"""The balancer and the TCP proxy of the cluster tests work as documented."""

import socket
import threading

import pytest
from node_balancer import Balancer, read_body, read_head
from cluster_traffic import HttpCaller
from jobq_server import until
from reserved_port import ReservedPort
from tcp_proxy import COMMIT, TcpProxy

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class AnsweringNode:
    """Answers each call with the same bytes, and then closes the connection."""

    def __init__(self, name, answer, ready=WHOLE):
        self.name, self.answer, self.ready = name, answer, ready
        self.calls = []
        self.silent_checks = 0  # of the checks to come
        self.ignored_checks = 0
        self.port = ReservedPort()
        self.address = self.port.address
        self._listener = None

    def start(self):
        self._listener = self.port.listen()
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()
        return self

    def _serve(self, listener):
        while True:
            try:
                with listener.accept()[0] as plain:
                    head, rest = read_head(plain)
                    is_check = head.startswith(b"GET /readyz")
                    if not is_check:
                        self.calls.append(head + read_body(plain, head, rest))
                    if is_check and self.silent_checks > 0:
                        self.silent_checks -= 1
                        self.ignored_checks += 1
                        plain.recv(1)  # until the balancer gives up
                        continue
                    plain.sendall(self.ready if is_check else self.answer)
            except OSError:
                return

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self._listener.fileno() >= 0:
            self.stop()
        self.port.close()


@pytest.fixture
def balancer():
    with Balancer() as balancer:
        yield balancer


class BalancerTest:
    def ask(self, balancer):
        caller = HttpCaller(balancer.url, "key")
        try:
            return caller.ask("POST", "/v2/a/run", {"input": {}})
        finally:
            caller.close()

    def test_one_node_after_the_other(self, balancer):
        with AnsweringNode("a", WHOLE) as a, AnsweringNode("b", WHOLE) as b:
            balancer.add(a)
            balancer.add(b)
            balancer.await_ready(a, b)
            assert {self.ask(balancer)[1]["x-node"] for _ in range(2)} == {"a", "b"}

    def test_a_refused_connection_goes_to_another_node(self, balancer):
        with AnsweringNode("a", WHOLE) as a, AnsweringNode("b", WHOLE) as b:
            balancer.add(a)
            balancer.add(b)
            balancer.await_ready(a, b)
            a.stop()
            assert [self.ask(balancer)[0] for _ in range(4)] == [200] * 4
            assert len(b.calls) == 4

    def test_a_sent_call_is_not_repeated(self, balancer):
        with AnsweringNode("a", WHOLE[:-1]) as a, AnsweringNode("b", b"") as b:
            balancer.add(a)
            balancer.add(b)
            balancer.await_ready(a, b)
            assert [self.ask(balancer)[0] for _ in range(2)] == [502, 502]
            assert (len(a.calls), len(b.calls)) == (1, 1)

    def test_an_unready_node_gets_no_calls(self, balancer):
        with AnsweringNode("a", WHOLE, ready=b"HTTP/1.1 503 No\r\n\r\n") as a, AnsweringNode("b", WHOLE) as b:
            balancer.add(a)
            balancer.add(b)
            balancer.await_ready(b)
            assert {self.ask(balancer)[1]["x-node"] for _ in range(3)} == {"b"}
            balancer.take_out(b)
            status, headers, _ = self.ask(balancer)
            assert (status, headers["retry-after"]) == (503, "1")
            balancer.put_back(b)
            assert self.ask(balancer)[0] == 200

    def test_a_node_is_out_after_three_silent_checks(self, balancer):
        with AnsweringNode("a", WHOLE) as a:
            balancer.add(a)
            balancer.await_ready(a)
            a.silent_checks = 2
            until(lambda: a.ignored_checks == 2, "the balancer has seen a silent check, and sent a second one")
            assert self.ask(balancer)[0] == 200
            a.silent_checks = 3  # the next check may be the third in a row
            until(lambda: not balancer.ready_names(), "the node gets no further calls")
            assert a.ignored_checks >= 3


class EchoServer:
    """Sends all received bytes back."""

    def __enter__(self):
        self.port = ReservedPort()
        self.listener = self.port.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        while True:
            try:
                plain = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._echo, args=(plain,), daemon=True).start()

    @staticmethod
    def _echo(plain):
        with plain:
            try:
                while data := plain.recv(65536):
                    plain.sendall(data)
            except OSError:
                return

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.port.close()


@pytest.fixture
def proxy():
    with EchoServer() as server, TcpProxy(server.port.address) as proxy:
        yield proxy


def connected(proxy):
    plain = socket.create_connection(proxy.port.address, timeout=60)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain


def answer_to(plain, data):
    """Sends the data and returns the first bytes of the answer: all bytes if the data is short."""
    plain.sendall(data)
    return plain.recv(len(data))


class ProxyTest:
    def test_bytes_pass(self, proxy):
        with connected(proxy) as plain:
            assert answer_to(plain, b"abc") == b"abc"
            proxy.slice(1)
            plain.sendall(b"abc")
            assert b"".join(plain.recv(1) for _ in range(3)) == b"abc"

    @pytest.mark.parametrize("direction", ("requests", "answers"))
    def test_stalled_bytes_come_after_the_stall(self, proxy, direction):
        with connected(proxy) as plain, connected(proxy) as other:
            assert answer_to(plain, b"abc") == b"abc"
            proxy.stall(direction)
            plain.sendall(b"later")
            plain.setblocking(False)
            with pytest.raises(BlockingIOError):
                plain.recv(5)
            plain.settimeout(60)
            proxy.heal()
            assert plain.recv(5) == b"later"
            assert answer_to(other, b"abc") == b"abc"

    def test_reset(self, proxy):
        with connected(proxy) as plain:
            assert answer_to(plain, b"abc") == b"abc"
            proxy.reset()
            with pytest.raises(ConnectionResetError):
                plain.recv(1)
        with connected(proxy) as plain:
            assert answer_to(plain, b"abc") == b"abc"

    def test_refused(self, proxy):
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            connected(proxy)
        proxy.heal()
        with connected(proxy) as plain:
            assert answer_to(plain, b"abc") == b"abc"

    def test_the_answer_of_a_commit_is_lost(self, proxy):
        proxy.lose_commits(1)
        with connected(proxy) as plain:
            assert answer_to(plain, b"BEGIN") == b"BEGIN"
            plain.sendall(COMMIT)
            with pytest.raises(ConnectionResetError):
                plain.recv(1)
        until(lambda: proxy.commits_lost == 1, "the answer is lost")
        with connected(proxy) as plain:
            assert answer_to(plain, COMMIT) == COMMIT

"""etc/README.md: a start waits for a database that cannot be reached, and ends at once if the database refuses."""

import os

import pytest

import mariadb
from jobq_server import Server, until
from pace import HANG
from reserved_port import ReservedPort

pytestmark = pytest.mark.skipif(not os.path.exists(mariadb.SERVER),
                                reason="the program mariadbd is missing; scripts/setup.sh test installs it")


@pytest.fixture(scope="module")
def database():
    with mariadb.Mariadb() as server:
        yield server


@pytest.fixture
def waiting(database):
    """A server with an open port that was started while its database is down."""
    database.stop()
    port = ReservedPort()
    try:
        with Server(start=False, **database.settings(), server__port=port.number) as server:
            port.close()
            server.url = f"http://127.0.0.1:{port.number}"
            server.launch()
            until(lambda: answers(server) or not server.running, "the port is open", HANG)
            assert server.running, server.log()
            yield server
    finally:
        if not database.running:
            database.start()


def answers(server):
    try:
        return server.request("GET", "/readyz", key=None)
    except OSError:
        return None


def test_the_server_waits_and_then_works(database, waiting):
    ready = waiting.request("GET", "/readyz", key=None)
    assert (ready.status, "Retry-After" in ready.headers) == (503, True)
    assert "waits for its storage" in ready.json()["error"]
    assert waiting.request("GET", "/healthz", key=None).status == 200
    refused = waiting.request("POST", "/v2/echo/run", {"input": {}}, key="none")
    assert refused.status == 503
    assert waiting.request("POST", "/v1/keys", {}, key="none").json()["message"] == ready.json()["error"]
    assert f"be reached at 127.0.0.1:{database.port.number}" in waiting.log()
    database.start()
    until(lambda: waiting._stage(os.path.join(waiting.data, "address")) == "ready", "the server is ready", HANG)
    assert waiting.runsync("echo", {"n": 1})["output"] == {"n": 1}


def test_a_waiting_server_stops_on_request(waiting):
    waiting.stop()


def test_the_wait_ends(database):
    database.stop()
    try:
        with Server(start=False, **database.settings(), storage__wait="1s") as server:
            server.launch()
            assert server.ended() == 1
            last = server.log().splitlines()[-1]
            assert last.startswith("jobqd: the database cannot be reached") and "start the database server" in last
    finally:
        database.start()


def test_a_refusal_with_a_reason_ends_the_start_at_once(database):
    settings = {**database.settings(), "storage.mysql.password": "wrong"}
    with Server(start=False, **settings) as server:
        server.launch()
        assert server.ended() == 1
        assert "correct storage.mysql.user" in server.log().splitlines()[-1]
        assert "storage.wait" not in server.log()

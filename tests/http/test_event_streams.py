"""/stream, /status and /logs as streams of events (core/http/API.md, "Event streams")."""

import json

import pytest

from event_reader import EVENTS, EventReader
from http_case import HttpTest
from jobq_server import until
from lua_case import LuaTest
from process_watch import threads

HANDLERS = {
    "counts": """return function(input, job)
  for i = 1, input.to do job:emit({ n = i }, { left = input.to - i }) job:log('line', i) end return 'done' end""",
    "fails": "return function(input, job) job:emit(1) error('it broke', 0) end",
    "large": "return function(input, job) job:emit(('x'):rep(input.size)) job:progress(1) return ('y'):rep(input.size) end",
    "slow": """return function(input, job)
  job:log('begun') job:progress('begun') job:emit('begun') while not job:stopped() do end return {} end""",
}


class RemoteWorker:
    """A worker that does what the test says, on one connection, whose end would be the loss of its jobs."""

    def __init__(self, server):
        self.server, self.connection = server, server.connect()

    def take_job(self):
        """Takes a job. Its earlier job, if it has not ended, counts as lost."""
        return self.call("GET", "job-take/w1?job_in_progress=0").json()["id"]

    def emit(self, job, output):
        self.call("POST", f"job-stream/w1/{job}", json.dumps({"output": output}))

    def report(self, job, **result):
        self.call("POST", f"job-done/w1/{job}", json.dumps(result))

    def call(self, method, path, body=None):
        answer = self.server.request(method, "/v2/far/" + path, body, connection=self.connection)
        assert answer.status == 200, answer.body
        return answer


class EventTest(LuaTest):
    handlers = HANDLERS
    settings = {"endpoint.far.image": "python:3.11", "endpoint.far.workersMax": 4, "server.drain": "200ms"}

    def read(self, path, **more):
        reader = EventReader(self.server, path, **more)
        self.at_end.callback(reader.close)
        assert reader.answer.status == 200, reader.answer.read()
        return reader

    def worker(self):
        worker = RemoteWorker(self.server)
        self.at_end.callback(worker.connection.close)
        return worker

    def ended(self, endpoint, **job_input):
        return self.job(endpoint, job_input)["id"]

    def running(self, endpoint):
        """A job that has begun."""
        job = self.server.run(endpoint, {})
        until(lambda: self.server.status(endpoint, job).get("output") == "begun", "the job to begin")
        return job

    def cancel(self, endpoint, job):
        assert self.server.request("POST", f"/v2/{endpoint}/cancel/{job}").status == 200


class AnswerTest(EventTest):
    @pytest.mark.parametrize("accept", ["text/event-stream", "Application/JSON;q=0.5 , TEXT/Event-Stream;charset=utf-8"])
    @pytest.mark.parametrize("mount", ["/v2", "/sdk/v2"])
    @pytest.mark.parametrize("method, call", [("GET", "stream"), ("POST", "stream"), ("GET", "status"), ("POST", "status"),
                                              ("GET", "logs")])
    def test_the_head(self, method, call, mount, accept):
        job = self.ended("counts", to=1)
        reader = self.read(f"{mount}/counts/{call}/{job}", method=method, Accept=accept)
        assert reader.answer.headers["Content-Type"] == "text/event-stream"
        assert reader.answer.headers["Cache-Control"] == "no-cache, no-transform"
        assert reader.answer.headers["X-Accel-Buffering"] == "no"
        assert reader.read_rest()

    @pytest.mark.parametrize("lines", [("application/json", "text/event-stream"), ("text/event-stream", "application/json")])
    def test_the_accepted_types_in_two_lines(self, lines):
        """RFC 9110, section 5.3: lines of one name are one list."""
        job = self.ended("counts", to=1)
        connection = self.server.connect()
        connection.putrequest("GET", f"/v2/counts/stream/{job}")
        connection.putheader("Authorization", "Bearer " + self.server.key)
        for line in lines:
            connection.putheader("Accept", line)
        connection.endheaders()
        with connection.getresponse() as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
        connection.close()

    def test_the_end_of_the_connection_is_the_end_for_http_1_0(self):
        """RFC 9112, section 7.1: a client of HTTP/1.0 cannot read chunks, so it reads until the server closes."""
        connection = self.server.connect()
        connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"
        head = {"Authorization": self.server.key, "Connection": "keep-alive", **EVENTS}
        connection.request("GET", f"/v2/counts/stream/{self.ended('counts', to=1)}", headers=head)
        with connection.getresponse() as answer:
            assert "Transfer-Encoding" not in answer.headers
            assert answer.read().endswith(b'event: end\ndata: {"status":"COMPLETED"}\n\n')

    @pytest.mark.parametrize("accept", ["*/*", "text/*", "application/json", "text/event-stream;q=0", "text/event-streams"])
    @pytest.mark.parametrize("call", ["stream", "status", "logs"])
    def test_another_accept_changes_nothing(self, call, accept):
        job = self.ended("counts", to=1)
        path = f"/v2/counts/{call}/{job}" + ("?offset=0" if call == "stream" else "")
        answer = self.server.request("GET", path, headers={"Accept": accept, "Last-Event-ID": "1-0"})
        assert answer.body == self.server.request("GET", path).body
        self.assert_json(answer)

    @pytest.mark.parametrize("call", ["stream", "status", "logs"])
    def test_a_head_request_opens_no_stream(self, call):
        job = self.ended("counts", to=1)
        answer = self.server.request("HEAD", f"/v2/counts/{call}/{job}", headers=EVENTS)
        assert answer.status == 200
        self.assert_json(answer)

    @pytest.mark.parametrize("call, query", [("stream", "offset=x"), ("stream", "wait=1"), ("status", "ttl=-1"),
                                             ("logs", "after=x")])
    def test_refusals(self, call, query):
        job = self.ended("counts", to=1)
        self.assert_refused(self.server.request("GET", f"/v2/counts/{call}/nobody", headers=EVENTS), 404, "no job nobody")
        path = f"/v2/counts/{call}/{job}?{query}"
        self.assert_refused(self.server.request("GET", path, headers=EVENTS), 400, query.partition("=")[0])

    @pytest.mark.parametrize("call", ["stream", "status", "logs"])
    def test_a_place_among_the_waiting_calls(self, call):
        """503 without one. A client that leaves frees its place."""
        server = self.fresh_server({"slow": HANDLERS["slow"]}, endpoint__slow__image="lua/slow", server__waiting=1,
                                   server__drain="200ms")
        path = f"/v2/slow/{call}/{self.running('slow')}"
        reader = self.read(path)
        assert reader.next()
        self.assert_refused(server.request("GET", path, headers=EVENTS), 503, "server.waiting")
        reader.close()

        def has_place():
            other = EventReader(server, path)
            try:
                return other.status == 200 and other.next()
            finally:
                other.close()
        until(has_place, "the place of the client that left")

    @pytest.mark.parametrize("call", ["stream", "status", "logs"])
    def test_the_end_of_the_server(self, call):
        """The answer ends without an event `end`, and the client asks again with Last-Event-ID."""
        self.fresh_server({"slow": HANDLERS["slow"]}, endpoint__slow__image="lua/slow", server__drain="200ms")
        reader = self.read(f"/v2/slow/{call}/{self.running('slow')}")
        assert reader.next()
        self.server.terminate()
        assert not [event for event in reader.read_rest() if event[0] == "end"]

    @pytest.mark.parametrize("call", ["stream", "status", "logs"])
    def test_a_removed_job(self, call):
        """Behind the end of a purged job a repeated call is 404."""
        job = self.server.run("parked", {})
        reader = self.read(f"/v2/parked/{call}/{job}")
        self.server.request("POST", "/v2/parked/purge-queue")
        assert all(name == "status" for name, _, _ in reader.read_rest())

    @pytest.mark.reactor("streams without threads")
    def test_many_streams_need_few_threads(self):
        server = self.fresh_server({"slow": HANDLERS["slow"]}, endpoint__slow__image="lua/slow")
        job = self.running("slow")
        readers = [self.read(f"/v2/slow/{call}/{job}") for _ in range(40) for call in ("stream", "status", "logs")]
        assert all(reader.next() for reader in readers)
        until(lambda: threads(server.process.pid) < 64, "the threads to end")
        self.cancel("slow", job)
        assert all(reader.read_rest() for reader in readers), "each tells of the end"


class ChunkEventTest(EventTest):
    def test_chunks_and_the_end(self):
        path = f"/v2/counts/stream/{self.ended('counts', to=2)}"
        chunks = [("message", "1-0", {"output": {"n": 1}, "metrics": {"left": 1}}),
                  ("message", "1-1", {"output": {"n": 2}, "metrics": {"left": 0}})]
        expected = [*chunks, ("end", None, {"status": "COMPLETED"})]
        assert self.read(path).read_rest() == expected
        assert self.read(path).read_rest() == expected, "a stream of events takes no chunk from other readers"
        assert self.server.request("GET", path).json() == [value for _, _, value in chunks]

    def test_the_end_of_a_failed_job(self):
        events = self.read(f"/v2/fails/stream/{self.ended('fails')}").read_rest()
        assert events == [("message", "1-0", {"output": 1}), ("end", None, {"status": "FAILED", "error": "it broke"})]

    @pytest.mark.parametrize("last, query, first", [("1-0", "", 1), ("1-4", "", 5), ("1-2", "?offset=1", 3), ("x", "", 0),
                                                    ("1-" + "9" * 15, "", 0), ("1-5", "", 0), ("0-0", "", 0), ("2-0", "", 0),
                                                    ("99999999999-1", "", 0), ("", "?offset=4", 4)])
    def test_last_event_id(self, last, query, first):
        """The stream goes on behind the chunk; an id that no chunk has had counts as none."""
        job = self.ended("counts", to=5)
        events = self.read(f"/v2/counts/stream/{job}{query}", Last_Event_ID=last).read_rest()
        assert [number for _, number, _ in events] == [f"1-{n}" for n in range(first, 5)] + [None]

    def test_two_readers_both_have_each_chunk_at_once(self):
        worker = self.worker()
        job = self.server.run("far", {})
        readers = [self.read(f"/v2/far/stream/{job}") for _ in range(2)]
        assert worker.take_job() == job
        for number in range(3):
            worker.emit(job, number)
            for reader in readers:
                assert reader.next() == ("message", f"1-{number}", {"output": number})
        worker.report(job, output="all")
        assert [reader.read_rest() for reader in readers] == [[("end", None, {"status": "COMPLETED"})]] * 2

    def test_another_attempt(self):
        """`restart` tells that the chunks so far are void; the stream begins anew, also behind Last-Event-ID."""
        worker = self.worker()
        job = self.server.run("far", {})
        worker.take_job()
        worker.emit(job, "old")
        reader = self.read(f"/v2/far/stream/{job}")
        assert reader.next() == ("message", "1-0", {"output": "old"})
        assert worker.take_job() == job
        assert reader.next()[:2] == ("restart", None)
        worker.emit(job, "new")
        name, number, value = reader.next()
        assert (name, value) == ("message", {"output": "new"})
        assert number.split("-") > ["1", "0"] and number.endswith("-0")
        worker.report(job, output=1)
        assert reader.read_rest() == [("end", None, {"status": "COMPLETED"})]
        again = self.read(f"/v2/far/stream/{job}", Last_Event_ID="1-0").read_rest()
        assert again == [("restart", None, {"status": "COMPLETED"}), ("message", number, value),
                         ("end", None, {"status": "COMPLETED"})]

    def test_line_ends_of_the_handler(self):
        """Line ends begin further data lines, and the value stays the same."""
        worker = self.worker()
        job = self.server.run("far", {})
        worker.take_job()
        worker.call("POST", f"job-stream/w1/{job}", '{"output":{"a":\n1,\r\n"b":\r2}}')
        worker.report(job, output=1)
        reader = self.read(f"/v2/far/stream/{job}")
        assert [reader.answer.readline() for _ in range(5)] == [
            b"id: 1-0\n", b'data: {"output":{"a":\n', b"data: 1,\n", b'data: "b":\n', b"data: 2}}\n"]

    def test_a_large_chunk(self):
        job = self.ended("large", size=3_000_000)
        events = self.read(f"/v2/large/stream/{job}").read_rest()
        assert len("".join(value["output"] for name, _, value in events if name == "message")) == 3_000_000

    def test_a_reader_of_much(self):
        """More chunks than one part of the answer has."""
        job = self.ended("counts", to=5_000)
        numbers = [number for _, number, _ in self.read(f"/v2/counts/stream/{job}").read_rest()]
        assert numbers == [f"1-{n}" for n in range(5_000)] + [None]


class StatusEventTest(EventTest):
    def test_each_change(self):
        worker = self.worker()
        job = self.server.run("far", {})
        reader = self.read(f"/v2/far/status/{job}")
        name, _, value = reader.next()
        assert (name, value["id"], value["status"], value["queuePosition"]) == ("status", job, "IN_QUEUE", 1)
        worker.take_job()
        name, number, value = reader.next()
        assert (name, value["status"], "output" in value) == ("status", "IN_PROGRESS", False)
        for progress in ("a", "b"):
            worker.report(job, status="IN_PROGRESS", output=progress)
            name, changed, value = reader.next()
            assert (name, value["output"]) == ("status", progress)
            assert changed != number
            number = changed
        worker.report(job, output="all")
        (name, _, value), = reader.read_rest()
        assert (name, value) == ("status", self.server.status("far", job))

    def test_last_event_id(self):
        """A known object is not sent again, except the last one."""
        job = self.running("slow")
        known = self.read(f"/v2/slow/status/{job}").next()[1]
        assert self.read(f"/v2/slow/status/{job}", Last_Event_ID="another").next()[1] == known
        reader = self.read(f"/v2/slow/status/{job}", Last_Event_ID=known)
        self.cancel("slow", job)
        (_, last, value), = reader.read_rest()
        assert value["status"] == "CANCELLED"
        assert [event[1] for event in self.read(f"/v2/slow/status/{job}", Last_Event_ID=last).read_rest()] == [last]

    def test_a_large_output(self):
        """The output leaves in several parts."""
        job = self.ended("large", size=5_000_000)
        (_, _, value), = self.read(f"/v2/large/status/{job}").read_rest()
        assert value["output"] == "y" * 5_000_000

    def test_ttl(self):
        job = self.ended("counts", to=1)
        assert self.read(f"/v2/counts/status/{job}?ttl=1000").read_rest()
        until(lambda: self.server.request("GET", f"/v2/counts/status/{job}").status == 404, "the job to expire")


class LogEventTest(EventTest):
    def test_lines_and_the_end(self):
        """In the shape of /logs; an id is the `next` behind its line."""
        job = self.ended("counts", to=3)
        page = self.server.request("GET", f"/v2/counts/logs/{job}").json()
        *lines, end = self.read(f"/v2/counts/logs/{job}").read_rest()
        assert [value for _, _, value in lines] == page["lines"]
        assert lines[-1][1] == page["next"]
        assert end == ("end", None, {"status": "COMPLETED"})

    def test_last_event_id(self):
        path = f"/v2/counts/logs/{self.ended('counts', to=3)}"
        events = self.read(path).read_rest()
        assert self.read(path, Last_Event_ID=events[1][1]).read_rest() == events[2:]
        assert self.read(path + "?after=" + events[0][1]).read_rest() == events[1:]
        assert self.read(path + "?after=" + events[0][1], Last_Event_ID=events[1][1]).read_rest() == events[2:]
        assert self.read(path, Last_Event_ID="x").read_rest() == events

    def test_a_running_job(self):
        job = self.running("slow")
        reader = self.read(f"/v2/slow/logs/{job}")
        assert reader.next()[2]["text"] == "begun"
        self.cancel("slow", job)
        assert reader.read_rest() == [("end", None, {"status": "CANCELLED"})]

    def test_many_lines(self):
        """More than one part of the answer has."""
        job = self.ended("counts", to=1_000)
        *lines, _ = self.read(f"/v2/counts/logs/{job}").read_rest()
        assert [value["text"] for _, _, value in lines] == [f"line\t{n}" for n in range(1, 1_001)]


class ServerTest(HttpTest):
    def test_a_key_in_the_query_is_ignored(self):
        for name in ("key", "api_key", "access_token", "authorization"):
            answer = self.server.request("GET", f"/v2/echo/stream/nobody?{name}={self.server.key}", key=None, headers=EVENTS)
            self.assert_refused(answer, 401)

    def test_a_stream_counts_once(self, own_server):
        server = own_server(limits__enabled="true", limits__stream__requests=2, limits__stream__perWorker=0,
                            storage="memory")
        job = server.runsync("echo", {})["id"]
        path = f"/v2/echo/stream/{job}"
        for left in ("1", "0"):
            reader = EventReader(server, path)
            assert reader.answer.headers["RateLimit-Remaining"] == left
            assert reader.read_rest()
        self.assert_refused(server.request("GET", path, headers=EVENTS), 429, "the limit of stream")

    def test_a_page_of_another_origin(self, own_server):
        """core/http/API.md, "Browsers": with server.cors.origins a page may read the events, and send Last-Event-ID."""
        origin = "https://app.example.com"
        server = own_server(server__cors__origins=origin, storage="memory")
        path = f"/v2/echo/stream/{server.runsync('echo', {})['id']}"
        preflight = server.request("OPTIONS", path, key=None, headers={
            "Origin": origin, "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "authorization,cache-control,last-event-id"})
        assert preflight.status == 204
        assert preflight.headers["Access-Control-Allow-Headers"] == "authorization,cache-control,last-event-id"
        reader = EventReader(server, path, Origin=origin)
        assert reader.answer.headers["Access-Control-Allow-Origin"] == origin
        assert reader.read_rest() == [("end", None, {"status": "COMPLETED"})]

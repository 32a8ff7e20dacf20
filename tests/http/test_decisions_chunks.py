"""core/http/API.md, "Reading a stream": chunks are handed out once, in order, in bounded answers, by attempt."""

import json
import re
import threading
import time

import pytest

from held_jobs import held_server
from http_case import HttpTest
from jobq_server import join, until
from pace import judge_pace

MB = 1024 * 1024
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")


@pytest.mark.endpoints("echo", "trial", "parked")
class ChunkTest(HttpTest):
    def stream(self, job, query="", endpoint="trial", mount="/v2"):
        answer = self.server.request("GET", f"{mount}/{endpoint}/stream/{job}{query}")
        return self.assert_job(answer), answer.headers["X-Job-Status"], answer

    def take_all(self, job, query="?wait=20000"):
        """All chunks as a client of the public SDKs takes them: until an answer with a final state."""
        taken, answers = [], []

        def ends():
            chunks, state, answer = self.stream(job, query)
            taken.extend(chunks)
            answers.append((len(answer.body), state, len(chunks)))
            return state in TERMINAL
        until(ends, f"the stream of {job} has a final state")
        return taken, answers

    @staticmethod
    def numbers(chunks):
        return [chunk["output"]["chunk"] for chunk in chunks]


class OnceTest(ChunkTest):
    def test_handed_out_once(self):
        """core/http/API.md, "Reading a stream": chunks are handed out once per job, in order; then a final state comes
        with none."""
        job = self.server.runsync("trial", {"chunks": 5})["id"]
        chunks, state, _ = self.stream(job)
        assert (self.numbers(chunks), state) == ([0, 1, 2, 3, 4], "COMPLETED")
        for _ in range(2):
            assert self.stream(job)[:2] == ([], "COMPLETED")

    def test_while_the_job_runs(self, own_server):
        """core/http/API.md, "Reading a stream": in order while they come; a final state is reported only with the last
        chunks."""
        self.server, held = held_server(self.at_end, own_server)
        job = self.server.run("trial", {"chunks": 6, "hold": True})
        for n in range(3):
            held.allow(n + 1)
            chunks, state, _ = self.stream(job, "?wait=60000")
            assert (self.numbers(chunks), state) == ([n], "IN_PROGRESS"), "each was seen while the job ran"
        held.release()
        taken, answers = self.take_all(job)
        assert self.numbers(taken) == [3, 4, 5]
        for _, state, count in answers[:-1]:
            assert state == "IN_PROGRESS"
            assert count > 0, "a stream that is waited for answers when there is something"
        assert self.stream(job)[:2] == ([], "COMPLETED")

    def test_many_readers(self):
        """core/http/API.md, "Reading a stream": handed out once per job: four readers get each chunk once in all."""
        job = self.server.run("trial", {"chunks": 200, "chunkMs": 2})
        parts = [[] for _ in range(4)]

        def read(part):
            part.extend(self.take_all(job)[0])

        readers = [threading.Thread(target=read, args=(part,)) for part in parts]
        for reader in readers:
            reader.start()
        join("four readers have read the stream to its end", *readers)
        for part in parts:
            assert self.numbers(part) == sorted(self.numbers(part))
        assert sorted(number for part in parts for number in self.numbers(part)) == list(range(200))

    def test_both_mounts_hand_out_the_same_stream(self):
        """core/http/API.md, "Reading a stream" and "The two mounts": a chunk handed out on one mount does not come
        again on the other."""
        job = self.server.runsync("trial", {"chunks": 2})["id"]
        assert self.numbers(self.stream(job, mount="/sdk/v2")[0]["stream"]) == [0, 1]
        assert self.stream(job)[:2] == ([], "COMPLETED")

    def test_chunks_survive_a_restart(self, own_server):
        """core/http/API.md, "Reading a stream": handed out once per job: the place is kept in storage, as the chunks
        are."""
        server = self.server = own_server()
        job = server.runsync("trial", {"chunks": 3})["id"]
        other = server.runsync("trial", {"chunks": 2})["id"]
        assert len(self.stream(other)[0]) == 2
        server.kill()
        server.start()
        assert self.stream(other)[:2] == ([], "COMPLETED")
        assert self.numbers(self.stream(job)[0]) == [0, 1, 2]

    def test_output_is_the_result_of_the_handler(self):
        """core/http/API.md, "Reading a stream": `/status.output` is the handler's return value, with or without
        chunks."""
        job = self.server.runsync("trial", {"chunks": 2, "output": {"result": 1}})
        assert job["output"] == {"result": 1}
        self.stream(job["id"])
        assert self.server.status("trial", job["id"])["output"] == {"result": 1}


class BoundsTest(ChunkTest):
    def test_eight_megabytes_an_answer(self):
        """core/http/API.md, "Reading a stream": one answer carries at most 8 MB of chunks; a final state comes only
        with the last chunks."""
        job = self.server.runsync("trial", {"chunks": 20, "chunkBytes": 900_000, "output": 1})["id"]
        taken, answers = self.take_all(job)
        assert self.numbers(taken) == list(range(20))
        assert len(answers) >= 3
        for size, _, _ in answers:
            assert size <= 8 * MB + 4096
        for size, state, _ in answers[:-1]:
            assert state == "IN_PROGRESS", "IN_PROGRESS until the last chunk"
            assert size > 6 * MB, "an answer takes as many as there is room for"
        assert answers[-1][1] == "COMPLETED"

    def test_an_object_over_a_megabyte(self):
        """core/http/API.md, "Stream chunk": an object over 1 MB becomes several string chunks of its text, marked
        "partial":true."""
        size = 5 * MB // 2
        job = self.server.runsync("trial", {"chunks": 2, "chunkBytes": size, "output": 1})["id"]
        chunks = self.stream(job)[0]
        for chunk in chunks:
            assert chunk["partial"] is True
            assert len(chunk["output"].encode()) <= MB
        text = "".join(chunk["output"] for chunk in chunks)
        assert text == "".join(f'{{"chunk":{n},"data":"{"x" * size}"}}' for n in range(2))

    def test_256_megabytes_a_job(self, own_server):
        """core/http/API.md, "Stream chunk": a job's chunks may total 256 MB, beyond that it is FAILED."""
        server = own_server(storage="memory")
        job = server.runsync("trial", {"chunks": 250, "chunkBytes": MB - 100, "output": 1})
        assert job["status"] == "COMPLETED"
        server.request("GET", f"/v2/trial/status/{job['id']}?ttl=1000")
        job = server.runsync("trial", {"chunks": 258, "chunkBytes": MB - 100, "output": 1})
        assert job["status"] == "FAILED"
        assert re.search(r"256", job["error"])


class HoldTest(ChunkTest):
    def test_an_empty_stream_is_held(self):
        """core/http/API.md, "Reading a stream": an empty stream is held up to `wait`, and no longer."""
        job = self.server.run("parked", {})
        started = time.monotonic()
        chunks, state, answer = self.stream(job, "?wait=1000", "parked")
        waited = time.monotonic() - started
        assert (chunks, state) == ([], "IN_QUEUE")
        assert waited >= 0.95
        judge_pace("/stream?wait=1000 without a chunk", waited, 4)
        assert "X-Job-Attempt" in answer.headers

    def test_a_chunk_ends_the_wait(self):
        """core/http/API.md, "Reading a stream": only an empty stream is held: the first chunk is answered when it
        comes."""
        job = self.server.run("trial", {"chunks": 1, "chunkMs": 300, "sleepMs": 1})
        chunks = self.stream(job, "?wait=300000")[0]  # longer than its client waits
        assert self.numbers(chunks) == [0]

    def test_the_end_ends_the_wait(self, subtests):
        """core/http/API.md, "Reading a stream": a final state is reported, with no chunks where there are none, and
        without waiting."""
        for job_input, end in (({"sleepMs": 200}, "COMPLETED"), ({"sleepMs": 200, "fail": "no"}, "FAILED")):
            with subtests.test(end):
                job = self.server.run("trial", job_input)
                assert self.stream(job, "?wait=300000")[:2] == ([], end)  # longer than its client waits
        job = self.server.run("parked", {})
        answers = []
        reader = threading.Thread(target=lambda: answers.append(self.stream(job, "?wait=300000", "parked")))
        reader.start()
        self.server.request("POST", f"/v2/parked/cancel/{job}")
        join("the reader of the cancelled job is answered", reader)
        assert answers[0][:2] == ([], "CANCELLED")

    def test_bounds_of_wait(self, subtests):
        """core/http/API.md, "Reading a stream": `wait` has the bounds of /runsync: 1000..300000, an integer, else
        400."""
        job = self.server.runsync("trial", {"chunks": 1})["id"]
        for wait in ("999", "300001", "0", "-1000", "abc", "1.5", "", "1e4"):
            with subtests.test(wait=wait):
                answer = self.server.request("GET", f"/v2/trial/stream/{job}?wait={wait}")
                self.assert_refused(answer, 400, "wait", "1000", "300000")
        assert len(self.stream(job, "?wait=300000")[0]) == 1, "a refused call has taken nothing"


class OffsetTest(ChunkTest):
    def test_reading_again(self):
        """core/http/API.md, "Reading a stream": `?offset=n` re-reads from chunk n without consuming, any number of
        times."""
        job = self.server.runsync("trial", {"chunks": 5})["id"]
        for _ in range(2):
            for offset in (0, 2, 4):
                assert self.numbers(self.stream(job, f"?offset={offset}")[0]) == list(range(offset, 5))
        assert self.numbers(self.stream(job)[0]) == [0, 1, 2, 3, 4], "nothing was consumed"
        assert self.stream(job)[0] == []
        assert self.numbers(self.stream(job, "?offset=3")[0]) == [3, 4], "what was handed out can be read"
        for offset in (5, 1000, 10**12):
            assert self.stream(job, f"?offset={offset}")[:2] == ([], "COMPLETED")

    def test_while_the_job_runs(self):
        """core/http/API.md, "Reading a stream": a reader with an offset of its own follows a job that runs, and takes
        nothing away."""
        job = self.server.run("trial", {"chunks": 5, "chunkMs": 60})
        read = []

        def ends():
            chunks, state, _ = self.stream(job, f"?offset={len(read)}&wait=20000")
            read.extend(chunks)
            return state in TERMINAL
        until(ends, f"the stream of {job} has a final state")
        assert self.numbers(read) == list(range(5))
        assert self.numbers(self.take_all(job)[0]) == list(range(5))

    def test_eight_megabytes_here_too(self):
        """core/http/API.md, "Reading a stream": an answer carries at most 8 MB of chunks, chunks read again
        included."""
        job = self.server.runsync("trial", {"chunks": 12, "chunkBytes": 900_000, "output": 1})["id"]
        first, state, answer = self.stream(job, "?offset=0")
        assert len(answer.body) <= 8 * MB + 4096
        assert state not in TERMINAL
        rest, state, _ = self.stream(job, f"?offset={len(first)}")
        assert (self.numbers(first + rest), state) == (list(range(12)), "COMPLETED")

    def test_wrong_offsets(self, subtests):
        """core/http/API.md, "Statuses": 400 malformed parameters."""
        job = self.server.runsync("echo", {})["id"]
        for offset in ("-1", "abc", "1.5", "", "0x1", "+1"):
            with subtests.test(offset=offset):
                self.assert_refused(self.server.request("GET", f"/v2/echo/stream/{job}?offset={offset}"), 400, "offset")


class AttemptTest(ChunkTest):
    def test_a_retried_job_streams_anew(self):
        """core/http/API.md, "Reading a stream": retry resets chunks; answers carry X-Job-Attempt, and the attempt only
        grows."""
        job = self.server.runsync("trial", {"chunks": 2, "fail": "no"})["id"]
        chunks, state, answer = self.stream(job)
        assert (self.numbers(chunks), state) == ([0, 1], "FAILED")
        attempt = int(answer.headers["X-Job-Attempt"])
        assert attempt >= 1
        self.server.request("POST", f"/v2/trial/retry/{job}")
        self.server.finished("trial", job)
        chunks, state, answer = self.stream(job)
        assert (self.numbers(chunks), state) == ([0, 1], "FAILED")
        assert int(answer.headers["X-Job-Attempt"]) > attempt
        assert self.numbers(self.stream(job, "?offset=0")[0]) == [0, 1], "those of the first attempt are gone"

    def test_a_lost_worker(self, own_server):
        """core/http/API.md, "Reading a stream": a job that goes back into the queue starts its stream again."""
        server, held = held_server(self.at_end, own_server, endpoint__trial__workersMax=1)
        self.server = server
        job = server.run("trial", {"chunks": 4})
        held.allow(1)
        chunks, _, answer = self.stream(job, "?wait=60000")
        assert self.numbers(chunks) == [0]
        attempt = int(answer.headers["X-Job-Attempt"])
        server.kill()
        server.start()
        held.release()
        taken = self.take_all(job)[0]
        assert self.numbers(taken) == [0, 1, 2, 3]
        assert int(self.stream(job)[2].headers["X-Job-Attempt"]) > attempt

    def test_a_cancelled_job_keeps_the_sent_chunks(self):
        """core/http/API.md, "Reading a stream": a final state comes with the last chunks, sent before the cancel."""
        job = self.server.run("trial", {"chunks": 100_000, "chunkMs": 50})
        until(lambda: len(self.stream(job, "?offset=0&wait=1000")[0]) >= 2, "two chunks were sent")
        self.assert_job(self.server.request("POST", f"/v2/trial/cancel/{job}"))
        taken, answers = self.take_all(job)
        assert self.numbers(taken) == list(range(len(taken)))
        assert len(taken) >= 2
        assert answers[-1][1] == "CANCELLED"
        assert json.loads(self.server.request("GET", f"/sdk/v2/trial/stream/{job}").body) == {
            "status": "CANCELLED", "stream": []}

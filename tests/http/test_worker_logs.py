"""GET /v1/endpoints/{id}/workers/{worker}/logs and `jobqctl worker logs`: the output of launched workers, as described in
core/http/API.md, "Output of launched workers"."""

import contextlib
import json

import pytest

from event_reader import EventReader
from jobq_server import until
from jobqctl_case import REFUSED, JobqctlTest
from management_api import ManagementTest
from pace import HANG

# Prints two lines, and a further line for each line of a file, until the file has "end".
TALKS = """echo begun; echo loading the model >&2; seen=0
while :; do
  lines=$(grep -c '' "$WORDS" 2>/dev/null) || lines=0
  while [ "$seen" -lt "$lines" ]; do
    seen=$((seen + 1)); word=$(sed -n "${seen}p" "$WORDS"); [ "$word" = end ] && exit 3; echo "$word"
  done
  sleep 0.1
done"""


class WorkerLogsTest(ManagementTest, JobqctlTest):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(launcher="process", server__drain="100ms", server__streamSilence="1s")

    @pytest.fixture(autouse=True)
    def words(self, question, tmp_path, at_end):
        self.words = tmp_path / "words"
        self.at_end = at_end

    def say(self, *words):
        with open(self.words, "a", encoding="utf-8") as file:
            file.writelines(word + "\n" for word in words)

    def launch(self):
        """Starts a worker, and returns the path of its output."""
        template = self.new_template(imageName="acme/talks:1", dockerStartCmd=["/bin/sh", "-c", TALKS],
                                     env={"WORDS": str(self.words)})
        self.made = self.new_endpoint(template, workersMin=1, workersMax=1)["id"]
        worker, = until(lambda: self.workers({"id": self.made}), "the worker has started", HANG)
        self.worker = worker["id"]
        return f"/endpoints/{self.made}/workers/{self.worker}/logs"

    def texts(self, path):
        return [line["text"] for line in self.call("GET", path)["lines"]]

    def until_texts(self, path, *texts):
        until(lambda: self.texts(path) == list(texts), f"the lines {texts}", HANG)

    def test_the_lines_of_a_running_worker(self):
        path = self.launch()
        self.until_texts(path, "begun", "loading the model")
        answer = self.call("GET", path)
        assert answer["state"] == "running" and "reason" not in answer
        assert answer["next"] == "2" and answer["lines"][0]["at"] <= answer["lines"][1]["at"]
        self.say("one", "two")
        self.until_texts(path + "?after=2", "one", "two")
        assert self.texts(path + "?tail=1") == ["two"]
        assert self.texts(path + "?tail=0") == []

    def test_the_end_of_a_worker(self):
        path = self.launch()
        self.say("last words", "end")
        answer = until(lambda: (now := self.call("GET", path))["state"] == "ended" and now, "the worker has ended", HANG)
        assert [line["text"] for line in answer["lines"]] == ["begun", "loading the model", "last words"]
        assert "ended with exit code 3" in answer["reason"], answer

    def test_a_stream_of_events(self):
        path = self.launch()
        self.until_texts(path, "begun", "loading the model")
        reader = EventReader(self.server, "/v1" + path + "?tail=1")
        self.at_end.callback(reader.close)
        assert reader.answer.getheader("Content-Type") == "text/event-stream"
        name, number, line = reader.next()
        assert (name, number, line["text"]) == ("message", "2", "loading the model")
        assert reader.answer.readline() == b": the worker goes on\n", "a comment in the silence"
        self.say("one", "end")
        *lines, end = reader.read_rest()
        assert [line["text"] for _, _, line in lines] == ["one"]
        assert end[0] == "end" and "exit code 3" in end[2]["reason"]
        again = EventReader(self.server, "/v1" + path, Last_Event_ID="2").read_rest()
        assert again == [*lines, end], "the client goes on after its last event"

    def test_the_end_of_the_server_ends_a_stream(self, own_server):
        self.server = own_server(launcher="process", server__drain="100ms")
        path = self.launch()
        reader = EventReader(self.server, "/v1" + path)
        self.at_end.callback(reader.close)
        assert reader.next()
        self.server.stop()
        with contextlib.suppress(ConnectionError):
            reader.read_rest()

    def test_refusals(self):
        path = self.launch()
        for query in ("tail=-1", "tail=1001", "tail=x", "after=x", "tail=1&tail=2"):
            assert self.server.request("GET", f"/v1{path}?{query}").status == 400, query
        other = self.server.request("GET", f"/v1/endpoints/{self.made}/workers/none/logs")
        assert other.status == 404 and "where they were started" in other.json()["message"]
        assert self.server.request("GET", f"/v1/endpoints/none/workers/{self.worker}/logs").status == 404
        key = {"Authorization": self.server.new_key("client")["key"]}
        assert self.server.request("GET", "/v1" + path, key=None, headers=key).status in (401, 403)

    def test_the_command(self):
        path = self.launch()
        self.until_texts(path, "begun", "loading the model")
        shown = self.jobqctl("worker", "logs", self.made, self.worker).stdout.decode()
        assert [line.split(" ", 1)[1] for line in shown.splitlines()] == ["begun", "loading the model"]
        self.say("end")
        followed = self.jobqctl("worker", "logs", self.made, self.worker, "--follow", "--tail", "1").stdout.decode()
        first, last = followed.splitlines()
        assert first.endswith("loading the model") and "the worker has ended: it ended with exit code 3" in last
        lines = self.jobqctl("worker", "logs", self.made, self.worker, "--json").stdout.splitlines()
        assert [json.loads(line)["text"] for line in lines] == ["begun", "loading the model"]
        self.jobqctl("worker", "logs", self.made, "none", code=REFUSED)

"""GET /v2/{endpoint}/logs/{id} and `jobqctl job logs`: the log lines of a job's handler, as described in
scripts/README.md."""

import json
import subprocess
import threading

from jobq_server import JOBQCTL, SHORT_DRAIN, until
from jobqctl_case import NOT_COMPLETED, REFUSED, JobqctlTest
from lua_case import LuaTest
from pace import HANG


class LogTest(LuaTest, JobqctlTest):
    handlers = {
        "talks": "return function(input, job) for i = 1, input.lines do job:log('line', i) end return 1 end",
        "long": "return function(input, job) for i = 1, input.lines do job:log(('x'):rep(input.size)) end end",
        "odd": "return function(input, job) job:log('\\27[31mred\\0\\255') error('over') end",
        "follows": """return function(input, job)
          job:log('begun')
          job:progress('begun')
          while not job:stopped() do end
          job:log('told to stop')
        end""",
    }
    settings = SHORT_DRAIN

    def ended(self, endpoint, job_input):
        """The id of a job that has ended."""
        return self.job(endpoint, job_input)["id"]

    def read(self, endpoint, job, after=None, mount="/v2"):
        answer = self.server.request("GET", f"{mount}/{endpoint}/logs/{job}" + (f"?after={after}" if after else ""))
        return self.assert_job(answer)

    def read_all(self, endpoint, job):
        """All lines, and how many answers they took."""
        lines, answers, after, more = [], 0, None, True
        while more:
            page = self.read(endpoint, job, after)
            lines += page["lines"]
            after, more, answers = page["next"], page["more"], answers + 1
        return lines, answers


class ReadTest(LogTest):
    def test_lines(self):
        """In order, each with its time and level; the same under both mounts."""
        job = self.ended("talks", {"lines": 3})
        page = self.read("talks", job)
        assert [line["text"] for line in page["lines"]] == ["line\t1", "line\t2", "line\t3"]
        assert {line["level"] for line in page["lines"]} == {"information"}
        assert all(line["at"].endswith("Z") for line in page["lines"])
        assert (page["more"], page["status"]) == (False, "COMPLETED")
        assert self.read("talks", job, mount="/sdk/v2") == page

    def test_after(self):
        """`next` is where the next call goes on, also among lines of one millisecond."""
        job = self.ended("talks", {"lines": 500})
        page = self.read("talks", job)
        assert len(page["lines"]) == 500
        assert self.read("talks", job, page["next"]) == {**page, "lines": []}
        at = page["lines"][0]["at"]
        same = [line for line in page["lines"] if line["at"] == at]
        millisecond = page["next"].split("-")[0]
        assert self.read("talks", job, f"{int(millisecond) + 1}-0")["lines"] == []
        assert self.read("talks", job, "0-0")["lines"] == page["lines"]
        assert len(same) >= 1

    def test_the_last_thousand(self):
        """scripts/README.md: the log keeps the last 1,000 lines."""
        job = self.ended("talks", {"lines": 1_234})
        assert [line["text"] for line in self.read("talks", job)["lines"]] == [f"line\t{n}" for n in range(235, 1_235)]

    def test_a_megabyte_an_answer(self):
        """8 KB of a line are kept, and an answer has at most 1 MB of them; `more` says that there are others."""
        job = self.ended("long", {"lines": 300, "size": 9_000})
        lines, answers = self.read_all("long", job)
        assert len(lines) == 300
        assert {len(line["text"].removesuffix("...")) for line in lines} == {8_192}
        assert answers == 3

    def test_odd_text(self):
        """Any bytes are a JSON string; the log of a failed job is there too."""
        job = self.ended("odd", {})
        page = self.read("odd", job)
        assert ([line["text"] for line in page["lines"]], page["status"]) == (["\x1b[31mred\0\ufffd"], "FAILED")

    def test_a_running_job(self):
        """Lines are there as soon as they are logged."""
        job = self.server.run("follows", {})
        until(lambda: self.server.status("follows", job).get("output") == "begun", "the job has begun")
        page = self.read("follows", job)
        assert ([line["text"] for line in page["lines"]], page["status"]) == (["begun"], "IN_PROGRESS")
        self.server.request("POST", f"/v2/follows/cancel/{job}")

    def test_refused(self, subtests):
        """An unknown job is 404; `after` is what an answer gave."""
        job = self.ended("talks", {"lines": 1})
        self.assert_refused(self.server.request("GET", "/v2/talks/logs/nobody"), 404)
        twice = self.server.request("GET", f"/v2/talks/logs/{job}?after=0-0&after=0-0")
        self.assert_refused(twice, 400, "after")
        for after in ("x", "1", "-1-0", "1-", "-", "1-2-3", "1.5-0", "1" * 16 + "-0", "%31-%2D"):
            with subtests.test(after):
                self.assert_refused(self.server.request("GET", f"/v2/talks/logs/{job}?after={after}"), 400, "after")


class JobqctlLogTest(LogTest):
    def test_the_lines(self):
        """A line each, with time and level, and nothing that steers the terminal; --json has the objects."""
        job = self.ended("odd", {})
        line = self.table("job", "logs", "odd", job)
        assert line.endswith(" information ?[31mred?\ufffd\n")
        assert json.loads(self.jobqctl("job", "logs", "odd", job, "--json").stdout) == self.read("odd", job)["lines"][0]

    def test_more_than_one_answer(self):
        job = self.ended("long", {"lines": 300, "size": 9_000})
        assert len(self.table("job", "logs", "long", job).splitlines()) == 300

    def test_follow(self):
        """The command goes on until the job's end, and its exit code tells the outcome of the job."""
        job = self.ended("talks", {"lines": 2})
        assert len(self.table("job", "logs", "talks", job, "--follow").splitlines()) == 2
        failed = self.ended("odd", {})
        self.jobqctl("job", "logs", "odd", failed, "--follow", code=NOT_COMPLETED)
        assert "nobody" in self.sentence("job", "logs", "odd", "nobody", code=REFUSED)

    def test_follow_a_running_job(self):
        """Lines are shown as they come, until the job's end."""
        job = self.server.run("follows", {})
        command = [JOBQCTL, "job", "logs", "follows", job, "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment()) as following:
            too_late = threading.Timer(HANG, following.kill)
            too_late.start()
            assert following.stdout.readline().endswith(" information begun\n")
            self.server.request("POST", f"/v2/follows/cancel/{job}")
            assert following.stdout.read() == "", "what a job logs after its end is not kept"
            assert following.wait(HANG) == NOT_COMPLETED
            too_late.cancel()

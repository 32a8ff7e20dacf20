"""The shipped scripts: the behaviour described in the first lines of each script, every branch."""

import concurrent.futures
import json
import os
import re

import pytest

from http_case import HttpTest
from jobq_server import until
from lua_case import SHIPPED, LuaTest


def shipped(kind):
    """name -> text."""
    folder = os.path.join(SHIPPED, kind)
    found = {}
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as script:
            found[file.removesuffix(".lua")] = script.read()
    return found


def head(text):
    """The comment at the beginning of a script, as a single text."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line[2:].strip())
    return "\n".join(lines)


def example_of(text, word):
    """The JSON value behind `word` in the head comment."""
    line = re.search(rf"^{word}\s+(\{{.*)$", head(text), re.MULTILINE).group(1)
    return json.JSONDecoder().raw_decode(line)[0]


class ShippedTest(LuaTest):
    """The server runs the scripts from the tree, without a copy."""

    settings = {"scripts.path": SHIPPED, **{f"endpoint.{name}.image": f"lua/{name}"
                                            for name in ("count_stream", "reverse_text", "word_frequency")}}

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(storage="memory", **cls.settings)


class InventoryTest(HttpTest):
    def test_each_has_a_head(self, subtests):
        """scripts/README.md: shipped scripts have comments: the purpose, and for handlers input and output."""
        assert list(shipped("handlers")) == ["count_stream", "openai_echo", "reverse_text", "word_frequency"]
        assert list(shipped("filters")) == ["require_fields", "size_limit", "tenant_quota"]
        for name, text in {**shipped("handlers"), **shipped("filters")}.items():
            with subtests.test(name):
                assert re.search(r"\A[A-Z][^\n]{20,}\n", head(text))
        for name, text in shipped("handlers").items():
            with subtests.test(name):
                assert re.search(r"(?s)\ninput .*\noutput ", head(text))


class ReverseTextTest(ShippedTest):
    def test_the_example_of_the_head_comment(self):
        """The example of the head comment."""
        text = shipped("handlers")["reverse_text"]
        assert self.output("reverse_text", example_of(text, "input")) == example_of(text, "output")

    @pytest.mark.parametrize("word", ["", "a", "ab", "abc", "äöü€", "a😀b", "Ω" * 999 + "x"])
    def test_characters(self, word):
        """Character by character, not byte by byte."""
        assert self.output("reverse_text", {"text": word}) == {"text": word[::-1], "characters": len(word)}

    @pytest.mark.parametrize("wrong", [{}, {"text": 7}, {"text": None}, {"text": ["a"]}])
    def test_wrong_inputs(self, wrong):
        """A single sentence without a place in the script, because the mistake is the caller's."""
        assert self.failure("reverse_text", wrong) == 'input.text must be a string, such as {"text": "olleh"}'


class CountStreamTest(ShippedTest):
    def streamed(self, job_input):
        job = self.server.run("count_stream", job_input)
        end = self.server.finished("count_stream", job)
        assert end["status"] == "COMPLETED", end
        return self.server.request("GET", f"/v2/count_stream/stream/{job}").json(), end["output"]

    def test_the_example_of_the_head_comment(self):
        """The example of the head comment: input, chunks with metrics, output."""
        text = shipped("handlers")["count_stream"]
        chunks, output = self.streamed(example_of(text, "input"))
        assert output == example_of(text, "output")
        assert chunks[0]["output"] == example_of(text, "chunks")
        assert chunks == [{"output": {"n": n}, "metrics": {"left": 5 - n}} for n in range(1, 6)]

    def test_every(self):
        """Each n-th number; without inputs, ten numbers."""
        assert [chunk["output"]["n"] for chunk in self.streamed({"to": 7, "every": 3})[0]] == [3, 6]
        assert [chunk["output"]["n"] for chunk in self.streamed({})[0]] == list(range(1, 11))
        # A handler without job:emit streams no chunks; the return value is in /status (core/http/API.md, "Reading a
        # stream").
        for nothing in ({"to": 0}, {"to": 2, "every": 3}):
            chunks, output = self.streamed(nothing)
            assert (chunks, output) == ([], {"counted": nothing["to"]})

    def test_progress_and_a_stop(self):
        """`/status` shows the progress; a cancelled job ends."""
        job = self.server.run("count_stream", {"to": 1 << 50, "every": 100_000})
        self.in_progress({"id": "count_stream"}, job)
        chunks = self.server.request("GET", f"/v2/count_stream/stream/{job}?wait=20000").json()
        assert chunks[0] == {"output": {"n": 100_000}, "metrics": {"left": (1 << 50) - 100_000}}
        output = until(lambda: self.server.status("count_stream", job).get("output"), "it shows how far it is")
        assert (output["to"], output["at"] % 100_000) == (1 << 50, 0)
        assert self.server.request("POST", f"/v2/count_stream/cancel/{job}").json()["status"] == "CANCELLED"
        self.server.quiet("count_stream")

    def test_wrong_inputs(self, subtests):
        """A single sentence without a place in the script."""
        for wrong in (-1, 1.5, "5", True, [1]):
            with subtests.test(to=wrong):
                assert self.failure("count_stream", {"to": wrong}) == "input.to must be a whole number from 0"
        for wrong in (0, -1, 0.5, "1", {}):
            with subtests.test(every=wrong):
                assert self.failure("count_stream", {"every": wrong}) == "input.every must be a whole number from 1"


class WordFrequencyTest(ShippedTest):
    def ranking(self, text, **more):
        output = self.output("word_frequency", {"text": text, **more})
        return [(row["word"], row["count"]) for row in output["top"]], output["words"], output["distinct"]

    def test_the_example_of_the_head_comment(self):
        """The example of the head comment, up to the dots."""
        text = shipped("handlers")["word_frequency"]
        output = self.output("word_frequency", example_of(text, "input"))
        shown = re.search(r"^output\s+(\{.*), \.\.\.\]\}$", head(text), re.MULTILINE).group(1)
        wanted = json.loads(shown + "]}")
        assert output["top"][:2] == wanted["top"]
        assert (output["words"], output["distinct"], len(output["top"])) == (wanted["words"], wanted["distinct"], 3)
        assert output["top"][2] == {"word": "not", "count": 1}, "the alphabet decides"

    def test_words(self):
        """Letters, digits and apostrophes; capitals are not told apart (ASCII); letters beyond ASCII are letters."""
        assert self.ranking("Don't stop. DON'T! über Straße 42, 42-42") == (
            [("42", 3), ("don't", 2), ("stop", 1), ("straße", 1), ("über", 1)], 8, 5)
        assert self.ranking(" ... - ") == ([], 0, 0)
        assert self.output("word_frequency", {"text": ""}) == {"words": 0, "distinct": 0, "top": []}

    def test_top_and_least(self):
        """At most `top` words, each at least `least` times; ten words of any frequency by default."""
        text = " ".join(f"w{n:02}" for n in range(12)) + " w11 w11 w10"
        assert self.ranking(text)[0][:3] == [("w11", 3), ("w10", 2), ("w00", 1)]
        assert len(self.ranking(text)[0]) == 10
        assert self.ranking(text, top=1)[0] == [("w11", 3)]
        assert self.ranking(text, top=0) == ([], 15, 12)
        assert len(self.ranking(text, top=100)[0]) == 12
        assert self.ranking(text, least=2)[0] == [("w11", 3), ("w10", 2)]
        assert self.ranking(text, least=4)[0] == []

    def test_defaults_of_the_env(self):
        """The environment's LEAST and TOP are defaults; values of the input win; a text without a number is ignored."""
        text = "a a a b b c"
        template = self.new_template(imageName="lua/word_frequency", env={"TOP": "1", "LEAST": "2"})
        endpoint = self.new_endpoint(template)

        def top(**more):
            return [row["word"] for row in self.output(endpoint["id"], {"text": text, **more})["top"]]
        assert (top(), top(top=5), top(top=5, least=1)) == (["a"], ["a", "b"], ["a", "b", "c"])
        self.call("PATCH", "/templates/" + template["id"], {"env": {"TOP": "many", "LEAST": ""}})
        self.complete(endpoint, 2)
        assert top() == ["a", "b", "c"]

    def test_wrong_inputs(self, subtests):
        """A single sentence without a place in the script."""
        for field, wrongs, least in (("top", (-1, 1.5, "3", {}), 0), ("least", (0, -1, "1", [1]), 1)):
            for wrong in wrongs:
                with subtests.test(field=field, wrong=wrong):
                    error = self.failure("word_frequency", {"text": "a", field: wrong})
                    assert error == f"input.{field} must be a whole number from {least}"
        for wrong in ({}, {"text": 1}, {"text": None}):
            assert self.failure("word_frequency", wrong) == "input.text must be a string"


class ShippedFilterTest(ShippedTest):
    """Endpoints of the API: each test makes an endpoint with the env of the test."""

    script = None

    def guarded(self, **env):
        template = self.new_template(imageName="plugin/echo", env=env)
        return self.new_endpoint(template, filters=[self.script], workersMax=0)["id"]

    def assert_welcome(self, endpoint, job_input, **more):
        self.assert_job(self.submit(endpoint, job_input, **more))

    def error(self, endpoint, job_input, status=400, **more):
        answer = self.submit(endpoint, job_input, **more)
        assert answer.status == status, answer.body
        return answer.json()["error"]


class RequireFieldsTest(ShippedFilterTest):
    script = "require_fields"

    def test_the_example_of_the_head_comment(self, subtests):
        """The example of the head comment: REQUIRE_FIELDS = prompt, options.steps."""
        value = re.search(r"REQUIRE_FIELDS = (\S+, \S+)\. ", head(shipped("filters")[self.script])).group(1)
        assert value == "prompt, options.steps"
        endpoint = self.guarded(REQUIRE_FIELDS=value)
        self.assert_welcome(endpoint, {"prompt": "x", "options": {"steps": 1}})
        missing = "input.options.steps is missing: this endpoint requires it"
        for wrong in ({"prompt": "x"}, {"prompt": "x", "options": None}, {"prompt": "x", "options": {}},
                      {"prompt": "x", "options": 7}, {"prompt": "x", "options": "steps"},
                      {"prompt": "x", "options": {"steps": None}}, {"prompt": "x", "options": [1]},
                      {"prompt": "x", "options.steps": 1}):
            with subtests.test(wrong):
                assert self.error(endpoint, wrong) == missing
        assert self.error(endpoint, {"options": {"steps": 1}}) == "input.prompt is missing: this endpoint requires it"

    def test_values(self):
        """Null is missing; false, 0, "" and empty things are values."""
        endpoint = self.guarded(REQUIRE_FIELDS="a")
        for value in (False, 0, "", [], {}):
            self.assert_welcome(endpoint, {"a": value})
        assert "input.a" in self.error(endpoint, {"a": None})
        assert "input.a" in self.error(endpoint, {"A": 1})

    def test_without_required_fields(self):
        """Without the variable, or with an empty variable."""
        for env in ({}, {"REQUIRE_FIELDS": ""}, {"REQUIRE_FIELDS": " , ,"}, {"OTHER": "a"}):
            self.assert_welcome(self.guarded(**env), {})

    def test_spelling(self):
        """Commas, blanks or both part the fields."""
        endpoint = self.guarded(REQUIRE_FIELDS=" a,b  c ,, d.e.f")
        self.assert_welcome(endpoint, {"a": 1, "b": 1, "c": 1, "d": {"e": {"f": 1}}})
        for field in ("a", "b", "c"):
            job_input = {name: 1 for name in ("a", "b", "c") if name != field}
            error = self.error(endpoint, {**job_input, "d": {"e": {"f": 1}}})
            assert error == f"input.{field} is missing: this endpoint requires it"
        assert "input.d.e.f is" in self.error(endpoint, {"a": 1, "b": 1, "c": 1, "d": {"e": {}}})


class SizeLimitTest(ShippedFilterTest):
    script = "size_limit"

    def sized(self, endpoint, size):
        """The answer to an input of exactly so many bytes."""
        text = '{"t":"' + "x" * (size - 8) + '"}'
        assert len(text) == size
        return self.server.request("POST", f"/v2/{endpoint}/run", '{"input":' + text + "}")

    def test_the_examples_of_the_head_comment(self, subtests):
        """The example of the head comment: 65536 bytes, or with a unit, 64KB or 2MB: exact."""
        comment = head(shipped("filters")[self.script]).replace("\n", " ")
        assert "SIZE_LIMIT = 65536 bytes, or with a unit, 64KB or 2MB" in comment
        for value, limit in (("65536", 65_536), ("64KB", 65_536), ("2MB", 2 << 20), ("100B", 100), ("1 KB", 1_024)):
            with subtests.test(value):
                endpoint = self.guarded(SIZE_LIMIT=value)
                self.assert_job(self.sized(endpoint, limit))
                sentence = self.assert_refused(self.sized(endpoint, limit + 1), 400)
                assert sentence == f"input has {limit + 1} bytes, but this endpoint accepts {limit}: send less"

    def test_none(self):
        """Without the variable only the server's limit is in force."""
        self.assert_job(self.sized(self.guarded(), 1 << 20))

    @pytest.mark.parametrize("value", [
        "much", "64kb", "-1", "1.5MB", "", "KB", "5 GB", "1e3", "1 KB x", "9223372036854775807",
        "9223372036854775807MB", "1" + "0" * 12])
    def test_no_size(self, value):
        """An unreadable limit is the fault of the limit's author: 500, and no job is accepted."""
        error = self.error(self.guarded(SIZE_LIMIT=value), {}, 500)
        assert f"SIZE_LIMIT = {value} is not a size such as 65536, 64KB or 2MB" in error

    def test_the_largest(self):
        """Twelve digits of any unit are a size."""
        for unit in ("", "B", "KB", "MB"):
            self.assert_welcome(self.guarded(SIZE_LIMIT="9" * 12 + unit), {"a": 1})


class TenantQuotaTest(ShippedFilterTest):
    """The return of quota with time is proved in tests/server/server_filter_test.cpp, on a clock moved by hand."""

    script = "tenant_quota"

    def error(self, endpoint, job_input, status=429, **more):
        return super().error(endpoint, job_input, status, **more)

    def used_up(self, rule):
        return rf"\Athe quota of {rule} s is used up: try again in \d+ s\Z"

    def test_each_key(self):
        """Without TENANT_FIELD each API key is a tenant; 2/3600: two in an hour."""
        endpoint = self.guarded(TENANT_QUOTA="2/3600")
        keys = [self.server.new_key("client")["key"] for _ in range(2)]
        for key in keys:
            for _ in range(2):
                self.assert_welcome(endpoint, {}, key=key)
        for key in keys:
            assert re.search(self.used_up("2/3600"), self.error(endpoint, {}, key=key))
        assert re.search(r"in (3600|35\d\d) s\Z", self.error(endpoint, {}, key=keys[0]))
        other = self.guarded(TENANT_QUOTA="2/3600")
        self.assert_welcome(other, {}, key=keys[0])

    def test_each_tenant(self):
        """TENANT_FIELD names the field of the input; a job without a text in the field counts for the API key."""
        endpoint = self.guarded(TENANT_QUOTA="1/3600", TENANT_FIELD="tenant")
        for tenant in ("a", "b", "ä" * 300):
            self.assert_welcome(endpoint, {"tenant": tenant})
            assert re.search(self.used_up("1/3600"), self.error(endpoint, {"tenant": tenant}))
        self.assert_welcome(endpoint, {})
        for job_input in ({}, {"tenant": 7}, {"tenant": None}, {"other": "c"}):
            assert re.search(self.used_up("1/3600"), self.error(endpoint, job_input))
        key = self.server.new_key("client")["key"]
        assert re.search(self.used_up("1/3600"), self.error(endpoint, {"tenant": "a"}, key=key))
        self.assert_welcome(endpoint, {}, key=key)

    def test_a_tenant_named_like_a_key(self):
        """A caller cannot use up a key's quota by giving a tenant the name of the key."""
        endpoint = self.guarded(TENANT_QUOTA="1/3600", TENANT_FIELD="tenant")
        key = self.server.new_key("client")
        self.assert_welcome(endpoint, {"tenant": key["id"]})
        self.assert_welcome(endpoint, {"tenant": "key " + key["id"]})
        self.assert_welcome(endpoint, {}, key=key["key"])

    def test_the_example_of_the_head_comment(self):
        """The example of the head comment: TENANT_QUOTA = 100/60."""
        rule = re.search(r"TENANT_QUOTA = (\d+/\d+) \(jobs / seconds\)", head(shipped("filters")[self.script])).group(1)
        endpoint = self.guarded(TENANT_QUOTA=rule)
        most = int(rule.split("/")[0])
        for _ in range(most):
            self.assert_welcome(endpoint, {})
        assert re.search(self.used_up(rule), self.error(endpoint, {}))

    def test_many_at_once(self):
        """Exactly as many as the rule says, however many ask at once."""
        endpoint = self.guarded(TENANT_QUOTA="50/3600")
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            statuses = list(pool.map(lambda _: self.submit(endpoint).status, range(200)))
        assert (statuses.count(200), statuses.count(429)) == (50, 150)

    def test_none(self):
        """Without TENANT_QUOTA there is no quota; 0/60 permits no job."""
        endpoint = self.guarded(TENANT_FIELD="tenant")
        for _ in range(5):
            self.assert_welcome(endpoint, {"tenant": "a"})
        assert re.search(self.used_up("0/60"), self.error(self.guarded(TENANT_QUOTA="0/60"), {}))

    def test_no_quota(self, subtests):
        """An unreadable rule is the fault of the rule's author: 500, and no job is accepted."""
        for rule in ("many", "5", "5/", "/60", "-1/60", "5/60s", "1.5/60", "", "5 / 60"):
            with subtests.test(rule):
                error = self.error(self.guarded(TENANT_QUOTA=rule), {}, 500)
                assert f"TENANT_QUOTA = {rule} is not a quota such as 100/60 for 100 jobs in 60 seconds" in error
        assert "from 0.001 to 604800 seconds" in self.error(self.guarded(TENANT_QUOTA="5/0"), {}, 500)
        assert "seconds" in self.error(self.guarded(TENANT_QUOTA="5/604801"), {}, 500)

"""The scripts that are shipped: what their first lines promise, every branch of them (issue 7)."""

import concurrent.futures
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import HttpTest, until  # noqa: E402
from lua_case import SHIPPED, LuaTest  # noqa: E402


def shipped(kind):
    """name -> text."""
    folder = os.path.join(SHIPPED, kind)
    found = {}
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as script:
            found[file.removesuffix(".lua")] = script.read()
    return found


def head(text):
    """The comment that a script begins with, as one text."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line[2:].strip())
    return "\n".join(lines)


def promised(text, word):
    """The JSON value that the head comment shows after that word."""
    line = re.search(rf"^{word}\s+(\{{.*)$", head(text), re.MULTILINE).group(1)
    return json.JSONDecoder().raw_decode(line)[0]


class ShippedTest(LuaTest):
    """The server runs the scripts where they lie in the tree."""

    settings = {"scripts.path": SHIPPED, **{f"endpoint.{name}.image": f"lua/{name}"
                                            for name in ("count_stream", "reverse_text", "word_frequency")}}

    @classmethod
    def setUpClass(cls):
        super(LuaTest, cls).setUpClass()
        cls.own = cls.class_server(storage="memory", **cls.settings)


class InventoryTest(HttpTest):
    def test_each_has_a_head(self):
        """issue 7: scripts that do something, commented: what it is for, and for handlers input and output."""
        self.assertEqual(list(shipped("handlers")), ["count_stream", "reverse_text", "word_frequency"])
        self.assertEqual(list(shipped("filters")), ["require_fields", "size_limit", "tenant_quota"])
        for name, text in {**shipped("handlers"), **shipped("filters")}.items():
            with self.subTest(name):
                self.assertRegex(head(text), r"\A[A-Z][^\n]{20,}\n")
        for name, text in shipped("handlers").items():
            with self.subTest(name):
                self.assertRegex(head(text), r"(?s)\ninput .*\noutput ")


class ReverseTextTest(ShippedTest):
    def test_its_example(self):
        """What the head comment shows."""
        text = shipped("handlers")["reverse_text"]
        self.assertEqual(self.output("reverse_text", promised(text, "input")), promised(text, "output"))

    def test_characters(self):
        """Character by character, not byte by byte."""
        for word in ("", "a", "ab", "abc", "äöü€", "a😀b", "Ω" * 999 + "x"):
            with self.subTest(word[:5]):
                self.assertEqual(self.output("reverse_text", {"text": word}),
                                 {"text": word[::-1], "characters": len(word)})

    def test_wrong_inputs(self):
        """One sentence without a place in the script: it is the caller's mistake."""
        for wrong in ({}, {"text": 7}, {"text": None}, {"text": ["a"]}):
            with self.subTest(wrong):
                self.assertEqual(self.failure("reverse_text", wrong),
                                 'input.text must be a string, such as {"text": "olleh"}')


class CountStreamTest(ShippedTest):
    def streamed(self, job_input):
        job = self.server.run("count_stream", job_input)
        end = self.server.finished("count_stream", job)
        self.assertEqual(end["status"], "COMPLETED", end)
        return self.server.request("GET", f"/v2/count_stream/stream/{job}").json(), end["output"]

    def test_its_example(self):
        """What the head comment shows: input, chunks with metrics, output."""
        text = shipped("handlers")["count_stream"]
        chunks, output = self.streamed(promised(text, "input"))
        self.assertEqual(output, promised(text, "output"))
        self.assertEqual(chunks[0]["output"], promised(text, "chunks"))
        self.assertEqual(chunks, [{"output": {"n": n}, "metrics": {"left": 5 - n}} for n in range(1, 6)])

    def test_every(self):
        """each n-th number; without inputs, ten of them."""
        self.assertEqual([chunk["output"]["n"] for chunk in self.streamed({"to": 7, "every": 3})[0]], [3, 6])
        self.assertEqual([chunk["output"]["n"] for chunk in self.streamed({})[0]], list(range(1, 11)))
        # A handler that never emits streams nothing; /stream then has what it returned (decisions.md, Jobs).
        for nothing in ({"to": 0}, {"to": 2, "every": 3}):
            chunks, output = self.streamed(nothing)
            self.assertEqual((chunks, output), ([], {"counted": nothing["to"]}))

    def test_progress_and_a_stop(self):
        """`/status` shows how far it is; a job that was cancelled ends."""
        job = self.server.run("count_stream", {"to": 1 << 50, "every": 100_000})
        self.in_progress({"id": "count_stream"}, job)
        chunks = self.server.request("GET", f"/v2/count_stream/stream/{job}?wait=20000").json()
        self.assertEqual(chunks[0], {"output": {"n": 100_000}, "metrics": {"left": (1 << 50) - 100_000}})
        output = until(lambda: self.server.status("count_stream", job).get("output"), "it shows how far it is")
        self.assertEqual((output["to"], output["at"] % 100_000), (1 << 50, 0))
        self.assertEqual(self.server.request("POST", f"/v2/count_stream/cancel/{job}").json()["status"], "CANCELLED")
        self.server.quiet("count_stream")

    def test_wrong_inputs(self):
        """One sentence without a place in the script."""
        for wrong in (-1, 1.5, "5", True, [1]):
            with self.subTest(to=wrong):
                self.assertEqual(self.failure("count_stream", {"to": wrong}), "input.to must be a whole number from 0")
        for wrong in (0, -1, 0.5, "1", {}):
            with self.subTest(every=wrong):
                self.assertEqual(self.failure("count_stream", {"every": wrong}),
                                 "input.every must be a whole number from 1")


class WordFrequencyTest(ShippedTest):
    def ranking(self, text, **more):
        output = self.output("word_frequency", {"text": text, **more})
        return [(row["word"], row["count"]) for row in output["top"]], output["words"], output["distinct"]

    def test_its_example(self):
        """What the head comment shows, as far as it does."""
        text = shipped("handlers")["word_frequency"]
        output = self.output("word_frequency", promised(text, "input"))
        shown = re.search(r"^output\s+(\{.*), \.\.\.\]\}$", head(text), re.MULTILINE).group(1)
        wanted = json.loads(shown + "]}")
        self.assertEqual(output["top"][:2], wanted["top"])
        self.assertEqual((output["words"], output["distinct"], len(output["top"])),
                         (wanted["words"], wanted["distinct"], 3))
        self.assertEqual(output["top"][2], {"word": "not", "count": 1}, "the alphabet decides")

    def test_words(self):
        """Letters, digits and apostrophes; capitals are not told apart (ASCII); letters beyond ASCII are letters."""
        self.assertEqual(self.ranking("Don't stop. DON'T! über Straße 42, 42-42"),
                         ([("42", 3), ("don't", 2), ("stop", 1), ("straße", 1), ("über", 1)], 8, 5))
        self.assertEqual(self.ranking(" ... - "), ([], 0, 0))
        self.assertEqual(self.output("word_frequency", {"text": ""}), {"words": 0, "distinct": 0, "top": []})

    def test_top_and_least(self):
        """`top` words at most, none rarer than `least`; ten of any frequency by default."""
        text = " ".join(f"w{n:02}" for n in range(12)) + " w11 w11 w10"
        self.assertEqual(self.ranking(text)[0][:3], [("w11", 3), ("w10", 2), ("w00", 1)])
        self.assertEqual(len(self.ranking(text)[0]), 10)
        self.assertEqual(self.ranking(text, top=1)[0], [("w11", 3)])
        self.assertEqual(self.ranking(text, top=0), ([], 15, 12))
        self.assertEqual(len(self.ranking(text, top=100)[0]), 12)
        self.assertEqual(self.ranking(text, least=2)[0], [("w11", 3), ("w10", 2)])
        self.assertEqual(self.ranking(text, least=4)[0], [])

    def test_defaults_of_the_env(self):
        """The environment's LEAST and TOP are the defaults; an input's own win; what is no number is nothing."""
        text = "a a a b b c"
        template = self.new_template(imageName="lua/word_frequency", env={"TOP": "1", "LEAST": "2"})
        endpoint = self.new_endpoint(template)

        def top(**more):
            return [row["word"] for row in self.output(endpoint["id"], {"text": text, **more})["top"]]
        self.assertEqual((top(), top(top=5), top(top=5, least=1)), (["a"], ["a", "b"], ["a", "b", "c"]))
        self.call("PATCH", "/templates/" + template["id"], {"env": {"TOP": "many", "LEAST": ""}})
        self.complete(endpoint, 2)
        self.assertEqual(top(), ["a", "b", "c"])

    def test_wrong_inputs(self):
        """One sentence without a place in the script."""
        for field, wrongs, least in (("top", (-1, 1.5, "3", {}), 0), ("least", (0, -1, "1", [1]), 1)):
            for wrong in wrongs:
                with self.subTest(field=field, wrong=wrong):
                    self.assertEqual(self.failure("word_frequency", {"text": "a", field: wrong}),
                                     f"input.{field} must be a whole number from {least}")
        for wrong in ({}, {"text": 1}, {"text": None}):
            self.assertEqual(self.failure("word_frequency", wrong), "input.text must be a string")


class ShippedFilterTest(ShippedTest):
    """Endpoints of the API: each test makes its own, with the env that it needs."""

    name = None

    def guarded(self, **env):
        template = self.new_template(imageName="plugin/echo", env=env)
        return self.new_endpoint(template, filters=[self.name], workersMax=0)["id"]

    def assert_welcome(self, endpoint, job_input, **more):
        self.assert_job(self.submit(endpoint, job_input, **more))

    def error(self, endpoint, job_input, status=400, **more):
        reply = self.submit(endpoint, job_input, **more)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json()["error"]


class RequireFieldsTest(ShippedFilterTest):
    name = "require_fields"

    def test_its_example(self):
        """What the head comment shows: REQUIRE_FIELDS = prompt, options.steps."""
        value = re.search(r"REQUIRE_FIELDS = (\S+, \S+)\. ", head(shipped("filters")[self.name])).group(1)
        self.assertEqual(value, "prompt, options.steps")
        endpoint = self.guarded(REQUIRE_FIELDS=value)
        self.assert_welcome(endpoint, {"prompt": "x", "options": {"steps": 1}})
        missing = "input.options.steps is missing: this endpoint needs it"
        for wrong in ({"prompt": "x"}, {"prompt": "x", "options": None}, {"prompt": "x", "options": {}},
                      {"prompt": "x", "options": 7}, {"prompt": "x", "options": "steps"},
                      {"prompt": "x", "options": {"steps": None}}, {"prompt": "x", "options": [1]},
                      {"prompt": "x", "options.steps": 1}):
            with self.subTest(wrong):
                self.assertEqual(self.error(endpoint, wrong), missing)
        self.assertEqual(self.error(endpoint, {"options": {"steps": 1}}),
                         "input.prompt is missing: this endpoint needs it")

    def test_values(self):
        """Null is missing; false, 0, "" and empty things are values."""
        endpoint = self.guarded(REQUIRE_FIELDS="a")
        for value in (False, 0, "", [], {}):
            self.assert_welcome(endpoint, {"a": value})
        self.assertIn("input.a", self.error(endpoint, {"a": None}))
        self.assertIn("input.a", self.error(endpoint, {"A": 1}))

    def test_nothing_is_required(self):
        """Without the variable, or with an empty one."""
        for env in ({}, {"REQUIRE_FIELDS": ""}, {"REQUIRE_FIELDS": " , ,"}, {"OTHER": "a"}):
            self.assert_welcome(self.guarded(**env), {})

    def test_spelling(self):
        """Commas, blanks or both part the fields."""
        endpoint = self.guarded(REQUIRE_FIELDS=" a,b  c ,, d.e.f")
        self.assert_welcome(endpoint, {"a": 1, "b": 1, "c": 1, "d": {"e": {"f": 1}}})
        for field in ("a", "b", "c"):
            job_input = {name: 1 for name in ("a", "b", "c") if name != field}
            self.assertEqual(self.error(endpoint, {**job_input, "d": {"e": {"f": 1}}}),
                             f"input.{field} is missing: this endpoint needs it")
        self.assertIn("input.d.e.f is", self.error(endpoint, {"a": 1, "b": 1, "c": 1, "d": {"e": {}}}))


class SizeLimitTest(ShippedFilterTest):
    name = "size_limit"

    def sized(self, endpoint, size):
        """The reply to an input of exactly so many bytes."""
        text = '{"t":"' + "x" * (size - 8) + '"}'
        self.assertEqual(len(text), size)
        return self.server.request("POST", f"/v2/{endpoint}/run", '{"input":' + text + "}")

    def test_its_examples(self):
        """What the head comment shows: 65536 bytes, or with a unit, 64KB or 2MB: exact."""
        comment = head(shipped("filters")[self.name]).replace("\n", " ")
        self.assertIn("SIZE_LIMIT = 65536 bytes, or with a unit, 64KB or 2MB", comment)
        for value, limit in (("65536", 65_536), ("64KB", 65_536), ("2MB", 2 << 20), ("100B", 100), ("1 KB", 1_024)):
            with self.subTest(value):
                endpoint = self.guarded(SIZE_LIMIT=value)
                self.assert_job(self.sized(endpoint, limit))
                self.assertEqual(self.assert_refused(self.sized(endpoint, limit + 1), 400),
                                 f"input has {limit + 1} bytes, this endpoint takes {limit}: send less")

    def test_none(self):
        """Without it there is none but the server's own."""
        self.assert_job(self.sized(self.guarded(), 1 << 20))

    def test_no_size(self):
        """A limit that cannot be read is a fault of whoever set it: 500, and nobody gets in."""
        for value in ("much", "64kb", "-1", "1.5MB", "", "KB", "5 GB", "1e3", "1 KB x", "9223372036854775807",
                      "9223372036854775807MB", "1" + "0" * 12):
            with self.subTest(value):
                self.assertIn(f"SIZE_LIMIT = {value} is no size, such as 65536, 64KB or 2MB",
                              self.error(self.guarded(SIZE_LIMIT=value), {}, 500))

    def test_the_largest(self):
        """Twelve digits of any unit are a size."""
        for unit in ("", "B", "KB", "MB"):
            self.assert_welcome(self.guarded(SIZE_LIMIT="9" * 12 + unit), {"a": 1})


class TenantQuotaTest(ShippedFilterTest):
    """That time gives a quota back: tests/house/house_filter_test.cpp, on a clock moved by hand."""

    name = "tenant_quota"

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
            self.assertRegex(self.error(endpoint, {}, key=key), self.used_up("2/3600"))
        self.assertRegex(self.error(endpoint, {}, key=keys[0]), r"in (3600|35\d\d) s\Z")
        other = self.guarded(TENANT_QUOTA="2/3600")
        self.assert_welcome(other, {}, key=keys[0])

    def test_each_tenant(self):
        """TENANT_FIELD names the field of the input; a job without it, or with no text there, counts for its key."""
        endpoint = self.guarded(TENANT_QUOTA="1/3600", TENANT_FIELD="tenant")
        for tenant in ("a", "b", "ä" * 300):
            self.assert_welcome(endpoint, {"tenant": tenant})
            self.assertRegex(self.error(endpoint, {"tenant": tenant}), self.used_up("1/3600"))
        self.assert_welcome(endpoint, {})
        for job_input in ({}, {"tenant": 7}, {"tenant": None}, {"other": "c"}):
            self.assertRegex(self.error(endpoint, job_input), self.used_up("1/3600"))
        key = self.server.new_key("client")["key"]
        self.assertRegex(self.error(endpoint, {"tenant": "a"}, key=key), self.used_up("1/3600"))
        self.assert_welcome(endpoint, {}, key=key)

    def test_a_tenant_named_like_a_key(self):
        """Nobody uses up a key's quota by calling its tenant so."""
        endpoint = self.guarded(TENANT_QUOTA="1/3600", TENANT_FIELD="tenant")
        key = self.server.new_key("client")
        self.assert_welcome(endpoint, {"tenant": key["id"]})
        self.assert_welcome(endpoint, {"tenant": "key " + key["id"]})
        self.assert_welcome(endpoint, {}, key=key["key"])

    def test_its_example(self):
        """What the head comment shows: TENANT_QUOTA = 100/60."""
        rule = re.search(r"TENANT_QUOTA = (\d+/\d+) \(jobs / seconds\)", head(shipped("filters")[self.name])).group(1)
        endpoint = self.guarded(TENANT_QUOTA=rule)
        most = int(rule.split("/")[0])
        for _ in range(most):
            self.assert_welcome(endpoint, {})
        self.assertRegex(self.error(endpoint, {}), self.used_up(rule))

    def test_many_at_once(self):
        """Exactly as many as the rule says, however many ask at once."""
        endpoint = self.guarded(TENANT_QUOTA="50/3600")
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            statuses = list(pool.map(lambda _: self.submit(endpoint).status, range(200)))
        self.assertEqual((statuses.count(200), statuses.count(400)), (50, 150))

    def test_none(self):
        """Without TENANT_QUOTA there is none; 0/60 lets nobody in."""
        endpoint = self.guarded(TENANT_FIELD="tenant")
        for _ in range(5):
            self.assert_welcome(endpoint, {"tenant": "a"})
        self.assertRegex(self.error(self.guarded(TENANT_QUOTA="0/60"), {}), self.used_up("0/60"))

    def test_no_quota(self):
        """A rule that cannot be read is a fault of whoever set it: 500, and nobody gets in."""
        for rule in ("many", "5", "5/", "/60", "-1/60", "5/60s", "1.5/60", "", "5 / 60"):
            with self.subTest(rule):
                self.assertIn(f"TENANT_QUOTA = {rule} is no quota, such as 100/60 for 100 jobs in 60 seconds",
                              self.error(self.guarded(TENANT_QUOTA=rule), {}, 500))
        self.assertIn("from 0.001 to 604800 seconds", self.error(self.guarded(TENANT_QUOTA="5/0"), {}, 500))
        self.assertIn("seconds", self.error(self.guarded(TENANT_QUOTA="5/604801"), {}, 500))


if __name__ == "__main__":
    unittest.main()

"""jobqctl template and endpoint: every verb, as a table and as --json, and what it says about wrong input."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobqctl_case import NOWHERE, REFUSED, USAGE, FormTest  # noqa: E402


class TemplateVerbsTest(FormTest):
    def created(self, *arguments, **more):
        template = self.json("template", "create", *arguments, **more)
        self.addCleanup(self.server.request, "DELETE", f"/v1/templates/{template['id']}")
        return template

    def test_create_with_everything(self):
        """api.md, Template: every field that a caller may set has an option."""
        made = self.created(
            "--name", self.id(), "--image", "plugin/echo", "--category", "CPU", "--container-disk", "7", "--volume=0",
            "--mount-path", "/data", "--registry-auth", "auth", "--entrypoint", "python", "--entrypoint=-u",
            "--start-cmd", "-m", "--env", "A=1=2", "--env", "B=", "--env", "C=\u00e9 \"x\"", "--port", "8888/http",
            "--port", "22/tcp", "--readme", "# hello", "--public", "true", "--serverless", "true")
        wanted = {"name": self.id(), "imageName": "plugin/echo", "category": "CPU", "containerDiskInGb": 7,
                  "volumeInGb": 0, "volumeMountPath": "/data", "containerRegistryAuthId": "auth",
                  "dockerEntrypoint": ["python", "-u"], "dockerStartCmd": ["-m"],
                  "env": {"A": "1=2", "B": "", "C": "\u00e9 \"x\""}, "ports": ["8888/http", "22/tcp"],
                  "readme": "# hello", "isPublic": True, "isServerless": True}
        self.assertEqual({name: made[name] for name in wanted}, wanted)

    def test_create_from_a_file_and_from_standard_input(self):
        """`--file` brings the whole form, `-` from standard input."""
        form = {"name": self.id(), "imageName": "plugin/echo", "env": {"A": "1"}}
        text = json.dumps(form).encode()
        with tempfile.NamedTemporaryFile(prefix="jobq-test-") as file:
            file.write(text)
            file.flush()
            template = self.created("--file", file.name)
        self.assertEqual((template["name"], template["env"]), (self.id(), {"A": "1"}))
        other = self.created("--file", "-", stdin=text.replace(b'"name": "', b'"name": "other '))
        self.assertEqual(other["name"], "other " + self.id())

    def test_show_and_list(self):
        """`template show` has every field of the answer, `template list` a row a template."""
        template = self.make_template(env={"A": "\x1b[31m"})
        answer = self.server.request("GET", f"/v1/templates/{template}")
        self.assertEqual(self.ctl("template", "show", template, "--json").stdout, answer.body)
        fields = self.fields("template", "show", template)
        self.assertEqual(set(fields), set(answer.json()))
        self.assertEqual((fields["id"], fields["imageName"], fields["containerDiskInGb"], fields["readme"]),
                         (template, "plugin/trial", "50", "-"))
        self.assertEqual(json.loads(fields["env"]), {"A": "\x1b[31m"})
        row = next(row for row in self.rows("template", "list") if row["ID"] == template)
        self.assertEqual((row["NAME"], row["IMAGE"], row["CATEGORY"]), (self.id(), "plugin/trial", "NVIDIA"))
        self.assertEqual(self.ctl("template", "list", "--json").stdout,
                         self.server.request("GET", "/v1/templates").body)

    def test_update(self):
        """An update changes what is given and nothing else; an empty text is a text."""
        template = self.make_template(env={"A": "1"}, readme="old")
        before = self.json("template", "show", template)
        after = self.json("template", "update", template, "--env", "B=2", "--readme", "")
        self.assertEqual(after, {**before, "env": {"B": "2"}, "readme": ""})
        self.assertEqual(self.fields("template", "update", template, "--volume", "3")["volumeInGb"], "3")
        self.assertEqual(self.json("template", "update", template, "--file", "-", stdin=b'{"env":{}}')["env"], {})

    def test_delete(self):
        """A second time there is no such template; one that is used stays."""
        template = self.make_template()
        self.assertIn(template, self.table("template", "delete", template))
        self.assertIn(template, self.sentence("template", "delete", template, code=REFUSED))
        other = self.make_template()
        self.assertEqual(self.ctl("template", "delete", other, "--json").stdout, b"", "a 204 has no body")
        used = self.make_template(name="used " + self.id())
        endpoint = self.make_endpoint(used)
        self.assertIn(endpoint, self.sentence("template", "delete", used, code=REFUSED))

    def test_refused(self):
        """The server's own sentence: one for each wrong field, all of them at once."""
        sentence = self.sentence("template", "create", "--name", "x", "--port", "0/udp", "--volume", "-1", code=REFUSED)
        for word in ("imageName", "ports", "volumeInGb"):
            self.assertIn(word, sentence)
        self.assertIn("nothing", self.sentence("template", "show", "nothing", code=REFUSED))
        self.assertIn("nothing", self.sentence("template", "update", "nothing", "--name", "x", code=REFUSED))

    def test_wrong_usage(self):
        """Exit code 2, and the sentence names the option; nothing is sent."""
        cases = [(["create"], "--file"), (["update", "x"], "--file"), (["create", "--volume", "much"], "--volume"),
                 (["create", "--volume", "1.5"], "--volume"), (["create", "--volume", "007"], "--volume"),
                 (["create", "--volume", ""], "--volume"), (["create", "--public", "yes"], "--public"),
                 (["create", "--env", "A"], "--env"), (["create", "--env", "=1"], "--env"),
                 (["create", "--file", "/nowhere"], "/nowhere"), (["create", "--file", "-"], "--file"),
                 (["create", "--file", "-", "--name", "x"], "--file"), (["create", "--name"], "name"),
                 (["create", "--name", "a", "--name", "b"], "name"),
                 (["update", "x", "--category", "CPU"], "--help lists")]
        for arguments, word in cases:
            with self.subTest(arguments):
                self.assertIn(word, self.sentence("template", *arguments, code=USAGE, JOBQ_URL=NOWHERE))
        for text in (b"[]", b"{", b"{} {}"):
            self.sentence("template", "create", "--file", "-", stdin=text, code=USAGE, JOBQ_URL=NOWHERE)


class EndpointVerbsTest(FormTest):
    def created(self, *arguments, **more):
        endpoint = self.json("endpoint", "create", *arguments, **more)
        self.forget_endpoint(endpoint["id"])
        return endpoint

    def test_create_with_everything(self):
        """Each option is the field of its name."""
        template = self.make_template()
        made = self.created(
            "--template", template, "--name", "mine", "--workers-min", "0", "--workers-max", "2", "--idle-timeout",
            "9", "--scaler-type", "REQUEST_COUNT", "--scaler-value", "3", "--execution-timeout", "60000",
            "--max-attempts", "2", "--stop-grace", "100", "--max-stuck", "1", "--isolation", "thread", "--flashboot",
            "true", "--queue-policy", "fifo")
        wanted = {"templateId": template, "name": "mine", "workersMin": 0, "workersMax": 2, "idleTimeout": 9,
                  "scalerType": "REQUEST_COUNT", "scalerValue": 3, "executionTimeoutMs": 60000, "maxAttempts": 2,
                  "stopGraceMs": 100, "maxStuck": 1, "isolation": "thread", "flashboot": True, "queuePolicy": "fifo"}
        self.assertEqual({name: made[name] for name in wanted}, wanted)

    def test_what_is_made_answers_at_once(self):
        """Issue 6: create an endpoint from a template, and call it at once."""
        endpoint = self.created("--file", "-", stdin=json.dumps({"templateId": self.make_template()}).encode())["id"]
        self.assertIn('output:\n{"a":1}\n', self.table("run", endpoint, '{"a":1}', "--sync"))

    def test_show_and_list(self):
        """Every field of the answer; in the list those of the properties file are marked."""
        endpoint = self.make_endpoint(name="shown")
        for path, more in (("", ()), ("?includeWorkers=true", ("--workers",))):
            keys = set(self.server.request("GET", f"/v1/endpoints/{endpoint}{path}").json())
            self.assertEqual(set(self.json("endpoint", "show", endpoint, *more)), keys)
        fields = self.fields("endpoint", "show", endpoint)
        self.assertEqual(set(fields), set(self.json("endpoint", "show", endpoint)))
        self.assertEqual((fields["name"], fields["static"], fields["workersMax"]), ("shown", "false", "1"))
        rows = {row["ID"]: row for row in self.rows("endpoint", "list")}
        self.assertEqual((rows[endpoint]["NAME"], rows[endpoint]["IMAGE"], rows[endpoint]["WORKERS"]),
                         ("shown", "plugin/trial", "1-1"))
        self.assertEqual((rows[endpoint]["FROM"], rows["echo"]["FROM"]), ("template", "file"))
        self.assertEqual(rows["echo"]["TEMPLATE"], "-", "no cell is empty")
        self.assertEqual([entry["id"] for entry in self.json("endpoint", "list")], list(rows))

    def test_show_workers(self):
        """`--workers` shows each worker with its version and state."""
        endpoint = self.make_endpoint()
        self.server.runsync(endpoint, {})
        text = self.table("endpoint", "show", endpoint, "--workers")
        fields, workers = text.rstrip("\n").split("\n\n")
        self.assertNotIn("\nworkers ", fields)
        head, row = workers.splitlines()
        self.assertEqual(head.split(), ["WORKER", "STATE", "VERSION", "IMAGE", "STARTED"])
        worker = self.json("endpoint", "show", endpoint, "--workers")["workers"][0]
        self.assertEqual(row.split()[2:], ["1", "plugin/trial", worker["lastStartedAt"]])

    def test_update(self):
        """An update changes what is given and nothing else."""
        endpoint = self.make_endpoint(name="old")
        before = self.json("endpoint", "show", endpoint)
        after = self.json("endpoint", "update", endpoint, "--name", "new", "--workers-max", "3")
        same = set(before) - {"name", "workersMax", "release", "version"}
        self.assertEqual((after["name"], after["workersMax"]), ("new", 3))
        self.assertEqual({name: after[name] for name in same}, {name: before[name] for name in same})
        self.assertEqual(self.fields("endpoint", "update", endpoint, "--idle-timeout", "7")["idleTimeout"], "7")

    def test_pause_and_resume(self):
        """Jobs of a paused endpoint wait; they run when it is resumed."""
        endpoint = self.make_endpoint()
        self.assertIn("paused", self.table("endpoint", "pause", endpoint))
        self.assertTrue(self.json("endpoint", "pause", endpoint)["paused"])
        job = self.json("run", endpoint, "{}")["id"]
        self.assertEqual(self.json("job", "show", endpoint, job)["queueReason"], "paused")
        row = next(row for row in self.rows("endpoint", "list") if row["ID"] == endpoint)
        self.assertEqual(row["PAUSED"], "yes")
        self.assertIn("no longer", self.table("endpoint", "resume", endpoint))
        self.assertFalse(self.json("endpoint", "resume", endpoint)["paused"])
        self.assertEqual(self.server.finished(endpoint, job)["status"], "COMPLETED")

    def test_delete(self):
        """A second time there is no such endpoint."""
        endpoint = self.make_endpoint()
        self.assertIn(endpoint, self.table("endpoint", "delete", endpoint))
        self.assertIn(endpoint, self.sentence("endpoint", "delete", endpoint, code=REFUSED))
        other = self.make_endpoint(self.make_template(name="other " + self.id()))
        self.assertEqual(self.ctl("endpoint", "delete", other, "--json").stdout, b"", "a 204 has no body")

    def test_refused(self):
        """The server's own sentence."""
        sentence = self.sentence("endpoint", "create", "--workers-min", "2", "--workers-max", "1", code=REFUSED)
        for word in ("templateId", "workersMin"):
            self.assertIn(word, sentence)
        sentence = self.sentence("endpoint", "create", "--idle-timeout", "0", "--scaler-type", "MOOD", code=REFUSED)
        for word in ("idleTimeout", "scalerType"):
            self.assertIn(word, sentence)
        for verb in ("update", "delete", "pause"):
            more = ["--name", "x"] if verb == "update" else []
            self.assertIn("nothing", self.sentence("endpoint", verb, "nothing", *more, code=REFUSED))
        self.assertIn("echo", self.sentence("endpoint", "delete", "echo", code=REFUSED))
        self.sentence("endpoint", "show", "../templates", code=REFUSED)

    def test_wrong_usage(self):
        """Exit code 2, and the sentence names the option; nothing is sent."""
        for arguments, word in ((["create"], "--template"), (["create", "--workers-min", "few"], "--workers-min"),
                                (["update", "x"], "--file"), (["update", "x", "--flashboot", "1"], "--flashboot"),
                                (["show", "x", "--worker=1"], "worker"), (["pause"], "ID")):
            with self.subTest(arguments):
                self.assertIn(word, self.sentence("endpoint", *arguments, code=USAGE, JOBQ_URL=NOWHERE))


if __name__ == "__main__":
    unittest.main()

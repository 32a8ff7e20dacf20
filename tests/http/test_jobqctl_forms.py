"""jobqctl template and endpoint: every command, as a table and as --json, and the messages about wrong input."""

import json

import pytest

from jobqctl_case import NOWHERE, REFUSED, USAGE, FormTest


class TemplateCommandsTest(FormTest):
    def created(self, *arguments, **more):
        template = self.json("template", "create", *arguments, **more)
        self.at_end.callback(self.server.request, "DELETE", f"/v1/templates/{template['id']}")
        return template

    def test_create_with_everything(self):
        """core/http/API.md, "Template": every field open to callers has an option."""
        made = self.created("--name", self.name, "--image", "plugin/echo", "--category", "CPU", "--container-disk", "7",
                            "--volume=0", "--mount-path", "/data", "--registry-auth", "auth", "--entrypoint", "python",
                            "--entrypoint=-u", "--start-cmd", "-m", "--env", "A=1=2", "--env", "B=", "--env",
                            "C=\u00e9 \"x\"", "--port", "8888/http", "--port", "22/tcp", "--readme", "# hello",
                            "--public", "true", "--serverless", "true")
        wanted = {"name": self.name, "imageName": "plugin/echo", "category": "CPU", "containerDiskInGb": 7,
                  "volumeInGb": 0, "volumeMountPath": "/data", "containerRegistryAuthId": "auth",
                  "dockerEntrypoint": ["python", "-u"], "dockerStartCmd": ["-m"],
                  "env": {"A": "1=2", "B": "", "C": "\u00e9 \"x\""}, "ports": ["8888/http", "22/tcp"],
                  "readme": "# hello", "isPublic": True, "isServerless": True}
        assert {name: made[name] for name in wanted} == wanted

    def test_create_from_a_file_and_from_standard_input(self, tmp_path):
        """`--file` brings the whole form, `-` from standard input."""
        form = {"name": self.name, "imageName": "plugin/echo", "env": {"A": "1"}}
        text = json.dumps(form).encode()
        file = tmp_path / "form"
        file.write_bytes(text)
        template = self.created("--file", str(file))
        assert (template["name"], template["env"]) == (self.name, {"A": "1"})
        other = self.created("--file", "-", stdin=text.replace(b'"name": "', b'"name": "other '))
        assert other["name"] == "other " + self.name
        third = self.created("--file", "-", "--name", "third " + self.name, "--env", "B=2", stdin=text)
        assert (third["name"], third["env"]) == ("third " + self.name, {"B": "2"}), "options count before the file"

    def test_show_and_list(self):
        """`template show` has every field of the answer, `template list` a row a template."""
        template = self.make_template(env={"A": "\x1b[31m"})
        answer = self.server.request("GET", f"/v1/templates/{template}")
        assert self.jobqctl("template", "show", template, "--json").stdout == answer.body + b"\n"
        fields = self.fields("template", "show", template)
        assert set(fields) == set(answer.json())
        assert (fields["id"], fields["imageName"], fields["containerDiskInGb"], fields["readme"]) == (
            template, "plugin/trial", "50", "-")
        assert json.loads(fields["env"]) == {"A": "\x1b[31m"}
        row = next(row for row in self.rows("template", "list") if row["ID"] == template)
        assert (row["NAME"], row["IMAGE"], row["CATEGORY"]) == (self.name, "plugin/trial", "NVIDIA")
        assert self.jobqctl("template", "list", "--json").stdout == self.server.request("GET", "/v1/templates").body + b"\n"

    def test_update(self):
        """An update changes only the given fields; an empty text is a text."""
        template = self.make_template(env={"A": "1"}, readme="old")
        before = self.json("template", "show", template)
        after = self.json("template", "update", template, "--env", "B=2", "--readme", "")
        assert after == {**before, "env": {"B": "2"}, "readme": ""}
        assert self.fields("template", "update", template, "--volume", "3")["volumeInGb"] == "3"
        assert self.json("template", "update", template, "--file", "-", stdin=b'{"env":{}}')["env"] == {}

    def test_delete(self):
        """A second deletion finds no such template; a template in use stays."""
        template = self.make_template()
        assert template in self.table("template", "delete", template)
        assert template in self.sentence("template", "delete", template, code=REFUSED)
        other = self.make_template()
        assert self.jobqctl("template", "delete", other, "--json").stdout == b"", "a 204 has no body"
        used = self.make_template(name="used " + self.name)
        endpoint = self.make_endpoint(used)
        assert endpoint in self.sentence("template", "delete", used, code=REFUSED)

    def test_refused(self):
        """The server's own sentences: a sentence for each wrong field, all at once."""
        sentence = self.sentence("template", "create", "--name", "x", "--port", "0/udp", "--volume", "-1", code=REFUSED)
        for word in ("imageName", "ports", "volumeInGb"):
            assert word in sentence
        assert "nothing" in self.sentence("template", "show", "nothing", code=REFUSED)
        assert "nothing" in self.sentence("template", "update", "nothing", "--name", "x", code=REFUSED)

    def test_wrong_usage(self, subtests):
        """Exit code 2, and the sentence names the option; no request is sent."""
        cases = [(["create"], "--file"), (["update", "x"], "--file"), (["create", "--volume", "much"], "--volume"),
                 (["create", "--volume", "1.5"], "--volume"), (["create", "--volume", "007"], "--volume"),
                 (["create", "--volume", ""], "--volume"), (["create", "--public", "yes"], "--public"),
                 (["create", "--env", "A"], "--env"), (["create", "--env", "=1"], "--env"),
                 (["create", "--file", "/nowhere"], "/nowhere"), (["create", "--file", "-"], "--file"),
                 (["create", "--name"], "name"),
                 (["create", "--name", "a", "--name", "b"], "name"),
                 (["update", "x", "--category", "CPU"], "--help lists")]
        for arguments, word in cases:
            with subtests.test(arguments):
                assert word in self.sentence("template", *arguments, code=USAGE, JOBQ_URL=NOWHERE)
        for text in (b"[]", b"{", b"{} {}"):
            self.sentence("template", "create", "--file", "-", stdin=text, code=USAGE, JOBQ_URL=NOWHERE)


class EndpointCommandsTest(FormTest):
    def created(self, *arguments, **more):
        endpoint = self.json("endpoint", "create", *arguments, **more)
        self.forget_endpoint(endpoint["id"])
        return endpoint

    def test_create_with_everything(self):
        """Each option sets the field of the same name."""
        template = self.make_template()
        made = self.created(
            "--template", template, "--name", "mine", "--workers-min", "0", "--workers-max", "2", "--idle-timeout",
            "9", "--scaler-type", "REQUEST_COUNT", "--scaler-value", "3", "--execution-timeout", "60000",
            "--max-attempts", "2", "--stop-grace", "100", "--max-stuck", "1", "--isolation", "thread", "--flashboot",
            "true", "--queue-policy", "fifo",
            "--max-queued", "9")
        wanted = {"templateId": template, "name": "mine", "workersMin": 0, "workersMax": 2, "idleTimeout": 9,
                  "scalerType": "REQUEST_COUNT", "scalerValue": 3, "executionTimeoutMs": 60000, "maxAttempts": 2,
                  "stopGraceMs": 100, "maxStuck": 1, "isolation": "thread", "flashboot": True, "queuePolicy": "fifo", "maxQueued": 9}
        assert {name: made[name] for name in wanted} == wanted

    def test_an_endpoint_in_one_call(self):
        made = self.created("--image", "plugin/echo", "--id", "in-one-call")
        self.at_end.callback(self.server.request, "DELETE", f"/v1/templates/{made['templateId']}")
        assert (made["id"], made["image"]) == ("in-one-call", "plugin/echo")
        assert "--id ID" not in self.table("endpoint", "update", "--help")

    def test_filters(self):
        """`--filters` names the filters in order; an empty text is no filter."""
        endpoint = self.created("--template", self.make_template(), "--filters", "size_limit, require_fields")["id"]
        shown = self.json("endpoint", "show", endpoint)
        assert shown["filters"] == shown["inForce"]["filters"] == ["size_limit", "require_fields"]
        assert self.json("endpoint", "update", endpoint, "--filters", "")["filters"] == []
        reset = self.json("endpoint", "update", endpoint, "--file", "-", stdin=b'{"filters":null}')
        assert (reset["filters"], reset["inForce"]["filters"]) == (None, [])

    def test_values_in_force(self):
        """`endpoint show` has the value in force for each field not set by the endpoint."""
        template = self.make_template()
        shown = self.json("endpoint", "show", self.make_endpoint(template))
        assert (shown["queuePolicy"], shown["maxStuck"], shown["retention"]) == ("", None, {})
        assert shown["inForce"] == {"queuePolicy": "priority", "filters": [], "maxStuck": 1, "maxQueued": 1_000_000,
                                    "retention": {"run": 1800000, "runsync": 60000, "failed": 0},
                                    "webhookRetries": {"attempts": 3, "pause": 10_000, "factor": 1}}
        rules = {"queuePolicy": "fifo", "maxStuck": 0, "maxQueued": 7,
                 "retention": {"run": 5000, "failed": 86_400_000}, "webhookRetries": {"attempts": 8, "factor": 3}}
        own = self.json("endpoint", "show", self.make_endpoint(template, **rules))
        assert own["inForce"] == {"queuePolicy": "fifo", "filters": [], "maxStuck": 0, "maxQueued": 7,
                                  "retention": {"run": 5000, "runsync": 60000, "failed": 86_400_000},
                                  "webhookRetries": {"attempts": 8, "pause": 10_000, "factor": 3}}

    def test_a_new_endpoint_answers_at_once(self):
        """An endpoint is created from a template and called at once."""
        endpoint = self.created("--file", "-", stdin=json.dumps({"templateId": self.make_template()}).encode())["id"]
        assert 'output:\n{"a":1}\n' in self.table("run", endpoint, '{"a":1}', "--sync")

    def test_show_and_list(self):
        """Every field of the answer; in the list the endpoints of the properties file are marked."""
        endpoint = self.make_endpoint(name="shown")
        for path, more in (("", ()), ("?includeWorkers=true", ("--workers",))):
            keys = set(self.server.request("GET", f"/v1/endpoints/{endpoint}{path}").json())
            assert set(self.json("endpoint", "show", endpoint, *more)) == keys
        fields = self.fields("endpoint", "show", endpoint)
        assert set(fields) == set(self.json("endpoint", "show", endpoint))
        assert (fields["name"], fields["static"], fields["workersMax"]) == ("shown", "false", "1")
        rows = {row["ID"]: row for row in self.rows("endpoint", "list")}
        assert (rows[endpoint]["NAME"], rows[endpoint]["IMAGE"], rows[endpoint]["WORKERS"]) == (
            "shown", "plugin/trial", "1-1")
        assert (rows[endpoint]["FROM"], rows["echo"]["FROM"]) == ("template", "file")
        assert rows["echo"]["TEMPLATE"] == "-", "no cell is empty"
        assert [entry["id"] for entry in self.json("endpoint", "list")] == list(rows)

    def test_show_workers(self):
        """`--workers` shows the version and the state of each worker."""
        endpoint = self.make_endpoint()
        self.server.runsync(endpoint, {})
        text = self.table("endpoint", "show", endpoint, "--workers")
        fields, workers = text.rstrip("\n").split("\n\n")
        assert "\nworkers " not in fields
        head, row = workers.splitlines()
        assert head.split() == ["WORKER", "STATE", "VERSION", "IMAGE", "STARTED", "NODE"]
        worker = self.json("endpoint", "show", endpoint, "--workers")["workers"][0]
        assert row.split()[2:] == ["1", "plugin/trial", worker["lastStartedAt"], worker["node"]]

    def test_update(self):
        """An update changes only the given fields."""
        endpoint = self.make_endpoint(name="old")
        before = self.json("endpoint", "show", endpoint)
        after = self.json("endpoint", "update", endpoint, "--name", "new", "--workers-max", "3")
        same = set(before) - {"name", "workersMax", "inForce", "release", "version"}
        assert (after["name"], after["workersMax"]) == ("new", 3)
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
        assert self.fields("endpoint", "update", endpoint, "--idle-timeout", "7")["idleTimeout"] == "7"

    def test_pause_and_resume(self):
        """Jobs of a paused endpoint wait, and run when the endpoint is resumed."""
        endpoint = self.make_endpoint()
        assert "paused" in self.table("endpoint", "pause", endpoint)
        assert self.json("endpoint", "pause", endpoint)["paused"]
        job = self.json("run", endpoint, "{}")["id"]
        assert self.json("job", "show", endpoint, job)["queueReason"] == "paused"
        row = next(row for row in self.rows("endpoint", "list") if row["ID"] == endpoint)
        assert row["PAUSED"] == "yes"
        assert "no longer" in self.table("endpoint", "resume", endpoint)
        assert not self.json("endpoint", "resume", endpoint)["paused"]
        assert self.server.finished(endpoint, job)["status"] == "COMPLETED"

    def test_delete(self):
        """A second time there is no such endpoint."""
        endpoint = self.make_endpoint()
        assert endpoint in self.table("endpoint", "delete", endpoint)
        assert endpoint in self.sentence("endpoint", "delete", endpoint, code=REFUSED)
        other = self.make_endpoint(self.make_template(name="other " + self.name))
        assert self.jobqctl("endpoint", "delete", other, "--json").stdout == b"", "a 204 has no body"

    def test_refused(self):
        """The server's own sentence."""
        sentence = self.sentence("endpoint", "create", "--workers-min", "2", "--workers-max", "1", code=REFUSED)
        for word in ("templateId", "workersMin"):
            assert word in sentence
        sentence = self.sentence("endpoint", "create", "--idle-timeout", "0", "--scaler-type", "MOOD", code=REFUSED)
        for word in ("idleTimeout", "scalerType"):
            assert word in sentence
        for command in ("update", "delete", "pause"):
            more = ["--name", "x"] if command == "update" else []
            assert "nothing" in self.sentence("endpoint", command, "nothing", *more, code=REFUSED)
        assert "echo" in self.sentence("endpoint", "delete", "echo", code=REFUSED)
        self.sentence("endpoint", "show", "../templates", code=REFUSED)

    @pytest.mark.parametrize("arguments, word", [
        (["create"], "--image"), (["create", "--workers-min", "few"], "--workers-min"), (["update", "x"], "--file"),
        (["update", "x", "--flashboot", "1"], "--flashboot"), (["show", "x", "--worker=1"], "worker"),
        (["pause"], "ID"), (["show", ""], "empty")])
    def test_wrong_usage(self, arguments, word):
        """Exit code 2, and the sentence names the option; no request is sent."""
        assert word in self.sentence("endpoint", *arguments, code=USAGE, JOBQ_URL=NOWHERE)

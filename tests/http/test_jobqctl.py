"""jobqctl: keys, plugins, one job; its help and wrong usage.

Templates, endpoints, releases, the queue and the live view have their own files beside this one."""

import functools
import subprocess

import pytest

from early_refusal import run_unbroken
from jobq_server import until
from jobqctl_case import NOT_COMPLETED, NOWHERE, REFUSED, UNREACHABLE, USAGE, JobqctlTest

COMMANDS = {"me": "", "key create": "NAME", "key list": "", "key revoke": "ID", "plugin list": "", "plugin describe": "NAME",
            "template list": "", "template show": "ID", "template create": "", "template update": "ID",
            "template delete": "ID", "endpoint list": "", "endpoint show": "ID", "endpoint create": "",
            "endpoint update": "ID", "endpoint delete": "ID", "endpoint pause": "ID", "endpoint resume": "ID",
            "release status": "[ENDPOINT]", "run": "ENDPOINT JSON", "job list": "ENDPOINT", "job show": "ENDPOINT JOB",
            "job stream": "ENDPOINT JOB", "job cancel": "ENDPOINT JOB", "job retry": "ENDPOINT JOB",
            "requests": "ENDPOINT", "status": "ENDPOINT JOB", "cancel": "ENDPOINT JOB", "retry": "ENDPOINT JOB",
            "purge": "ENDPOINT", "health": "[ENDPOINT]", "top": "[ENDPOINT]", "webhook list": "", "webhook replay": "ID",
            "backup": "DIR", "completion": "SHELL"}


class KeyCommandsTest(JobqctlTest):
    def create(self, *arguments):
        key = self.json("key", "create", *arguments)
        self.at_end.callback(self.server.request, "DELETE", f"/v1/keys/{key['id']}")
        return key

    def test_create(self):
        """core/http/API.md, "Keys over REST": `POST /v1/keys {name, scopes, endpoints, expiresAt}`; a client key by
        default."""
        key = self.create("plain")
        assert (key["name"], key["scopes"]) == ("plain", ["client"])
        assert (key["endpoints"], key["expiresAt"]) == ([], None)
        assert self.server.request("GET", "/v2/echo/health", key=key["key"]).status == 200

    def test_create_with_everything(self):
        """core/http/API.md, "Keys over REST": scopes, endpoints and expiry."""
        key = self.create('a "name" \u00e9', "--scope", "client", "--scope=worker", "--endpoint", "echo", "--endpoint",
                          "trial", "--expires", "2099-01-01T00:00:00Z")
        assert key["name"] == 'a "name" \u00e9'
        assert (sorted(key["scopes"]), sorted(key["endpoints"])) == (["client", "worker"], ["echo", "trial"])
        assert key["expiresAt"].startswith("2099-01-01T00:00:00")

    def test_create_for_people(self):
        """The table shows the key, and says that it is the only time."""
        text = self.table("key", "create", "for-people", "--scope", "admin")
        fields = dict(line.split(None, 1) for line in text.split("\n\n")[0].splitlines())
        self.at_end.callback(self.server.request, "DELETE", f"/v1/keys/{fields['id']}")
        assert (fields["name"], fields["scopes"], fields["endpoints"], fields["expires"]) == (
            "for-people", "admin", "all", "-")
        assert self.server.request("GET", "/v1/keys", key=fields["key"]).status == 200
        assert "only" in text

    def test_create_refused(self):
        """Exit code 1 and the server's own sentence when the server says no."""
        assert "scopes" in self.sentence("key", "create", "x", "--scope", "root", code=REFUSED)
        assert "expiresAt" in self.sentence("key", "create", "x", "--expires", "tomorrow", code=REFUSED)

    def test_list(self):
        """core/http/API.md, "Keys over REST": `GET /v1/keys`."""
        key = self.create("listed")
        rows = self.table("key", "list").splitlines()
        assert rows[0].split("  ")[0] == "ID"
        row = next(row for row in rows if key["id"] in row)
        for word in ("listed", "client", "all", key["createdAt"]):
            assert word in row
        assert key["key"] not in "\n".join(rows)
        answer = self.server.request("GET", "/v1/keys")
        assert {entry["id"] for entry in self.json("key", "list")} == {entry["id"] for entry in answer.json()}

    def test_names_cannot_steer_the_terminal(self):
        """A table shows control characters as ?, because a key's name is anybody's text."""
        key = self.create("red \x1b[31m \u009b2J text\nline")
        text = self.table("key", "list")
        assert "\x1b" not in text
        assert "\u009b" not in text
        assert "red ?[31m ?2J text?line" in next(row for row in text.splitlines() if key["id"] in row)

    def test_revoke(self):
        """core/http/API.md, "Keys over REST": `DELETE /v1/keys/{id}`; a second time there is no such key."""
        key = self.create("revoked")
        assert key["id"] in self.table("key", "revoke", key["id"])
        assert self.server.request("GET", "/v2/echo/health", key=key["key"]).status == 401
        self.sentence("key", "revoke", key["id"], code=REFUSED)
        other = self.create("revoked too")
        assert self.jobqctl("key", "revoke", other["id"], "--json").stdout == b"", "a 204 has no body"

    def test_own_key(self):
        """`jobqctl me` shows the key in use, and a bound key may ask."""
        key = self.create("reader", "--scope", "read", "--scope", "monitor", "--endpoint", "echo")
        shown = self.json("me", JOBQ_KEY=key["key"])
        assert shown == {name: key[name] for name in ("id", "name", "scopes", "endpoints", "expiresAt")}
        assert "monitor,read" in self.table("me", JOBQ_KEY=key["key"])

    def test_an_id_is_one_segment_of_the_path(self):
        """An id is data and cannot turn the request into another request."""
        key = self.create("kept")
        for word in (f"x/../{key['id']}", f"{key['id']}/", f"{key['id']}?x", f"%2e%2e/{key['id']}", " ", "\u00e9"):
            self.sentence("key", "revoke", word, code=REFUSED)
        assert self.server.request("GET", "/v2/echo/health", key=key["key"]).status == 200


class NodeCommandsTest(JobqctlTest):
    def test_list(self):
        """core/http/API.md, "Plugins and nodes": a server with a storage of its own is its only node."""
        answer = self.server.request("GET", "/v1/nodes")
        (node,) = answer.json()
        assert (node["self"], node["alive"], node["epoch"]) == (True, True, 1)
        assert node["beatAge"] >= 0 and node["name"]
        rows = self.table("node", "list").splitlines()
        assert rows[1].split()[:4] == [node["name"], "yes", "yes", "no"], rows
        assert self.jobqctl("node", "list", "--json").returncode == 0

    def test_drain(self):
        """core/http/API.md, "Plugins and nodes": a server that drains is not ready; its jobs wait until it resumes."""
        (node,) = self.server.request("GET", "/v1/nodes").json()
        assert "drains" in self.table("node", "drain", node["name"])
        until(lambda: self.server.request("GET", "/readyz").status == 503, "the server drains")
        (drained,) = self.server.request("GET", "/v1/nodes").json()
        assert drained["draining"] is True
        job = self.server.request("POST", "/v2/echo/run", b'{"input":{}}').json()["id"]
        assert self.json("node", "resume", node["name"])["draining"] is False
        until(lambda: self.server.request("GET", f"/v2/echo/status/{job}").json()["status"] == "COMPLETED",
              "the job runs after the drain")
        self.sentence("node", "drain", "unknown", code=REFUSED)


class PluginCommandsTest(JobqctlTest):
    def test_list(self):
        """core/http/API.md, "Plugins and nodes": `GET /v1/plugins` lists plugins with state and reason."""
        rows = self.table("plugin", "list").splitlines()
        assert rows[0].split() == ["FILE", "STATE", "KIND", "NAME", "VERSION", "SELECTED", "REASON"]
        words = [row.split() for row in rows[1:]]
        assert any(row[1:4] == ["loaded", "storage", "sqlite"] for row in words), rows
        assert self.jobqctl("plugin", "list", "--json").stdout == self.server.request("GET", "/v1/plugins").body + b"\n"

    def test_describe(self):
        """core/http/API.md, "Plugins and nodes": the declared table is printed by `jobqctl plugin describe`."""
        text = self.table("plugin", "describe", "sqlite")
        assert "KEY" in text
        entry = self.json("plugin", "describe", "storage.sqlite")
        assert (entry["kind"], entry["name"]) == ("storage", "sqlite")
        for option in entry["options"]:
            assert option["key"] in text
            assert option["help"] in text
            assert option["value"] == option["default"], "nothing is set"

    def test_describe_values_in_force(self, own_server):
        """A configured value is shown beside the default."""
        self.server = own_server(storage__sqlite__log="8MB")
        option = next(option for option in self.json("plugin", "describe", "sqlite")["options"]
                      if option["key"] == "storage.sqlite.log")
        assert (option["value"], option["default"]) == ("8MB", "64MB")
        assert " 8MB " in self.table("plugin", "describe", "sqlite")

    def test_describe_without_options(self):
        """A plugin that declares nothing is described too."""
        assert "no options" in self.table("plugin", "describe", "trial")

    def test_describe_unknown(self):
        """Exit code 1: the server has no such plugin."""
        assert "nothing" in self.sentence("plugin", "describe", "nothing", code=REFUSED)


class JobCommandsTest(JobqctlTest):
    RAW = b'{"b": 1.0,"a":[-0,1e400,12345678901234567890123],"s":"\\u2028\xe2\x80\xa8"}'

    def test_run_and_status(self):
        """core/http/API.md, "/run" and "/status": `/run`, then `/status`."""
        job = self.json("run", "echo", '{"a":1}')
        assert set(job) == {"id", "status"}
        end = self.server.finished("echo", job["id"])
        assert self.json("status", "echo", job["id"]).items() >= end.items()
        text = self.table("status", "echo", job["id"])
        for word in (job["id"], "COMPLETED", end["workerId"], 'output:\n{"a":1}\n'):
            assert word in text
        assert "IN_QUEUE" in self.table("run", "echo", "{}")

    def test_run_sync(self):
        """core/http/API.md, "Answers": the output is printed byte for byte."""
        text = self.jobqctl("run", "echo", self.RAW, "--sync").stdout
        assert b"output:\n" + self.RAW + b"\n" in text
        assert b'"output":' + self.RAW in self.jobqctl("run", "echo", self.RAW, "--sync", "--json").stdout

    def test_input_from_standard_input_and_from_a_file(self, tmp_path):
        """`-` is standard input, `@FILE` a file."""
        assert self.RAW in self.jobqctl("run", "echo", "-", "--sync", stdin=self.RAW + b"\n").stdout
        file = tmp_path / "input"
        file.write_bytes(self.RAW)
        assert self.RAW in self.jobqctl("run", "echo", f"@{file}", "--sync").stdout
        assert "nowhere" in self.sentence("run", "echo", "@/nowhere", code=USAGE)

    def test_large_input(self):
        """core/http/API.md, "Bounds of heads and bodies": `/runsync` takes 20 MB; a larger body is 413."""
        large = b'{"v":"' + b"x" * (19 * 1024 * 1024) + b'"}'
        answer = self.jobqctl("run", "echo", "-", "--sync", "--json", stdin=large).stdout
        assert large in answer
        run = functools.partial(run_unbroken, broken=[UNREACHABLE])
        self.sentence("run", "echo", "-", stdin=large, code=REFUSED, run=run)

    @pytest.mark.parametrize("text", [
        "", "{", "[]", "null", '"x"', "{} x", '{},"webhook":"http://x.example/"', '{"a":1,}'])
    def test_input_other_than_an_object(self, text):
        """Wrong usage, found before anything is sent; text that would add members to the request is not sent either."""
        self.sentence("run", "echo", text, code=USAGE, JOBQ_URL=NOWHERE)

    def test_run_sync_of_a_failing_job(self):
        """Exit code 4 when the job did not end COMPLETED, with the job's own error."""
        text = self.table("run", "trial", '{"fail":"no \\u001b[31m luck"}', "--sync", code=NOT_COMPLETED)
        assert "FAILED" in text
        assert "no ?[31m luck" in text
        assert self.json("run", "trial", '{"fail":"x"}', "--sync", code=NOT_COMPLETED)["error"] == "x"

    def test_run_sync_of_a_job_longer_than_the_wait(self):
        """Exit code 4 when `--wait` elapsed; the wait goes to the server, which judges its range."""
        job = self.json("run", "parked", "{}", "--sync", "--wait", "1000", code=NOT_COMPLETED)
        assert job["status"] == "IN_QUEUE"
        job = self.json("run", "trial", '{"sleepMs":600000}', "--sync", "--wait", "1000", code=NOT_COMPLETED)
        assert job["status"] in ("IN_QUEUE", "IN_PROGRESS"), "no bound on the time until a worker takes the job"
        until(lambda: self.server.status("trial", job["id"])["status"] == "IN_PROGRESS", "the job goes on")
        self.json("cancel", "trial", job["id"])
        assert "wait" in self.sentence("run", "echo", "{}", "--sync", "--wait", "999", code=REFUSED)

    def test_cancel_and_retry(self):
        """core/http/API.md, "/cancel" and "/retry": the answers have only `id` and `status`."""
        job = self.json("run", "parked", "{}")["id"]
        assert self.json("cancel", "parked", job) == {"id": job, "status": "CANCELLED"}
        assert "CANCELLED" in self.sentence("retry", "parked", job, code=REFUSED)
        failed = self.server.finished("trial", self.server.run("trial", {"fail": "no"}))["id"]
        assert "IN_QUEUE" in self.table("retry", "trial", failed)
        assert self.server.finished("trial", failed)["retries"] == 1

    def test_refusals(self):
        """Exit code 1 with the server's sentence: unknown endpoint, unknown job, wrong key."""
        assert "nothing" in self.sentence("run", "nothing", "{}", code=REFUSED)
        self.sentence("status", "echo", "nothing", code=REFUSED)
        self.sentence("health", "../echo", code=REFUSED)
        self.sentence("health", "echo", code=REFUSED, JOBQ_KEY="wrong")
        self.sentence("health", "echo", code=REFUSED, JOBQ_KEY=None)

    def test_health(self):
        """core/http/API.md, "/health": every counter by its name."""
        text = self.table("health", "echo")
        health = self.json("health", "echo")
        for group, counters in health.items():
            assert group in text
            for name in counters:
                assert name in text
        assert set(health) == {"jobs", "webhooks", "workers"}


class UsageTest(JobqctlTest):
    def test_help(self):
        """`--help` for the program and for each command, without a server."""
        text = self.table("--help", JOBQ_URL=None)
        for command, arguments in COMMANDS.items():
            assert f"{command} {arguments}".strip() in text
            own = self.table(*command.split(), "--help", JOBQ_URL=None)
            assert own.startswith(f"usage: jobqctl {command} {arguments}".strip()), own
            for option in ("--url", "--key", "--json"):
                assert option in own
        assert "--scope" in self.table("key", "create", "--help")
        assert "--wait" in self.table("run", "--help")

    @pytest.mark.parametrize("line, completed", [
        ("jobqctl templ", ["template"]), ("jobqctl key ", ["create", "list", "revoke"]),
        ("jobqctl endpoint pau", ["pause"]), ("jobqctl key create x --sc", ["--scope"]),
        ("jobqctl run echo --key k --wa", ["--wait"]), ("jobqctl top --on", ["--once"])])
    def test_completion(self, line, completed, tmp_path):
        """`completion bash` is a script for bash: it completes commands and their options."""
        script = tmp_path / "completion"
        script.write_text(self.table("completion", "bash", JOBQ_URL=None))
        words = line.split(" ")
        body = (f'source {script}; COMP_WORDS=({" ".join(words[:-1])} "{words[-1]}"); COMP_CWORD={len(words) - 1}; '
                '_jobqctl; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", body], capture_output=True, text=True, check=True, cwd=tmp_path,
                              timeout=60)
        assert done.stdout.split() == completed, done.stderr

    def test_help_of_a_group(self):
        """`GROUP --help` lists the group's commands alone; `help ...` is `... --help`."""
        text = self.table("template", "--help", JOBQ_URL=None)
        for command in COMMANDS:
            assert (f"  {command} " in text) == command.startswith("template "), text
        assert self.table("help", "template") == text
        assert self.table("help") == self.table("--help")
        assert self.table("help", "key", "create") == self.table("key", "create", "--help")
        self.sentence("help", "bogus", code=USAGE)

    @pytest.mark.parametrize("arguments", [
        [], ["bogus"], ["key"], ["key", "bogus"], ["keys", "list"], ["key", "create"], ["key", "create", "a", "b"],
        ["key", "list", "x"], ["key", "revoke"], ["plugin"], ["plugin", "describe"], ["run"], ["run", "echo"],
        ["run", "echo", "{}", "x"], ["status", "echo"], ["health", "echo", "x"], ["key", "list", "--bogus"],
        ["key", "create", "x", "--scope"], ["key", "list", "--scope", "client"], ["key", "list", "--json=1"],
        ["run", "echo", "{}", "--wait", "1000"], ["run", "echo", "{}", "--sync", "--wait", "soon"],
        ["run", "echo", "{}", "--sync", "--wait", ""], ["key", "list", "--url", "ftp://x"],
        ["key", "list", "--url", ""], ["key", "list", "--url", "127.0.0.1:8000"], ["template"], ["template", "show"],
        ["endpoint", "show", "a", "b"], ["top", "a", "b"], ["job"], ["release"], ["release", "status", "a", "b"],
        ["release", "status", "--timeout", "1s"], ["release", "status", "--wait", "--timeout", "soon"],
        ["release", "status", "--wait=1"], ["job", "list"], ["job", "stream", "echo"], ["webhook", "list"],
        ["webhook", "replay"], ["purge"], ["key", "list", "--key", "two words"],
        ["key", "list", "--key", "a\r\nHost: x"]])
    def test_wrong_usage(self, arguments):
        """Exit code 2 and one sentence; nothing is sent."""
        self.sentence(*arguments, code=USAGE, JOBQ_URL=NOWHERE)

    def test_options_and_environment(self):
        """JOBQ_URL and JOBQ_KEY, and --url and --key before them, wherever they stand."""
        url, key = self.server.url, self.server.key
        self.table("--url", url, "health", "echo", "--key", key, JOBQ_URL=NOWHERE, JOBQ_KEY="wrong")
        self.table("health", f"--url={url}/", "--json", "echo", JOBQ_URL=None)
        self.table("health", "echo", "--url", url.replace("http", "HTTP", 1), JOBQ_URL=None)

    def test_json_is_the_servers_answer(self):
        """--json is the server's answer byte for byte, and a line end, so that answers are lines of a file."""
        job = self.server.run("echo", {"a": 1.5})
        self.server.finished("echo", job)
        answer = self.server.request("GET", f"/v2/echo/status/{job}?include=times").body
        assert self.jobqctl("status", "echo", job, "--json").stdout == answer + b"\n"

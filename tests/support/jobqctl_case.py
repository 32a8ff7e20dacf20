"""A test that runs jobqctl against a server, with the admin's key."""

import json
import os
import re
import subprocess

from http_case import HttpTest
from jobq_server import JOBQCTL

OK, REFUSED, USAGE, UNREACHABLE, NOT_COMPLETED, HALTED, WAIT_ELAPSED = range(7)
NOWHERE = "http://127.0.0.1:1"  # address for calls that jobqctl must not send


class JobqctlTest(HttpTest):
    def environment(self, **changes):
        known = {"PATH": os.environ["PATH"], "JOBQ_URL": self.server.url, "JOBQ_KEY": self.server.key, **changes}
        return {name: value for name, value in known.items() if value is not None}

    def jobqctl(self, *arguments, code=OK, stdin=None, run=subprocess.run, **environment):
        """Runs jobqctl, checks the exit code and the place of the output, and returns the finished process."""
        done = run([JOBQCTL, *arguments], input=stdin or b"", capture_output=True, check=False, timeout=60,
                   env=self.environment(**environment))
        assert done.returncode == code, done.stdout + done.stderr
        if code in (REFUSED, USAGE, UNREACHABLE):
            assert done.stdout == b""
            assert re.search(r"\Ajobqctl: [^\n]+\n\Z", done.stderr.decode()), "one sentence"
        elif code != NOT_COMPLETED:
            assert done.stderr == b""
        return done

    def table(self, *arguments, **more):
        return self.jobqctl(*arguments, **more).stdout.decode()

    def sentence(self, *arguments, code, **more):
        return self.jobqctl(*arguments, code=code, **more).stderr.decode()

    def json(self, *arguments, **more):
        return json.loads(self.jobqctl(*arguments, "--json", **more).stdout)

    def rows(self, *arguments, **more):
        """A table with a head, as a dict for each row. Columns are two blanks apart."""
        lines = self.table(*arguments, **more).split("\n\n")[0].splitlines()
        starts = [i for i, c in enumerate(lines[0]) if c != " " and (i == 0 or lines[0][i - 2:i] == "  ")]
        spans = list(zip(starts, starts[1:] + [None]))
        names = [lines[0][a:b].strip() for a, b in spans]
        return [dict(zip(names, [line[a:b].strip() for a, b in spans])) for line in lines[1:]]

    def fields(self, *arguments, **more):
        """A table of names and values, as a dict."""
        lines = self.table(*arguments, **more).split("\n\n")[0].splitlines()
        return dict((line.split(None, 1) + [""])[:2] for line in lines)


class FormTest(JobqctlTest):
    """Makes templates and endpoints, and deletes both at the end of the test."""

    def make_template(self, image="plugin/trial", **fields):
        answer = self.server.request("POST", "/v1/templates", {"name": self.name, "imageName": image, **fields})
        assert answer.status == 200, answer.body
        template = answer.json()["id"]
        self.at_end.callback(self.server.request, "DELETE", f"/v1/templates/{template}")
        return template

    def make_endpoint(self, template=None, **fields):
        body = {"templateId": template or self.make_template(), "workersMin": 1, "workersMax": 1, **fields}
        answer = self.server.request("POST", "/v1/endpoints", body)
        assert answer.status == 200, answer.body
        self.forget_endpoint(answer.json()["id"])
        return answer.json()["id"]

    def forget_endpoint(self, endpoint):
        self.at_end.callback(self.server.request, "DELETE", f"/v1/endpoints/{endpoint}")

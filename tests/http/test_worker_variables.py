"""`jobqctl worker env --format`: the variables of remote workers as files of other programs."""

import re
import shlex
import subprocess

from jobq_server import JOBQCTL
from jobqctl_case import USAGE, JobqctlTest
from pace import HANG
from plane_case import PlaneTest


class VariablesTest(PlaneTest, JobqctlTest):
    def variables(self, kind, *options):
        return self.table("worker", "env", "remote", "--worker-key", "k", "--format", kind, *options)

    def test_formats(self):
        """etc/workers.md: a file names no worker unless the caller does, because many processes may read the file."""
        take = f"RUNPOD_WEBHOOK_GET_JOB={self.server.url}/v2/remote/job-take/$ID?gpu=none"
        *exports, guard = self.variables("export").splitlines()
        assert re.fullmatch(r"# Start the worker with /\S+/jobq-guard -- PROGRAM, and its child processes end with it.", guard)
        exported = dict(shlex.split(line)[1].split("=", 1) for line in exports)
        name = exported.pop("RUNPOD_POD_ID")
        plain = self.variables("env").splitlines()
        assert take in plain
        assert dict(line.split("=", 1) for line in plain) == exported
        assert f"RUNPOD_POD_ID={name}" in self.variables("env", "--worker", name).splitlines()
        *systemd, guard = self.variables("systemd").splitlines()
        assert re.fullmatch(r"# ExecStart=/\S+/jobq-guard -- PROGRAM", guard)
        assert [shlex.split(line)[0] for line in systemd] == plain
        assert all(re.fullmatch(r'[A-Z_]+="[^"\\]*"', line) for line in systemd)

    def test_a_shell_reads_all_variables_without_quotes(self):
        """`eval $(...)` joins the lines, and the comment is the last one."""
        script = 'eval $("$JOBQCTL" worker env remote --worker-key k --worker w-1); echo "$RUNPOD_POD_ID $RUNPOD_AI_API_KEY"'
        shown = subprocess.run(["sh", "-c", script], env=self.environment(JOBQCTL=JOBQCTL), capture_output=True, check=True,
                               timeout=HANG)
        assert shown.stdout == b"w-1 k\n"

    def test_kubernetes(self):
        """Each worker has the name of the pod."""
        lines = self.variables("k8s").splitlines()
        assert lines[0] == "env:"
        assert lines[1:3] == ["  - name: RUNPOD_WEBHOOK_GET_JOB",
                              f'    value: "{self.server.url}/v2/remote/job-take/$ID?gpu=none"']
        at = lines.index("  - name: RUNPOD_POD_ID")
        assert lines[at + 1:at + 4] == ["    valueFrom:", "      fieldRef:", "        fieldPath: metadata.name"]
        named = self.variables("k8s", "--worker", "w-1").splitlines()
        assert named[named.index("  - name: RUNPOD_POD_ID") + 1] == '    value: "w-1"'

    def test_an_unknown_format(self):
        """The refusal comes before a key is made."""
        keys = len(self.server.request("GET", "/v1/keys").json())
        sentence = self.sentence("worker", "env", "remote", "--format", "yaml", code=USAGE)
        assert "--format takes export, env, systemd or k8s" in sentence
        assert len(self.server.request("GET", "/v1/keys").json()) == keys

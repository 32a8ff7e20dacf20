"""core/decisions/auth.md; core/decisions/endpoints.md: stored templates and endpoints over a restart and over kill -9,
without a secret in clear."""

import os
import re

import pytest

from management_api import ManagementTest

TEMPLATE = {"category": "AMD", "containerDiskInGb": 7, "dockerStartCmd": ["a"], "env": {"A": "ä\n"}, "isPublic": True,
            "isServerless": True, "ports": [], "readme": "# r", "volumeInGb": 0, "volumeMountPath": "/d"}
ENDPOINT = {"name": "kept", "workersMax": 2, "idleTimeout": 9, "scalerType": "REQUEST_COUNT", "scalerValue": 3,
            "computeType": "CPU", "gpuTypeIds": ["a", "b"], "maxStuck": 1, "queuePolicy": "priority",
            "retention": {"run": 5_000}, "rateLimits": {"run": {"windowMs": 5, "perWorker": 0}}}


class KeptTest(ManagementTest):
    @pytest.fixture(autouse=True)
    def kept_server(self, question, own_server):
        self.server = own_server()

    def crash(self):
        self.server.kill()
        self.server.start()

    def all(self):
        """Returns the stored records: endpoints of the file are as old as the server's process."""
        endpoints = self.call("GET", "/endpoints?includeTemplate=true")
        return self.call("GET", "/templates"), [each for each in endpoints if each["templateId"]]


class SecretTest(KeptTest):
    def assert_not_kept(self, *secrets):
        """In no file of the data directory, and not in the log."""
        for folder, _, names in os.walk(self.server.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                for secret in secrets:
                    assert secret.encode() not in content, name
        for secret in secrets:
            assert secret not in self.server.log()

    def test_env(self):
        """core/decisions/auth.md: a template's `env` is encrypted at rest: names, values, and former values."""
        template = self.new_template(env={"TOKEN_NAME": "env-secret-1c9b"})
        self.call("PATCH", "/templates/" + template["id"], {"env": {"TOKEN_NAME": "second-secret-77"}})
        endpoint = self.new_endpoint(template)
        assert self.server.runsync(endpoint["id"], {"output": 1})["output"] == 1
        secrets = ("env-secret-1c9b", "second-secret-77", "TOKEN_NAME")
        self.assert_not_kept(*secrets)
        self.server.restart()
        self.assert_not_kept(*secrets)
        assert self.call("GET", "/templates/" + template["id"])["env"] == {"TOKEN_NAME": "second-secret-77"}

    def test_webhook_secret(self):
        """core/decisions/auth.md: webhook secrets are encrypted at rest, and in no answer."""
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        endpoint = self.new_endpoint(webhookSecret=secret)
        for path in ("/endpoints", "/endpoints/" + endpoint["id"] + "?includeTemplate=true&includeWorkers=true"):
            assert secret[6:] not in str(self.call("GET", path))
        assert secret[6:] not in str(self.call("PATCH", "/endpoints/" + endpoint["id"], {"webhookSecret": secret}))
        self.assert_not_kept(secret, secret[6:])
        self.server.restart()
        self.assert_not_kept(secret, secret[6:])

    def test_refused_values(self):
        """core/decisions/auth.md: a refused secret is in no file."""
        for method, path, body in (("POST", "/templates", {"name": "", "imageName": "x", "env": {"A": "kept-not-18"}}),
                                   ("POST", "/endpoints", {"templateId": "x", "webhookSecret": "kept-not-18"})):
            assert self.server.request(method, "/v1" + path, body).status == 400
        self.assert_not_kept("kept-not-18")


class RestartTest(KeptTest):
    def test_all_records_are_kept(self):
        """core/README.md: a created record is kept in storage, whole; a removed record does not come back."""
        template = self.new_template(**TEMPLATE)
        self.new_endpoint(template, **ENDPOINT)
        self.new_endpoint(template)
        gone = self.new_template(name="gone")
        self.remove("/endpoints/" + self.new_endpoint(gone)["id"])
        self.remove("/templates/" + gone["id"])
        before = self.all()
        self.server.restart()
        assert self.all() == before
        self.new_template(name="gone")

    def test_the_version_goes_on(self):
        """core/decisions/endpoints.md: `version` continues after a restart, which is no release itself."""
        template = self.new_template()
        endpoint = self.new_endpoint(template)
        path = "/endpoints/" + endpoint["id"]
        self.call("PATCH", "/templates/" + template["id"], {"env": {"A": "1"}})
        self.server.restart()
        assert self.call("GET", path)["version"] == 2
        self.call("PATCH", "/templates/" + template["id"], {"env": {"A": "2"}})
        assert self.call("GET", path)["version"] == 3

    def test_kill_9(self):
        """core/README.md: every acknowledged change is there after a crash."""
        template = self.new_template()
        endpoint = self.new_endpoint(template)
        for n in range(3):
            extra = self.new_template(**TEMPLATE)
            other = self.new_endpoint(extra, **ENDPOINT)
            template = self.call("PATCH", "/templates/" + template["id"], {"env": {"N": str(n)}})
            self.crash()
            assert self.call("GET", "/templates/" + extra["id"]) == extra
            assert self.call("GET", "/templates/" + template["id"]) == template
            assert self.call("GET", "/endpoints/" + other["id"]) == other
            assert self.endpoint(endpoint)["version"] == n + 2
            assert self.server.runsync(endpoint["id"], {"output": n})["output"] == n
            self.remove("/endpoints/" + other["id"])
            self.remove("/templates/" + extra["id"])
            changed = self.call("PATCH", "/endpoints/" + endpoint["id"], {"workersMax": n + 4})
            self.crash()
            assert self.call("GET", "/templates") == [template]
            assert self.call("GET", "/endpoints/" + endpoint["id"]) == changed

    def test_jobs_wait_for_the_endpoint(self):
        """A job of an endpoint of `/v1` runs after the restart, like any other."""
        endpoint = self.new_endpoint()
        self.call("POST", f"/endpoints/{endpoint['id']}/pause")
        job = self.server.run(endpoint["id"], {"output": "later"})
        self.crash()
        self.call("POST", f"/endpoints/{endpoint['id']}/resume")
        assert self.server.finished(endpoint["id"], job)["output"] == "later"


class ClashTest(KeptTest):
    def test_a_stored_static_id(self):
        """core/decisions/endpoints.md: a static id that is also stored stops the start, with the remedy."""
        endpoint = self.new_endpoint()["id"]
        self.server.stop()
        self.server.settings[f"endpoint.{endpoint}.image"] = "plugin/echo"
        self.server.write_file()
        assert not self.server.start_unless_it_dies()
        assert self.server.process.returncode != 0
        assert re.search(f"endpoint.{endpoint} .*rename", self.server.log())
        del self.server.settings[f"endpoint.{endpoint}.image"]
        self.server.write_file()
        self.server.start()
        assert self.server.runsync(endpoint, {"output": 1})["output"] == 1

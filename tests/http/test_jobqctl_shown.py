"""jobqctl shows each field of an answer, or the field is listed here as left out."""

import pytest

from jobqctl_case import FormTest

# Fields that a table leaves out, with the reason. `--json` has every field.
LEFT_OUT = {
    "job list": {"createdAt", "startedAt", "endedAt"},  # the age says it; `job show` has the times
    "endpoint list": {
        # `endpoint show` has every field.
        "gpuCount", "gpuTypeIds", "allowedCudaVersions", "minCudaVersion", "cpuFlavorIds", "vcpuCount", "dataCenterIds",
        "networkVolumeId", "networkVolumeIds", "computeType", "flashboot", "idleTimeout", "scalerType", "scalerValue",
        "executionTimeoutMs", "maxAttempts", "stopGraceMs", "maxStuck", "isolation", "maxQueued", "queuePolicy", "filters",
        "retention", "webhookRetries", "rateLimits", "createdAt", "userId", "env", "instanceIds", "inForce", "advice"},
    "webhook list": {"endpointId"},  # the user has named the endpoint, or the job has one
}


def leaves(value):
    """The texts of the scalars of a value; absent and empty values show nothing."""
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    if value is None or value == "" or isinstance(value, bool):
        return []
    return [str(value)]


class ShownFieldsTest(FormTest):
    def expect_shown(self, name, table, answer):
        missing = {field for field, value in answer.items() if not all(leaf in table for leaf in leaves(value))}
        assert missing <= set(LEFT_OUT.get(name, ())), f"jobqctl {name} shows no {sorted(missing)}"

    @pytest.mark.parametrize("job_input", [{"fail": "no luck"}, {"text": "hello"}])
    def test_a_job(self, job_input):
        endpoint = self.make_endpoint()
        job = self.server.runsync(endpoint, job_input)["id"]
        shown = self.table("job", "show", endpoint, job)
        self.expect_shown("job show", shown, self.json("job", "show", endpoint, job))

    def test_a_waiting_job(self):
        endpoint = self.make_endpoint(self.make_template("somewhere:1"))
        job = self.server.run(endpoint, {})
        answer = self.json("job", "show", endpoint, job)
        assert {"queueReason", "queueAdvice", "queuePosition"} <= set(answer)
        self.expect_shown("job show", self.table("job", "show", endpoint, job), answer)

    def test_lists(self):
        endpoint = self.make_endpoint()
        self.server.runsync(endpoint, {"fail": "no luck"})
        page = self.json("job", "list", endpoint)
        self.expect_shown("job list", self.table("job", "list", endpoint), page["requests"][0])
        shown = self.table("endpoint", "list")
        for one in self.json("endpoint", "list"):
            self.expect_shown("endpoint list", shown, one)
        shown = self.table("key", "list")
        for key in self.json("key", "list"):
            self.expect_shown("key list", shown, key)
        shown = self.table("node", "list")
        for node in self.json("node", "list"):
            node.pop("beatAge")  # passes between the two calls
            self.expect_shown("node list", shown, node)

    def test_whole_objects(self):
        template = self.make_template(env={"A": "b"}, ports=["80/http"])
        endpoint = self.make_endpoint(template, retention={"failed": 77_000}, webhookRetries={"attempts": 7})
        for name, thing in (("template", template), ("endpoint", endpoint)):
            answer = self.json(name, "show", thing)
            self.expect_shown(f"{name} show", self.table(name, "show", thing), answer)

    def test_health(self):
        endpoint = self.make_endpoint(self.make_template("somewhere:1"))
        self.server.run(endpoint, {})
        answer = self.json("health", endpoint)
        assert answer["advice"]
        self.expect_shown("health", self.table("health", endpoint), answer)

    def test_webhooks(self):
        endpoint = self.make_endpoint()
        body = {"input": {}, "webhook": "https://example.com/hook"}
        job = self.server.request("POST", f"/v2/{endpoint}/cancel/" + self.server.request(
            "POST", f"/v2/{endpoint}/run", body).json()["id"]).json()["id"]
        row = self.json("webhook", "list", "--job", job)[0]
        for field in ("attempts", "dueAt", "state"):
            row.pop(field, None)  # change between the two calls
        self.expect_shown("webhook list", self.table("webhook", "list", "--job", job), row)

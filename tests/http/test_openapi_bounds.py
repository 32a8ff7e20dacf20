"""The bounds of each field in /openapi.json are those of the server: the value at a bound is good, and the value beyond
it is refused. No call creates anything, because each body has a fault of another field too."""

import pytest

from http_case import HttpTest

# A field with a fault in every body, so that a good value creates nothing; and the largest workersMax, because workersMin
# may not be above it.
KINDS = {"endpoints": ("EndpointInput", {"templateId": "none", "workersMax": 10_000}),
         "templates": ("TemplateInput", {"imageName": "lua/no such"})}
NAMES = ["queuePolicy"]  # of installed plugins: any other text is refused, whatever its length


def bounds(schema):
    """Returns (good values, bad values) of a schema with bounds, and None for a schema without bounds."""
    if "maximum" in schema:
        return [schema["minimum"], schema["maximum"]], [schema["minimum"] - 1, schema["maximum"] + 1]
    if "maxLength" in schema and "pattern" not in schema:
        least = schema.get("minLength", 0)
        return ["x" * max(1, least), "x" * schema["maxLength"]], ["x" * (schema["maxLength"] + 1)] + [""] * (least > 0)
    if "enum" in schema:
        return schema["enum"], ["none of these"]
    if schema.get("type") == ["boolean", "null"]:
        return [True, False, None], ["true", 1]
    return None


class BoundsTest(HttpTest):
    @pytest.fixture(autouse=True)
    def described(self, question):
        self.schemas = self.server.request("GET", "/openapi.json").json()["components"]["schemas"]

    def faults(self, kind, fields):
        answer = self.server.request("POST", "/v1/" + kind, {**KINDS[kind][1], **fields})
        assert answer.status == 400, answer.body[:300]
        return {fault["field"] for fault in answer.json()["errors"]}

    @pytest.mark.parametrize("kind", KINDS)
    def test_each_field(self, kind, subtests):
        """core/http/API.md, "Endpoint": a value outside its bounds is 400, with a sentence for the field."""
        name, always = KINDS[kind]
        checked = 0
        for field, schema in self.schemas[name]["properties"].items():
            found = bounds(schema) if field not in [*always, *NAMES] else None
            if found is None:
                continue
            checked += 1
            with subtests.test(field=field):
                for value in found[0]:
                    assert field not in self.faults(kind, {field: value}), f"{field} = {str(value)[:40]} is described"
                for value in found[1]:
                    assert field in self.faults(kind, {field: value}), f"{field} = {str(value)[:40]} is not described"
        assert checked > 5

    def test_workers_max(self):
        """core/http/API.md, "Endpoint": workersMax has the bounds of its description."""
        good, bad = bounds(self.schemas["EndpointInput"]["properties"]["workersMax"])
        assert all("workersMax" not in self.faults("endpoints", {"workersMax": value}) for value in good)
        assert all("workersMax" in self.faults("endpoints", {"workersMax": value}) for value in bad)

    def test_the_retention(self, subtests):
        """core/http/API.md, "Endpoint": retention.run and retention.runsync in milliseconds."""
        for field, schema in self.schemas["EndpointInput"]["properties"]["retention"]["properties"].items():
            good, bad = bounds(schema)
            with subtests.test(field=field):
                assert all("retention" not in self.faults("endpoints", {"retention": {field: value}}) for value in good)
                assert all("retention" in self.faults("endpoints", {"retention": {field: value}}) for value in bad)

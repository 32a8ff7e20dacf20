"""core/http/API.md, "Endpoint API": creations with an image in place of a template, and with an id."""

import pytest

from management_api import ManagementTest

class CreationTest(ManagementTest):
    def create(self, **body):
        answer = self.server.request("POST", "/v1/endpoints", body)
        if answer.status == 200:
            self.at_end.callback(self.server.request, "DELETE", f"/v1/templates/{answer.json()['templateId']}")
            self.at_end.callback(self.server.request, "DELETE", f"/v1/endpoints/{answer.json()['id']}")
        return answer

    def test_an_image_makes_the_template(self):
        made = self.create(imageName="plugin/echo", workersMax=1).json()
        template = self.call("GET", "/templates/" + made["templateId"])
        assert (template["name"], template["imageName"]) == (made["id"], "plugin/echo")
        assert made["image"] == "plugin/echo"
        assert "imageName" not in made
        assert self.server.runsync(made["id"], {"a": 1})["output"] == {"a": 1}

    def test_a_chosen_id(self):
        made = self.create(id="my_own-Id", imageName="plugin/echo").json()
        assert made["id"] == "my_own-Id"
        assert self.server.runsync("my_own-Id", {"a": 1})["status"] == "COMPLETED"
        self.assert_faults(self.create(id="my_own-Id", imageName="plugin/echo"), "id")
        self.assert_faults(self.create(id="echo", imageName="plugin/echo"), "id")  # of the file
        names = [template["name"] for template in self.call("GET", "/templates")]
        assert names.count("my_own-Id") == 1
        assert "echo" not in names

    @pytest.mark.parametrize("body, field", [
        ({}, "templateId"), ({"templateId": "x", "imageName": "plugin/echo"}, "templateId"),
        ({"imageName": ""}, "imageName"), ({"imageName": "plugin/nosuch"}, "imageName"), ({"imageName": 1}, "imageName"),
        ({"imageName": "plugin/echo", "id": "a b"}, "id"), ({"imageName": "plugin/echo", "id": "templates"}, "id"),
        ({"imageName": "plugin/echo", "id": "x" * 129}, "id")])
    def test_wrong_creations(self, body, field):
        before = len(self.call("GET", "/templates"))
        self.assert_faults(self.create(**body), field)
        assert len(self.call("GET", "/templates")) == before

    def test_a_repeated_creation_takes_the_template_of_the_first(self):
        """core/decisions/endpoints.md: a creation that failed may have left its template."""
        template = self.call("POST", "/templates", {"name": "again", "imageName": "plugin/echo"})
        assert self.create(id="again", imageName="plugin/echo").json()["templateId"] == template["id"]
        self.call("POST", "/templates", {"name": "other", "imageName": "plugin/trial"})
        self.assert_faults(self.create(id="other", imageName="plugin/echo"), "imageName")

    def test_both_are_fixed(self):
        made = self.create(imageName="plugin/echo").json()
        for body in ({"id": "other"}, {"imageName": "plugin/trial"}):
            self.assert_faults(self.server.request("PATCH", "/v1/endpoints/" + made["id"], body), *body)

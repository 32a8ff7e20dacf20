"""core/http/API.md, "Answers": success is 200 and JSON everywhere, and a job shows only the documented fields."""

import pytest

from http_case import HttpTest
from jobq_server import until


@pytest.mark.endpoints("echo", "trial", "parked")
class SuccessTest(HttpTest):
    def test_every_success_is_200_and_json(self, subtests):
        """core/http/API.md, "Answers": every success is exactly 200 with `Content-Type: application/json`."""
        for mount in ("/v2", "/sdk/v2"):
            done = self.server.runsync("echo", {})["id"]
            failed = self.server.runsync("trial", {"fail": "no"})["id"]
            waiting = self.server.run("parked", {})
            calls = [("POST", "echo/run"), ("POST", "echo/runsync"), ("GET", f"echo/status/{done}"),
                     ("POST", f"echo/status/{done}"), ("GET", f"echo/status-sync/{done}"),
                     ("POST", f"echo/status-sync/{done}"), ("GET", f"echo/stream/{done}"),
                     ("POST", f"echo/stream/{done}"), ("POST", f"parked/cancel/{waiting}"),
                     ("POST", f"trial/retry/{failed}"), ("POST", "parked/purge-queue"), ("GET", "echo/health"),
                     ("GET", "echo/requests")]
            for method, path in calls:
                with subtests.test(mount=mount, method=method, path=path):
                    body = {"input": {}} if "run" in path else b"" if method == "POST" else None
                    answer = self.server.request(method, f"{mount}/{path}", body)
                    assert answer.status == 200, answer.body
                    self.assert_json(answer)
                    answer.json()

    def test_deletion_is_204(self):
        """core/http/API.md, "Answers": DELETE on /v1 is 204."""
        key = self.server.new_key("client")
        answer = self.server.request("DELETE", f"/v1/keys/{key['id']}")
        assert (answer.status, answer.body) == (204, b"")


class JobTest(HttpTest):
    """Which members a job has, state by state."""

    TERMINAL = {"id", "status", "delayTime", "executionTime", "workerId"}

    @pytest.mark.endpoints("trial", "parked")
    def test_members_of_each_state(self, subtests):
        """core/http/API.md, "Job object": delayTime from IN_PROGRESS on, both times and workerId on terminal
        answers."""
        server = self.server
        waiting = server.run("parked", {})
        assert set(server.status("parked", waiting)) == {"id", "status", "queueReason", "queuePosition"}
        running = server.run("trial", {"sleepMs": 600000})
        until(lambda: server.status("trial", running)["status"] == "IN_PROGRESS", "the job runs")
        assert set(server.status("trial", running)) - {"workerId"} == {"id", "status", "delayTime"}
        server.request("POST", f"/v2/trial/cancel/{running}")
        server.request("POST", f"/v2/parked/cancel/{waiting}")
        ends = {"COMPLETED": (server.runsync("trial", {}), {"output"}),
                "FAILED": (server.runsync("trial", {"fail": "no"}), {"error"}),
                "CANCELLED": (server.status("trial", running), set())}
        for state, (job, more) in ends.items():
            with subtests.test(state):
                assert job["status"] == state
                assert set(job) == self.TERMINAL | more
                assert job["workerId"] != ""
                for field in ("delayTime", "executionTime"):
                    assert type(job[field]) is int
                    assert job[field] >= 0
        never_ran = server.status("parked", waiting)
        assert (never_ran["status"], never_ran["workerId"], never_ran["executionTime"]) == ("CANCELLED", "", 0)
        assert type(never_ran["delayTime"]) is int

    @pytest.mark.endpoints("trial")
    def test_retries_only_when_above_0(self):
        """core/http/API.md, "Job object": `retries` only when above 0, and an integer."""
        job = self.server.runsync("trial", {"fail": "no"})
        assert "retries" not in job
        for count in (1, 2):
            self.assert_job(self.server.request("POST", f"/v2/trial/retry/{job['id']}"))
            again = self.server.finished("trial", job["id"])
            assert type(again["retries"]) is int
            assert again["retries"] == count

    @pytest.mark.endpoints("trial")
    def test_no_part_of_the_request_comes_back(self, subtests):
        """core/http/API.md, "Job object": /status never echoes `input`, `webhook` or `s3Config`: nor does any other
        answer."""
        body = {"input": {"output": 1, "own": "in-5a01"}, "webhook": "http://127.0.0.1:9/hook-5a02",
                "s3Config": {"accessId": "id-5a03", "accessSecret": "secret-5a04", "bucketName": "bucket-5a05",
                             "endpointUrl": "https://s3-5a06.example"}}
        job = self.assert_job(self.server.request("POST", "/v2/trial/runsync", body))["id"]
        for mount in ("/v2", "/sdk/v2"):
            for path in (f"status/{job}", f"status-sync/{job}", f"stream/{job}", "requests", "health"):
                with subtests.test(mount=mount, path=path):
                    answer = self.server.request("GET", f"{mount}/trial/{path}")
                    self.assert_job(answer)
                    assert b"-5a0" not in answer.body

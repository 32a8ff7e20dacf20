"""A job's s3Config on its whole way: sealed at rest, opened for the handler, never told to anybody."""

import base64
import pathlib

from http_case import HttpTest
from pictures import WEDGE
from verify_sigv4 import VerifyingS3


class S3Test(HttpTest):
    def test_the_result_goes_to_the_bucket_and_the_secret_nowhere(self, own_server):
        """core/decisions/auth.md; core/http/API.md, "Job object": s3Config is encrypted at rest, and /status never
        echoes the object."""
        secret = "a-secret-that-must-not-be-seen"
        server = own_server(**{"endpoint.image.image": "plugin/image", "net.allowPrivate": "true"})
        with VerifyingS3("access", secret, "bucket") as s3:
            job = {"input": {"image": base64.b64encode(WEDGE).decode(), "operations": [{"resize": {"width": 20}}]},
                   "s3Config": {"accessId": "access", "accessSecret": secret, "bucketName": "bucket",
                                "endpointUrl": s3.url}}
            response = server.request("POST", "/v2/image/runsync", job)
            answer = self.assert_job(response)
            assert answer["status"] == "COMPLETED", answer
            key = answer["output"]["url"].rsplit("/", 1)[1]
            assert key == answer["id"] + ".png"
            assert len(s3.objects[key][0]) == answer["output"]["bytes"]
        told = response.body + server.request("GET", f"/v2/image/status/{answer['id']}").body + server.log().encode()
        assert secret.encode() not in told
        for file in pathlib.Path(server.data).rglob("*"):
            assert file.is_dir() or secret.encode() not in file.read_bytes(), file

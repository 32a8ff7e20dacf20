"""A job's s3Config on its whole way: sealed at rest, opened for the handler, never told to anybody."""
import base64
import pathlib
import sys

from jobq_server import HttpTest, Server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "s3"))
from verify_sigv4 import VerifyingS3  # noqa: E402  (a neighbour's folder)
from s3_test import WEDGE  # noqa: E402


class S3Test(HttpTest):
    def test_the_result_goes_to_the_bucket_and_the_secret_nowhere(self):
        """decisions.md, Keys: s3Config is encrypted at rest; Answers: /status never echoes it."""
        secret = "a-secret-that-must-not-be-seen"
        server = self.enterContext(Server(**{"endpoint.image.image": "plugin/image", "net.allowPrivate": "true"}))
        with VerifyingS3("access", secret, "bucket") as s3:
            job = {"input": {"image": base64.b64encode(WEDGE).decode(), "operations": [{"resize": {"width": 20}}]},
                   "s3Config": {"accessId": "access", "accessSecret": secret, "bucketName": "bucket",
                                "endpointUrl": s3.url}}
            reply = server.request("POST", "/v2/image/runsync", job)
            answer = self.assert_job(reply)
            self.assertEqual(answer["status"], "COMPLETED", answer)
            key = answer["output"]["url"].rsplit("/", 1)[1]
            self.assertEqual(key, answer["id"] + ".png")
            self.assertEqual(len(s3.objects[key][0]), answer["output"]["bytes"])
        told = reply.body + server.request("GET", f"/v2/image/status/{answer['id']}").body + server.log().encode()
        self.assertNotIn(secret.encode(), told)
        for file in pathlib.Path(server.data).iterdir():
            self.assertNotIn(secret.encode(), file.read_bytes(), file)

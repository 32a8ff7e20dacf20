"""A small strict S3 server. The server computes AWS Signature Version 4 from the request as received on the wire, and
answers a different signature with 403 and S3's error XML. Standard library only; in memory; for tests.

    python3 verify_sigv4.py --port 9000 --access-id AKID --secret SECRET --region us-east-1 --bucket pictures
"""
import argparse
import hashlib
import hmac
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
    r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$"
)


class Refused(Exception):
    """status, code and message of an S3 error"""


def hmac_sha256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def encoded(text, safe):
    """Percent-encoding as AWS wants it: all characters except A-Z a-z 0-9 - _ . ~ and `safe`."""
    return urllib.parse.quote(text, safe=safe + "-_.~")


def canonical_query(query):
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    return "&".join(sorted(f"{encoded(key, '')}={encoded(value, '')}" for key, value in pairs))


def signature_of(method, target, headers, signed, payload_hash, date, scope, secret):
    """`headers` has lower-case names; `target` is the unchanged target of the request line."""
    path, _, query = target.partition("?")
    lines = [method, encoded(urllib.parse.unquote(path), "/"), canonical_query(query)]
    lines += [f"{name}:{' '.join(headers[name].split())}" for name in signed]
    lines += ["", ";".join(signed), payload_hash]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac_sha256(key, part)
    return hmac_sha256(key, "\n".join(["AWS4-HMAC-SHA256", date, scope, digest])).hex()


def verify(method, target, headers, body, account):
    """Raises Refused unless the request is signed by the account."""
    match = AUTHORIZATION.match(headers.get("authorization", ""))
    if not match:
        raise Refused(403, "AccessDenied", "The Authorization header is missing or is not a SigV4 one")
    access_id, day, region, service, names, given = match.groups()
    signed = names.split(";")
    if access_id != account["access_id"]:
        raise Refused(403, "InvalidAccessKeyId", "The access key id does not exist")
    if (region, service) != (account["region"], "s3"):
        raise Refused(400, "AuthorizationHeaderMalformed", f"The region must be {account['region']}, the service s3")
    missing = {"host", "x-amz-date", "x-amz-content-sha256"} - set(signed)
    if missing or any(name not in headers for name in signed) or signed != sorted(signed):
        raise Refused(403, "AccessDenied", f"Headers that must be signed are not: {sorted(missing)}")
    if not headers["x-amz-date"].startswith(day):
        raise Refused(403, "AccessDenied", "The dates differ")
    if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch", "x-amz-content-sha256 is not the hash of the body")
    wanted = signature_of(method, target, headers, signed, headers["x-amz-content-sha256"], headers["x-amz-date"],
                          f"{day}/{region}/{service}/aws4_request", account["secret"])
    if not hmac.compare_digest(wanted, given):
        raise Refused(403, "SignatureDoesNotMatch", "The signature we calculated does not match the one provided")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            verify(self.command, self.path, headers, body, self.server.account)
            self.store(body, headers.get("content-type", ""))
        except Refused as refusal:
            self.answer_error(*refusal.args)
        else:
            self.answer(200, b"")

    def store(self, body, media_type):
        bucket, _, key = urllib.parse.unquote(self.path).lstrip("/").partition("/")
        if bucket != self.server.bucket:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        self.server.objects[key] = (body, media_type)

    def answer_error(self, status, code, message):
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
        self.answer(status, text.encode(), "application/xml")

    def answer(self, status, body, media_type="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class VerifyingS3(ThreadingHTTPServer):
    """objects: key -> (bytes, content type). Use as a context manager."""

    daemon_threads = True

    def __init__(self, access_id, secret, bucket, region="us-east-1", port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.account = {"access_id": access_id, "secret": secret, "region": region}
        self.bucket = bucket
        self.objects = {}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--access-id", required=True)
    parser.add_argument("--secret", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--region", default="us-east-1")
    options = parser.parse_args()
    server = VerifyingS3(options.access_id, options.secret, options.bucket, options.region, options.port)
    print(f"listening on {server.url}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

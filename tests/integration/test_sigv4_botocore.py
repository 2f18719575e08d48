"""botocore's signer against src/sigv4: what AWS's own client signs must verify, and what was
changed after signing must not. Drives tests/tools/sigv4_check.c; no server, no network."""
import datetime
import io
import os
import random
import subprocess
import time
from urllib.parse import quote, urlsplit

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import pytest

import sigv4

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
REGION = "eu-west-3"
CREDENTIALS = botocore.credentials.Credentials(KEY, SECRET)
SEED = int(os.environ.get("FGW_TEST_SEED", "20261130"))

KEYS = ["plain", "a b", "a+b", "a%20b", "a%2Fb", "a=b", "ü/字/😀", "!'()*~-._", "a#b?c", "a:b@c,d;e",
        "/leading", "d//f", "d/../e/./f", "trailing/", "\x01\x7f", "a\\b", "\"<>&'", "[{|}]^`",
        "..", "%", "%zz", "100%", "$&+,/:;=?@", "x" * 1000, " ", "\u00a0", "e\u0301"]


def find_tool():
    builds = [os.environ.get("FGW_BUILD", "")]
    builds += [os.path.join(TOP, "build", preset) for preset in ("asan", "dev", "tsan")]
    for build in builds:
        path = os.path.join(build, "tests/tools/fgw-sigv4-check")
        if build and os.access(path, os.X_OK):
            return path
    return None


class Checker:
    """The tool, one question at a time."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *fields):
        self.process.stdin.write((" ".join(fields) + "\n").encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().rstrip("\n")
        assert answer, f"fgw-sigv4-check died with {self.process.wait()}"
        return answer.split(" ")

    def verify(self, request, now=None, secret=SECRET, region=REGION):
        url = urlsplit(request["url"])
        fields = ["verify", str(int((time.time() if now is None else now) * 1000)), hexed(region),
                  hexed(secret), hexed(request["method"]), hexed(url.path), hexed(url.query),
                  hexed(request["body"])]
        fields += [f"{hexed(name)}:{hexed(value)}" for name, value in request["headers"]]
        return self.ask(*fields)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


def hexed(text):
    return (text if isinstance(text, bytes) else text.encode()).hex()


@pytest.fixture(scope="module")
def checker():
    path = find_tool()
    if path is None:
        pytest.skip("fgw-sigv4-check is not built")
    tool = Checker(path)
    yield tool
    tool.close()


def as_sent(prepared):
    """A signed AWSRequest or AWSPreparedRequest as the HTTP client would send it."""
    headers = []
    for name, value in prepared.headers.items():
        headers.append((name, value if isinstance(value, (str, bytes)) else str(value)))
    if not any(name.lower() == "host" for name, _ in headers):
        headers.append(("Host", urlsplit(prepared.url).netloc))
    body = getattr(prepared, "data", None) if not hasattr(prepared, "body") else prepared.body
    if body is None:
        body = b""
    elif hasattr(body, "read"):
        body = body.read()
    elif isinstance(body, str):
        body = body.encode()
    return {"method": prepared.method, "url": prepared.url, "headers": headers,
            "body": bytes(body)}


def assert_verifies(checker, request, **kwargs):
    answer = checker.verify(request, **kwargs)
    if answer[0] != "OK":
        pytest.fail(f"{answer[1]} for {request['method']} {request['url']}\n"
                    f"{bytes.fromhex(answer[2]).decode(errors='replace')}")
    return answer


# -- whole clients: what boto3 would put on the wire ------------------------------------------


class Captured(Exception):
    def __init__(self, request):
        super().__init__()
        self.request = request


def capture(client, operation, **params):
    """Runs an operation up to the moment of sending."""
    def stop(request, **_):
        raise Captured(as_sent(request))
    client.meta.events.register_first("before-send.s3", stop)
    try:
        with pytest.raises(Captured) as caught:
            getattr(client, operation)(**params)
    finally:
        client.meta.events.unregister("before-send.s3", stop)
    return caught.value.request


def make_client(endpoint, **config):
    return boto3.client("s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=KEY,
                        aws_secret_access_key=SECRET,
                        config=botocore.config.Config(retries={"max_attempts": 0}, **config))


@pytest.fixture(scope="module", params=["http://store.example:8078", "https://store.example"])
def client(request):
    return make_client(request.param)


@pytest.mark.parametrize("key", KEYS)
def test_objects_by_header(checker, client, key):
    body = b"hello " * 3000
    put = capture(client, "put_object", Bucket="bk", Key=key, Body=body, ContentType="text/plain",
                  Metadata={"a": "one   two", "b": ""}, CacheControl="no-cache")
    assert bytes.fromhex(assert_verifies(checker, put)[3]) == body
    assert_verifies(checker, capture(client, "get_object", Bucket="bk", Key=key, Range="bytes=0-1",
                                     ResponseContentType="a/b; c=d e+f"))
    assert_verifies(checker, capture(client, "head_object", Bucket="bk", Key=key, VersionId="null"))
    assert_verifies(checker, capture(client, "copy_object", Bucket="bk", Key=key,
                                     CopySource={"Bucket": "bk", "Key": key}))
    assert_verifies(checker, capture(client, "delete_objects", Bucket="bk",
                                     Delete={"Objects": [{"Key": "k"}]}))
    assert_verifies(checker, capture(client, "list_objects_v2", Bucket="bk", Prefix=key,
                                     Delimiter="%", StartAfter=key, MaxKeys=2))


def test_trailer_arrives(checker):
    put = capture(make_client("https://store.example"), "put_object", Bucket="bk", Key="k",
                  Body=io.BytesIO(b"hello"))
    assert put["body"] != b"hello"
    answer = assert_verifies(checker, put)
    assert bytes.fromhex(answer[3]) == b"hello"
    name, value = answer[4].split(":")
    assert (name, bytes.fromhex(value)) == ("x-amz-checksum-crc32", b"NhCmhg==")


@pytest.mark.parametrize("key", KEYS)
def test_presigned(checker, client, key):
    for operation, params in [("get_object", {"ResponseContentDisposition": "a; b=\"c d+e/f\""}),
                              ("put_object", {"ACL": "public-read"}),
                              ("delete_object", {"VersionId": "a+b/c="})]:
        url = client.generate_presigned_url(operation, ExpiresIn=600,
                                            Params={"Bucket": "bk", "Key": key, **params})
        headers = [("Host", urlsplit(url).netloc), ("Range", "bytes=0-1")]
        if "ACL" in params:
            headers.append(("x-amz-acl", "public-read"))
        method = operation.split("_")[0].upper()
        request = {"method": method, "url": url, "headers": headers, "body": b"data"}
        if "X-Amz-Signature" not in url:
            pytest.fail("botocore presigned with an old signature version")
        assert_verifies(checker, request)
        assert_verifies(checker, request, now=time.time() + 500)
        assert checker.verify(request, now=time.time() + 700)[1] == "REQUEST_EXPIRED"
        changed = {**request, "url": url.replace("/bk/", "/bl/", 1)}
        assert checker.verify(changed)[1] == "SIGNATURE_DOES_NOT_MATCH"


def test_session_token(checker):
    client = boto3.client("s3", endpoint_url="http://h:1", region_name=REGION,
                          aws_access_key_id=KEY, aws_secret_access_key=SECRET,
                          aws_session_token="tok+en/with==",
                          config=botocore.config.Config(signature_version="s3v4"))
    assert_verifies(checker, capture(client, "get_object", Bucket="bk", Key="k"))
    url = client.generate_presigned_url("get_object", Params={"Bucket": "bk", "Key": "k"})
    assert_verifies(checker, {"method": "GET", "url": url, "headers": [("Host", "h:1")],
                              "body": b""})


def test_presigned_post(checker):
    client = make_client("http://h:1", signature_version="s3v4")
    fields = client.generate_presigned_post("bk", "k/${filename}", ExpiresIn=60)["fields"]
    question = ["post", str(int(time.time() * 1000)), hexed(REGION), hexed(SECRET)]
    values = [fields[name] for name in ("policy", "x-amz-algorithm", "x-amz-credential",
                                        "x-amz-date", "x-amz-signature")]
    assert checker.ask(*question, *map(hexed, values)) == ["OK"]
    values[0] += "A"
    assert checker.ask(*question, *map(hexed, values))[1] == "SIGNATURE_DOES_NOT_MATCH"


@pytest.mark.parametrize("mode", [sigv4.STREAMING, sigv4.STREAMING_TRAILER,
                                  sigv4.STREAMING_UNSIGNED_TRAILER])
@pytest.mark.parametrize("size", [0, 1, 8192, 100000])
def test_streaming_modes(checker, mode, size):
    """Chunk signatures, which botocore does not make, from the tests' own signer."""
    signer = sigv4.Signer(KEY, SECRET, REGION)
    data = os.urandom(size)
    trailers = [] if mode == sigv4.STREAMING else [("x-amz-checksum-crc32", "AAAAAA==")]
    head, body = sigv4.request_bytes(signer, "PUT", "/bk/a%20b", "h:1", body=data, mode=mode,
                                     chunk_size=8192, trailers=trailers).split(b"\r\n\r\n", 1)
    headers = [tuple(line.decode().split(": ", 1)) for line in head.split(b"\r\n")[1:]]
    request = {"method": "PUT", "url": "http://h:1/bk/a%20b", "headers": headers, "body": body}
    answer = assert_verifies(checker, request)
    assert bytes.fromhex(answer[3]) == data
    assert len(answer) == 4 + len(trailers)
    if mode != sigv4.STREAMING_UNSIGNED_TRAILER:
        at = body.index(b"=") + 3
        request["body"] = body[:at] + (b"0" if body[at:at + 1] != b"0" else b"1") + body[at + 1:]
        assert checker.verify(request)[1] == "SIGNATURE_DOES_NOT_MATCH"
    request["body"] = body[:-3]
    cut = checker.verify(request)
    assert cut[0] == "OK" or cut[1] in ("MALFORMED_TRAILER", "INCOMPLETE_BODY")


# -- the signer alone: requests no SDK operation would make -------------------------------------


def random_text(rng, alphabet, longest):
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(longest)))


def random_request(rng):
    """A valid target with odd spellings: raw, escaped, over-escaped, lower-case escapes."""
    safe = "abcXYZ019-._~"
    odd = "!$'()*+,;=:@/%\"<>[]^`{|}\\ ü字😀"

    def spelled(text, keep):
        style = rng.randrange(3)
        if style == 0:
            return quote(text, safe=keep + "~")
        if style == 1:
            return quote(text, safe=keep + "!$'()*,;:@~")
        return "".join(quote(c, safe="") if rng.random() < 0.5 else quote(c, safe=keep + "~")
                       for c in text)

    path = "/" + spelled(random_text(rng, safe + odd, 12), "/")
    pairs = [spelled(random_text(rng, safe + odd, 6) or "k", "") + "=" +
             spelled(random_text(rng, safe + odd, 8), "") for _ in range(rng.randrange(4))]
    rng.shuffle(pairs)
    headers = {}
    for name in ("X-Amz-Meta-A", "x-amz-meta-b", "Content-Type", "Range", "x-custom"):
        if rng.random() < 0.5:
            headers[name] = random_text(rng, safe + " \t" + "=;,\"", 20).strip()
    method = rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD"])
    body = random_text(rng, safe, 30).encode() if method in ("PUT", "POST") else b""
    url = "http://store.example:8078" + path + ("?" + "&".join(pairs) if pairs else "")
    return botocore.awsrequest.AWSRequest(method=method, url=url, headers=headers, data=body)


def test_random_requests(checker):
    rng = random.Random(SEED)
    for _ in range(1500):
        request = random_request(rng)
        botocore.auth.S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(request)
        sent = as_sent(request)
        assert_verifies(checker, sent)
        broken = break_one(rng, sent)
        answer = checker.verify(broken)
        assert answer[0] == "ERR", f"{sent} was changed to {broken} and still verifies"


def break_one(rng, sent):
    """One change that any signature must notice."""
    broken = {**sent, "headers": list(sent["headers"])}
    kind = rng.randrange(5)
    if kind == 0:
        broken["method"] = "PUT" if sent["method"] != "PUT" else "GET"
    elif kind == 1:
        broken["url"] = sent["url"].replace(":8078/", ":8078/x", 1)
    elif kind == 2:
        broken["url"] += ("&" if "?" in sent["url"] else "?") + "acl"
    elif kind == 3:
        broken["headers"].append(("x-amz-acl", "public-read"))
    else:
        broken["headers"] = [(name, "store.example:8079" if name == "Host" else value)
                             for name, value in sent["headers"]]
    return broken


def test_random_presigned(checker):
    rng = random.Random(SEED + 1)
    for _ in range(500):
        request = random_request(rng)
        request.headers["Host"] = "store.example:8078"
        request.data = b""  # botocore takes it for form fields here
        botocore.auth.S3SigV4QueryAuth(CREDENTIALS, "s3", REGION, expires=60).add_auth(request)
        sent = as_sent(request)
        assert_verifies(checker, sent)
        assert checker.verify(break_one(rng, sent))[0] == "ERR"


def test_date_header_instead_of_x_amz_date(checker):
    request = botocore.awsrequest.AWSRequest(method="GET", url="http://h/bk/k")
    request.headers["Date"] = "Fri, 24 May 2013 00:00:00 GMT"
    botocore.auth.S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(request)
    assert "X-Amz-Date" not in request.headers
    assert request.headers["Date"].endswith("-0000")  # not the GMT of RFC 9110
    assert_verifies(checker, as_sent(request))


def test_wrong_secret_and_region(checker):
    request = botocore.awsrequest.AWSRequest(method="GET", url="http://h/bk/k")
    botocore.auth.S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(request)
    sent = as_sent(request)
    assert checker.verify(sent, secret="x" * 40)[1] == "SIGNATURE_DOES_NOT_MATCH"
    assert checker.verify(sent, region="us-east-1")[1] == "AUTHORIZATION_HEADER_MALFORMED"
    later = datetime.timedelta(minutes=16).total_seconds()
    assert checker.verify(sent, now=time.time() + later)[1] == "REQUEST_TIME_TOO_SKEWED"

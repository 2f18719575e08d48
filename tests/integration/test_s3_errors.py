"""Errors, authentication and routing: spec items 1 to 21; public cases B02, B03, B07, B08, B11, B30,
B37, B38."""
import datetime

import pytest

import sigv4
from s3util import code_of, error_of, refused

BUCKET_SETTINGS = [
    "policy", "cors", "website", "encryption", "logging", "notification", "replication",
    "requestPayment", "accelerate", "ownershipControls", "publicAccessBlock", "object-lock",
    "tagging", "lifecycle", "analytics", "inventory", "metrics", "intelligent-tiering",
    "policyStatus",
]


def test_error_document(raw, bucket):
    answer = raw("GET", f"/{bucket}/missing%20%26key")
    error = error_of(answer)
    assert answer.status == 404
    assert error["Code"] == "NoSuchKey"
    assert error["Key"] == "missing &key"
    assert error["BucketName"] == bucket
    assert error["RequestId"] == answer.headers["x-amz-request-id"]
    assert answer.headers["Content-Type"] == "application/xml"
    assert answer.headers["Server"] == "FGW"
    assert answer.headers["x-amz-id-2"]


def test_head_errors_have_no_body(server, bucket, client):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    signer = server.signer()
    wrong = sigv4.Signer(server.access_key, "wrong-secret-wrong-secret")
    requests = [
        (sigv4.request_bytes(signer, "HEAD", f"/{bucket}/none", server.netloc), "HEAD", 404),
        (sigv4.request_bytes(signer, "HEAD", f"/{bucket}/k", server.netloc,
                             [("If-Match", '"x"')]), "HEAD", 412),
        (sigv4.request_bytes(wrong, "HEAD", f"/{bucket}/k", server.netloc), "HEAD", 403),
        (sigv4.request_bytes(signer, "GET", f"/{bucket}/k", server.netloc), "GET", 200),
    ]
    with server.connect() as connection:
        for data, method, status in requests:
            connection.send(data)
            answer = connection.answer(method)
            assert answer.status == status
            assert answer.body == (b"hello" if method == "GET" else b"")


def test_unknown_key_and_wrong_secret(server):
    with refused(403, "InvalidAccessKeyId"):
        server.client(access_key="nobody").list_buckets()
    with refused(403, "SignatureDoesNotMatch"):
        server.client(secret_key="wrong-secret-wrong-secret").list_buckets()


def test_no_credentials(raw, bucket):
    for method, target, status, code in [
            ("GET", f"/{bucket}/k", 403, "AccessDenied"), ("GET", f"/{bucket}", 403, "AccessDenied"),
            ("GET", "/no-such-bucket-at-all/k", 404, "NoSuchBucket"), ("PUT", f"/{bucket}/k", 403,
                                                                       "AccessDenied")]:
        answer = raw_unsigned(raw, method, target)
        assert (answer.status, code_of(answer)) == (status, code)


def raw_unsigned(raw, method, target, headers=(), body=b""):
    return raw(method, target, headers=headers, body=body, signer=Unsigned())


class Unsigned(sigv4.Signer):
    """Sends everything but the signature."""

    def __init__(self):
        super().__init__("", "")

    def headers(self, method, target, headers, payload_hash):
        return list(headers)


@pytest.mark.parametrize("value, statuses", [
    ("AWS4-HMAC-SHA256", (400, 403)), ("garbage", (400, 403)),
    ("AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=0", (400,)),
    ("AWS4-HMAC-SHA256 SignedHeaders=host, Signature=0", (400,)),
])
def test_broken_authorization(raw, bucket, value, statuses):
    answer = raw_unsigned(raw, "GET", f"/{bucket}", [("Authorization", value)])
    assert answer.status in statuses
    assert code_of(answer)


def test_wrong_region_names_the_right_one(server, raw):
    answer = raw("GET", "/", signer=server.signer(region="eu-west-9"))
    assert answer.status == 400
    assert error_of(answer)["Code"] == "AuthorizationHeaderMalformed"
    assert error_of(answer)["Region"] == "us-east-1"


@pytest.mark.parametrize("minutes", [-20, 20])
def test_clock_skew_tells_the_times(server, raw, minutes):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    error = error_of(raw("GET", "/", signer=server.signer(at=at)))
    assert error["Code"] == "RequestTimeTooSkewed"
    assert error["MaxAllowedSkewMilliseconds"] == "900000"
    assert error["RequestTime"] and error["ServerTime"]


@pytest.mark.parametrize("name", BUCKET_SETTINGS)
def test_settings_that_are_not_there(raw, bucket, name):
    """The specific 404 or 501: never a listing, never another bucket, and never a body that is
    taken without being understood."""
    answer = raw("GET", f"/{bucket}?{name}=")
    assert answer.status in (404, 501)
    assert (code_of(answer) == "NotImplemented") == (answer.status == 501)
    answer = raw("PUT", f"/{bucket}?{name}=", body=b"<x/>")
    assert answer.status in (400, 405, 501)
    answer = raw("DELETE", f"/{bucket}?{name}=")
    assert answer.status in (204, 405, 501)
    assert raw("HEAD", f"/{bucket}").status == 200


def test_new_bucket_answers(client, bucket):
    with refused(404, "OwnershipControlsNotFoundError"):
        client.get_bucket_ownership_controls(Bucket=bucket)
    with refused(404, "NoSuchPublicAccessBlockConfiguration"):
        client.get_public_access_block(Bucket=bucket)
    with refused(404, "ServerSideEncryptionConfigurationNotFoundError"):
        client.get_bucket_encryption(Bucket=bucket)
    with refused(404, "NoSuchTagSet"):
        client.get_bucket_tagging(Bucket=bucket)


def test_unknown_query_names(raw, bucket, client):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    assert raw("GET", f"/{bucket}/k?x-id=GetObject").body == b"hello"
    assert raw("GET", f"/{bucket}/k?foo=bar").body == b"hello"
    assert raw("GET", f"/{bucket}?foo=").status == 200
    assert raw("PUT", f"/{bucket}/k?x-id=PutObject", body=b"changed").status == 200
    for target in (f"/{bucket}/k?nonsense=", f"/{bucket}?nonsense="):
        assert raw("PUT", target, body=b"no").status == 501
        assert raw("DELETE", target).status == 501
    assert raw("GET", f"/{bucket}?acl=&tagging=").status == 501
    assert raw("GET", f"/{bucket}/k").body == b"changed"


def test_service_and_methods(raw, bucket):
    assert raw("POST", "/", body=b"Action=ListRoles").status == 405
    assert raw("PUT", f"/{bucket}?location=", body=b"").status == 405
    assert raw("POST", f"/{bucket}/k", body=b"").status == 405


def test_broken_uris(raw, bucket):
    for target in (f"/{bucket}/%zz", f"/{bucket}/%ff"):
        answer = raw("GET", target)
        assert answer.status in (400, 403)


def test_preflight_without_rules(raw, bucket):
    assert raw_unsigned(raw, "OPTIONS", f"/{bucket}/k").status == 400
    origin = [("Origin", "https://example.org")]
    assert raw_unsigned(raw, "OPTIONS", f"/{bucket}/k", origin).status == 400
    answer = raw_unsigned(raw, "OPTIONS", f"/{bucket}/k",
                          [*origin, ("Access-Control-Request-Method", "GET")])
    assert (answer.status, code_of(answer)) == (403, "AccessForbidden")


def test_expected_bucket_owner(client, bucket):
    owner = client.list_buckets()["Owner"]["ID"]
    client.put_object(Bucket=bucket, Key="k", Body=b"x", ExpectedBucketOwner=owner)
    for call in (client.put_object, client.get_object):
        with refused(403, "AccessDenied"):
            call(Bucket=bucket, Key="k", ExpectedBucketOwner="0" * 64)


def test_internal_paths_are_no_bucket(raw):
    assert raw_unsigned(raw, "GET", "/_fgw/livez").status == 200
    assert raw_unsigned(raw, "GET", "/_fgw/readyz").status == 200

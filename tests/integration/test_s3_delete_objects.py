"""DeleteObjects: spec item 52; public cases B71, B73, B74, B89."""
import pytest

from s3util import code_of, crc32_base64, md5_base64, texts, tree

BODY = b"<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>"


def sha256_base64(data):
    import base64  # pylint: disable=import-outside-toplevel
    import hashlib  # pylint: disable=import-outside-toplevel
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def post(raw, bucket, body, headers=None):
    if headers is None:
        headers = [("Content-MD5", md5_base64(body))]
    return raw("POST", f"/{bucket}?delete=", headers=headers, body=body)


@pytest.fixture
def two(client, bucket):
    for key in "ab":
        client.put_object(Bucket=bucket, Key=key, Body=b"x")


@pytest.mark.parametrize("headers", [
    [("Content-MD5", md5_base64(BODY))],
    [("x-amz-checksum-crc32", crc32_base64(BODY))],
    [("x-amz-checksum-sha256", sha256_base64(BODY))],
    [("Content-MD5", md5_base64(BODY)), ("x-amz-checksum-crc32", crc32_base64(BODY))],
])
def test_any_integrity_header(raw, client, bucket, two, headers):
    answer = post(raw, bucket, BODY, headers)
    assert answer.status == 200
    assert texts(tree(answer.body), "Deleted/Key") == ["a", "b"]
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)


@pytest.mark.parametrize("headers, codes", [
    ([], ["InvalidRequest"]),
    ([("Content-MD5", md5_base64(b"other"))], ["BadDigest"]),
    ([("x-amz-checksum-crc32", "AAAAAA==")], ["BadDigest"]),
    ([("x-amz-checksum-sha256", sha256_base64(b"other"))], ["BadDigest"]),
    ([("Content-MD5", "x")], ["InvalidDigest"]),
])
def test_wrong_integrity_deletes_nothing(raw, client, bucket, two, headers, codes):
    answer = post(raw, bucket, BODY, headers)
    assert answer.status == 400 and code_of(answer) in codes
    assert len(client.list_objects_v2(Bucket=bucket)["Contents"]) == 2


def test_quiet_and_missing(client, bucket, two):
    answer = client.delete_objects(Bucket=bucket, Delete={
        "Objects": [{"Key": "a"}, {"Key": "missing"}], "Quiet": True})
    assert "Deleted" not in answer and "Errors" not in answer
    answer = client.delete_objects(Bucket=bucket, Delete={
        "Objects": [{"Key": "b"}, {"Key": "missing"}]})
    assert [entry["Key"] for entry in answer["Deleted"]] == ["b", "missing"]


def test_errors_of_single_keys(client, bucket, two):
    etag = client.head_object(Bucket=bucket, Key="a")["ETag"]
    answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [
        {"Key": "a", "ETag": '"00"'}, {"Key": "k" * 1025}, {"Key": "b", "ETag": etag}]})
    assert [(e["Key"][:2], e["Code"]) for e in answer["Errors"]] == [
        ("a", "PreconditionFailed"), ("kk", "KeyTooLongError")]
    assert [entry["Key"] for entry in answer["Deleted"]] == ["b"]


def test_versions(client, bucket):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = client.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"]
    answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]})
    marker = answer["Deleted"][0]
    assert marker["DeleteMarker"] and marker["DeleteMarkerVersionId"]
    answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [
        {"Key": "k", "VersionId": version},
        {"Key": "k", "VersionId": marker["DeleteMarkerVersionId"]}]})
    assert [entry["VersionId"] for entry in answer["Deleted"]] == [
        version, marker["DeleteMarkerVersionId"]]
    assert answer["Deleted"][1]["DeleteMarker"]
    assert "Versions" not in client.list_object_versions(Bucket=bucket)


def test_a_thousand(client, bucket, raw):
    keys = [f"k{i:04}" for i in range(1000)]
    for key in keys[:200]:
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    answer = client.delete_objects(Bucket=bucket,
                                   Delete={"Objects": [{"Key": key} for key in keys]})
    assert "Errors" not in answer, answer["Errors"]
    assert [entry["Key"] for entry in answer["Deleted"]] == keys
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    body = b"<Delete>" + b"<Object><Key>k</Key></Object>" * 1001 + b"</Delete>"
    answer = post(raw, bucket, body)
    assert (answer.status, code_of(answer)) == (400, "MalformedXML")


@pytest.mark.parametrize("body", [
    b"", b"<Delete>", b"<Delete></Delete>", b"<Delete><Object></Object></Delete>", b"<Other/>",
    b"<Delete><Object><Key>a</Key></Object></Delete>trailing",
    b"<!DOCTYPE Delete [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><Delete><Object><Key>&a;</Key>"
    b"</Object></Delete>",
    b"<Delete>" * 50000, b"<Delete><Object><Key>" + b"x" * 100000 + b"</Key></Object></Delete>",
])
def test_malformed(raw, bucket, body):
    answer = post(raw, bucket, body)
    assert (answer.status, code_of(answer)) == (400, "MalformedXML")


def test_too_large(raw, bucket):
    answer = raw("POST", f"/{bucket}?delete=", body=b"x" * (2 * 1024 * 1024 + 1),
                 headers=[("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")])
    assert (answer.status, code_of(answer)) == (400, "MalformedXML")


def test_odd_keys(raw, client, bucket):
    for key in ("a&b", "<x>", "d/", "d/x", "line\nbreak", "a+b", "a b"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    body = (b"\xef\xbb\xbf<?xml version='1.0'?><s:Delete xmlns:s='urn:x'><s:Object><s:Key>a&amp;b"
            b"</s:Key></s:Object><s:Object><s:Key><![CDATA[<x>]]></s:Key></s:Object>"
            b"<s:Object><s:Key>d/</s:Key></s:Object><s:Object><s:Key>line&#xA;break</s:Key>"
            b"</s:Object><s:Object><s:Key>a+b</s:Key></s:Object></s:Delete>")
    answer = post(raw, bucket, body)
    assert sorted(texts(tree(answer.body), "Deleted/Key")) == sorted(
        ["a&b", "<x>", "d/", "line\nbreak", "a+b"])
    left = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert left == ["a b", "d/x"]

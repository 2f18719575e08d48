"""GetObjectAttributes: spec/s3-wire.md 68."""
import base64
import hashlib
import zlib

import pytest

from s3util import refusal_of, status_and_code

PART = 5 * 1024 * 1024
ALL = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]


def crc32(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


@pytest.fixture
def attributes(client, bucket):
    return lambda key="key", wanted=ALL, **arguments: client.get_object_attributes(
        Bucket=bucket, Key=key, ObjectAttributes=list(wanted), **arguments)


def test_plain_object(client, bucket, attributes):
    client.put_object(Bucket=bucket, Key="key", Body=b"12345", ChecksumAlgorithm="CRC32")
    answer = attributes()
    assert answer["ETag"] == hashlib.md5(b"12345").hexdigest()
    assert answer["ObjectSize"] == 5
    assert answer["StorageClass"] == "STANDARD"
    assert answer["Checksum"] == {"ChecksumCRC32": crc32(b"12345"), "ChecksumType": "FULL_OBJECT"}
    assert "ObjectParts" not in answer
    assert answer["LastModified"] == client.head_object(Bucket=bucket, Key="key")["LastModified"]
    assert "VersionId" not in answer


def test_only_what_was_asked_for(client, bucket, attributes):
    client.put_object(Bucket=bucket, Key="key", Body=b"12345")
    for name in ("ETag", "StorageClass", "ObjectSize"):
        assert set(ALL) & set(attributes(wanted=[name])) == {name}
    assert set(ALL) & set(attributes(wanted=["ObjectSize", "ETag"])) == {"ObjectSize", "ETag"}


def multipart(client, bucket, numbers, key="key"):
    names = {"Bucket": bucket, "Key": key}
    names["UploadId"] = client.create_multipart_upload(
        **names, ChecksumAlgorithm="CRC32", StorageClass="STANDARD_IA")["UploadId"]
    bodies = {n: bytes([n % 256]) * (PART if n != numbers[-1] else 99) for n in numbers}
    listed = []
    for number, body in bodies.items():
        etag = client.upload_part(**names, PartNumber=number, Body=body,
                                  ChecksumAlgorithm="CRC32")["ETag"]
        listed.append({"PartNumber": number, "ETag": etag})
    client.complete_multipart_upload(**names, MultipartUpload={"Parts": listed})
    return bodies


def test_multipart_object(client, bucket, attributes):
    bodies = multipart(client, bucket, [1, 2, 5, 9])
    answer = attributes()
    assert answer["ObjectSize"] == 3 * PART + 99
    assert answer["StorageClass"] == "STANDARD_IA"
    assert answer["ETag"].endswith("-4") and '"' not in answer["ETag"]
    assert answer["Checksum"]["ChecksumType"] == "COMPOSITE"
    assert answer["Checksum"]["ChecksumCRC32"].endswith("-4")
    parts = answer["ObjectParts"]
    assert (parts["TotalPartsCount"], parts["MaxParts"], parts["PartNumberMarker"],
            parts["NextPartNumberMarker"], parts["IsTruncated"]) == (4, 1000, 0, 9, False)
    assert parts["Parts"] == [{"PartNumber": n, "Size": len(body), "ChecksumCRC32": crc32(body)}
                              for n, body in bodies.items()]


def test_pages_of_parts(client, bucket, attributes):
    multipart(client, bucket, [1, 2, 5, 9])
    seen, marker = [], 0
    while True:
        parts = attributes(MaxParts=3, PartNumberMarker=marker)["ObjectParts"]
        assert (parts["TotalPartsCount"], parts["MaxParts"], parts["PartNumberMarker"]) == (
            4, 3, marker)
        seen.append([part["PartNumber"] for part in parts["Parts"]])
        marker = parts["NextPartNumberMarker"]
        if not parts["IsTruncated"]:
            break
    assert seen == [[1, 2, 5], [9]]
    behind = attributes(PartNumberMarker=10000)["ObjectParts"]
    assert (behind.get("Parts", []), behind["IsTruncated"]) == ([], False)


def test_copies_have_no_parts(client, bucket, attributes):
    multipart(client, bucket, [1, 2])
    client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/key")
    answer = attributes("copy")
    assert "ObjectParts" not in answer
    assert answer["Checksum"]["ChecksumCRC32"].endswith("-2")
    assert answer["ETag"] == attributes()["ETag"]


def test_versions_and_markers(client, bucket, attributes):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    one = client.put_object(Bucket=bucket, Key="key", Body=b"1")["VersionId"]
    two = client.put_object(Bucket=bucket, Key="key", Body=b"22")["VersionId"]
    assert (attributes()["ObjectSize"], attributes()["VersionId"]) == (2, two)
    old = attributes(VersionId=one)
    assert (old["ObjectSize"], old["VersionId"]) == (1, one)
    marker = client.delete_object(Bucket=bucket, Key="key")["VersionId"]
    assert refusal_of(attributes) == (404, "NoSuchKey")
    assert refusal_of(attributes, VersionId=marker) == (405, "MethodNotAllowed")
    assert refusal_of(attributes, VersionId="0" * 32) == (404, "NoSuchVersion")


def test_what_is_refused(client, bucket, raw, attributes):
    assert refusal_of(attributes, "none") == (404, "NoSuchKey")
    client.put_object(Bucket=bucket, Key="key", Body=b"x")
    target = f"/{bucket}/key?attributes"
    name = "x-amz-object-attributes"
    assert status_and_code(raw("GET", target)) == (400, "InvalidRequest")
    assert status_and_code(raw("GET", target, [(name, "")]))[0] == 400
    assert status_and_code(raw("GET", target, [(name, "ETag,Foo")])) == (400, "InvalidArgument")
    assert status_and_code(raw("GET", target, [(name, "ETag"), ("x-amz-max-parts", "-1")])) == (
        400, "InvalidArgument")
    assert raw("GET", target, [(name, "ETag"), (name, "ObjectSize")]).body.count(b"Size>") == 2

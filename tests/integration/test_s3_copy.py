"""CopyObject and UploadPartCopy: spec/s3-wire.md 53 to 56 and the public bug reports B54, B61 to
B64."""
import base64
import hashlib
import time
import urllib.parse
import xml.etree.ElementTree
import zlib

import pytest

from s3util import bytes_of, refusal_of, status_and_code

MIB = 1024 * 1024
PART = 5 * MIB
NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def get(client, bucket, key, **arguments):
    return client.get_object(Bucket=bucket, Key=key, **arguments)["Body"].read()


def multipart(client, bucket, key, bodies, **arguments):
    """An object of these parts: the answer of Complete."""
    names = {"Bucket": bucket, "Key": key}
    names["UploadId"] = client.create_multipart_upload(**names, **arguments)["UploadId"]
    parts = [{"PartNumber": n, "ETag": client.upload_part(**names, PartNumber=n, Body=body)["ETag"]}
             for n, body in enumerate(bodies, 1)]
    return client.complete_multipart_upload(**names, MultipartUpload={"Parts": parts})


# -- CopyObject -------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [0, 1, 255 * 1024, 256 * 1024 + 1, 3 * MIB + 5])
def test_copy(client, bucket, size):
    body = bytes_of(size)
    put = client.put_object(Bucket=bucket, Key="source", Body=body, ChecksumAlgorithm="SHA256")
    copied = client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")
    result = copied["CopyObjectResult"]
    assert result["ETag"] == put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    assert result["ChecksumSHA256"] == put["ChecksumSHA256"]
    assert "VersionId" not in copied
    assert get(client, bucket, "copy") == body
    head = client.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")
    assert head["ETag"] == put["ETag"]
    assert head["ChecksumSHA256"] == put["ChecksumSHA256"]
    assert abs(result["LastModified"].timestamp() - time.time()) < 60
    cids = [client.head_object(Bucket=bucket, Key=key)["ResponseMetadata"]["HTTPHeaders"][
        "x-fgw-cid"] for key in ("source", "copy")]
    assert cids[0] == cids[1] == copied["ResponseMetadata"]["HTTPHeaders"]["x-fgw-cid"]


def test_copy_outlives_its_source(client, bucket, new_bucket):
    other = new_bucket()
    bodies = {"small": b"small", "large": bytes_of(2 * MIB + 1)}
    for key, body in bodies.items():
        client.put_object(Bucket=bucket, Key=key, Body=body)
        client.copy_object(Bucket=other, Key=f"of/{key}", CopySource={"Bucket": bucket, "Key": key})
        client.put_object(Bucket=bucket, Key=key, Body=b"overwritten")
        client.delete_object(Bucket=bucket, Key=key)
    for key, body in bodies.items():
        assert get(client, other, f"of/{key}") == body


def test_copy_survives_a_kill(server_factory):
    server = server_factory()
    client = server.client()
    client.create_bucket(Bucket="bucket")
    body = bytes_of(MIB + 1)
    client.put_object(Bucket="bucket", Key="source", Body=body)
    client.copy_object(Bucket="bucket", Key="copy", CopySource="bucket/source")
    client.delete_object(Bucket="bucket", Key="source")
    server.kill()
    server.start()
    client = server.client()
    assert get(client, "bucket", "copy") == body
    assert refusal_of(client.get_object, Bucket="bucket", Key="source") == (404, "NoSuchKey")


@pytest.mark.parametrize("key", ["a b", "a+b", "a%20b", "\u00fc", "a?b", "a?versionId=x", "%", "a//b",
                                 "/a", "a&b=<c>'\"", "\U0001f600"])
def test_source_names(client, bucket, raw, key):
    client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    client.copy_object(Bucket=bucket, Key="by-client", CopySource={"Bucket": bucket, "Key": key})
    assert get(client, bucket, "by-client") == key.encode()
    quoted = urllib.parse.quote(key, safe="")
    for number, form in enumerate((f"{bucket}/{quoted}", f"/{bucket}/{quoted}",
                                   f"{bucket}%2F{quoted}", f"%2F{bucket}%2F{quoted}",
                                   f"{bucket}/{quoted.replace('%2F', '/').replace('%2B', '+')}")):
        answer = raw("PUT", f"/{bucket}/copy-{number}", [("x-amz-copy-source", form)])
        assert answer.status == 200, (form, answer)
        assert get(client, bucket, f"copy-{number}") == key.encode()


@pytest.mark.parametrize("source", ["", "/", "x", "bucket-only", "/bucket-only/", "%", "a/%zz",
                                    "a/b?versionId=", "a/b?other=1", "a/%ff", "//key"])
def test_broken_sources(bucket, raw, source):
    answer = raw("PUT", f"/{bucket}/key", [("x-amz-copy-source", source)])
    assert status_and_code(answer) == (400, "InvalidArgument")


def test_missing_sources(client, bucket):
    copy = lambda source: refusal_of(client.copy_object, Bucket=bucket, Key="key", CopySource=source)
    assert copy(f"{bucket}/none") == (404, "NoSuchKey")
    assert copy("no-such-bucket-anywhere/none") == (404, "NoSuchBucket")
    assert copy("Bad_Bucket/none") == (404, "NoSuchBucket")
    assert copy(f"{bucket}/none?versionId={'0' * 32}")[0] == 404
    assert refusal_of(client.copy_object, Bucket="no-such-bucket-anywhere", Key="key",
                    CopySource=f"{bucket}/none") == (404, "NoSuchBucket")


SOURCE_HEADERS = {"ContentType": "text/one", "CacheControl": "max-age=1",
                  "ContentDisposition": "inline; one", "ContentLanguage": "de",
                  "ContentEncoding": "gzip", "Metadata": {"one": "1", "two": "2"}}


@pytest.fixture
def source(client, bucket):
    client.put_object(Bucket=bucket, Key="source", Body=b"body", Tagging="tag=one&more=two",
                      StorageClass="STANDARD_IA", Expires="Thu, 01 Dec 2033 16:00:00 GMT",
                      WebsiteRedirectLocation="/elsewhere", **SOURCE_HEADERS)
    return f"{bucket}/source"


def tags(client, bucket, key):
    found = client.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    return {tag["Key"]: tag["Value"] for tag in found}


def test_copy_directive_ignores_what_is_sent(client, bucket, source):
    for directive in ({}, {"MetadataDirective": "COPY", "TaggingDirective": "COPY"}):
        client.copy_object(Bucket=bucket, Key="copy", CopySource=source, ContentType="text/two",
                           CacheControl="no-cache", Metadata={"three": "3"}, Tagging="x=y",
                           **directive)
        head = client.head_object(Bucket=bucket, Key="copy")
        assert {name: head[name] for name in SOURCE_HEADERS} == SOURCE_HEADERS
        assert head["ResponseMetadata"]["HTTPHeaders"]["expires"] == "Thu, 01 Dec 2033 16:00:00 GMT"
        assert tags(client, bucket, "copy") == {"tag": "one", "more": "two"}
        # these two belong to one object and are not copied
        assert "StorageClass" not in head
        assert "WebsiteRedirectLocation" not in head


def test_replace_keeps_only_what_is_sent(client, bucket, source):
    client.copy_object(Bucket=bucket, Key="copy", CopySource=source, MetadataDirective="REPLACE",
                       ContentType="text/two", Metadata={"three": "3"}, StorageClass="ONEZONE_IA",
                       WebsiteRedirectLocation="/here")
    head = client.head_object(Bucket=bucket, Key="copy")
    assert (head["ContentType"], head["Metadata"]) == ("text/two", {"three": "3"})
    assert (head["StorageClass"], head["WebsiteRedirectLocation"]) == ("ONEZONE_IA", "/here")
    for name in ("CacheControl", "ContentDisposition", "ContentLanguage", "ContentEncoding"):
        assert name not in head
    assert tags(client, bucket, "copy") == {"tag": "one", "more": "two"}
    client.copy_object(Bucket=bucket, Key="bare", CopySource=source, MetadataDirective="REPLACE",
                       TaggingDirective="REPLACE")
    bare = client.head_object(Bucket=bucket, Key="bare")
    assert (bare["ContentType"], bare["Metadata"]) == ("binary/octet-stream", {})
    assert tags(client, bucket, "bare") == {}


def test_tagging_directive(client, bucket, source):
    client.copy_object(Bucket=bucket, Key="copy", CopySource=source, TaggingDirective="REPLACE",
                       Tagging="only=this")
    assert tags(client, bucket, "copy") == {"only": "this"}
    assert client.head_object(Bucket=bucket, Key="copy")["ContentType"] == "text/one"


@pytest.mark.parametrize("value", ["replace", "XYZ", ""])
@pytest.mark.parametrize("name", ["x-amz-metadata-directive", "x-amz-tagging-directive"])
def test_unknown_directives(bucket, raw, source, name, value):
    answer = raw("PUT", f"/{bucket}/copy", [("x-amz-copy-source", source), (name, value)])
    assert status_and_code(answer) == (400, "InvalidArgument")


def test_onto_itself(client, bucket, source):
    copy = lambda **arguments: client.copy_object(Bucket=bucket, Key="source", CopySource=source,
                                                  **arguments)
    assert refusal_of(copy) == (400, "InvalidRequest")
    assert refusal_of(copy, MetadataDirective="COPY", Metadata={"a": "b"}) == (400, "InvalidRequest")
    copy(MetadataDirective="REPLACE", Metadata={"a": "b"})
    assert client.head_object(Bucket=bucket, Key="source")["Metadata"] == {"a": "b"}
    copy(StorageClass="STANDARD")
    assert "StorageClass" not in client.head_object(Bucket=bucket, Key="source")
    assert client.head_object(Bucket=bucket, Key="source")["Metadata"] == {"a": "b"}
    assert get(client, bucket, "source") == b"body"


def test_onto_itself_again_and_again(client, bucket):
    """The blob's old hold goes and its new one comes in one step."""
    bodies = {"small": b"x" * 1000, "large": bytes_of(MIB + 3)}
    for key, body in bodies.items():
        client.put_object(Bucket=bucket, Key=key, Body=body)
        for i in range(5):
            client.copy_object(Bucket=bucket, Key=key, CopySource=f"{bucket}/{key}",
                               MetadataDirective="REPLACE", Metadata={"round": str(i)})
        assert get(client, bucket, key) == body
        assert client.head_object(Bucket=bucket, Key=key)["Metadata"] == {"round": "4"}


def test_source_conditions(client, bucket, source):
    head = client.head_object(Bucket=bucket, Key="source")
    etag, when = head["ETag"], head["LastModified"]
    before, after = when.replace(year=when.year - 1), when.replace(year=when.year + 1)
    copy = lambda **arguments: client.copy_object(Bucket=bucket, Key="copy", CopySource=source,
                                                  **arguments)
    failed = (412, "PreconditionFailed")
    copy(CopySourceIfMatch=etag)
    copy(CopySourceIfMatch=etag, CopySourceIfUnmodifiedSince=before)
    copy(CopySourceIfNoneMatch='"other"', CopySourceIfModifiedSince=after)
    copy(CopySourceIfModifiedSince=before)
    copy(CopySourceIfUnmodifiedSince=after)
    assert refusal_of(copy, CopySourceIfMatch='"other"') == failed
    assert refusal_of(copy, CopySourceIfNoneMatch=etag) == failed
    assert refusal_of(copy, CopySourceIfModifiedSince=when) == failed
    assert refusal_of(copy, CopySourceIfUnmodifiedSince=before) == failed


def test_conditions_of_the_copy(client, bucket, source):
    copy = lambda **arguments: client.copy_object(Bucket=bucket, Key="copy", CopySource=source,
                                                  **arguments)
    assert refusal_of(copy, IfMatch='"x"') == (404, "NoSuchKey")
    copy(IfNoneMatch="*")
    assert refusal_of(copy, IfNoneMatch="*") == (412, "PreconditionFailed")
    assert refusal_of(copy, IfMatch='"x"') == (412, "PreconditionFailed")
    copy(IfMatch=client.head_object(Bucket=bucket, Key="copy")["ETag"])


def test_versions(client, bucket):
    first = client.put_object(Bucket=bucket, Key="source", Body=b"null")
    assert "VersionId" not in first
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    one = client.put_object(Bucket=bucket, Key="source", Body=b"one")["VersionId"]
    two = client.put_object(Bucket=bucket, Key="source", Body=b"two")["VersionId"]
    for version, body in ((None, b"two"), (one, b"one"), (two, b"two"), ("null", b"null")):
        named = {"Bucket": bucket, "Key": "source"}
        if version is not None:
            named["VersionId"] = version
        copied = client.copy_object(Bucket=bucket, Key="copy", CopySource=named)
        assert copied["CopySourceVersionId"] == (version or two)
        assert get(client, bucket, "copy", VersionId=copied["VersionId"]) == body
    # bringing an old version back
    back = client.copy_object(Bucket=bucket, Key="source",
                              CopySource={"Bucket": bucket, "Key": "source", "VersionId": one})
    assert get(client, bucket, "source") == b"one"
    assert back["VersionId"] not in (one, two)
    marker = client.delete_object(Bucket=bucket, Key="source")["VersionId"]
    copy = lambda source: refusal_of(client.copy_object, Bucket=bucket, Key="copy", CopySource=source)
    assert copy(f"{bucket}/source") == (404, "NoSuchKey")
    assert copy(f"{bucket}/source?versionId={marker}") == (400, "InvalidRequest")
    assert copy(f"{bucket}/source?versionId={'0' * 32}") == (404, "NoSuchVersion")
    assert copy(f"{bucket}/source?versionId=junk") == (400, "InvalidArgument")


def test_copy_of_a_multipart_object(client, bucket):
    bodies = [bytes_of(PART, 1), bytes_of(PART, 2), bytes_of(77, 3)]
    done = multipart(client, bucket, "source", bodies, ChecksumAlgorithm="CRC32")
    copied = client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")
    result = copied["CopyObjectResult"]
    assert result["ETag"] == done["ETag"]
    assert (result["ChecksumCRC32"], result["ChecksumType"]) == (done["ChecksumCRC32"], "COMPOSITE")
    assert result["ChecksumCRC32"].endswith("-3")
    client.delete_object(Bucket=bucket, Key="source")
    assert get(client, bucket, "copy") == b"".join(bodies)
    assert get(client, bucket, "copy", Range=f"bytes={PART - 2}-{PART + 2}") == (
        bodies[0][-2:] + bodies[1][:3])
    head = client.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")
    assert head["ChecksumCRC32"] == done["ChecksumCRC32"]
    assert "PartsCount" not in client.head_object(Bucket=bucket, Key="copy", PartNumber=1)


def test_copy_with_another_checksum(client, bucket):
    body = bytes_of(2 * MIB + 9)
    client.put_object(Bucket=bucket, Key="source", Body=body, ChecksumAlgorithm="CRC32")
    result = client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source",
                                ChecksumAlgorithm="SHA256")["CopyObjectResult"]
    assert result["ChecksumSHA256"] == base64.b64encode(hashlib.sha256(body).digest()).decode()
    assert "ChecksumCRC32" not in result
    head = client.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == result["ChecksumSHA256"]


def test_acl_is_not_copied(client, bucket):
    client.put_object(Bucket=bucket, Key="source", Body=b"x", ACL="public-read")
    client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")
    client.copy_object(Bucket=bucket, Key="open", CopySource=f"{bucket}/source", ACL="public-read")
    grants = lambda key: len(client.get_object_acl(Bucket=bucket, Key=key)["Grants"])
    assert (grants("source"), grants("copy"), grants("open")) == (2, 1, 2)


def test_what_anonymous_callers_may_copy(client, server, bucket, new_bucket):
    target = new_bucket()
    client.put_bucket_acl(Bucket=target, ACL="public-read-write")
    client.put_object(Bucket=bucket, Key="private", Body=b"p")
    client.put_object(Bucket=bucket, Key="public", Body=b"q", ACL="public-read")
    copy = lambda key: server.raw("PUT", f"/{target}/{key}", [
        ("x-amz-copy-source", f"/{bucket}/{key}"), ("Content-Length", "0")], signer=Anonymous())
    assert status_and_code(copy("private")) == (403, "AccessDenied")
    assert status_and_code(copy("none")) == (403, "AccessDenied")
    assert copy("public").status == 200
    assert get(client, target, "public") == b"q"


class Anonymous:
    """A signer that does not sign."""

    def headers(self, _method, _target, headers, _payload_hash):
        return list(headers)


def test_source_owner_expected(client, bucket, source):
    copy = lambda owner: client.copy_object(Bucket=bucket, Key="copy", CopySource=source,
                                            ExpectedSourceBucketOwner=owner)
    assert refusal_of(copy, "000000000000") == (403, "AccessDenied")
    copy(client.list_buckets()["Owner"]["ID"])


# -- UploadPartCopy ---------------------------------------------------------------------------

class PartCopies:
    """An upload whose parts are copies."""

    def __init__(self, client, bucket, **arguments):
        self.client = client
        self.names = {"Bucket": bucket, "Key": "copied"}
        self.names["UploadId"] = client.create_multipart_upload(**self.names, **arguments)[
            "UploadId"]
        self.etags = {}

    def copy(self, number, source, span=None, **arguments):
        if span is not None:
            arguments["CopySourceRange"] = span
        answer = self.client.upload_part_copy(**self.names, PartNumber=number, CopySource=source,
                                              **arguments)
        self.etags[number] = answer["CopyPartResult"]["ETag"]
        return answer

    def complete(self):
        return self.client.complete_multipart_upload(**self.names, MultipartUpload={"Parts": [
            {"PartNumber": n, "ETag": self.etags[n]} for n in sorted(self.etags)]})


def etag_of(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def test_parts_from_copies(client, bucket, new_bucket):
    other = new_bucket()
    body = bytes_of(PART + 12345)
    client.put_object(Bucket=other, Key="source", Body=body)
    parts = PartCopies(client, bucket)
    whole = parts.copy(1, f"{other}/source")["CopyPartResult"]
    assert whole["ETag"] == etag_of(body)
    assert abs(whole["LastModified"].timestamp() - time.time()) < 60
    slice_ = parts.copy(2, f"{other}/source", f"bytes=100-{PART + 200}")["CopyPartResult"]
    assert slice_["ETag"] == etag_of(body[100:PART + 201])
    parts.copy(3, f"{other}/source", "bytes=7-7")
    client.delete_object(Bucket=other, Key="source")
    parts.complete()
    assert get(client, bucket, "copied") == body + body[100:PART + 201] + body[7:8]


def test_part_from_a_small_object(client, bucket):
    client.put_object(Bucket=bucket, Key="source", Body=b"0123456789")
    parts = PartCopies(client, bucket)
    parts.copy(1, f"{bucket}/source", "bytes=0-9")
    assert parts.complete()["ETag"].endswith('-1"')
    assert get(client, bucket, "copied") == b"0123456789"


def test_part_from_a_multipart_object(client, bucket):
    bodies = [bytes_of(PART, 1), bytes_of(PART, 2)]
    multipart(client, bucket, "source", bodies)
    parts = PartCopies(client, bucket)
    assert parts.copy(1, f"{bucket}/source")["CopyPartResult"]["ETag"] == etag_of(b"".join(bodies))
    second = parts.copy(2, f"{bucket}/source", f"bytes={PART}-{2 * PART - 1}")
    assert second["CopyPartResult"]["ETag"] == etag_of(bodies[1])
    across = parts.copy(3, f"{bucket}/source", f"bytes={PART - 3}-{PART + 2}")
    assert across["CopyPartResult"]["ETag"] == etag_of(bodies[0][-3:] + bodies[1][:3])
    parts.complete()
    assert get(client, bucket, "copied") == (b"".join(bodies) + bodies[1] + bodies[0][-3:] +
                                             bodies[1][:3])


@pytest.mark.parametrize("span, code", [
    ("bytes=0-4", None), ("bytes=9-9", None), ("bytes=0-9", None),
    ("bytes=5-", "InvalidArgument"), ("bytes=-5", "InvalidArgument"), ("0-4", "InvalidArgument"),
    ("bytes=4-0", "InvalidArgument"), ("bytes=0-4,6-7", "InvalidArgument"),
    ("bytes=a-b", "InvalidArgument"), ("bytes=", "InvalidArgument"), ("", "InvalidArgument"),
    ("bytes=0-10", "InvalidRange"), ("bytes=10-10", "InvalidRange"),
    ("bytes=0-99999999", "InvalidRange"), ("bytes=0-99999999999999999999999", "InvalidRange"),
])
def test_copy_ranges(client, bucket, raw, span, code):
    client.put_object(Bucket=bucket, Key="source", Body=b"0123456789")
    parts = PartCopies(client, bucket)
    answer = raw("PUT", f"/{bucket}/copied?partNumber=1&uploadId={parts.names['UploadId']}",
                 [("x-amz-copy-source", f"{bucket}/source"), ("x-amz-copy-source-range", span)])
    if code is None:
        first, last = map(int, span[6:].split("-"))
        assert answer.status == 200, answer
        assert xml.etree.ElementTree.fromstring(answer.body).findtext(NAMESPACE + "ETag") == (
            etag_of(b"0123456789"[first:last + 1]))
    else:
        assert status_and_code(answer)[0] in (400, 416)
        assert status_and_code(answer)[1] == code


def test_part_from_nothing(client, bucket, raw):
    client.put_object(Bucket=bucket, Key="source", Body=b"")
    parts = PartCopies(client, bucket)
    assert refusal_of(parts.copy, 1, f"{bucket}/source", "bytes=0-0")[1] == "InvalidRange"
    assert parts.copy(1, f"{bucket}/source")["CopyPartResult"]["ETag"] == etag_of(b"")
    parts.complete()
    assert get(client, bucket, "copied") == b""


def test_part_copies_that_are_refused(client, bucket):
    client.put_object(Bucket=bucket, Key="source", Body=b"0123456789")
    etag = etag_of(b"0123456789")
    parts = PartCopies(client, bucket)
    source = f"{bucket}/source"
    assert refusal_of(parts.copy, 1, source, CopySourceIfMatch='"x"') == (412, "PreconditionFailed")
    assert refusal_of(parts.copy, 1, source, CopySourceIfNoneMatch=etag) == (
        412, "PreconditionFailed")
    parts.copy(1, source, CopySourceIfMatch=etag)
    assert refusal_of(parts.copy, 0, source) == (400, "InvalidArgument")
    assert refusal_of(parts.copy, 10001, source) == (400, "InvalidArgument")
    assert refusal_of(parts.copy, 1, f"{bucket}/none") == (404, "NoSuchKey")
    parts.names["UploadId"] = "0" * 32
    assert refusal_of(parts.copy, 1, source) == (404, "NoSuchUpload")


def test_checksums_of_part_copies(client, bucket):
    body = bytes_of(PART)
    client.put_object(Bucket=bucket, Key="same", Body=body, ChecksumAlgorithm="CRC32")
    client.put_object(Bucket=bucket, Key="other", Body=b"tail", ChecksumAlgorithm="SHA256")
    parts = PartCopies(client, bucket, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")
    text = lambda data: base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
    assert parts.copy(1, f"{bucket}/same")["CopyPartResult"]["ChecksumCRC32"] == text(body)
    assert parts.copy(2, f"{bucket}/other")["CopyPartResult"]["ChecksumCRC32"] == text(b"tail")
    assert parts.complete()["ChecksumCRC32"] == text(body + b"tail")
    assert get(client, bucket, "copied") == body + b"tail"


def test_part_copy_of_a_version(client, bucket):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    one = client.put_object(Bucket=bucket, Key="source", Body=b"one")["VersionId"]
    client.put_object(Bucket=bucket, Key="source", Body=b"two")
    parts = PartCopies(client, bucket)
    answer = parts.copy(1, {"Bucket": bucket, "Key": "source", "VersionId": one})
    assert answer["CopySourceVersionId"] == one
    assert "VersionId" in parts.complete()
    assert get(client, bucket, "copied") == b"one"


def test_managed_copy(client, bucket):
    """As boto3's copy does it: HEAD, then UploadPartCopy with conditions."""
    import boto3.s3.transfer  # pylint: disable=import-outside-toplevel
    body = bytes_of(2 * PART + 17)
    client.put_object(Bucket=bucket, Key="source", Body=body)
    config = boto3.s3.transfer.TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
    client.copy({"Bucket": bucket, "Key": "source"}, bucket, "copy", Config=config)
    assert get(client, bucket, "copy") == body

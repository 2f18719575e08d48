"""Multipart uploads: spec/s3-wire.md 57 to 67 and the public bug reports B50 to B60, B90."""
import base64
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import time
import urllib.parse
import xml.etree.ElementTree
import zlib

import botocore.exceptions
import pytest

from s3util import bytes_of, refusal_of, status_and_code

MIB = 1024 * 1024
PART = 5 * MIB
NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def multipart_etag(*bodies):
    digests = b"".join(hashlib.md5(body).digest() for body in bodies)
    return f'"{hashlib.md5(digests).hexdigest()}-{len(bodies)}"'


class Upload:
    """One upload, with the parts as they were acknowledged."""

    def __init__(self, client, bucket, key="key", **arguments):
        self.client = client
        self.names = {"Bucket": bucket, "Key": key}
        answer = client.create_multipart_upload(**self.names, **arguments)
        self.id = answer["UploadId"]
        self.created = answer
        self.names_with_id = {**self.names, "UploadId": self.id}
        self.etags = {}

    def part(self, number, body, **arguments):
        answer = self.client.upload_part(**self.names_with_id, PartNumber=number, Body=body,
                                         **arguments)
        self.etags[number] = answer["ETag"]
        return answer

    def listed(self, numbers=None):
        return [{"PartNumber": n, "ETag": self.etags[n]}
                for n in (sorted(self.etags) if numbers is None else numbers)]

    def complete(self, parts=None, **arguments):
        return self.client.complete_multipart_upload(
            **self.names_with_id,
            MultipartUpload={"Parts": self.listed() if parts is None else parts}, **arguments)

    def list_parts(self, **arguments):
        return self.client.list_parts(**self.names_with_id, **arguments)

    def abort(self):
        return self.client.abort_multipart_upload(**self.names_with_id)


@pytest.fixture
def upload(client, bucket):
    return lambda key="key", **arguments: Upload(client, bucket, key, **arguments)


def get(client, bucket, key="key", **arguments):
    return client.get_object(Bucket=bucket, Key=key, **arguments)["Body"].read()


# -- the whole way ----------------------------------------------------------------------------

def test_two_parts_become_an_object(client, bucket, upload):
    first, second = bytes_of(PART), bytes_of(1234567, 2)
    made = upload(Metadata={"color": "blue"}, ContentType="text/fancy",
                  CacheControl="max-age=7", Tagging="a=1&b=2")
    assert made.part(1, first)["ETag"] == f'"{hashlib.md5(first).hexdigest()}"'
    made.part(2, second)
    assert client.list_objects_v2(Bucket=bucket).get("Contents") is None
    assert refusal_of(client.get_object, **made.names) == (404, "NoSuchKey")
    done = made.complete()
    etag = multipart_etag(first, second)
    assert done["ETag"] == etag
    assert (done["Bucket"], done["Key"]) == (bucket, "key")
    assert done["Location"].endswith(f"/{bucket}/key")
    assert "VersionId" not in done
    found = client.get_object(**made.names)
    assert found["Body"].read() == first + second
    assert found["ETag"] == etag
    assert found["Metadata"] == {"color": "blue"}
    assert found["ContentType"] == "text/fancy"
    assert found["CacheControl"] == "max-age=7"
    assert found["TagCount"] == 2
    head = client.head_object(**made.names)
    assert (head["ETag"], head["ContentLength"]) == (etag, len(first) + len(second))
    entry = client.list_objects_v2(Bucket=bucket)["Contents"][0]
    assert (entry["ETag"], entry["Size"]) == (etag, len(first) + len(second))


def test_range_across_parts(client, bucket, upload):
    parts = [bytes_of(PART, 1), bytes_of(PART + 1, 2), bytes_of(10, 3)]
    whole = b"".join(parts)
    made = upload()
    for number, body in enumerate(parts, 1):
        made.part(number, body)
    made.complete()
    for first, last in ((0, 0), (PART - 1, PART), (PART - 5, 2 * PART + 3),
                        (2 * PART, len(whole) - 1), (len(whole) - 1, len(whole) - 1)):
        assert get(client, bucket, Range=f"bytes={first}-{last}") == whole[first:last + 1]
    assert get(client, bucket, Range="bytes=-12") == whole[-12:]


def test_one_part_has_an_etag_with_a_count(client, bucket, upload):
    made = upload()
    made.part(1, b"tiny")
    assert made.complete()["ETag"] == multipart_etag(b"tiny")
    assert get(client, bucket) == b"tiny"


def test_empty_object(client, bucket, upload):
    made = upload("registry/empty")
    made.part(1, b"")
    assert made.complete()["ETag"] == multipart_etag(b"")
    head = client.head_object(Bucket=bucket, Key="registry/empty")
    assert (head["ContentLength"], head["ETag"]) == (0, multipart_etag(b""))
    assert get(client, bucket, "registry/empty") == b""
    assert refusal_of(client.get_object, Bucket=bucket, Key="registry/empty",
                    Range="bytes=0-0") == (416, "InvalidRange")
    client.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/registry/empty")
    assert get(client, bucket, "copy") == b""


def test_known_multipart_etag(client, bucket, upload):
    """The vector of Amazon's own examples: parts of one repeated letter."""
    made = upload()
    bodies = [b"a" * PART, b"b" * 3]
    for number, body in enumerate(bodies, 1):
        made.part(number, body)
    assert made.complete()["ETag"] == multipart_etag(*bodies)


def test_gaps_and_subset(client, bucket, upload):
    made = upload()
    bodies = {2: bytes_of(PART, 2), 7: bytes_of(PART, 7), 9000: b"end"}
    for number, body in bodies.items():
        made.part(number, body)
    done = made.complete(made.listed([2, 9000]))
    assert done["ETag"] == multipart_etag(bodies[2], bodies[9000])
    assert get(client, bucket) == bodies[2] + bodies[9000]


def test_cid_of_a_single_part_is_that_of_the_bytes(client, bucket, upload, raw):
    body = bytes_of(3 * MIB + 17)
    client.put_object(Bucket=bucket, Key="plain", Body=body)
    made = upload()
    made.part(1, body)
    headers = made.complete()["ResponseMetadata"]["HTTPHeaders"]
    plain = client.head_object(Bucket=bucket, Key="plain")["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-fgw-cid"] == plain["x-fgw-cid"]
    assert headers["x-fgw-cid-profile"] == "unixfs-v1-2025"


def test_cid_of_whole_leaves_is_that_of_the_bytes(client, bucket, upload):
    bodies = [bytes_of(PART, 1), bytes_of(PART + MIB, 2), bytes_of(3 * MIB + 17, 3)]
    client.put_object(Bucket=bucket, Key="plain", Body=b"".join(bodies))
    made = upload()
    for number, body in enumerate(bodies, 1):
        made.part(number, body)
    headers = made.complete()["ResponseMetadata"]["HTTPHeaders"]
    plain = client.head_object(Bucket=bucket, Key="plain")["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-fgw-cid"] == plain["x-fgw-cid"]
    assert headers["x-fgw-cid-profile"] == "unixfs-v1-2025"


def test_cid_of_odd_parts_is_another_and_says_so(client, bucket, upload):
    bodies = [bytes_of(PART + 1, 1), bytes_of(5, 2)]
    client.put_object(Bucket=bucket, Key="plain", Body=b"".join(bodies))
    made = upload()
    for number, body in enumerate(bodies, 1):
        made.part(number, body)
    headers = made.complete()["ResponseMetadata"]["HTTPHeaders"]
    plain = client.head_object(Bucket=bucket, Key="plain")["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-fgw-cid-profile"] == "custom"
    assert headers["x-fgw-cid"].startswith("bafybei")
    assert headers["x-fgw-cid"] != plain["x-fgw-cid"]


# -- Complete: what is refused ----------------------------------------------------------------

def test_order_and_duplicates(upload):
    made = upload()
    for number in (1, 2):
        made.part(number, bytes_of(PART, number))
    one, two = made.listed()
    assert refusal_of(made.complete, [two, one]) == (400, "InvalidPartOrder")
    assert refusal_of(made.complete, [one, one]) == (400, "InvalidPartOrder")
    missing = {"PartNumber": 3, "ETag": one["ETag"]}
    assert refusal_of(made.complete, [one, missing]) == (400, "InvalidPart")
    wrong = {"PartNumber": 2, "ETag": one["ETag"]}
    assert refusal_of(made.complete, [one, wrong]) == (400, "InvalidPart")
    garbage = {"PartNumber": 2, "ETag": "ffffffffffffffffffffffffffffffffffff"}
    assert refusal_of(made.complete, [one, garbage]) == (400, "InvalidPart")
    assert len(made.list_parts()["Parts"]) == 2
    bare = {"PartNumber": 1, "ETag": one["ETag"].strip('"')}
    assert made.complete([bare])["ETag"].endswith('-1"')


def complete_raw(raw, bucket, upload_id, document, key="key", **options):
    target = f"/{bucket}/{key}?uploadId={upload_id}"
    return raw("POST", target, [("Content-Type", "application/xml")], document, **options)


@pytest.mark.parametrize("document, code", [
    (b"", "MalformedXML"),
    (b"<CompleteMultipartUpload/>", "MalformedXML"),
    (b"<CompleteMultipartUpload></CompleteMultipartUpload>x", "MalformedXML"),
    (b"<CompleteMultipartUpload><Part>", "MalformedXML"),
    (b"<Complete><Part/></Complete>", "MalformedXML"),
    (b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
     "MalformedXML"),
    (b"<CompleteMultipartUpload><Part><ETag>a</ETag></Part></CompleteMultipartUpload>",
     "MalformedXML"),
    (b"<CompleteMultipartUpload><Part><PartNumber>x</PartNumber><ETag>a</ETag></Part>"
     b"</CompleteMultipartUpload>", "MalformedXML"),
    (b"<CompleteMultipartUpload><Part><PartNumber>0</PartNumber><ETag>a</ETag></Part>"
     b"</CompleteMultipartUpload>", "InvalidArgument"),
    (b"<CompleteMultipartUpload><Part><PartNumber>-1</PartNumber><ETag>a</ETag></Part>"
     b"</CompleteMultipartUpload>", "InvalidArgument"),
    (b"<CompleteMultipartUpload><Part><PartNumber>10001</PartNumber><ETag>a</ETag></Part>"
     b"</CompleteMultipartUpload>", "InvalidArgument"),
    (b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>"
     b"</CompleteMultipartUpload>", "InvalidPart"),
    (b"<!DOCTYPE a [<!ENTITY b 'c'>]><CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
     b"<ETag>&b;</ETag></Part></CompleteMultipartUpload>", "MalformedXML"),
])
def test_bad_documents(raw, bucket, upload, document, code):
    made = upload()
    assert status_and_code(complete_raw(raw, bucket, made.id, document)) == (400, code)
    assert made.list_parts()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_quoted_etags_in_xml(client, raw, bucket, upload):
    made = upload()
    etag = made.part(1, b"data")["ETag"].strip('"')
    answer = complete_raw(raw, bucket, made.id, (
        '<?xml version="1.0" encoding="UTF-8"?>\n<CompleteMultipartUpload xmlns='
        '"http://s3.amazonaws.com/doc/2006-03-01/">\n <Part>\n  <PartNumber> 1 </PartNumber>\n'
        f'  <ETag>&quot;{etag}&quot;</ETag>\n </Part>\n</CompleteMultipartUpload>\n').encode())
    assert answer.status == 200, answer
    assert get(client, bucket) == b"data"


def test_too_many_parts_and_too_large_a_body(raw, bucket, upload):
    made = upload()
    part = b"<Part><PartNumber>%d</PartNumber><ETag>0123456789abcdef0123456789abcdef</ETag></Part>"
    document = b"<CompleteMultipartUpload>%s</CompleteMultipartUpload>"
    many = document % b"".join(part % n for n in range(1, 10002))
    assert status_and_code(complete_raw(raw, bucket, made.id, many))[0] == 400
    full = document % b"".join(part % n for n in range(1, 10001))
    assert status_and_code(complete_raw(raw, bucket, made.id, full)) == (400, "InvalidPart")
    huge = b"<CompleteMultipartUpload>" + b" " * (2 * MIB) + b"</CompleteMultipartUpload>"
    assert status_and_code(complete_raw(raw, bucket, made.id, huge)) == (400, "MalformedXML")


@pytest.mark.parametrize("upload_id", ["", "x", "0" * 32, "%00", "a" * 300])
def test_unknown_uploads(raw, bucket, upload, upload_id):
    upload().part(1, b"x")
    document = (b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>"
                b"</CompleteMultipartUpload>")
    assert status_and_code(complete_raw(raw, bucket, upload_id, document)) == (404, "NoSuchUpload")
    target = f"/{bucket}/key?uploadId={upload_id}"
    assert status_and_code(raw("DELETE", target)) == (404, "NoSuchUpload")
    assert status_and_code(raw("GET", target)) == (404, "NoSuchUpload")
    assert status_and_code(raw("PUT", f"{target}&partNumber=1", body=b"x")) == (404, "NoSuchUpload")


def test_upload_of_another_key(client, bucket, upload):
    made = upload("one")
    assert refusal_of(client.upload_part, Bucket=bucket, Key="two", UploadId=made.id, PartNumber=1,
                    Body=b"x") == (404, "NoSuchUpload")
    assert refusal_of(client.abort_multipart_upload, Bucket=bucket, Key="two",
                    UploadId=made.id) == (404, "NoSuchUpload")


@pytest.mark.parametrize("number", ["0", "10001", "-1", "x", "", "99999999999999999999"])
def test_bad_part_numbers(raw, bucket, upload, number):
    made = upload()
    target = f"/{bucket}/key?partNumber={number}&uploadId={made.id}"
    assert status_and_code(raw("PUT", target, body=b"x")) == (400, "InvalidArgument")


def test_small_parts(client, bucket, upload):
    made = upload()
    made.part(1, bytes_of(PART - 1))
    made.part(2, bytes_of(PART, 2))
    assert refusal_of(made.complete) == (400, "EntityTooSmall")
    assert len(made.list_parts()["Parts"]) == 2
    made.part(1, bytes_of(PART))
    made.part(2, bytes_of(PART - 1, 2))
    made.complete()
    assert client.head_object(**made.names)["ContentLength"] == 2 * PART - 1


def test_object_size_announced(upload):
    made = upload()
    made.part(1, b"12345")
    assert refusal_of(made.complete, MpuObjectSize=4) == (400, "InvalidRequest")
    made.complete(MpuObjectSize=5)


# -- repeats ----------------------------------------------------------------------------------

def test_complete_again(client, bucket, upload):
    made = upload()
    made.part(1, bytes_of(PART))
    made.part(2, b"second")
    first = made.complete()
    again = made.complete()
    assert again["ETag"] == first["ETag"]
    assert refusal_of(made.complete, made.listed([1])) == (404, "NoSuchUpload")
    assert refusal_of(made.abort) == (404, "NoSuchUpload")
    assert refusal_of(made.part, 3, b"late") == (404, "NoSuchUpload")
    assert refusal_of(made.list_parts) == (404, "NoSuchUpload")
    client.put_object(**made.names, Body=b"newer")
    assert made.complete()["ETag"] == first["ETag"]
    assert get(client, bucket) == b"newer"


def test_complete_again_with_version(client, bucket, upload):
    client.put_bucket_versioning(Bucket=bucket,
                                 VersioningConfiguration={"Status": "Enabled"})
    made = upload()
    made.part(1, b"data")
    first = made.complete()
    assert made.complete()["VersionId"] == first["VersionId"]
    versions = client.list_object_versions(Bucket=bucket)["Versions"]
    assert [v["VersionId"] for v in versions] == [first["VersionId"]]


def test_complete_by_several_at_once(server, bucket):
    client = server.client(max_pool_connections=8)
    for round_number in range(5):
        made = Upload(client, bucket, f"race-{round_number}")
        made.part(1, bytes_of(PART))
        made.part(2, b"end")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _, m=made: m.complete()["ETag"], range(8)))
        assert set(answers) == {multipart_etag(bytes_of(PART), b"end")}
        assert get(client, bucket, f"race-{round_number}") == bytes_of(PART) + b"end"


def test_complete_against_abort(server, bucket):
    client = server.client(max_pool_connections=4)
    for round_number in range(10):
        key = f"race-{round_number}"
        made = Upload(client, bucket, key)
        made.part(1, b"data")
        outcome = {}

        def run(name, call, outcome=outcome):
            try:
                call()
                outcome[name] = True
            except botocore.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] in ("NoSuchUpload", "InvalidPart")
                outcome[name] = False

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda pair: run(*pair), [("complete", made.complete),
                                                    ("abort", made.abort)]))
        assert outcome["complete"] != outcome["abort"]
        if outcome["complete"]:
            assert get(client, bucket, key) == b"data"
        else:
            assert refusal_of(client.get_object, Bucket=bucket, Key=key) == (404, "NoSuchKey")


def test_part_again(client, bucket, upload):
    made = upload()
    old = made.part(1, b"A" * 100)["ETag"]
    made.part(1, b"B" * 200)
    parts = made.list_parts()["Parts"]
    assert [(p["PartNumber"], p["Size"], p["ETag"]) for p in parts] == [(1, 200, made.etags[1])]
    assert refusal_of(made.complete, [{"PartNumber": 1, "ETag": old}]) == (400, "InvalidPart")
    made.complete()
    assert get(client, bucket) == b"B" * 200


def test_part_again_and_again(client, bucket, upload):
    """Attempts within one millisecond still have an order."""
    made = upload()
    for i in range(30):
        made.part(1, b"%d" % i)
    made.complete()
    assert get(client, bucket) == b"29"


def test_interrupted_part(client, server, bucket, upload):
    made = upload()
    body = bytes_of(PART)
    signer = server.signer()
    target = f"/{bucket}/key?partNumber=1&uploadId={made.id}"
    headers = signer.headers("PUT", target, [("Host", server.netloc),
                                             ("Content-Length", str(len(body)))],
                             hashlib.sha256(body).hexdigest())
    head = f"PUT {target} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n"
    with server.connect() as connection:
        connection.send(head.encode() + body[:MIB])
    assert made.list_parts().get("Parts", []) == []
    made.part(1, body)
    assert [p["Size"] for p in made.list_parts()["Parts"]] == [PART]
    made.complete()
    assert get(client, bucket) == body


def test_abort(client, bucket, upload):
    made = upload()
    made.part(1, bytes_of(PART))
    assert made.abort()["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert refusal_of(made.abort) == (404, "NoSuchUpload")
    assert refusal_of(made.complete) == (404, "NoSuchUpload")
    assert refusal_of(made.part, 1, b"x") == (404, "NoSuchUpload")
    assert client.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


def test_wrong_digests(upload):
    made = upload()
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    assert refusal_of(made.part, 1, b"data", ContentMD5=wrong) == (400, "BadDigest")
    assert refusal_of(made.part, 1, b"data",
                    ChecksumSHA256=base64.b64encode(bytes(32)).decode()) == (400, "BadDigest")
    assert made.list_parts().get("Parts", []) == []


def test_survives_a_kill(server_factory):
    server = server_factory()
    client = server.client()
    client.create_bucket(Bucket="bucket")
    made = Upload(client, "bucket")
    bodies = [bytes_of(PART, 1), bytes_of(300000, 2)]
    made.part(1, bodies[0])
    made.part(2, bodies[1])
    server.kill()
    server.start()
    made.client = client = server.client()
    assert [p["Size"] for p in made.list_parts()["Parts"]] == [PART, 300000]
    done = made.complete()
    server.kill()
    server.start()
    made.client = client = server.client()
    assert get(client, "bucket") == b"".join(bodies)
    assert made.complete()["ETag"] == done["ETag"] == multipart_etag(*bodies)


# -- conditions -------------------------------------------------------------------------------

def test_conditions_of_complete(client, bucket, upload):
    made = upload()
    made.part(1, b"one")
    assert refusal_of(made.complete, IfMatch='"0123"') == (404, "NoSuchKey")
    etag = client.put_object(**made.names, Body=b"there")["ETag"]
    assert refusal_of(made.complete, IfNoneMatch="*") == (412, "PreconditionFailed")
    assert refusal_of(made.complete, IfMatch='"0123"') == (412, "PreconditionFailed")
    assert get(client, bucket) == b"there"
    assert len(made.list_parts()["Parts"]) == 1
    made.complete(IfMatch=etag)
    assert get(client, bucket) == b"one"
    other = upload()
    other.part(1, b"two")
    assert refusal_of(other.complete, IfNoneMatch="*") == (412, "PreconditionFailed")
    client.delete_object(**made.names)
    other.complete(IfNoneMatch="*")
    assert other.complete(IfNoneMatch="*")["ETag"] == multipart_etag(b"two")


# -- ListParts --------------------------------------------------------------------------------

def test_list_parts(client, bucket, upload):
    made = upload(StorageClass="STANDARD_IA")
    for number in (1, 3, 4, 9, 10000):
        made.part(number, b"x" * number)
    answer = made.list_parts()
    assert [(p["PartNumber"], p["Size"]) for p in answer["Parts"]] == [
        (n, n) for n in (1, 3, 4, 9, 10000)]
    assert all(p["ETag"] == made.etags[p["PartNumber"]] for p in answer["Parts"])
    assert answer["IsTruncated"] is False
    assert answer["MaxParts"] == 1000
    assert answer["StorageClass"] == "STANDARD_IA"
    assert answer["Owner"] == answer["Initiator"]
    assert answer["Owner"]["DisplayName"] == "root"
    page = made.list_parts(MaxParts=2, PartNumberMarker=1)
    assert [p["PartNumber"] for p in page["Parts"]] == [3, 4]
    assert (page["IsTruncated"], page["NextPartNumberMarker"], page["PartNumberMarker"]) == (
        True, 4, 1)
    assert made.list_parts(PartNumberMarker=10000).get("Parts", []) == []
    assert made.list_parts(PartNumberMarker=2147483647).get("Parts", []) == []
    assert made.list_parts(MaxParts=2000)["MaxParts"] == 1000
    walked = [p["PartNumber"] for page in client.get_paginator("list_parts").paginate(
        **made.names_with_id, PaginationConfig={"PageSize": 1}) for p in page["Parts"]]
    assert walked == [1, 3, 4, 9, 10000]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_over_a_thousand_parts(client, bucket, upload):
    source = bytes_of(PART)
    client.put_object(Bucket=bucket, Key="source", Body=source)
    made = upload()
    for number in range(1, 1006):
        answer = client.upload_part_copy(**made.names_with_id, PartNumber=number,
                                         CopySource=f"{bucket}/source")
        made.etags[number] = answer["CopyPartResult"]["ETag"]
    page = made.list_parts()
    assert (len(page["Parts"]), page["IsTruncated"], page["NextPartNumberMarker"]) == (
        1000, True, 1000)
    assert len(made.list_parts(MaxParts=2000)["Parts"]) == 1000
    rest = made.list_parts(PartNumberMarker=1000)
    assert ([p["PartNumber"] for p in rest["Parts"]], rest["IsTruncated"]) == (
        [1001, 1002, 1003, 1004, 1005], False)
    assert made.complete()["ETag"] == multipart_etag(*([source] * 1005))
    head = client.head_object(**made.names)
    assert head["ContentLength"] == 1005 * PART
    assert get(client, bucket, Range=f"bytes={1004 * PART + 7}-{1004 * PART + 99}") == source[7:100]
    client.delete_object(**made.names)
    assert get(client, bucket, "source") == source


# -- ListMultipartUploads ---------------------------------------------------------------------

def uploads_of(answer):
    return [(u["Key"], u["UploadId"]) for u in answer.get("Uploads", [])]


def test_list_uploads(client, bucket, upload):
    ids = [upload(key).id for key in ("r/x", "r/x", "r/y", "s")]
    ids[:2] = sorted(ids[:2])  # within one millisecond any order will do
    answer = client.list_multipart_uploads(Bucket=bucket)
    assert uploads_of(answer) == list(zip(("r/x", "r/x", "r/y", "s"), ids))
    entry = answer["Uploads"][0]
    assert entry["Owner"] == entry["Initiator"]
    assert entry["Owner"]["DisplayName"] == "root"
    assert entry["StorageClass"] == "STANDARD"
    assert abs(entry["Initiated"].timestamp() - time.time()) < 60
    assert (answer["IsTruncated"], answer["MaxUploads"]) == (False, 1000)
    exact = client.list_multipart_uploads(Bucket=bucket, Prefix="r/x")
    assert uploads_of(exact) == [("r/x", ids[0]), ("r/x", ids[1])]
    assert exact["Prefix"] == "r/x"
    grouped = client.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert uploads_of(grouped) == [("s", ids[3])]
    assert [p["Prefix"] for p in grouped["CommonPrefixes"]] == ["r/"]
    assert client.list_multipart_uploads(Bucket=bucket, Prefix="none").get("Uploads") is None


def test_list_uploads_page_by_page(client, bucket, upload):
    keys = ("a", "a", "a", "b", "c", "c")
    made = sorted((key, upload(key).id) for key in keys)
    for size in (1, 2, 3, 1000):
        walked, markers = [], {}
        while True:
            page = client.list_multipart_uploads(Bucket=bucket, MaxUploads=size, **markers)
            assert len(page["Uploads"]) <= size
            walked += uploads_of(page)
            if not page["IsTruncated"]:
                break
            markers = {"KeyMarker": page["NextKeyMarker"],
                       "UploadIdMarker": page["NextUploadIdMarker"]}
        assert walked == made


def test_upload_markers_only_order(client, bucket, upload):
    ids = {key: upload(key).id for key in ("a", "c", "e")}
    listed = client.list_multipart_uploads(Bucket=bucket, KeyMarker="b")
    assert uploads_of(listed) == [("c", ids["c"]), ("e", ids["e"])]
    listed = client.list_multipart_uploads(Bucket=bucket, KeyMarker="c")
    assert uploads_of(listed) == [("e", ids["e"])]
    before = client.list_multipart_uploads(Bucket=bucket, KeyMarker="c", UploadIdMarker="0" * 32)
    assert uploads_of(before) == [("c", ids["c"]), ("e", ids["e"])]
    behind = client.list_multipart_uploads(Bucket=bucket, KeyMarker="c", UploadIdMarker="f" * 32)
    assert uploads_of(behind) == [("e", ids["e"])]
    alone = client.list_multipart_uploads(Bucket=bucket, UploadIdMarker="f" * 32)
    assert len(uploads_of(alone)) == 3
    under = client.list_multipart_uploads(Bucket=bucket, Prefix="e", KeyMarker="a",
                                          UploadIdMarker=ids["a"])
    assert uploads_of(under) == [("e", ids["e"])]
    assert client.list_multipart_uploads(Bucket=bucket, MaxUploads=0)["IsTruncated"] is False


def test_upload_prefix_pages(client, bucket, upload):
    for key in ("a/1", "a/2", "b/1", "c", "d/1"):
        upload(key)
    walked, marker = [], {}
    while True:
        page = client.list_multipart_uploads(Bucket=bucket, Delimiter="/", MaxUploads=1, **marker)
        walked += [p["Prefix"] for p in page.get("CommonPrefixes", [])]
        walked += [u["Key"] for u in page.get("Uploads", [])]
        if not page["IsTruncated"]:
            break
        marker = {"KeyMarker": page["NextKeyMarker"]}
        if page.get("NextUploadIdMarker"):
            marker["UploadIdMarker"] = page["NextUploadIdMarker"]
    assert walked == ["a/", "b/", "c", "d/"]


def test_uploads_with_odd_keys(client, raw, bucket, upload):
    keys = sorted(["a b", "a+b", "a%b", "a\nb", "\u00fc", "a&<b>"], key=lambda k: k.encode())
    for key in keys:
        upload(key)
    listed = client.list_multipart_uploads(Bucket=bucket)
    assert [u["Key"] for u in listed["Uploads"]] == keys
    answer = raw("GET", f"/{bucket}?uploads&encoding-type=url")
    root = xml.etree.ElementTree.fromstring(answer.body)
    assert root.findtext(NAMESPACE + "EncodingType") == "url"
    assert [e.findtext(NAMESPACE + "Key") for e in root.iter(NAMESPACE + "Upload")] == [
        urllib.parse.quote(k) for k in keys]


def test_uploads_do_not_block_the_bucket(client, new_bucket):
    name = new_bucket()
    Upload(client, name).part(1, b"left behind")
    client.delete_bucket(Bucket=name)
    client.create_bucket(Bucket=name)
    assert client.list_multipart_uploads(Bucket=name).get("Uploads") is None


# -- checksums --------------------------------------------------------------------------------

def crc32(data):
    return zlib.crc32(data).to_bytes(4, "big")


def text_of(digest):
    return base64.b64encode(digest).decode()


@pytest.mark.parametrize("algorithm, digest", [
    ("CRC32", crc32),
    ("SHA1", lambda data: hashlib.sha1(data).digest()),
    ("SHA256", lambda data: hashlib.sha256(data).digest()),
])
def test_composite_checksums(client, upload, algorithm, digest):
    field = f"Checksum{algorithm}"
    bodies = [bytes_of(PART, 4), bytes_of(700, 5)]
    made = upload(ChecksumAlgorithm=algorithm)
    assert made.created["ChecksumAlgorithm"] == algorithm
    assert made.created["ChecksumType"] == "COMPOSITE"
    listed = []
    for number, body in enumerate(bodies, 1):
        answer = made.part(number, body, ChecksumAlgorithm=algorithm)
        assert answer[field] == text_of(digest(body))
        listed.append({"PartNumber": number, "ETag": answer["ETag"], field: answer[field]})
    parts = made.list_parts()
    assert (parts["ChecksumAlgorithm"], parts["ChecksumType"]) == (algorithm, "COMPOSITE")
    assert [p[field] for p in parts["Parts"]] == [p[field] for p in listed]
    whole = text_of(digest(b"".join(digest(body) for body in bodies))) + "-2"
    wrong = [dict(listed[0], **{field: listed[1][field]}), listed[1]]
    assert refusal_of(made.complete, wrong) == (400, "InvalidPart")
    assert refusal_of(made.complete, listed, **{field: text_of(digest(b"x"))}) == (400, "BadDigest")
    done = made.complete(listed, **{field: whole})
    assert (done[field], done["ChecksumType"]) == (whole, "COMPOSITE")
    assert made.complete(listed)[field] == whole
    head = client.head_object(**made.names, ChecksumMode="ENABLED")
    assert (head[field], head["ChecksumType"]) == (whole, "COMPOSITE")
    assert field not in client.head_object(**made.names)
    second = client.get_object(**made.names, PartNumber=2, ChecksumMode="ENABLED")
    assert (second[field], second["ChecksumType"]) == (text_of(digest(bodies[1])), "COMPOSITE")
    assert second["Body"].read() == bodies[1]


def test_full_object_crc32(client, upload):
    bodies = [bytes_of(PART, 4), bytes_of(PART, 6), b"tail"]
    made = upload(ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")
    for number, body in enumerate(bodies, 1):
        made.part(number, body, ChecksumAlgorithm="CRC32")
    whole = text_of(crc32(b"".join(bodies)))
    assert refusal_of(made.complete, ChecksumType="COMPOSITE") == (400, "InvalidRequest")
    done = made.complete(ChecksumCRC32=whole, ChecksumType="FULL_OBJECT")
    assert (done["ChecksumCRC32"], done["ChecksumType"]) == (whole, "FULL_OBJECT")
    found = client.get_object(**made.names, ChecksumMode="ENABLED")
    assert found["ChecksumCRC32"] == whole
    assert found["Body"].read() == b"".join(bodies)


def crc64nvme(data, crc=0):
    table = [0] * 256
    for i in range(256):
        value = i
        for _ in range(8):
            value = (value >> 1) ^ (0x9A6C9329AC4BC9B5 if value & 1 else 0)
        table[i] = value
    crc ^= 0xFFFFFFFFFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return (crc ^ 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big")


def test_full_object_crc64nvme(client, upload):
    assert crc64nvme(b"123456789").hex() == "ae8b14860a799888"
    bodies = [b"\0" * PART, b"123456789"]
    made = upload(ChecksumAlgorithm="CRC64NVME")
    assert made.created["ChecksumType"] == "FULL_OBJECT"
    first = text_of(crc64nvme(bodies[0]))
    assert made.part(1, bodies[0], ChecksumCRC64NVME=first)["ChecksumCRC64NVME"] == first
    made.part(2, bodies[1], ChecksumCRC64NVME=text_of(crc64nvme(bodies[1])))
    whole = text_of(crc64nvme(b"".join(bodies)))
    assert made.complete()["ChecksumCRC64NVME"] == whole


def test_checksum_settings_that_cannot_be(client, bucket, upload):
    for algorithm, kind in (("SHA256", "FULL_OBJECT"), ("SHA1", "FULL_OBJECT"),
                            ("CRC64NVME", "COMPOSITE")):
        assert refusal_of(upload, ChecksumAlgorithm=algorithm, ChecksumType=kind) == (
            400, "InvalidRequest")
    made = upload(ChecksumAlgorithm="SHA256")
    assert refusal_of(made.part, 1, b"x", ChecksumAlgorithm="CRC32") == (400, "InvalidRequest")


def test_part_without_checksum_gets_one(raw, bucket, upload):
    made = upload(ChecksumAlgorithm="SHA256")
    answer = raw("PUT", f"/{bucket}/key?partNumber=1&uploadId={made.id}", body=b"data")
    assert answer.status == 200
    assert answer.headers["x-amz-checksum-sha256"] == text_of(hashlib.sha256(b"data").digest())


def test_part_with_checksum_on_an_upload_without(client, bucket, raw):
    answer = raw("POST", f"/{bucket}/key?uploads")
    upload_id = xml.etree.ElementTree.fromstring(answer.body).findtext(NAMESPACE + "UploadId")
    assert "x-amz-checksum-algorithm" not in answer.headers
    part = client.upload_part(Bucket=bucket, Key="key", UploadId=upload_id, PartNumber=1,
                              Body=b"data", ChecksumAlgorithm="CRC32")
    assert part["ChecksumCRC32"] == text_of(crc32(b"data"))
    done = client.complete_multipart_upload(
        Bucket=bucket, Key="key", UploadId=upload_id, MultipartUpload={"Parts": [
            {"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]}]})
    assert "ChecksumCRC32" not in done


# -- single parts -----------------------------------------------------------------------------

def test_get_by_part_number(client, bucket, upload):
    bodies = [bytes_of(PART, 1), bytes_of(PART, 2), b"last"]
    made = upload()
    for number, body in enumerate(bodies, 1):
        made.part(number, body)
    etag = made.complete()["ETag"]
    offset = 0
    for number, body in enumerate(bodies, 1):
        found = client.get_object(**made.names, PartNumber=number)
        assert found["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert found["Body"].read() == body
        assert (found["PartsCount"], found["ETag"]) == (3, etag)
        assert found["ContentRange"] == (
            f"bytes {offset}-{offset + len(body) - 1}/{sum(map(len, bodies))}")
        head = client.head_object(**made.names, PartNumber=number)
        assert (head["ContentLength"], head["PartsCount"]) == (len(body), 3)
        offset += len(body)
    assert refusal_of(client.get_object, **made.names, PartNumber=4) == (400, "InvalidPart")
    assert refusal_of(client.get_object, **made.names, PartNumber=1, Range="bytes=0-1") == (
        400, "InvalidRequest")


# -- a Complete that takes long ---------------------------------------------------------------

SLOW_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int fdatasync(int fd)
{
    const char *path = getenv("SLOW_SYNC_FILE");
    while (path != NULL && access(path, F_OK) == 0) {
        usleep(50000);
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"""


@pytest.fixture
def slow_server(server_factory, tmp_path, form):
    """A server whose syncs wait as long as the file `hold` exists."""
    if form not in ("embedded", "tls"):
        pytest.skip("optional: Complete does not wait for the disk when names are in a database")
    source = tmp_path / "slow_sync.c"
    library = tmp_path / "slow_sync.so"
    source.write_text(SLOW_SYNC)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    server = server_factory(settings={"SLOW_SYNC_FILE": tmp_path / "hold"}, command_prefix=(
        "env", f"LD_PRELOAD={library}",
        "ASAN_OPTIONS=verify_asan_link_order=0:exitcode=99:detect_leaks=1"))
    server.hold = pathlib.Path(tmp_path / "hold")
    yield server
    server.hold.unlink(missing_ok=True)


def upload_to_complete(server):
    """A client, an upload of one part, and what completes it."""
    client = server.client()
    client.create_bucket(Bucket="bucket")
    made = Upload(client, "bucket")
    etag = made.part(1, b"data")["ETag"].strip('"')
    document = (f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag>"
                "</Part></CompleteMultipartUpload>").encode()
    return client, made, document


@pytest.mark.slow
def test_slow_complete_keeps_the_connection_alive(slow_server):
    client, made, document = upload_to_complete(slow_server)
    slow_server.hold.touch()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        with slow_server.connect(timeout=60) as connection:
            connection.send(request(slow_server, made, document))
            first = connection.reader.peek(1)
            waited = time.monotonic() - started
            assert first.startswith(b"HTTP/1.1 200 ")
            assert 4.5 < waited < 8
            pool.submit(lambda: (time.sleep(7), slow_server.hold.unlink()))
            answer = connection.answer("POST")
    assert answer.status == 200
    declaration, rest = answer.body.split(b"\n", 1)
    assert declaration.startswith(b"<?xml")
    assert rest.startswith(b"  ")
    root = xml.etree.ElementTree.fromstring(answer.body)
    assert root.tag == NAMESPACE + "CompleteMultipartUploadResult"
    assert root.findtext(NAMESPACE + "ETag") == multipart_etag(b"data")
    assert get(client, "bucket") == b"data"


@pytest.mark.slow
def test_slow_complete_can_still_fail(slow_server):
    client, made, document = upload_to_complete(slow_server)
    slow_server.hold.touch()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        # the first sync holds up the committer, so that Complete is judged behind the PUT
        put = pool.submit(client.put_object, Bucket="bucket", Key="key", Body=b"there")
        time.sleep(0.5)
        with slow_server.connect(timeout=60) as connection:
            connection.send(request(slow_server, made, document, [("If-None-Match", "*")]))
            connection.reader.peek(1)
            slow_server.hold.unlink()
            answer = connection.answer("POST")
        put.result()
    assert answer.status == 200
    root = xml.etree.ElementTree.fromstring(answer.body)
    assert (root.tag, root.findtext("Code")) == ("Error", "PreconditionFailed")
    assert get(client, "bucket") == b"there"
    assert len(made.list_parts()["Parts"]) == 1


def request(server, made, document, headers=()):
    import sigv4  # pylint: disable=import-outside-toplevel
    return sigv4.request_bytes(server.signer(), "POST", f"/bucket/key?uploadId={made.id}",
                               server.netloc, list(headers), document)

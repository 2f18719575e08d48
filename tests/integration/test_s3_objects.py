"""Objects: spec items 40 to 51; public cases B03, B04, B20, B25 to B29, B48, B67, B70, B73, B74."""
import email.header
import email.utils
import hashlib

import pytest

from s3util import HELLO_CHECKSUMS, HELLO_MD5, code_of, md5_base64, refused

KEYS = ["a b", "a+b", "a%20b", "a=b", "ü/字/😀", "!'()*~-._", "a#b?c", "a:b@c,d;e", "/file.txt",
        "file.txt", "d//f", "d/f", "a", "a/", "a/b", ".", "..", "a/../b", "a&b<c>\"'", "x" * 1024,
        "/".join("y" * 1 for _ in range(512)) + "z", "字" * 341, "%", "+", " ", "\\", "a|b^c`{}"]


def test_odd_keys(client, bucket):
    for index, key in enumerate(KEYS):
        client.put_object(Bucket=bucket, Key=key, Body=str(index).encode())
    for index, key in enumerate(KEYS):
        assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == str(index).encode()
    listed = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert listed == sorted(KEYS, key=lambda key: key.encode())
    for gone in KEYS[::2]:
        client.delete_object(Bucket=bucket, Key=gone)
    listed = [entry["Key"] for entry in client.list_objects(Bucket=bucket)["Contents"]]
    assert listed == sorted(KEYS[1::2], key=lambda key: key.encode())


def test_odd_keys_presigned(server, bucket):
    client = server.client(signature_version="s3v4")
    for key in KEYS:
        client.put_object(Bucket=bucket, Key=key, Body=key.encode())
        url = client.generate_presigned_url("get_object", {"Bucket": bucket, "Key": key})
        with server.connect() as connection:
            target = url[url.index("/", len("https://")):]
            connection.send(f"GET {target} HTTP/1.1\r\nHost: {server.netloc}\r\n\r\n".encode())
            answer = connection.answer()
            assert (answer.status, answer.body) == (200, key.encode())


def test_key_too_long(client, bucket):
    with refused(400, "KeyTooLongError"):
        client.put_object(Bucket=bucket, Key="k" * 1025, Body=b"")


def test_headers_come_back(client, bucket):
    given = {"ContentType": "text/x-odd; charset=utf-8", "CacheControl": "no-cache, x=1",
             "ContentDisposition": 'attachment; filename="a b"', "ContentLanguage": "de, en",
             "ContentEncoding": "gzip"}
    client.put_object(Bucket=bucket, Key="k", Body=b"hello",
                      Metadata={"Color": "Blue", "empty": "", "Two-Words": "a  b"}, **given)
    for answer in (client.head_object(Bucket=bucket, Key="k"),
                   client.get_object(Bucket=bucket, Key="k")):
        for name, value in given.items():
            assert answer[name] == value
        assert answer["Metadata"]["color"] == "Blue"
        assert answer["Metadata"]["empty"] == ""
        assert answer["ETag"] == f'"{HELLO_MD5}"'
        assert answer["ContentLength"] == 5
        assert answer["AcceptRanges"] == "bytes"
    client.put_object(Bucket=bucket, Key="k", Body=b"", Metadata={"new": "1"})
    answer = client.head_object(Bucket=bucket, Key="k")
    assert answer["Metadata"] == {"new": "1"}
    assert answer["ContentType"] == "binary/octet-stream"
    assert "CacheControl" not in answer


def test_expires_is_any_text(raw, bucket):
    raw("PUT", f"/{bucket}/k", headers=[("Expires", "some day")], body=b"x")
    assert raw("HEAD", f"/{bucket}/k").headers["Expires"] == "some day"


def test_aws_chunked_is_no_content_encoding(raw, bucket):
    for sent, kept in [("aws-chunked", None), ("aws-chunked,gzip", "gzip"),
                       ("gzip,aws-chunked", "gzip"), ("gzip, br", "gzip, br")]:
        raw("PUT", f"/{bucket}/k", headers=[("Content-Encoding", sent)], body=b"x")
        assert raw("HEAD", f"/{bucket}/k").headers["Content-Encoding"] == kept


def test_metadata_limit(raw, bucket):
    ok = [("x-amz-meta-a", "v" * 1000), ("x-amz-meta-b", "v" * 1046)]
    assert raw("PUT", f"/{bucket}/k", headers=ok, body=b"x").status == 200
    answer = raw("PUT", f"/{bucket}/k", headers=[*ok, ("x-amz-meta-c", "")], body=b"x")
    assert (answer.status, code_of(answer)) == (400, "MetadataTooLarge")


def test_repeated_and_non_ascii_metadata(raw, bucket):
    text = "é字".encode().decode("latin-1")
    headers = [("x-amz-meta-r", "a"), ("x-amz-meta-r", "b"), ("x-amz-meta-n", text)]
    assert raw("PUT", f"/{bucket}/k", headers=headers, body=b"x").status == 200
    answer = raw("HEAD", f"/{bucket}/k")
    assert answer.headers["x-amz-meta-r"] == "a,b"
    word = str(email.header.make_header(email.header.decode_header(answer.headers["x-amz-meta-n"])))
    assert word == "é字"


def test_overrides(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x", ContentType="text/plain")
    answer = client.get_object(
        Bucket=bucket, Key="k", ResponseContentType="text/html", ResponseCacheControl="no-store",
        ResponseContentDisposition="inline", ResponseContentEncoding="x",
        ResponseContentLanguage="eo", ResponseExpires="Thu, 01 Dec 1994 16:00:00 GMT")
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert [headers[name] for name in (
        "content-type", "cache-control", "content-disposition", "content-encoding",
        "content-language", "expires")] == ["text/html", "no-store", "inline", "x", "eo",
                                            "Thu, 01 Dec 1994 16:00:00 GMT"]


def test_storage_classes(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x", StorageClass="STANDARD_IA")
    assert client.head_object(Bucket=bucket, Key="k")["StorageClass"] == "STANDARD_IA"
    assert client.list_objects(Bucket=bucket)["Contents"][0]["StorageClass"] == "STANDARD_IA"
    client.put_object(Bucket=bucket, Key="k", Body=b"x", StorageClass="STANDARD")
    assert "StorageClass" not in client.head_object(Bucket=bucket, Key="k")
    with refused(400, "InvalidStorageClass"):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", StorageClass="FAST")


def test_tags_of_a_put(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=1&b%20c=%26")
    tags = client.get_object_tagging(Bucket=bucket, Key="k")["TagSet"]
    assert tags == [{"Key": "a", "Value": "1"}, {"Key": "b c", "Value": "&"}]
    assert client.get_object(Bucket=bucket, Key="k")["TagCount"] == 2
    with refused(400, "InvalidTag"):
        client.put_object(Bucket=bucket, Key="k", Body=b"y",
                          Tagging="&".join(f"t{i}=" for i in range(11)))
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    client.put_object(Bucket=bucket, Key="plain", Body=b"x")
    assert client.get_object_tagging(Bucket=bucket, Key="plain")["TagSet"] == []


def test_what_is_not_built_is_refused(client, bucket):
    with refused(501, "NotImplemented"):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", ServerSideEncryption="AES256")
    with refused(400, "InvalidRequest"):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", ObjectLockLegalHoldStatus="ON")
    with refused(404, "NoSuchKey"):
        client.get_object(Bucket=bucket, Key="k")


# -- Content-MD5 --------------------------------------------------------------------------------

def test_content_md5(raw, bucket):
    for value, status, code in [
            (md5_base64(b"hello"), 200, None), (md5_base64(b"other"), 400, "BadDigest"),
            ("", 400, "InvalidDigest"), ("AAAA", 400, "InvalidDigest"),
            ("rL0Y20zC+Fzt72VPzMSk2A=!", 400, "InvalidDigest")]:
        answer = raw("PUT", f"/{bucket}/k-{status}", headers=[("Content-MD5", value)], body=b"hello")
        assert answer.status == status
        if code is not None:
            assert code_of(answer) == code
    assert raw("GET", f"/{bucket}/k-400").status == 404


# -- conditions ---------------------------------------------------------------------------------

@pytest.fixture
def hello(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    modified = client.head_object(Bucket=bucket, Key="k")["LastModified"].timestamp()
    return {"same": email.utils.formatdate(modified, usegmt=True),
            "before": email.utils.formatdate(modified - 10, usegmt=True),
            "after": email.utils.formatdate(modified + 10, usegmt=True),
            "etag": f'"{HELLO_MD5}"', "bare": HELLO_MD5, "other": '"00"', "broken": "yesterday",
            "list": f'"00", "{HELLO_MD5}"', "star": "*", "weak": f'W/"{HELLO_MD5}"'}


@pytest.mark.parametrize("status, conditions", [
    (200, [("If-Match", "etag")]), (200, [("If-Match", "bare")]), (200, [("If-Match", "list")]),
    (200, [("If-Match", "star")]), (412, [("If-Match", "other")]),
    (304, [("If-None-Match", "etag")]), (304, [("If-None-Match", "weak")]),
    (304, [("If-None-Match", "list")]), (304, [("If-None-Match", "star")]),
    (200, [("If-None-Match", "other")]),
    (304, [("If-Modified-Since", "same")]), (200, [("If-Modified-Since", "before")]),
    (200, [("If-Modified-Since", "broken")]),
    (200, [("If-Unmodified-Since", "same")]), (412, [("If-Unmodified-Since", "before")]),
    (200, [("If-Unmodified-Since", "broken")]),
    (200, [("If-Match", "etag"), ("If-Unmodified-Since", "before")]),
    (200, [("If-None-Match", "other"), ("If-Modified-Since", "same")]),
    (304, [("If-Match", "etag"), ("If-Modified-Since", "same")]),
    (412, [("If-Match", "other"), ("Range", "bytes=99-")]),
    (206, [("If-Match", "etag"), ("Range", "bytes=0-0")]),
    (206, [("If-Range", "etag"), ("Range", "bytes=0-0")]),
    (200, [("If-Range", "other"), ("Range", "bytes=0-0")]),
])
def test_conditions_of_reads(raw, bucket, hello, status, conditions):
    headers = [(name, value if name == "Range" else hello[value]) for name, value in conditions]
    for method in ("GET", "HEAD"):
        answer = raw(method, f"/{bucket}/k", headers=headers)
        assert answer.status == status
        if status == 304:
            assert answer.headers["ETag"] == hello["etag"]
            assert answer.headers["Last-Modified"] == hello["same"]
            assert answer.body == b""
        if status == 412 and method == "GET":
            assert code_of(answer) == "PreconditionFailed"


def test_conditions_of_puts(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"1", IfNoneMatch="*")
    with refused(412, "PreconditionFailed"):
        client.put_object(Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*")
    with refused(412, "PreconditionFailed"):
        client.put_object(Bucket=bucket, Key="k", Body=b"2", IfMatch='"00"')
    with refused(404, "NoSuchKey"):
        client.put_object(Bucket=bucket, Key="missing", Body=b"2", IfMatch='"00"')
    etag = client.head_object(Bucket=bucket, Key="k")["ETag"]
    client.put_object(Bucket=bucket, Key="k", Body=b"3", IfMatch=etag)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"3"


def test_conditions_meet_delete_markers(client, bucket):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    client.put_object(Bucket=bucket, Key="k", Body=b"1")
    client.delete_object(Bucket=bucket, Key="k")
    with refused(404, "NoSuchKey"):
        client.put_object(Bucket=bucket, Key="k", Body=b"2", IfMatch="*")
    client.put_object(Bucket=bucket, Key="k", Body=b"3", IfNoneMatch="*")


def test_conditions_of_deletes(client, bucket):
    etag = client.put_object(Bucket=bucket, Key="k", Body=b"1")["ETag"]
    with refused(412, "PreconditionFailed"):
        client.delete_object(Bucket=bucket, Key="k", IfMatch='"00"')
    client.delete_object(Bucket=bucket, Key="k", IfMatch=etag)
    client.delete_object(Bucket=bucket, Key="k", IfMatch=etag)
    with refused(404, "404"):
        client.head_object(Bucket=bucket, Key="k")


# -- ranges -------------------------------------------------------------------------------------

@pytest.mark.parametrize("header, status, body", [
    ("bytes=0-", 206, b"0123456789"), ("bytes=9-9", 206, b"9"), ("bytes=9-99", 206, b"9"),
    ("bytes=10-", 416, None), ("bytes=-0", 416, None), ("bytes=-99", 206, b"0123456789"),
    ("bytes=-3", 206, b"789"), ("bytes=5-2", 200, None), ("bytes=0-1,4-5", 200, None),
    ("bytes = 0-1", 200, None), ("lines=0-1", 200, None), ("", 200, None),
    ("bytes=18446744073709551616-", 416, None), ("bytes=2-18446744073709551616", 206, b"23456789"),
])
def test_ranges(raw, client, bucket, header, status, body):
    client.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    answer = raw("GET", f"/{bucket}/k", headers=[("Range", header)])
    assert answer.status == status
    if status == 206:
        assert answer.body == body
        first = 10 - len(body) if header.startswith("bytes=-") else int(header[6:].split("-")[0])
        assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(body) - 1}/10"
        head = raw("HEAD", f"/{bucket}/k", headers=[("Range", header)])
        assert (head.status, head.headers["Content-Length"]) == (206, str(len(body)))
    elif status == 200:
        assert answer.body == b"0123456789"
    else:
        assert code_of(answer) == "InvalidRange"
        assert answer.headers["Content-Range"] == "bytes */10"


def test_ranges_of_nothing(raw, client, bucket):
    client.put_object(Bucket=bucket, Key="empty", Body=b"")
    for header, status in [("bytes=0-", 416), ("bytes=-5", 200), ("bytes=-0", 416)]:
        assert raw("GET", f"/{bucket}/empty", headers=[("Range", header)]).status == status


def test_ranges_of_a_large_object(client, bucket, rng):
    data = rng.randbytes(5 * 1024 * 1024 + 17)
    client.put_object(Bucket=bucket, Key="k", Body=data)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == data
    for _ in range(30):
        first = rng.randrange(len(data))
        last = min(len(data) - 1, first + rng.choice([0, 1, 1000, 1024 * 1024, len(data)]))
        answer = client.get_object(Bucket=bucket, Key="k", Range=f"bytes={first}-{last}")
        assert answer["Body"].read() == data[first:last + 1]


def test_part_number_of_a_plain_object(raw, client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    answer = raw("GET", f"/{bucket}/k?partNumber=1")
    assert (answer.status, answer.body) == (206, b"hello")
    for target, code in [("partNumber=2", "InvalidPart"), ("partNumber=0", "InvalidArgument"),
                         ("partNumber=x", "InvalidArgument")]:
        answer = raw("GET", f"/{bucket}/k?{target}")
        assert (answer.status, code_of(answer)) == (400, code)
    answer = raw("GET", f"/{bucket}/k?partNumber=1", headers=[("Range", "bytes=0-1")])
    assert (answer.status, code_of(answer)) == (400, "InvalidRequest")


# -- checksums ----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", HELLO_CHECKSUMS)
def test_checksums(raw, bucket, name):
    header = f"x-amz-checksum-{name}"
    good = [(header, HELLO_CHECKSUMS[name]), ("x-amz-sdk-checksum-algorithm", name.upper())]
    answer = raw("PUT", f"/{bucket}/k", headers=good, body=b"hello")
    assert (answer.status, answer.headers[header]) == (200, HELLO_CHECKSUMS[name])
    asked = [("x-amz-checksum-mode", "ENABLED")]
    for method in ("GET", "HEAD"):
        assert raw(method, f"/{bucket}/k").headers[header] is None
        answer = raw(method, f"/{bucket}/k", headers=asked)
        assert answer.headers[header] == HELLO_CHECKSUMS[name]
        assert answer.headers["x-amz-checksum-type"] == "FULL_OBJECT"
        answer = raw(method, f"/{bucket}/k", headers=[*asked, ("Range", "bytes=0-")])
        assert (answer.status, answer.headers[header]) == (206, None)
    answer = raw("PUT", f"/{bucket}/k", headers=good, body=b"hallo")
    assert (answer.status, code_of(answer)) == (400, "BadDigest")
    assert raw("GET", f"/{bucket}/k").body == b"hello"


def test_checksums_that_are_refused(raw, bucket):
    two = [("x-amz-checksum-crc32", HELLO_CHECKSUMS["crc32"]),
           ("x-amz-checksum-sha1", HELLO_CHECKSUMS["sha1"])]
    unknown = [("x-amz-checksum-xxhash128", "AAAA")]
    pair = [("x-amz-checksum-crc32", HELLO_CHECKSUMS["crc32"]),
            ("x-amz-sdk-checksum-algorithm", "SHA256")]
    for headers in (two, unknown, pair):
        answer = raw("PUT", f"/{bucket}/k", headers=headers, body=b"hello")
        assert (answer.status, code_of(answer)) == (400, "InvalidRequest")


# -- deletes ------------------------------------------------------------------------------------

def test_deletes(client, bucket):
    client.delete_object(Bucket=bucket, Key="missing")
    client.delete_object(Bucket=bucket, Key="missing")
    with refused(404, "NoSuchBucket"):
        client.delete_object(Bucket=bucket + "-none", Key="k")
    client.put_object(Bucket=bucket, Key="d/", Body=b"")
    client.put_object(Bucket=bucket, Key="d/x", Body=b"x")
    client.delete_object(Bucket=bucket, Key="d/")
    assert client.get_object(Bucket=bucket, Key="d/x")["Body"].read() == b"x"
    client.delete_object(Bucket=bucket, Key="d/x")
    assert "Contents" not in client.list_objects_v2(Bucket=bucket, Prefix="d/")


def test_folder_marker_is_an_object(client, bucket):
    put = client.put_object(Bucket=bucket, Key="d/", Body=b"hello")
    entry = client.list_objects_v2(Bucket=bucket, Prefix="d/")["Contents"][0]
    head = client.head_object(Bucket=bucket, Key="d/")
    assert entry["ETag"] == head["ETag"] == put["ETag"] == f'"{HELLO_MD5}"'
    assert entry["Size"] == head["ContentLength"] == 5
    assert entry["LastModified"].replace(microsecond=0) == head["LastModified"]


def test_sizes_around_the_edges(client, bucket, rng):
    for size in (0, 1, 8191, 8192, 65535, 65536, 65537, 262143, 262144, 262145, 1048576, 1048577):
        data = rng.randbytes(size)
        answer = client.put_object(Bucket=bucket, Key="k", Body=data)
        assert answer["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'
        assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == data

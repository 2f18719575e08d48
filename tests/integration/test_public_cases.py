"""Public bug reports of other stores, as experiments: one function each, named by its number.

Cases that other files hold whole: B02 B07 B11 B30 B37 B38 test_s3_errors; B06 B10 test_s3_payloads;
B29 test_s3_objects; B35 B44 test_s3_listing; B50 to B53, B55, B57 to B60 test_s3_multipart;
B63 test_s3_copy; B83 test_s3_cors.
"""
import base64
import concurrent.futures
import email.header
import hashlib
import subprocess
import threading
import time
import urllib.parse

import botocore.exceptions
import pytest

import sigv4
from s3util import (HELLO_CHECKSUMS, HELLO_MD5, code_of, crc32_base64, error_of, keys_of,
                    md5_base64, prefixes_of, refused, texts, tree)

MIB = 1024 * 1024
ZEROS_AND_HELLO = '"1a1761a0c87a46829d8a65122ae36c1a-2"'
KINDS = (("", "Contents"), ("list-type=2&", "Contents"), ("versions=&", "Version"))


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe)


def put(client, bucket, *keys, body=b""):
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=body)


def read(client, bucket, key, **arguments):
    return client.get_object(Bucket=bucket, Key=key, **arguments)["Body"].read()


def listed(client, bucket, **arguments):
    return keys_of(client.list_objects_v2(Bucket=bucket, **arguments))


def enable_versions(client, bucket):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def curl(server, target, *options):
    """Status and body."""
    trust = ["--cacert", server.ca_file()] if server.ca_file() else []
    done = subprocess.run(["curl", "-sS", "--path-as-is", "-w", "\n%{http_code}", *trust, *options,
                           server.endpoint + target], capture_output=True, check=True, timeout=60)
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def send(server, target, headers, body, mode, method="PUT"):
    """A request signed with `mode` whose body is `body` as it is."""
    names = {name.lower() for name, _ in headers}
    headers = [("Host", server.netloc), *headers]
    if "content-length" not in names:
        headers.append(("Content-Length", str(len(body))))
    signed = server.signer().headers(method, target, headers, mode)
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in signed)
    with server.connect() as connection:
        connection.send(head.encode() + b"\r\n" + body)
        return connection.answer(method)


def chunked(server, bucket, body, headers=(), mode=sigv4.STREAMING_UNSIGNED_TRAILER):
    return send(server, f"/{bucket}/k", [("x-amz-decoded-content-length", "5"),
                                         ("Content-Encoding", "aws-chunked"), *headers], body, mode)


def two_parts(client, bucket, key, **arguments):
    """5 MiB of zeros and `hello`."""
    names = {"Bucket": bucket, "Key": key}
    names["UploadId"] = client.create_multipart_upload(**names, **arguments)["UploadId"]
    parts = []
    for number, body in ((1, bytes(5 * MIB)), (2, b"hello")):
        answer = client.upload_part(**names, PartNumber=number, Body=body)
        parts.append({k: v for k, v in answer.items() if k == "ETag" or k.startswith("Checksum")
                      and k != "ChecksumType"} | {"PartNumber": number})
    return client.complete_multipart_upload(**names, MultipartUpload={"Parts": parts})


# -- authentication and signatures -------------------------------------------------------------

@pytest.mark.parametrize("key", ["a b", "a+b", "a%20b", "a=b", "ü/字/😀", "!'()*~-._", "a#b?c",
                                 "a:b@c,d;e"])
def test_b03_path_is_encoded_once(server, client, raw, bucket, key):
    client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert read(client, bucket, key) == key.encode()
    target = f"/{bucket}/{quote(key, '/')}"
    assert raw("GET", target).body == key.encode()
    link = server.signer().presign("GET", target, server.netloc)
    assert curl(server, link) == (200, key.encode())
    link = server.signer().presign("PUT", target, server.netloc)
    assert curl(server, link, "-X", "PUT", "-d", "by curl")[0] == 200
    assert listed(client, bucket) == [key]
    assert raw("DELETE", target).status == 204
    assert listed(client, bucket) == []


def test_b04_slashes_are_bytes_of_the_key(client, raw, bucket):
    keys = {"/file.txt": b"A", "file.txt": b"B", "d//f": b"C", "d/f": b"D", "a/../b": b"E",
            "./c": b"F"}
    for key, body in keys.items():
        assert raw("PUT", f"/{bucket}/{key}", body=body).status == 200
    for key, body in keys.items():
        assert raw("GET", f"/{bucket}/{key}").body == body
        assert read(client, bucket, key) == body
    assert listed(client, bucket) == sorted(keys)
    assert raw("DELETE", f"/{bucket}//file.txt").status == 204
    assert read(client, bucket, "file.txt") == b"B"
    assert listed(client, bucket, Prefix="/") == []


def test_b08_region_of_the_answer_works(server, raw, bucket):
    """As minio-py looks for the region: any region first, then the one it was told."""
    answer = raw("GET", f"/{bucket}?location=", signer=server.signer(region="eu-west-9"))
    error = error_of(answer)
    assert (answer.status, error["Code"]) == (400, "AuthorizationHeaderMalformed")
    answer = raw("GET", f"/{bucket}?location=", signer=server.signer(region=error["Region"]))
    assert answer.status == 200 and tree(answer.body).tag == "LocationConstraint"


@pytest.mark.parametrize("host", ["store.example", "store.example:8078", "STORE.example"])
def test_b09_host_as_received(server, client, bucket, host):
    client.put_object(Bucket=bucket, Key=f"x/{bucket}/y", Body=b"deep")
    data = sigv4.request_bytes(server.signer(), "GET", f"/{bucket}/x/{bucket}/y", host)
    with server.connect() as connection:
        connection.send(data)
        assert connection.answer().body == b"deep"
    link = server.signer().presign("GET", f"/{bucket}/x/{bucket}/y", host)
    assert curl(server, link, "-H", f"Host: {host}") == (200, b"deep")
    status, body = curl(server, link)
    assert status == 403 and b"SignatureDoesNotMatch" in body


# -- chunked bodies, trailers, checksums -------------------------------------------------------

@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_b13_framing_is_not_content(server, raw, bucket, size):
    parts = [b"hello"[at:at + size] for at in range(0, 5, size)]
    body = b"".join(b"%x;chunk-signature=%064d\r\n%s\r\n" % (len(part), 0, part) for part in parts)
    body += b"0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"
    answer = chunked(server, bucket, body, [("x-amz-trailer", "x-amz-checksum-crc32")])
    assert (answer.status, answer.headers["ETag"]) == (200, f'"{HELLO_MD5}"')
    answer = raw("GET", f"/{bucket}/k")
    assert (answer.body, answer.headers["Content-Length"]) == (b"hello", "5")


@pytest.mark.parametrize("sent, kept", [("aws-chunked", None), ("aws-chunked,gzip", "gzip"),
                                        ("gzip,aws-chunked", "gzip"), ("AWS-Chunked", None)])
def test_b14_transport_coding_of_an_upload(client, raw, bucket, sent, kept):
    answer = raw("POST", f"/{bucket}/k?uploads=", headers=[("Content-Encoding", sent)])
    names = {"Bucket": bucket, "Key": "k", "UploadId": tree(answer.body).findtext("UploadId")}
    part = client.upload_part(**names, PartNumber=1, Body=b"hello")
    client.complete_multipart_upload(
        **names, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert raw("HEAD", f"/{bucket}/k").headers["Content-Encoding"] == kept


def test_b16_trailer_of_another_algorithm(server, raw, bucket):
    body = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"
    announced = ("x-amz-trailer", "x-amz-checksum-crc32")
    answer = chunked(server, bucket, body, [announced, ("x-amz-sdk-checksum-algorithm", "SHA256")])
    assert answer.status == 400 and code_of(answer)
    assert raw("HEAD", f"/{bucket}/k").status == 404
    answer = chunked(server, bucket, body, [announced, ("x-amz-sdk-checksum-algorithm", "CRC32")])
    assert answer.status == 200


def test_b16_signed_trailer_is_needed(server, raw, bucket):
    """The same signed body without its trailer, or with another signature of the trailer."""
    trailers = [("x-amz-checksum-crc32", "NhCmhg==")]
    data = sigv4.request_bytes(server.signer(), "PUT", f"/{bucket}/k", server.netloc,
                               body=b"hello", mode=sigv4.STREAMING_TRAILER, trailers=trailers)
    at = data.index(b"x-amz-trailer-signature:") + len("x-amz-trailer-signature:")
    other = data[:at] + (b"1" if data[at:at + 1] == b"0" else b"0") + data[at + 1:]
    value = data.rindex(b"NhCmhg==")
    changed = data[:value] + b"AAAAAA==" + data[value + 8:]
    for sent in (other, changed):
        with server.connect() as connection:
            connection.send(sent)
            answer = connection.answer()
        assert answer.status in (400, 403) and code_of(answer)
        assert raw("HEAD", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("size", [b"0x5", b"-5", b"+5", b"FFFFFFFFFFFFFFFF", b"1" * 20, b"", b" 5",
                                  b"7FFFFFFFFFFFFFFF", b"10000000000000005"])
@pytest.mark.parametrize("mode", [sigv4.STREAMING, sigv4.STREAMING_TRAILER])
def test_b18_sizes_of_signed_chunks(server, raw, bucket, mode, size):
    body = size + b";chunk-signature=" + b"0" * 64 + b"\r\nhello\r\n0;chunk-signature=" \
        + b"0" * 64 + b"\r\n\r\n"
    answer = chunked(server, bucket, body, mode=mode)
    assert answer.status == 400 and code_of(answer) == "IncompleteBody"
    assert raw("HEAD", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("name, value", HELLO_CHECKSUMS.items())
def test_b20_checksums_only_with_the_whole(raw, bucket, name, value):
    header, mode = f"x-amz-checksum-{name}", ("x-amz-checksum-mode", "ENABLED")
    assert raw("PUT", f"/{bucket}/k", headers=[(header, value)], body=b"hello").status == 200
    for method in ("GET", "HEAD"):
        answer = raw(method, f"/{bucket}/k", headers=[mode])
        assert answer.headers[header] == value
        assert answer.headers["x-amz-checksum-type"] == "FULL_OBJECT"
        for more in (("Range", "bytes=1-2"), ("If-None-Match", f'"{HELLO_MD5}"')):
            answer = raw(method, f"/{bucket}/k", headers=[mode, more])
            assert answer.status in (206, 304)
            assert answer.headers[header] is None


def test_b20_checksums_of_parts(client, raw, bucket):
    done = two_parts(client, bucket, "k", ChecksumAlgorithm="CRC32")
    assert (done["ETag"], done["ChecksumCRC32"]) == (ZEROS_AND_HELLO, "MiNFzg==-2")
    mode = ("x-amz-checksum-mode", "ENABLED")
    answer = raw("HEAD", f"/{bucket}/k", headers=[mode])
    assert answer.headers["x-amz-checksum-crc32"] == "MiNFzg==-2"
    assert answer.headers["x-amz-checksum-type"] == "COMPOSITE"
    answer = raw("GET", f"/{bucket}/k", headers=[mode, ("Range", "bytes=5242879-")])
    assert (answer.status, answer.body) == (206, b"\0hello")
    assert answer.headers["x-amz-checksum-crc32"] is None
    assert len(read(client, bucket, "k", Range="bytes=0-")) == 5 * MIB + 5


# -- headers, encoding, HTTP -------------------------------------------------------------------

def test_b23_markup_in_names(client, raw, bucket):
    keys = sorted(["a&b", "<x>", "\"q'", "]]>", "&amp;"])
    put(client, bucket, *keys)
    for kind, element in KINDS:
        assert texts(tree(raw("GET", f"/{bucket}?{kind}").body), f"{element}/Key") == keys
    for key in keys:
        client.create_multipart_upload(Bucket=bucket, Key=key)
    root = tree(raw("GET", f"/{bucket}?uploads=&prefix=%26&delimiter=%3C").body)
    assert (root.findtext("Prefix"), root.findtext("Delimiter")) == ("&", "<")
    assert texts(tree(raw("GET", f"/{bucket}?uploads=").body), "Upload/Key") == keys
    error = error_of(raw("GET", f"/{bucket}/%3Cnone%26%3E"))
    assert error["Key"] == "<none&>"
    gone = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    assert sorted(row["Key"] for row in gone["Deleted"]) == keys


def test_b24_encoding_of_upload_lists(client, raw, bucket):
    for key in ("a b", "a+b", "a%b", "a/ü"):
        client.create_multipart_upload(Bucket=bucket, Key=key)
    root = tree(raw("GET", f"/{bucket}?uploads=&encoding-type=url").body)
    assert texts(root, "Upload/Key") == ["a%20b", "a%25b", "a%2Bb", "a/%C3%BC"]
    assert root.findtext("EncodingType") == "url"
    root = tree(raw("GET", f"/{bucket}?uploads=&encoding-type=url&delimiter=%25&prefix=a"
                           "&key-marker=a%20b").body)
    assert texts(root, "CommonPrefixes/Prefix") == ["a%25"]
    assert (root.findtext("Delimiter"), root.findtext("KeyMarker")) == ("%25", "a%20b")
    keys = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [row["Key"] for row in keys] == ["a b", "a%b", "a+b", "a/ü"]


def test_b25_plus_is_no_blank(client, raw, bucket):
    client.put_object(Bucket=bucket, Key="a+b", Body=b"plus")
    client.put_object(Bucket=bucket, Key="a b", Body=b"blank")
    assert raw("GET", f"/{bucket}/a+b").body == b"plus"
    assert raw("GET", f"/{bucket}/a%20b").body == b"blank"
    for key, body in (("a+b", b"plus"), ("a b", b"blank")):
        client.copy_object(Bucket=bucket, Key=f"copy {key}", CopySource={"Bucket": bucket,
                                                                         "Key": key})
        assert read(client, bucket, f"copy {key}") == body
        assert listed(client, bucket, Prefix=key) == [key]
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a+b"}]})
    assert listed(client, bucket, Prefix="a") == ["a b"]


@pytest.mark.parametrize("key", ["k" * 255, "k" * 256, "k" * 465, "k" * 1024, "k/" * 512,
                                 "字" * 341], ids=lambda key: f"{key[:2]}-{len(key)}")
def test_b26_long_keys(client, bucket, key):
    client.put_object(Bucket=bucket, Key=key, Body=b"1")
    assert read(client, bucket, key) == b"1"
    assert listed(client, bucket) == [key]
    client.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": key},
                       MetadataDirective="REPLACE")
    names = {"Bucket": bucket, "Key": key}
    names["UploadId"] = client.create_multipart_upload(**names)["UploadId"]
    etag = client.upload_part(**names, PartNumber=1, Body=b"2")["ETag"]
    assert client.list_multipart_uploads(Bucket=bucket)["Uploads"][0]["Key"] == key
    client.complete_multipart_upload(
        **names, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert read(client, bucket, key) == b"2"


def test_b26_too_long_keys(client, bucket):
    key = "字" * 341 + "xx"
    for call in (client.put_object, client.create_multipart_upload):
        with refused(400, "KeyTooLongError"):
            call(Bucket=bucket, Key=key)
    put(client, bucket, "k")
    with refused(400, "KeyTooLongError"):
        client.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": "k"})


@pytest.mark.parametrize("order", [("a", "a/", "a/b"), ("a/b", "a/", "a")])
def test_b27_names_that_look_like_folders(client, bucket, order):
    for key in order:
        client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert listed(client, bucket) == ["a", "a/", "a/b"]
    client.delete_object(Bucket=bucket, Key="a")
    assert read(client, bucket, "a/b") == b"a/b"
    client.delete_object(Bucket=bucket, Key="a/")
    assert listed(client, bucket) == ["a/b"]


def test_b28_metadata_that_is_not_ascii(raw, bucket):
    word = "=?UTF-8?Q?=C3=A9?="
    headers = [("x-amz-meta-n", "é字".encode().decode("latin-1")), ("x-amz-meta-w", word)]
    assert raw("PUT", f"/{bucket}/k", headers=headers).status == 200
    for method in ("HEAD", "GET"):
        found = raw(method, f"/{bucket}/k").headers
        assert found["x-amz-meta-n"].isascii()
        decoded = email.header.decode_header(found["x-amz-meta-n"])
        assert str(email.header.make_header(decoded)) == "é字"
        assert found["x-amz-meta-w"] == word


@pytest.mark.parametrize("size", [0, MIB])
def test_b32_expect_continue(server, raw, bucket, size):
    """The interim answer (or the final one) comes before the body; never a wait for it."""
    data = sigv4.request_bytes(
        server.signer(), "PUT", f"/{bucket}/k", server.netloc,
        [("Expect", "100-continue"), ("Content-Length", str(size))], mode=sigv4.UNSIGNED)
    with server.connect() as connection:
        connection.send(data)
        if size > 0:
            connection.interim()
            connection.send(bytes(size))
        assert connection.answer().status == 200
        connection.send(sigv4.request_bytes(server.signer(), "GET", f"/{bucket}/k", server.netloc))
        assert len(connection.answer().body) == size


FORMS = [("<{0}>", "</{0}>"), ('<{0} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">', "</{0}>"),
         ("\ufeff<{0}>", "</{0}>"), ("<?xml version='1.0' encoding='UTF-8'?>\n<!-- c --><{0}>",
                                     "</{0}>\n<!-- c -->")]


@pytest.mark.parametrize("before, after", FORMS)
def test_b34_forms_of_xml(client, raw, bucket, before, after):
    def ask(method, target, root, inner):
        body = (before.format(root) + inner + after.format(root)).encode()
        answer = raw(method, target, headers=[("Content-MD5", md5_base64(body))], body=body)
        assert answer.status in (200, 204), answer.body

    put(client, bucket, "k")
    ask("PUT", f"/{bucket}/k?tagging=", "Tagging",
        "<TagSet><Tag><Key>a</Key><Value><![CDATA[<b>]]></Value></Tag></TagSet>")
    tags = client.get_object_tagging(Bucket=bucket, Key="k")["TagSet"]
    assert tags == [{"Key": "a", "Value": "<b>"}]
    names = {"Bucket": bucket, "Key": "m"}
    names["UploadId"] = client.create_multipart_upload(**names)["UploadId"]
    etag = client.upload_part(**names, PartNumber=1, Body=b"2")["ETag"]
    ask("POST", f"/{bucket}/m?uploadId={names['UploadId']}", "CompleteMultipartUpload",
        f"<Part><!-- c --><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>")
    ask("POST", f"/{bucket}?delete=", "Delete",
        "<Object><Key>k</Key></Object>\n<Object><Key>m</Key></Object>")
    assert listed(client, bucket) == []
    ask("PUT", f"/{bucket}?versioning=", "VersioningConfiguration", "<Status>Enabled</Status>")


def test_b34_prefixed_names(client, raw, bucket):
    put(client, bucket, "k")
    body = (b'<s:Delete xmlns:s="http://s3.amazonaws.com/doc/2006-03-01/"><s:Object><s:Key>k</s:Key>'
            b"</s:Object></s:Delete>")
    answer = raw("POST", f"/{bucket}?delete=", headers=[("Content-MD5", md5_base64(body))],
                 body=body)
    assert answer.status == 200
    assert listed(client, bucket) == []


# -- listing -----------------------------------------------------------------------------------

def test_b41_next_marker(client, bucket):
    put(client, bucket, "a", "b/1", "b/2", "c")
    page = client.list_objects(Bucket=bucket, MaxKeys=1)
    assert page["IsTruncated"] and "NextMarker" not in page
    seen, marker = [], ""
    for _ in range(4):
        page = client.list_objects(Bucket=bucket, MaxKeys=1, Delimiter="/", Marker=marker)
        seen += keys_of(page) + prefixes_of(page)
        marker = page.get("NextMarker")
        if not page["IsTruncated"]:
            break
        assert marker == seen[-1]
    assert (seen, marker) == (["a", "b/", "c"], None)
    assert keys_of(client.list_objects(Bucket=bucket, Marker="a")) == ["b/1", "b/2", "c"]
    assert keys_of(client.list_objects(Bucket=bucket, Marker="aa")) == ["b/1", "b/2", "c"]


@pytest.mark.parametrize("value, keys, shown", [("0", 0, "0"), ("1", 1, "1"), ("1000", 3, "1000"),
                                                ("1001", 3, "1000"), ("100000", 3, "1000")])
@pytest.mark.parametrize("kind, element", KINDS)
def test_b42_max_keys(client, raw, bucket, kind, element, value, keys, shown):
    put(client, bucket, "a", "b", "c")
    root = tree(raw("GET", f"/{bucket}?{kind}max-keys={value}").body)
    assert len(texts(root, f"{element}/Key")) == keys
    assert root.findtext("MaxKeys") == shown
    assert root.findtext("IsTruncated") == ("true" if value == "1" else "false")


@pytest.mark.parametrize("value", ["-1", "abc", "1e3", "%201", "0x1"])
@pytest.mark.parametrize("kind", ["", "list-type=2&", "versions=&"])
def test_b42_bad_max_keys(raw, bucket, kind, value):
    answer = raw("GET", f"/{bucket}?{kind}max-keys={value}")
    assert (answer.status, code_of(answer)) == (400, "InvalidArgument")


def test_b43_token_whenever_truncated(server, client, bucket):
    keys = [f"{group}/{index:02}" for group in "abcd" for index in range(30)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: put(client, bucket, key), keys))
    for more in ({}, {"FetchOwner": True}, {"Delimiter": "1"}, {"Delimiter": "/", "Prefix": "b/"}):
        token, seen = {}, []
        for _ in range(200):
            page = client.list_objects_v2(Bucket=bucket, MaxKeys=7, **more, **token)
            seen += keys_of(page) + prefixes_of(page)
            assert page["IsTruncated"] == ("NextContinuationToken" in page)
            if not page["IsTruncated"]:
                break
            token = {"ContinuationToken": page["NextContinuationToken"]}
        whole = client.list_objects_v2(Bucket=bucket, **more)
        assert sorted(seen) == sorted(keys_of(whole) + prefixes_of(whole))


def test_b45_start_after(client, bucket):
    keys = [f"a/{index}" for index in range(1, 10)] + ["b/1"]
    put(client, bucket, *keys)
    below = keys[:9]
    for start, expected in (("a/5", below[5:]), ("a", below), ("b", []), ("a/5x", below[5:]),
                            ("0", below)):
        assert listed(client, bucket, Prefix="a/", StartAfter=start) == expected
        found = client.list_objects(Bucket=bucket, Prefix="a/", Marker=start)
        assert keys_of(found) == expected
    # a prefix that start-after lies inside of was given out already: as markers of pages do
    page = client.list_objects_v2(Bucket=bucket, Prefix="a", Delimiter="/", StartAfter="a/5")
    assert prefixes_of(page) == []
    page = client.list_objects_v2(Bucket=bucket, Prefix="a/", StartAfter="a/3", MaxKeys=2)
    page = client.list_objects_v2(Bucket=bucket, Prefix="a/", StartAfter="a/8", MaxKeys=2,
                                  ContinuationToken=page["NextContinuationToken"])
    assert keys_of(page) == ["a/6", "a/7"]


@pytest.mark.parametrize("delimiter, prefixes, keys", [
    ("-", ["a-"], ["aabb", "p%q", "x y", "über"]), ("ab", ["aab"], ["a-1", "p%q", "x y", "über"]),
    ("%", ["p%"], ["a-1", "aabb", "x y", "über"]), ("ü", ["ü"], ["a-1", "aabb", "p%q", "x y"]),
    (" ", ["x "], ["a-1", "aabb", "p%q", "über"]), ("", [], ["a-1", "aabb", "p%q", "x y", "über"])])
def test_b46_delimiters(client, bucket, delimiter, prefixes, keys):
    put(client, bucket, "a-1", "aabb", "p%q", "x y", "über")
    for call in (client.list_objects, client.list_objects_v2):
        page = call(Bucket=bucket, Delimiter=delimiter)
        assert (prefixes_of(page), keys_of(page)) == (prefixes, keys)


def test_b47_markers_with_blanks(client, raw, bucket):
    keys = sorted(f"{a} {b}%/x" for a in "ab" for b in "cd")
    put(client, bucket, *keys)
    for decode in (True, False):
        marker, seen = "", []
        for _ in range(10):
            root = tree(raw("GET", f"/{bucket}?delimiter=%25&encoding-type=url&max-keys=1"
                                   f"&marker={quote(marker)}").body)
            seen += [urllib.parse.unquote(text) for text in texts(root, "CommonPrefixes/Prefix")]
            marker = root.findtext("NextMarker") or ""
            if not marker:
                break
            marker = urllib.parse.unquote(marker) if decode else marker
        if decode:
            assert seen == [key[:4] for key in keys]


@pytest.mark.parametrize("body", [b"", b"hello"])
def test_b48_folder_markers(client, bucket, body):
    etag = client.put_object(Bucket=bucket, Key="d/", Body=body)["ETag"]
    assert etag == f'"{hashlib.md5(body).hexdigest()}"'
    (entry,) = client.list_objects_v2(Bucket=bucket, Prefix="d/", Delimiter="/")["Contents"]
    head = client.head_object(Bucket=bucket, Key="d/")
    assert (entry["Key"], entry["ETag"], entry["Size"], entry["StorageClass"]) == (
        "d/", etag, len(body), "STANDARD")
    assert (head["ETag"], head["ContentLength"]) == (etag, len(body))
    assert entry["LastModified"].replace(microsecond=0) == head["LastModified"]
    assert read(client, bucket, "d/") == body
    assert prefixes_of(client.list_objects_v2(Bucket=bucket, Delimiter="/")) == ["d/"]


def test_b49_tokens_from_elsewhere(client, bucket, new_bucket):
    """Any answer that is no crash and no error of the server."""
    other = new_bucket()
    put(client, bucket, "a/1", "a/2", "b/1")
    put(client, other, "x", "y")
    token = client.list_objects_v2(Bucket=other, MaxKeys=1)["NextContinuationToken"]
    for more in ({}, {"Prefix": "a/"}, {"Delimiter": "/"}):
        try:
            client.list_objects_v2(Bucket=bucket, ContinuationToken=token, **more)
        except botocore.exceptions.ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400


# -- multipart, copies -------------------------------------------------------------------------

def test_b54_nothing_in_one_part(client, raw, bucket):
    names = {"Bucket": bucket, "Key": "k"}
    names["UploadId"] = client.create_multipart_upload(**names)["UploadId"]
    etag = client.upload_part(**names, PartNumber=1, Body=b"")["ETag"]
    done = client.complete_multipart_upload(
        **names, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert done["ETag"].endswith('-1"')
    assert read(client, bucket, "k") == b""
    assert raw("HEAD", f"/{bucket}/k").headers["Content-Length"] == "0"
    assert raw("GET", f"/{bucket}/k", headers=[("Range", "bytes=0-")]).status == 416
    client.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "k"})
    assert read(client, bucket, "copy") == b""


@pytest.mark.parametrize("key", ["a b", "a+b", "a%20b", "ü", "a?b", "a/b", "a%"])
def test_b61_copy_sources(client, raw, bucket, key):
    client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    version = client.put_object(Bucket=bucket, Key="other", Body=b"x")
    assert version
    for form in (f"{bucket}/{quote(key)}", f"/{bucket}/{quote(key)}", f"{bucket}%2F{quote(key)}",
                 f"/{bucket}/{quote(key, '+/')}", f"{bucket}/{quote(key)}?versionId=null"):
        answer = raw("PUT", f"/{bucket}/copy", headers=[("x-amz-copy-source", form)])
        assert answer.status == 200, (form, answer.body)
        assert read(client, bucket, "copy") == key.encode()
        client.delete_object(Bucket=bucket, Key="copy")


def test_b64_ranges_of_nothing(client, raw, bucket):
    put(client, bucket, "empty")
    upload = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    target = f"/{bucket}/k?partNumber=1&uploadId={quote(upload)}"
    source = ("x-amz-copy-source", f"{bucket}/empty")
    assert raw("PUT", target, headers=[source]).status == 200
    answer = raw("PUT", target, headers=[source, ("x-amz-copy-source-range", "bytes=0-0")])
    assert answer.status in (400, 416)
    answer = raw("PUT", target, headers=[source, ("x-amz-copy-source-if-match", '"00"')])
    assert (answer.status, code_of(answer)) == (412, "PreconditionFailed")


# -- conditions and ranges ---------------------------------------------------------------------

def test_b67_if_range(client, raw, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    head = raw("HEAD", f"/{bucket}/k").headers
    part = ("Range", "bytes=2-3")
    for value, status in ((head["ETag"], 206), ('"stale"', 200), (head["Last-Modified"], 206),
                          ("Thu, 01 Dec 1994 16:00:00 GMT", 200), (f"W/{head['ETag']}", 200)):
        answer = raw("GET", f"/{bucket}/k", headers=[part, ("If-Range", value)])
        assert (answer.status, answer.body) == (status, b"23" if status == 206 else b"0123456789")


def test_b67_conditions_before_ranges(client, raw, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    answer = raw("GET", f"/{bucket}/k", headers=[("If-Match", '"00"'), ("Range", "bytes=99-")])
    assert (answer.status, code_of(answer)) == (412, "PreconditionFailed")
    answer = raw("GET", f"/{bucket}/k", headers=[("If-None-Match", f'"{HELLO_MD5}"'),
                                                 ("Range", "bytes=99-")])
    assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize("text, status, content", [
    ("bytes=0-", 206, "0-9"), ("bytes=9-9", 206, "9-9"), ("bytes=9-99", 206, "9-9"),
    ("bytes=10-", 416, None), ("bytes=-0", 416, None), ("bytes=-99", 206, "0-9"),
    ("bytes=5-2", 200, None), ("bytes=0-1,4-5", 200, None), ("lines=0-1", 200, None),
    (f"bytes=0-{2**64}", 206, "0-9"), (f"bytes={2**64}-", 416, None), ("", 200, None),
    ("bytes=", 200, None), ("bytes=a-b", 200, None), ("bytes=-", 200, None)])
def test_b70_ranges(client, raw, bucket, text, status, content):
    client.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    answer = raw("GET", f"/{bucket}/k", headers=[("Range", text)])
    assert answer.status == status
    if status == 206:
        first, last = map(int, content.split("-"))
        assert answer.headers["Content-Range"] == f"bytes {content}/10"
        assert answer.body == b"0123456789"[first:last + 1]
    if status == 200:
        assert answer.body == b"0123456789"


@pytest.mark.parametrize("first, last", [(5 * MIB - 1, 5 * MIB - 1), (5 * MIB - 1, 5 * MIB),
                                         (5 * MIB, 5 * MIB), (5 * MIB + 4, 5 * MIB + 4)])
def test_b70_borders_of_parts(client, bucket, first, last):
    two_parts(client, bucket, "k")
    whole = bytes(5 * MIB) + b"hello"
    assert read(client, bucket, "k", Range=f"bytes={first}-{last}") == whole[first:last + 1]


# -- deletes -----------------------------------------------------------------------------------

@pytest.mark.parametrize("target, body", [
    ("?versioning=", b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
    ("?tagging=", b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"),
    ("?cors=", b"<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod>"
               b"<AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>")])
def test_b71_integrity_of_settings(raw, bucket, target, body):
    sha256 = base64.b64encode(hashlib.sha256(body).digest()).decode()
    wrong = base64.b64encode(hashlib.sha256(b"x").digest()).decode()
    for headers, codes in (
            ([("Content-MD5", md5_base64(b"x"))], ("BadDigest", "InvalidDigest")),
            ([("x-amz-checksum-crc32", crc32_base64(b"x"))], ("BadDigest",)),
            ([("x-amz-checksum-sha256", wrong)], ("BadDigest",))):
        answer = raw("PUT", f"/{bucket}{target}", headers=headers, body=body)
        assert answer.status == 400 and code_of(answer) in codes
        assert b"Enabled" not in raw("GET", f"/{bucket}?versioning=").body
    for headers in ([], [("Content-MD5", md5_base64(body))],
                    [("x-amz-checksum-crc32", crc32_base64(body))],
                    [("x-amz-checksum-sha256", sha256)]):
        assert raw("PUT", f"/{bucket}{target}", headers=headers, body=body).status in (200, 204)


def test_b73_deleting_nothing(client, raw, bucket):
    put(client, bucket, "k")
    for _ in range(2):
        assert raw("DELETE", f"/{bucket}/missing").status == 204
    with refused(404, "NoSuchBucket"):
        client.delete_object(Bucket="no-such-bucket-here", Key="k")
    gone = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}, {"Key": "no"}]})
    assert [row["Key"] for row in gone["Deleted"]] == ["k", "no"] and "Errors" not in gone
    enable_versions(client, bucket)
    version = client.put_object(Bucket=bucket, Key="v", Body=b"")["VersionId"]
    for _ in range(2):
        assert raw("DELETE", f"/{bucket}/v?versionId={version}").status == 204


def test_b74_folder_marker_and_children(client, bucket):
    put(client, bucket, "d/", "d/x")
    client.delete_object(Bucket=bucket, Key="d/")
    assert listed(client, bucket) == ["d/x"]
    for order in (["d/", "d/x"], ["d/x", "d/"]):
        put(client, bucket, "d/", "d/x")
        gone = client.delete_objects(Bucket=bucket,
                                     Delete={"Objects": [{"Key": key} for key in order]})
        assert len(gone["Deleted"]) == 2
        assert listed(client, bucket) == []
    put(client, bucket, "e/x")
    client.delete_object(Bucket=bucket, Key="e/x")
    page = client.list_objects_v2(Bucket=bucket, Prefix="e/", Delimiter="/")
    assert keys_of(page) + prefixes_of(page) == []


def test_b75_what_keeps_a_bucket(client, new_bucket):
    name = new_bucket()
    client.create_multipart_upload(Bucket=name, Key="k")
    client.delete_bucket(Bucket=name)
    client.create_bucket(Bucket=name)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)
    put(client, name, "k")
    with refused(409, "BucketNotEmpty"):
        client.delete_bucket(Bucket=name)
    enable_versions(client, name)
    client.delete_object(Bucket=name, Key="k")
    with refused(409, "BucketNotEmpty"):
        client.delete_bucket(Bucket=name)
    client.delete_object(Bucket=name, Key="k", VersionId="null")
    with refused(409, "BucketNotEmpty"):
        client.delete_bucket(Bucket=name)


def test_b75_deleting_against_putting(server, client, new_bucket):
    """An acknowledged object is never lost with its bucket."""
    name = new_bucket()
    for _ in range(15):
        def write(_):
            try:
                server.client().put_object(Bucket=name, Key="k", Body=b"x")
            except client.exceptions.NoSuchBucket:
                return False
            return True

        def remove():
            try:
                server.client().delete_bucket(Bucket=name)
            except botocore.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] == "BucketNotEmpty"
                return False
            return True

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            removing, writing = pool.submit(remove), pool.submit(write, 0)
            removed, written = removing.result(), writing.result()
        if removed:
            assert not written
            client.create_bucket(Bucket=name)
            assert listed(client, name) == []
        else:
            assert written and listed(client, name) == ["k"]
            client.delete_object(Bucket=name, Key="k")


# -- versions ----------------------------------------------------------------------------------

def test_b76_reading_delete_markers(client, raw, bucket):
    enable_versions(client, bucket)
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    marker = client.delete_object(Bucket=bucket, Key="k")["VersionId"]
    for method in ("GET", "HEAD"):
        answer = raw(method, f"/{bucket}/k")
        assert (answer.status, answer.headers["x-amz-delete-marker"]) == (404, "true")
        answer = raw(method, f"/{bucket}/k?versionId={marker}")
        assert (answer.status, answer.headers["x-amz-delete-marker"]) == (405, "true")
        assert answer.headers["Last-Modified"] and answer.headers["Allow"]
    for version in ("", f"?versionId={marker}"):
        answer = raw("PUT", f"/{bucket}/c", headers=[("x-amz-copy-source",
                                                      f"{bucket}/k{version}")])
        assert answer.status in (400, 404)
    client.delete_object(Bucket=bucket, Key="k", VersionId=marker)
    assert read(client, bucket, "k") == b"hello"


def test_b78_older_than_versioning(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"old")
    enable_versions(client, bucket)
    (only,) = client.list_object_versions(Bucket=bucket)["Versions"]
    assert (only["VersionId"], only["IsLatest"]) == ("null", True)
    client.put_object(Bucket=bucket, Key="k", Body=b"new")
    assert read(client, bucket, "k", VersionId="null") == b"old"
    client.delete_object(Bucket=bucket, Key="k", VersionId="null")
    (only,) = client.list_object_versions(Bucket=bucket)["Versions"]
    assert only["VersionId"] != "null" and read(client, bucket, "k") == b"new"


def version_rows(page):
    rows = page.get("Versions", []) + page.get("DeleteMarkers", [])
    return [(row["Key"], row["VersionId"]) for row in rows]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_b79_pages_of_versions(client, raw, bucket, size):
    enable_versions(client, bucket)
    for key in ("a", "b/1", "c"):
        for _ in range(3):
            put(client, bucket, key)
        client.delete_object(Bucket=bucket, Key=key)
    whole = version_rows(client.list_object_versions(Bucket=bucket))
    pages = client.get_paginator("list_object_versions").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": size})
    seen = []
    for page in pages:
        seen += version_rows(page)
        for key, version in version_rows(page):
            client.delete_object(Bucket=bucket, Key=key, VersionId=version)
    assert len(seen) == 12 and sorted(seen) == sorted(whole)
    assert version_rows(client.list_object_versions(Bucket=bucket)) == []


def test_b79_markers(client, raw, bucket):
    enable_versions(client, bucket)
    put(client, bucket, "a", "a", "b/1", "b/2", "c")
    answer = raw("GET", f"/{bucket}?versions=&version-id-marker=null")
    assert (answer.status, code_of(answer)) == (400, "InvalidArgument")
    page = client.list_object_versions(Bucket=bucket, KeyMarker="a")
    assert [key for key, _ in version_rows(page)] == ["b/1", "b/2", "c"]
    seen, markers = [], {}
    for _ in range(10):
        page = client.list_object_versions(Bucket=bucket, Delimiter="/", MaxKeys=1, **markers)
        seen += [key for key, _ in version_rows(page)] + prefixes_of(page)
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"]}
        if page.get("NextVersionIdMarker"):
            markers["VersionIdMarker"] = page["NextVersionIdMarker"]
    assert seen == ["a", "a", "b/", "c"]


# -- lifecycle ---------------------------------------------------------------------------------

EXPIRE = {"Status": "Enabled", "Expiration": {"Days": 1}}


@pytest.mark.parametrize("rule", [
    {"Filter": {"Prefix": "tmp/"}}, {"Filter": {}}, {"Prefix": ""}, {"Prefix": "tmp/"},
    {"Filter": {"Tag": {"Key": "a", "Value": "b"}}}, {"Filter": {"ObjectSizeGreaterThan": 5}},
    {"Filter": {"And": {"Prefix": "tmp/", "Tags": [{"Key": "a", "Value": "b"}]}}}])
def test_b80_b81_no_rule_is_taken_and_forgotten(client, bucket, rule):
    """What is not built is refused as a whole: a rule never becomes a wider one, or none."""
    put(client, bucket, "tmp/k")
    with refused(501, "NotImplemented"):
        client.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [{**EXPIRE, **rule}]})
    with refused(404, "NoSuchLifecycleConfiguration"):
        client.get_bucket_lifecycle_configuration(Bucket=bucket)
    assert listed(client, bucket) == ["tmp/k"]


# -- deleted rows in front of a listing --------------------------------------------------------

def test_b86_a_prefix_used_as_a_queue(client, bucket):
    for turn in range(4):
        names = [f"q/{turn}-{number:03}" for number in range(60)]
        put(client, bucket, *names)
        assert listed(client, bucket, Prefix="q/", MaxKeys=1) == names[:1]
        client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": name} for name in names]})
        assert listed(client, bucket, Prefix="q/", MaxKeys=1) == []
        put(client, bucket, "q/z")
        page = client.list_objects_v2(Bucket=bucket, Prefix="q/", MaxKeys=1)
        assert (keys_of(page), page["IsTruncated"]) == (["q/z"], False)
        client.delete_object(Bucket=bucket, Key="q/z")


# -- hostile, at once --------------------------------------------------------------------------

LAUGHS = (b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>')
WEAPONS = [LAUGHS + b"<Delete><Object><Key>&b;</Key></Object></Delete>",
           b'<!DOCTYPE d SYSTEM "file:///etc/passwd"><Delete/>',
           b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><Delete>&x;</Delete>',
           b"<a>" * 100000, b"<Delete><Object><Key>k", b"<Delete>" + b"<Object/>" * 10,
           b"", b"\0", b"\xff\xfe<\0a\0"]


@pytest.mark.parametrize("body", WEAPONS, ids=range(len(WEAPONS)))
def test_b89_hostile_documents(client, raw, bucket, body):
    put(client, bucket, "k")
    upload = client.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
    for method, target in (("POST", "?delete="), ("POST", f"/m?uploadId={quote(upload)}"),
                           ("PUT", "/k?tagging="), ("PUT", "?versioning="), ("PUT", "?cors=")):
        answer = raw(method, f"/{bucket}{target}", headers=[("Content-MD5", md5_base64(body))],
                     body=body)
        assert (answer.status, code_of(answer)) in ((400, "MalformedXML"),
                                                    (400, "MissingRequestBodyError")), target
        assert b"root:" not in answer.body


def test_b89_announced_size(server, bucket):
    """Refused by its announced length, before a byte of it is sent."""
    answer = send(server, f"/{bucket}?delete=", [("Content-Length", str(10 * 2**30)),
                                                 ("Content-MD5", md5_base64(b""))], b"",
                  sigv4.UNSIGNED, "POST")
    assert answer.status in (400, 413) and code_of(answer)


def test_b92_reads_while_overwritten(server, client, bucket):
    """Whoever reads gets one of the bodies whole, with its own ETag and length."""
    bodies = [b"A" * (3 * MIB), b"B" * (3 * MIB + 7)]
    tags = {f'"{hashlib.md5(body).hexdigest()}"': body for body in bodies}
    client.put_object(Bucket=bucket, Key="k", Body=bodies[0])
    stop, found = threading.Event(), []

    def write():
        mine, turn = server.client(), 0
        while not stop.is_set():
            turn += 1
            mine.put_object(Bucket=bucket, Key="k", Body=bodies[turn % 2])

    def look():
        mine = server.client()
        while not stop.is_set():
            answer = mine.get_object(Bucket=bucket, Key="k")
            found.append(tags[answer["ETag"]] == answer["Body"].read())
            try:
                part = mine.get_object(Bucket=bucket, Key="k", Range="bytes=1000000-",
                                       IfMatch=answer["ETag"])
                found.append(tags[answer["ETag"]][1000000:] == part["Body"].read())
            except botocore.exceptions.ClientError as error:
                assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 412

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(call) for call in (write, write, look, look)]
        time.sleep(4)
        stop.set()
        for one in running:
            one.result()
    assert len(found) > 4 and all(found)

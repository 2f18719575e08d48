"""fgw bucket quota: what is refused and what is not, how soon space that was given back counts."""
import json
import threading

import pytest

import sigv4
from fgw_server import admin_verb, run_fgw
from s3util import bytes_of, code_of, error_of, refused

FULL = (403, "QuotaExceeded")
MIB = 1024 * 1024


def verb(server, *words, code=0):
    done = admin_verb(server, *words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def quota(server, bucket, **limits):
    flags = [word for name, value in limits.items() for word in (f"--{name}", str(value))]
    return verb(server, "bucket", "quota", bucket, *flags)


@pytest.mark.every_form
def test_a_bucket_is_filled_and_no_more(server, client, bucket):
    assert quota(server, bucket, bytes="100KiB") == {
        "name": bucket, "quota_bytes": 102400, "quota_objects": None, "bytes": 0, "objects": 0,
        "upload_bytes": 0}
    client.put_object(Bucket=bucket, Key="a", Body=bytes_of(60000))
    with refused(*FULL):
        client.put_object(Bucket=bucket, Key="b", Body=bytes_of(60000, 2))
    with refused(*FULL):  # the old object is there until the new one is
        client.put_object(Bucket=bucket, Key="a", Body=bytes_of(60000, 2))
    client.put_object(Bucket=bucket, Key="b", Body=bytes_of(42400, 2))
    client.put_object(Bucket=bucket, Key="empty", Body=b"")
    found = quota(server, bucket)
    assert (found["bytes"], found["objects"]) == (102400, 3)
    client.delete_object(Bucket=bucket, Key="a")
    client.put_object(Bucket=bucket, Key="c", Body=bytes_of(60000, 3))  # at once
    assert quota(server, bucket, bytes="none", objects=3)["quota_objects"] == 3
    with refused(*FULL):
        client.put_object(Bucket=bucket, Key="d", Body=b"")
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "b"}, {"Key": "empty"}]})
    client.put_object(Bucket=bucket, Key="d", Body=bytes_of(200000))
    assert verb(server, "bucket", "show", bucket)["quota_objects"] == 3
    quota(server, bucket, objects="none")
    client.put_object(Bucket=bucket, Key="e", Body=b"")
    client.put_object(Bucket=bucket, Key="f", Body=b"")


def test_every_way_in(server, client, bucket):
    client.put_object(Bucket=bucket, Key="a", Body=bytes_of(6 * MIB))
    upload = client.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
    target = {"Bucket": bucket, "Key": "m", "UploadId": upload}
    tag = client.upload_part(PartNumber=1, Body=bytes_of(5 * MIB, 2), **target)["ETag"]
    assert quota(server, bucket, bytes="12MiB", objects="1")["upload_bytes"] == 5 * MIB
    source = {"Bucket": bucket, "Key": "a"}
    with refused(*FULL):
        client.copy_object(Bucket=bucket, Key="c", CopySource=source)
    with refused(*FULL):
        client.upload_part(PartNumber=2, Body=bytes_of(2 * MIB), **target)
    with refused(*FULL):
        client.upload_part_copy(PartNumber=2, CopySource=source, **target)
    parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    with refused(*FULL):
        client.complete_multipart_upload(MultipartUpload=parts, **target)
    quota(server, bucket, objects="2")
    client.complete_multipart_upload(MultipartUpload=parts, **target)
    client.complete_multipart_upload(MultipartUpload=parts, **target)  # the same answer again
    found = quota(server, bucket)
    assert (found["bytes"], found["objects"], found["upload_bytes"]) == (11 * MIB, 2, 0)


def test_a_form_and_a_body_of_unknown_length(server, client, bucket):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    quota(server, bucket, bytes="1000B")
    form = (b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\nform\r\n'
            b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n%s\r\n--x--\r\n')
    for size, status in ((1001, 403), (600, 204)):
        body = form % (b"x" * size)
        head = (f"POST /{bucket} HTTP/1.1\r\nHost: {server.netloc}\r\nContent-Length: {len(body)}"
                "\r\nContent-Type: multipart/form-data; boundary=x\r\n\r\n")
        with server.connect() as connection:
            connection.send(head.encode() + body)
            answer = connection.answer("POST")
        assert answer.status == status, answer.body
    head = sigv4.request_bytes(server.signer(), "PUT", f"/{bucket}/chunked", server.netloc,
                               [("Transfer-Encoding", "chunked")], mode=sigv4.UNSIGNED)
    for size, status in ((401, 403), (400, 200)):
        with server.connect() as connection:
            connection.send(head + b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"y" * size))
            answer = connection.answer("PUT")
        assert answer.status == status, answer.body
        if status == 403:
            assert code_of(answer) == "QuotaExceeded"
            assert error_of(answer)["BucketName"] == bucket
    assert quota(server, bucket)["bytes"] == 1000


def test_writers_at_the_same_time(server, client, bucket):
    quota(server, bucket, bytes="55KiB")
    codes = []

    def write(number):
        try:
            server.client().put_object(Bucket=bucket, Key=f"k{number}",
                                       Body=bytes_of(10 * 1024, number))
            codes.append("")
        except client.exceptions.ClientError as error:
            codes.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [""] * 5 + ["QuotaExceeded"] * 5
    # what was refused gave back what it took
    client.put_object(Bucket=bucket, Key="last", Body=bytes_of(5 * 1024))


def test_versions_and_uploads_count(server, client, bucket):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for number in range(3):
        client.put_object(Bucket=bucket, Key="k", Body=bytes_of(100, number))
    client.delete_object(Bucket=bucket, Key="k")
    client.put_object(Bucket=bucket, Key="l", Body=b"12345")
    uploads = [client.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
               for _ in range(2)]
    for size in (500, 700):  # the newest attempt
        client.upload_part(Bucket=bucket, Key="m", UploadId=uploads[0], PartNumber=1,
                           Body=bytes_of(size))
    client.upload_part(Bucket=bucket, Key="m", UploadId=uploads[1], PartNumber=9, Body=b"123")
    found = quota(server, bucket, bytes="1010B")
    assert (found["bytes"], found["objects"], found["upload_bytes"]) == (305, 4, 703)
    with refused(*FULL):
        client.put_object(Bucket=bucket, Key="n", Body=b"123")
    client.abort_multipart_upload(Bucket=bucket, Key="m", UploadId=uploads[1])
    client.put_object(Bucket=bucket, Key="n", Body=b"123")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_pages_and_a_restart(server_factory):
    server = server_factory(form="embedded")
    client = server.client()
    client.create_bucket(Bucket="pages")
    for number in range(1001):
        client.put_object(Bucket="pages", Key=f"k{number:05}", Body=b"123")
    where = ("--data", server.data, "--json")
    server.stop()
    done = run_fgw("bucket", "quota", "pages", "--bytes", "3005B", *where)  # nobody runs
    assert json.loads(done.stdout)["bytes"] == 3003, done.stderr
    server.start()
    client = server.client()
    with refused(*FULL):
        client.put_object(Bucket="pages", Key="more", Body=b"123")
    client.put_object(Bucket="pages", Key="more", Body=b"12")


def test_what_is_no_quota(server, bucket):
    for flags in (("--bytes", "0"), ("--bytes", "lots"), ("--objects", "-1"), ("--objects", "1.5"),
                  ("--objects", "1KiB"), ("--shards", "x", "--policy", "admin")):
        verb(server, "bucket", "quota", bucket, *flags, code=2)
    assert "does not exist" in verb(server, "bucket", "quota", "no-such-bucket", code=1)
    verb(server, "bucket", "quota", code=2)
    assert quota(server, bucket)["quota_bytes"] is None

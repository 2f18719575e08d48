"""One object through every way a client may send it: the thin end of everything else."""
import base64
import hashlib

import pytest
import requests

import sigv4

pytestmark = pytest.mark.every_form
BODY = bytes(range(256)) * 700  # above one chunk of 64 KiB, below the inline limit


def test_boto3_put_get_list_delete(client, bucket):
    put = client.put_object(Bucket=bucket, Key="a/b c", Body=BODY)
    assert put["ETag"] == f'"{hashlib.md5(BODY).hexdigest()}"'
    assert client.get_object(Bucket=bucket, Key="a/b c")["Body"].read() == BODY
    assert [row["Key"] for row in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["a/b c"]
    client.delete_object(Bucket=bucket, Key="a/b c")
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize("mode, trailers", [
    (None, ()), (sigv4.UNSIGNED, ()), (sigv4.STREAMING, ()),
    (sigv4.STREAMING_TRAILER, (("x-amz-checksum-sha256",),)),
    (sigv4.STREAMING_UNSIGNED_TRAILER, (("x-amz-checksum-sha256",),))])
def test_every_payload_mode(server, bucket, raw, client, mode, trailers):
    digest = base64.b64encode(hashlib.sha256(BODY).digest()).decode()
    trailers = [(name, digest) for (name,) in trailers]
    answer = raw("PUT", f"/{bucket}/k", body=BODY, mode=mode, trailers=trailers)
    assert answer.status == 200, answer
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == BODY


def test_presigned_url(server, bucket, client):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    target = server.signer().presign("GET", f"/{bucket}/k", server.netloc)
    answer = requests.get(server.endpoint + target, verify=server.ca_file() or True, timeout=10)
    assert (answer.status_code, answer.content) == (200, b"x")


def test_wrong_signature_is_refused(server, bucket, raw):
    other = sigv4.Signer(server.access_key, "another-secret-of-16")
    answer = raw("GET", f"/{bucket}/k", signer=other)
    assert answer.status == 403 and b"<Code>SignatureDoesNotMatch</Code>" in answer.body


def test_objects_survive_a_kill(server_factory):
    server = server_factory()
    client = server.client()
    client.create_bucket(Bucket="kept-bucket")
    client.put_object(Bucket="kept-bucket", Key="k", Body=BODY)
    server.kill()
    server.start()
    assert server.client().get_object(Bucket="kept-bucket", Key="k")["Body"].read() == BODY

"""Virtual-host addressing: public case B09, spec/interface.md 4; and FGW_S3_STRICT_AWS."""
import pytest

import sigv4
from s3util import code_of, refused, texts, tree

SERVER_SETTINGS = {"FGW_DOMAIN": "s3.example", "FGW_S3_STRICT_AWS": "on"}


def ask(server, host, method, target, headers=(), body=b""):
    with server.connect() as connection:
        connection.send(sigv4.request_bytes(server.signer(), method, target, host, headers, body))
        return connection.answer(method)


@pytest.mark.parametrize("port", ["", ":8078", ":80"])
def test_bucket_in_the_host(server, client, bucket, port):
    host = f"{bucket}.s3.example{port}"
    key = f"x/{bucket}/y"
    assert ask(server, host, "PUT", f"/{key}", body=b"hello").status == 200
    assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == b"hello"
    assert ask(server, host, "GET", f"/{key}").body == b"hello"
    assert texts(tree(ask(server, host, "GET", "/?list-type=2").body), "Contents/Key") == [key]
    assert ask(server, host.upper(), "GET", f"/{key}").body == b"hello"


def test_internal_paths_are_keys_there(server, client, bucket):
    host = f"{bucket}.s3.example"
    assert ask(server, host, "GET", "/_fgw/livez").status == 404
    assert ask(server, host, "PUT", "/_fgw/livez", body=b"mine").status == 200
    assert ask(server, host, "GET", "/_fgw/livez").body == b"mine"
    assert client.get_object(Bucket=bucket, Key="_fgw/livez")["Body"].read() == b"mine"


def test_domain_itself_and_others_are_path_style(server, client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    for host in ("s3.example", "s3.example:8078", "store.elsewhere", "10.0.0.1"):
        assert ask(server, host, "GET", f"/{bucket}/k").body == b"hello"
        assert ask(server, host, "GET", "/").status == 200


def test_missing_bucket_in_the_host(server):
    answer = ask(server, "no-such-bucket-here.s3.example", "GET", "/k")
    assert (answer.status, code_of(answer)) == (404, "NoSuchBucket")


def test_strict_answers(server, client, bucket, raw):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    assert raw("GET", f"/{bucket}/k?partNumber=2").status == 416
    with refused(501, "NotImplemented"):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", IfNoneMatch='"00"')
    client.create_bucket(Bucket=bucket, ACL="public-read")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    assert client.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"] == "null"
    with refused(400, "IllegalLocationConstraintException"):
        client.create_bucket(Bucket=bucket + "-2",
                             CreateBucketConfiguration={"LocationConstraint": "mars-1"})
    target = server.signer().presign("GET", f"/{bucket}/k", server.netloc, 604801)
    with server.connect() as connection:
        connection.send(f"GET {target} HTTP/1.1\r\nHost: {server.netloc}\r\n\r\n".encode())
        assert code_of(connection.answer()) == "AuthorizationQueryParametersError"

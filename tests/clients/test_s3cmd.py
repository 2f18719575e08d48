"""s3cmd: path style by host_bucket without a place for the bucket."""
import pytest

import foreign

MIB = 1024 * 1024
pytestmark = pytest.mark.full


@pytest.fixture
def s3cmd(server, tmp_path):
    program = foreign.find("s3cmd")
    config = tmp_path / "s3cfg"
    config.write_text(
        f"[default]\naccess_key = {server.access_key}\nsecret_key = {server.secret_key}\n"
        f"host_base = {server.netloc}\nhost_bucket = {server.netloc}\n"
        f"use_https = {server.scheme == 'https'}\nsignature_v2 = False\n"
        f"bucket_location = us-east-1\nca_certs_file = {server.ca_file() or ''}\n"
        "progress_meter = False\nmultipart_chunk_size_mb = 5\n")
    client = foreign.Client(server, tmp_path)

    def call(*arguments):
        return client.run(program, "--config", config, *arguments)

    call.tried = lambda *arguments: client.try_run(program, "--config", config, *arguments)
    return call


def test_objects(s3cmd, bucket, tmp_path):
    for name in ("plain", "a b", "a+b", "a&b<c>'d", "ü-字", "50%"):
        (tmp_path / "f").write_text(name)
        s3cmd("put", "f", f"s3://{bucket}/d/{name}")
        s3cmd("get", "--force", f"s3://{bucket}/d/{name}", "out")
        assert (tmp_path / "out").read_text() == name
    listed = s3cmd("ls", f"s3://{bucket}/d/")
    for name in ("plain", "a b", "a+b", "a&b<c>'d", "ü-字", "50%"):
        assert f"s3://{bucket}/d/{name}\n" in listed
    s3cmd("cp", f"s3://{bucket}/d/a b", f"s3://{bucket}/e/a b")
    s3cmd("mv", f"s3://{bucket}/e/a b", f"s3://{bucket}/e/a+b")
    assert s3cmd("ls", "--recursive", f"s3://{bucket}/e/").count("\n") == 1
    s3cmd("del", f"s3://{bucket}/d/plain")
    s3cmd("del", "--recursive", "--force", f"s3://{bucket}")
    assert s3cmd("ls", "--recursive", f"s3://{bucket}") == ""


def test_large_object(s3cmd, bucket, tmp_path, rng):
    data = rng.randbytes(20 * MIB)
    (tmp_path / "big").write_bytes(data)
    s3cmd("put", "big", f"s3://{bucket}/big")
    assert "20971520" in s3cmd("info", f"s3://{bucket}/big")
    s3cmd("get", f"s3://{bucket}/big", "back")
    assert (tmp_path / "back").read_bytes() == data


def test_sync(s3cmd, bucket, tmp_path, rng):
    made = foreign.make_tree(tmp_path / "tree", rng)
    assert s3cmd("sync", "tree/", f"s3://{bucket}/t/").count("upload:") == len(made)
    assert s3cmd("sync", "tree/", f"s3://{bucket}/t/").count("upload:") == 0
    (tmp_path / "back").mkdir()
    s3cmd("sync", f"s3://{bucket}/t/", "back/")
    assert foreign.read_tree(tmp_path / "back") == made
    (tmp_path / "tree" / "a.txt").unlink()
    assert s3cmd("sync", "--delete-removed", "tree/", f"s3://{bucket}/t/").count("delete:") == 1
    assert s3cmd("du", f"s3://{bucket}").split()[1] == str(len(made) - 1)


def test_settings(s3cmd, bucket, tmp_path):
    (tmp_path / "f").write_text("x")
    s3cmd("put", "--add-header", "x-amz-meta-color:blue", "--mime-type", "text/x-odd", "f",
          f"s3://{bucket}/f")
    shown = s3cmd("info", f"s3://{bucket}/f")
    assert "text/x-odd" in shown and "blue" in shown and "FULL_CONTROL" in shown
    s3cmd("setacl", "--acl-public", f"s3://{bucket}/f")
    assert "READ" in s3cmd("info", f"s3://{bucket}/f").replace("READ_", "")
    s3cmd("setacl", "--acl-private", f"s3://{bucket}/f")
    assert "anon" not in s3cmd("info", f"s3://{bucket}/f")
    s3cmd("modify", "--add-header", "x-amz-meta-color:green", f"s3://{bucket}/f")
    assert "green" in s3cmd("info", f"s3://{bucket}/f")
    s3cmd("info", f"s3://{bucket}")


def test_buckets(s3cmd, tmp_path):
    s3cmd("mb", "s3://made-by-s3cmd")
    assert "s3://made-by-s3cmd" in s3cmd("ls")
    (tmp_path / "f").write_text("x")
    s3cmd("put", "f", "s3://made-by-s3cmd/f")
    assert "BucketNotEmpty" in s3cmd.tried("rb", "s3://made-by-s3cmd").stderr
    s3cmd("rb", "--recursive", "--force", "s3://made-by-s3cmd")
    assert "s3://made-by-s3cmd" not in s3cmd("ls")


def test_uploads(s3cmd, bucket, client):
    made = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    assert made in s3cmd("multipart", f"s3://{bucket}")
    s3cmd("abortmp", f"s3://{bucket}/k", made)
    assert made not in s3cmd("multipart", f"s3://{bucket}")

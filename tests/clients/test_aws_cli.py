"""The AWS command line, version 1 (the Python package) or 2 (Debian): s3 and s3api commands."""
import json

import pytest

import foreign

MIB = 1024 * 1024


@pytest.fixture
def aws(server, tmp_path):
    """aws("s3", "ls", ...) -> what it wrote."""
    program = foreign.find("aws")
    environment = foreign.keys_in_environment(server)
    if server.ca_file():
        environment["AWS_CA_BUNDLE"] = server.ca_file()
    client = foreign.Client(server, tmp_path, environment)
    client.home.joinpath(".aws").mkdir()
    # version 1 signs links the old way unless it is told otherwise
    client.home.joinpath(".aws", "config").write_text(
        "[default]\ns3 =\n    addressing_style = path\n    signature_version = s3v4\n")

    def call(*arguments, **options):
        return client.run(program, "--endpoint-url", server.endpoint, *arguments, **options)

    call.client = client
    call.refused = lambda *arguments: client.try_run(program, "--endpoint-url", server.endpoint,
                                                     *arguments)
    return call


def s3api(aws, operation, *arguments):
    text = aws("s3api", operation, "--output", "json", *arguments)
    return json.loads(text) if text.strip() else {}


def test_small_object(aws, bucket, tmp_path):
    """Also in make test: the shortest way round."""
    (tmp_path / "in").write_text("hello")
    aws("s3", "cp", "in", f"s3://{bucket}/a b/ü+%.txt")
    assert "a b/ü+%.txt" in aws("s3", "ls", "--recursive", f"s3://{bucket}")
    aws("s3", "cp", f"s3://{bucket}/a b/ü+%.txt", "out")
    assert (tmp_path / "out").read_text() == "hello"
    aws("s3", "rm", f"s3://{bucket}/a b/ü+%.txt")
    assert aws.refused("s3", "ls", f"s3://{bucket}/a b/").returncode == 1


@pytest.mark.full
def test_buckets(aws, tmp_path):
    aws("s3", "mb", "s3://made-by-aws-cli")
    assert "made-by-aws-cli" in aws("s3", "ls")
    (tmp_path / "f").write_text("x")
    aws("s3", "cp", "f", "s3://made-by-aws-cli/f")
    done = aws.refused("s3", "rb", "s3://made-by-aws-cli")
    assert done.returncode != 0 and "BucketNotEmpty" in done.stderr
    aws("s3", "rb", "--force", "s3://made-by-aws-cli")
    assert "made-by-aws-cli" not in aws("s3", "ls")


@pytest.mark.full
def test_large_object(aws, bucket, tmp_path, rng, client):
    """20 MiB: parts up, ranges down, part copies for cp and mv between keys."""
    data = rng.randbytes(20 * MIB)
    (tmp_path / "big").write_bytes(data)
    aws("s3", "cp", "--no-progress", "big", f"s3://{bucket}/big")
    assert client.head_object(Bucket=bucket, Key="big")["ETag"].endswith('-3"')
    aws("s3", "cp", "--no-progress", f"s3://{bucket}/big", f"s3://{bucket}/copy")
    aws("s3", "mv", "--no-progress", f"s3://{bucket}/copy", f"s3://{bucket}/moved")
    aws("s3", "cp", "--no-progress", f"s3://{bucket}/moved", "back")
    assert (tmp_path / "back").read_bytes() == data
    assert aws("s3", "ls", f"s3://{bucket}").count("20971520") == 2


@pytest.mark.full
def test_streams(aws, bucket):
    aws("s3", "cp", "-", f"s3://{bucket}/stream", stdin="from a pipe")
    assert aws("s3", "cp", f"s3://{bucket}/stream", "-") == "from a pipe"


@pytest.mark.full
def test_sync(aws, bucket, tmp_path, rng):
    """The second sync has nothing to do; --delete takes away what is gone."""
    made = foreign.make_tree(tmp_path / "tree", rng)
    assert aws("s3", "sync", "tree", f"s3://{bucket}/t").count("upload:") == len(made)
    assert aws("s3", "sync", "tree", f"s3://{bucket}/t").strip() == ""
    aws("s3", "sync", f"s3://{bucket}/t", "back")
    assert foreign.read_tree(tmp_path / "back") == made
    assert aws("s3", "sync", f"s3://{bucket}/t", "back").strip() == ""
    (tmp_path / "tree" / "a.txt").unlink()
    assert aws("s3", "sync", "--delete", "tree", f"s3://{bucket}/t").count("delete:") == 1
    aws("s3", "sync", f"s3://{bucket}/t", f"s3://{bucket}/u")
    assert aws("s3", "rm", "--recursive", f"s3://{bucket}").count("delete:") == 2 * len(made) - 2
    assert aws.refused("s3", "ls", "--recursive", f"s3://{bucket}").stdout == ""


@pytest.mark.full
def test_presigned(aws, bucket, tmp_path):
    (tmp_path / "f").write_text("signed for you")
    aws("s3", "cp", "f", f"s3://{bucket}/d/a b+c=d%.txt")
    url = aws("s3", "presign", "--expires-in", "604800", f"s3://{bucket}/d/a b+c=d%.txt").strip()
    assert aws.client.curl(url) == "signed for you"


@pytest.mark.full
def test_versions(aws, bucket, tmp_path):
    s3api(aws, "put-bucket-versioning", "--bucket", bucket, "--versioning-configuration",
          "Status=Enabled")
    assert s3api(aws, "get-bucket-versioning", "--bucket", bucket)["Status"] == "Enabled"
    ids = []
    for text in ("one", "two"):
        (tmp_path / "f").write_text(text)
        ids.append(s3api(aws, "put-object", "--bucket", bucket, "--key", "k", "--body",
                         "f")["VersionId"])
    s3api(aws, "get-object", "--bucket", bucket, "--key", "k", "--version-id", ids[0], "out")
    assert (tmp_path / "out").read_text() == "one"
    marker = s3api(aws, "delete-object", "--bucket", bucket, "--key", "k")
    assert marker["DeleteMarker"] is True
    listed = s3api(aws, "list-object-versions", "--bucket", bucket)
    assert [row["VersionId"] for row in listed["Versions"]] == ids[::-1]
    assert listed["DeleteMarkers"][0]["IsLatest"] is True
    s3api(aws, "delete-object", "--bucket", bucket, "--key", "k", "--version-id",
          marker["VersionId"])
    assert s3api(aws, "head-object", "--bucket", bucket, "--key", "k")["VersionId"] == ids[1]
    objects = [{"Key": "k", "VersionId": version} for version in ids]
    gone = s3api(aws, "delete-objects", "--bucket", bucket, "--delete",
                 json.dumps({"Objects": objects}))
    assert len(gone["Deleted"]) == 2
    assert "Versions" not in s3api(aws, "list-object-versions", "--bucket", bucket)


@pytest.mark.full
def test_pages(aws, bucket, client):
    for index in range(7):
        client.put_object(Bucket=bucket, Key=f"k{index}", Body=b"")
    pages = s3api(aws, "list-objects-v2", "--bucket", bucket, "--page-size", "2")
    assert len(pages["Contents"]) == 7
    some = s3api(aws, "list-objects-v2", "--bucket", bucket, "--max-items", "3")
    assert len(some["Contents"]) == 3 and some["NextToken"]
    rest = s3api(aws, "list-objects-v2", "--bucket", bucket, "--starting-token", some["NextToken"])
    assert len(rest["Contents"]) == 4


@pytest.mark.full
def test_settings(aws, bucket, tmp_path):
    (tmp_path / "f").write_text("x")
    s3api(aws, "put-object", "--bucket", bucket, "--key", "k", "--body", "f", "--metadata",
          "color=blue", "--content-type", "text/x-odd", "--tagging", "a=b")
    head = s3api(aws, "head-object", "--bucket", bucket, "--key", "k")
    assert (head["Metadata"], head["ContentType"]) == ({"color": "blue"}, "text/x-odd")
    tags = s3api(aws, "get-object-tagging", "--bucket", bucket, "--key", "k")["TagSet"]
    assert tags == [{"Key": "a", "Value": "b"}]
    s3api(aws, "put-object-acl", "--bucket", bucket, "--key", "k", "--acl", "public-read")
    assert len(s3api(aws, "get-object-acl", "--bucket", bucket, "--key", "k")["Grants"]) == 2
    s3api(aws, "get-bucket-location", "--bucket", bucket)
    shown = s3api(aws, "get-object-attributes", "--bucket", bucket, "--key", "k",
                  "--object-attributes", "ETag", "ObjectSize")
    assert shown["ObjectSize"] == 1

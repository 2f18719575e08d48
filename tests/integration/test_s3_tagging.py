"""Tags of objects and buckets: spec/s3-wire.md 81."""
import pytest

from s3util import refusal_of, status_and_code

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def tag_set(**tags):
    return {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}


def numbered(count):
    return tag_set(**{f"key-{i:02}": f"value-{i}" for i in range(count)})


@pytest.fixture
def names(client, bucket):
    client.put_object(Bucket=bucket, Key="key", Body=b"body", Tagging="first=1",
                      Metadata={"kept": "yes"})
    return {"Bucket": bucket, "Key": "key"}


def tags_of(client, names, **arguments):
    found = client.get_object_tagging(**names, **arguments)["TagSet"]
    return {tag["Key"]: tag["Value"] for tag in found}


def test_object_tags(client, names):
    before = client.head_object(**names)
    assert before["TagCount"] == 1
    put = client.put_object_tagging(**names, Tagging=tag_set(a="1", b="", c="\u00fc &<>"))
    assert put["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert tags_of(client, names) == {"a": "1", "b": "", "c": "\u00fc &<>"}
    after = client.get_object(**names)
    assert after["TagCount"] == 3
    assert (after["LastModified"], after["ETag"]) == (before["LastModified"], before["ETag"])
    assert after["Metadata"] == {"kept": "yes"}
    assert after["Body"].read() == b"body"
    deleted = client.delete_object_tagging(**names)
    assert deleted["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert tags_of(client, names) == {}
    assert "TagCount" not in client.head_object(**names)
    client.put_object_tagging(**names, Tagging={"TagSet": []})


@pytest.mark.parametrize("tags", [
    numbered(11), tag_set(**{"k" * 129: "v"}), tag_set(k="v" * 257),
    {"TagSet": [{"Key": "k", "Value": "1"}, {"Key": "k", "Value": "2"}]},
])
def test_bad_tags_change_nothing(client, names, tags):
    assert refusal_of(client.put_object_tagging, **names, Tagging=tags) == (400, "InvalidTag")
    assert tags_of(client, names) == {"first": "1"}


def test_empty_key(names, raw):
    document = b"<Tagging><TagSet><Tag><Key/><Value>v</Value></Tag></TagSet></Tagging>"
    assert status_and_code(raw("PUT", f"/{names['Bucket']}/key?tagging", body=document)) == (
        400, "InvalidTag")


def test_limits_are_allowed(client, names):
    client.put_object_tagging(**names, Tagging=numbered(10))
    assert len(tags_of(client, names)) == 10
    longest = {"\u00fc" * 128: "\u00e4" * 256}
    client.put_object_tagging(**names, Tagging=tag_set(**longest))
    assert tags_of(client, names) == longest


@pytest.mark.parametrize("document", [
    b"", b"x", b"<Tagging/>", b"<Tags><TagSet/></Tags>", b"<Tagging><TagSet><Tag/></TagSet></Tagging>",
    b"<Tagging><TagSet><Tag><Key>k</Key></Tag></TagSet></Tagging>",
    b"<Tagging><TagSet><Other/></TagSet></Tagging>"])
def test_bad_documents(names, raw, document):
    answer = raw("PUT", f"/{names['Bucket']}/key?tagging", body=document)
    assert status_and_code(answer) == (400, "MalformedXML")
    answer = raw("PUT", f"/{names['Bucket']}?tagging", body=document)
    assert status_and_code(answer) == (400, "MalformedXML")


def test_tags_of_versions(client, bucket, names):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    new = client.put_object(**names, Body=b"new")["VersionId"]
    client.put_object_tagging(**names, VersionId="null", Tagging=tag_set(old="1"))
    answer = client.put_object_tagging(**names, Tagging=tag_set(new="1"))
    assert answer["VersionId"] == new
    assert tags_of(client, names) == tags_of(client, names, VersionId=new) == {"new": "1"}
    assert tags_of(client, names, VersionId="null") == {"old": "1"}
    client.delete_object_tagging(**names, VersionId="null")
    assert tags_of(client, names, VersionId="null") == {}
    marker = client.delete_object(**names)["VersionId"]
    assert refusal_of(client.put_object_tagging, **names, Tagging=tag_set(a="b")) == (
        404, "NoSuchKey")
    assert refusal_of(client.put_object_tagging, **names, VersionId=marker,
                    Tagging=tag_set(a="b")) == (405, "MethodNotAllowed")
    assert refusal_of(client.put_object_tagging, **names, VersionId="0" * 32,
                    Tagging=tag_set(a="b")) == (404, "NoSuchVersion")


def test_missing_objects(client, bucket):
    assert refusal_of(client.put_object_tagging, Bucket=bucket, Key="none",
                    Tagging=tag_set(a="b")) == (404, "NoSuchKey")
    assert refusal_of(client.delete_object_tagging, Bucket=bucket, Key="none") == (404, "NoSuchKey")


def test_tags_survive_a_restart(server_factory):
    server = server_factory()
    client = server.client()
    client.create_bucket(Bucket="bucket")
    names = {"Bucket": "bucket", "Key": "key"}
    client.put_object(**names, Body=b"body")
    client.put_object_tagging(**names, Tagging=tag_set(a="1"))
    client.put_bucket_tagging(Bucket="bucket", Tagging=tag_set(b="2"))
    server.kill()
    server.start()
    client = server.client()
    assert tags_of(client, names) == {"a": "1"}
    assert client.get_bucket_tagging(Bucket="bucket")["TagSet"] == tag_set(b="2")["TagSet"]


def test_bucket_tags(client, bucket):
    assert refusal_of(client.get_bucket_tagging, Bucket=bucket) == (404, "NoSuchTagSet")
    client.put_bucket_tagging(Bucket=bucket, Tagging=numbered(50))
    assert client.get_bucket_tagging(Bucket=bucket)["TagSet"] == numbered(50)["TagSet"]
    assert refusal_of(client.put_bucket_tagging, Bucket=bucket, Tagging=numbered(51)) == (
        400, "InvalidTag")
    client.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(a="&", b=""))
    assert client.get_bucket_tagging(Bucket=bucket)["TagSet"] == tag_set(a="&", b="")["TagSet"]
    for _ in range(2):
        deleted = client.delete_bucket_tagging(Bucket=bucket)
        assert deleted["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert refusal_of(client.get_bucket_tagging, Bucket=bucket) == (404, "NoSuchTagSet")

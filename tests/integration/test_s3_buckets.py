"""Buckets: spec items 22 to 26, 77, 78; public cases B36, B39, B75."""
import pytest

from s3util import code_of, refused, tree, texts


@pytest.mark.parametrize("name", ["ab", "-abc", "abc-", "a..b", "a.-b", "a-.b", "192.168.1.1",
                                  "a" * 64, "a_b", "Abc", "xn--abc", "sthree-abc",
                                  "amzn-s3-demo-abc", "abc-s3alias", "abc--ol-s3", "abc.mrap",
                                  "abc--x-s3", "abc--table-s3"])
def test_bad_names(raw, name):
    answer = raw("PUT", f"/{name}", body=b"")
    assert (answer.status, code_of(answer)) == (400, "InvalidBucketName")


@pytest.mark.parametrize("name", ["internal", "metrics", "livez", "health"])
def test_ordinary_names(client, new_bucket, name):
    new_bucket(Bucket=name)
    client.put_object(Bucket=name, Key="k", Body=b"x")
    assert client.get_object(Bucket=name, Key="k")["Body"].read() == b"x"


def test_life(client, new_bucket):
    name = new_bucket()
    client.head_bucket(Bucket=name)
    assert name in [entry["Name"] for entry in client.list_buckets()["Buckets"]]
    client.delete_bucket(Bucket=name)
    with refused(404, "NoSuchBucket"):
        client.delete_bucket(Bucket=name)
    with refused(404, "404"):
        client.head_bucket(Bucket=name)
    with refused(404, "NoSuchBucket"):
        client.put_object(Bucket=name, Key="k", Body=b"x")


def test_create_again(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"kept")
    client.create_bucket(Bucket=bucket)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"kept"
    with refused(409, "BucketAlreadyExists"):
        client.create_bucket(Bucket=bucket, ACL="public-read")


def test_locations(client, new_bucket, raw):
    name = new_bucket(CreateBucketConfiguration={"LocationConstraint": "us-east-1"})
    assert client.get_bucket_location(Bucket=name)["LocationConstraint"] is None
    with refused(400, "InvalidLocationConstraint"):
        client.create_bucket(Bucket=name + "-2",
                             CreateBucketConfiguration={"LocationConstraint": "mars-1"})
    for body in (b"<CreateBucketConfiguration>", b"<x/>", b"no XML"):
        answer = raw("PUT", f"/{name}-3", body=body)
        assert (answer.status, code_of(answer)) == (400, "MalformedXML")


def test_delete_only_when_empty(client, new_bucket):
    name = new_bucket()
    client.put_object(Bucket=name, Key="k", Body=b"x")
    with refused(409, "BucketNotEmpty"):
        client.delete_bucket(Bucket=name)
    client.delete_object(Bucket=name, Key="k")
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    marker = client.delete_object(Bucket=name, Key="k")["VersionId"]
    with refused(409, "BucketNotEmpty"):
        client.delete_bucket(Bucket=name)
    client.delete_object(Bucket=name, Key="k", VersionId=marker)
    client.delete_bucket(Bucket=name)
    client.create_bucket(Bucket=name)
    assert "Contents" not in client.list_objects_v2(Bucket=name)
    assert "Versions" not in client.list_object_versions(Bucket=name)


def test_pages_of_buckets(client, new_bucket):
    names = sorted(new_bucket(Bucket=f"page-test-{i:02}") for i in range(5))
    first = client.list_buckets(MaxBuckets=2, Prefix="page-test-")
    assert [b["Name"] for b in first["Buckets"]] == names[:2]
    second = client.list_buckets(MaxBuckets=3, Prefix="page-test-",
                                 ContinuationToken=first["ContinuationToken"])
    assert [b["Name"] for b in second["Buckets"]] == names[2:]
    assert "ContinuationToken" not in second
    with refused(400, "InvalidArgument"):
        client.list_buckets(ContinuationToken="garbage")


def test_anonymous_list_is_empty(raw):
    from test_s3_errors import raw_unsigned  # pylint: disable=import-outside-toplevel
    answer = raw_unsigned(raw, "GET", "/")
    assert answer.status == 200
    assert texts(tree(answer.body), ".//Bucket") == []


ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"
AUTHENTICATED = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"


def grants(acl):
    return [(g["Grantee"].get("URI", "owner"), g["Permission"]) for g in acl["Grants"]]


@pytest.mark.parametrize("acl, groups", [
    ("private", []), ("public-read", [(ALL_USERS, "READ")]),
    ("public-read-write", [(ALL_USERS, "READ"), (ALL_USERS, "WRITE")]),
    ("authenticated-read", [(AUTHENTICATED, "READ")]),
])
def test_canned_acls(client, new_bucket, acl, groups):
    name = new_bucket(ACL=acl)
    found = client.get_bucket_acl(Bucket=name)
    assert grants(found) == [*groups, ("owner", "FULL_CONTROL")]
    assert found["Owner"]["DisplayName"]
    client.put_bucket_acl(Bucket=name, ACL="private")
    assert grants(client.get_bucket_acl(Bucket=name)) == [("owner", "FULL_CONTROL")]
    client.put_bucket_acl(Bucket=name, AccessControlPolicy={
        "Owner": found["Owner"], "Grants": found["Grants"]})
    assert grants(client.get_bucket_acl(Bucket=name)) == grants(found)
    client.put_object(Bucket=name, Key="k", Body=b"x", ACL=acl)
    assert grants(client.get_object_acl(Bucket=name, Key="k")) == grants(found)


def test_acls_that_are_refused(client, bucket, raw):
    answer = raw("PUT", f"/{bucket}?acl=", headers=[("x-amz-acl", "nonsense")], body=b"")
    assert (answer.status, code_of(answer)) == (400, "InvalidArgument")
    answer = raw("PUT", f"/{bucket}/k", headers=[("x-amz-acl", "nonsense")], body=b"x")
    assert answer.status == 400
    with refused(501, "NotImplemented"):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", GrantRead="id=1")
    with refused(501, "NotImplemented"):
        client.create_bucket(Bucket=bucket + "-2", ObjectLockEnabledForBucket=True)


def test_anonymous_by_acl(client, new_bucket, raw):
    from test_s3_errors import raw_unsigned  # pylint: disable=import-outside-toplevel
    name = new_bucket(ACL="public-read")
    client.put_object(Bucket=name, Key="open", Body=b"open", ACL="public-read")
    client.put_object(Bucket=name, Key="closed", Body=b"closed")
    assert raw_unsigned(raw, "GET", f"/{name}/open").body == b"open"
    assert raw_unsigned(raw, "GET", f"/{name}/closed").status == 403
    assert raw_unsigned(raw, "GET", f"/{name}/missing").status == 404
    assert texts(tree(raw_unsigned(raw, "GET", f"/{name}").body), "Contents/Key") == [
        "closed", "open"]
    assert raw_unsigned(raw, "PUT", f"/{name}/new", body=b"x").status == 403
    client.put_bucket_acl(Bucket=name, ACL="private")
    assert raw_unsigned(raw, "GET", f"/{name}/open").status == 200
    assert raw_unsigned(raw, "GET", f"/{name}/missing").status == 403
    assert raw_unsigned(raw, "GET", f"/{name}").status == 403
    client.put_bucket_acl(Bucket=name, ACL="public-read-write")
    assert raw_unsigned(raw, "PUT", f"/{name}/new", body=b"x").status == 200
    assert client.get_object(Bucket=name, Key="new")["Body"].read() == b"x"
    answer = raw_unsigned(raw, "GET", f"/{name}/open?response-content-type=text/html")
    assert (answer.status, code_of(answer)) == (400, "InvalidRequest")

"""Versions: spec items 39, 69 to 72; public cases B76, B78, B79."""
import pytest

from s3util import code_of, refused


def versioning(client, bucket, status):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def put(client, bucket, body, key="k"):
    return client.put_object(Bucket=bucket, Key=key, Body=body).get("VersionId")


def read(client, bucket, version=None, key="k"):
    more = {} if version is None else {"VersionId": version}
    return client.get_object(Bucket=bucket, Key=key, **more)["Body"].read()


def listed(client, bucket, **arguments):
    """(key, version, is latest, is marker) in the order of the key and of time."""
    found = []
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket, **arguments):
        found += [(v["Key"], v["VersionId"], v["IsLatest"], v["LastModified"], False)
                  for v in page.get("Versions", [])]
        found += [(m["Key"], m["VersionId"], m["IsLatest"], m["LastModified"], True)
                  for m in page.get("DeleteMarkers", [])]
    return found


def test_configuration(client, bucket, raw):
    assert "Status" not in client.get_bucket_versioning(Bucket=bucket)
    for status in ("Enabled", "Suspended", "Enabled"):
        versioning(client, bucket, status)
        assert client.get_bucket_versioning(Bucket=bucket)["Status"] == status
    for body in (b"", b"<VersioningConfiguration/>", b"<x/>",
                 b"<VersioningConfiguration><Status>enabled</Status></VersioningConfiguration>"):
        answer = raw("PUT", f"/{bucket}?versioning=", body=body)
        assert (answer.status, code_of(answer)) == (400, "MalformedXML")


@pytest.mark.parametrize("document", [
    "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    "<?xml version='1.0'?><s:VersioningConfiguration xmlns:s='urn:x'><s:Status>Enabled</s:Status>"
    "</s:VersioningConfiguration>",
    "\ufeff<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><!-- c -->"
    "<Status><![CDATA[Enabled]]></Status></VersioningConfiguration>",
])
def test_any_form_of_xml(client, bucket, raw, document):
    assert raw("PUT", f"/{bucket}?versioning=", body=document.encode()).status == 200
    assert client.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"


@pytest.mark.parametrize("body", [
    b"<!DOCTYPE x [<!ENTITY a 'b'>]><VersioningConfiguration><Status>&a;</Status>"
    b"</VersioningConfiguration>",
    b"<a>" * 100000, b"<VersioningConfiguration>" + b"x" * 200000,
])
def test_hostile_xml(bucket, raw, body):
    answer = raw("PUT", f"/{bucket}?versioning=", body=body)
    assert (answer.status, code_of(answer)) == (400, "MalformedXML")


def test_never_versioned_shows_no_version(client, bucket):
    assert put(client, bucket, b"1") is None
    assert "VersionId" not in client.get_object(Bucket=bucket, Key="k")
    assert client.list_object_versions(Bucket=bucket)["Versions"][0]["VersionId"] == "null"
    assert "VersionId" not in client.delete_object(Bucket=bucket, Key="k")


def test_versions_pile_up(client, bucket):
    versioning(client, bucket, "Enabled")
    versions = [put(client, bucket, str(i).encode()) for i in range(5)]
    assert len(set(versions)) == 5
    assert read(client, bucket) == b"4"
    for i, version in enumerate(versions):
        assert read(client, bucket, version) == str(i).encode()
        assert client.head_object(Bucket=bucket, Key="k", VersionId=version)["VersionId"] == version
    assert [entry[1] for entry in listed(client, bucket)] == versions[::-1]
    assert [entry[2] for entry in listed(client, bucket)] == [True] + [False] * 4
    client.delete_object(Bucket=bucket, Key="k", VersionId=versions[4])
    assert read(client, bucket) == b"3"
    client.delete_object(Bucket=bucket, Key="k", VersionId=versions[1])
    assert [entry[1] for entry in listed(client, bucket)] == [versions[3], versions[2], versions[0]]
    with refused(404, "NoSuchVersion"):
        read(client, bucket, versions[1])


def test_delete_markers(client, bucket, raw):
    versioning(client, bucket, "Enabled")
    version = put(client, bucket, b"1")
    answer = client.delete_object(Bucket=bucket, Key="k")
    marker = answer["VersionId"]
    assert answer["DeleteMarker"] is True
    for method in ("GET", "HEAD"):
        answer = raw(method, f"/{bucket}/k")
        assert answer.status == 404
        assert answer.headers["x-amz-delete-marker"] == "true"
        assert answer.headers["x-amz-version-id"] == marker
        answer = raw(method, f"/{bucket}/k?versionId={marker}")
        assert answer.status == 405
        assert answer.headers["x-amz-delete-marker"] == "true"
        assert answer.headers["Last-Modified"]
    assert read(client, bucket, version) == b"1"
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    second = client.delete_object(Bucket=bucket, Key="k")["VersionId"]
    assert second != marker
    for gone in (second, marker):
        answer = client.delete_object(Bucket=bucket, Key="k", VersionId=gone)
        assert (answer["DeleteMarker"], answer["VersionId"]) == (True, gone)
    assert read(client, bucket) == b"1"
    client.delete_object(Bucket=bucket, Key="k", VersionId=marker)


def test_null_versions(client, bucket):
    put(client, bucket, b"old")
    versioning(client, bucket, "Enabled")
    assert [entry[1] for entry in listed(client, bucket)] == ["null"]
    version = put(client, bucket, b"new")
    assert read(client, bucket, "null") == b"old"
    assert client.head_object(Bucket=bucket, Key="k", VersionId="null")["VersionId"] == "null"
    versioning(client, bucket, "Suspended")
    assert put(client, bucket, b"newest") is None
    assert read(client, bucket, "null") == b"newest"
    assert [entry[1:3] for entry in listed(client, bucket)] == [("null", True), (version, False)]
    answer = client.delete_object(Bucket=bucket, Key="k")
    assert (answer["DeleteMarker"], answer["VersionId"]) == (True, "null")
    assert [entry[1:3] for entry in listed(client, bucket)][::-1] == [("null", True),
                                                                      (version, False)]
    answer = client.delete_object(Bucket=bucket, Key="k", VersionId="null")
    assert (answer["DeleteMarker"], answer["VersionId"]) == (True, "null")
    assert read(client, bucket) == b"new"
    with refused(404, "NoSuchVersion"):
        read(client, bucket, "null")


def test_version_ids_that_are_none(client, bucket):
    put(client, bucket, b"1")
    for version in ("garbage", "", "0" * 31, "g" * 32):
        with refused(400, "InvalidArgument"):
            read(client, bucket, version)
    with refused(404, "NoSuchVersion"):
        read(client, bucket, "0" * 32)


@pytest.mark.parametrize("size", range(1, 10))
def test_pages_of_versions(client, bucket, size):
    versioning(client, bucket, "Enabled")
    expected = []
    for key in ("a", "b/x", "b/y"):
        versions = [put(client, bucket, b"x", key) for _ in range(3)]
        versions.append(client.delete_object(Bucket=bucket, Key=key)["VersionId"])
        expected += [(key, version) for version in versions[::-1]]
    found = []
    more = {}
    while True:
        page = client.list_object_versions(Bucket=bucket, MaxKeys=size, **more)
        entries = page.get("Versions", []) + page.get("DeleteMarkers", [])
        assert len(entries) <= size
        found += [(entry["Key"], entry["VersionId"]) for entry in entries]
        if not page["IsTruncated"]:
            break
        more = {"KeyMarker": page["NextKeyMarker"],
                "VersionIdMarker": page.get("NextVersionIdMarker", "")}
    assert sorted(found) == sorted(expected)
    page = client.list_object_versions(Bucket=bucket, Delimiter="/")
    assert [p["Prefix"] for p in page["CommonPrefixes"]] == ["b/"]
    page = client.list_object_versions(Bucket=bucket, KeyMarker="a")
    assert {v["Key"] for v in page["Versions"]} == {"b/x", "b/y"}
    with refused(400, "InvalidArgument"):
        client.list_object_versions(Bucket=bucket, VersionIdMarker=expected[0][1])


def test_acl_change_keeps_the_time(client, bucket):
    versioning(client, bucket, "Enabled")
    version = put(client, bucket, b"1")
    before = client.head_object(Bucket=bucket, Key="k")
    client.put_object_acl(Bucket=bucket, Key="k", ACL="public-read", VersionId=version)
    after = client.head_object(Bucket=bucket, Key="k")
    assert after["LastModified"] == before["LastModified"]
    assert after["VersionId"] == before["VersionId"] == version
    assert len(client.get_object_acl(Bucket=bucket, Key="k")["Grants"]) == 2

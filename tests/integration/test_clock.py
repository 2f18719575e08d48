"""Public case B118: the order of operations does not come from clocks. The process runs two minutes
ahead, then on the same data two minutes behind, then in time."""
import glob

import pytest

from s3util import refused

BUCKETS = ("plain", "kept")
LIBRARY = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
pytestmark = pytest.mark.skipif(not LIBRARY, reason="faketime is missing")


@pytest.fixture
def at(server_factory, tmp_path, monkeypatch):
    """at(offset) ends the server and starts it on the same data with its clock moved."""
    monkeypatch.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")
    running = []

    def start(offset):
        while running:
            running.pop().stop()
        prefix = ["env", f"LD_PRELOAD={LIBRARY[0]}", f"FAKETIME={offset}",
                  "FAKETIME_DONT_FAKE_MONOTONIC=1"] if offset else []
        running.append(server_factory(form="embedded", settings={"FGW_DATA": tmp_path / "data"},
                                      command_prefix=prefix))
        return running[0].client()

    return start


def put(client, bucket, body, **conditions):
    return client.put_object(Bucket=bucket, Key="k", Body=body, **conditions)


def read(client, bucket, **arguments):
    return client.get_object(Bucket=bucket, Key="k", **arguments)["Body"].read()


def versions(client):
    page = client.list_object_versions(Bucket="kept")
    rows = [(row["VersionId"], row["IsLatest"]) for row in page["Versions"]]
    return rows, len(page.get("DeleteMarkers", ()))


def test_the_later_operation_wins(at):
    client = at("+120s")
    for bucket in BUCKETS:
        client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    ahead = put(client, "plain", b"ahead")
    ids = [put(client, "kept", b"ahead")["VersionId"]]
    marker = client.delete_object(Bucket="kept", Key="k")["VersionId"]
    assert client.head_object(Bucket="plain", Key="k")["LastModified"]

    client = at("-120s")
    assert read(client, "plain") == b"ahead"
    behind = put(client, "plain", b"behind", IfMatch=ahead["ETag"])
    assert read(client, "plain") == b"behind"
    with refused(412, "PreconditionFailed"):
        put(client, "plain", b"late", IfMatch=ahead["ETag"])
    with refused(412, "PreconditionFailed"):
        put(client, "plain", b"late", IfNoneMatch="*")
    ids += [put(client, "kept", body)["VersionId"] for body in (b"behind", b"behind 2")]
    assert read(client, "kept") == b"behind 2"
    assert versions(client) == ([(ids[2], True), (ids[1], False), (ids[0], False)], 1)
    listed = client.list_objects_v2(Bucket="plain")["Contents"][0]
    assert listed["ETag"] == behind["ETag"]

    client = at(None)
    assert read(client, "plain") == b"behind" and read(client, "kept") == b"behind 2"
    client.delete_object(Bucket="kept", Key="k", VersionId=ids[2])
    assert read(client, "kept") == b"behind"
    client.delete_object(Bucket="kept", Key="k", VersionId=marker)
    client.delete_object(Bucket="plain", Key="k")
    with refused(404, "NoSuchKey"):
        read(client, "plain")
    put(client, "plain", b"again", IfNoneMatch="*")
    assert read(client, "plain") == b"again"
    assert versions(client) == ([(ids[1], True), (ids[0], False)], 0)

"""A file system that is full, or out of inodes: writes get 507 and the connection lives, reads, lists
and deletes work, nothing is half there; space that comes back is used without a restart."""
import hashlib
import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import sigv4
from s3util import code_of, refused

MIB = 1024 * 1024
BUCKET = "full"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="optional: needs root to mount")


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(options) mounts a tmpfs at a folder, or changes the one that is there."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options):
        if os.path.ismount(folder):
            options = f"remount,{options}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
        return folder

    yield mount
    if os.path.ismount(folder):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def body_of(number, size=MIB):
    return (hashlib.sha256(b"%d" % number).digest() * (size // 32 + 1))[:size]


def start(server_factory, folder, **settings):
    server = server_factory(settings={
        "FGW_DATA": folder / "data", "FGW_MIN_FREE": "16MiB", "FGW_GROUP_SIZE": "8MiB",
        "FGW_MEMORY": "64MiB", "FGW_RELEASE_DELAY": "1s", **settings})
    server.client().create_bucket(Bucket=BUCKET)
    return server


def fill(server, size=MIB):
    """Objects until one is refused; how many there are."""
    number = 0
    while number < 1000:
        answer = server.raw("PUT", f"/{BUCKET}/key-{number}", body=body_of(number, size))
        if answer.status != 200:
            assert (answer.status, code_of(answer)) == (507, "InsufficientStorage")
            return number
        number += 1
    raise AssertionError("the disk does not fill")


def check(client, numbers, size=MIB):
    names = [f"key-{number}" for number in numbers]
    listed = [item["Key"] for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
              for item in page.get("Contents", ()) if item["Key"].startswith("key-")]
    assert sorted(listed) == sorted(names)
    for number in numbers:
        read = client.get_object(Bucket=BUCKET, Key=f"key-{number}")["Body"].read()
        assert read == body_of(number, size), number


def put_again(client, number, size=MIB, limit_s=180):
    """Tries until it is taken: space is looked at once a second, compaction comes by itself."""
    end = time.monotonic() + limit_s
    while True:
        try:
            client.put_object(Bucket=BUCKET, Key=f"key-{number}", Body=body_of(number, size))
            return
        except client.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "InsufficientStorage"
            assert time.monotonic() < end, "no space came back"
            time.sleep(0.5)


def ask(server, connection, method, key, body=b""):
    connection.send(sigv4.request_bytes(server.signer(), method, f"/{BUCKET}/{key}", server.netloc,
                                        (), body))
    return connection.answer(method)


def test_writes_wait_for_space_and_nothing_else_does(server_factory, small_disk):
    folder = small_disk("size=72m")
    server = start(server_factory, folder)
    client = server.client()
    upload = client.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    names = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload}
    part = client.upload_part(**names, PartNumber=1, Body=body_of(5000))
    count = fill(server)
    assert count > 20
    with refused(507, "InsufficientStorage"):
        client.upload_part(**names, PartNumber=2, Body=body_of(5001))
    with refused(507, "InsufficientStorage"):
        client.put_object(Bucket=BUCKET, Key="key-0", Body=body_of(6000))
    with server.connect(timeout=60) as connection:  # and the connection is of use
        for _ in range(3):
            assert ask(server, connection, "PUT", "more", body_of(7, 4096)).status == 507
            assert ask(server, connection, "GET", "key-1").body == body_of(1)
    check(client, range(count))
    client.delete_object(Bucket=BUCKET, Key="key-0")
    client.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "key-1"}, {"Key": "key-2"}]})
    check(client, range(3, count))
    assert [item["PartNumber"] for item in client.list_parts(**names)["Parts"]] == [1]
    small_disk("size=144m")
    put_again(client, 0)
    client.complete_multipart_upload(**names, MultipartUpload={
        "Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    server.kill()
    server.start()
    client = server.client()
    check(client, [0, *range(3, count)])
    assert client.get_object(Bucket=BUCKET, Key="parts")["Body"].read() == body_of(5000)


def test_deleting_makes_room(server_factory, small_disk):
    server = start(server_factory, small_disk("size=96m"))
    client = server.client()
    count = fill(server)
    kept = [number for number in range(count) if number % 8 == 0]
    for number in range(count):
        if number not in kept:
            client.delete_object(Bucket=BUCKET, Key=f"key-{number}")
    for number in range(1, 8):
        put_again(client, number)
    check(client, sorted(set(kept) | set(range(1, 8))))


def test_a_disk_without_inodes(server_factory, small_disk):
    server = start(server_factory, small_disk("size=256m,nr_inodes=100"), FGW_GROUP_SIZE="1MiB")
    client = server.client()
    count = fill(server)
    check(client, range(count))
    with refused(507, "InsufficientStorage"):
        client.put_object(Bucket=BUCKET, Key="key-0", Body=body_of(6000))
    check(client, range(count))
    small_disk("size=256m,nr_inodes=1000")
    put_again(client, count)
    server.restart()
    check(server.client(), range(count + 1))


def test_a_store_that_cannot_write_is_not_ready(server_factory):
    """B112: the process lives and reads, and says that it is not fit for more."""
    server = server_factory(settings={"FGW_TEST_FS_FAIL": "pwrite:200+:EIO"})
    client = server.client()
    client.create_bucket(Bucket=BUCKET)
    assert server.ready()
    taken = 0
    while taken < 2000:
        answer = server.raw("PUT", f"/{BUCKET}/key-{taken}", body=body_of(taken, 3000))
        if answer.status != 200:
            break
        taken += 1
    assert 0 < taken < 2000 and answer.status in (500, 503)
    end = time.monotonic() + 60
    while server.ready() and time.monotonic() < end:
        server.raw("PUT", f"/{BUCKET}/more", body=b"x")
        time.sleep(0.1)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.ops_port}/livez") as live:
        assert live.status == 200
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{server.ops_port}/readyz")
    reasons = json.loads(caught.value.read())["reasons"]
    assert caught.value.code == 503
    assert [reason["what"] for reason in reasons] == ["storage"] and "restart" in reasons[0]["why"]
    for number in (0, taken - 1):
        read = client.get_object(Bucket=BUCKET, Key=f"key-{number}")["Body"].read()
        assert read == body_of(number, 3000)

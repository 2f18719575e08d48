"""fgw group: list, show, seal, verify, of a running process and of a directory nobody has open."""
import json

import pytest

from fgw_server import run_fgw

BUCKET = "groups"


@pytest.fixture(name="server")
def make_server(server_factory):
    server = server_factory(settings={"FGW_MEMORY": "128MiB", "FGW_MIN_FREE": "1MiB"})
    client = server.client()
    client.create_bucket(Bucket=BUCKET)
    for i in range(5):
        client.put_object(Bucket=BUCKET, Key=f"small-{i}", Body=b"%d" % i * 5000)
    client.put_object(Bucket=BUCKET, Key="large", Body=b"large" * 700000)
    return server


def group(server, *words):
    done = run_fgw("group", *words, "--data", str(server.data), "--json")
    return done, json.loads(done.stdout) if done.returncode in (0, 12) else None


def test_groups(server):
    _, answer = group(server, "list")
    kinds = {entry["kind"]: entry for entry in answer["groups"]}
    assert set(kinds) == {"log", "bulk"}
    assert all(entry["state"] == "writing" for entry in answer["groups"])
    assert kinds["bulk"]["live_bytes"] > 3500000 and kinds["log"]["live_blocks"] == 5
    for kind in ("log", "bulk"):
        number = str(kinds[kind]["id"])
        done, checked = group(server, "verify", number)
        assert done.returncode == 0 and not checked["damaged"] and checked["sections"] > 4
        _, sealed = group(server, "seal", number)
        assert sealed["state"] == "sealed"
        assert group(server, "seal", number)[1]["state"] == "sealed"
        assert group(server, "show", number)[1]["id"] == kinds[kind]["id"]
    client = server.client()
    client.put_object(Bucket=BUCKET, Key="next", Body=b"next")
    client.put_object(Bucket=BUCKET, Key="large-next", Body=b"other" * 700000)
    _, answer = group(server, "list")
    assert len(answer["groups"]) == 4
    assert client.get_object(Bucket=BUCKET, Key="large")["Body"].read() == b"large" * 700000
    table = run_fgw("group", "list", "--data", str(server.data))
    assert table.returncode == 0 and table.stdout.split()[:3] == ["id", "kind", "state"]


def test_groups_that_are_damaged(server):
    _, answer = group(server, "list")
    bulk = next(entry for entry in answer["groups"] if entry["kind"] == "bulk")
    path = server.data / "groups" / f"{bulk['id']:010d}.car"
    with open(path, "r+b") as file:
        file.seek(2000000)
        byte = file.read(1)
        file.seek(2000000)
        file.write(bytes([byte[0] ^ 1]))
    done, checked = group(server, "verify", str(bulk["id"]))
    assert done.returncode == 12 and checked["damaged"] and 0 < checked["offset"] < 2000000
    server.stop()
    done, checked = group(server, "verify", str(bulk["id"]))
    assert done.returncode == 12
    with open(path, "r+b") as file:
        file.truncate(1500000)
    assert group(server, "show", str(bulk["id"]))[1]["state"] == "damaged"
    assert group(server, "show", "77")[0].returncode == 1
    assert group(server, "show", "x")[0].returncode == 1
    assert group(server, "frobnicate")[0].returncode == 2

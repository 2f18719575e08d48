"""fgw piece: pieces are cut from sealed groups; their CARs are read and their commitments computed a
second time by tests/lib/pieces.py."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import pieces
from fgw_server import binary, clean_environment, run_fgw

BUCKET = "pieces"
SETTINGS = {"FGW_MEMORY": "128MiB", "FGW_MIN_FREE": "1MiB"}
PARTS = [b"p" * (5 << 20), b"q" * 700000]


@pytest.fixture(name="server")
def make_server(server_factory):
    server = server_factory(settings=SETTINGS)
    server.client().create_bucket(Bucket=BUCKET)
    return server


def fgw(server, *words, code=0):
    done = run_fgw(*words, "--data", server.data, "--json", timeout=300)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr


def seal_all(server):
    """The ids of all groups by kind, sealed."""
    groups = fgw(server, "group", "list")["groups"]
    for group in groups:
        fgw(server, "group", "seal", group["id"])
    return {group["kind"]: group["id"] for group in groups}


def check(piece):
    """The piece's blocks and the lines of its objects file; all its numbers are true."""
    car = pathlib.Path(piece["car"])
    data = car.read_bytes()
    roots, sections = pieces.read_car(data)
    blocks = dict(sections)
    assert len(roots) == 1 and pieces.cid_text(roots[0]) == piece["root"]
    assert [cid for cid, _ in sections] == pieces.depth_first(roots[0], blocks)
    first, second, padded = pieces.piece_cids(data)
    assert (piece["piece_cid"], piece["piece_cid_v2"]) == (first, second)
    assert (piece["payload_bytes"], piece["padded_bytes"]) == (len(data), padded)
    assert piece["blocks"] == len(sections)
    assert car.name == first + ".car" and car.stat().st_mode & 0o777 == 0o600
    assert json.loads(car.with_suffix(".json").read_bytes()) == {
        name: value for name, value in piece.items() if name != "present"}
    lines = car.with_suffix(".objects.jsonl").read_text().splitlines()
    objects = [json.loads(line) for line in lines]
    assert len(objects) == piece["objects"]
    return blocks, objects


def put(server, bodies):
    """Key to CID of what was put."""
    client = server.client()
    answers = {key: client.put_object(Bucket=BUCKET, Key=key, Body=body)
               for key, body in bodies.items()}
    return {key: answer["ResponseMetadata"]["HTTPHeaders"]["x-fgw-cid"]
            for key, answer in answers.items()}


def random_bodies(rng):
    sizes = [0, 1, 127, 4096, 262144, 262145, 1 << 20, (1 << 20) + 1, 3 << 20,
             *(rng.randrange(1, 600000) for _ in range(12))]
    bodies = {f"object-{i:03d}": rng.randbytes(size) for i, size in enumerate(sizes)}
    bodies["ключ/\"quoted\"\n"] = b"a key that JSON has to escape"
    bodies["twice-a"] = bodies["twice-b"] = rng.randbytes(2 << 20)
    bodies["one-leaf-four-times"] = rng.randbytes(1 << 20) * 4
    return bodies


def test_export(server, rng):
    bodies = random_bodies(rng)
    cids = put(server, bodies)
    server.client().put_object(Bucket=BUCKET, Key="deleted", Body=b"deleted" * 100)
    server.client().delete_object(Bucket=BUCKET, Key="deleted")
    groups = {group["kind"]: group["id"] for group in fgw(server, "group", "list")["groups"]}
    blocks, objects, made = {}, [], []
    for group in groups.values():
        for piece in fgw(server, "piece", "export", group)["pieces"]:
            assert piece["group"] == group
            found, lines = check(piece)
            blocks.update(found)
            objects += lines
            made.append(piece)
    for key, body in bodies.items():
        root = pieces.cid_bytes(cids[key])
        assert pieces.file_bytes(root, blocks) == body
        assert {"cid": cids[key], "bytes": len(body), "key": key, "extent": 0} in [
            {name: value for name, value in line.items() if name != "bucket_id"}
            for line in objects]
    assert hashlib.sha256(b"deleted" * 100).digest() not in {cid[4:] for cid in blocks}
    assert {line["key"] for line in objects} == set(bodies)
    # once more, by the process and by nobody's: the same bytes
    listed = fgw(server, "piece", "list")["pieces"]
    assert sorted(piece["piece_cid"] for piece in listed) == [
        piece["piece_cid"] for piece in listed] and all(piece["present"] for piece in listed)
    again = fgw(server, "piece", "export", groups["bulk"])["pieces"]
    server.stop()
    closed = fgw(server, "piece", "export", groups["bulk"])["pieces"]
    for pair in (again, closed):
        assert [piece["piece_cid"] for piece in pair] == [
            piece["piece_cid"] for piece in made if piece["group"] == groups["bulk"]]
    assert len(fgw(server, "piece", "list")["pieces"]) == len(made)
    assert not list((server.data / "tmp").iterdir())
    os.unlink(made[0]["car"])
    absent = [piece["present"] for piece in fgw(server, "piece", "list")["pieces"]
              if piece["piece_cid"] == made[0]["piece_cid"]]
    assert absent == [False]
    table = run_fgw("piece", "list", "--data", server.data)
    assert table.stdout.split()[0] == "piece_cid" and made[0]["piece_cid"] in table.stdout


def test_several_pieces_in_a_folder(server, rng, tmp_path):
    """--size cuts a group into several pieces, --to puts them elsewhere; parts of an upload."""
    folder = tmp_path / "pieces of mine"
    folder.mkdir()
    bodies = {f"{i}": rng.randbytes(900000) for i in range(9)}
    cids = put(server, bodies)
    client = server.client()
    upload = client.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    etags = [client.upload_part(Bucket=BUCKET, Key="parts", UploadId=upload, PartNumber=i + 1,
                                Body=part)["ETag"] for i, part in enumerate(PARTS)]
    client.complete_multipart_upload(
        Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload={
            "Parts": [{"PartNumber": i + 1, "ETag": etag} for i, etag in enumerate(etags)]})
    groups = seal_all(server)
    too_small = run_fgw("piece", "export", groups["bulk"], "--size", "1MiB", "--data", server.data)
    assert too_small.returncode == 1 and "larger size" in too_small.stderr
    stayed = len(fgw(server, "piece", "list")["pieces"])
    made = fgw(server, "piece", "export", groups["bulk"], "--size", "8MiB", "--to", folder)
    made = made["pieces"]
    assert len(made) >= 2 and {piece["padded_bytes"] for piece in made} <= {4 << 20, 8 << 20,
                                                                            2 << 20}
    blocks, extents = {}, []
    for piece in made:
        assert pathlib.Path(piece["car"]).parent == folder
        found, lines = check(piece)
        assert not set(found) & set(blocks)
        blocks.update(found)
        extents += [line["cid"] for line in lines if line["key"] == "parts"]
    assert all(pieces.file_bytes(pieces.cid_bytes(cids[key]), blocks) == body
               for key, body in bodies.items())
    assert sorted(pieces.file_bytes(pieces.cid_bytes(cid), blocks) for cid in extents) == PARTS
    assert len(fgw(server, "piece", "list")["pieces"]) == len(made) + stayed
    assert sorted(path.suffix for path in folder.iterdir()) == sorted(
        [".car", ".json", ".jsonl"] * len(made))
    assert len(list(server.data.glob("pieces/*.car"))) == stayed


def test_many_blobs(server):
    """More than a list node holds: two levels of list nodes."""
    with server.connect() as connection:
        for i in range(1100):
            assert server_put(server, connection, f"small/{i}", b"body %d" % i) == 200
    group = seal_all(server)["log"]
    piece, = fgw(server, "piece", "export", group)["pieces"]
    blocks, objects = check(piece)
    assert piece["blobs"] == len(objects) == 1100 and len(blocks) == 1100 + 3
    tops = pieces.links(pieces.cid_bytes(piece["root"]), blocks[pieces.cid_bytes(piece["root"])])
    assert [len(pieces.links(top, blocks[top])) for top in tops] == [1024, 76]


def server_put(server, connection, key, body):
    import sigv4  # pylint: disable=import-outside-toplevel
    connection.send(sigv4.request_bytes(server.signer(), "PUT", f"/{BUCKET}/{key}", server.netloc,
                                        (), body))
    return connection.answer("PUT").status


def test_what_is_refused(server):
    put(server, {"object": b"o" * 300000})
    groups = seal_all(server)
    assert "no group" in fgw(server, "piece", "export", 4711, code=1)
    for words in (["export"], ["export", "x"], ["frobnicate"], ["list", "x"],
                  ["export", "1", "--size", "3GiB"], ["export", "1", "--size", "1"],
                  ["export", "1", "--rate", "fast"], ["export", "1", "--to", "/nowhere/at/all"]):
        fgw(server, "piece", *words, code=2)
    path = server.data / "groups" / f"{groups['bulk']:010d}.car"
    with open(path, "r+b") as file:
        file.seek(150000)
        file.write(b"x")
    assert "damaged" in fgw(server, "piece", "export", groups["bulk"], code=12)
    assert not list((server.data / "pieces").iterdir())
    server.stop()
    assert "damaged" in fgw(server, "piece", "export", groups["bulk"], code=12)
    assert not list((server.data / "pieces").iterdir())
    assert run_fgw("piece", "list", "--data", server.folder / "nowhere").returncode == 14


def fill(server, rng, mib):
    put(server, {f"fill-{i}": rng.randbytes(1 << 20) for i in range(mib)})
    return seal_all(server)["bulk"]


def wait_for(condition, limit_s=120):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_killed_in_the_middle(server, rng, tmp_path):
    """Nothing that looks like a piece is left, and the next export makes it whole."""
    group = fill(server, rng, 8)
    growing = {server.data / "tmp" / ".fgw-piece-car": (), tmp_path / ".fgw-piece-car":
               ("--to", str(tmp_path))}
    for file, where in growing.items():
        with subprocess.Popen([binary(), "piece", "export", str(group), "--rate", "1", *where,
                               "--data", str(server.data)], env=clean_environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            wait_for(lambda path=file: path.exists() and path.stat().st_size > 0)
            refused = run_fgw("piece", "export", str(group), "--data", server.data)
            assert refused.returncode == 1 and "running" in refused.stderr
            server.kill()
            client.wait(60)
            assert client.returncode == 1
        assert not fgw(server, "piece", "list")["pieces"]
        assert not list(server.data.glob("pieces/*")) and not list(tmp_path.glob("*.*car.*"))
        server.start()
    made = fgw(server, "piece", "export", group, "--to", tmp_path)["pieces"]
    check(made[0])
    assert not list(tmp_path.glob(".*")) and not list(server.data.glob("tmp/.*"))


def test_stopped_in_the_middle(server, rng):
    """SIGTERM does not wait for an export, and leaves nothing of it."""
    group = fill(server, rng, 6)
    with subprocess.Popen([binary(), "piece", "export", str(group), "--rate", "1", "--data",
                           str(server.data)], env=clean_environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        wait_for((server.data / "tmp" / ".fgw-piece-car").exists)
        server.stop()
        client.send_signal(signal.SIGINT)
        client.wait(60)
    assert not list(server.data.glob("pieces/*")) and not list(server.data.glob("tmp/.*"))


def test_full_disk(server, rng):
    """An error, no half file, and the store goes on."""
    group = fill(server, rng, 3)
    server.stop()
    server.settings["FGW_TEST_FS_FAIL"] = "pwrite:1+:ENOSPC"
    failed = run_fgw("piece", "export", str(group), "--data", server.data,
                     env={"FGW_TEST_FS_FAIL": "pwrite:1+:ENOSPC"})
    assert failed.returncode == 1 and "free space" in failed.stderr
    assert not list(server.data.glob("pieces/*")) and not list(server.data.glob("tmp/.fgw*"))
    del server.settings["FGW_TEST_FS_FAIL"]
    server.start()
    check(fgw(server, "piece", "export", group)["pieces"][0])

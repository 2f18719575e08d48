"""restic: a repository in a bucket, through backups, check, restore, forget and prune."""
import json

import pytest

import foreign

pytestmark = pytest.mark.full


@pytest.fixture
def restic(server, bucket, tmp_path):
    program = foreign.find("restic")
    environment = foreign.keys_in_environment(server)
    environment.update(RESTIC_REPOSITORY=f"s3:{server.endpoint}/{bucket}/repo",
                       RESTIC_PASSWORD="for tests", RESTIC_CACHE_DIR=str(tmp_path / "cache"))
    client = foreign.Client(server, tmp_path, environment)
    always = ["--cacert", server.ca_file()] if server.ca_file() else []
    return lambda *arguments: client.run(program, *always, *arguments)


def test_backups(restic, tmp_path, rng):
    made = foreign.make_tree(tmp_path / "tree", rng, (0, 1, 1000, 700000, 12000000))
    restic("init")
    restic("backup", "tree")
    (tmp_path / "tree" / "a.txt").write_bytes(b"changed")
    (tmp_path / "tree" / "deep" / "100%.dat").write_bytes(rng.randbytes(9000000))
    restic("backup", "tree")
    first, second = [row["id"] for row in json.loads(restic("snapshots", "--json"))]
    restic("check", "--read-data")
    restic("restore", first, "--target", "back")
    (found,) = (tmp_path / "back").rglob("tree")
    assert foreign.read_tree(found) == made
    restic("forget", "--keep-last", "1", "--prune")
    assert [row["id"] for row in json.loads(restic("snapshots", "--json"))] == [second]
    restic("check", "--read-data")
    restic("restore", "latest", "--target", "latest")
    (found,) = (tmp_path / "latest").rglob("tree")
    assert foreign.read_tree(found) == foreign.read_tree(tmp_path / "tree")


def test_locks_go_away(restic, bucket, client, tmp_path):
    """restic writes and deletes a lock for each command: none stays behind."""
    (tmp_path / "f").write_text("x")
    restic("init")
    restic("backup", "f")
    restic("list", "snapshots")
    listed = client.list_objects_v2(Bucket=bucket, Prefix="repo/locks/")
    assert listed["KeyCount"] == 0

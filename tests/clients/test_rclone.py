"""rclone, with the settings people use for S3-compatible stores (provider Other)."""
import json

import pytest

import foreign

MIB = 1024 * 1024


@pytest.fixture
def rclone(server, tmp_path):
    """rclone("copy", ...) -> what it wrote; the remote is fgw:"""
    program = foreign.find("rclone")
    config = tmp_path / "rclone.conf"
    config.write_text(
        "[fgw]\ntype = s3\nprovider = Other\nregion = us-east-1\nforce_path_style = true\n"
        f"access_key_id = {server.access_key}\nsecret_access_key = {server.secret_key}\n"
        f"endpoint = {server.endpoint}\nupload_cutoff = 8Mi\nchunk_size = 5Mi\n")
    # AWS_CA_BUNDLE must stay unset: rclone 1.60 ends at once when it is there.
    client = foreign.Client(server, tmp_path)
    always = ["--config", config, "--retries", "1", "--low-level-retries", "1"]
    if server.ca_file():
        always += ["--ca-cert", server.ca_file()]

    def call(*arguments, **options):
        return client.run(program, *always, *arguments, **options)

    call.tried = lambda *arguments: client.try_run(program, *always, *arguments)
    return call


def test_there_and_back(rclone, bucket, tmp_path, rng):
    """Also in make test: copy, check by content, list, copy back."""
    made = foreign.make_tree(tmp_path / "tree", rng, (0, 1, 1000, 70000, 100000))
    rclone("copy", "tree", f"fgw:{bucket}/t")
    rclone("check", "--checksum", "tree", f"fgw:{bucket}/t")
    assert sorted(rclone("lsf", "-R", "--files-only", f"fgw:{bucket}/t").split("\n")[:-1]) == \
        sorted(made)
    rclone("copy", f"fgw:{bucket}/t", "back")
    assert foreign.read_tree(tmp_path / "back") == made


@pytest.mark.full
def test_buckets(rclone):
    rclone("mkdir", "fgw:made-by-rclone")
    assert "made-by-rclone/" in rclone("lsf", "fgw:").split()
    rclone("rmdir", "fgw:made-by-rclone")
    assert "made-by-rclone/" not in rclone("lsf", "fgw:").split()


@pytest.mark.full
def test_sync(rclone, bucket, tmp_path, rng):
    """The second sync copies nothing; sync takes away what is gone; purge leaves nothing."""
    made = foreign.make_tree(tmp_path / "tree", rng)
    rclone("sync", "--checksum", "tree", f"fgw:{bucket}/t")
    done = rclone.tried("sync", "--checksum", "-v", "--stats-log-level", "NOTICE", "tree",
                        f"fgw:{bucket}/t")
    assert done.returncode == 0 and "There was nothing to transfer" in done.stderr
    (tmp_path / "tree" / "a.txt").unlink()
    (tmp_path / "tree" / "with blank.txt").write_bytes(b"changed")
    rclone("sync", "tree", f"fgw:{bucket}/t")
    rclone("check", "--download", "tree", f"fgw:{bucket}/t")
    assert len(rclone("lsf", "-R", "--files-only", f"fgw:{bucket}").split("\n")) == len(made)
    rclone("purge", f"fgw:{bucket}/t")
    assert rclone("lsf", "-R", f"fgw:{bucket}") == ""


@pytest.mark.full
def test_large_object(rclone, bucket, tmp_path, rng, client):
    """20 MiB: parts, copies on the server, times and hashes that rclone keeps in metadata."""
    data = rng.randbytes(20 * MIB)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "big").write_bytes(data)
    rclone("copy", "tree", f"fgw:{bucket}/one")
    assert client.head_object(Bucket=bucket, Key="one/big")["ETag"].endswith('-4"')
    rclone("check", "--checksum", "tree", f"fgw:{bucket}/one")
    rclone("copyto", f"fgw:{bucket}/one/big", f"fgw:{bucket}/two/big")
    rclone("moveto", f"fgw:{bucket}/two/big", f"fgw:{bucket}/three/big")
    rclone("check", "--checksum", "tree", f"fgw:{bucket}/three")
    rows = json.loads(rclone("lsjson", "-R", "--files-only", f"fgw:{bucket}"))
    assert [(row["Path"], row["Size"]) for row in rows] == [("one/big", 20 * MIB),
                                                            ("three/big", 20 * MIB)]


@pytest.mark.full
def test_streams(rclone, bucket):
    rclone("rcat", f"fgw:{bucket}/s", stdin="from a pipe")
    assert rclone("cat", f"fgw:{bucket}/s") == "from a pipe"
    assert rclone("cat", "--offset", "5", "--count", "1", f"fgw:{bucket}/s") == "a"


@pytest.mark.full
def test_links(rclone, bucket, server, tmp_path):
    rclone("rcat", f"fgw:{bucket}/d/a b+ü.txt", stdin="linked")
    url = rclone("link", "--expire", "1h", f"fgw:{bucket}/d/a b+ü.txt").strip()
    assert foreign.Client(server, tmp_path).curl(url) == "linked"


@pytest.mark.full
def test_many_files(rclone, bucket, tmp_path):
    """More than one page of a listing."""
    folder = tmp_path / "many"
    folder.mkdir()
    for index in range(1100):
        (folder / f"{index:04}").write_text(str(index))
    rclone("copy", "--transfers", "16", "many", f"fgw:{bucket}/many")
    rclone("check", "--checksum", "many", f"fgw:{bucket}/many")
    rclone("delete", f"fgw:{bucket}")
    assert rclone("lsf", "-R", "--files-only", f"fgw:{bucket}") == ""

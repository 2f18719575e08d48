"""s3fs: a bucket as a folder."""
import os
import shutil
import subprocess
import time

import pytest

import foreign

pytestmark = pytest.mark.full


def can_mount():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return shutil.which("fusermount") is not None


def options_of(server, passwd):
    options = [f"url={server.endpoint}", "use_path_request_style", "endpoint=us-east-1",
               f"passwd_file={passwd}", "sigv4", "multipart_size=5", "dbglevel=warn"]
    return [part for option in options for part in ("-o", option)]


@pytest.fixture
def mounted(server, bucket, tmp_path):
    """A folder that is the bucket."""
    program = foreign.find("s3fs")
    if not can_mount():
        pytest.skip("optional: no /dev/fuse to mount with")
    passwd = tmp_path / "passwd"
    passwd.write_text(f"{server.access_key}:{server.secret_key}\n")
    passwd.chmod(0o600)
    folder = tmp_path / "mnt"
    folder.mkdir()
    environment = {"CURL_CA_BUNDLE": server.ca_file()} if server.ca_file() else {}
    client = foreign.Client(server, tmp_path, environment)
    with open(tmp_path / "s3fs.log", "wb") as log:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, bucket, str(folder), "-f", *options_of(server, passwd)], stdout=log,
            stderr=log, env=client.environment, cwd=tmp_path)
    end = time.monotonic() + 60
    while not os.path.ismount(folder) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    try:
        assert os.path.ismount(folder), (tmp_path / "s3fs.log").read_text()
        yield folder
    finally:
        subprocess.run(["fusermount", "-u", "-z", str(folder)], check=False)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_files(mounted, client, bucket, rng):
    made = foreign.make_tree(mounted, rng)
    assert foreign.read_tree(mounted) == made
    for name, data in made.items():
        assert client.get_object(Bucket=bucket, Key=name)["Body"].read() == data
    (mounted / "a.txt").rename(mounted / "deep" / "b+c.txt")
    (mounted / "deep" / "x").mkdir()
    with open(mounted / "deep" / "100%.dat", "ab") as file:
        file.write(b"more")
    made["deep/b+c.txt"] = made.pop("a.txt")
    made["deep/100%.dat"] += b"more"
    assert foreign.read_tree(mounted) == made
    assert client.get_object(Bucket=bucket, Key="deep/100%.dat")["Body"].read().endswith(b"more")
    shutil.rmtree(mounted / "deep")
    assert list(foreign.read_tree(mounted)) == ["with blank.txt"]


def test_large_file(mounted, client, bucket, rng):
    """12 MiB go up in parts; a rename is a copy in parts."""
    data = rng.randbytes(12 * 1024 * 1024)
    (mounted / "big").write_bytes(data)
    assert "-" in client.head_object(Bucket=bucket, Key="big")["ETag"]
    (mounted / "big").rename(mounted / "renamed")
    assert (mounted / "renamed").read_bytes() == data
    assert client.get_object(Bucket=bucket, Key="renamed")["Body"].read() == data

"""fgw backup and fgw restore: of a process under load, of a directory nobody has open, interrupted,
damaged; every object acknowledged before the backup began is in the restored store byte for byte."""
import hashlib
import json
import pathlib
import random
import shutil
import threading
import time

import pytest

from fgw_server import run_fgw

BUCKET = "backup"


def body_of(key, size):
    seed = hashlib.sha256(key.encode()).digest()
    return (seed * (size // 32 + 1))[:size]


def fill(client, count, rng, prefix="object"):
    """key -> size; a few of several MiB, one in parts."""
    sizes = {}
    for i in range(count):
        key = f"{prefix}-{i}"
        size = rng.choice((0, 10, 4096, 70000, 262144, 262145, 3 * 1024 * 1024 + 5))
        client.put_object(Bucket=BUCKET, Key=key, Body=body_of(key, size))
        sizes[key] = size
    return sizes


def multipart(client, key):
    parts = [body_of(key + "1", 5 * 1024 * 1024), body_of(key + "2", 1000)]
    upload = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    tags = [client.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=i + 1,
                               Body=part)["ETag"] for i, part in enumerate(parts)]
    client.complete_multipart_upload(
        Bucket=BUCKET, Key=key, UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": i + 1, "ETag": tag}
                                   for i, tag in enumerate(tags)]})
    return b"".join(parts)


class Load(threading.Thread):
    """Puts, overwrites and deletes keys of its own until it is told to stop."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.client = server.client()
        self.random = random.Random(seed)
        self.stopping = threading.Event()
        self.done = 0
        self.trouble = None

    def run(self):
        try:
            while not self.stopping.is_set():
                key = f"load-{self.random.randrange(40)}"
                if self.random.random() < 0.3:
                    self.client.delete_object(Bucket=BUCKET, Key=key)
                else:
                    size = self.random.choice((100, 20000, 400000))
                    self.client.put_object(Bucket=BUCKET, Key=key, Body=body_of(key, size))
                self.done += 1
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error


def backup(server, folder, *more):
    return run_fgw("backup", "--to", str(folder), "--data", str(server.data), *more)


def restore(folder, data, *more):
    return run_fgw("restore", "--from", str(folder), "--data", str(data), *more)


def check(client, sizes, joined):
    for key, size in sizes.items():
        assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body_of(key, size), key
    for key, body in joined.items():
        assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body, key


def store_ids(data):
    lines = (pathlib.Path(data) / "FORMAT").read_text(encoding="ascii").splitlines()
    return ([line.split()[1] for line in lines if line.startswith("store ")],
            [line.split()[1] for line in lines if line.startswith("earlier ")])


SETTINGS = {"FGW_GROUP_SIZE": "8MiB", "FGW_MEMORY": "128MiB", "FGW_MIN_FREE": "1MiB",
            "FGW_RELEASE_DELAY": "1s"}


@pytest.fixture(name="target")
def make_target(server_factory):
    """A server whose data directory is yet to be restored."""
    server = server_factory(settings=SETTINGS, start=False, name="target")
    server.data.parent.mkdir(parents=True, exist_ok=True)
    return server


@pytest.fixture(name="filled")
def make_filled(server_factory, rng):
    server = server_factory(settings=SETTINGS)
    client = server.client()
    client.create_bucket(Bucket=BUCKET)
    sizes = fill(client, 40, rng)
    joined = {"joined": multipart(client, "joined")}
    return server, sizes, joined


def test_backup_of_a_process_under_load(filled, target, tmp_path, rng):
    server, sizes, joined = filled
    loads = [Load(server, rng.random()) for _ in range(2)]
    for load in loads:
        load.start()
    done = backup(server, tmp_path / "copy", "--json")
    for load in loads:
        load.stopping.set()
        load.join(60)
        assert load.trouble is None and load.done > 0
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["state"] == "done" and answer["files"] == answer["files_total"]
    assert not (tmp_path / "copy" / "BACKUP.partial").exists()
    back = restore(tmp_path / "copy", target.data)
    assert back.returncode == 0, back.stdout + back.stderr
    scrub = run_fgw("scrub", "--data", str(target.data))
    assert scrub.returncode == 0, scrub.stdout + scrub.stderr
    before, after = store_ids(server.data), store_ids(target.data)
    assert after[0] != before[0] and after[1] == before[0]
    client = target.start().client()
    check(client, sizes, joined)
    sizes.update(fill(client, 5, rng, "later"))
    # and the restored one again, from nothing
    target.stop()
    shutil.rmtree(target.data / "meta")
    recover = run_fgw("recover", "--data", str(target.data))
    assert recover.returncode == 0, recover.stdout + recover.stderr
    assert "checkpoints/" in recover.stdout
    check(target.start().client(), sizes, joined)


def test_backup_of_a_directory_nobody_has_open(filled, target, tmp_path):
    server, sizes, joined = filled
    server.stop()
    done = backup(server, tmp_path / "copy")
    assert done.returncode == 0, done.stdout + done.stderr
    back = restore(tmp_path / "copy", target.data, "--replace")
    assert back.returncode == 0, back.stdout + back.stderr
    assert store_ids(server.data) == store_ids(target.data)
    check(target.start().client(), sizes, joined)


def test_what_is_refused(filled, tmp_path):
    server, _sizes, _joined = filled
    assert run_fgw("backup", "--data", str(server.data)).returncode == 2
    assert run_fgw("restore", "--data", str(tmp_path / "data")).returncode == 2
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine").write_text("precious", encoding="ascii")
    done = backup(server, used)
    assert done.returncode == 2 and "not empty" in done.stderr
    assert [entry.name for entry in used.iterdir()] == ["mine"]
    assert backup(server, tmp_path / "no" / "parent").returncode == 14
    assert backup(server, tmp_path / "copy").returncode == 0
    again = backup(server, tmp_path / "copy")
    assert again.returncode == 2 and "not empty" in again.stderr
    back = restore(tmp_path / "copy", used)
    assert back.returncode == 2 and "not empty" in back.stderr
    assert restore(tmp_path / "used", tmp_path / "data").returncode == 14
    (tmp_path / "copy" / "BACKUP").unlink()
    back = restore(tmp_path / "copy", tmp_path / "data")
    assert back.returncode == 14 and "no finished backup" in back.stderr


def test_a_damaged_backup_is_named(filled, tmp_path):
    server, _sizes, _joined = filled
    assert backup(server, tmp_path / "copy").returncode == 0
    for number, name in enumerate(("keys", "FORMAT", "groups/0000000002.car", "BACKUP")):
        copy = tmp_path / f"damaged-{number}"
        shutil.copytree(tmp_path / "copy", copy)
        file = bytearray((copy / name).read_bytes())
        file[len(file) // 2] ^= 1
        (copy / name).write_bytes(file)
        back = restore(copy, tmp_path / f"data-{number}")
        assert back.returncode == 12 and name in back.stderr, back.stderr
        assert not (tmp_path / f"data-{number}" / "FORMAT").exists()
    # what is half restored is refused by others, and gone on with by restore
    refused = run_fgw("scrub", "--data", str(tmp_path / "data-2"))
    assert refused.returncode == 14 and "fgw restore" in refused.stderr, refused.stderr
    back = restore(tmp_path / "copy", tmp_path / "data-2")
    assert back.returncode == 0, back.stderr


@pytest.mark.slow
def test_an_interrupted_backup_is_gone_on_with(filled, target, tmp_path, rng):
    server, sizes, joined = filled
    finished = False
    for _ in range(6):
        answers = []
        asking = threading.Thread(target=lambda: answers.append(backup(server, tmp_path / "copy")))
        asking.start()
        time.sleep(rng.uniform(0.1, 0.8))
        if (tmp_path / "copy" / "BACKUP").exists():
            asking.join()
            finished = True
            break
        server.kill()
        asking.join()
        server.start()
    if not finished:
        done = backup(server, tmp_path / "copy")
        assert done.returncode == 0, done.stdout + done.stderr
    back = restore(tmp_path / "copy", target.data)
    assert back.returncode == 0, back.stderr
    check(target.start().client(), sizes, joined)

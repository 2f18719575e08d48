"""Deleted bytes come back, survivors stay byte for byte: compaction, sweep and scrub of a running
process."""
import hashlib
import json
import random
import threading
import time
import urllib.request

import botocore.exceptions
import pytest

from fgw_server import run_fgw
from s3util import disk_bytes

DAMAGED, DECISION = 12, 10
MIB = 1024 * 1024
BUCKET = "space"
SETTINGS = {"FGW_GROUP_SIZE": "4MiB", "FGW_RELEASE_DELAY": "0s", "FGW_MIN_FREE": "1MiB"}
SIZES = (1000, 20_000, 100_000, 262_144, 300_000, MIB, 3 * MIB + 17)
GONE = (botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError)


def body_of(key, size):
    seed = hashlib.sha256(key.encode()).digest()
    return random.Random(seed).randbytes(size)


def fill(client, count, start=0):
    """count objects; {key: size}"""
    objects = {}
    for i in range(start, start + count):
        key, size = f"key-{i}", SIZES[i % len(SIZES)]
        client.put_object(Bucket=BUCKET, Key=key, Body=body_of(key, size))
        objects[key] = size
    return objects


def check(client, objects):
    for key, size in objects.items():
        body = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        assert body == body_of(key, size), key


def wait_for(condition, limit_s=60):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.3)
    return False


@pytest.fixture(name="store")
def make_store(server_factory):
    made = server_factory(settings=SETTINGS, form="embedded")
    made.client().create_bucket(Bucket=BUCKET)
    return made


# -- compaction ------------------------------------------------------------------------------

def test_deleted_bytes_come_back(store):
    client = store.client()
    objects = fill(client, 140)
    kept = {key: size for i, (key, size) in enumerate(objects.items()) if i % 10 == 3}
    full = disk_bytes(store.data)
    assert full > sum(objects.values())
    for key in objects.keys() - kept.keys():
        client.delete_object(Bucket=BUCKET, Key=key)
    wanted = sum(kept.values()) + 12 * MIB
    assert wait_for(lambda: disk_bytes(store.data) < wanted), (full, disk_bytes(store.data), wanted)
    check(client, kept)
    with urllib.request.urlopen(f"http://{store.host}:{store.ops_port}/metrics") as answer:
        text = answer.read().decode()
    assert "fgw_compaction_groups_unlinked_total" in text
    store.restart()
    check(store.client(), kept)
    for key in kept:
        store.client().delete_object(Bucket=BUCKET, Key=key)
    assert wait_for(lambda: disk_bytes(store.data) < 12 * MIB), disk_bytes(store.data)


def test_a_slow_reader_gets_all_bytes_of_a_group_that_goes(store):
    client = store.client()
    client.put_object(Bucket=BUCKET, Key="read", Body=body_of("read", 24 * MIB))
    stream = client.get_object(Bucket=BUCKET, Key="read")["Body"]
    got = stream.read(MIB)
    objects = fill(client, 42)
    before = disk_bytes(store.data)
    for key in objects:
        client.delete_object(Bucket=BUCKET, Key=key)
    client.delete_object(Bucket=BUCKET, Key="read")
    while len(got) < 24 * MIB:
        piece = stream.read(2 * MIB)
        assert piece
        got += piece
        time.sleep(0.5)
    assert got == body_of("read", 24 * MIB)
    assert wait_for(lambda: disk_bytes(store.data) < before / 2), (before, disk_bytes(store.data))


class Churn(threading.Thread):
    """Puts and deletes on keys of its own until the server goes away."""

    def __init__(self, server, number, states, bodies):
        super().__init__(daemon=True)
        self.server, self.number = server, number
        self.states, self.bodies = states, bodies
        self.random = random.Random(number)
        self.trouble = None

    def run(self):
        client = self.server.client()
        try:
            while True:
                key = f"w{self.number}-{self.random.randrange(10)}"
                before = self.states.setdefault(key, {None})
                size = self.random.choice(SIZES)
                outcome = None if self.random.random() < 0.4 else (key, size)
                self.states[key] = before | {outcome}
                if outcome is None:
                    client.delete_object(Bucket=BUCKET, Key=key)
                else:
                    client.put_object(Bucket=BUCKET, Key=key, Body=body_of(f"{key}{size}", size))
                self.states[key] = {outcome}
        except GONE:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error


def check_states(client, states):
    for key, possible in states.items():
        try:
            body = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except client.exceptions.NoSuchKey:
            assert None in possible, key
            states[key] = {None}
            continue
        found = [state for state in possible
                 if state is not None and body == body_of(f"{key}{state[1]}", state[1])]
        assert found, (key, possible, len(body))
        states[key] = {found[0]}


def groups_gone(store):
    return store.process.log_bytes().count(b" is gone bytes=")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_kills_while_groups_go_lose_nothing(store):
    states = {}
    for round_ in range(6):
        writers = [Churn(store, number, states, {}) for number in range(2)]
        for writer in writers:
            writer.start()
        time.sleep(4 + round_ % 3 * 1.7)
        store.kill()
        for writer in writers:
            writer.join(30)
            assert writer.trouble is None, writer.trouble
        store.start()
        check_states(store.client(), states)
    # whatever went in these lives: most of what is left goes now, and the process dies in the middle
    client = store.client()
    before = groups_gone(store)
    for i, key in enumerate(sorted(states)):
        if i % 10 != 3:
            client.delete_object(Bucket=BUCKET, Key=key)
            states[key] = {None}
    assert wait_for(lambda: groups_gone(store) > before, 120)
    store.kill()
    store.start()
    check_states(store.client(), states)
    done = run_fgw("scrub", env=store.all_settings(), timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


# -- scrub and sweep of a running process ----------------------------------------------------

def test_scrub_asks_the_process_that_runs(store):
    client = store.client()
    client.put_object(Bucket=BUCKET, Key="whole", Body=body_of("whole", 3 * MIB))
    client.put_object(Bucket=BUCKET, Key="damaged", Body=b"find me " * 5000)
    env = store.all_settings()
    done = run_fgw("scrub", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 damaged" in done.stdout
    for path in sorted((store.data / "groups").iterdir()):
        content = path.read_bytes()
        at = content.find(b"find me find me")
        if at >= 0:
            with open(path, "r+b") as file:
                file.seek(at + 100)
                file.write(b"X")
    done = run_fgw("scrub", "--rate", "200", "--json", env=env)
    assert done.returncode == DAMAGED, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["damaged"] == 1 and answer["findings"][0]["what"] == "bytes"
    assert answer["running"] is False
    done = run_fgw("scrub", env=env)
    assert done.returncode == DAMAGED
    assert "damaged bytes bafkrei" in done.stdout
    assert run_fgw("scrub", "--rate", "nothing", env=env).returncode == 2
    check(client, {"whole": 3 * MIB})
    store.stop()
    done = run_fgw("scrub", env=env)  # now by itself
    assert done.returncode == DAMAGED and "key " in done.stdout, done.stdout


def test_sweep_asks_the_process_that_runs_or_does_it_itself(store):
    client = store.client()
    objects = fill(client, 7)
    env = store.all_settings()
    done = run_fgw("sweep", "--json", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["holds"] == 7 and answer["ownerless"] == 0 and not answer["running"]
    done = run_fgw("sweep", "--approve", env=env)
    assert done.returncode == 0 and "7 holds looked at: 0 without an owner" in done.stdout
    status = json.loads(run_fgw("status", "--json", env=env).stdout)
    assert status["sweep_alarm"] is False and status["ownerless_holds"] == 0
    store.stop()
    done = run_fgw("sweep", "--json", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["holds"] == 7
    store.start()
    check(store.client(), objects)

"""kill -9 at random moments under load: what was acknowledged is there byte for byte, nothing is half
visible, the restart needs no repair.

Each writer owns its keys and does one operation at a time, so after a kill a key may be in one of
two states: as last acknowledged, or as the operation left it that was under way.
"""
import hashlib
import os
import random
import shutil
import threading
import time

import botocore.exceptions
import pytest

from fgw_server import run_fgw

BUCKET = "kill-loop"
WRITERS = 4
KEYS = 12
ABSENT = "absent"
ROUNDS = int(os.environ.get("FGW_TEST_KILL_ROUNDS", "20"))
SOAK_ROUNDS = int(os.environ.get("FGW_TEST_SOAK_ROUNDS", "1000"))
PART = 5 * 1024 * 1024
GONE = (botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError,
        botocore.exceptions.ClientError)


class Writer(threading.Thread):
    """Random operations on its own keys until the server goes away."""

    def __init__(self, number, server, seed):
        super().__init__(name=f"writer-{number}", daemon=True)
        self.number = number
        self.server = server
        self.random = random.Random(seed)
        self.states = {f"w{number}/key-{i}": {ABSENT} for i in range(KEYS)}
        self.bodies = {}  # digest -> bytes made from
        self.acknowledged = 0
        self.stopping = threading.Event()
        self.trouble = None

    def renew(self):
        """A thread runs once; the next round's takes over what is known."""
        writer = Writer(self.number, self.server, self.random.random())
        writer.states, writer.acknowledged = self.states, self.acknowledged
        return writer

    def body(self):
        size = self.random.choice((0, 1, 1000, 4096, 4096, 20000, 262144, 262145, 700000,
                                   2 * 1024 * 1024 + 17))
        seed = self.random.randrange(4)  # few, so that bodies are shared
        return (hashlib.sha256(b"%d %d" % (seed, size)).digest() * (size // 32 + 1))[:size]

    def run(self):
        client = self.server.client(max_pool_connections=2)
        try:
            while not self.stopping.is_set():
                self.one(client)
        except GONE as error:
            if isinstance(error, botocore.exceptions.ClientError):
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                if status < 500:
                    self.trouble = error
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error

    def attempt(self, key, outcome, act):
        """outcome: the state after it; until the answer both are possible."""
        before = self.states[key]
        self.states[key] = before | {outcome}
        act()
        self.states[key] = {outcome}
        self.acknowledged += 1

    def one(self, client):
        key = self.random.choice(list(self.states))
        kind = self.random.random()
        if kind < 0.6:
            body = self.body()
            self.attempt(key, fingerprint(body),
                         lambda: client.put_object(Bucket=BUCKET, Key=key, Body=body))
        elif kind < 0.8:
            self.attempt(key, ABSENT, lambda: client.delete_object(Bucket=BUCKET, Key=key))
        elif kind < 0.93:
            self.copy(client, key)
        else:
            self.multipart(client, key)

    def copy(self, client, key):
        source = self.random.choice(list(self.states))
        state = self.states[source]
        if len(state) == 1 and ABSENT not in state and source != key:
            self.attempt(key, next(iter(state)), lambda: client.copy_object(
                Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": source}))

    def multipart(self, client, key):
        parts = [hashlib.sha256(b"%d" % self.random.randrange(3)).digest() * (PART // 32),
                 self.body() or b"x"]
        upload = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
        tags = [client.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=i + 1,
                                   Body=part)["ETag"] for i, part in enumerate(parts)]
        if self.random.random() < 0.3:
            client.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload)
            return
        listed = {"Parts": [{"PartNumber": i + 1, "ETag": tag} for i, tag in enumerate(tags)]}
        self.attempt(key, fingerprint(b"".join(parts)),
                     lambda: client.complete_multipart_upload(
                         Bucket=BUCKET, Key=key, UploadId=upload, MultipartUpload=listed))


def fingerprint(body):
    return f"{len(body)} {hashlib.md5(body).hexdigest()}"


def check_key(client, writer, key, listed):
    try:
        answer = client.get_object(Bucket=BUCKET, Key=key)
        body = answer["Body"].read()
        state = fingerprint(body)
        assert answer["ContentLength"] == len(body)
        assert listed.get(key) == (len(body), answer["ETag"]), key
    except client.exceptions.NoSuchKey:
        state = ABSENT
        assert key not in listed
    assert state in writer.states[key], f"{key}: {state}, expected one of {writer.states[key]}"
    writer.states[key] = {state}


def check_all(server, writers):
    client = server.client(max_pool_connections=2)
    listed = {}
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        listed.update({item["Key"]: (item["Size"], item["ETag"])
                       for item in page.get("Contents", ())})
    for writer in writers:
        for key in writer.states:
            check_key(client, writer, key, listed)
    assert set(listed) <= {key for writer in writers for key in writer.states}


def one_round(server, writers, rng, lose_index):
    writers = [writer.renew() for writer in writers]
    for writer in writers:
        writer.start()
    time.sleep(rng.uniform(0.05, 0.8))
    server.kill()
    for writer in writers:
        writer.stopping.set()
        writer.join(60)
        assert writer.trouble is None, writer.trouble
    server.process.check_log()
    if rng.random() < 0.3:  # and while it starts
        server.start(wait=False)
        time.sleep(rng.uniform(0.05, 0.5))
        server.kill()
    if lose_index and rng.random() < 0.3:
        shutil.rmtree(server.data / "meta")
    server.start()
    check_all(server, writers)
    return writers


def kill_loop(server_factory, rng, rounds, settings=None):
    server = server_factory(settings={
        "FGW_GROUP_SIZE": "16MiB", "FGW_MEMORY": "128MiB", "FGW_MIN_FREE": "1MiB",
        "FGW_RELEASE_DELAY": "1s", **(settings or {})})
    server.client().create_bucket(Bucket=BUCKET)
    writers = [Writer(i, server, rng.random()) for i in range(WRITERS)]
    for _ in range(rounds):
        writers = one_round(server, writers, rng, settings is not None)
    assert sum(writer.acknowledged for writer in writers) > rounds
    server.stop()
    scrub = run_fgw("scrub", "--data", server.data)
    assert scrub.returncode == 0, scrub.stdout + scrub.stderr
    # and from nothing
    shutil.rmtree(server.data / "meta")
    recover = run_fgw("recover", "--data", server.data)
    assert recover.returncode == 0, recover.stdout + recover.stderr
    server.start()
    check_all(server, writers)
    return server


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kill_loop(server_factory, rng):
    kill_loop(server_factory, rng, ROUNDS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kill_loop_with_checkpoints(server_factory, rng):
    """One is being written most of the time, groups are given up behind it, and every third start
    has lost its index."""
    server = kill_loop(server_factory, rng, ROUNDS, {
        "FGW_TEST_CHECKPOINT_BYTES": "20000", "FGW_GROUP_SIZE": "2MiB"})
    assert list((server.data / "checkpoints").glob("*.car"))


@pytest.mark.soak
@pytest.mark.timeout(24 * 3600)
def test_kill_soak(server_factory, rng):
    kill_loop(server_factory, rng, SOAK_ROUNDS)

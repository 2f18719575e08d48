"""Processes that die at each step of a request, and two proxies that do the same at once: what was
acknowledged is there, what was not is there as a whole or not at all."""
import concurrent.futures
import hashlib
import threading
import time
import uuid
import xml.etree.ElementTree

import botocore.exceptions
import pytest

from stores import ATTEMPTS, client
from test_uploads import put, read_back

MIB = 1024 * 1024
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def bucket(cluster):
    name = f"d-{uuid.uuid4().hex[:20]}"
    client(cluster.proxies[0], ATTEMPTS).create_bucket(Bucket=name)
    for proxy in cluster.proxies:
        client(proxy, ATTEMPTS).get_waiter("bucket_exists").wait(Bucket=name)
    return name


def back(member):
    if member.running():
        member.kill()
    member.start().wait_ready()


def whole_or_absent(cluster, bucket, key, bodies):
    """The object is one of `bodies` (None: absent), the same through each proxy, and listed so."""
    seen = set()
    for proxy in cluster.proxies:
        got = proxy.request("GET", f"/{bucket}/{key}")
        assert got.status in (200, 404), got
        body = got.body if got.status == 200 else None
        assert body in bodies
        listed = client(proxy, ATTEMPTS).list_objects_v2(Bucket=bucket, Prefix=key).get("Contents", [])
        assert len(listed) == (body is not None)
        seen.add(None if body is None else hashlib.sha256(body).digest())
    assert len(seen) == 1
    return seen.pop() is not None


@pytest.mark.full
def test_a_node_dies_right_after_the_acknowledgement(cluster, bucket, rng):
    for node in cluster.nodes:
        bodies = {f"{node.name}/{size}": rng.randbytes(size) for size in (10, 70_000, 3 * MIB)}
        for key, body in bodies.items():
            status, _, text = put(cluster.proxies[0], f"/{bucket}/{key}", body)
            assert status == 200, text
        node.kill()
        for key, body in bodies.items():
            read_back(cluster.proxies[1], f"/{bucket}/{key}", body)
        back(node)


def begin_upload(proxy, target, parts):
    begun = proxy.request("POST", f"{target}?uploads")
    assert begun.status == 200, begun
    upload = xml.etree.ElementTree.fromstring(begun.body).findtext("{*}UploadId")
    listed = ""
    for number, part in enumerate(parts, 1):
        status, headers, text = put(proxy, f"{target}?partNumber={number}&uploadId={upload}", part)
        assert status == 200, text
        listed += f"<Part><PartNumber>{number}</PartNumber><ETag>{headers['ETag']}</ETag></Part>"
    return upload, f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()


def complete(proxy, target, upload, document):
    """True: acknowledged; False: refused or no answer."""
    try:
        done = proxy.request("POST", f"{target}?uploadId={upload}", document)
    except (OSError, AssertionError):
        return False
    assert done.status in (200, 503), done
    return done.status == 200 and b"<Error>" not in done.body


@pytest.mark.slow
@pytest.mark.parametrize("who", [pytest.param("node", marks=pytest.mark.full), "proxy"])
def test_somebody_dies_during_complete(cluster, bucket, rng, who):
    """Whatever came of the first attempt, the repetition through the other proxy ends well."""
    for turn in range(6):
        target, parts = f"/{bucket}/{who}{turn}", [rng.randbytes(5 * MIB), rng.randbytes(999)]
        upload, document = begin_upload(cluster.proxies[0], target, parts)
        dies = cluster.proxies[0] if who == "proxy" else cluster.nodes[turn % 3]
        killer = threading.Timer(rng.uniform(0, 0.06), dies.kill)
        killer.start()
        done = complete(cluster.proxies[0], target, upload, document)
        killer.join()
        back(dies)
        whole_or_absent(cluster, bucket, target.rsplit("/", 1)[1],
                        [b"".join(parts)] if done else [b"".join(parts), None])
        end = time.monotonic() + 60
        while not complete(cluster.proxies[1], target, upload, document):
            assert time.monotonic() < end
            time.sleep(0.3)
        read_back(cluster.proxies[0], target, b"".join(parts))


@pytest.mark.slow
def test_a_proxy_dies_at_each_step_of_a_put(cluster, bucket, rng):
    """In the head, in the body, when all bytes are there, at any time up to the answer."""
    proxy, size = cluster.proxies[0], 3 * MIB
    old = rng.randbytes(1000)
    for turn, at in enumerate((0, 1, MIB, 2 * MIB + 5, size - 1, None, None, None, None)):
        key, body = f"k{turn}", rng.randbytes(size)
        if turn % 2:
            assert put(cluster.proxies[1], f"/{bucket}/{key}", old)[0] == 200
        acknowledged = False
        killer = threading.Timer(rng.uniform(0, 0.1), proxy.kill)
        try:
            if at is None:
                acknowledged = put(proxy, f"/{bucket}/{key}", body, size - 1, killer.start)[0] == 200
            else:
                acknowledged = put(proxy, f"/{bucket}/{key}", body, at, proxy.kill)[0] == 200
        except OSError:
            pass
        if at is None:
            killer.join()
        back(proxy)
        before = old if turn % 2 else None
        whole_or_absent(cluster, bucket, key, [body] if acknowledged else [body, before])
        assert put(cluster.proxies[1], f"/{bucket}/{key}", body)[0] == 200
        read_back(proxy, f"/{bucket}/{key}", body)


@pytest.mark.full
def test_a_proxy_dies_while_it_deletes_and_copies(cluster, bucket, rng):
    proxy, other = cluster.proxies
    for turn in range(6):
        key, body = f"k{turn}", rng.randbytes(300_000)
        assert put(other, f"/{bucket}/{key}", body)[0] == 200
        killer = threading.Timer(rng.uniform(0, 0.03), proxy.kill)
        killer.start()
        answer = None
        try:
            if turn % 2:
                answer = proxy.request("DELETE", f"/{bucket}/{key}").status
            else:
                answer = proxy.request("PUT", f"/{bucket}/{key}.copy",
                                       headers=[("x-amz-copy-source", f"/{bucket}/{key}")]).status
        except (OSError, AssertionError):
            pass
        killer.join()
        back(proxy)
        if turn % 2:
            there = whole_or_absent(cluster, bucket, key, [body, None])
            assert not (there and answer == 204)
        else:
            read_back(proxy, f"/{bucket}/{key}", body)
            there = whole_or_absent(cluster, bucket, f"{key}.copy", [body, None])
            assert there or answer != 200


@pytest.mark.slow
def test_the_same_upload_is_completed_on_two_proxies_at_once(cluster, bucket, rng):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for turn in range(10):
            target, parts = f"/{bucket}/u{turn}", [rng.randbytes(5 * MIB), rng.randbytes(77)]
            upload, document = begin_upload(cluster.proxies[0], target, parts)
            answers = list(pool.map(
                lambda proxy, t=target, u=upload, d=document: proxy.request(
                    "POST", f"{t}?uploadId={u}", d), cluster.proxies * 2))
            statuses = sorted(answer.status for answer in answers)
            assert statuses[0] == 200 and set(statuses) <= {200, 404, 409, 503}, statuses
            tags = {xml.etree.ElementTree.fromstring(answer.body).findtext("{*}ETag")
                    for answer in answers if answer.status == 200}
            assert len(tags) == 1
            for proxy in cluster.proxies:
                read_back(proxy, target, b"".join(parts))
            listed = client(cluster.proxies[1], ATTEMPTS).list_object_versions(Bucket=bucket,
                                                                     Prefix=f"u{turn}")
            assert len(listed["Versions"]) == 1


def race(cluster, bucket, rounds):
    """Winners of each round of two proxies that create the same object."""
    proxies = [client(proxy) for proxy in cluster.proxies]

    def create(s3, key, body):
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body, IfNoneMatch="*")
            return body
        except botocore.exceptions.ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            assert status in (409, 412), error
            return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number in range(rounds):
            key = f"race{number}"
            won = [body for body in pool.map(create, proxies, (key, key), (b"first", b"second"))
                   if body is not None]
            assert len(won) == 1, (key, won)
            got = proxies[number % 2].get_object(Bucket=bucket, Key=key)["Body"].read()
            assert got == won[0]


@pytest.mark.slow
def test_two_proxies_race_to_create_an_object(cluster, bucket):
    race(cluster, bucket, 60)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_two_proxies_race_a_thousand_times(cluster, bucket):
    race(cluster, bucket, 1000)

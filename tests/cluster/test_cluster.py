"""A cluster from outside: any proxy serves any object, a node that dies takes nothing along, the
database may go and come back."""
import hashlib
import threading
import time

import botocore.exceptions
import pytest

import cluster as cluster_module
from stores import client

MIB = 1024 * 1024
BIG = 64 * MIB


@pytest.fixture
def bucket(cluster, request):
    name = "t-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:20]
    client(cluster.proxies[0]).create_bucket(Bucket=name)
    time.sleep(1.1)  # a bucket may be unknown to another process for a second
    return name


def body_of(rng, size):
    return rng.randbytes(size)


def test_every_process_serves_every_object(cluster, bucket, rng):
    first, second = (client(proxy) for proxy in cluster.proxies)
    sizes = [0, 1, 1000, 262144, 262145, MIB, MIB + 1, 5 * MIB + 3]
    bodies = {f"dir/{size}": body_of(rng, size) for size in sizes}
    for key, body in bodies.items():
        first.put_object(Bucket=bucket, Key=key, Body=body)
    for key, body in bodies.items():
        assert second.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    for node in cluster.nodes:
        s3 = client(node)
        for key, body in bodies.items():
            assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    part = second.get_object(Bucket=bucket, Key=f"dir/{sizes[-1]}",
                             Range=f"bytes={MIB - 7}-{3 * MIB}")["Body"].read()
    assert part == bodies[f"dir/{sizes[-1]}"][MIB - 7:3 * MIB + 1]
    listed = [item["Key"] for item in second.list_objects_v2(Bucket=bucket)["Contents"]]
    assert listed == sorted(bodies)
    for key in bodies:
        second.delete_object(Bucket=bucket, Key=key)
    assert "Contents" not in first.list_objects_v2(Bucket=bucket)


def test_multipart_and_copy_across_proxies(cluster, bucket, rng):
    first, second = (client(proxy) for proxy in cluster.proxies)
    parts = [body_of(rng, 5 * MIB), body_of(rng, 5 * MIB + 17), body_of(rng, 100)]
    upload = first.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
    done = []
    for number, part in enumerate(parts, 1):
        s3 = (first, second)[number % 2]
        tag = s3.upload_part(Bucket=bucket, Key="m", UploadId=upload, PartNumber=number,
                             Body=part)["ETag"]
        done.append({"PartNumber": number, "ETag": tag})
    second.complete_multipart_upload(Bucket=bucket, Key="m", UploadId=upload,
                                     MultipartUpload={"Parts": done})
    assert first.get_object(Bucket=bucket, Key="m")["Body"].read() == b"".join(parts)
    first.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "m"})
    second.delete_object(Bucket=bucket, Key="m")
    assert second.get_object(Bucket=bucket, Key="copy")["Body"].read() == b"".join(parts)


class Load(threading.Thread):
    """Puts objects until told to end; keeps what was acknowledged and what was refused."""

    def __init__(self, member, bucket, name, rng, size):
        super().__init__(daemon=True)
        self.s3, self.bucket, self.name_, self.rng, self.size = (client(member), bucket, name, rng,
                                                                 size)
        self.acknowledged, self.refused, self.slowest = {}, 0, 0.0
        self.end = threading.Event()

    def run(self):
        number = 0
        while not self.end.is_set():
            key = f"{self.name_}/{number}"
            number += 1
            body = self.rng.randbytes(self.size)
            began = time.monotonic()
            try:
                self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)
                self.acknowledged[key] = hashlib.sha256(body).digest()
            except botocore.exceptions.ClientError as error:
                assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 503, error
                self.refused += 1
            self.slowest = max(self.slowest, time.monotonic() - began)


def test_a_killed_node_takes_no_object_along(cluster, bucket, rng):
    loads = [Load(cluster.proxies[i % 2], bucket, f"load{i}", rng, size)
             for i, size in enumerate((1000, 200_000, 2 * MIB))]
    for load in loads:
        load.start()
    time.sleep(2)
    cluster.nodes[1].kill()
    time.sleep(5)
    for load in loads:
        load.end.set()
    for load in loads:
        load.join(30)
        assert not load.is_alive()
    reader = client(cluster.proxies[1])
    checked = 0
    for load in loads:
        assert len(load.acknowledged) > 5
        assert load.slowest < 15
        for key, digest in load.acknowledged.items():
            body = reader.get_object(Bucket=bucket, Key=key)["Body"].read()
            assert hashlib.sha256(body).digest() == digest
            checked += 1
    assert checked > 20
    # writes went on while it was away, and go on when it is back
    assert sum(load.refused for load in loads) <= 6
    cluster.nodes[1].start().wait_ready()
    client(cluster.proxies[0]).put_object(Bucket=bucket, Key="after", Body=b"x")


def test_a_paused_node_costs_seconds_only(cluster, bucket, rng):
    s3 = client(cluster.proxies[0])
    body = body_of(rng, 3 * MIB)
    s3.put_object(Bucket=bucket, Key="big", Body=body)
    for node in cluster.nodes:
        node.pause()
        try:
            began = time.monotonic()
            assert s3.get_object(Bucket=bucket, Key="big")["Body"].read() == body
            client(cluster.proxies[0], attempts=3).put_object(Bucket=bucket, Key="small", Body=b"1")
            assert time.monotonic() - began < 20
        finally:
            node.resume()
        time.sleep(0.5)


def test_a_get_goes_on_when_its_node_is_killed(cluster, bucket, rng):
    s3 = client(cluster.proxies[0])
    body = body_of(rng, BIG)
    client(cluster.proxies[0], attempts=3).put_object(Bucket=bucket, Key="big", Body=body)
    before = cluster.proxies[0].metrics()["fgw_blobs_read_failovers_total"]
    for node in cluster.nodes:
        stream = s3.get_object(Bucket=bucket, Key="big")["Body"]
        got = hashlib.sha256(stream.read(4 * MIB))
        node.kill()
        while piece := stream.read(MIB):
            got.update(piece)
        assert got.digest() == hashlib.sha256(body).digest()
        node.start().wait_ready()
        time.sleep(2.5)  # the proxy learns the node's new epoch
    assert cluster.proxies[0].metrics()["fgw_blobs_read_failovers_total"] > before


def until_it_works(call, limit_s=30):
    """Each process finds the database again by itself, within seconds."""
    end = time.monotonic() + limit_s
    while True:
        try:
            return call()
        except botocore.exceptions.ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 503, error
            assert time.monotonic() < end
            time.sleep(0.2)


def test_the_database_goes_and_comes_back(cluster, bucket, rng):
    s3 = client(cluster.proxies[0])
    body = body_of(rng, 100_000)
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    cluster.gate.shut()
    began = time.monotonic()
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="k2", Body=body)
    answer = refused.value.response["ResponseMetadata"]
    assert answer["HTTPStatusCode"] == 503
    assert "retry-after" in answer["HTTPHeaders"]
    assert time.monotonic() - began < 15
    for member in cluster.members:
        assert member.running()
    time.sleep(5)
    cluster.gate.open()
    until_it_works(lambda: s3.put_object(Bucket=bucket, Key="k2", Body=body))
    for proxy in cluster.proxies:
        got = until_it_works(lambda s3=client(proxy): s3.get_object(Bucket=bucket, Key="k2"))
        assert got["Body"].read() == body


def test_a_second_node_of_the_same_name_is_refused(cluster, tmp_path):
    rival = cluster_module.Member(cluster, "rival", "kuri", *_two_ports())
    rival.name = cluster.nodes[0].name
    rival.start()
    try:
        assert rival.process.wait(60) not in (0, None)
    finally:
        rival.kill()
    log = rival.log_path.read_text(encoding="utf-8")
    assert f"FGW_NODE_ID {rival.name} belongs to store" in log
    assert cluster.nodes[0].ready()


def _two_ports():
    return cluster_module.free_port(), cluster_module.free_port()

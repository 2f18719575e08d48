"""Stores that go for good, drain, come and fill: copies are counted by asking each store itself."""
import hashlib
import time

import boto3
import botocore.config
import pytest

import block_api
import cluster as cluster_module
from cluster import Cluster

MIB = 1024 * 1024
DOWN_S = 12
SETTINGS = {"FGW_NODE_DOWN_AFTER": f"{DOWN_S}s", "FGW_TEST_DATABASE_GOOD_MS": "1000",
            "FGW_RELEASE_DELAY": "1s"}


def client(member, attempts=4):
    config = botocore.config.Config(s3={"addressing_style": "path"}, proxies={},
                                    retries={"total_max_attempts": attempts, "mode": "standard"},
                                    read_timeout=60, connect_timeout=5)
    return boto3.client("s3", endpoint_url=member.endpoint, region_name=cluster_module.REGION,
                        aws_access_key_id=cluster_module.ACCESS_KEY,
                        aws_secret_access_key=cluster_module.SECRET_KEY, config=config)


class Objects:
    """Objects of one bucket, and which stores have their blobs."""

    def __init__(self, cluster, rng, name="repair"):
        self.cluster, self.rng, self.bucket, self.known = cluster, rng, name, {}
        client(cluster.proxies[0]).create_bucket(Bucket=name)
        time.sleep(1.1)

    def put(self, count, sizes=(10, 5000, 300_000, 2 * MIB + 7)):
        s3 = client(self.cluster.proxies[0])
        for _ in range(count):
            for size in sizes:
                key, body = f"k{len(self.known)}", self.rng.randbytes(size)
                answer = s3.put_object(Bucket=self.bucket, Key=key, Body=body)
                cid = answer["ResponseMetadata"]["HTTPHeaders"]["x-fgw-cid"]
                self.known[key] = (cid, size, hashlib.sha256(body).digest())

    def copies(self, nodes=None):
        """How many of the nodes that run have each object."""
        have = dict.fromkeys(self.known, 0)
        for node in nodes or self.cluster.nodes:
            if not node.running():
                continue
            with block_api.opened(node, cluster_module.CLUSTER_SECRET) as api:
                for key, (cid, size, _) in self.known.items():
                    have[key] += api.has(cid, size)
        return have

    def on(self, node):
        return sum(self.copies([node]).values())

    def check(self):
        s3 = client(self.cluster.proxies[-1])
        for key, (_, _, digest) in self.known.items():
            body = s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            assert hashlib.sha256(body).digest() == digest, key


def wait_for(condition, limit_s, what):
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, what
        time.sleep(0.5)


@pytest.fixture
def small(request, cassandra, tmp_path):
    """A cluster of its own for each test: two proxies and as many nodes as the test is marked with."""
    keyspace = "fgw_test_" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    marker = request.node.get_closest_marker("nodes")
    nodes = marker.args[0] if marker else 3
    started = Cluster(tmp_path / "cluster", nodes=nodes, proxies=2, address=cassandra.address,
                      keyspace=keyspace, settings=SETTINGS)
    started.lay_out()
    try:
        started.start()
        time.sleep(2.5)
        yield started
        assert started.stop() == []
    finally:
        started.kill()
        cassandra.drop_keyspace(keyspace)
    for member in started.members:
        log = member.log_path.read_text(encoding="utf-8", errors="replace")
        for word in ("Sanitizer", "runtime error:", "check failed"):
            assert word not in log, member.tail(80)


def test_copies_of_a_dead_node_are_made_anew(small, rng):
    objects = Objects(small, rng)
    objects.put(10)
    assert set(objects.copies().values()) == {2}
    lost = objects.on(small.nodes[0])
    assert lost > 5
    small.nodes[0].kill()
    began = time.monotonic()
    wait_for(lambda: "is away" in "".join(node.tail(200) for node in small.nodes[1:]), DOWN_S + 30,
             "nobody was declared away")
    detected_s = time.monotonic() - began
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "copies are missing")
    print(f"detected after {detected_s:.1f} s, whole again after {time.monotonic() - began:.1f} s, "
          f"{lost} copies")
    assert detected_s >= DOWN_S - 6
    objects.check()
    # and it goes on from there: writes, and the store when it is back
    objects.put(2)
    small.nodes[0].start().wait_ready()
    time.sleep(5)
    objects.put(5)
    objects.check()
    assert min(objects.copies().values()) >= 2

"""Stores of a cluster from outside: objects whose copies are counted by asking each store itself, states of
nodes, waiting for what comes about by itself."""
import hashlib
import time

import boto3
import botocore.config

import block_api
import cluster as cluster_module

MIB = 1024 * 1024
ATTEMPTS = 4  # as a client would that takes 503 for what it is
DOWN_S = 12
SETTINGS = {"FGW_NODE_DOWN_AFTER": f"{DOWN_S}s", "FGW_TEST_DATABASE_GOOD_MS": "1000",
            "FGW_RELEASE_DELAY": "1s"}


def client(member, attempts=1, read_s=60, connect_s=5):
    """boto3 to one process of a cluster; attempts 1: a test sees the first answer."""
    config = botocore.config.Config(s3={"addressing_style": "path"}, proxies={},
                                    retries={"total_max_attempts": attempts, "mode": "standard"},
                                    read_timeout=read_s, connect_timeout=connect_s)
    return boto3.client("s3", endpoint_url=member.endpoint, region_name=cluster_module.REGION,
                        aws_access_key_id=cluster_module.ACCESS_KEY,
                        aws_secret_access_key=cluster_module.SECRET_KEY, config=config)


def copies_of(nodes, blobs):
    """How many of the nodes have each of {name: (cid, size)}."""
    have = dict.fromkeys(blobs, 0)
    for node in nodes:
        with block_api.opened(node, cluster_module.CLUSTER_SECRET) as api:
            for name, (cid, size) in blobs.items():
                have[name] += api.has(cid, size)
    return have


class Objects:
    """Objects of one bucket, and which stores have their blobs."""

    def __init__(self, cluster, rng, name="repair"):
        self.cluster, self.rng, self.bucket, self.known = cluster, rng, name, {}
        client(cluster.proxies[0], ATTEMPTS).create_bucket(Bucket=name)
        time.sleep(1.1)

    def put(self, count, sizes=(10, 5000, 300_000, 2 * MIB + 7)):
        s3 = client(self.cluster.proxies[0], ATTEMPTS)
        for _ in range(count):
            for size in sizes:
                key, body = f"k{len(self.known)}", self.rng.randbytes(size)
                answer = s3.put_object(Bucket=self.bucket, Key=key, Body=body)
                cid = answer["ResponseMetadata"]["HTTPHeaders"]["x-fgw-cid"]
                self.known[key] = (cid, size, hashlib.sha256(body).digest())

    def copies(self, nodes=None):
        """How many of the nodes that run have each object."""
        return copies_of([node for node in nodes or self.cluster.nodes if node.running()],
                         {key: (cid, size) for key, (cid, size, _) in self.known.items()})

    def on(self, node):
        return sum(self.copies([node]).values())

    def fgw_warnings(self):
        return self.cluster.nodes[0].fgw("status")[1]["warnings"]

    def check(self):
        s3 = client(self.cluster.proxies[-1], ATTEMPTS)
        for key, (_, _, digest) in self.known.items():
            body = s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            assert hashlib.sha256(body).digest() == digest, key


def wait_for(condition, limit_s, what):
    """what: the text of the failure, or what makes it."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.5)


def settled(member):
    listed = member.fgw("node", "list")[1]
    return listed["sets_complete"] == listed["sets"]


def nodes_of(member):
    """fgw node list, by node id of the stores that are there."""
    listed = member.fgw("node", "list")[1]["nodes"]
    return {node["node"]: node for node in listed if node["state"] not in ("lost", "removed")}


def wait_state(member, name, state, limit_s=60):
    wait_for(lambda: nodes_of(member).get(name, {}).get("state") == state, limit_s,
             f"{name} is not {state}")

"""Stores that go for good, drain, come and fill: copies are counted by asking each store itself."""
import hashlib
import json
import os
import shutil
import subprocess
import time

import boto3
import botocore.config
import pytest

import block_api
import cluster as cluster_module
from cluster import Cluster
from gate import Gate

MIB = 1024 * 1024
DOWN_S = 12
pytestmark = pytest.mark.timeout(200)
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

    def fgw_warnings(self):
        return self.cluster.nodes[0].fgw("status")[1]["warnings"]

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


def settled(member):
    listed = member.fgw("node", "list")[1]
    return listed["sets_complete"] == listed["sets"]


@pytest.fixture
def small(request, cassandra, tmp_path):
    """A cluster of its own for each test: two proxies and as many nodes as the test is marked with."""
    keyspace = "fgw_test_" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    marker = request.node.get_closest_marker("nodes")
    nodes = marker.args[0] if marker else 3
    started = Cluster(tmp_path / "cluster", nodes=nodes, proxies=2, address=cassandra.address,
                      keyspace=keyspace, settings=SETTINGS)
    started.lay_out()
    started.gate = Gate(cassandra.address)
    started.address = started.gate.address
    try:
        started.start()
        if nodes > 1:  # the sets of the node that was the first get their second members
            wait_for(lambda: settled(started.nodes[0]), 60, "sets keep changing")
        yield started
        assert started.stop() == []
    finally:
        started.kill()
        started.gate.close()
        cassandra.drop_keyspace(keyspace)
    for member in started.members:
        log = member.log_path.read_text(encoding="utf-8", errors="replace")
        for word in ("Sanitizer", "runtime error:", "check failed"):
            assert word not in log, member.log_tail(80)


def nodes_of(member):
    """fgw node list, by node id of the stores that are there."""
    listed = member.fgw("node", "list")[1]["nodes"]
    return {node["node"]: node for node in listed if node["state"] not in ("lost", "removed")}


def wait_state(member, name, state, limit_s=60):
    wait_for(lambda: nodes_of(member)[name]["state"] == state, limit_s, f"{name} is not {state}")


@pytest.mark.slow
def test_copies_of_a_dead_node_are_made_anew(small, rng):
    objects = Objects(small, rng)
    objects.put(10)
    assert set(objects.copies().values()) == {2}
    lost = objects.on(small.nodes[0])
    assert lost > 5
    small.nodes[0].kill()
    began = time.monotonic()
    wait_for(lambda: "is away" in "".join(node.log_tail(200) for node in small.nodes[1:]), DOWN_S + 30,
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


@pytest.mark.slow
def test_a_node_drains_under_load_and_goes(small, rng):
    objects = Objects(small, rng)
    wait_for(lambda: objects.put(1) or objects.on(small.nodes[1]) > 0, 60, "sets with kuri-2")
    objects.put(4)
    small.proxies[0].fgw("node", "drain", "kuri-2")
    code, text = small.nodes[0].fgw("node", "remove", "kuri-2", check=False)
    assert code == 1 and "Drain it first" in text
    end = time.monotonic() + 90
    while nodes_of(small.nodes[0])["kuri-2"]["state"] != "drained":
        assert time.monotonic() < end, small.nodes[1].log_tail(60)
        objects.put(1)
    # what it had is on the others, and it gives its copies up when they say so
    others = [small.nodes[0], small.nodes[2]]
    assert min(objects.copies(others).values()) >= 1
    wait_for(lambda: min(objects.copies(others).values()) == 2, 60, "two copies of each")
    wait_for(lambda: objects.on(small.nodes[1]) == 0, 60, "the drained store keeps its blobs")
    small.nodes[2].fgw("node", "remove", "kuri-2")
    assert small.nodes[1].stop()
    objects.put(2)
    objects.check()
    # a store that was removed does not come back by itself
    small.nodes[1].start()
    assert small.nodes[1].process.wait(30) == 2
    small.nodes[1].process = None
    assert "was removed from the cluster" in small.nodes[1].log_tail()


@pytest.mark.full
def test_a_drain_is_taken_back_and_refused_without_room(small):
    small.nodes[0].fgw("node", "drain", "kuri-1")
    small.nodes[0].fgw("node", "drain", "kuri-1", "--cancel")
    wait_state(small.nodes[1], "kuri-1", "active")
    small.nodes[0].fgw("node", "drain", "kuri-1")
    code, text = small.proxies[1].fgw("node", "drain", "kuri-2", check=False)
    assert code == 1 and "add a node first" in text
    code, text = small.nodes[0].fgw("node", "drain", "nobody", check=False)
    assert code == 1 and "no node or store" in text


@pytest.mark.full
@pytest.mark.timeout(240)
@pytest.mark.nodes(2)
def test_a_new_node_fills(small, rng):
    objects = Objects(small, rng)
    objects.put(12)
    assert objects.fgw_warnings() == ["24 sets have two copies on one host"]
    third = small.add_node().start().wait_ready()
    wait_for(lambda: len(nodes_of(third)) == 3, 20, "three nodes")
    time.sleep(6)  # beats tell how much each has
    for _ in range(3):
        answer = small.proxies[0].fgw("node", "rebalance")[1]
        wait_for(lambda: settled(small.proxies[0]), 90, "sets keep changing")
        time.sleep(6)
        if answer["moves"] == 0:
            break
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "two copies of each")
    stored = [node["stored_bytes"] for node in nodes_of(third).values()]
    print("stored:", stored)
    assert min(stored) * 4 > max(stored)
    objects.check()


@pytest.mark.full
@pytest.mark.nodes(1)
def test_objects_of_the_first_node_get_their_second_copy(small, rng):
    objects = Objects(small, rng)
    objects.put(3)
    assert set(objects.copies().values()) == {1}
    small.add_node().start().wait_ready()
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "the second copies")
    objects.check()


@pytest.mark.full
def test_an_empty_disk_under_an_old_name_is_a_new_store(small, rng):
    objects = Objects(small, rng)
    objects.put(5)
    small.nodes[0].kill()
    shutil.rmtree(small.nodes[0].folder / "data")
    began = time.monotonic()
    small.nodes[0].start().wait_ready()
    # lost at once, not after FGW_NODE_DOWN_AFTER; its copies are made anew
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "copies are missing")
    print(f"whole again {time.monotonic() - began:.1f} s after the start with an empty disk")
    states = [node["state"] for node in small.nodes[1].fgw("node", "list")[1]["nodes"]]
    # with a limit as short as the look at the old store's beats others may be first
    assert sorted(states) in (["active"] * 3 + ["lost"], ["active"] * 3 + ["away"])
    objects.check()


@pytest.mark.full
def test_a_node_that_was_declared_away_comes_back(small, rng):
    objects = Objects(small, rng)
    objects.put(4)
    small.nodes[2].pause()
    try:
        wait_state(small.nodes[0], "kuri-3", "away", DOWN_S + 30)
        wait_for(lambda: min(objects.copies(small.nodes[:2]).values()) == 2, 60, "copies")
        objects.put(2)
    finally:
        small.nodes[2].resume()
    wait_state(small.nodes[0], "kuri-3", "active", 30)
    objects.put(3)
    objects.check()
    # it works off what it has too many
    wait_for(lambda: set(objects.copies().values()) == {2}, 90, "two copies of each")
    objects.check()


@pytest.mark.full
def test_two_of_three_down_start_nothing(small, rng):
    objects = Objects(small, rng)
    objects.put(3)
    small.nodes[0].kill()
    small.nodes[1].kill()
    time.sleep(DOWN_S + 15)
    listed = small.nodes[2].fgw("node", "list")[1]
    assert {node["state"] for node in listed["nodes"]} == {"active"}
    assert listed["sets_changing"] == 0
    for node in small.nodes[:2]:
        node.start()
    for node in small.nodes[:2]:
        node.wait_ready()
    objects.check()
    assert set(objects.copies().values()) == {2}


@pytest.mark.full
@pytest.mark.nodes(4)
def test_a_database_outage_declares_nobody_away(small, cassandra, rng):
    objects = Objects(small, rng)
    objects.put(3)
    wait_for(lambda: small.nodes[0].fgw("node", "list")[1]["sets_changing"] == 0, 60, "rest")
    small.gate.shut()
    time.sleep(max(DOWN_S + 10, 25))
    small.gate.open()
    for member in small.members:
        member.wait_ready(60)
    time.sleep(8)
    listed = small.nodes[0].fgw("node", "list")[1]
    assert {node["state"] for node in listed["nodes"]} == {"active"}
    assert listed["sets_changing"] == 0
    objects.put(1)
    objects.check()


@pytest.mark.full
def test_a_copied_directory_is_refused_and_adopted(small, rng):
    objects = Objects(small, rng)
    objects.put(3)
    assert small.nodes[0].stop()
    twin = small.add_node()
    shutil.copytree(small.nodes[0].folder / "data", twin.folder / "data")
    small.nodes[0].start().wait_ready()
    twin.start()
    assert twin.process.wait(60) == 11
    twin.process = None
    assert "this directory is a copy of it" in twin.log_tail()
    assert small.nodes[0].ready()
    before = nodes_of(small.nodes[0])
    adopted = twin.fgw("node", "adopt")[1]
    assert adopted["store_before"] == before["kuri-1"]["store"] != adopted["store"]
    twin.start().wait_ready()
    wait_for(lambda: "kuri-4" in nodes_of(small.nodes[0]), 30, "four nodes")
    objects.put(3)
    objects.check()
    assert nodes_of(small.nodes[0])["kuri-1"]["store"] == adopted["store_before"]


@pytest.mark.full
def test_the_database_is_enough_for_orders(small):
    environment = {"PATH": os.environ["PATH"], "FGW_CQL_HOSTS": small.address,
                   "FGW_CQL_KEYSPACE": small.keyspace, "FGW_LOG_FORMAT": "text"}

    def fgw(*words):
        return subprocess.run([small.binary, *words], env=environment, capture_output=True,
                              text=True, timeout=60, check=False, cwd=small.folder)

    small.nodes[1].kill()
    time.sleep(6)
    listed = json.loads(fgw("node", "list", "--json").stdout)
    beats = {node["node"]: node["beats"] for node in listed["nodes"]}
    assert beats == {"kuri-1": True, "kuri-2": False, "kuri-3": True}
    small.nodes[1].start().wait_ready()
    assert fgw("node", "drain", "kuri-1").returncode == 0
    assert "draining" in fgw("node", "list").stdout
    assert fgw("node", "drain", "kuri-1", "--cancel").returncode == 0

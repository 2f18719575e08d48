"""Copies that a write lacked are made when the store is back; holds are confirmed, also when the process
that should have done it is gone."""
import time
import uuid

import pytest

from cluster import Cluster

MIB = 1024 * 1024
SETTINGS = {"FGW_NODE_DOWN_AFTER": "12s"}  # pending holds are asked about after half of it


def until(what, limit_s=60):
    end = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end
        time.sleep(0.5)


@pytest.fixture
def pair(cassandra, tmp_path):
    """Two storage nodes: one copy acknowledges."""
    keyspace = f"fgw_test_{uuid.uuid4().hex[:16]}"
    started = Cluster(tmp_path, nodes=2, proxies=1, address=cassandra.address, keyspace=keyspace,
                      settings=SETTINGS)
    started.lay_out()
    try:
        yield started.start()
        assert started.stop() == []
        for member in started.members:
            log = member.log_path.read_text(encoding="utf-8", errors="replace")
            for word in ("Sanitizer", "runtime error:", "check failed"):
                assert word not in log, member.log_tail(80)
    finally:
        started.kill()
        cassandra.drop_keyspace(keyspace)


def pending(node):
    return node.metrics()["fgw_storage_pending_holds"]


def test_missing_copies_are_made_and_holds_confirmed(pair, rng):
    proxy = pair.proxies[0]
    assert proxy.request("PUT", "/copies").status == 200
    bodies = {"small": rng.randbytes(1000), "large": rng.randbytes(5 * MIB + 1),
              "empty": b""}
    until(lambda: proxy.metrics()["fgw_cluster_replicas_possible"] == 2)
    time.sleep(5)  # and the proxy knows the sets that were made for both
    until(lambda: proxy.request("PUT", "/copies/first", b"1").status == 200)
    pair.nodes[1].kill()
    for key, body in bodies.items():
        assert proxy.request("PUT", f"/copies/{key}", body).status == 200
    assert proxy.metrics()["fgw_blobs_copies_missing_total"] >= len(bodies)
    until(lambda: pending(pair.nodes[0]) >= len(bodies))
    pair.nodes[1].start().wait_ready()
    until(lambda: pair.nodes[0].metrics()["fgw_blobs_copies_made_total"] >= len(bodies))
    until(lambda: pending(pair.nodes[0]) == 0 and pending(pair.nodes[1]) == 0)
    pair.nodes[0].pause()
    try:
        for key, body in bodies.items():
            got = proxy.request("GET", f"/copies/{key}")
            assert got.status == 200 and got.body == body
    finally:
        pair.nodes[0].resume()


def test_holds_of_a_dead_proxy_are_confirmed_by_the_stores(pair, rng):
    proxy = pair.proxies[0]
    assert proxy.request("PUT", "/copies").status == 200
    until(lambda: proxy.request("PUT", "/copies/first", b"1").status == 200)
    body = rng.randbytes(300000)
    assert proxy.request("PUT", "/copies/k", body).status == 200
    proxy.kill()
    until(lambda: pending(pair.nodes[0]) > 0)
    until(lambda: all(pending(node) == 0 for node in pair.nodes))
    got = pair.nodes[0].request("GET", "/copies/k")
    assert got.status == 200 and got.body == body
    proxy.start().wait_ready()

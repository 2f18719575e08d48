"""Bytes that were deleted or overwritten through a proxy come back on every store: told at once, or when
the store is back from where it was while they went (docs/formats/cluster-tables.md, releases)."""
import time
import uuid

import pytest

from cluster import Cluster
from s3util import disk_bytes

MIB = 1024 * 1024
SIZES = (1000, 20_000, 300_000, MIB, 3 * MIB + 17)
ROUNDS = 6
LIMIT_S = 150
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def pair(cassandra, tmp_path_factory):
    """Two stores that both hold everything, one proxy."""
    keyspace = f"fgw_test_{uuid.uuid4().hex[:16]}"
    started = Cluster(tmp_path_factory.mktemp("cluster"), nodes=2, proxies=1,
                      address=cassandra.address, keyspace=keyspace,
                      settings={"FGW_RELEASE_DELAY": "1s", "FGW_GROUP_SIZE": "4MiB",
                                "FGW_MIN_FREE": "1MiB", "FGW_REPLICAS": "2",
                                "FGW_MIN_REPLICAS": "1"})
    started.lay_out()
    try:
        started.start()
        wait_for(lambda: started.proxies[0].metrics()["fgw_cluster_replicas_possible"] == 2
                 and all_complete(started.nodes[0]))
        assert started.proxies[0].request("PUT", "/bucket").status == 200
        yield started
        assert started.stop() == []
    finally:
        started.kill()
        cassandra.drop_keyspace(keyspace)
    for member in started.members:
        log = member.log_path.read_text(encoding="utf-8", errors="replace")
        assert not any(word in log for word in ("Sanitizer", "runtime error:", "check failed"))


def all_complete(node):
    listed = node.fgw("node", "list")[1]
    return listed["sets_complete"] == listed["sets"] > 0


def wait_for(condition):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.5)


def put_all(proxy, rng, prefix):
    """{key: size} of what every store has a copy of."""
    keys = {}
    for i in range(ROUNDS):
        for size in SIZES:
            key = f"/bucket/{prefix}-{i}-{size}"
            assert proxy.request("PUT", key, rng.randbytes(size)).status == 200
            keys[key] = size
    return keys


def delete_all(proxy, keys):
    for key in keys:
        assert proxy.request("DELETE", key).status == 204


def live(node):
    return node.metrics()["fgw_storage_live_bytes"]


def rows(cassandra, cluster):
    return list(cassandra.session().execute(f"SELECT * FROM {cluster.keyspace}.releases"))


@pytest.mark.full
def test_deleted_and_overwritten_bytes_come_back(pair, rng):
    """Both stores give the files back; what was told leaves no row behind."""
    proxy = pair.proxies[0]
    keys = put_all(proxy, rng, "gone")
    stored = sum(keys.values())
    wait_for(lambda: all(live(node) >= stored for node in pair.nodes))
    full = [disk_bytes(node.folder / "data") for node in pair.nodes]
    names = list(keys)
    for key in names[::2]:
        assert proxy.request("PUT", key, b"small").status == 200
    delete_all(proxy, names[1::2])
    wait_for(lambda: all(live(node) < stored / 50 for node in pair.nodes))
    wait_for(lambda: all(disk_bytes(node.folder / "data") < before - stored / 2
                         for node, before in zip(pair.nodes, full)))
    assert all(proxy.request("GET", key).body == b"small" for key in names[::2])
    assert proxy.metrics()["fgw_cluster_releases_kept_total"] == 0


def test_store_that_was_away_is_told_when_it_is_back(pair, rng, cassandra):
    proxy, away = pair.proxies[0], pair.nodes[1]
    kept, gone = put_all(proxy, rng, "kept"), put_all(proxy, rng, "away")
    wait_for(lambda: all(live(node) >= sum(gone.values()) for node in pair.nodes))
    assert away.stop()
    bodies = {key: proxy.request("GET", key).body for key in kept}
    delete_all(proxy, gone)
    wait_for(lambda: len(rows(cassandra, pair)) == len(gone))
    before = disk_bytes(away.folder / "data")
    away.start().wait_ready(LIMIT_S)
    stored = sum(kept.values())
    wait_for(lambda: away.metrics()["fgw_cluster_releases_followed_total"] == len(gone))
    wait_for(lambda: not rows(cassandra, pair))
    wait_for(lambda: stored <= live(away) < stored * 1.1)
    wait_for(lambda: disk_bytes(away.folder / "data") < before - sum(gone.values()) / 2)
    assert pair.nodes[0].stop()
    assert {key: proxy.request("GET", key).body for key in kept} == bodies
    pair.nodes[0].start().wait_ready(LIMIT_S)


@pytest.mark.full
def test_sweeper_finds_what_nobody_was_told(pair, rng, cassandra):
    """A row that is lost: the holds wait for the sweeper's second look; one too many does no harm."""
    proxy, away = pair.proxies[0], pair.nodes[1]
    gone, named = put_all(proxy, rng, "lost"), put_all(proxy, rng, "named")
    wait_for(lambda: live(away) >= sum(gone.values()) + sum(named.values()))
    assert away.stop()
    delete_all(proxy, gone)
    wait_for(lambda: len(rows(cassandra, pair)) == len(gone))
    cassandra.session().execute(f"TRUNCATE {pair.keyspace}.releases")
    away.start().wait_ready(LIMIT_S)
    code, found = away.fgw("sweep", check=False)
    assert code == 0, found
    assert found["ownerless"] == len(gone), found
    assert found["waiting"] == len(gone), found

"""What happens to a cluster in the course of its life, and is defined (docs/guide/cluster.md, "What can
happen"): a wrong keyspace, clocks that jump, a disk without room, an upgrade node by node, a database
that is away for a minute, a node taken out while it is dead."""
import threading
import time

import botocore.exceptions
import pytest

from cluster import Cluster
from stores import ATTEMPTS, Objects, client, nodes_of, wait_for, wait_state

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
pytestmark = pytest.mark.timeout(400)


@pytest.mark.slow
@pytest.mark.nodes(1)
def test_a_wrong_keyspace_is_refused(small, cassandra, rng):
    objects = Objects(small, rng)
    objects.put(1)
    node = small.nodes[0]
    other = Cluster(small.folder / "other", nodes=1, proxies=0, address=small.address,
                    keyspace=f"{small.keyspace}_b")
    other.lay_out()
    try:
        assert node.stop()
        node.extra = {"FGW_CQL_KEYSPACE": other.keyspace}
        node.start()
        assert node.process.wait(60) == 2
        node.process = None
        assert "belongs to another cluster than" in node.log()
    finally:
        cassandra.drop_keyspace(other.keyspace)
    node.extra = {}
    node.start().wait_ready()
    objects.check()


@pytest.mark.full
def test_clocks_that_jump_change_nothing(small, rng, tmp_path):
    """The wall clocks of a node and of another's whole life, forth and back by days."""
    offset = tmp_path / "offset"
    offset.write_text("+0\n")
    jumps, apart = small.nodes[0], small.nodes[1]
    jumps.extra = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(offset),
                   "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                   "DONT_FAKE_MONOTONIC": "1",
                   "ASAN_OPTIONS": "exitcode=99:detect_leaks=0:verify_asan_link_order=0"}
    apart.extra = {"FGW_TEST_WALL_OFFSET_MS": str(-40 * 24 * 3600 * 1000)}
    for node in (jumps, apart):
        assert node.stop()
        node.start().wait_ready()
    objects = Objects(small, rng)
    objects.put(2)
    for jump in ("+9d", "-9d", "+400d", "+0"):
        offset.write_text(f"{jump}\n")
        time.sleep(2)
        objects.put(1)
        time.sleep(5)  # a heartbeat
    listed = small.proxies[0].fgw("node", "list")[1]
    assert {node["state"] for node in listed["nodes"]} == {"active"}
    assert listed["sets_changing"] == 0
    assert set(objects.copies().values()) == {2}
    objects.check()


@pytest.mark.slow
def test_a_store_without_room_is_passed_over(small, rng):
    objects = Objects(small, rng)
    objects.put(3)
    full = small.nodes[0]
    full.extra = {"FGW_MIN_FREE": "1000TiB"}
    assert full.stop()
    full.start().wait_ready()
    had = objects.on(full)
    assert had > 0
    objects.put(5)
    assert objects.on(full) == had
    assert set(objects.copies().values()) == {2}
    objects.check()
    for key in list(objects.known)[:4]:
        client(small.proxies[1], ATTEMPTS).delete_object(Bucket=objects.bucket, Key=key)
        del objects.known[key]
    full.extra = {}
    assert full.stop()
    full.start().wait_ready()
    known, had = len(objects.known), objects.on(full)
    wait_for(lambda: objects.put(1) or objects.on(full) > had, 120,
             lambda: f"{len(objects.known) - known} more, none there: {nodes_of(small.proxies[0])}")
    objects.check()


@pytest.mark.full
def test_a_disk_that_fills_in_the_middle_of_writes(small, rng):
    objects = Objects(small, rng)
    objects.put(2)
    node = small.nodes[2]
    for writes in (3, 9, 27):
        node.kill()
        node.extra = {"FGW_TEST_FS_FAIL": f"pwrite:{writes}+:ENOSPC"}
        node.start()
        objects.put(4)
        node.kill()
        node.extra = {}
        node.start().wait_ready()
    objects.check()
    wait_for(lambda: set(objects.copies().values()) == {2}, 120, "copies are missing")


@pytest.mark.full
def test_an_upgrade_goes_node_by_node(small, rng):
    """Programs that speak version 1, 1 and 2, 2: two that have one in common work together."""
    objects = Objects(small, rng)

    def restart(member, versions):
        assert member.stop()
        member.extra = {"FGW_TEST_BLOCKAPI_VERSIONS": versions}
        member.start().wait_ready()

    for versions in ("12", "22"):
        for member in small.members:
            restart(member, versions)
            wait_for(lambda: objects.put(1) or True, 60, "writes")
            objects.check()
    # without a version in common a node is one that cannot be reached; nothing is lost
    restart(small.nodes[0], "11")
    objects.put(3)
    objects.check()
    restart(small.nodes[0], "12")
    objects.put(1)
    wait_for(lambda: set(objects.copies().values()) == {2}, 120, "copies are missing")
    objects.check()


class Knocking(threading.Thread):
    """Writes, one after the other, whatever happens; keeps what was acknowledged."""

    def __init__(self, member, objects):
        super().__init__(daemon=True)
        self.s3, self.bucket = client(member), objects.bucket
        self.acknowledged, self.answers, self.end = [], set(), threading.Event()

    def run(self):
        number = 0
        while not self.end.is_set():
            number += 1
            key = f"knock{number}"
            try:
                self.s3.put_object(Bucket=self.bucket, Key=key, Body=key.encode())
                self.acknowledged.append(key)
            except botocore.exceptions.ClientError as error:
                metadata = error.response["ResponseMetadata"]
                self.answers.add((metadata["HTTPStatusCode"],
                                  "retry-after" in metadata["HTTPHeaders"]))
            time.sleep(0.1)


@pytest.mark.full
def test_the_database_is_away_for_a_minute(small, rng):
    objects = Objects(small, rng)
    objects.put(3)
    clients = [Knocking(proxy, objects) for proxy in small.proxies]
    for knocking in clients:
        knocking.start()
    time.sleep(2)
    small.gate.shut()
    time.sleep(65)
    assert all(member.running() for member in small.members)
    assert "database" in str(small.proxies[0].reasons())
    for node in small.nodes:  # said once; a look that began in time may have ended in time
        assert 1 <= node.log().count("epoch cannot be renewed") <= 2, node.log_tail(60)
    small.gate.open()
    for member in small.members:
        member.wait_ready(90)
    before = [len(knocking.acknowledged) for knocking in clients]
    wait_for(lambda: all(len(knocking.acknowledged) > count
                         for knocking, count in zip(clients, before)), 90, "writes go on")
    for knocking in clients:
        knocking.end.set()
        knocking.join(60)
        assert knocking.answers == {(503, True)}
        for key in knocking.acknowledged:
            assert knocking.s3.get_object(Bucket=objects.bucket, Key=key)["Body"].read() == (
                key.encode())
    listed = small.nodes[0].fgw("node", "list")[1]
    assert {node["state"] for node in listed["nodes"]} == {"active"}
    objects.check()


@pytest.mark.full
def test_a_dead_node_is_removed_and_its_copies_made_anew(small, rng):
    objects = Objects(small, rng)
    objects.put(6)
    dead, left = small.nodes[1], [small.nodes[0], small.nodes[2]]
    dead.kill()
    code, text = left[0].fgw("node", "remove", dead.name, check=False)
    assert code == 1 and "Drain it first" in text
    answer = left[0].fgw("node", "remove", dead.name, "--force")[1]
    assert answer["sets_lost"] == 0
    wait_for(lambda: set(objects.copies(left).values()) == {2}, 120, "copies are missing")
    objects.put(2)
    objects.check()
    # nor does it come back by itself
    dead.start()
    assert dead.process.wait(60) == 2
    dead.process = None
    # its directory can, as a new store; its old copies do not count
    dead.fgw("node", "adopt")
    dead.start().wait_ready()
    wait_state(left[0], dead.name, "active")
    objects.check()


@pytest.mark.full
def test_a_cluster_of_one_zone_loses_its_node_while_another_one_drains(small, rng):
    """Two orders at once: what drains goes on giving, what is dead is replaced when there is room."""
    objects = Objects(small, rng)
    objects.put(3)
    fourth = small.add_node().start().wait_ready()
    wait_for(lambda: len(nodes_of(fourth)) == 4, 60, "four nodes")
    small.proxies[0].fgw("node", "drain", "kuri-1")
    small.nodes[1].kill()
    wait_state(small.nodes[2], "kuri-2", "away", 120)
    wait_state(small.nodes[2], "kuri-1", "drained", 180)
    wait_for(lambda: set(objects.copies([small.nodes[2], fourth]).values()) == {2}, 120, "copies")
    objects.check()
    small.nodes[1].start().wait_ready()


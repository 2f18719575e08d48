"""Reads while a store is slow or wrong: the client sees neither."""
import time

import pytest

MIB = 1024 * 1024


@pytest.mark.full  # on a busy machine the usual latency hides the stall
def test_a_store_that_stalls_costs_a_read_little(cluster, bucket, rng):
    proxy = cluster.proxies[0]
    bodies = [rng.randbytes(20000) for _ in range(24)]
    for number, body in enumerate(bodies):
        assert proxy.request("PUT", f"/{bucket}/{number}", body).status == 200
    for number in range(24):  # known latencies
        assert proxy.request("GET", f"/{bucket}/{number}").status == 200
    time.sleep(3)  # nobody is suspect
    before = proxy.metrics()["fgw_blobs_reads_hedged_total"]
    slowest = 0.0
    cluster.nodes[0].pause()
    try:
        for number, body in enumerate(bodies):
            began = time.monotonic()
            got = proxy.request("GET", f"/{bucket}/{number}")
            slowest = max(slowest, time.monotonic() - began)
            assert got.status == 200 and got.body == body
    finally:
        cluster.nodes[0].resume()
    assert proxy.metrics()["fgw_blobs_reads_hedged_total"] > before
    assert slowest < 3.9  # never twice the 2 s after which a store counts as gone


def flip(folder, needle):
    """Changes one byte where `needle` lies in a group file below the folder."""
    for path in sorted((folder / "data" / "groups").glob("*.car")):
        at = path.read_bytes().find(needle)
        if at >= 0:
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(bytes([needle[0] ^ 1]))
            return True
    return False


def test_a_flipped_byte_is_mended_on_disk(cluster, bucket, rng):
    body = rng.randbytes(3 * MIB + 1)
    assert cluster.proxies[0].request("PUT", f"/{bucket}/k", body).status == 200
    needle = body[MIB + 100:MIB + 164]
    damaged = [node for node in cluster.nodes if flip(node.folder, needle)][:1]
    assert damaged
    node = damaged[0]
    # the other holder keeps its copy: put back what was flipped there
    for other in cluster.nodes:
        if other is not node:
            flip_back(other.folder, needle)
    def mended():
        return sum(member.metrics()["fgw_blobs_blocks_mended_total"] for member in cluster.members)
    before = mended()
    end = time.monotonic() + 20
    while mended() == before:
        assert time.monotonic() < end
        for member in cluster.members:  # the node itself reads its own store first
            got = member.request("GET", f"/{bucket}/k")
            assert got.status == 200 and got.body == body
        time.sleep(0.2)
    assert any(needle in path.read_bytes()
               for path in (node.folder / "data" / "groups").glob("*.car"))
    got = node.request("GET", f"/{bucket}/k")
    assert got.status == 200 and got.body == body


def flip_back(folder, needle):
    flipped = bytes([needle[0] ^ 1]) + needle[1:]
    for path in (folder / "data" / "groups").glob("*.car"):
        at = path.read_bytes().find(flipped)
        if at >= 0:
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(needle[:1])

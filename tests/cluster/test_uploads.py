"""A storage node that is killed or stopped in the middle of a body: the client sees 200, and as many
copies as a write needs have all bytes."""
import hashlib
import http.client
import xml.etree.ElementTree

import pytest

import cluster as cluster_module
import sigv4

MIB = 1024 * 1024
BIG = 64 * MIB
PIECE = 256 * 1024


def put(member, target, body, at=None, then=None):
    """PUTs the body; calls `then` when `at` bytes are sent. (status, headers, body)"""
    signer = sigv4.Signer(cluster_module.ACCESS_KEY, cluster_module.SECRET_KEY,
                          region=cluster_module.REGION)
    headers = signer.headers("PUT", target, [("Host", f"127.0.0.1:{member.port}"),
                                             ("Content-Length", str(len(body)))], sigv4.UNSIGNED)
    connection = http.client.HTTPConnection("127.0.0.1", member.port, timeout=60)
    try:
        connection.putrequest("PUT", target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        for offset in range(0, len(body), PIECE):
            if at is not None and offset <= at < offset + PIECE:
                then()
            connection.send(body[offset:offset + PIECE])
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def read_back(member, target, body):
    got = member.request("GET", target)
    assert got.status == 200, got
    assert hashlib.sha256(got.body).digest() == hashlib.sha256(body).digest()


def copies_are_whole(cluster, target, body, gone):
    """With `gone` away, each of the other two nodes alone gives all bytes."""
    others = [node for node in cluster.nodes if node is not gone]
    for away in others:
        away.pause()
        try:
            read_back(cluster.proxies[1], target, body)
        finally:
            away.resume()


@pytest.mark.parametrize("how", ["kill", "pause"])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_node_is_lost_in_the_middle_of_a_put(cluster, bucket, rng, how, index):
    node = cluster.nodes[index]
    body = rng.randbytes(BIG)
    at = rng.randrange(BIG)
    before = cluster.proxies[0].metrics()
    try:
        status, _, text = put(cluster.proxies[0], f"/{bucket}/big", body, at, getattr(node, how))
        assert status == 200, (at, text)
        after = cluster.proxies[0].metrics()
        failed = "fgw_blobs_writes_failed_total"
        assert after[failed] == before[failed]
        copies_are_whole(cluster, f"/{bucket}/big", body, node)
    finally:
        if how == "pause":
            node.resume()
        else:
            node.start().wait_ready()
    read_back(cluster.proxies[1], f"/{bucket}/big", body)


def test_a_write_moves_to_another_set(cluster, bucket, rng):
    """Which set a write begins in is drawn: repeated until a member of it was the one that died. Up to
    10 MiB lie in the sockets before the proxy has seen any: the store dies behind them."""
    def moved():
        return cluster.proxies[0].metrics()["fgw_blobs_restages_total"]
    before = moved()
    for turn in range(12):
        node = cluster.nodes[turn % 3]
        body = rng.randbytes(32 * MIB)
        status, _, text = put(cluster.proxies[0], f"/{bucket}/k", body, 20 * MIB, node.kill)
        assert status == 200, text
        read_back(cluster.proxies[1], f"/{bucket}/k", body)
        node.start().wait_ready()
        if moved() > before:
            return
    pytest.fail("no write moved")


def test_nodes_are_lost_in_the_middle_of_parts(cluster, bucket, rng):
    proxy = cluster.proxies[0]
    target = f"/{bucket}/parts"
    begun = proxy.request("POST", f"{target}?uploads")
    assert begun.status == 200, begun
    upload = xml.etree.ElementTree.fromstring(begun.body).findtext("{*}UploadId")
    parts, tags = [], []
    for number, (node, how) in enumerate(zip(cluster.nodes, ("kill", "pause", "kill")), 1):
        part = rng.randbytes(9 * MIB + rng.randrange(MIB))
        try:
            status, headers, text = put(proxy, f"{target}?partNumber={number}&uploadId={upload}",
                                        part, rng.randrange(len(part)), getattr(node, how))
            assert status == 200, text
        finally:
            if how == "pause":
                node.resume()
            else:
                node.start().wait_ready()
        parts.append(part)
        tags.append(headers["ETag"])
    listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
                     for number, tag in enumerate(tags, 1))
    done = proxy.request("POST", f"{target}?uploadId={upload}",
                         f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode())
    assert done.status == 200 and b"<Error>" not in done.body, done
    for reader in cluster.proxies:
        read_back(reader, target, b"".join(parts))

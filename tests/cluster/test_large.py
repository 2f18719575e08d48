"""1 GiB through a proxy while a storage node is killed in the middle: all bytes, whoever dies. Each
test prints how long the client waited for the piece that took longest (-s shows it)."""
import hashlib
import http.client
import time

import pytest

import cluster as cluster_module
import sigv4

MIB = 1024 * 1024
PIECES = 1024

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]  # gigabytes


class Body:
    """1 GiB, no two MiB the same, made piece by piece."""

    def __init__(self, rng):
        self.rest = rng.randbytes(MIB - 8)

    def __iter__(self):
        for number in range(PIECES):
            yield number.to_bytes(8, "big") + self.rest

    def digest(self):
        digest = hashlib.sha256()
        for piece in self:
            digest.update(piece)
        return digest.digest()


class Transfer:
    """One request whose pieces are timed; `then` is called at piece `at`."""

    def __init__(self, member, method, target, length=0):
        signer = sigv4.Signer(cluster_module.ACCESS_KEY, cluster_module.SECRET_KEY,
                              region=cluster_module.REGION)
        headers = signer.headers(method, target, [("Host", f"127.0.0.1:{member.port}"),
                                                  ("Content-Length", str(length))],
                                 sigv4.UNSIGNED)
        self.connection = http.client.HTTPConnection("127.0.0.1", member.port, timeout=120)
        self.connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            self.connection.putheader(name, value)
        self.connection.endheaders()
        self.longest_s = 0.0

    def timed(self, work, *arguments):
        began = time.monotonic()
        result = work(*arguments)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        return result

    def put(self, body, at=None, then=None):
        for number, piece in enumerate(body):
            if number == at:
                then()
            self.timed(self.connection.send, piece)
        answer = self.timed(self.connection.getresponse)
        text = answer.read()
        self.connection.close()
        return answer.status, text

    def get(self, at=None, then=None):
        """(status, SHA-256, bytes)"""
        answer = self.connection.getresponse()
        digest, number, size = hashlib.sha256(), 0, 0
        while True:
            if number == at:
                then()
            piece = self.timed(answer.read, MIB)
            if not piece:
                break
            digest.update(piece)
            number += 1
            size += len(piece)
        self.connection.close()
        return answer.status, digest.digest(), size


def sum_of(cluster, name):
    return sum(proxy.metrics()[name] for proxy in cluster.proxies)


def test_a_get_of_a_gibibyte_loses_no_byte(cluster, bucket, rng):
    body = Body(rng)
    target = f"/{bucket}/object"
    assert Transfer(cluster.proxies[0], "PUT", target, PIECES * MIB).put(body)[0] == 200
    wanted = body.digest()
    before = sum_of(cluster, "fgw_blobs_read_failovers_total")
    for node in cluster.nodes:  # one of them is the one that is read from
        began = time.monotonic()
        get = Transfer(cluster.proxies[1], "GET", target)
        status, digest, size = get.get(rng.randrange(64, PIECES - 64), node.kill)
        print(f"\nGET of 1 GiB, {node.name} killed: {time.monotonic() - began:.2f} s, "
              f"longest wait {get.longest_s:.2f} s")
        assert (status, size) == (200, PIECES * MIB)
        assert digest == wanted
        node.start().wait_ready()
    assert sum_of(cluster, "fgw_blobs_read_failovers_total") > before


def test_a_put_of_a_gibibyte_is_acknowledged(cluster, bucket, rng):
    """Which stores a write goes to is drawn: until one of them was the one that died. Both copies are
    needed with three stores, so that the write goes on in another set."""
    body = Body(rng)
    wanted = body.digest()
    before = sum_of(cluster, "fgw_blobs_restages_total")
    for turn in range(6):
        node = cluster.nodes[turn % 3]
        target = f"/{bucket}/{turn}"
        began = time.monotonic()
        put = Transfer(cluster.proxies[0], "PUT", target, PIECES * MIB)
        status, text = put.put(body, rng.randrange(64, PIECES - 64), node.kill)
        print(f"\nPUT of 1 GiB, {node.name} killed: {time.monotonic() - began:.2f} s, "
              f"longest wait {put.longest_s:.2f} s")
        assert status == 200, text
        get = Transfer(cluster.proxies[1], "GET", target)
        assert get.get() == (200, wanted, PIECES * MIB)
        node.start().wait_ready()
        if sum_of(cluster, "fgw_blobs_restages_total") > before:
            return
    pytest.fail("no write lost a store")

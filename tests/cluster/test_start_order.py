"""Any order of starting will do: each process says on /readyz and in its log what it waits for, once a
change, answers 503 meanwhile, and comes up by itself."""
import collections
import re
import uuid

import pytest

from cluster import Cluster
from gate import Gate
from stores import wait_for

LIMIT_S = 120
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(name="asleep")
def make_asleep(cassandra, tmp_path):
    """Nothing runs; the way to the database is shut, and it has no tables."""
    gate = Gate(cassandra.address)
    keyspace = f"fgw_test_{uuid.uuid4().hex[:16]}"
    made = Cluster(tmp_path, nodes=1, proxies=1, address=gate.address, keyspace=keyspace)
    made.gate = gate
    gate.shut()
    try:
        yield made
        assert made.stop() == []
    finally:
        made.kill()
        gate.close()
        cassandra.drop_keyspace(keyspace)


def waits_for(member, what, says):
    """Not ready because of `what`, on /readyz and in the log."""
    def reason():
        try:
            return next((one for one in member.reasons() if one["what"] == what), None)
        except OSError:
            return None
    wait_for(lambda: (reason() or {"why": ""})["why"].find(says) >= 0, LIMIT_S,
             lambda: f"{member.name} does not say that it waits for {what}: {member.log_tail()}")
    assert reason()["since_ms"] >= 0
    assert re.search(rf"not ready: {what}: .*{re.escape(says)}", member.log())
    assert not member.ready()


def refuses(member):
    """Requests are told to come again."""
    refused = member.request("GET", "/")
    assert refused.status == 503 and int(refused.headers["Retry-After"]) > 0


def check_log(member):
    """A line a change: what was said last of a thing is not said of it again."""
    said = collections.defaultdict(str)
    for line in member.log().splitlines():
        found = re.search(r"health: (?:not ready: )?(\w+)(?::| is) (.*)", line)
        if found:
            assert said[found[1]] != found[2], member.log_tail(60)
            said[found[1]] = found[2]
    assert said["engine"].startswith("good again after"), member.log_tail(60)


def start_first(cluster, member):
    """What it waits for one after the other, until the tables are there."""
    member.start()
    waits_for(member, "database", "127.0.0.1")
    cluster.gate.open()
    waits_for(member, "migrations", "db-init")
    refuses(member)
    cluster.lay_out()


def test_the_proxy_is_first(asleep, rng):
    proxy, node = asleep.proxies[0], asleep.nodes[0]
    start_first(asleep, proxy)
    waits_for(proxy, "stores", "no storage node has joined the cluster yet")
    node.start()
    body = rng.randbytes(100_000)
    for member in (proxy.wait_ready(LIMIT_S), node.wait_ready(LIMIT_S)):
        wait_for(lambda: member.request("PUT", "/bucket").status in (200, 409), LIMIT_S, "a bucket")
        assert member.request("PUT", f"/bucket/{member.name}", body).status == 200
    assert node.request("GET", f"/bucket/{proxy.name}").body == body
    check_log(proxy)
    check_log(node)


def test_the_node_is_first(asleep):
    proxy, node = asleep.proxies[0], asleep.nodes[0]
    start_first(asleep, node)
    node.wait_ready(LIMIT_S)
    # with nobody to talk to it serves by itself
    wait_for(lambda: node.request("PUT", "/bucket").status == 200, LIMIT_S, "a bucket")
    proxy.start().wait_ready(LIMIT_S)
    assert proxy.request("PUT", "/bucket/object", b"body").status == 200
    check_log(node)
    check_log(proxy)

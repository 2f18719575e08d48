"""Fixtures of the cluster tests: those of tests/lib/fixtures.py, and a cluster.

cluster         three storage nodes and two proxies, shared by a module; whole again for each test
bucket          one of the test's own in `cluster`, known to all proxies
small           a cluster of its own for each test: two proxies and as many nodes as it is marked with
"""
import hashlib
import os
import sys
import uuid

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from fixtures import *  # noqa: E402,F401,F403
from fixtures import remember  # noqa: E402
from cluster import Cluster  # noqa: E402
from gate import Gate  # noqa: E402
from stores import SETTINGS, settled, wait_for  # noqa: E402


@pytest.fixture(scope="module")
def module_cluster(cassandra, tmp_path_factory):
    """`gate` lies between all processes and the database."""
    keyspace = f"fgw_test_{uuid.uuid4().hex[:16]}"
    gate = Gate(cassandra.address)
    started = Cluster(tmp_path_factory.mktemp("cluster"), address=cassandra.address,
                      keyspace=keyspace)
    started.lay_out()
    started.address, started.gate = gate.address, gate
    try:
        started.start()
        yield started
        assert started.stop() == []
    finally:
        started.kill()
        gate.close()
        cassandra.drop_keyspace(keyspace)


@pytest.fixture
def cluster(request, module_cluster):
    module_cluster.gate.open()
    for member in module_cluster.members:
        if not member.running():
            member.start()
    for member in module_cluster.members:
        member.wait_ready()
    module_cluster.wait_settled()
    for member in module_cluster.members:
        remember(request, member)
    yield module_cluster
    for member in module_cluster.members:
        log = member.log_path.read_text(encoding="utf-8", errors="replace")
        for word in ("Sanitizer", "runtime error:", "check failed"):
            assert word not in log, member.log_tail(80)


@pytest.fixture
def small(request, cassandra, tmp_path):
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


@pytest.fixture
def bucket(cluster, request):
    """A bucket of the test's own that all proxies know."""
    name = "b-" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20]
    assert cluster.proxies[0].request("PUT", f"/{name}").status == 200
    for proxy in cluster.proxies:
        for _ in range(50):
            if proxy.request("GET", f"/{name}?location").status == 200:
                break
    return name

"""FGW on databases that are not one open node: a ring of two real Cassandras, and one that asks for a
password and speaks nothing but TLS. Schema, metadata contract, S3; a node goes and comes back."""
import pathlib
import re
import subprocess
import time
import urllib.request

import pytest

import cassandra_fixture
import cassandra_server
import fgw_server
from migration_world import LAST, finish_all, start_all
from test_database_away import BUCKET, serving, wait_until_all_pass

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1200)]
CONTRACT = pathlib.Path(fgw_server.binary()).parent / "tests/contract/meta/contract_meta_cql"


class Keyspace:
    """What start_all() needs of a world."""

    def __init__(self, **env):
        self.env = {"FGW_CQL_KEYSPACE": "fgw_kinds", "FGW_CQL_NODE_KEYSPACE": "none", **env}

    def run(self, *arguments, expect=0):
        done = fgw_server.run_fgw(*arguments, env=self.env, timeout=300)
        assert done.returncode == expect, (arguments, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    cassandra_fixture.skip_if_unavailable()
    hosts = ("127.0.0.1", "127.0.0.2")
    port, storage_port = (cassandra_server.free_port(hosts[1]) for _ in range(2))
    nodes = [cassandra_server.Cassandra(tmp_path_factory.mktemp("ring"), host, port, storage_port,
                                        f"{hosts[0]}:{storage_port}", heap_mib=384, durable=True)
             for host in hosts]
    try:
        for node in nodes:
            node.start()
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def used_nodes(server):
    """Addresses that requests were sent to."""
    url = f"http://{server.host}:{server.ops_port}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return {node for node, count in re.findall(
        r'^fgw_cql_node_requests_total\{node="(.*)"\} (\d+)$', text, re.MULTILINE) if int(count) > 0}


def test_ring_of_two(ring, tmp_path):
    """Starters on both nodes at once: one does the work, the schema is one everywhere; a write needs both
    copies; with a node away 503, afterwards all that was acknowledged is there."""
    worlds = [Keyspace(FGW_CQL_HOSTS=node.address, FGW_CQL_REPLICATION="SimpleStrategy:2")
              for node in ring]
    codes, texts = finish_all([process for world in worlds for process in
                               start_all(world, 3, "db-init")])
    assert codes == [0] * 6, texts
    assert sum("  applied " in text for text in texts) == 1
    for world in worlds:
        assert f"version {LAST}" in world.run("migrate", "verify", "--keyspace", "fgw_kinds")
    contract = subprocess.run([str(CONTRACT)], stdin=subprocess.DEVNULL, env={
        **fgw_server.clean_environment(), "FGW_TEST_CQL_HOSTS": ring[0].address},
        capture_output=True, text=True, timeout=600, check=False)
    assert contract.returncode == 0, contract.stderr[-3000:]

    server = serving(ring[0].address, tmp_path, FGW_CQL_REPLICATION="SimpleStrategy:2")
    try:
        wait_until_all_pass(server)
        for i in range(20):
            assert server.raw("PUT", f"/{BUCKET}/key-{i}", body=b"%d" % i).status == 200
        assert used_nodes(server) == {node.address for node in ring}
        ring[1].kill()
        end = time.monotonic() + 100
        while server.raw("PUT", f"/{BUCKET}/away", body=b"x").status != 503:
            assert time.monotonic() < end
        ring[1].start()
        wait_until_all_pass(server, 200)
        for i in range(20):
            answer = server.raw("GET", f"/{BUCKET}/key-{i}")
            assert (answer.status, answer.body) == (200, b"%d" % i)
        server.check()
    finally:
        server.stop()


def test_password_and_tls_only(tmp_path):
    cassandra_fixture.skip_if_unavailable()
    with cassandra_server.Cassandra(tmp_path / "db", auth=True, tls="only") as database:
        secured = {"FGW_CQL_USER": "cassandra", "FGW_CQL_PASSWORD": "cassandra",
                   "FGW_CQL_TLS_CA": str(database.folder / "tls" / "ca.crt")}
        world = Keyspace(FGW_CQL_HOSTS=f"localhost:{database.port}", **secured)
        world.run("db-init")
        assert f"version {LAST}" in world.run("migrate", "verify", "--keyspace", "fgw_kinds")
        server = serving(f"localhost:{database.port}", tmp_path / "s", **secured)
        try:
            assert server.raw("PUT", f"/{BUCKET}/k", body=b"x").status == 200
            assert server.raw("GET", f"/{BUCKET}/k").body == b"x"
            server.check()
        finally:
            server.stop()
        del world.env["FGW_CQL_TLS_CA"]
        done = fgw_server.run_fgw("migrate", "status", env=world.env, timeout=300)
        assert done.returncode != 0
        assert "expects TLS" in done.stdout + done.stderr

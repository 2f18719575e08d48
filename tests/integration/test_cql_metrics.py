"""What /metrics tells of the database (fgw_cql_*): every name that docs/guide/database.md lists, and that
the figures move with what happens."""
import pathlib
import re
import time
import urllib.request

import pytest

import ycql_proxy

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "database.md"


def samples(server):
    url = f"http://{server.host}:{server.ops_port}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        text = answer.read().decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if line.startswith("fgw_cql_")}


def wait_for(server, condition, limit_s=90):
    """Figures are noted once a second."""
    end = time.monotonic() + limit_s
    while not condition(samples(server)):
        assert time.monotonic() < end, samples(server)
        time.sleep(0.3)
    return samples(server)


def test_figures_of_a_database(server_factory):
    server = server_factory(form="cql")
    client = server.client()
    client.create_bucket(Bucket="bucket")
    for number in range(5):
        client.put_object(Bucket="bucket", Key=str(number), Body=b"x")
    client.list_objects_v2(Bucket="bucket")
    found = wait_for(server, lambda now: now['fgw_cql_requests_total{kind="conditional"}'] >= 6)
    documented = set(re.findall(r"fgw_cql_[a-z_]+", GUIDE.read_text(encoding="utf-8")))
    names = {re.sub(r"_(bucket|sum|count)$", "", re.sub(r"\{.*", "", name)) for name in found}
    assert names == documented
    assert found['fgw_cql_requests_total{kind="read"}'] > 64
    assert found['fgw_cql_requests_total{kind="prepare"}'] > 3
    assert found['fgw_cql_requests_total{kind="ddl"}'] > 3  # its own db-init
    assert found["fgw_cql_call_duration_seconds_count"] > 70
    assert found['fgw_cql_call_duration_seconds_bucket{le="+Inf"}'] == \
        found["fgw_cql_call_duration_seconds_count"]
    assert found["fgw_cql_connects_total"] > 0
    nodes = [name for name in found if name.startswith("fgw_cql_node_connections{")]
    assert len(nodes) == 1 and found[nodes[0]] > 0
    assert found[nodes[0].replace("connections", "circuit")] == 0
    server.stop()


@pytest.mark.full
@pytest.mark.timeout(300)
def test_circuit_of_a_node_that_hangs(cassandra, server_factory, rng):
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        server = server_factory(form="cql", settings={"FGW_CQL_HOSTS": proxy.address,
                                                      "FGW_CQL_TIMEOUT": "1s"})
        server.client().create_bucket(Bucket="bucket")
        circuit = f'fgw_cql_node_circuit{{node="{proxy.address}"}}'
        wait_for(server, lambda now: now[circuit] == 0)
        proxy.hang()
        deadline = time.monotonic() + 90
        while samples(server)[circuit] == 0:
            assert time.monotonic() < deadline
            server.raw("PUT", "/bucket/key", body=b"x")
        assert wait_for(server, lambda now: now["fgw_cql_timeouts_total"] >= 5)[
            "fgw_cql_call_failures_total"] > 0
        proxy.resume()
        wait_for(server, lambda now: now[circuit] == 0)
        assert server.raw("PUT", "/bucket/key", body=b"x").status == 200
        server.stop()

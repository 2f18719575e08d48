"""src/cql with more than one node, as proxies in front of one Cassandra show them: discovery, addresses
nobody can reach, a node that goes, hangs or answers late."""
import time

import pytest

import ycql_proxy
from test_cql_client import load, run

pytestmark = pytest.mark.slow


@pytest.fixture
def proxy_of(cassandra, rng):
    made = []

    def make(**options):
        made.append(ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31), **options))
        return made[-1].start()

    yield make
    for proxy in made:
        proxy.close()
        assert proxy.violations == []


class First:
    """What load() takes for a server: the first node alone is the contact point."""

    def __init__(self, proxy):
        self.address = proxy.address.split(",")[0]


def nothing():
    pass


@pytest.mark.parametrize("scenario", ["types", "lwt", "paging", "alter", "errors", "pin"])
def test_scenario_through_the_proxy(proxy_of, scenario):
    proxy = proxy_of(rates={"prefix": 500, "event": 100, "bytewise": 50})
    run(proxy.address, scenario)
    assert proxy.counts["prefix"] > 0


def test_second_node_is_found_and_used(proxy_of):
    proxy = proxy_of(nodes=2, announced=["10.255.255.1"])
    figures = load(First(proxy), 6, nothing)
    assert figures["missing"] == 0
    assert set(figures["results"]) == {"OK"}
    requests = [figures["nodes"][f"{host}:{proxy.port}"]["requests"] for host in proxy.hosts]
    assert min(requests) > max(requests) / 3
    # an address that only the servers themselves can reach costs nothing
    assert not figures["nodes"][f"10.255.255.1:{proxy.port}"]["up"]
    assert figures["longest_ms"] < 3000


def test_a_node_goes_and_comes_back(proxy_of):
    proxy = proxy_of(nodes=2)

    def disturb():
        proxy.shut(1)
        time.sleep(3)
        proxy.open(1)

    figures = load(First(proxy), 12, disturb)
    assert figures["missing"] == 0
    # what was under way on it without an answer; everything else went to the other node
    assert set(figures["results"]) <= {"OK", "UNKNOWN_OUTCOME"}
    assert figures["results"].get("UNKNOWN_OUTCOME", 0) < 50
    assert figures["longest_gap_ms"] < 2000
    assert figures["nodes"][f"{proxy.hosts[1]}:{proxy.port}"]["up"]


@pytest.mark.full
def test_a_node_hangs(proxy_of):
    """Its breaker opens: after the first ones that waited, requests go to the other node."""
    proxy = proxy_of(nodes=2)

    def disturb():
        proxy.hang(1)
        time.sleep(8)
        proxy.resume(1)

    figures = load(First(proxy), 16, disturb, "--timeout-ms", 3000)
    assert figures["missing"] == 0
    assert set(figures["results"]) <= {"OK", "UNKNOWN_OUTCOME", "TIMEOUT"}
    failed = sum(count for err, count in figures["results"].items() if err != "OK")
    assert failed < figures["results"]["OK"] / 10
    assert figures["longest_ms"] < 4500
    assert figures["last_ok_ms"] > 15000


@pytest.mark.full
def test_late_answers_reach_nobody(proxy_of):
    """Answers that come after the time-out are dropped, whatever the stream is used for by then."""
    proxy = proxy_of(rates={"slow": 30})
    proxy.slow_ms = 1500

    def disturb():
        time.sleep(6)
        proxy.set_rates()

    figures = load(First(proxy), 12, disturb, "--timeout-ms", 700)
    assert proxy.counts["slow"] > 10
    assert figures["late"] > 0
    assert figures["timeouts"] >= figures["late"]
    assert figures["missing"] == 0
    assert set(figures["results"]) <= {"OK", "UNKNOWN_OUTCOME", "TIMEOUT", "UNAVAILABLE"}

"""The tests of test_migrations.py once more, with the answers of YugabyteDB (tests/lib/ycql_proxy.py)
between FGW and the database; nothing outside the common subset may be sent."""
import pytest

import ycql_proxy
from migration_world import World, migrated  # noqa: F401
from test_migrations import *  # noqa: F401,F403

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(900)]

# statements without an outcome, and DDL that is hit: test_ycql.py
SHAPES = {"unprepared": 10, "hidden_retry": 10, "short_page": 60, "empty_page": 80, "prefix": 30,
          "event": 20, "bytewise": 5, "stale_table": 100, "stale_catalog": 150}


@pytest.fixture(scope="module")
def weather(cassandra):
    with ycql_proxy.YcqlProxy(cassandra.address, 1, SHAPES) as proxy:
        yield proxy
        assert proxy.counts["ddl"] > 0


@pytest.fixture(autouse=True)
def lawful(weather):
    yield
    assert weather.violations == []


@pytest.fixture
def world(cassandra, weather):
    made = World(cassandra, weather.address)
    yield made
    made.close()


@pytest.fixture(scope="module")
def migrated_world(cassandra, weather):
    made = World(cassandra, weather.address)
    made.run("db-init")
    yield made
    made.close()

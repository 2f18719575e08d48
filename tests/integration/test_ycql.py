"""FGW against what YugabyteDB's YCQL does differently from Cassandra, as far as a proxy can show it
(tests/lib/ycql_proxy.py): the migration engine, the metadata contract, the client. Each test asserts
that its faults happened and that FGW sent nothing outside the common subset."""
import pathlib
import random
import subprocess

import pytest

import fgw_server
import ycql_proxy
from migration_world import (LAST, MULTIHASH, OBJECTS, UPLOADS_OF_INIT, World, finish_all, start_all)

pytestmark = pytest.mark.slow

BUILD = pathlib.Path(fgw_server.binary()).parent
CONTRACT = BUILD / "tests/contract/meta/contract_meta_cql"
ROUGH = {**ycql_proxy.USUAL, "unprepared": 30, "overloaded": 20, "timeout_before": 30,
         "timeout_after": 30, "timeout_late": 20, "hidden_retry": 60, "cut": 2}


@pytest.fixture
def proxy(cassandra, rng):
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as made:
        yield made
    assert made.violations == []


@pytest.fixture
def world(cassandra, proxy):
    made = World(cassandra, proxy.address)
    yield made
    proxy.set_rates()
    made.close()


def contract(proxy, *cases, timeout=240):
    environment = {**fgw_server.clean_environment(), "FGW_TEST_CQL_HOSTS": proxy.address,
                   "FGW_TEST_LOST_ANSWERS": "1"}
    done = subprocess.run([str(CONTRACT), *cases], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stderr


# -- migrations ---------------------------------------------------------------------------------

def converge(world, *arguments, attempts=4):
    """Runs it until it is done; what fails before must be retryable and name the keyspace."""
    for _ in range(attempts):
        done = fgw_server.run_fgw(*arguments, env=world.env, timeout=200)
        if done.returncode == 0:
            return done
        assert done.returncode in (6, 7), (done.stdout, done.stderr)
        assert world.shared in done.stdout + done.stderr
    raise AssertionError((done.stdout, done.stderr))


def check_finished(world, proxy):
    proxy.set_rates()
    world.verify()
    document = world.json("db-init")
    assert [keyspace["applied"] for keyspace in document["keyspaces"]] == [0]
    assert world.mirror() == [(LAST, False)]


def test_fresh_database(world, proxy):
    """Nothing goes wrong: the shapes of answers alone."""
    world.run("db-init")
    check_finished(world, proxy)
    assert proxy.counts["ddl"] > 20


def test_fresh_database_in_rough_weather(world, proxy):
    proxy.spare_ddl = True  # a DDL statement without an outcome is waited for: below
    proxy.set_rates(**ROUGH)
    converge(world, "db-init")
    check_finished(world, proxy)
    assert proxy.counts["timeout_before"] + proxy.counts["timeout_after"] > 0
    assert proxy.counts["empty_page"] + proxy.counts["short_page"] > 0
    assert proxy.counts["overloaded"] + proxy.counts["stale_catalog"] > 0


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(6))
def test_fresh_database_in_many_weathers(world, proxy, seed):
    """DDL is hit too: what stays without an outcome is sent again once it cannot come any more."""
    proxy.random = random.Random(seed)
    proxy.set_rates(**ROUGH)
    converge(world, "db-init", "--timeout", "1s", attempts=8)
    check_finished(world, proxy)


LOCK, JOURNAL = r"UPDATE \S*fgw_schema_lock SET owner", r"INSERT INTO \S*fgw_schema_journal"
RECORDS = [LOCK, JOURNAL, r"UPDATE \S*fgw_schema_journal", r"fgw_schema_state \(id",
           r"INSERT INTO \S*schema_migrations"]
DDL = [r"CREATE KEYSPACE", r"CREATE TABLE \S*\.buckets\b", r"ALTER TABLE \S*multipartuploads ADD rev"]


@pytest.mark.parametrize("fault", ["timeout_after",
                                   pytest.param("timeout_before", marks=pytest.mark.full),
                                   pytest.param("timeout_late", marks=pytest.mark.full)])
def test_answer_lost(world, proxy, fault):
    """Applied, not applied, or applied later: one run does it all (rows 10 and 11)."""
    statements = RECORDS + (DDL if fault == "timeout_after" else [])
    for statement in statements:
        proxy.arm(fault, 1, statement)
    world.run("db-init")
    assert proxy.counts[fault] == len(statements)
    check_finished(world, proxy)


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", ["timeout_before", "timeout_late"])
@pytest.mark.parametrize("statement", DDL)
def test_ddl_lost(world, proxy, fault, statement):
    """Row 12: it shows up a second later, or never and is sent again."""
    proxy.late_ms = 1000
    proxy.arm(fault, 1, statement)
    world.run("db-init", "--timeout", "1s", timeout=200)
    assert proxy.counts[fault] == 1
    check_finished(world, proxy)


def test_conditional_write_repeated_by_the_server(world, proxy):
    """applied = false for what was applied (row 10)."""
    for statement in (*RECORDS, r"INSERT INTO \S*fgw_schema_lock"):
        proxy.arm("hidden_retry", 2, statement)
    world.run("db-init")
    assert proxy.counts["hidden_retry"] >= 6
    check_finished(world, proxy)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_pages_end_anywhere(world, proxy):
    """Rows of golang-migrate's table that come in a later page are seen too."""
    world.run("db-init")
    for version in (42, 43, 44, 45, 1754293669, 1756300000):
        world.cql(f"INSERT INTO {{k}}.schema_migrations (version, dirty) VALUES ({version}, true)")
    proxy.set_rates(short_page=1000)
    world.run("db-init")
    assert world.mirror() == [(LAST, False)]
    check_finished(world, proxy)


@pytest.mark.full
def test_catalog_lags(world, proxy):
    """Each look at the catalog right after DDL shows what was before (rows 12 and 14)."""
    proxy.stale_ms = 1200
    proxy.set_rates(stale_catalog=700, stale_table=300)
    world.run("db-init", timeout=200)
    assert proxy.counts["stale_catalog"] > 5
    check_finished(world, proxy)


@pytest.mark.full
def test_duplicate_told_by_number_only(world, proxy):
    """-202 within 0x2200 for a table of another shape is a conflict, not success."""
    world.database.create_keyspace(world.shared)
    world.cql(UPLOADS_OF_INIT)
    done = world.run("db-init", expect=10)
    assert "FGW-MIG-031" in done.stdout
    world.run("migrate", "repair", "--apply", "--allow-drop-empty", "--keyspace", world.shared)
    world.run("db-init")
    check_finished(world, proxy)


@pytest.mark.full
def test_old_dirty_database(world, proxy):
    world.legacy([MULTIHASH, OBJECTS], 1754293669, True)
    proxy.spare_ddl = True
    proxy.set_rates(**ycql_proxy.USUAL)
    converge(world, "migrate", "up", "--keyspace", world.shared)
    proxy.set_rates()
    world.verify()


@pytest.mark.full
@pytest.mark.timeout(400)
def test_four_at_once(world, proxy):
    proxy.spare_ddl = True
    proxy.set_rates(**ycql_proxy.USUAL)
    codes, said = finish_all(start_all(world, 4, "db-init"), timeout=350)
    assert set(codes) <= {0, 6, 7, 8}, said
    assert 0 in codes, said
    converge(world, "db-init")
    check_finished(world, proxy)


@pytest.mark.full
def test_replication_by_data_center(world, proxy):
    world.env["FGW_CQL_REPLICATION"] = "NetworkTopologyStrategy:datacenter1=1"
    world.run("db-init")
    check_finished(world, proxy)
    assert proxy.counts["replication_refused"] == 0


# -- the metadata backend -----------------------------------------------------------------------

def test_metadata_contract(proxy):
    proxy.spare_ddl = True
    proxy.set_rates(**ycql_proxy.USUAL)
    contract(proxy, "u", timeout=110)
    assert {"empty_page", "short_page", "lwt_projected"} <= set(+proxy.counts)  # the likely ones


@pytest.mark.full
@pytest.mark.timeout(900)
def test_whole_metadata_contract(proxy):
    """Without late writes: what nobody can tell yet is answered so, which the cases do not expect."""
    proxy.spare_ddl = True
    proxy.set_rates(**{**ycql_proxy.USUAL, "hidden_retry": 60, "unprepared": 30})
    contract(proxy, timeout=800)
    assert proxy.counts["hidden_retry"] > 10


def test_a_node_that_forgets_a_statement_four_times(proxy):
    """As one that lags behind a change of the table does: it was not executed, each time."""
    proxy.spare_ddl = True
    proxy.arm("unprepared", 4, r"INSERT INTO \S*buckets ")
    contract(proxy, "buckets")
    assert proxy.counts["unprepared"] == 4


def test_a_look_up_whose_answer_is_lost(proxy):
    """It was written: refused the second time, it is as wanted."""
    proxy.arm("timeout_after", 1, r"INSERT INTO \S*keys_by_user")
    contract(proxy, "identities")
    assert proxy.counts["timeout_after"] == 1


@pytest.mark.full
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [1, 2])
def test_metadata_contract_with_skewed_coordinators(cassandra, seed):
    """Two coordinators whose clocks differ by 20 s: no plain write may have to win by its time."""
    with ycql_proxy.YcqlProxy(cassandra.address, seed, ycql_proxy.USUAL, nodes=2) as proxy:
        proxy.spare_ddl = True
        proxy.skew_ms = {0: 10000, 1: -10000}
        contract(proxy, timeout=350)
        assert proxy.counts["skewed"] > 20
        assert proxy.violations == []


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", ["rounds", "one winner", "counter", "versions", "bucket",
                                  "complete", "purge"])
def test_faults_through_the_proxy(proxy, case):
    """The suite that loses answers, delays writes and pauses, on a database that looks like YCQL."""
    proxy.spare_ddl = True
    proxy.set_rates(unprepared=30, prefix=30, event=20, bytewise=5)
    environment = {**fgw_server.clean_environment(), "FGW_TEST_CQL_HOSTS": proxy.address}
    done = subprocess.run([str(CONTRACT) + "_faults", case], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800,
                          check=False)
    assert done.returncode == 0, done.stderr[-4000:]

"""Rows of the fault matrix (docs/design/migrations.md) on a real Cassandra that need more than an
edit by hand: kills, many processes, an old gateway beside us, roles without rights."""
import re
import signal
import subprocess
import threading
import time

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster

import cassandra_fixture
import cassandra_server
import fgw_server
import old_gateway
import ycql_proxy
from migration_world import (CID_GROUPS, LAST, MULTIHASH, OBJECTS, OBJECTS_EARLIER, UPLOADS,
                             UPLOADS_OF_INIT, World, finish_all, next_command, start_all)
from migration_world import migrated, migrated_world, world  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(900)]


def started_until(world, proxy, fault, statement):
    """A db-init whose first statement of this kind is `held` before, or `lost` behind the database."""
    proxy.arm(fault, 1, statement)
    process = start_all(world, 1, "db-init")[0]
    end = time.monotonic() + 200
    while proxy.counts[fault] == 0:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    return process


def killed_at(world, proxy, fault, statement):
    process = started_until(world, proxy, fault, statement)
    time.sleep(0.5)
    process.kill()
    process.communicate()


# -- row 2 --------------------------------------------------------------------------------------

@pytest.mark.parametrize("table", ["schema_migrations", "fgw_schema_lock", "fgw_schema_state",
                                   "fgw_schema_journal", "fgw_schema_history", "fgw_schema_nodes"])
@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
def test_row02_killed_while_making_control_tables(cassandra, rng, table, answered):
    """Killed when the statement for `table` is on its way, not done or done: any starter goes on."""
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        world = World(cassandra, proxy.address)
        try:
            killed_at(world, proxy, "lost" if answered else "held",
                      rf"CREATE TABLE [^(]*{table}\b")
            world.run("db-init", timeout=200)
            world.verify()
            assert world.mirror() == [(LAST, False)]
        finally:
            world.close()


# -- row 1 --------------------------------------------------------------------------------------

STEPS = {"lock": r"UPDATE \S*fgw_schema_lock SET owner", "intent": r"fgw_schema_lock SET .*i_version",
         "journal": r"INSERT INTO \S*fgw_schema_journal", "create": r"CREATE TABLE \S*\.buckets\b",
         "add": r"ALTER TABLE \S*multipartuploads ADD rev", "done": r"UPDATE \S*fgw_schema_journal",
         "state": r"fgw_schema_state \(id", "mirror": r"INSERT INTO \S*schema_migrations",
         "history": r"INSERT INTO \S*fgw_schema_history"}


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_row01_killed_at_each_step(cassandra, rng, step, answered):
    """The holder dies when a write of its protocol is on its way, or done; the next one goes on."""
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        world = World(cassandra, proxy.address)
        try:
            world.legacy([MULTIHASH, OBJECTS], 1754293669, True)
            world.cql("INSERT INTO {k}.S3Objects (bucket, key, cid) VALUES ('b', 'k', 'c')")
            killed_at(world, proxy, "lost" if answered else "held", STEPS[step])
            world.run("db-init", timeout=200)
            world.verify()
            assert world.json("db-init")["keyspaces"][0]["applied"] == 0
            assert [dirty for _, dirty in world.mirror()] == [False]
            assert [row.cid for row in world.cql("SELECT cid FROM {k}.S3Objects")] == ["c"]
        finally:
            world.close()


# -- rows 3 and 36 ------------------------------------------------------------------------------

@pytest.mark.timeout(1200)
def test_row03_thirty_two_at_once(world):
    began = time.monotonic()
    codes, texts = finish_all(start_all(world, 32, "db-init"), timeout=1000)
    print(f"32 processes: {time.monotonic() - began:.0f} s")
    assert codes == [0] * 32, texts
    assert not any("ERROR" in text for text in texts)
    applied = [int(found) for text in texts for found in re.findall(r"  applied (\d+)", text)]
    assert len(applied) == 1
    world.verify()


def test_row36_db_init_again_among_starting_servers(world, tmp_path):
    """A stack that runs db-init at each start, its servers waiting for it: nothing to do twice."""
    world.env["FGW_CQL_NODE_KEYSPACE"] = "none"
    for _ in range(2):
        servers = [fgw_server.new_server("embedded", tmp_path / f"s{i}", {
            **world.env, "FGW_META": "cql", "FGW_MIGRATE": "wait",
            "FGW_CLUSTER_SECRET": fgw_server.CLUSTER_SECRET}).start(wait=False) for i in range(2)]
        try:
            codes, texts = finish_all(start_all(world, 2, "db-init"))
            assert codes == [0, 0], texts
            for server in servers:
                assert server.wait_ready(200)
        finally:
            for server in servers:
                server.stop()
                server.close()
    assert world.json("db-init")["keyspaces"][0]["applied"] == 0


# -- rows 18, 19, 22 ----------------------------------------------------------------------------

def test_row18_half_of_our_own_schema_marked_clean(world):
    world.database.create_keyspace(world.shared)
    world.run("migrate", "up", "--to", 20261201000200, "--keyspace", world.shared)
    world.cql("DROP TABLE {k}.parts")
    world.cql("TRUNCATE {k}.schema_migrations")
    world.cql(f"INSERT INTO {{k}}.schema_migrations (version, dirty) VALUES ({LAST}, false)")
    done = fgw_server.run_fgw("db-init", env=world.env, timeout=300)
    if done.returncode != 0:
        world.run(*next_command(done, world, "migrate repair"), expect=10)
        world.run("migrate", "repair", "--apply", "--keyspace", world.shared)
        world.run("db-init")
    world.verify()
    assert world.mirror() == [(LAST, False)]


def test_row19_three_rows(migrated):
    migrated.cql("INSERT INTO {k}.schema_migrations (version, dirty) VALUES (1754293669, true)")
    migrated.cql("INSERT INTO {k}.schema_migrations (version, dirty) VALUES (1756300000, false)")
    migrated.run("db-init")
    assert migrated.mirror() == [(LAST, False)]


def test_row19_mirror_of_wrong_types(migrated):
    migrated.cql("DROP TABLE {k}.schema_migrations")
    migrated.cql("CREATE TABLE {k}.schema_migrations (version text PRIMARY KEY, dirty int)")
    done = fgw_server.run_fgw("db-init", env=migrated.env, timeout=300)
    assert migrated.shared in done.stdout + done.stderr
    assert done.returncode in (4, 10), done.stdout
    assert "schema_migrations" in done.stdout
    migrated.run("migrate", "repair", "--apply", "--allow-drop-empty", "--keyspace",
                 migrated.shared)
    migrated.run("db-init")
    assert migrated.mirror() == [(LAST, False)]


@pytest.mark.parametrize("again", [
    "CREATE TABLE {k}.policies (name text PRIMARY KEY, rev blob, data blob)",
    "CREATE TABLE {k}.policies (id text, rev blob, data blob, PRIMARY KEY (id, rev))",
], ids=["other_key", "longer_key"])
def test_row22_recreated_with_another_key(migrated, again):
    migrated.cql("DROP TABLE {k}.policies")
    migrated.cql(again)
    done = migrated.run("db-init", expect=4)
    assert "FGW-MIG-031" in done.stdout
    assert "changed outside the migrations" in done.stdout
    migrated.run("migrate", "repair", "--apply", "--allow-drop-empty", "--keyspace",
                 migrated.shared)


def test_row22_missing_column(migrated):
    migrated.cql("ALTER TABLE {k}.policies DROP data")
    done = migrated.run("migrate", "verify", "--keyspace", migrated.shared, expect=4)
    assert re.search(r"missing: data", done.stdout), done.stdout
    migrated.run("migrate", "repair", "--apply", "--keyspace", migrated.shared)


def test_row22_wrong_clustering_order(migrated):
    migrated.cql("DROP TABLE {k}.parts")
    migrated.cql("CREATE TABLE {k}.parts (upload_id text, part_number int, attempt blob, data blob, "
                 "PRIMARY KEY (upload_id, part_number, attempt))")
    done = migrated.run("migrate", "verify", "--keyspace", migrated.shared, expect=4)
    assert "attempt" in done.stdout
    migrated.run("migrate", "repair", "--apply", "--allow-drop-empty", "--keyspace",
                 migrated.shared)


# -- row 23 -------------------------------------------------------------------------------------

def test_row23_the_compose_database(world):
    """The init service's MultipartUploads, S3Objects of five columns, dirty at 1754293669."""
    world.legacy([MULTIHASH, OBJECTS_EARLIER, UPLOADS_OF_INIT], 1754293669, True)
    world.cql("INSERT INTO {k}.S3Objects (bucket, key, cid) VALUES ('b', 'k', 'c')")
    world.run("db-init", expect=10)
    world.run("migrate", "repair", "--apply", "--allow-drop-empty", "--keyspace", world.shared)
    world.run("db-init")
    world.verify()
    again = world.shared_json("repair", "--apply", "--allow-drop-empty")
    assert again["applied"] == 0
    assert [row.cid for row in world.cql("SELECT cid FROM {k}.S3Objects")] == ["c"]


# -- row 25 -------------------------------------------------------------------------------------

def test_row25_old_gateway_beside_a_run(world):
    """While we run it stops on the dirty flag; afterwards it starts, having nothing to do."""
    world.legacy([MULTIHASH, OBJECTS, CID_GROUPS, UPLOADS], 1756300000, False)
    session = world.database.session()
    assert old_gateway.start(session, world.shared) == [1769890615]
    seen = set()
    ended = threading.Event()

    def look():
        while not ended.is_set():
            seen.add(old_gateway.version(session, world.shared))
            time.sleep(0.05)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        world.run("db-init")
    finally:
        ended.set()
        watcher.join()
    assert any(dirty for _, dirty in seen), seen
    assert all(version != old_gateway.NIL_VERSION for version, _ in seen), seen
    assert old_gateway.start(session, world.shared) in ([], [1769890615])


def test_row25_old_gateway_on_a_database_of_ours(migrated):
    with pytest.raises(old_gateway.Refused):
        old_gateway.start(migrated.database.session(), migrated.shared)


# -- row 31 -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A Cassandra with roles: `reader` may read, `writer` read and write, neither makes tables."""
    cassandra_fixture.skip_if_unavailable()
    with cassandra_server.Cassandra(tmp_path_factory.mktemp("cassandra"), auth=True) as server:
        cluster = Cluster([server.host], port=server.port, protocol_version=4,
                          auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
        session = cluster.connect()
        for role in ("reader", "writer"):
            session.execute(f"CREATE ROLE {role} WITH PASSWORD = '{role}' AND LOGIN = true")
        server.session = session
        yield server
        cluster.shutdown()


def as_role(guarded, role, keyspace, *arguments):
    return fgw_server.run_fgw(*arguments, env={
        "FGW_CQL_HOSTS": guarded.address, "FGW_CQL_KEYSPACE": keyspace, "FGW_CQL_USER": role,
        "FGW_CQL_PASSWORD": role, "FGW_CQL_NODE_KEYSPACE": "none"}, timeout=100)


def test_row31_role_without_rights(guarded):
    began = time.monotonic()
    done = as_role(guarded, "writer", "fgw_rights", "db-init")
    assert done.returncode in (2, 7), (done.returncode, done.stdout, done.stderr)
    assert "FGW-MIG-011" in done.stdout
    assert "fgw_rights" in done.stdout
    assert time.monotonic() - began < 20  # no storm of retries
    guarded.session.execute("CREATE KEYSPACE fgw_rights WITH replication = "
                            "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    guarded.session.execute("GRANT SELECT ON KEYSPACE fgw_rights TO writer")
    guarded.session.execute("GRANT MODIFY ON KEYSPACE fgw_rights TO writer")
    guarded.session.execute("GRANT SELECT ON KEYSPACE fgw_rights TO reader")
    time.sleep(1)
    done = as_role(guarded, "writer", "fgw_rights", "db-init")
    assert done.returncode in (2, 7), (done.returncode, done.stdout)
    assert "FGW-MIG-011" in done.stdout
    guarded.session.execute("GRANT CREATE ON KEYSPACE fgw_rights TO writer")
    guarded.session.execute("GRANT ALTER ON KEYSPACE fgw_rights TO writer")
    time.sleep(1)
    done = as_role(guarded, "writer", "fgw_rights", "db-init")
    assert done.returncode == 0, (done.stdout, done.stderr)
    # who may only read sees that all is well, and is told when something is to be written
    done = as_role(guarded, "reader", "fgw_rights", "migrate", "verify", "--keyspace", "fgw_rights")
    assert done.returncode == 0, done.stdout
    done = as_role(guarded, "reader", "fgw_rights", "db-init")
    assert done.returncode in (0, 2, 7)
    guarded.session.execute("DROP TABLE fgw_rights.policies")
    done = as_role(guarded, "reader", "fgw_rights", "migrate", "repair", "--apply", "--keyspace",
                   "fgw_rights")
    assert done.returncode in (2, 7), (done.returncode, done.stdout)
    assert "FGW-MIG-011" in done.stdout


def test_row31_one_keyspace_for_both_sets(world):
    world.env["FGW_CQL_NODE_KEYSPACE"] = world.shared
    done = fgw_server.run_fgw("migrate", "status", env=world.env)
    assert done.returncode == 2
    assert "FGW_CQL_KEYSPACE and FGW_CQL_NODE_KEYSPACE" in done.stderr


def test_row31_keyspace_of_the_other_set(migrated):
    """A keyspace belongs to one set, whoever asks."""
    other = f"{migrated.shared}_other"
    done = fgw_server.run_fgw("migrate", "up", "--keyspace", migrated.shared, env={
        **migrated.env, "FGW_CQL_KEYSPACE": other}, timeout=60)
    assert done.returncode == 2, done.stdout
    assert migrated.shared in done.stdout


# -- row 35 -------------------------------------------------------------------------------------

def test_row35_unlock_of_a_live_holder(cassandra, rng):
    """Refused while it lives; with --even-if-alive the holder is fenced and ends with 9."""
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        world = World(cassandra, proxy.address)
        try:
            # its next statement takes a while: the lease is renewed meanwhile
            process = started_until(world, proxy, "held", r"CREATE TABLE [^(]*object_versions\b")
            lock = world.shared_json("status", expect=3)["lock"]
            done = world.run("migrate", "unlock", "--epoch", lock["epoch"], "--keyspace",
                             world.shared, expect=8)
            assert "--even-if-alive" in done.stdout
            world.run("migrate", "unlock", "--epoch", lock["epoch"], "--even-if-alive",
                      "--keyspace", world.shared)
            proxy.release_held()
            out, err = process.communicate(timeout=100)
            assert process.returncode == 9, out + err
            assert "FGW-MIG-021" in out
            world.run("db-init")
            world.verify()
        finally:
            world.close()


def test_row35_two_repairs_at_once(world):
    world.database.create_keyspace(world.shared)
    world.cql(UPLOADS_OF_INIT)
    for i in range(20):
        world.cql("INSERT INTO {k}.MultipartUploads (bucket, key, upload_id, node_id) VALUES "
                  f"('b', 'k{i}', 'u{i}', 'n')")
    codes, texts = finish_all(start_all(world, 2, "migrate", "repair", "--apply",
                                        "--allow-drop-empty", "--wait", "3m", "--keyspace",
                                        world.shared))
    assert codes == [0, 0], texts
    world.run("db-init")
    world.verify()
    tables = [row.table_name for row in world.cql(
        f"SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{world.shared}'")]
    kept = {row.upload_id for table in tables if table.startswith("multipartuploads")
            for row in world.cql(f"SELECT upload_id FROM {{k}}.{table}")}
    assert kept == {f"u{i}" for i in range(20)}


# -- row 34 -------------------------------------------------------------------------------------

def ends_when_asked(world, process, number):
    """With 3, and the lock given back: nobody has to wait for the lease to end."""
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=100)
    except subprocess.TimeoutExpired as late:
        process.kill()
        raise AssertionError(process.communicate()) from late
    assert process.returncode == 3, out + err
    return out + err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
@pytest.mark.parametrize("table", ["fgw_schema_state", "buckets", "usage"])
@pytest.mark.parametrize("then", ["answered", "connection_lost", "no_answer"])
def test_row34_signal_at_a_step(cassandra, rng, then, number, table):
    """Also while the statement is never answered, on a connection that stays or goes."""
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        world = World(cassandra, proxy.address)
        try:
            process = started_until(world, proxy, "held", rf"CREATE TABLE [^(]*{table}\b")
            if then == "connection_lost":
                proxy.cut_all()
            if then == "answered":
                threading.Timer(0.3, proxy.release_held).start()
            ends_when_asked(world, process, number)
            assert "taken over" not in world.run("db-init", timeout=200).stderr
            world.verify()
        finally:
            world.close()


@pytest.mark.parametrize("verb", [["db-init"], ["migrate", "up", "--wait", "10m"]],
                         ids=["db_init", "up"])
def test_row34_signal_while_the_database_is_away(cassandra, verb):
    world = World(cassandra, f"127.0.0.1:{fgw_server.free_port()}")
    process = start_all(world, 1, *verb)[0]
    line = process.stderr.readline()
    assert "is down" in line, line
    assert "asked to stop while waiting for the database" in ends_when_asked(
        world, process, signal.SIGTERM)

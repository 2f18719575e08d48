"""A database that is put back from a backup under the stores: they notice, running or at their start,
say so, free nothing, and go on; fgw node reconcile lists what the database does not name any more."""
import pytest

from stores import Objects, wait_for

pytestmark = pytest.mark.timeout(600)
RESTORED = "the database was restored from an earlier state"
NOT_KEPT = ("schema_", "fgw_schema")  # of the migrations: the same before and after


class Backup:
    """All rows of a keyspace, as they were."""

    def __init__(self, cassandra, keyspace):
        self.session, self.keyspace = cassandra.session(), keyspace
        found = self.session.execute(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", [keyspace])
        self.tables = [row.table_name for row in found
                       if not row.table_name.startswith(NOT_KEPT)]
        self.rows = {table: list(self.session.execute(f"SELECT * FROM {keyspace}.{table}"))
                     for table in self.tables}

    def map_version(self):
        return next(row.version for row in self.rows["map"] if row.id == "map")

    def put_back(self):
        for table in self.tables:
            self.session.execute(f"TRUNCATE {self.keyspace}.{table}")
        for table, rows in self.rows.items():
            for row in rows:
                values = {name: value for name, value in row._asdict().items()
                          if value is not None}
                names = ", ".join(f'"{name}"' for name in values)
                marks = ", ".join(["%s"] * len(values))
                self.session.execute(
                    f"INSERT INTO {self.keyspace}.{table} ({names}) VALUES ({marks})",
                    list(values.values()))


def warns(node):
    return any(RESTORED in warning for warning in node.fgw("status")[1]["warnings"])


def alarmed(cluster):
    return all("ALARM: " in node.log() and warns(node) for node in cluster.nodes)


def check_alarm(cluster, before, after):
    """`before`: keys that the database has again; the others it has lost."""
    for node in cluster.nodes:
        found = node.fgw("node", "reconcile")[1]
        assert found["alarm"] and found["free_nothing_for_s"] > 6 * 24 * 3600
        assert node.metrics()["fgw_cluster_database_restored"] == 1
    lost = {hold["key"] for node in cluster.nodes
            for hold in node.fgw("node", "reconcile")[1]["unnamed"]}
    assert after <= lost and not before & lost
    named = {hold["key"]: hold["named"] for node in cluster.nodes
             for hold in node.fgw("node", "reconcile", "--all")[1]["holds"]}
    assert {named[key] for key in after} == {"nowhere"} and {named[key] for key in before} == {"here"}


def forget(objects, keys):
    for key in keys:
        del objects.known[key]


def begin(cluster, rng):
    objects = Objects(cluster, rng)
    objects.put(2)
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "two copies of each")
    return objects


@pytest.mark.slow
def test_running_stores_notice(small, cassandra, rng):
    objects = begin(small, rng)
    backup = Backup(cassandra, small.keyspace)
    before = set(objects.known)
    # later epochs and another map
    assert small.nodes[1].stop()
    small.nodes[1].start().wait_ready()
    objects.put(2)
    after = set(objects.known) - before
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "two copies of each")
    pids = [node.process.pid for node in small.nodes]
    small.gate.shut()
    backup.put_back()
    small.gate.open()
    wait_for(lambda: alarmed(small), 120, "no alarm")
    for member in small.members:
        member.wait_ready(120)
    check_alarm(small, before, after)
    # the store that had gone on is taken anew, above what it had
    wait_for(lambda: "store taken anew with epoch" in small.nodes[1].log(), 60, "not taken anew")
    # what was written since is nameless and stays; what the database names is there, writes go on
    assert set(objects.copies().values()) == {2}
    forget(objects, after)
    objects.check()
    objects.put(1)
    objects.check()
    wait_for(lambda: not any(node.metrics()["fgw_node_fenced"] for node in small.nodes), 60,
             "somebody does not acknowledge")
    assert [node.process.pid for node in small.nodes] == pids


@pytest.mark.full
def test_stores_notice_at_their_start(small, cassandra, rng):
    objects = begin(small, rng)
    backup = Backup(cassandra, small.keyspace)
    before = set(objects.known)
    for node in small.nodes:
        assert node.stop()
        node.start().wait_ready()
    objects.put(1)
    after = set(objects.known) - before
    wait_for(lambda: set(objects.copies().values()) == {2}, 60, "two copies of each")
    for node in small.nodes:
        assert node.stop()
    backup.put_back()
    for node in small.nodes:
        node.start()
    for member in small.members:
        member.wait_ready(120)
    wait_for(lambda: alarmed(small), 120, "no alarm")
    check_alarm(small, before, after)
    # the alarm outlives a restart, which raises no other
    assert small.nodes[0].stop()
    small.nodes[0].start().wait_ready()
    assert warns(small.nodes[0]) and "ALARM" not in small.nodes[0].log()
    assert set(objects.copies().values()) == {2}
    forget(objects, after)
    objects.check()


@pytest.mark.full
def test_a_quiet_cluster_notices_by_its_heartbeats(small, cassandra, rng):
    """Neither an epoch nor the map has changed since the backup."""
    objects = begin(small, rng)
    for node in small.nodes:
        node.extra = {"FGW_TEST_BEATS_BACK": "1"}
        assert node.stop()
        node.start().wait_ready()
    wait_for(lambda: small.proxies[0].fgw("node", "list")[1]["sets_changing"] == 0, 60, "changing")
    backup = Backup(cassandra, small.keyspace)
    before = set(objects.known)
    objects.put(1)
    after = set(objects.known) - before
    beaten(cassandra, small.keyspace, backup)
    assert Backup(cassandra, small.keyspace).map_version() == backup.map_version()
    small.gate.shut()
    backup.put_back()
    small.gate.open()
    wait_for(lambda: alarmed(small), 120, "no alarm")
    check_alarm(small, before, after)


def beaten(cassandra, keyspace, backup):
    """Every store has beaten some times since the backup."""
    then = {(row.store_id, row.epoch): row.beat for row in backup.rows["heartbeats"]}

    def now():
        rows = cassandra.session().execute(f"SELECT store_id, epoch, beat FROM {keyspace}.heartbeats")
        moved = [row.beat - then[row.store_id, row.epoch] for row in rows]
        return sum(beats >= 4 for beats in moved) >= 3

    wait_for(now, 120, "no heartbeats")


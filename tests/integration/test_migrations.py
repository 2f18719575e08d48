"""fgw db-init, fgw migrate and the start of fgw serve on a real Cassandra, from every state that
the field reports found a database in. In each: the exit code, a message that names the keyspace
and the next command, that command, run, mends it, run again changes nothing, no row is lost.
rowNN: a row of the fault matrix; more of them in test_migration_rows.py and tests/unit/migrate."""
import json
import re
import signal
import socket
import subprocess
import threading
import time
import uuid

import pytest

import cassandra_server
import fgw_server
from migration_world import (CID_GROUPS, LAST, MIDDLE, MULTIHASH, NODE_LAST, OBJECTS, OBJECTS_EARLIER,
                             UPLOADS, UPLOADS_OF_INIT, World, finish_all, next_command, start_all)
from migration_world import migrated, migrated_world, world  # noqa: F401

# a db-init makes some 40 statements of DDL: 10 s, ten times that beside many others
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# -- a database of today ------------------------------------------------------------------------

def test_fresh_database_and_again(world):
    node_id = f"t{uuid.uuid4().hex[:8]}"
    world.run("db-init", "--nodes", node_id)
    try:
        document = world.json("db-init", "--nodes", node_id)
        assert [k["applied"] for k in document["keyspaces"]] == [0, 0]
        assert [k["version"] for k in document["keyspaces"]] == [LAST, NODE_LAST]
        assert world.mirror() == [(LAST, False)]
        world.verify()
        world.verify(f"filecoingw_{node_id}")
    finally:
        world.database.drop_keyspace(f"filecoingw_{node_id}")


def test_status_of_nothing_names_db_init_and_writes_nothing(world):
    done = world.run("migrate", "status", "--keyspace", world.shared, expect=2)
    assert "FGW-MIG-010 keyspace is missing" in done.stdout
    assert world.shared in done.stdout
    assert "next      fgw db-init" in done.stdout
    assert done.stderr == ""
    assert not world.cql("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = "
                         f"'{world.shared}'")


# -- (a) an init service made the table with the other key --------------------------------------

def check_wrong_uploads(world):
    """db-init refuses, names the diff and the command; that command mends it; again: nothing."""
    done = world.run("db-init", expect=10)
    assert "FGW-MIG-031 table exists with a different shape" in done.stdout
    assert f"keyspace  {world.shared} (set shared)" in done.stdout
    assert "want ((upload_id))" in done.stdout
    assert "have ((bucket, key), upload_id)" in done.stdout
    command = next_command(done, world, "migrate repair --apply --allow-drop-empty")
    assert world.shared_json("status", expect=10)["lock"]["owner"] == ""
    world.run(*command)
    world.run("db-init")
    world.verify()
    again = world.shared_json("repair", "--apply", "--allow-drop-empty")
    assert again["applied"] == 0
    assert world.json("db-init")["keyspaces"][0]["applied"] == 0


def test_init_service_with_the_other_key(world):
    world.database.create_keyspace(world.shared)
    world.cql(OBJECTS)
    world.cql(UPLOADS_OF_INIT)
    check_wrong_uploads(world)


# -- (b) and (c) dirty flags --------------------------------------------------------------------

def test_shared_dirty_and_node_clean(world):
    world.legacy([MULTIHASH, OBJECTS], 1754293669, True)
    world.cql("INSERT INTO {k}.S3Objects (bucket, key, cid) VALUES ('b', 'k', 'c')")
    world.legacy([MULTIHASH, OBJECTS, CID_GROUPS, UPLOADS], 1756300000, False, world.node)
    world.cql("INSERT INTO {k}.CidGroups (cid, groups) VALUES ('c', {{1}})", world.node)
    done = world.run("migrate", "status", "--keyspace", world.shared, expect=3)
    assert "dirty at 1754293669" in done.stdout
    for keyspace in (world.shared, world.node):
        world.run("migrate", "up", "--keyspace", keyspace)
        world.verify(keyspace)
        assert [dirty for _, dirty in world.mirror(keyspace)] == [False]
    assert [row.cid for row in world.cql("SELECT cid FROM {k}.S3Objects")] == ["c"]
    assert [row.cid for row in world.cql("SELECT cid FROM {k}.CidGroups", world.node)] == ["c"]


@pytest.mark.parametrize("objects", [OBJECTS, OBJECTS_EARLIER], ids=["whole", "earlier_text"])
def test_flag_cleared_by_hand_at_1754293669(world, objects):
    world.legacy([MULTIHASH, objects], 1754293669, True)
    world.cql("INSERT INTO {k}.S3Objects (bucket, key, cid) VALUES ('b', 'k', 'c')")
    world.cql("UPDATE {k}.schema_migrations SET dirty = false WHERE version = 1754293669")
    done = world.run("db-init")
    assert ("legacy table differs" in done.stdout) == (objects == OBJECTS_EARLIER)
    if objects == OBJECTS_EARLIER:
        world.run(*next_command(done, world, "migrate repair"), expect=10)
        world.run("migrate", "repair", "--apply", "--keyspace", world.shared)
        world.run("migrate", "repair", "--apply", "--keyspace", world.shared)
    world.verify()
    assert [row.cid for row in world.cql("SELECT cid FROM {k}.S3Objects")] == ["c"]


def test_flag_cleared_by_hand_at_1756300000(world):
    """The version says that MultipartUploads is the migration's; it is the init service's."""
    world.legacy([MULTIHASH, OBJECTS, CID_GROUPS, UPLOADS_OF_INIT], 1756300000, True)
    world.cql("UPDATE {k}.schema_migrations SET dirty = false WHERE version = 1756300000")
    check_wrong_uploads(world)


def test_row18_flag_cleared_by_hand_on_a_half_schema(world):
    world.legacy([MULTIHASH, OBJECTS], 1756300000, True)
    world.cql("UPDATE {k}.schema_migrations SET dirty = false WHERE version = 1756300000")
    world.run("db-init")
    world.verify()


# -- (d) MultipartUploads of either shape, empty and with rows ----------------------------------

@pytest.mark.parametrize("rows", [0, 3])
def test_uploads_of_the_right_shape(world, rows):
    world.legacy([UPLOADS], 1756300000, True)
    for i in range(rows):
        world.cql(f"INSERT INTO {{k}}.MultipartUploads (upload_id, bucket) VALUES ('u{i}', 'b')")
    world.run("db-init")
    world.verify()
    found = {row.upload_id for row in world.cql("SELECT upload_id FROM {k}.MultipartUploads")}
    assert found == {f"u{i}" for i in range(rows)}


def test_row24_uploads_of_the_wrong_shape_with_rows(world):
    world.legacy([UPLOADS_OF_INIT], 1756300000, True)
    for i in range(5):
        world.cql("INSERT INTO {k}.MultipartUploads (bucket, key, upload_id, node_id) VALUES "
                  f"('b', 'k{i}', 'u{i}', 'n')")
    check_wrong_uploads(world)
    tables = [row.table_name for row in world.cql(
        f"SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{world.shared}'")]
    kept = {}
    for table in [t for t in tables if t.startswith("multipartuploads")]:
        for row in world.cql(f"SELECT upload_id, key, node_id FROM {{k}}.{table}"):
            kept.setdefault(row.upload_id, set()).add((row.key, row.node_id))
    assert kept == {f"u{i}": {(f"k{i}", "n")} for i in range(5)}


# -- (e) many at once ---------------------------------------------------------------------------

def prepare(world, state):
    if state == "half":
        world.database.create_keyspace(world.shared)
        world.run("migrate", "up", "--to", MIDDLE, "--keyspace", world.shared)
    if state == "dirty":
        world.legacy([MULTIHASH, OBJECTS], 1754293669, True)
        world.cql("INSERT INTO {k}.S3Objects (bucket, key, cid) VALUES ('b', 'k', 'c')")


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", ["auto", "wait"])
@pytest.mark.parametrize("state", ["empty", "half", "dirty"])
def test_row03_eight_servers(world, tmp_path, state, policy):
    """FGW_MIGRATE=auto everywhere, or all wait for a db-init."""
    prepare(world, state)
    world.env["FGW_CQL_NODE_KEYSPACE"] = "none"
    servers = []
    began = time.monotonic()
    try:
        for i in range(8):
            servers.append(serving(world, tmp_path / f"s{i}", policy))
        if policy == "wait":
            codes, texts = finish_all(start_all(world, 1, "db-init"))
            assert codes == [0], texts
        for server in servers:
            assert server.wait_ready(400)
        print(f"8 servers, {state}, {policy}: {time.monotonic() - began:.0f} s")
        world.verify()
        assert world.mirror() in ([(LAST, False)], [(1754293669, False)])
        assert world.json("db-init")["keyspaces"][0]["applied"] == 0
    finally:
        for server in servers:
            server.stop()
            server.close()
    if state == "dirty":
        assert [row.cid for row in world.cql("SELECT cid FROM {k}.S3Objects")] == ["c"]


@pytest.mark.full
@pytest.mark.parametrize("state", ["empty", "half", "dirty"])
def test_row03_eight_at_once(world, state):
    prepare(world, state)
    codes, texts = finish_all(start_all(world, 8, "db-init"))
    assert codes == [0] * 8, texts
    assert not any("ERROR" in text for text in texts)
    applied = [int(found) for text in texts for found in re.findall(r"  applied (\d+)", text)]
    assert len(applied) == 1  # one did the work
    world.verify()


@pytest.mark.full
def test_row03_three_servers_that_migrate_by_themselves(world, tmp_path):
    servers = []
    try:
        for i in range(3):
            settings = {**world.env, "FGW_META": "cql", "FGW_MIGRATE": "auto",
                        "FGW_CLUSTER_SECRET": fgw_server.CLUSTER_SECRET,
                        "FGW_CQL_NODE_KEYSPACE": f"{world.node}{i}"}
            server = fgw_server.new_server("embedded", tmp_path / f"s{i}", settings)
            servers.append(server.start(wait=False))
        for server in servers:
            assert server.wait_ready(200)
        world.verify()
    finally:
        for server in servers:
            server.stop()
            server.close()
        for i in range(3):
            world.database.drop_keyspace(f"{world.node}{i}")


# -- starts that wait or refuse -----------------------------------------------------------------

def serving(world, folder, policy):
    return fgw_server.new_server("embedded", folder, {
        **world.env, "FGW_META": "cql", "FGW_MIGRATE": policy,
        "FGW_CLUSTER_SECRET": fgw_server.CLUSTER_SECRET}).start(wait=False)


def readiness(server):
    with server.connect(timeout=5) as connection:
        connection.send(b"GET /_fgw/readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = connection.answer()
        return answer.status, answer.body.decode()


def waits_for(server, **expected):
    """The reason of /readyz, once it is as expected."""
    end = time.monotonic() + 200
    while True:
        status, text = readiness(server)
        reasons = [r for r in json.loads(text)["reasons"] if r["what"] == "migrations"]
        if reasons and all(str(v) in str(reasons[0].get(k)) for k, v in expected.items()):
            assert status == 503
            names = ("keyspace", "state", "have", "need", "holder", "next")
            return {name: reasons[0][name] for name in names}
        assert time.monotonic() < end, text
        time.sleep(0.2)


def test_server_that_waits_tells_why_and_ends_when_asked(world, tmp_path):
    server = serving(world, tmp_path / "s", "wait")
    try:
        end = time.monotonic() + 200
        while "waiting: no such keyspace" not in server.process.log_tail():
            assert time.monotonic() < end, server.process.log_tail()
            time.sleep(0.2)
        reason = waits_for(server, have=0)
        assert reason == {"keyspace": world.shared, "state": "ABSENT", "have": 0, "need": LAST,
                          "holder": "", "next": "fgw db-init"}
        world.database.create_keyspace(world.shared)
        world.run("migrate", "up", "--to", MIDDLE, "--keyspace", world.shared)
        world.cql("UPDATE {k}.fgw_schema_lock SET owner = 11111111-1111-1111-1111-111111111111, "
                  "owner_desc = 'gone pid 1' WHERE id = 'migrate'")
        reason = waits_for(server, have=MIDDLE, holder="gone pid 1")
        assert reason["state"] == "TOO_OLD"
        assert reason["next"].startswith("fgw db-init")
        server.process.stop(limit_s=100)
    finally:
        server.close()


def test_row30_server_is_known_and_blocks_what_it_could_not_run_on(world, tmp_path):
    """What runs stands in fgw_schema_nodes, so that a contract migration knows whom it would shut out."""
    world.env["FGW_CQL_NODE_KEYSPACE"] = "none"
    server = serving(world, tmp_path / "s", "auto")
    try:
        assert server.wait_ready(300)
        end = time.monotonic() + 200
        while not (rows := world.cql("SELECT role, needs, knows FROM {k}.fgw_schema_nodes")):
            assert time.monotonic() < end
            time.sleep(0.2)
        assert [tuple(row) for row in rows] == [("serve", LAST, LAST)]
    finally:
        server.stop()
        server.close()


def test_server_refuses_a_table_of_another_shape(world, tmp_path):
    world.database.create_keyspace(world.shared)
    world.cql(UPLOADS_OF_INIT)
    server = serving(world, tmp_path / "s", "auto")
    try:
        assert server.process.process.wait(300) == 10
        log = server.process.log_tail()
        assert "FGW-MIG-031" in log
        assert f"fgw migrate repair --apply --allow-drop-empty --keyspace {world.shared}" in log
    finally:
        server.close()


# -- (f) holders that end -----------------------------------------------------------------------

def start_and_signal(world, number):
    """db-init, and `number` to it when a few of its statements are done; its exit code."""
    process = start_all(world, 1, "db-init")[0]
    lines = []
    while not any(": done" in line for line in lines[-1:]) or len(lines) < 5:
        line = process.stderr.readline()
        assert line != "", lines
        lines.append(line)
    process.send_signal(number)
    out, err = process.communicate(timeout=200)
    return process.returncode, out, "".join(lines) + err


@pytest.mark.full
def test_row01_holder_killed(world):
    code, _, _ = start_and_signal(world, signal.SIGKILL)
    assert code == -signal.SIGKILL
    status = world.shared_json("status", expect=3)
    assert "pid" in status["lock"]["owner"]
    assert status["pending"]
    began = time.monotonic()
    done = world.run("db-init")
    assert 30 < time.monotonic() - began
    assert "taken over from a holder that went silent" in done.stderr
    assert "takeover is automatic 35 s after the last heartbeat" in done.stderr
    world.verify()


def test_row34_holder_asked_to_stop_gives_the_lock_back(world):
    code, out, _ = start_and_signal(world, signal.SIGTERM)
    assert code == 3
    assert f"asked to stop: stopping between two steps; `fgw migrate up --keyspace {world.shared}" \
        in out
    status = world.shared_json("status", expect=3)
    assert status["lock"]["owner"] == ""
    done = world.run("migrate", "up", "--keyspace", world.shared)
    assert "taken over" not in done.stderr
    world.verify()


# -- edits by hand on a finished schema (rows 17 to 20, 22, 35, 36 of the matrix) ---------------

def test_row17_dirty_by_hand_on_a_correct_schema(migrated):
    migrated.cql(f"UPDATE {{k}}.schema_migrations SET dirty = true WHERE version = {LAST}")
    done = migrated.run("migrate", "status", "--keyspace", migrated.shared, expect=3)
    assert "the records of versions are not as they should be" in done.stdout
    migrated.run(*next_command(done, migrated, "migrate up"))
    assert migrated.mirror() == [(LAST, False)]
    assert migrated.json("db-init")["keyspaces"][0]["applied"] == 0


@pytest.mark.parametrize("edit", [
    "INSERT INTO {k}.schema_migrations (version, dirty) VALUES (1754293669, true)",
    "INSERT INTO {k}.schema_migrations (version, dirty) VALUES (42, false)",
    "UPDATE {k}.schema_migrations SET dirty = false WHERE version = 99999999999999",
    "TRUNCATE {k}.schema_migrations",
    "DROP TABLE {k}.schema_migrations",
], ids=["two_rows", "unknown_version", "future_version", "empty", "dropped"])
def test_row19_mirror_edited(migrated, edit):
    migrated.cql(edit)
    migrated.run("db-init")
    assert migrated.mirror() == [(LAST, False)]


@pytest.mark.parametrize("tables", [["state"], ["journal"], ["lock"], ["history"],
                                    ["state", "journal", "lock", "history", "nodes"]],
                         ids=lambda tables: "_".join(tables))
def test_row20_control_tables_dropped(migrated, tables):
    before = migrated.shared_json("status")["lock"]["epoch"]
    for table in tables:
        migrated.cql(f"DROP TABLE {{k}}.fgw_schema_{table}")
    assert migrated.json("db-init")["keyspaces"][0]["applied"] == 0
    if len(tables) == 1:
        assert migrated.shared_json("status")["lock"]["epoch"] >= before


def test_row22_table_dropped(migrated):
    migrated.cql("DROP TABLE {k}.policies")
    done = migrated.run("migrate", "verify", "--keyspace", migrated.shared, expect=4)
    assert "policies" in done.stdout
    migrated.run(*next_command(done, migrated, "migrate repair"), expect=10)
    migrated.run("migrate", "repair", "--apply", "--keyspace", migrated.shared)


def test_row22_extra_column(migrated):
    migrated.cql("ALTER TABLE {k}.policies ADD remark text")
    document = migrated.shared_json("verify")
    assert [f["severity"] for f in document["findings"]] == ["warning"]
    assert "remark" in json.dumps(document["findings"])
    migrated.run("migrate", "verify", "--strict", "--keyspace", migrated.shared, expect=4)
    migrated.cql("ALTER TABLE {k}.policies DROP remark")


def test_row35_force_of_a_wrong_version_is_refused(migrated):
    done = migrated.run("migrate", "force", "--version", MIDDLE + 1, "--reason", "test",
                        "--keyspace", migrated.shared, expect=2)
    assert migrated.shared in done.stdout
    assert migrated.shared_json("status")["version"] == LAST


def test_row35_unlock_needs_the_epoch_shown(migrated):
    migrated.cql("UPDATE {k}.fgw_schema_lock SET owner = 11111111-1111-1111-1111-111111111111, "
                 "owner_desc = 'gone pid 1' WHERE id = 'migrate'")
    lock = migrated.shared_json("status")["lock"]
    assert lock["owner"] == "gone pid 1"
    done = migrated.run("migrate", "unlock", "--epoch", lock["epoch"] + 7, "--keyspace",
                        migrated.shared, expect=2)
    assert f"--epoch {lock['epoch']}" in done.stdout
    migrated.run("migrate", "unlock", "--epoch", lock["epoch"], "--keyspace", migrated.shared)
    lock_after = migrated.shared_json("status")["lock"]
    assert lock_after["owner"] == ""
    assert lock_after["epoch"] > lock["epoch"]


def test_json_document(migrated):
    document = migrated.json("migrate", "status", "--keyspace", migrated.shared)
    assert document["schema_version"] == 1
    assert document["command"] == "status"
    keyspace = document["keyspaces"][0]
    assert {"keyspace", "set", "role", "version", "target", "min_compat", "state", "lock",
            "pending", "findings", "mirror"} <= set(keyspace)
    assert set(keyspace["lock"]) == {"owner", "epoch", "age_ms", "intent"}
    assert keyspace["mirror"] == [{"version": LAST, "dirty": False}]
    assert keyspace["state"] == "OK"


def test_json_findings_carry_code_title_and_next(world):
    finding = world.shared_json("status", expect=2)["findings"][0]
    assert finding["code"] == "FGW-MIG-010"
    assert finding["severity"] == "error"
    assert finding["title"] == "keyspace is missing"
    assert finding["next"] == "fgw db-init"
    assert {"object", "diff", "cause", "ql_error", "coordinator"} <= set(finding)


@pytest.mark.parametrize("words", [("migrate", "status", "--apply"), ("migrate", "verify", "--to", "1"),
                                   ("migrate", "up", "--nodes", "a"), ("db-init", "--strict")])
def test_flags_of_another_verb_are_refused(words):
    done = fgw_server.run_fgw(*words, env={"FGW_CQL_HOSTS": "127.0.0.1:1"})
    assert done.returncode == 2
    flag = next(word for word in words if word.startswith("--"))
    assert f"{flag} is not for" in done.stderr


# -- databases that do not answer ---------------------------------------------------------------

def unreachable(address, *arguments, **env):
    return fgw_server.run_fgw("migrate", "status", "--wait", "2s", *arguments, env={
        "FGW_CQL_HOSTS": address, "FGW_CQL_KEYSPACE": "fgw_mig_none", **env})


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % probe.getsockname()[1]
        done = unreachable(address, "--json")
    assert done.returncode == 6
    assert "FGW-MIG-012 database does not answer" in done.stderr
    assert f"{address}: Connection refused" in done.stderr
    assert "fgw_mig_none" in done.stderr
    document = json.loads(done.stdout)
    assert document["exit_code"] == 6
    assert document["error"]["code"] == "FGW-MIG-012"
    assert "fgw doctor" in document["error"]["next"]


def test_wrong_port():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    try:
        done = unreachable("127.0.0.1:%d" % listener.getsockname()[1])
    finally:
        listener.close()
    assert done.returncode == 2
    assert "15433 is YugabyteDB's web UI" in done.stderr
    assert "FGW_CQL_HOSTS" in done.stderr


@pytest.mark.full
def test_wrong_password_and_missing_permission(tmp_path):
    with cassandra_server.Cassandra(tmp_path, auth=True) as server:
        done = unreachable(server.address, FGW_CQL_USER="cassandra", FGW_CQL_PASSWORD="wrong")
        assert done.returncode == 2
        assert "FGW-MIG-011" in done.stderr
        assert "refuses user and password" in done.stderr
        right = {"FGW_CQL_USER": "cassandra", "FGW_CQL_PASSWORD": "cassandra"}
        done = unreachable(server.address, **right)
        assert done.returncode == 2
        assert "FGW-MIG-010" in done.stdout

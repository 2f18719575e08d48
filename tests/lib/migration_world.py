"""A database with two keyspaces of a test's own, in any state the field reports found one in, and fgw
with the settings for them."""
import json
import re
import subprocess
import time
import uuid

import pytest

import fgw_server

LAST = 20261201000700
MIDDLE = 20261201000200
NODE_LAST = 20261201000100

MIRROR = "CREATE TABLE {k}.schema_migrations (version bigint PRIMARY KEY, dirty boolean)"
MULTIHASH = ("CREATE TABLE {k}.MultihashToGroup (Multihash blob, Group bigint, Size int, "
             "PRIMARY KEY ((Multihash), Group))")
OBJECTS = ("CREATE TABLE {k}.S3Objects (bucket text, key text, cid text, size bigint, "
           "updated timestamp, node_id text, expires_at timestamp, PRIMARY KEY ((bucket), key))")
OBJECTS_EARLIER = ("CREATE TABLE {k}.S3Objects (bucket text, key text, cid text, size bigint, "
                   "updated timestamp, PRIMARY KEY ((bucket), key))")
CID_GROUPS = "CREATE TABLE {k}.CidGroups (cid text PRIMARY KEY, groups set<bigint>)"
UPLOADS = ("CREATE TABLE {k}.MultipartUploads (upload_id text PRIMARY KEY, bucket text, key text, "
           "node_id text, created_at timestamp, expires_at timestamp, status text)")
UPLOADS_OF_INIT = ("CREATE TABLE {k}.MultipartUploads (bucket text, key text, upload_id text, "
                   "node_id text, created_at timestamp, PRIMARY KEY ((bucket, key), upload_id))")


class World:
    """address: where FGW finds the database, when not directly (a proxy)."""

    def __init__(self, database, address=None, **env):
        self.database = database
        unique = uuid.uuid4().hex[:12]
        self.shared = f"fgw_mig_{unique}"
        self.node = f"fgw_mig_{unique}_n"
        self.env = {"FGW_CQL_HOSTS": address or database.address,
                    "FGW_CQL_KEYSPACE": self.shared, "FGW_CQL_NODE_KEYSPACE": self.node, **env}

    def cql(self, text, keyspace=None):
        return list(self.database.session().execute(text.format(k=keyspace or self.shared)))

    def legacy(self, tables, version, dirty, keyspace=None):
        """A keyspace as golang-migrate and the init service leave it."""
        self.database.create_keyspace(keyspace or self.shared)
        for table in tables:
            self.cql(table, keyspace)
        self.cql(MIRROR, keyspace)
        self.cql("INSERT INTO {k}.schema_migrations (version, dirty) "
                 f"VALUES ({version}, {dirty})", keyspace)

    def run(self, *arguments, expect=0, timeout=300):
        done = fgw_server.run_fgw(*arguments, env=self.env, timeout=timeout)
        assert done.returncode == expect, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments, expect=0):
        document = json.loads(self.run(*arguments, "--json", expect=expect).stdout)
        assert document["exit_code"] == expect
        return document

    def shared_json(self, *arguments, expect=0):
        document = self.json("migrate", *arguments, "--keyspace", self.shared, expect=expect)
        return document["keyspaces"][0]

    def verify(self, keyspace=None):
        self.run("migrate", "verify", "--keyspace", keyspace or self.shared)

    def mirror(self, keyspace=None):
        return [(row.version, row.dirty)
                for row in self.cql("SELECT version, dirty FROM {k}.schema_migrations", keyspace)]

    def close(self):
        for keyspace in (self.shared, self.node):
            self.database.session().execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=200)


def next_command(done, world, expected):
    """The arguments of the command after "next" in what `done` printed; it names the keyspace."""
    found = re.findall(r"^  next +fgw (.+)$", done.stdout, re.MULTILINE)
    assert f"{expected} --keyspace {world.shared}" in found, done.stdout
    return f"{expected} --keyspace {world.shared}".split()


def start_all(world, count, *arguments):
    return [subprocess.Popen([fgw_server.binary(), *arguments],
                             env={**fgw_server.clean_environment(), **world.env},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for _ in range(count)]


def finish_all(processes, timeout=500):
    end = time.monotonic() + timeout
    texts = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=max(1, end - time.monotonic()))
            texts.append(out + err)
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], texts


@pytest.fixture
def world(cassandra):
    made = World(cassandra)
    yield made
    made.close()


@pytest.fixture(scope="module")
def migrated_world(cassandra):
    made = World(cassandra)
    made.run("db-init")
    yield made
    made.close()


@pytest.fixture
def migrated(migrated_world):
    """A finished schema, shared by tests that break and mend it."""
    yield migrated_world
    migrated_world.verify()

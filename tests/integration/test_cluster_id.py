"""One cluster id on the database and on the data directory, or nothing is served and nothing swept
(fgw serve with FGW_META=cql; kuri and proxy: tests/cluster)."""
import re

import pytest

import fgw_server
from migration_world import World

pytestmark = pytest.mark.slow


@pytest.fixture
def worlds(cassandra):
    made = [World(cassandra) for _ in range(2)]
    yield made
    for world in made:
        world.close()


def serving(world, folder, wait=True):
    server = fgw_server.new_server("embedded", folder, {
        **world.env, "FGW_META": "cql", "FGW_CLUSTER_SECRET": fgw_server.CLUSTER_SECRET,
        "FGW_CQL_NODE_KEYSPACE": "none"}).start(wait=False)
    if wait:
        assert server.wait_ready(120)  # it makes the tables first
    return server


def id_of_database(world):
    return [row.data.hex() for row in
            world.cql("SELECT data FROM {k}.map WHERE id = 'cluster'")]


def id_of_directory(server):
    return re.search(r"^cluster ([0-9a-f]{32})$", (server.data / "FORMAT").read_text(),
                     re.MULTILINE).group(1)


def put_one(server):
    client = server.client()
    client.create_bucket(Bucket="bucket")
    client.put_object(Bucket="bucket", Key="key", Body=b"x" * 300000)


def body(server):
    return server.client().get_object(Bucket="bucket", Key="key")["Body"].read()


def refused(world, folder):
    server = serving(world, folder, wait=False)
    try:
        assert server.process.process.wait(100) == 2
        return server.process.log_tail()
    finally:
        server.close()


@pytest.mark.timeout(300)
def test_the_directory_and_its_database(worlds, tmp_path):
    right, other = worlds
    server = serving(right, tmp_path / "a")
    assert id_of_database(right) == [id_of_directory(server)]
    put_one(server)
    server.stop()
    # an empty database beside a directory with data: everything in it would count as garbage
    log = refused(other, tmp_path / "a")
    assert "is it the right database?" in log
    assert other.shared in log
    assert id_of_database(other) == []
    # a database of another cluster
    other.run("db-init")
    assert len(id_of_database(other)) == 1
    log = refused(other, tmp_path / "a")
    assert f"belongs to another cluster than keyspace {other.shared}" in log
    # the id is lost: the directory gives it back
    right.cql("DELETE FROM {k}.map WHERE id = 'cluster'")
    right.run("db-init")
    assert id_of_database(right) == []  # it has buckets: whose, db-init cannot know
    server = serving(right, tmp_path / "a")
    assert id_of_database(right) == [id_of_directory(server)]
    assert body(server) == b"x" * 300000
    server.stop()


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_new_directory_takes_the_id(worlds, tmp_path):
    world, _ = worlds
    world.run("db-init")
    made = id_of_database(world)
    world.run("db-init")
    assert id_of_database(world) == made
    server = serving(world, tmp_path / "a")
    assert id_of_directory(server) == made[0]
    put_one(server)
    server.restart()
    assert body(server) == b"x" * 300000
    server.stop()

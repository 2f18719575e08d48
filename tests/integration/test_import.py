"""fgw import: the Go gateway's table and CARs become objects; what is wrong is named; it can be run
again. Source rows are in a real database."""
import datetime
import hashlib
import json
import re
import subprocess
import time

import pytest

import fgw_server
import legacy_gateway
import migration_world
from fgw_server import run_fgw

KEYS = {"FGW_ROOT_ACCESS_KEY": fgw_server.ACCESS_KEY, "FGW_ROOT_SECRET_KEY": fgw_server.SECRET_KEY}
MIB = 1 << 20


@pytest.fixture(name="gateway")
def make_gateway(cassandra, keyspace, tmp_path):
    return legacy_gateway.Gateway(cassandra, keyspace, tmp_path / "cars")


class Import:
    """Runs `fgw import` from a gateway into a data directory."""

    def __init__(self, gateway, cassandra, data, **more):
        self.gateway, self.data = gateway, data
        self.environment = {**KEYS, "FGW_CQL_HOSTS": cassandra.address, "FGW_DATA": str(data),
                            "FGW_MEMORY": "256MiB", "FGW_THREADS": "2", **more}

    def arguments(self, *more):
        return ("import", self.gateway.folder, "--from-keyspace", self.gateway.keyspace, "--json",
                *more)

    def run(self, *more, expect=0):
        done = run_fgw(*self.arguments(*more), env=self.environment, timeout=120)
        assert done.returncode == expect, done.stdout + done.stderr
        counts = json.loads(done.stdout) if done.stdout else {}
        said = [line for line in done.stderr.splitlines() if not line.startswith('{"time"')]
        return counts, "\n".join(said)


@pytest.fixture(name="job")
def make_job(gateway, cassandra, tmp_path):
    (tmp_path / "server-0").mkdir()
    return Import(gateway, cassandra, tmp_path / "server-0" / "data")


def numbers(counts):
    return {name: counts[name] for name in ("objects", "imported", "present", "kept", "expired",
                                            "failed")}


def check_objects(client, gateway, leave_out=()):
    for (bucket, key), data in gateway.contents.items():
        if (bucket, key) in leave_out:
            continue
        answer = client.get_object(Bucket=bucket, Key=key)
        assert answer["Body"].read() == data
        assert answer["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'


def fill(gateway, rng):
    gateway.add("photos", "empty", b"")
    gateway.add("photos", "small", b"hello world")
    gateway.add("photos", "a b/ä+%/ü", rng.randbytes(70000), car="deep/er/group-2.car")
    gateway.add("photos", "large", rng.randbytes(3 * MIB + 17), car="group-2.car")
    data = rng.randbytes(900000)
    gateway.add("papers", "leaves-of-256k", data,
                nodes=legacy_gateway.tree(data, width=2, chunk=256 << 10))
    parts = [rng.randbytes(MIB + 5), rng.randbytes(100)]
    gateway.add("papers", "multipart", b"".join(parts), nodes=legacy_gateway.multipart(parts))
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
    gateway.add("papers", "expired", b"gone", expires=past)
    del gateway.contents["papers", "expired"]
    gateway.write_cars()


def test_a_dry_run_reads_all_and_writes_nothing(gateway, job, rng):
    fill(gateway, rng)
    counts, said = job.run("--dry-run")
    assert said == ""
    assert (counts["objects"], counts["would_import"], counts["expired"]) == (7, 6, 1)
    assert (counts["cars"], counts["failed"], counts["cars_damaged"]) == (3, 0, 0)
    assert counts["bytes"] == sum(map(len, gateway.contents.values()))
    assert counts["blocks_checked"] == 20
    assert not job.data.exists()


def test_objects_come_in_and_a_second_run_finds_them(gateway, job, rng, server_factory):
    fill(gateway, rng)
    counts, _ = job.run()
    assert numbers(counts) == {"objects": 7, "imported": 6, "present": 0, "kept": 0, "expired": 1,
                               "failed": 0}
    assert counts["buckets_made"] == 2
    counts, _ = job.run()
    assert numbers(counts) == {"objects": 7, "imported": 0, "present": 6, "kept": 0, "expired": 1,
                               "failed": 0}
    server = server_factory(name="server-0", form="embedded")
    client = server.client()
    check_objects(client, gateway)
    head = client.head_object(Bucket="photos", Key="small")
    assert head["ResponseMetadata"]["HTTPHeaders"]["x-fgw-cid"] == \
        legacy_gateway.leaf(b"hello world").text
    assert head["Metadata"] == {}
    head = client.head_object(Bucket="papers", Key="multipart")
    assert re.fullmatch("Qm[1-9A-Za-z]{44}", head["Metadata"]["imported-cid"])


def test_names_of_this_store_stay(gateway, job, server_factory):
    gateway.add("photos", "mine", b"old content")
    gateway.add("photos", "same", b"same content")
    gateway.add("photos", "other", b"comes in")
    gateway.write_cars()
    server = server_factory(name="server-0", form="embedded")
    client = server.client()
    client.create_bucket(Bucket="photos")
    client.put_object(Bucket="photos", Key="mine", Body=b"new content")
    client.put_object(Bucket="photos", Key="same", Body=b"same content")
    _, said = job.run(expect=11)
    assert "in use" in said
    server.stop()
    counts, said = job.run()
    assert (counts["imported"], counts["present"], counts["kept"]) == (1, 1, 1)
    assert "photos/mine: bafk" in said and "another content here, which stays" in said
    server.start()
    assert client.get_object(Bucket="photos", Key="mine")["Body"].read() == b"new content"
    assert client.get_object(Bucket="photos", Key="other")["Body"].read() == b"comes in"


def test_a_damaged_block_is_named_and_the_rest_comes_in(gateway, job, rng, server_factory):
    gateway.add("photos", "good", rng.randbytes(1000))
    nodes = gateway.add("photos", "bad", rng.randbytes(2 * MIB))
    offsets = gateway.write_cars()["group-1.car"]
    car = gateway.folder / "group-1.car"
    content = bytearray(car.read_bytes())
    content[offsets[2] + 7] ^= 1
    car.write_bytes(content)
    counts, said = job.run(expect=1)
    assert (counts["imported"], counts["failed"]) == (1, 1)
    digest = hashlib.sha256(nodes[1].block).hexdigest()
    assert (f"photos/bad: {nodes[-1].text}: block sha256 {digest}: {car} offset {offsets[2]}: "
            "the block is not what its CID says") in said
    # a good copy in another CAR mends it
    legacy_gateway.write_car(gateway.folder / "rescue.car", nodes)
    counts, said = job.run()
    assert (counts["imported"], counts["present"], counts["failed"]) == (1, 1, 0) and said == ""
    check_objects(server_factory(name="server-0", form="embedded").client(), gateway)


def test_what_is_wrong_with_rows_and_files(gateway, job, rng):
    gateway.add("photos", "good", b"good")
    nodes = gateway.add("photos", "cut", rng.randbytes(5000), car="group-9.car")
    gateway.row("photos", "nowhere", legacy_gateway.leaf(b"nowhere").text, 7)
    gateway.row("photos", "size", legacy_gateway.leaf(b"good").text, 5)
    gateway.row("photos", "longer", legacy_gateway.leaf(b"good").text, 3)
    gateway.row("photos", "cid", "bafynonsense", 3)
    gateway.row("photos", "negative", legacy_gateway.leaf(b"good").text, None)
    gateway.row("ph", "name", legacy_gateway.leaf(b"good").text, 4)
    gateway.row("photos", "k" * 1025, legacy_gateway.leaf(b"good").text, 4)
    gateway.write_cars()
    car = gateway.folder / "group-9.car"
    car.write_bytes(car.read_bytes()[:-10])
    (gateway.folder / "noise.car").write_bytes(b"\x05hello, no CAR")
    counts, said = job.run(expect=1)
    assert (counts["imported"], counts["failed"], counts["cars_damaged"]) == (1, 8, 2)
    for text in (f"{car} offset 59: the last section is cut off; what follows there is not used",
                 f"{gateway.folder}/noise.car offset 0: is no CAR",
                 f"photos/cut: {nodes[-1].text}: block sha256 ", ": no CAR has it",
                 "photos/nowhere: ", "the tree has 4 bytes, the table says 5",
                 "photos/longer: ", "the tree has more bytes than the object",
                 "photos/cid: bafynonsense: the table has no CID that can be read",
                 "photos/negative: ", "the table has no size for it",
                 "ph/name: ", "a bucket name has 3 to 63 characters",
                 "a key has 1 to 1024 bytes"):
        assert text in said, (text, said)


def test_the_earlier_form_of_the_table(cassandra, keyspace, tmp_path):
    gateway = legacy_gateway.Gateway(cassandra, keyspace, tmp_path / "cars", old_form=True)
    gateway.add("photos", "one", b"one")
    gateway.add("papers", "two", b"two")
    gateway.write_cars()
    job = Import(gateway, cassandra, tmp_path / "data")
    assert job.run()[0]["imported"] == 2
    assert job.run("--bucket", "papers")[0]["objects"] == 1


@pytest.mark.slow
def test_more_rows_than_a_page_and_a_kill_in_the_middle(gateway, job, server_factory):
    blocks = [f"object {i}".encode() for i in range(1200)]
    statement = gateway.session.prepare(
        f"INSERT INTO {gateway.keyspace}.S3Objects (bucket, key, cid, size) VALUES (?, ?, ?, ?)")
    nodes = [legacy_gateway.leaf(block) for block in blocks]
    for i, node in enumerate(nodes):
        gateway.session.execute_async(statement, ("many", f"{i:05}", node.text, len(blocks[i])))
        gateway.contents["many", f"{i:05}"] = blocks[i]
    legacy_gateway.write_car(gateway.folder / "group-1.car", nodes)
    end = time.monotonic() + 30
    count = f"SELECT count(*) FROM {gateway.keyspace}.S3Objects"
    while gateway.session.execute(count).one()[0] < 1200 and time.monotonic() < end:
        time.sleep(0.1)
    process = subprocess.Popen([fgw_server.binary(), *map(str, job.arguments())],
                               env={**fgw_server.clean_environment(), **job.environment},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.2)
    process.kill()
    process.wait()
    counts, _ = job.run()
    assert counts["objects"] == 1200 and counts["imported"] + counts["present"] == 1200
    assert job.run()[0]["present"] == 1200
    client = server_factory(name="server-0", form="embedded").client()
    listed = [entry["Key"] for page in client.get_paginator("list_objects_v2").paginate(
        Bucket="many") for entry in page["Contents"]]
    assert listed == [f"{i:05}" for i in range(1200)]
    check_objects(client, gateway, leave_out={("many", f"{i:05}") for i in range(20, 1200)})


@pytest.mark.slow
@pytest.mark.parametrize("form", ["cql", "proxy"])
def test_into_a_database(gateway, cassandra, rng, server_factory, form):
    """cql: names in the database, bytes in the data directory. proxy: bytes on the cluster's node."""
    fill(gateway, rng)
    server = server_factory(form=form, name="server-0")
    settings = {name: str(value) for name, value in server.all_settings().items()
                if "LISTEN" not in name}
    job = Import(gateway, cassandra, settings["FGW_DATA"], **{
        name: value for name, value in settings.items() if name != "FGW_DATA"})
    if form == "cql":
        server.stop()
    counts, said = job.run(*(["--into", "cluster"] if form == "proxy" else []))
    assert (counts["imported"], counts["failed"]) == (6, 0), said
    assert job.run(*(["--into", "cluster"] if form == "proxy" else []))[0]["present"] == 6
    if form == "cql":
        server.start()
    check_objects(server.client(), gateway)


@pytest.mark.slow
def test_the_whole_move_in_one_keyspace(cassandra, tmp_path, rng, server_factory):
    """The gateway's shared keyspace as its migrations left it becomes ours: adopted, imported from,
    served; its table stays."""
    server = server_factory(form="cql", name="server-0", start=False)
    server.port, server.ops_port = fgw_server.free_port(), fgw_server.free_port()
    settings = {name: str(value) for name, value in server.all_settings().items()
                if "LISTEN" not in name}
    keyspace = settings["FGW_CQL_KEYSPACE"]
    cassandra.create_keyspace(keyspace)
    gateway = legacy_gateway.Gateway(cassandra, keyspace, tmp_path / "cars")
    fill(gateway, rng)
    session = cassandra.session()
    for table in (migration_world.MULTIHASH, migration_world.CID_GROUPS, migration_world.UPLOADS):
        session.execute(table.format(k=keyspace))
    session.execute(f"CREATE TABLE {keyspace}.schema_migrations (version bigint PRIMARY KEY, "
                    "dirty boolean)")
    session.execute(f"INSERT INTO {keyspace}.schema_migrations (version, dirty) "
                    "VALUES (1756300000, false)")
    (tmp_path / "server-0").mkdir(exist_ok=True)
    job = Import(gateway, cassandra, settings.pop("FGW_DATA"), **settings)
    done = run_fgw("import", gateway.folder, "--json", env=job.environment, timeout=200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["imported"] == 6
    server.start()
    check_objects(server.client(), gateway)
    assert session.execute(f"SELECT count(*) FROM {keyspace}.S3Objects").one()[0] == 7


@pytest.mark.parametrize("arguments, code, says", [
    ((), 2, "usage: fgw import FOLDER"),
    (("cars", "--into", "nowhere"), 2, "--into takes store or cluster, not nowhere"),
    (("cars", "--from-keyspace", "a;b"), 2, "--from-keyspace takes"),
    (("cars",), 2, "FGW_CQL_HOSTS must name")])
def test_usage(arguments, code, says, tmp_path):
    done = run_fgw("import", *arguments, env={**KEYS, "FGW_DATA": str(tmp_path / "data")})
    assert done.returncode == code and says in done.stderr
    assert not (tmp_path / "data").exists()


def test_no_table_and_no_folder(gateway, job, cassandra):
    _, said = job.run("--dry-run", expect=2)
    assert f"{gateway.folder}: there is no such folder" in said
    gateway.folder.mkdir()
    _, said = job.run("--dry-run", expect=2)
    assert "has no files named *.car" in said
    gateway.add("photos", "one", b"one")
    gateway.write_cars()
    cassandra.session().execute(f"DROP TABLE {gateway.keyspace}.S3Objects")
    _, said = job.run("--dry-run", expect=2)
    assert f"keyspace {gateway.keyspace} has no table S3Objects" in said

"""Fixtures for all Python tests; a folder's conftest.py imports them.

server          a running server, shared by the tests of a module; checked after each test
server_factory  server_factory(settings={...}, form=...) -> a server of the test's own, started
client          boto3 client of `server` with the root identity
bucket          a new bucket of `server`, emptied and removed afterwards
new_bucket      new_bucket(**create_bucket arguments) -> name; any number
raw             raw(method, target, headers, body, ...) -> one signed request to `server`
cassandra       the database of the run (cassandra_fixture.Database)
own_database    a Cassandra of the module's own, durable
keyspace        a fresh keyspace in it
rng             random.Random of this test, from FGW_TEST_SEED

FGW_TEST_FORM=embedded|tls|cql|ycql|proxy picks the form of `server` (tests/lib/fgw_server.py);
FGW_TEST_BINARY the program; FGW_TEST_CASSANDRA=host:port a database that runs already.
FGW_TEST_SAMPLE=N keeps, of the tests that use `server`, those marked every_form and one in N of the
others, chosen by the seed; they share one server a process.
"""
import collections
import os
import pathlib
import random
import shutil
import tempfile
import uuid

import botocore.exceptions
import pytest

import cassandra_fixture
import cassandra_server
import fgw_server

_SEED = os.environ.setdefault("FGW_TEST_SEED", str(random.SystemRandom().randrange(1, 2**31)))
_BASE = "FGW_TEST_RUN_FOLDER"


def pytest_configure(config):
    if not hasattr(config, "workerinput") and _BASE not in os.environ:
        os.environ[_BASE] = tempfile.mkdtemp(prefix="fgw-test-")
        config.fgw_run_folder = os.environ[_BASE]


def pytest_unconfigure(config):
    folder = getattr(config, "fgw_run_folder", None)
    if folder is not None:
        cassandra_fixture.stop_shared(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(_BASE, None)


def sample_size():
    return int(os.environ.get("FGW_TEST_SAMPLE") or 0)


def in_sample(item):
    if "module_server" not in item.fixturenames or item.get_closest_marker("slow"):
        return False
    chosen = random.Random(f"{_SEED} {form_of_run()} {item.nodeid}").randrange(sample_size()) == 0
    return chosen or item.get_closest_marker("every_form") is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if sample_size() > 0:
        left_out = [item for item in items if not in_sample(item)]
        items[:] = [item for item in items if in_sample(item)]
        config.hook.pytest_deselected(items=left_out)
    if hasattr(config, "workerinput"):
        put_long_files_first(items)


def put_long_files_first(items):
    """Lanes take files in this order (--no-loadscope-reorder): those with a test of minutes, so that no
    lane ends with it while the others are done, then those with many tests, as pytest-xdist would."""
    tests = collections.Counter(item.path for item in items)
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (item.path not in long, -tests[item.path]))


def pytest_report_header():
    return f"seed {_SEED} (FGW_TEST_SEED), form {form_of_run()}, program {fgw_server.binary()}"


def form_of_run():
    return os.environ.get("FGW_TEST_FORM") or "embedded"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Puts the server's last log lines under the report of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in getattr(item, "fgw_servers", []):
            report.sections.append((f"fgw {server.verb}", server.log_tail()))


def remember(request, server):
    """So that the log of `server` shows when the test fails."""
    item = request.node
    if not hasattr(item, "fgw_servers"):
        item.fgw_servers = []
    item.fgw_servers.append(server)


@pytest.fixture(scope="session")
def run_folder():
    return pathlib.Path(os.environ[_BASE])


@pytest.fixture(scope="session")
def form():
    return form_of_run()


@pytest.fixture
def rng(request):
    return random.Random(f"{_SEED} {request.node.nodeid}")


# -- database ---------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def cassandra(run_folder):
    address = cassandra_fixture.given_address()
    if address is None:
        cassandra_fixture.skip_if_unavailable()
        address = cassandra_fixture.shared_address(run_folder)
    database = cassandra_fixture.Database(address)
    yield database
    database.close()


@pytest.fixture(scope="module")
def own_database(tmp_path_factory):
    """To be stopped and killed: what it acknowledges is on its disk."""
    cassandra_fixture.skip_if_unavailable()
    with cassandra_server.Cassandra(tmp_path_factory.mktemp("cassandra"), durable=True) as server:
        yield server


@pytest.fixture
def keyspace(cassandra):
    name = f"fgw_test_{uuid.uuid4().hex[:16]}"
    cassandra.create_keyspace(name)
    yield name
    cassandra.drop_keyspace(name)


# -- servers ----------------------------------------------------------------------------------

def make_server(request, form, folder, settings=None, command_prefix=()):
    needs_database = form in fgw_server.FORMS_WITH_DATABASE
    database = request.getfixturevalue("cassandra") if needs_database else None
    return fgw_server.new_server(form, folder, settings, database, command_prefix)


def shared_server(request, form, tmp_path_factory, settings=None):
    started = make_server(request, form, tmp_path_factory.mktemp("server"),
                          settings)
    started.start()
    yield started
    try:
        started.stop()
    finally:
        started.close()


@pytest.fixture(scope="session")
def session_server(request, form, tmp_path_factory):
    yield from shared_server(request, form, tmp_path_factory)


@pytest.fixture(scope="module")
def module_server(request, form, tmp_path_factory):
    """The shared server; `server` guards it."""
    settings = getattr(request.module, "SERVER_SETTINGS", None)
    if sample_size() > 0 and settings is None:
        yield request.getfixturevalue("session_server")
    else:
        yield from shared_server(request, form, tmp_path_factory, settings)


@pytest.fixture
def server(request, module_server):
    """SERVER_SETTINGS = {...} in a module gives the server settings of its own."""
    if not module_server.running():
        module_server.start()
    remember(request, module_server)
    yield module_server
    module_server.check()


@pytest.fixture
def server_factory(request, form, tmp_path):
    made = []
    form_of_test = form

    def factory(settings=None, form=None, start=True, name=None, command_prefix=()):
        folder = tmp_path / (name or f"server-{len(made)}")
        server = make_server(request, form or form_of_test, folder, settings, command_prefix)
        made.append(server)
        remember(request, server)
        return server.start() if start else server

    yield factory
    try:
        for server in made:
            if server.process is not None and server.process.process is not None:
                server.stop()
    finally:
        for server in made:
            server.close()


@pytest.fixture
def client(server):
    return server.client()


@pytest.fixture
def raw(server):
    return server.raw


# -- buckets ----------------------------------------------------------------------------------

def bucket_name(prefix="test"):
    return f"{prefix}-{uuid.uuid4().hex[:20]}"


def pages(client, operation, bucket):
    """The pages of a listing; none where the server does not have the operation yet."""
    try:
        yield from client.get_paginator(operation).paginate(Bucket=bucket)
    except botocore.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "NotImplemented":
            raise


def empty_bucket(client, name):
    """Removes uploads, versions and objects, page by page."""
    for page in pages(client, "list_multipart_uploads", name):
        for upload in page.get("Uploads", []):
            client.abort_multipart_upload(Bucket=name, Key=upload["Key"],
                                          UploadId=upload["UploadId"])
    for page in pages(client, "list_object_versions", name):
        for entry in page.get("Versions", []) + page.get("DeleteMarkers", []):
            client.delete_object(Bucket=name, Key=entry["Key"], VersionId=entry["VersionId"])
    for page in pages(client, "list_objects_v2", name):
        for entry in page.get("Contents", []):
            client.delete_object(Bucket=name, Key=entry["Key"])


@pytest.fixture
def new_bucket(server):
    client = server.client()
    made = []

    def create(**arguments):
        arguments.setdefault("Bucket", bucket_name())
        client.create_bucket(**arguments)
        made.append(arguments["Bucket"])
        return arguments["Bucket"]

    yield create
    if not server.running():
        return
    # what a database cannot tell in time is asked again, as clients do
    client = server.client(retries={"total_max_attempts": 8, "mode": "standard"})
    for name in made:
        try:
            empty_bucket(client, name)
            client.delete_bucket(Bucket=name)
        except client.exceptions.NoSuchBucket:
            pass


@pytest.fixture
def bucket(new_bucket):
    return new_bucket()

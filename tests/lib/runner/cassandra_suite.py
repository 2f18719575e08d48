"""One real Cassandra for the whole run, when a test wants one: its address in FGW_TEST_CASSANDRA, in
two parts in FGW_TEST_CQL_HOSTS and FGW_TEST_CQL_PORT."""
import contextlib
import glob
import os
import shutil

import cassandra_server

from .common import RESULTS, TOP, say
from .integration import FOLDERS

WORDS = ("cassandra", "keyspace", "cql")


def mentions_database(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read().lower()
    return any(word in text for word in WORDS)


def is_needed(suites):
    if any(form in os.environ.get("FGW_TEST_FORM", "") for form in ("cql", "proxy")):
        return True
    files = []
    if "integration" in suites:
        for folder in FOLDERS:
            files += glob.glob(os.path.join(TOP, folder, "**", "test_*.py"), recursive=True)
    if "unit" in suites:
        # C tests that want one carry the ctest label "cassandra".
        files += [path for path in glob.glob(os.path.join(TOP, "tests/*/**/CMakeLists.txt"),
                                             recursive=True)
                  if "LABELS" in open(path, encoding="utf-8").read()]
    return any(mentions_database(path) for path in files)


def publish(address):
    os.environ["FGW_TEST_CASSANDRA"] = address
    os.environ["FGW_TEST_CQL_HOSTS"], os.environ["FGW_TEST_CQL_PORT"] = address.rsplit(":", 1)


@contextlib.contextmanager
def started_if_needed(run, suites):
    if os.environ.get("FGW_TEST_CASSANDRA"):
        publish(os.environ["FGW_TEST_CASSANDRA"])
        yield
        return
    if not is_needed(suites):
        yield
        return
    reason = cassandra_server.unavailable_reason()
    if reason:
        run.skip("Cassandra", reason)
        yield
        return
    say("Cassandra")
    folder = os.path.join(RESULTS, "cassandra")
    shutil.rmtree(folder, ignore_errors=True)
    server = cassandra_server.Cassandra(folder)
    try:
        server.start()
    except (cassandra_server.CassandraError, OSError) as error:
        print(error, flush=True)
        run.fail("Cassandra", "did not start (see above)", "tests/tools/cassandra start FOLDER")
        server.kill()
        yield
        return
    publish(server.address)
    try:
        yield
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

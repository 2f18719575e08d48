"""The database of a test run as tests see it: an address, a session, keyspaces that go away."""
import contextlib
import fcntl
import os
import pathlib

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

import cassandra_server


class Database:
    """FGW_TEST_CASSANDRA, or a server of this run."""

    def __init__(self, address):
        self.address = address
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self._cluster = None
        self._session = None

    def session(self):
        """A session of Cassandra's own Python driver, made at the first call."""
        if self._session is None:
            profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(),
                                       request_timeout=30)
            self._cluster = Cluster([self.host], port=self.port, protocol_version=4,
                                    execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                                    schema_event_refresh_window=-1, monitor_reporting_enabled=False)
            self._session = self._cluster.connect()
        return self._session

    def create_keyspace(self, name):
        self.session().execute(
            f"CREATE KEYSPACE {name} WITH replication = "
            "{'class': 'SimpleStrategy', 'replication_factor': 1}")

    def drop_keyspace(self, name):
        self.session().execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=120)

    def close(self):
        if self._cluster is not None:
            self._cluster.shutdown()


def skip_if_unavailable():
    reason = cassandra_server.unavailable_reason()
    if reason is not None:
        pytest.skip(reason)


def run_folder(base):
    folder = pathlib.Path(base) / "cassandra"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def shared_address(base):
    """The address of the one server below `base`, started by whoever asks first (any process)."""
    folder = run_folder(base)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = folder / "address"
        if not note.exists():
            server = cassandra_server.Cassandra(folder / "server")
            server.start(detached=True)
            note.write_text(server.address, encoding="utf-8")
        return note.read_text(encoding="utf-8")


def stop_shared(base):
    folder = pathlib.Path(base) / "cassandra" / "server"
    if (folder / "pid").exists():
        with contextlib.suppress(cassandra_server.CassandraError, ProcessLookupError):
            cassandra_server.Cassandra(folder).kill()


def given_address():
    return os.environ.get("FGW_TEST_CASSANDRA")

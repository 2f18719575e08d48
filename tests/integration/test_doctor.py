"""`fgw doctor` says by name what is wrong with the database that the settings point at: on a Cassandra
with passwords and TLS, and on ports that are something else."""
import contextlib
import json
import socket
import threading

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster

import cassandra_fixture
import cassandra_server
import fgw_server
from certificates import make_certificates

KEYSPACE = "fgw_doctor"


def settings(address, **more):
    return {"FGW_META": "cql", "FGW_CQL_HOSTS": address, "FGW_CQL_KEYSPACE": KEYSPACE,
            "FGW_CQL_NODE_KEYSPACE": "none", "FGW_CLUSTER_SECRET": fgw_server.CLUSTER_SECRET,
            "FGW_CQL_USER": "cassandra", "FGW_CQL_PASSWORD": "cassandra",
            "FGW_ROOT_ACCESS_KEY": "root", "FGW_ROOT_SECRET_KEY": "a-secret-for-the-root",
            "FGW_S3_LISTEN": f"127.0.0.1:{fgw_server.free_port()}",
            "FGW_OPS_LISTEN": f"127.0.0.1:{fgw_server.free_port()}", **more}


def doctor(folder, address, **more):
    """Its checks by name, each (good, detail); of several the last."""
    done = fgw_server.run_fgw("doctor", "--json", env=settings(
        address, FGW_DATA=str(folder / "data"), **more), timeout=100)
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["good"] else 1)
    return {check["check"]: (check["good"], check["detail"]) for check in document["checks"]}


@contextlib.contextmanager
def answering(answer):
    """A port where every connection gets `answer` to its first bytes and is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def run():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(100)
                        connection.sendall(answer)
        threading.Thread(target=run, daemon=True).start()
        yield "127.0.0.1:%d" % listener.getsockname()[1]


def test_beside_the_process_it_is_of(tmp_path):
    """Addresses that the running process itself holds are no fault; another one's are."""
    server = fgw_server.Server(tmp_path)
    server.start()
    try:
        for data, good in ((server.data, True), (tmp_path / "other", False)):
            done = fgw_server.run_fgw("doctor", "serve", "--json",
                                      env={**server.all_settings(), "FGW_DATA": data})
            checks = [check for check in json.loads(done.stdout)["checks"]
                      if check["check"].endswith("listener")]
            assert len(checks) == 2
            for check in checks:
                assert check["good"] is good
                assert f"(pid {server.process.process.pid})" in check["detail"]
            assert done.returncode == (0 if good else 1)
    finally:
        server.stop()


@pytest.mark.parametrize("answer,words", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", ["HTTP server", "15433", "YCQL listens on 9042"]),
    (b"E\0\0\0\x10SFATAL\0\0", ["PostgreSQL server", "5433", "YCQL listens on 9042"]),
    (b"", ["closed the connection", "5433 is YugabyteDB's YSQL", "15433 its web UI",
           "9042 its YCQL"]),
    (b"\x15\x03\x01\x00\x02\x02\x46", ["expects TLS", "FGW_CQL_TLS_CA"]),
])
def test_wrong_port(tmp_path, answer, words):
    with answering(answer) as address:
        good, detail = doctor(tmp_path, address)["database"]
    assert not good and address in detail
    assert [word for word in words if word not in detail] == []


def test_nobody_there(tmp_path):
    address = f"127.0.0.1:{fgw_server.free_port()}"
    good, detail = doctor(tmp_path, address)["database"]
    assert not good and address in detail and "refused" in detail


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A Cassandra with passwords and TLS, and our keyspace on it."""
    cassandra_fixture.skip_if_unavailable()
    folder = tmp_path_factory.mktemp("guarded")
    with cassandra_server.Cassandra(folder, auth=True, tls="optional") as server:
        done = fgw_server.run_fgw("db-init", env=settings(server.address), timeout=300)
        assert done.returncode == 0, done.stderr
        cluster = Cluster([server.host], port=server.port, protocol_version=4,
                          auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
        session = cluster.connect()
        for role in ("nobody", "reader"):
            session.execute(f"CREATE ROLE {role} WITH PASSWORD = 'word' AND LOGIN = true")
        session.execute(f"GRANT SELECT ON KEYSPACE {KEYSPACE} TO reader")
        cluster.shutdown()
        yield server


@pytest.mark.full
@pytest.mark.timeout(600)
def test_credentials_keyspace_and_permissions(guarded, tmp_path):
    address = guarded.address
    checks = doctor(tmp_path, address)
    assert checks["database"][0] and checks["keyspace"][0] and checks["permissions"][0]

    good, detail = doctor(tmp_path, address, FGW_CQL_PASSWORD="wrong")["database"]
    assert not good and "refuses user and password" in detail

    good, detail = doctor(tmp_path, address, FGW_CQL_KEYSPACE="fgw_docter")["keyspace"]
    assert not good and "keyspace is missing" in detail and KEYSPACE in detail
    assert "db-init" in detail

    checks = doctor(tmp_path, address, FGW_CQL_USER="nobody", FGW_CQL_PASSWORD="word")
    good, detail = checks["keyspace"]
    assert not good and "no permission" in detail and "grant the role" in detail

    good, detail = doctor(tmp_path, address, FGW_CQL_USER="reader",
                          FGW_CQL_PASSWORD="word")["permissions"]
    assert not good and "may not write" in detail and "MODIFY" in detail
    # what it tried left nothing behind
    assert doctor(tmp_path, address)["permissions"][0]


@pytest.mark.full
@pytest.mark.timeout(600)
def test_certificates(guarded, tmp_path):
    address = f"localhost:{guarded.port}"
    right = str(guarded.folder / "tls" / "ca.crt")
    assert doctor(tmp_path, address, FGW_CQL_TLS_CA=right)["database"][0]
    wrong = str(make_certificates(tmp_path / "others") / "ca.crt")
    good, detail = doctor(tmp_path, address, FGW_CQL_TLS_CA=wrong)["database"]
    assert not good and "TLS handshake failed" in detail and "certificate" in detail

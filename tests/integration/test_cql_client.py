"""src/cql against a real Cassandra: scenarios of tests/contract/cql/cql_contract.c, and what the
client does when the database dies, stalls, refuses it, or is no database at all."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest

import cassandra_server
import certificates
import fgw_server

PROGRAM = pathlib.Path(fgw_server.binary()).parent / "tests/contract/cql/cql_contract"


def start(address, scenario, *arguments):
    host, port = address.rsplit(":", 1)
    command = [str(PROGRAM), "--hosts", host, "--port", port, *map(str, arguments), scenario]
    return subprocess.Popen(command, env=fgw_server.clean_environment(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(process, timeout=90):
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


def run(address, scenario, *arguments, timeout=90):
    return finish(start(address, scenario, *arguments), timeout)


def connect(address, *arguments, timeout_ms=4000):
    """What the first connection comes to: {"err", "ms", "message", "flavour"}."""
    return json.loads(run(address, "connect", "--timeout-ms", timeout_ms, *arguments))


@pytest.mark.parametrize("scenario", ["types", "lwt", "paging", "batch", "alter", "errors",
                                      "pin", "patience"])
def test_scenario(cassandra, scenario):
    run(cassandra.address, scenario)


def load(server, seconds, disturb, *arguments):
    """The figures of a load of `seconds` that disturb() befalls."""
    process = start(server.address, "load", "--seconds", seconds, *arguments)
    try:
        assert process.stdout.readline() == "started\n", process.communicate(timeout=30)[1]
        time.sleep(2)
        disturb()
        lines = finish(process, seconds + 60)
    finally:
        process.kill()
    figures = json.loads(lines)
    print(figures)
    return figures


@pytest.mark.slow
def test_kill_under_load(own_database):
    def disturb():
        own_database.kill()
        time.sleep(2)
        own_database.start()

    figures = load(own_database, 25, disturb)
    assert figures["missing"] == 0
    assert figures["acknowledged"] > 100
    assert set(figures["results"]) <= {"OK", "UNAVAILABLE", "UNKNOWN_OUTCOME"}
    assert figures["results"]["UNAVAILABLE"] > 0
    # refused at once while it is down, and working again without a restart
    assert figures["longest_ms"] < 3000
    assert figures["last_ok_ms"] > 24000


@pytest.mark.slow
def test_stopped_process_makes_nothing_hang(own_database):
    def disturb():
        os.kill(own_database.process.pid, signal.SIGSTOP)
        try:
            time.sleep(12)
        finally:
            os.kill(own_database.process.pid, signal.SIGCONT)

    figures = load(own_database, 24, disturb, "--timeout-ms", 5000)
    assert figures["missing"] == 0
    assert set(figures["results"]) <= {"OK", "UNAVAILABLE", "UNKNOWN_OUTCOME", "TIMEOUT"}
    assert figures["results"]["UNAVAILABLE"] > 0
    assert figures["longest_ms"] < 6500
    assert figures["last_ok_ms"] > 23000


@pytest.mark.slow
def test_password(tmp_path):
    with cassandra_server.Cassandra(tmp_path, auth=True) as server:
        answer = connect(server.address)
        assert answer["err"] == "ACCESS_DENIED"
        assert "FGW_CQL_USER" in answer["message"]
        answer = connect(server.address, "--user", "cassandra", "--password", "wrong")
        assert answer["err"] == "ACCESS_DENIED"
        assert "refuses user and password" in answer["message"]
        run(server.address, "lwt", "--user", "cassandra", "--password", "cassandra")


@pytest.mark.slow
def test_tls(tmp_path):
    with cassandra_server.Cassandra(tmp_path / "db", tls="only") as server:
        authority = server.folder / "tls" / "ca.crt"
        end = time.monotonic() + 60
        while connect(server.address, "--tls-ca", authority)["err"] != "OK":
            assert time.monotonic() < end
        run(server.address, "types", "--tls-ca", authority)
        run(server.address, "paging", "--tls-ca", authority)
        answer = connect(server.address)
        assert answer["err"] != "OK"
        assert "TLS" in answer["message"]
        other = certificates.make_certificates(tmp_path / "other") / "ca.crt"
        answer = connect(server.address, "--tls-ca", other)
        assert answer["err"] != "OK"
        assert "certificate" in answer["message"]


# -- peers that are no CQL server ---------------------------------------------------------------

@contextlib.contextmanager
def peer(answer, close=True):
    """Reads once from each connection, answers so and closes (or stays silent)."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            kept.append(connection)
            connection.recv(65536)
            connection.sendall(answer)
            if close:
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield "127.0.0.1:%d" % listener.getsockname()[1]
    finally:
        listener.close()
        for connection in kept:
            connection.close()


HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
POSTGRES = b"E\x00\x00\x00\x8fSFATAL\x00"
VERSION_5 = bytes.fromhex("85000000000000000e0000000a0008") + b"too old!"


@pytest.mark.parametrize("answer,err,text", [
    (HTTP, "CONFIG", "15433 is YugabyteDB's web UI"),
    (POSTGRES, "CONFIG", "5433 is YugabyteDB's YSQL"),
    (b"", "UNAVAILABLE", "5433 is YugabyteDB's YSQL"),
    (b"\x15\x03\x03\x00\x02\x02\x46", "CONFIG", "expects TLS"),
    (VERSION_5, "CONFIG", "protocol version 5"),
    (bytes.fromhex("84000000067fffffff"), "CONFIG", "is refused"),
    (bytes.fromhex("840000000600000002ffff"), "CONFIG", "does not fit its lengths"),
])
def test_wrong_peer_is_named(answer, err, text):
    with peer(answer) as address:
        told = connect(address, timeout_ms=1500)
    assert text in told["message"]
    assert told["err"] == ("TIMEOUT" if err == "UNAVAILABLE" else err)


def test_silent_peer_does_not_hang():
    with peer(b"", close=False) as address:
        told = connect(address, timeout_ms=1500)
    assert told["err"] == "TIMEOUT"
    assert told["ms"] < 4000


def test_closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        told = connect("127.0.0.1:%d" % probe.getsockname()[1], timeout_ms=1000)
    assert told["err"] == "TIMEOUT"
    assert "refused" in told["message"]

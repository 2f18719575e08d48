"""Starts that must not succeed, and how a process ends: exit codes, texts, nothing touched."""
import contextlib
import os
import pathlib
import signal
import socket
import stat
import subprocess
import time

import pytest

from cassandra_server import free_port
import sigv4
from fgw_server import STOP_LIMIT_S, binary, clean_environment, run_fgw

ADDRESS_IN_USE, IN_USE, UNUSABLE = 13, 11, 14
NOBODY = 65534
GRACE_S = 30  # what a server waits for requests in flight


@pytest.fixture
def occupied():
    """occupied(address) -> a port on which this process listens."""
    listeners = []

    def occupy(address, port=0):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        listeners.append(listener)
        return listener.getsockname()[1]

    yield occupy
    for listener in listeners:
        listener.close()


def settings(data, **more):
    values = {"FGW_DATA": str(data), "FGW_S3_LISTEN": f"127.0.0.1:{free_port()}",
              "FGW_OPS_LISTEN": ""}
    values.update({f"FGW_{name}": str(value) for name, value in more.items()})
    return values


def refused(code, data, **more):
    """serve ends with `code` before it serves anything: its standard error."""
    done = run_fgw("serve", env=settings(data, **more), timeout=30)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


# -- the address is taken (a port in use must be an error, and the first thing noticed) ------

@pytest.mark.parametrize("taken, wanted", [
    ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "0.0.0.0"),
    ("0.0.0.0", "0.0.0.0"), ("::1", "[::1]"), ("::", "[::1]")])
@pytest.mark.parametrize("listener", ["S3_LISTEN", "OPS_LISTEN"])
def test_port_taken(tmp_path, occupied, taken, wanted, listener):
    port = occupied(taken)
    text = refused(ADDRESS_IN_USE, tmp_path / "data", **{listener: f"{wanted}:{port}"})
    assert f"{wanted}:{port}" in text and str(os.getpid()) in text, "the holder is named"
    assert not (tmp_path / "data").exists()


def test_two_servers_on_one_port(server_factory, tmp_path):
    first = server_factory()
    refused(ADDRESS_IN_USE, tmp_path / "other", S3_LISTEN=f"127.0.0.1:{first.port}")
    assert not (tmp_path / "other").exists()
    assert first.ready()


# -- the data directory ----------------------------------------------------------------------

def test_missing_folder_is_made_private(server_factory):
    server = server_factory()
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    server.stop()


def tree(folder):
    return sorted((str(path), path.stat().st_mode, path.stat().st_uid)
                  for path in folder.rglob("*"))


def test_data_is_a_file(tmp_path):
    data = tmp_path / "data"
    data.write_text("mine")
    text = refused(UNUSABLE, data)
    assert str(data) in text and data.read_text() == "mine"


def test_data_holds_foreign_files(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "thesis.tex").write_text("mine")
    before = tree(data)
    text = refused(UNUSABLE, data)
    assert str(data) in text and "thesis.tex" in text and tree(data) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("mode, owner", [(0o500, NOBODY), (0o700, 0)])
def test_data_is_not_writable(tmp_path, mode, owner):
    program = tmp_path / "fgw"
    program.write_bytes(pathlib.Path(binary()).read_bytes())
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != pathlib.Path("/") and "pytest" in str(folder):
            folder.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, owner, owner)
    data.chmod(mode)
    done = subprocess.run([program, "serve"], env={**clean_environment(), **settings(data)},
                          user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True,
                          text=True, timeout=30, cwd="/", check=False)
    assert done.returncode == UNUSABLE, done.stderr
    assert str(data) in done.stderr and str(NOBODY) in done.stderr
    assert list(data.iterdir()) == []
    assert (stat.S_IMODE(data.stat().st_mode), data.stat().st_uid) == (mode, owner)


def test_data_is_a_link_to_a_folder(server_factory, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    server = server_factory(form="embedded", settings={"FGW_DATA": tmp_path / "link"})
    server.stop()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "FORMAT").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="optional: needs root to mount")
@pytest.mark.parametrize("made_before", [True, False])
def test_data_on_a_read_only_file_system(server_factory, tmp_path, made_before):
    place = tmp_path / "place"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], check=True)
    try:
        if made_before:
            server_factory(form="embedded", settings={
                "FGW_DATA": place / "data", "FGW_MIN_FREE": "1MiB"}).stop()
        before = tree(place)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        text = refused(UNUSABLE, place / "data")
        assert str(place / "data") in text and "ead-only" in text
        assert tree(place) == before
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_two_servers_on_one_folder(server_factory):
    first = server_factory()
    text = refused(IN_USE, first.data)
    assert str(first.data) in text
    assert first.ready()


def test_killed_server_starts_at_once(server_factory):
    server = server_factory()
    server.kill()
    server.start()
    assert server.ready()


# -- signals ---------------------------------------------------------------------------------

@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_with_0(server_factory, sign):
    server = server_factory()
    started = time.monotonic()
    server.process.send_signal(sign)
    assert server.process.process.wait(STOP_LIMIT_S) == 0
    assert time.monotonic() - started < GRACE_S, "nothing was in flight"
    server.process.check_log()


@contextlib.contextmanager
def stopped_in_the_middle(server):
    """A connection with half of a PUT on its way and the rest of it; SIGTERM was sent."""
    server.client().create_bucket(Bucket="in-flight")
    request = sigv4.request_bytes(server.signer(), "PUT", "/in-flight/k", server.netloc,
                                  body=b"x" * 1000)
    with server.connect() as connection:
        connection.send(request[:-500])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        yield connection, request[-500:]


def test_request_in_flight_is_finished(server_factory):
    server = server_factory()
    with stopped_in_the_middle(server) as (connection, rest):
        assert server.running(), "it waits for the request"
        connection.send(rest)
        assert connection.answer("PUT").status == 200
    assert server.process.process.wait(STOP_LIMIT_S) == 0


def test_second_signal_ends_at_once(server_factory):
    server = server_factory()
    with stopped_in_the_middle(server):
        server.process.send_signal(signal.SIGTERM)
        started = time.monotonic()
        server.process.process.wait(STOP_LIMIT_S)
        assert time.monotonic() - started < GRACE_S - 5, "it waited for the request"
    server.start()


# -- what a start says -----------------------------------------------------------------------

@pytest.mark.parametrize("level, name", [("error", "ERROR"), ("WARNING", "WARN"), ("info", "INFO")])
def test_effective_log_level_shows(server_factory, level, name):
    server = server_factory(settings={"FGW_LOG_LEVEL": level})
    server.stop()
    log = server.process_log()
    assert f"log level is {name} (environment)" in log
    assert ("finishing requests" in log) == (level == "info")

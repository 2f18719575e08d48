"""tools/cluster as `make cluster` runs it: from a folder without anything, to the end by Ctrl-C."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading

import pytest

import cluster as cluster_module
from stores import ATTEMPTS, client, wait_for

LIMIT_S = 600
pytestmark = [pytest.mark.full, pytest.mark.timeout(2 * LIMIT_S)]


class At:
    def __init__(self, endpoint):
        self.endpoint = endpoint


def ports_used():
    text = (cluster_module.TOP / "tools" / "cluster").read_text(encoding="utf-8")
    listed = re.search(r"^PORTS = \[(.*)\]$", text, re.MULTILINE)[1]
    return [*(int(port) for port in listed.split(",")), int(re.search(r"^CQL_PORT = (\d+)$", text,
                                                                      re.MULTILINE)[1])]


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def left_over(folder):
    """Processes whose working directory or command line is in the folder."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(process / "cwd") + (process / "cmdline").read_text(errors="replace")
        except OSError:
            continue
        if str(folder) in where and int(process.name) != os.getpid():
            found.append(where)
    return found


def test_from_nothing_to_ready_and_to_the_end(tmp_path):
    taken = [port for port in ports_used() if not is_free(port)]
    if taken:
        pytest.skip(f"ports in use: {taken}")
    binary = os.environ.get("FGW_TEST_BINARY") or cluster_module.TOP / "build" / "asan" / "fgw"
    lines = []
    with subprocess.Popen([cluster_module.TOP / "tools" / "cluster"], cwd=tmp_path, text=True,
                          env={**os.environ, "FGW_BINARY": str(binary)}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
        reader.start()
        try:
            wait_for(lambda: any("Ctrl-C stops" in line for line in lines)
                     or process.poll() is not None, LIMIT_S, lambda: "".join(lines))
            assert process.poll() is None, "".join(lines)
            endpoints = re.findall(r"http://\S+", "".join(lines))
            first, second = (client(At(endpoint), ATTEMPTS) for endpoint in endpoints)
            first.create_bucket(Bucket="bucket")
            first.put_object(Bucket="bucket", Key="key", Body=b"written")
            assert second.get_object(Bucket="bucket", Key="key")["Body"].read() == b"written"
        finally:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            code = process.wait(LIMIT_S)
            reader.join(10)
    assert code == 0 and "ended badly" not in "".join(lines), "".join(lines)
    assert left_over(tmp_path) == []
    assert [port for port in ports_used() if not is_free(port)] == []

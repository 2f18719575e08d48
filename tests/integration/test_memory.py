"""Memory is bounded by configuration, not by clients: the peak of resident memory while many clients
upload at once. Meant for a build without sanitizers (FGW_TEST_BINARY=build/release/fgw); with
AddressSanitizer its quarantine is turned off, and what it adds (an eighth for shadow memory, red
zones) still has to fit."""
import concurrent.futures
import pathlib
import shutil

import pytest

import sigv4

MIB = 1 << 20
MEMORY = 256 * MIB
SLACK = 192 * MIB
CLIENTS = 64
OBJECT = 48 * MIB


def peak_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def upload(server, number, piece):
    head = sigv4.request_bytes(server.signer(), "PUT", f"/many/{number}", server.netloc,
                               [("Content-Length", str(OBJECT))], b"", mode=sigv4.UNSIGNED)
    with server.connect(timeout=300) as connection:
        connection.send(head)
        for _ in range(OBJECT // len(piece)):
            connection.send(piece)
        return connection.answer("PUT").status


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_peak_while_64_clients_upload(server_factory, rng, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
    server = server_factory(form="embedded", settings={"FGW_MEMORY": f"{MEMORY >> 20}MiB"})
    server.client().create_bucket(Bucket="many")
    piece = rng.randbytes(MIB)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        statuses = list(pool.map(lambda number: upload(server, number, piece), range(CLIENTS)))
    assert statuses == [200] * CLIENTS
    peak = peak_bytes(server.process.process.pid)
    print(f"peak {peak / MIB:.0f} MiB")
    server.stop()
    shutil.rmtree(server.data)  # 3 GiB
    assert peak <= MEMORY + SLACK, f"{peak / MIB:.0f} MiB"

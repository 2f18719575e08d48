"""`fgw bucket create --replicas`: each object of the bucket gets that many copies."""
import os
import subprocess
import time

import pytest


def copies(cluster, body):
    """Storage nodes with the body in a group file."""
    found = 0
    for node in cluster.nodes:
        groups = (node.folder / "data" / "groups").glob("*.car")
        found += any(body in path.read_bytes() for path in groups)
    return found


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_bucket_has_copies_of_its_own_number(cluster, rng, replicas):
    name = f"replicas-{replicas}"
    environment = {"PATH": os.environ["PATH"], "FGW_DATA": str(cluster.nodes[0].folder / "data"),
                   "ASAN_OPTIONS": "detect_leaks=0"}
    made = subprocess.run([cluster.binary, "bucket", "create", name, "--replicas", str(replicas)],
                          env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    proxy = cluster.proxies[0]
    end = time.monotonic() + 30
    number = 0
    while True:  # the sets are made when the first object asks for them
        body = rng.randbytes(5000)
        put = proxy.request("PUT", f"/{name}/{number}", body)
        if put.status == 200 and copies(cluster, body) == replicas:
            break
        assert time.monotonic() < end, put
        number += 1
        time.sleep(0.3)
    for _ in range(5):
        number += 1
        body = rng.randbytes(300000)
        assert proxy.request("PUT", f"/{name}/{number}", body).status == 200
        assert copies(cluster, body[:1000]) == replicas
        got = cluster.proxies[1].request("GET", f"/{name}/{number}")
        assert got.status == 200 and got.body == body


def test_sets_of_a_bucket_stay_as_they_were_made(cluster, rng):
    """Repair must not add members to a set of one: the next object would want a new one, for ever."""
    proxy = cluster.proxies[0]
    proxy.fgw("bucket", "create", "replicas-stay", "--replicas", "1")
    end = time.monotonic() + 60
    while True:
        body = rng.randbytes(5000)
        put = proxy.request("PUT", "/replicas-stay/object", body)
        if put.status == 200 and copies(cluster, body) == 1:
            break
        assert time.monotonic() < end, put
        time.sleep(0.3)
    sets, same = 0, 0
    while same < 12:  # several polls of the map, several looks of repair
        assert time.monotonic() < end + 60, f"the number of sets keeps growing: {sets}"
        assert proxy.request("PUT", "/replicas-stay/other", rng.randbytes(5000)).status == 200
        now = proxy.metrics()["fgw_cluster_sets"]
        sets, same = now, same + 1 if now == sets else 0
        time.sleep(0.5)
    assert copies(cluster, body) == 1

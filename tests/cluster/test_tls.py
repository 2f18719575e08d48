"""Storage nodes that speak TLS on their S3 port: clients, proxies and other nodes use it."""
import ssl
import time
import urllib.error
import urllib.request
import uuid

import certificates
from cluster import Cluster

MIB = 1024 * 1024


def wait_ready(member):
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{member.ops_port}/readyz", timeout=2):
                return
        except (OSError, urllib.error.URLError):
            assert time.monotonic() < end and member.running(), member.log_tail()
            time.sleep(0.2)


def start(member, **settings):
    """With settings of its own."""
    kept = dict(member.cluster.settings)
    member.cluster.settings.update(settings)
    try:
        member.start()
    finally:
        member.cluster.settings.clear()
        member.cluster.settings.update(kept)


def test_nodes_speak_tls_to_everybody(cassandra, tmp_path, rng):
    folder = certificates.make_certificates(tmp_path / "certificates")
    keyspace = f"fgw_test_{uuid.uuid4().hex[:16]}"
    cluster = Cluster(tmp_path / "cluster", nodes=2, proxies=2, address=cassandra.address,
                      keyspace=keyspace)
    cluster.lay_out()
    trust = {"SSL_CERT_FILE": str(folder / "ca.crt")}
    try:
        for node in cluster.nodes:
            start(node, FGW_TLS_CERT=str(folder / "server.crt"),
                  FGW_TLS_KEY=str(folder / "server.key"),
                  FGW_NODE_URL=f"https://127.0.0.1:{node.port}", **trust)
        start(cluster.proxies[0], **trust)
        start(cluster.proxies[1])  # does not know the authority
        for member in cluster.members:
            wait_ready(member)
        proxy, stranger = cluster.proxies
        assert proxy.request("PUT", "/tls").status == 200
        body = rng.randbytes(3 * MIB + 5)
        end = time.monotonic() + 20
        while proxy.request("PUT", "/tls/k", body).status != 200:
            assert time.monotonic() < end
            time.sleep(0.3)
        got = proxy.request("GET", "/tls/k")
        assert got.status == 200 and got.body == body
        assert stranger.request("GET", "/tls/k").status == 503
        assert stranger.request("PUT", "/tls/small", b"1").status == 503
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        for node in cluster.nodes:
            with urllib.request.urlopen(f"https://127.0.0.1:{node.port}/_fgw/v1/health",
                                        context=context, timeout=10) as health:
                assert health.status == 200
        assert cluster.stop() == []
    finally:
        cluster.kill()
        cassandra.drop_keyspace(keyspace)

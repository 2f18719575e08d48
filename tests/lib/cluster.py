"""A cluster of local processes: one Cassandra, storage nodes kuri-1..n, proxies; for tests and for
tools/cluster. Standard library only."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time

import cql_text
import rawhttp
import sigv4
from cassandra_server import Cassandra, die_with_parent, free_port

TOP = pathlib.Path(__file__).resolve().parents[2]
ACCESS_KEY = "clusteraccesskey"
SECRET_KEY = "cluster-secret-key-for-this-machine"
CLUSTER_SECRET = "cluster-secret-of-this-machine-0123456789"
REGION = "us-east-1"
NOT_IN_THIS_BUILD = 1


class ClusterError(AssertionError):
    """A process did not start or ended badly."""


class Member:
    """One process: `kuri` or `proxy`, on fixed ports."""

    def __init__(self, cluster, name, verb, port, ops_port):
        self.cluster, self.name, self.verb = cluster, name, verb
        self.port, self.ops_port = port, ops_port
        self.folder = cluster.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_path = self.folder / f"{verb}.log"
        self.process, self.began = None, 0
        self.url = f"http://127.0.0.1:{port}"  # under which others reach a storage node
        self.extra = {}  # settings of this process alone

    def settings(self):
        settings = {
            "FGW_NODE_ID": self.name,
            "FGW_S3_LISTEN": f"127.0.0.1:{self.port}",
            "FGW_OPS_LISTEN": f"127.0.0.1:{self.ops_port}",
            "FGW_ROOT_ACCESS_KEY": ACCESS_KEY,
            "FGW_ROOT_SECRET_KEY": SECRET_KEY,
            "FGW_CLUSTER_SECRET": CLUSTER_SECRET,
            "FGW_CQL_HOSTS": self.cluster.address,
            "FGW_CQL_KEYSPACE": self.cluster.keyspace,
            "FGW_LOG_FORMAT": "text",
            "FGW_THREADS": "2",
            "FGW_MEMORY": "256MiB",
        }
        if self.verb == "kuri":
            settings["FGW_DATA"] = str(self.folder / "data")
            settings["FGW_NODE_URL"] = self.url
            settings["FGW_CQL_NODE_KEYSPACE"] = "none"
        return {**settings, **self.cluster.settings, **self.extra}

    def start(self):
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("FGW_", "RIBS_", "AWS_"))}
        environment["ASAN_OPTIONS"] = "exitcode=99:detect_leaks=1"
        environment.update(self.settings())
        self.began = self.log_path.stat().st_size if self.log_path.exists() else 0
        with open(self.log_path, "ab") as log:
            # pylint: disable=subprocess-popen-preexec-fn
            self.process = subprocess.Popen(
                [self.cluster.binary, self.verb], cwd=self.folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=die_with_parent)
        return self

    def running(self):
        return self.process is not None and self.process.poll() is None

    def ready(self):
        try:
            with rawhttp.RawConnection("127.0.0.1", self.port, 2) as connection:
                connection.send(b"GET /_fgw/readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return connection.answer().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def wait_ready(self, limit_s=60):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ClusterError(f"{self.name} ended with {self.process.poll()}\n{self.log_tail()}")
            if self.ready():
                return self
            time.sleep(0.05)
        raise ClusterError(f"{self.name} is not ready after {limit_s} s\n{self.log_tail()}")

    def stop(self, limit_s=45):
        """SIGTERM; True when it ended with 0."""
        if self.process is None:
            return True
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -9
        self.process = None
        return code == 0

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def log(self):
        """What the process that runs has logged."""
        with open(self.log_path, "rb") as file:
            file.seek(self.began)
            return file.read().decode(errors="replace")

    def log_tail(self, lines=40):
        text = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"--- {self.log_path}", *text[-lines:]])

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, target, body=b"", headers=(), timeout=60):
        """One signed S3 request on a connection of its own."""
        signer = sigv4.Signer(ACCESS_KEY, SECRET_KEY, region=REGION)
        with rawhttp.RawConnection("127.0.0.1", self.port, timeout) as connection:
            connection.send(sigv4.request_bytes(signer, method, target,
                                                f"127.0.0.1:{self.port}", headers, body))
            return connection.answer(method)

    def fgw(self, *words, check=True):
        """A verb of the command line about this process, with --json: (exit code, document)."""
        environment = {"PATH": os.environ.get("PATH", ""), "FGW_LOG_FORMAT": "text",
                       "FGW_ROOT_ACCESS_KEY": ACCESS_KEY, "FGW_ROOT_SECRET_KEY": SECRET_KEY}
        where = (["--data", str(self.folder / "data")] if self.verb == "kuri" else
                 ["--admin", f"http://127.0.0.1:{self.ops_port}"])
        done = subprocess.run([self.cluster.binary, *words, *where, "--json"], env=environment,
                              capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode != 0:
            raise ClusterError(f"fgw {' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.ops_port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        return {line.split()[0]: float(line.split()[1]) for line in text.splitlines()
                if line and not line.startswith("#") and "{" not in line}

    def reasons(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.ops_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return json.loads(connection.getresponse().read())["reasons"]
        finally:
            connection.close()


class Cluster:
    """`address` of a Cassandra that runs already, or None for one of its own in the folder."""

    def __init__(self, folder, nodes=3, proxies=2, address=None, keyspace="filecoingw_s3",
                 ports=None, settings=None, binary=None):
        self.folder = pathlib.Path(folder).resolve()  # processes have folders of their own
        self.folder.mkdir(parents=True, exist_ok=True)
        self.binary = binary or os.environ.get("FGW_TEST_BINARY") or str(
            TOP / "build" / "asan" / "fgw")
        self.keyspace, self.settings = keyspace, dict(settings or {})
        self.address, self.cassandra = address, None
        ports = iter(ports or [free_port() for _ in range(2 * (nodes + proxies))])
        self.proxies = [Member(self, f"proxy-{i + 1}", "proxy", next(ports), next(ports))
                        for i in range(proxies)]
        self.nodes = [Member(self, f"kuri-{i + 1}", "kuri", next(ports), next(ports))
                      for i in range(nodes)]

    def add_node(self):
        """One more storage node; started by the caller."""
        name = f"kuri-{len(self.nodes) + 1}"
        self.nodes.append(Member(self, name, "kuri", free_port(), free_port()))
        return self.nodes[-1]

    @property
    def members(self):
        return [*self.nodes, *self.proxies]

    def start_database(self, port=None):
        if self.address is None:
            self.cassandra = Cassandra(self.folder / "cassandra", port=port)
            self.address = self.cassandra.start().address

    def lay_out(self):
        """`fgw db-init`; a build without it: the files of migrations/ as they are."""
        environment = {"PATH": os.environ.get("PATH", ""), "FGW_CQL_HOSTS": self.address,
                       "FGW_CQL_KEYSPACE": self.keyspace, "FGW_LOG_FORMAT": "text"}
        done = subprocess.run([self.binary, "db-init"], env=environment, capture_output=True,
                              text=True, timeout=300, check=False)
        if done.returncode == NOT_IN_THIS_BUILD and "not in this build" in done.stderr:
            cql_text.lay_out(self.address, self.keyspace, TOP / "migrations" / "shared")
        elif done.returncode != 0:
            raise ClusterError(f"fgw db-init ended with {done.returncode}\n{done.stderr}")

    def start(self):
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait_ready()
        return self.wait_settled()

    def wait_settled(self, limit_s=60):
        """All know the same map with all stores: before that, a write may rightly have one copy."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            told = [member.metrics() for member in self.members]
            versions = {one["fgw_cluster_map_version"] for one in told}
            if len(versions) == 1 and all(one["fgw_cluster_stores"] >= len(self.nodes)
                                          for one in told):
                return self
            time.sleep(0.1)
        raise ClusterError(f"maps differ after {limit_s} s: {versions}")

    def probe(self):
        """An object written through one proxy and read back through each."""
        body = os.urandom(300000)
        last = None
        for _ in range(20):
            self.proxies[0].request("PUT", "/fgw-cluster-probe")
            put = self.proxies[0].request("PUT", "/fgw-cluster-probe/object", body)
            last = put
            if put.status == 200:
                break
            time.sleep(0.5)
        else:
            raise ClusterError(f"PUT answers {last.status}: {last.body[:500]!r}")
        for proxy in self.proxies:
            got = proxy.request("GET", "/fgw-cluster-probe/object")
            if got.status != 200 or got.body != body:
                raise ClusterError(f"GET through {proxy.name} answers {got.status}")
        self.proxies[0].request("DELETE", "/fgw-cluster-probe/object")
        self.proxies[0].request("DELETE", "/fgw-cluster-probe")

    def stop(self):
        """All members in order; the names of those that ended badly."""
        bad = [member.name for member in [*self.proxies, *self.nodes] if not member.stop()]
        if self.cassandra is not None:
            self.cassandra.stop()
            self.cassandra = None
        return bad

    def kill(self):
        for member in self.members:
            member.kill()
        if self.cassandra is not None:
            self.cassandra.kill()
            self.cassandra = None

"""A real Apache Cassandra for tests: one process on the loopback, thrown away afterwards.

The jars come from Maven's central repository once and are kept outside the tree, in
${XDG_CACHE_HOME:-~/.cache}/fgw-test. Needs mvn and a Java runtime, 17 (Debian 12) or 21 (Debian 13).
Tuned for a quick start and a small heap, not for durability: no fsync, though data survives a kill
of the process. Standard library only: tests/run, the fixtures and tests/tools/cassandra use it.
"""
import ctypes
import fcntl
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

VERSION = "5.0.9"
START_LIMIT_S = 180
FETCH_LIMIT_S = 900

PORTS = random.SystemRandom()
ports_given = set()

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fgw.test</groupId><artifactId>cassandra-server</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId>
    <version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""

YAML = """cluster_name: fgw-test
num_tokens: 4
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
dynamic_snitch: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seeds}"}}]
auto_bootstrap: false
listen_address: {host}
storage_port: {storage_port}
rpc_address: {host}
native_transport_port: {port}
storage_compatibility_mode: NONE
{commitlog}
commitlog_segment_size: 16MiB
commitlog_total_space: 256MiB
max_mutation_size: 8MiB
batch_size_warn_threshold: 4MiB
batch_size_fail_threshold: 8MiB
unlogged_batch_across_partitions_warn_threshold: 1000
auto_snapshot: false
snapshot_before_compaction: false
incremental_backups: false
hinted_handoff_enabled: false
memtable_heap_space: 128MiB
memtable_offheap_space: 64MiB
file_cache_size: 32MiB
key_cache_size: 4MiB
row_cache_size: 0MiB
counter_cache_size: 2MiB
concurrent_reads: 8
concurrent_writes: 8
concurrent_counter_writes: 4
concurrent_compactors: 1
compaction_throughput: 0MiB/s
read_request_timeout: 20s
range_request_timeout: 20s
write_request_timeout: 20s
counter_write_request_timeout: 20s
cas_contention_timeout: 10s
truncate_request_timeout: 60s
request_timeout: 20s
slow_query_log_timeout: 5s
cdc_enabled: false
materialized_views_enabled: false
sasi_indexes_enabled: false
transient_replication_enabled: false
user_defined_functions_enabled: false
"""

YAML_AUTH = """authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
roles_validity: 500ms
permissions_validity: 500ms
credentials_validity: 500ms
"""

YAML_NO_AUTH = """authenticator: AllowAllAuthenticator
authorizer: AllowAllAuthorizer
"""

YAML_TLS = """client_encryption_options:
  enabled: true
  optional: {optional}
  require_client_auth: false
  ssl_context_factory:
    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory
  keystore: {folder}/server.pem
  truststore: {folder}/ca.crt
"""

LOGBACK = """<configuration>
  <appender name="F" class="ch.qos.logback.core.FileAppender">
    <file>{folder}/system.log</file>
    <encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="F"/></root>
</configuration>
"""

# jvm17-server.options of the release: without them it does not start.
EXPORTS = """java.base/jdk.internal.misc java.base/java.lang.ref
java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry
java.rmi/sun.rmi.server java.sql/java.sql jdk.unsupported/sun.misc
jdk.compiler/com.sun.tools.javac.file jdk.attach/sun.tools.attach""".split()
OPENS = """java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect
java.base/java.io java.base/java.util java.base/jdk.internal.loader java.base/jdk.internal.ref
java.base/jdk.internal.reflect java.base/jdk.internal.math java.base/jdk.internal.module
java.base/jdk.internal.util.jar java.base/sun.nio.ch jdk.management/com.sun.management.internal
jdk.compiler/com.sun.tools.javac""".split()


class CassandraError(Exception):
    """The server did not start, or not in time; the text says where its log is."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base, "fgw-test", f"cassandra-{VERSION}")


def unavailable_reason():
    """None when a server can be started here, else why not."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing and not (missing == ["mvn"] and (cache_folder() / ".complete").exists()):
        return f"{' and '.join(missing)} missing (tools/bootstrap test)"
    return None


def fetch():
    """The folder of the jars; downloads them at the first call on a machine (about 67 MB)."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / ".complete").exists():
        return folder
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            download(folder)
    return folder


def download(folder):
    for jar in folder.glob("*.jar"):
        jar.unlink()
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "pom.xml").write_text(POM)
        done = subprocess.run(
            ["mvn", "-B", "-q", "-ntp", "-f", f"{work}/pom.xml",
             "dependency:copy-dependencies", "-DincludeScope=runtime",
             f"-DoutputDirectory={folder}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=FETCH_LIMIT_S, text=True, check=False)
    if done.returncode != 0:
        raise CassandraError(f"mvn could not fetch Cassandra {VERSION}:\n{done.stdout[-2000:]}")
    (folder / ".complete").touch()


def free_port(host="127.0.0.1"):
    """Below the range that the kernel gives to outgoing connections, which could take it before its
    server does; never the same twice."""
    while True:
        port = PORTS.randrange(10240, 32000)
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        if port not in ports_given:
            ports_given.add(port)
            return port


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cassandra:
    """One server in `folder`. start() returns when CQL answers; stop() and kill() may be followed
    by start() again on the same data."""

    def __init__(self, folder, host="127.0.0.1", port=None, storage_port=None, seeds=None,
                 auth=False, tls=None, heap_mib=512, durable=False):
        """tls: None, "optional" (both on one port) or "only"; auth: user and password cassandra;
        durable: what it has acknowledged survives kill()."""
        self.folder = pathlib.Path(folder).resolve()
        self.host = host
        self.port = port or free_port(host)
        self.storage_port = storage_port or free_port(host)
        self.seeds = seeds or f"{host}:{self.storage_port}"
        self.auth = auth
        self.tls = tls
        self.heap_mib = heap_mib
        self.durable = durable
        self.process = None

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def start(self, detached=False):
        """detached: goes on when the caller ends; its pid is in folder/pid."""
        first = not (self.folder / "data" / "data").exists()
        self._write_configuration()
        command = self._command(fetch())
        with open(self.folder / "stdout.log", "wb") as log:
            # pylint: disable=subprocess-popen-preexec-fn
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True,
                                            preexec_fn=None if detached else die_with_parent)
        (self.folder / "pid").write_text(str(self.process.pid))
        self.wait()
        if first and self.auth:
            self._wait_for_log("Created default superuser role")
        return self

    def wait(self, limit_s=START_LIMIT_S):
        end = time.monotonic() + limit_s
        while not self.answers():
            if self.process is not None and self.process.poll() is not None:
                raise CassandraError(f"Cassandra ended:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise CassandraError(f"no CQL answer on {self.address}:\n{self.log_tail()}")
            time.sleep(0.1)

    def answers(self):
        """Whether an OPTIONS frame of protocol 4 is answered with SUPPORTED. A port that speaks
        nothing but TLS cannot be asked so: there a connection has to do."""
        try:
            with socket.create_connection((self.host, self.port), timeout=3) as connection:
                if self.tls == "only":
                    return True
                connection.sendall(bytes([4, 0, 0, 0, 5, 0, 0, 0, 0]))
                return connection.recv(5) == bytes([0x84, 0, 0, 0, 6])
        except OSError:
            return False

    def stop(self):
        """Drains and ends it."""
        self._end(signal.SIGTERM)

    def kill(self):
        """As a crash would."""
        self._end(signal.SIGKILL)

    def log_tail(self, lines=30):
        text = ""
        for name in ("system.log", "stdout.log"):
            path = self.folder / name
            if path.exists():
                text += "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) + "\n"
        return text

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def _end(self, sign):
        path = self.folder / "pid"
        if self.process is None and not path.exists():
            return
        pid = self.process.pid if self.process is not None else int(path.read_text())
        try:
            os.kill(pid, sign)
            self._wait_for_end(pid)
        except ProcessLookupError:
            pass
        self.process = None
        path.unlink(missing_ok=True)

    def _is_seed(self):
        return self.seeds == f"{self.host}:{self.storage_port}"

    def _wait_for_end(self, pid, limit_s=60):
        if self.process is not None:
            self.process.wait(limit_s)
            return
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            os.kill(pid, 0)
            time.sleep(0.1)
        raise CassandraError(f"process {pid} does not end")

    def _wait_for_log(self, text, limit_s=30):
        end = time.monotonic() + limit_s
        log = self.folder / "system.log"
        while text not in log.read_text(errors="replace") and time.monotonic() < end:
            time.sleep(0.1)

    def _write_configuration(self):
        for name in ("conf", "data", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        yaml = YAML.format(seeds=self.seeds, host=self.host, port=self.port,
                           storage_port=self.storage_port,
                           commitlog="commitlog_sync: batch" if self.durable else
                           "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms")
        yaml += YAML_AUTH if self.auth else YAML_NO_AUTH
        if self.tls is not None:
            self._make_certificates()
            yaml += YAML_TLS.format(optional="true" if self.tls == "optional" else "false",
                                    folder=self.folder / "tls")
        (self.folder / "conf" / "cassandra.yaml").write_text(yaml)
        (self.folder / "conf" / "logback.xml").write_text(LOGBACK.format(folder=self.folder))
        (self.folder / "system.log").write_text("")

    def _make_certificates(self):
        from certificates import make_certificates
        folder = self.folder / "tls"
        if not (folder / "server.pem").exists():
            make_certificates(folder)

    def _command(self, jars):
        command = ["java"]
        for name in EXPORTS:
            command += ["--add-exports", f"{name}=ALL-UNNAMED"]
        for name in OPENS:
            command += ["--add-opens", f"{name}=ALL-UNNAMED"]
        agent = next(jars.glob("jamm-*.jar"))
        properties = {
            "java.net.preferIPv4Stack": "true",
            "java.io.tmpdir": self.folder / "tmp",
            "jna.tmpdir": self.folder / "tmp",
            "java.security.manager": "allow",  # from Java 18 on it must be said
            "jdk.attach.allowAttachSelf": "true",
            "io.netty.tryReflectionSetAccessible": "true",
            "io.netty.allocator.useCacheForAllThreads": "true",
            "logback.configurationFile": self.folder / "conf" / "logback.xml",
            "cassandra.config": f"file://{self.folder}/conf/cassandra.yaml",
            "cassandra.storagedir": self.folder / "data",
            "cassandra.logdir": self.folder,
            "cassandra-foreground": "yes",
            "cassandra.skip_wait_for_gossip_to_settle": "0",
            # who joins a ring must hear of it within this time
            "cassandra.ring_delay_ms": "0" if self._is_seed() else "60000",
            "cassandra.superuser_setup_delay_ms": "0",
            "cassandra.memtable.row_overhead_size": "180",
            "cassandra.shutdown_announce_in_ms": "0",
            "cassandra.test.messagingService.nonGracefulShutdown": "true",
            "cassandra.skip_sync": "true",
        }
        command += [f"-javaagent:{agent}", "-Xshare:auto", "-Xms128m", f"-Xmx{self.heap_mib}m",
                    "-Xss256k", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError"]
        command += [f"-D{name}={value}" for name, value in properties.items()]
        command += ["-cp", ":".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
                    "org.apache.cassandra.service.CassandraDaemon"]
        return command

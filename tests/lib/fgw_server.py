"""FGW processes for tests: one server, or a form of it (TLS, metadata in a database, proxy in
front of a node), started on free ports of the loopback with data of its own.

A server is an object with start, stop, kill, restart, client (boto3), connect (raw socket) and
signer. stop() checks that the process ended with 0 and that no sanitizer spoke.
"""
import http.client
import os
import pathlib
import re
import signal
import ssl
import subprocess
import time
import uuid

import boto3
import botocore.config

import rawhttp
import sigv4
import ycql_proxy
from cassandra_server import die_with_parent, free_port
from certificates import make_certificates

TOP = pathlib.Path(__file__).resolve().parents[2]
ACCESS_KEY = "rootaccesskey"
SECRET_KEY = "root-secret-key-for-tests"
CLUSTER_SECRET = "cluster-secret-for-tests-0123456789abcdef"
REGION = "us-east-1"
READY_LIMIT_S = 90
STOP_LIMIT_S = 45

SANITIZER = re.compile(rb"ERROR: (Address|Leak)Sanitizer|runtime error:|WARNING: ThreadSanitizer"
                       rb"|fgw: check failed")
EXIT_ADDRESS_IN_USE = 13


class ServerError(AssertionError):
    """The process did not start, ended badly, or a sanitizer found something."""


def binary():
    return os.environ.get("FGW_TEST_BINARY") or str(TOP / "build" / "asan" / "fgw")


def clean_environment():
    """The environment without settings of FGW or of clients that could leak in."""
    prefixes = ("FGW_", "RIBS_", "AWS_", "LD_PRELOAD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    kept["ASAN_OPTIONS"] = "exitcode=99:detect_leaks=1:" + os.environ.get("ASAN_OPTIONS", "")
    kept["UBSAN_OPTIONS"] = "print_stacktrace=1:" + os.environ.get("UBSAN_OPTIONS", "")
    return kept


def environment_with(settings):
    """The clean environment and settings of any type."""
    return {**clean_environment(), **{name: str(value) for name, value in settings.items()}}


def run_fgw(*arguments, env=None, timeout=100, **options):
    """fgw with arguments to its end: a CompletedProcess with text."""
    return subprocess.run([binary(), *map(str, arguments)], env=environment_with(env or {}),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                          check=False, **options)


def admin_verb(server, *arguments, **keys):
    """A verb over the network, signed; keys: access and secret, root's unless given."""
    return run_fgw(*arguments, "--admin", f"http://{server.host}:{server.ops_port}", env={
        "FGW_ROOT_ACCESS_KEY": keys.get("access", server.access_key),
        "FGW_ROOT_SECRET_KEY": keys.get("secret", server.secret_key)})


class Process:
    """One fgw process: `verb` with `settings` (FGW_ names to values) in `folder`."""

    def __init__(self, folder, verb, settings, command_prefix=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.verb = verb
        self.settings = dict(settings)
        self.command_prefix = list(command_prefix)
        self.log_path = self.folder / f"{verb}.log"
        self.process = None
        self.expect_exit = {0}

    def launch(self, arguments=()):
        environment = environment_with(self.settings)
        with open(self.log_path, "ab") as log:
            # pylint: disable=subprocess-popen-preexec-fn
            self.process = subprocess.Popen(
                [*self.command_prefix, binary(), self.verb, *arguments], cwd=self.folder,
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=die_with_parent)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def send_signal(self, sign):
        self.process.send_signal(sign)

    def stop(self, limit_s=STOP_LIMIT_S):
        """SIGTERM; the exit code must be one of expect_exit and the log clean."""
        if self.process is None:
            return
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"fgw {self.verb} did not end {limit_s} s after SIGTERM\n"
                              f"{self.log_tail()}") from None
        self.process = None
        self.check_log()
        if code not in self.expect_exit:
            raise ServerError(f"fgw {self.verb} ended with {code}\n{self.log_tail()}")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def log_bytes(self):
        return self.log_path.read_bytes() if self.log_path.exists() else b""

    def log_tail(self, lines=60):
        text = self.log_bytes().decode("utf-8", "replace").splitlines()
        return "\n".join([f"--- last lines of {self.log_path}", *text[-lines:]])

    def check_log(self):
        log = self.log_bytes()
        found = SANITIZER.search(log)
        if found:
            text = log[max(0, found.start() - 200):found.start() + 6000]
            raise ServerError("a sanitizer or a check spoke:\n" + text.decode("utf-8", "replace"))


class Server:
    """The embedded form: fgw serve with RocksDB, over plain HTTP."""

    scheme = "http"
    verb = "serve"

    def __init__(self, folder, settings=None, command_prefix=()):
        self.folder = pathlib.Path(folder)
        self.settings = dict(settings or {})
        self.command_prefix = command_prefix
        self.host = "127.0.0.1"
        self.port = None
        self.ops_port = None
        self.process = None
        self.access_key = self.settings.get("FGW_ROOT_ACCESS_KEY", ACCESS_KEY)
        self.secret_key = self.settings.get("FGW_ROOT_SECRET_KEY", SECRET_KEY)

    # -- life ---------------------------------------------------------------------------------

    @property
    def data(self):
        return self.folder / "data"

    def all_settings(self):
        return {
            "FGW_DATA": self.data,
            "FGW_S3_LISTEN": f"{self.host}:{self.port}",
            "FGW_OPS_LISTEN": f"{self.host}:{self.ops_port}",
            "FGW_ROOT_ACCESS_KEY": self.access_key,
            "FGW_ROOT_SECRET_KEY": self.secret_key,
            "FGW_LOG_LEVEL": "info",
            "FGW_LOG_FORMAT": "text",
            "FGW_THREADS": 2,
            "FGW_MEMORY": "256MiB",
            **self.settings,
        }

    def start(self, wait=True):
        """A port may be taken between choosing and binding it: then with another one."""
        for attempt in range(3):
            if self.port is None or attempt > 0:
                self.port, self.ops_port = free_port(), free_port()
            self.process = Process(self.folder, self.verb, self.all_settings(),
                                   self.command_prefix)
            self.process.launch()
            if not wait:
                return self
            if self.wait_ready():
                return self
        raise ServerError(f"no free port\n{self.process.log_tail()}")

    def wait_ready(self, limit_s=READY_LIMIT_S):
        """True when /_fgw/readyz says 200; False when the address was taken."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if not self.process.running():
                code = self.process.process.wait()
                if code == EXIT_ADDRESS_IN_USE:
                    return False
                raise ServerError(f"fgw {self.verb} ended with {code} at its start\n"
                                  f"{self.process.log_tail()}")
            if self.ready():
                return True
            time.sleep(0.02)
        tail = self.process.log_tail()
        self.process.kill()
        raise ServerError(f"fgw {self.verb} not ready after {limit_s} s\n{tail}")

    def ready(self):
        try:
            with self.connect(timeout=2) as connection:
                connection.send(b"GET /_fgw/readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return connection.answer().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def stop(self):
        if self.process is not None:
            self.process.stop()

    def kill(self):
        """As a crash would: SIGKILL."""
        if self.process is not None:
            self.process.kill()

    def close(self):
        """Whatever the state: ended, ports free. Used when a test failed already."""
        self.kill()

    def restart(self):
        self.stop()
        return self.start()

    def running(self):
        return self.process is not None and self.process.running()

    def check(self):
        """Fails when the process ended or a sanitizer spoke."""
        self.process.check_log()
        if not self.running():
            raise ServerError(f"fgw {self.verb} ended\n{self.process.log_tail()}")

    def log_tail(self):
        return self.process.log_tail() if self.process is not None else ""

    def process_log(self):
        """All the process wrote since the server was first started."""
        return self.process.log_bytes().decode("utf-8", "replace")

    # -- clients ------------------------------------------------------------------------------

    @property
    def netloc(self):
        return f"{self.host}:{self.port}"

    @property
    def endpoint(self):
        return f"{self.scheme}://{self.netloc}"

    def tls_context(self):
        return None

    def ca_file(self):
        return None

    def connect(self, timeout=30):
        return rawhttp.RawConnection(self.host, self.port, timeout, self.tls_context())

    def signer(self, **options):
        options.setdefault("region", REGION)
        return sigv4.Signer(self.access_key, self.secret_key, **options)

    def raw(self, method, target, headers=(), body=b"", **options):
        """One signed request on a connection of its own; options of sigv4.request_bytes."""
        signer = options.pop("signer", None) or self.signer()
        with self.connect() as connection:
            connection.send(sigv4.request_bytes(signer, method, target, self.netloc, headers,
                                                body, **options))
            return connection.answer(method)

    def client(self, access_key=None, secret_key=None, service="s3", **config):
        """boto3, path style, without retries: a test sees the first answer."""
        config.setdefault("s3", {"addressing_style": "path"})
        config.setdefault("retries", {"total_max_attempts": 1, "mode": "standard"})
        config.setdefault("proxies", {})
        config.setdefault("read_timeout", 60)
        config.setdefault("connect_timeout", 10)
        return boto3.client(
            service, endpoint_url=self.endpoint, region_name=REGION,
            aws_access_key_id=access_key or self.access_key,
            aws_secret_access_key=secret_key or self.secret_key,
            verify=self.ca_file() or True, config=botocore.config.Config(**config))


class TlsServer(Server):
    """The embedded form behind TLS, with a certificate of its own authority."""

    scheme = "https"

    def all_settings(self):
        if not (self.folder / "tls" / "server.crt").exists():
            make_certificates(self.folder / "tls")
        return {**super().all_settings(),
                "FGW_TLS_CERT": self.folder / "tls" / "server.crt",
                "FGW_TLS_KEY": self.folder / "tls" / "server.key"}

    def ca_file(self):
        return str(self.folder / "tls" / "ca.crt")

    def tls_context(self):
        return ssl.create_default_context(cafile=self.ca_file())


class CqlServer(Server):
    """fgw serve with its names in Cassandra; each server has keyspaces of its own."""

    def __init__(self, folder, settings=None, command_prefix=(), cassandra=None):
        super().__init__(folder, settings, command_prefix)
        self.cassandra = cassandra
        self.tag = uuid.uuid4().hex[:12]

    def all_settings(self):
        return {**super().all_settings(),
                "FGW_META": "cql",
                "FGW_CQL_HOSTS": self.cassandra.address,
                "FGW_CQL_KEYSPACE": f"fgw_test_{self.tag}",
                "FGW_CQL_NODE_KEYSPACE": f"fgw_test_{self.tag}_node",
                "FGW_CLUSTER_SECRET": CLUSTER_SECRET,
                **self.settings}

    def wait_ready(self, limit_s=300):
        return super().wait_ready(limit_s)

    def close(self):
        super().close()
        for name in (f"fgw_test_{self.tag}", f"fgw_test_{self.tag}_node"):
            self.cassandra.drop_keyspace(name)


class YcqlServer(CqlServer):
    """The same with a proxy in between that makes Cassandra look and misbehave as YCQL does; what
    FGW must never send fails the test that is running when it ends."""

    def __init__(self, folder, settings=None, command_prefix=(), cassandra=None):
        super().__init__(folder, settings, command_prefix, cassandra)
        seed = int(os.environ.get("FGW_TEST_SEED", "0"))
        self.proxy = ycql_proxy.YcqlProxy(cassandra.address, seed, ycql_proxy.USUAL)
        self.proxy.spare_ddl = True
        self.proxy.start()

    def all_settings(self):
        return {**super().all_settings(), "FGW_CQL_HOSTS": self.proxy.address, **self.settings}

    def check(self):
        super().check()
        if self.proxy.violations:
            raise ServerError("sent to YCQL what it must not: " + "; ".join(self.proxy.violations))

    def close(self):
        super().close()
        self.proxy.close()


class ProxyServer(CqlServer):
    """fgw proxy in front of one fgw kuri: clients speak to the proxy. `node` is the storage node."""

    verb = "proxy"

    def __init__(self, folder, settings=None, command_prefix=(), cassandra=None):
        super().__init__(folder, settings, command_prefix, cassandra)
        self.node = None

    def all_settings(self):
        return {**super().all_settings(), "FGW_REPLICAS": 1, **self.settings}

    def start(self, wait=True):
        if self.node is None:
            self.node = KuriServer(self.folder / "kuri", self.settings, (), self.cassandra)
            self.node.tag = self.tag
            self.create_keyspaces()
        if not self.node.running():
            self.node.start()
        return super().start(wait)

    def create_keyspaces(self):
        port = free_port()
        settings = {name: value for name, value in
                    {**self.all_settings(), "FGW_S3_LISTEN": f"127.0.0.1:{port}"}.items()
                    if name.startswith("FGW_CQL_") or name == "FGW_CLUSTER_SECRET"}
        done = run_fgw("db-init", env=settings, timeout=300)
        if done.returncode != 0:
            raise ServerError(f"fgw db-init ended with {done.returncode}\n{done.stderr}")

    def stop(self):
        super().stop()
        if self.node is not None:
            self.node.stop()

    def close(self):
        super().close()
        if self.node is not None:
            self.node.kill()


class KuriServer(CqlServer):
    """A storage node."""

    verb = "kuri"

    def all_settings(self):
        return {**super().all_settings(), "FGW_NODE_ID": "kuri-1", "FGW_REPLICAS": 1,
                "FGW_NODE_URL": self.endpoint, **self.settings}


FORMS = {"embedded": Server, "tls": TlsServer, "cql": CqlServer, "ycql": YcqlServer,
         "proxy": ProxyServer}
FORMS_WITH_DATABASE = ("cql", "ycql", "proxy")


def new_server(form, folder, settings=None, cassandra=None, command_prefix=()):
    if form in FORMS_WITH_DATABASE:
        return FORMS[form](folder, settings, command_prefix, cassandra)
    return FORMS[form](folder, settings, command_prefix)

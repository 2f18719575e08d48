"""deploy/: start.sh and stop.sh against a stand-in for docker, and what the files say of each other.

The stand-in (a script called docker in front of PATH) knows the calls the scripts make and answers
from a plan; behind the load balancer's port stands a real `fgw serve`, behind the consoles' ports
stand answers of /readyz.
"""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess
import threading
import time

import pytest
import yaml

import fgw_server

TOP = pathlib.Path(__file__).resolve().parents[2]
COMPOSE = TOP / "deploy" / "compose"
SERVICES = ("kuri-1", "kuri-2", "proxy-1", "proxy-2")
OPS_PORTS = {"kuri-1": "KURI1_OPS_PORT", "kuri-2": "KURI2_OPS_PORT", "proxy-1": "PROXY1_OPS_PORT",
             "proxy-2": "PROXY2_OPS_PORT"}
PORT_NAMES = ("S3_PORT", "KURI1_PORT", "KURI2_PORT", *OPS_PORTS.values(), "PROMETHEUS_PORT",
              "GRAFANA_PORT", "YSQL_PORT", "YCQL_PORT", "YUGABYTE_UI_PORT")
READY = (200, {"ready": True, "role": "kuri", "reasons": []})
WAITING = (503, {"ready": False, "role": "kuri", "reasons": [
    {"what": "database", "why": "no answer from \"yugabytedb\":9042", "since_ms": 1200},
    {"what": "engine", "why": "starting", "since_ms": 1200}]})

DOCKER = """#!/bin/bash
# Answers as docker would, from the folder $PLAN: exit codes and states of containers.
echo "$*" >>"$PLAN/calls"
case "$*" in
version*) echo 28.0 ;;
"compose version"*) ;;
"compose ps -q") [ ! -e "$PLAN/up" ] || echo some ;;
"compose ps -a -q") [ ! -e "$PLAN/left" ] || echo some ;;
"compose ps -a -q "*) [ -e "$PLAN/gone-$5" ] || echo "$5" ;;
inspect*) cat "$PLAN/state-$4" 2>/dev/null || echo "running 0" ;;
"compose logs "*) echo "the log of ${*: -1}" ;;
"compose up "*) touch "$PLAN/up"; exit "$(cat "$PLAN/up-exit" 2>/dev/null || echo 0)" ;;
"compose stop" | "compose down "*) rm -f "$PLAN/up" ;;
ps*) [ ! -e "$PLAN/container" ] || cat "$PLAN/container" ;;
*) echo "the stand-in does not know: $*" >&2; exit 99 ;;
esac
"""


class Answers(http.server.BaseHTTPRequestHandler):
    """/readyz of one process; of a bad S3 server when `answer` is bytes."""

    def reply(self):
        answer = self.server.answer
        status, body = (200, answer) if isinstance(answer, bytes) else \
            (answer[0], json.dumps(answer[1], separators=(",", ":")).encode())
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204 if self.command == "DELETE" else status)
        self.send_header("Content-Length", str(0 if self.command == "DELETE" else len(body)))
        self.end_headers()
        if self.command != "DELETE":
            self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = reply  # pylint: disable=invalid-name

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Stage:
    """A copy of deploy/compose, the stand-in, and what listens once `docker compose up` ran."""

    def __init__(self, folder):
        self.folder = folder / "compose"
        self.plan = folder / "plan"
        self.ports = {name: fgw_server.free_port() for name in PORT_NAMES}
        self.answers = {service: READY for service in SERVICES}
        self.s3_answer = None  # bytes: instead of a real server
        self.server = None
        self.listeners = []
        self.done = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        shutil.copytree(COMPOSE, self.folder, ignore=shutil.ignore_patterns(".env", "data"))
        self.plan.mkdir()
        tool = folder / "bin" / "docker"
        tool.parent.mkdir()
        tool.write_text(DOCKER, encoding="utf-8")
        tool.chmod(0o755)
        self.environment = {**os.environ, "PLAN": str(self.plan),
                            "PATH": f"{tool.parent}:{os.environ['PATH']}",
                            **{name: str(port) for name, port in self.ports.items()}}
        self.watcher.start()

    def note(self, name, text=""):
        (self.plan / name).write_text(text, encoding="utf-8")

    def calls(self):
        path = self.plan / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def env_file(self):
        return dict(line.split("=", 1) for line in
                    (self.folder / ".env").read_text(encoding="utf-8").splitlines()
                    if "=" in line and not line.startswith("#"))

    def listen(self, port, answer):
        listener = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
        listener.answer = answer
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        self.listeners.append(listener)

    def start_services(self):
        if self.s3_answer is not None:
            self.listen(self.ports["S3_PORT"], self.s3_answer)
        else:
            keys = {name: self.env_file()[name]
                    for name in ("FGW_ROOT_ACCESS_KEY", "FGW_ROOT_SECRET_KEY")}
            self.server = fgw_server.Server(self.folder.parent / "serve", keys)
            self.server.port = self.ports["S3_PORT"]
            self.server.ops_port = fgw_server.free_port()
            self.server.start()
            assert self.server.port == self.ports["S3_PORT"], self.server.log_tail()
        for service, answer in self.answers.items():
            if answer is not None:
                self.listen(self.ports[OPS_PORTS[service]], answer)

    def watch(self):
        """Lives as long as the stage: a server ends with the thread that started it."""
        while not self.done.wait(0.02) and not (self.plan / "up").exists():
            pass
        if not self.done.is_set():
            self.start_services()
            self.done.wait()

    def run(self, script, *arguments):
        return subprocess.run([str(self.folder / script), *arguments], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, check=False)

    def close(self):
        self.done.set()
        self.watcher.join()
        for listener in self.listeners:
            listener.shutdown()
            listener.server_close()
        if self.server is not None:
            self.server.close()


@pytest.fixture(name="stage")
def make_stage(tmp_path):
    with contextlib.closing(Stage(tmp_path)) as stage:
        yield stage


def test_ready_after_an_object_went_there_and_back(stage):
    done = stage.run("start.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ready$", done.stdout, re.MULTILINE)
    assert f"http://127.0.0.1:{stage.ports['S3_PORT']}" in done.stdout
    secrets = stage.env_file()
    assert len(secrets["FGW_ROOT_SECRET_KEY"]) >= 16 and len(secrets["FGW_CLUSTER_SECRET"]) >= 32
    assert secrets["FGW_ROOT_SECRET_KEY"] not in done.stdout + done.stderr
    assert stat.S_IMODE((stage.folder / ".env").stat().st_mode) == 0o600
    for node in ("kuri-1", "kuri-2"):
        status = (stage.folder / "data" / node).stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o700, int(secrets["FGW_UID"]))
    with socket.create_connection(("127.0.0.1", stage.server.ops_port)) as ops:
        ops.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        metrics = b"".join(iter(lambda: ops.recv(65536), b"")).decode()
    for operation in ("PutObject", "GetObject", "DeleteBucket"):
        assert f'fgw_s3_requests_total{{operation="{operation}",class="2xx"}} 1' in metrics


def test_a_second_start_keeps_secrets_and_minds_no_ports_of_its_own(stage):
    assert stage.run("start.sh").returncode == 0
    secrets = stage.env_file()
    done = stage.run("start.sh")
    assert done.returncode == 0, done.stderr
    assert stage.env_file() == secrets


@pytest.mark.parametrize("name", ["YSQL_PORT", "S3_PORT", "KURI2_OPS_PORT"])
def test_a_port_that_is_taken_is_named_with_its_holder(stage, name):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", stage.ports[name]))
        holder.listen()
        done = stage.run("start.sh")
    assert done.returncode == 1
    assert f"port {stage.ports[name]} for " in done.stderr
    assert f"(pid {os.getpid()}); set {name} in .env" in done.stderr
    assert not [call for call in stage.calls() if " up " in call]


def test_a_port_given_twice(stage):
    stage.environment["YCQL_PORT"] = stage.environment["YSQL_PORT"]
    done = stage.run("start.sh")
    assert done.returncode == 1 and "is used twice in .env" in done.stderr


def test_a_service_that_is_not_ready_says_why(stage):
    stage.answers["proxy-1"] = WAITING
    done = stage.run("start.sh", "--limit", "2")
    assert done.returncode == 1
    assert "error: proxy-1 is not ready after 2 s:" in done.stderr
    assert "    database: no answer from \\\"yugabytedb\\\":9042\n    engine: starting" in done.stderr
    assert "the log of proxy-1" in done.stderr
    assert "ready\n" not in done.stdout.splitlines()


def test_a_service_that_does_not_answer(stage):
    stage.answers["kuri-1"] = None
    done = stage.run("start.sh", "--limit", "1")
    assert done.returncode == 1
    assert re.search(r"http://127.0.0.1:\d+/readyz does not answer \(container: running 0\)",
                     done.stderr)


@pytest.mark.parametrize("state", ["exited 2", "restarting 12"])
def test_a_service_that_ended_fails_at_once(stage, state):
    stage.answers["kuri-2"] = None
    stage.note("state-kuri-2", state)
    started = time.monotonic()
    done = stage.run("start.sh")
    assert done.returncode == 1 and time.monotonic() - started < 60
    assert "error: kuri-2 ended" in done.stderr and state.split()[1] in done.stderr
    assert "the log of kuri-2" in done.stderr


def test_db_init_that_failed(stage):
    stage.note("up-exit", "1")
    stage.note("state-db-init", "exited 6")
    done = stage.run("start.sh")
    assert done.returncode == 1
    assert "db-init: exited 6" in done.stderr and "the log of db-init" in done.stderr


def test_an_object_that_comes_back_different(stage):
    stage.s3_answer = b"something else"
    done = stage.run("start.sh")
    assert done.returncode == 1 and "the object read is not the one written" in done.stderr


def test_no_docker(stage):
    (stage.folder.parent / "bin" / "docker").unlink()
    tools = stage.folder.parent / "bin"
    for name in ("bash", "dirname", "curl", "sed", "grep", "head", "tail"):
        (tools / name).symlink_to(shutil.which(name))
    stage.environment["PATH"] = str(tools)
    done = stage.run("start.sh")
    assert done.returncode == 1 and "docker is not installed" in done.stderr


@pytest.mark.parametrize("clean", [False, True])
def test_stop(stage, clean):
    assert stage.run("start.sh").returncode == 0
    for service in SERVICES:
        stage.note(f"state-{service}", "exited 0")
    done = stage.run("stop.sh", *(["--clean"] if clean else []))
    assert done.returncode == 0, done.stderr
    assert (stage.folder / ".env").exists() is not clean
    assert (stage.folder / "data" / "kuri-1").exists() is not clean
    assert ("compose down --remove-orphans" + (" --volumes" if clean else "")) in stage.calls()


def test_stop_tells_who_ended_badly(stage):
    assert stage.run("start.sh").returncode == 0
    for service in SERVICES:
        stage.note(f"state-{service}", "exited 137" if service == "kuri-1" else "exited 0")
    done = stage.run("stop.sh", "--clean")
    assert done.returncode == 1
    assert "error: kuri-1 did not end with 0: exited 137" in done.stderr
    assert (stage.folder / ".env").exists()


# -- the files among each other ------------------------------------------------------------------

def load(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document is not None]


def test_compose_and_start_know_the_same_ports():
    services = load(COMPOSE / "docker-compose.yml")[0]["services"]
    published = {match for service in services.values() for port in service.get("ports", [])
                 for match in re.findall(r"\$\{(\w+_PORT):-(\d+)\}", port)}
    script = (COMPOSE / "start.sh").read_text(encoding="utf-8")
    assert published == set(re.findall(r"^(?:PORTS=\")?(\w+_PORT) (\d+) ", script, re.MULTILINE))
    assert published == set(re.findall(r"^(\w+_PORT)=(\d+)$", script, re.MULTILINE))
    assert {name for name, _ in published} == set(PORT_NAMES)
    assert len({port for _, port in published}) == len(published)


def test_every_setting_in_the_files_is_one():
    table = fgw_server.run_fgw("config", "--markdown").stdout
    known = set(re.findall(r"^### (FGW_\w+)$", table, re.MULTILINE))
    known |= {"FGW_IMAGE", "FGW_UID", "FGW_GID", "FGW_BIND", "FGW_DATA_DIR"}
    files = [*COMPOSE.rglob("*.yml"), *(TOP / "deploy" / "k8s").glob("*.yaml"),
             TOP / "deploy" / "Dockerfile", COMPOSE / "start.sh"]
    for path in files:
        used = set(re.findall(r"\bFGW_[A-Z0-9_]+\b", path.read_text(encoding="utf-8")))
        assert used <= known, (path, used - known)


def test_every_metric_in_dashboard_and_alerts_exists():
    source = "".join(path.read_text(encoding="utf-8")
                     for folder in ("bin", "console") for path in (TOP / "src" / folder).glob("*.c"))
    made = set(re.findall(r"\b(?:fgw|process)_[a-z0-9_]+", source))
    for path in (COMPOSE / "grafana" / "dashboards" / "fgw.json",
                 COMPOSE / "prometheus" / "alerts.yml"):
        text = path.read_text(encoding="utf-8")
        for name in set(re.findall(r"\b(?:fgw|process)_[a-z0-9_]+", text)):
            stem = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in made or stem in made, (path, name)
    json.loads((COMPOSE / "grafana" / "dashboards" / "fgw.json").read_text(encoding="utf-8"))


def test_kubernetes_probes_ports_and_secrets():
    documents = [document for path in sorted((TOP / "deploy" / "k8s").glob("*.yaml"))
                 for document in load(path)]
    kinds = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    secret = set(kinds["Secret", "fgw"]["stringData"])
    shared = set(kinds["ConfigMap", "fgw"]["data"])
    assert not secret & shared and {"FGW_ROOT_SECRET_KEY", "FGW_CLUSTER_SECRET"} <= secret
    for key in (("StatefulSet", "kuri"), ("Deployment", "proxy")):
        container = kinds[key]["spec"]["template"]["spec"]["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports["ops"] == 9010
        assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "ops"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "ops"}
        assert container["args"] == [key[1]]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_units(tmp_path):
    for unit in (TOP / "deploy" / "systemd").glob("*.service"):
        text = unit.read_text(encoding="utf-8").replace("@BIN@", "/bin/true")
        (tmp_path / unit.name.replace("@", "@1")).write_text(text, encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *tmp_path.glob("*.service")],
                          capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "fgw" in line]
    assert done.returncode == 0 and not said, done.stderr


def test_image_root_holds_all_the_program_needs(tmp_path):
    root = tmp_path / "root"
    done = subprocess.run([TOP / "deploy" / "image-root", fgw_server.binary(), root],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loader = next(root.rglob("ld-linux*"))
    folders = ":".join(sorted({str(path.parent) for path in root.rglob("*.so*")}))
    listed = subprocess.run([loader, "--inhibit-cache", "--library-path", folders, "--list",
                             root / "usr" / "bin" / "fgw"], capture_output=True, text=True,
                            check=False)
    assert listed.returncode == 0, listed.stderr
    outside = [line for line in listed.stdout.splitlines()
               if "=> /" in line and str(root) not in line and "ld-linux" not in line]
    assert not outside
    assert stat.S_IMODE((root / "data").stat().st_mode) == 0o700
    again = subprocess.run([TOP / "deploy" / "image-root", fgw_server.binary(), root],
                           capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "is not empty" in again.stderr

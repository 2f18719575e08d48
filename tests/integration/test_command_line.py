"""The outside of the program: verbs, exit codes, settings from every source."""
import json
import re

import pytest

from fgw_server import CLUSTER_SECRET, run_fgw

CLUSTER = {"FGW_ROOT_ACCESS_KEY": "root", "FGW_ROOT_SECRET_KEY": "sixteen-or-longer",
           "FGW_CQL_HOSTS": "127.0.0.1", "FGW_CLUSTER_SECRET": CLUSTER_SECRET,
           "FGW_DATA": "/nonexistent"}
ROLES = ("serve", "proxy", "kuri", "db-init")
VERBS = """serve proxy kuri db-init migrate config doctor status user key bucket group piece node
scrub sweep recover backup restore import""".split()


def settings(*arguments, env=None):
    done = run_fgw("config", *arguments, "--json", env=env)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["settings"]}


def verbs_not_built():
    return re.findall(r"^  (\S+) .*\(not in this build\)$", run_fgw("help").stdout, re.MULTILINE)


def test_version_names_commit_build_and_libraries():
    done = run_fgw("--version")
    assert done.returncode == 0
    for line in (r"^fgw \d+\.\d+\.\d+$", r"^commit [0-9a-f]{12}", r"^build \S", r"^libraries .*\d"):
        assert re.search(line, done.stdout, re.MULTILINE), done.stdout


def test_help_knows_every_verb():
    done = run_fgw("help")
    assert done.returncode == 0
    assert re.findall(r"^  (\S+) ", done.stdout, re.MULTILINE) == VERBS
    for verb in VERBS:
        for arguments in (("help", verb), (verb, "--help")):
            done = run_fgw(*arguments)
            assert done.returncode == 0 and f"usage: fgw {verb}" in done.stdout


@pytest.mark.parametrize("verb, flags", [
    ("user", "id email display-name access-key secret-key policy json"),
    ("bucket", "shards replicas owner json"), ("group", "json"), ("piece", "to size rate json"),
    ("scrub", "rate json"), ("sweep", "approve json"), ("recover", "skip-damaged"),
    ("backup", "to json"), ("restore", "from replace"), ("import", "dry-run into"),
    ("config", "json markdown"), ("doctor", "json"), ("status", "ready json"),
    ("db-init", "nodes"), ("migrate", "json"), ("node", "json"), ("serve", "data s3-listen")])
def test_help_knows_the_flags_of_a_verb(verb, flags):
    done = run_fgw("help", verb)
    assert done.returncode == 0 and done.stderr == ""
    shown = re.findall(r"^  --([a-z0-9-]+)", done.stdout, re.MULTILINE)
    assert set(flags.split()) <= set(shown) and len(shown) == len(set(shown))


def test_a_verb_that_is_not_built_says_so():
    for verb in verbs_not_built():
        done = run_fgw(verb)
        assert (done.returncode, done.stderr) == (1, f"fgw: error: fgw {verb} is not in this build\n")


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("help", "nonsense"), ("--nonsense",),
                                       ("config", "nonsense"), ("config", "serve", "kuri"),
                                       ("config", "--nonsense"), ("config", "--json=1")])
def test_usage_errors_exit_with_2(arguments):
    done = run_fgw(*arguments)
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr != ""


@pytest.mark.parametrize("verb", ["config"] + [verb for verb in ("serve", "proxy", "kuri")])
def test_all_mistakes_at_once_and_nothing_opened(verb, tmp_path):
    if verb in verbs_not_built():
        arguments, shown = ("config", verb), "config"
    else:
        arguments, shown = (verb,), verb
    file = tmp_path / "settings.env"
    file.write_text("FGW_LOGLEVEL=info\nFGW_REGION=EU\n")
    data = tmp_path / "data"
    done = run_fgw(*arguments, "--config", file, "--thread", "2",
                   env={"FGW_LOG_LEVEL": "loud", "FGW_MEMORY": "3", "FGW_DATA": str(data),
                        "FGW_ROOT_SECRET_KEY": "short"})
    assert done.returncode == 2
    for part in ("--thread is no flag; did you mean --threads?",
                 f"FGW_LOGLEVEL ({file}:1) is no setting; did you mean FGW_LOG_LEVEL?",
                 f"FGW_REGION=EU ({file}:2): not of the form allowed; allowed: 1 to 32 of a-z 0-9 -",
                 "FGW_LOG_LEVEL=loud (environment): unknown level; allowed: error (err)",
                 "FGW_MEMORY=3 (environment): not a size",
                 "FGW_ROOT_SECRET_KEY=*** (environment): 5 characters long; allowed: 16..256",
                 f"nothing was opened; see fgw help {shown}"):
        assert part in done.stderr
    assert "short" not in done.stderr.replace("shorter", "")
    assert not data.exists()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("source", ["flag", "file", "environment"])
@pytest.mark.parametrize("text, right", [
    ("info", True), ("INFO", True), ("warning", True), ("warn", True), ("err", True),
    ("error", True), (" info ", True), ("", True), ("1", False), ("error,backend=info", False),
    ("main:info,*:error", False), ("trace=", False), ("nonsense", False)])
def test_log_level_is_taken_or_refused_the_same_everywhere(role, source, text, right, tmp_path):
    env, arguments = dict(CLUSTER), []
    if source == "flag":
        arguments = [f"--log-level={text}"]
    elif source == "environment":
        env["FGW_LOG_LEVEL"] = text
    else:
        file = tmp_path / "settings.env"
        file.write_text(f"FGW_LOG_LEVEL='{text}'\n")
        arguments = ["--config", file]
    done = run_fgw("config", role, *arguments, env=env)
    assert done.returncode == (0 if right else 2), done.stderr
    if not right:
        assert f"FGW_LOG_LEVEL={text}" in done.stderr and "allowed: error (err)" in done.stderr


def test_sources_in_their_order(tmp_path):
    file = tmp_path / "settings.env"
    file.write_text('export FGW_REGION="file"\nFGW_THREADS=3\nRIBS_DATA=/ribs\n')
    rows = settings("--config", file, "--region", "flag", env={"FGW_REGION": "env"})
    assert (rows["FGW_REGION"]["value"], rows["FGW_REGION"]["source"]) == ("flag", "flag")
    assert (rows["FGW_THREADS"]["value"], rows["FGW_THREADS"]["source"]) == ("3", "file")
    assert rows["FGW_DATA"]["value"] == "/ribs"
    assert rows["FGW_DATA"]["where"] == f"{file}:3 RIBS_DATA"
    assert rows["FGW_SYNC"]["source"] == "default"
    assert rows["FGW_DOMAIN"]["value"] is None


def test_secrets_are_masked(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a-secret-of-the-file\n")
    env = {**CLUSTER, "FGW_ROOT_SECRET_KEY_FILE": str(secret)}
    del env["FGW_ROOT_SECRET_KEY"]
    for arguments in ((), ("--json",)):
        done = run_fgw("config", "kuri", *arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert "a-secret-of-the-file" not in done.stdout and CLUSTER_SECRET not in done.stdout
        assert "********" in done.stdout


def test_node_type_stands_for_the_verb():
    for node_type, verb in (("storage", "kuri"), ("frontend", "proxy")):
        done = run_fgw("--help", env={"FGW_NODE_TYPE": node_type})
        assert done.returncode == 0
        done = run_fgw(env={"FGW_NODE_TYPE": node_type})
        assert verb in done.stderr and done.returncode in (1, 2)


def test_a_setting_without_effect_says_so():
    done = run_fgw("config", "serve", env={"FGW_LIFECYCLE_DAY_S": "10"})
    assert done.returncode == 0 and "FGW_LIFECYCLE_DAY_S (environment) has no effect" in done.stderr
    assert "FGW_LIFECYCLE_DAY_S" not in run_fgw("config", "serve").stderr


def test_bucket_names_are_those_of_s3(server_factory):
    server = server_factory()
    where = ("--data", server.data)
    for name in ("UPPER", "a", "under_score", "1.2.3.4", "x" * 64, "two..dots", "dash-"):
        done = run_fgw("bucket", "create", name, *where)
        assert done.returncode == 2 and "3 to 63" in done.stderr, name
    done = run_fgw("bucket", "create", "a-name.of-s3", "--json", *where)
    made = json.loads(done.stdout)
    assert done.returncode == 0 and re.fullmatch("[0-9a-f]{32}", made["id"])
    server.client().put_object(Bucket="a-name.of-s3", Key="k", Body=b"")
    for name in ("xn--a", "sthree-a", "amzn-s3-demo-a", "a-s3alias", "a--ol-s3", "a.mrap", "a--x-s3"):
        done = run_fgw("bucket", "create", name, *where)
        assert done.returncode == 2 and "S3 keeps names" in done.stderr, name
    status = json.loads(run_fgw("migrate", "status", "--json", *where).stdout)
    assert status["keyspaces"] == [] and status["exit_code"] == 0
    assert len(status["format"]["store"]) == 32


def test_markdown_is_a_page():
    done = run_fgw("config", "--markdown")
    assert done.returncode == 0 and done.stdout.startswith("# Settings\n")
    assert "### FGW_CLUSTER_SECRET" in done.stdout

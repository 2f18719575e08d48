"""The Python tests, by pytest in two processes."""
import os
import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree

from .common import RESULTS, TOP, call, say

FOLDERS = ("tests/integration", "tests/fault", "tests/cluster", "tests/clients")
LIMIT_S = {"quick": 5 * 60, "test": 25 * 60, "full": 4 * 3600, "soak": 24 * 3600}
MARKS = {"quick": "not slow and not full and not soak", "test": "not full and not soak",
         "full": "not soak", "soak": "soak"}
SAMPLED_FORMS = ("tls", "cql", "proxy")
SAMPLE = 10  # one test in so many
PYTHON = os.path.join("build", "venv", "bin", "python")


def has_tests(folder):
    return any(name.startswith("test_") and name.endswith(".py")
               for _, _, names in os.walk(os.path.join(TOP, folder)) for name in names)


def forms(run):
    """The forms of servers to test: one, or in full mode all that this build has."""
    if os.environ.get("FGW_TEST_FORM") or run.mode != "full":
        return [os.environ.get("FGW_TEST_FORM") or "embedded"]
    listed = subprocess.run([os.path.join(TOP, "build/asan/fgw"), "help"], capture_output=True,
                            text=True, check=False).stdout
    cluster = not re.search(r"^  proxy .*not in this build", listed, re.MULTILINE)
    return ["embedded", "tls"] + (["cql", "ycql", "proxy"] if cluster else [])


def run(run):
    folders = [folder for folder in FOLDERS if has_tests(folder)]
    if not folders:
        return
    if not os.path.exists(os.path.join(TOP, PYTHON)):
        run.fail("pytest", "build/venv is missing", "tools/bootstrap test")
        return
    for form in forms(run):
        run_form(run, form, folders)
    if run.mode == "test" and not os.environ.get("FGW_TEST_FORM"):
        for form in SAMPLED_FORMS:
            run_form(run, form, ["tests/integration"], sample=SAMPLE)


def run_form(run, form, folders, sample=0):
    say(f"integration tests ({form}{f', one in {sample}' if sample else ''})")
    report = os.path.join(RESULTS, f"pytest-{form}.xml")
    if os.path.exists(report):
        os.unlink(report)
    command = [PYTHON, "-m", "pytest", "-q", "-n", os.environ.get("FGW_TEST_LANES", "2"),
               # in which order: fixtures.put_long_files_first
               "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart=3",
               "--junit-xml", report, "-m", MARKS[run.mode], *folders]
    if run.expression:
        command += ["-k", run.expression]
    code = call(command, LIMIT_S[run.mode], wrap_up_s=60,
                env={"FGW_TEST_FORM": form, "FGW_TEST_SAMPLE": str(sample)})
    if code is None:
        run.fail(f"pytest ({form})", f"not done after {LIMIT_S[run.mode]} s", shlex.join(command))
    if not os.path.exists(report):
        if code is not None:
            run.fail(f"pytest ({form})", f"ended with {code} and no report", shlex.join(command))
        return
    failures_before = len(run.failures)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        count_case(run, form, case)
    # 5 is "no test collected", which a mode or an expression may mean.
    if code not in (None, 0, 1, 5) or (code == 1 and len(run.failures) == failures_before):
        run.fail(f"pytest ({form})", f"ended with {code}", shlex.join(command))


def test_id(case):
    path = (case.get("file") or case.get("classname", "").replace(".", "/") + ".py")
    return f"{path}::{case.get('name')}"


def count_case(run, form, case):
    if case.get("name") is None:  # it was running when the time was over
        return
    name = test_id(case)
    broken = [child for child in case if child.tag in ("failure", "error")]
    skipped = case.find("skipped")
    if broken:
        lines = (broken[0].get("message") or "failed").strip().splitlines() or ["failed"]
        run.fail(name, lines[0][:200], f"FGW_TEST_FORM={form} {PYTHON} -m pytest '{name}'")
    elif skipped is not None and skipped.get("type") == "pytest.xfail":
        run.ok()
    elif skipped is not None:
        run.skip(name, skipped.get("message", ""))
    else:
        run.ok()

"""The cmocka programs, through ctest; counts their tests, not the programs."""
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

from . import build
from .common import RESULTS, TOP, call, say, show_tail

LIMIT_S = {"quick": 5 * 60, "test": 15 * 60, "full": 60 * 60}
PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] (?!\d+ test)(?:\S+: )?(\S+)", re.MULTILINE)
SKIPPED = re.compile(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", re.MULTILINE)


def labels_left_out(mode):
    return {"quick": "slow|full|soak", "test": "full|soak"}.get(mode, "soak")


# What ctest says about programs that went well.
PROGRESS = re.compile(r"^\s+Start +\d+: |^\s*\d+/\d+ Test .* Passed ")


def run(run):
    run_preset(run, "asan", ["-LE", labels_left_out(run.mode)])


def run_threads(run):
    """The programs with the label "tsan" once more, under the thread sanitizer."""
    if not build.configure(run, "tsan"):
        return
    listed = subprocess.run(["ctest", "--test-dir", "build/tsan", "-N", "-L", "tsan"], cwd=TOP,
                            capture_output=True, text=True, check=False).stdout
    names = re.findall(r"Test +#\d+: (\S+)", listed)
    if names and build.build(run, "tsan", names):
        run_preset(run, "tsan", ["-L", "tsan", "-LE", labels_left_out(run.mode)])


def run_preset(run, preset, choice):
    if not os.path.exists(os.path.join(TOP, "build", preset, "CTestTestfile.cmake")):
        return
    say(f"unit tests ({preset})")
    report = os.path.join(RESULTS, f"ctest-{preset}.xml")
    if os.path.exists(report):
        os.unlink(report)
    command = ["ctest", "--test-dir", f"build/{preset}", "-j", "2", "--output-junit", report,
               "--output-on-failure", "--test-output-size-passed", "10000000",
               "--test-output-size-failed", "10000000", *choice]
    if run.expression:
        command += ["-R", run.expression]
    log = os.path.join(RESULTS, f"ctest-{preset}.log")
    # Some programs repeat what they draw more often in a full run.
    whole = {"FGW_TEST_WHOLE": "1"} if run.mode in ("full", "soak") else None
    code = call(command, LIMIT_S[run.mode], env=whole, output=log)
    if code != 0:
        show_tail(log, without=PROGRESS)
    if not os.path.exists(report):
        run.fail("ctest", "no report" if code is not None else "too slow", " ".join(command[:5]))
        return
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        count_program(run, preset, case)


def count_program(run, preset, case):
    name = case.get("name")
    output = "".join(case.itertext())
    again = f"ctest --test-dir build/{preset} --output-on-failure -R '^{name}$'"
    passed = sum(int(number) for number in PASSED.findall(output))
    run.ok(passed)
    failed = sorted(set(FAILED.findall(output)))
    for test in failed:
        run.fail(f"{name}: {test}", "failed", again)
    for test in sorted(set(SKIPPED.findall(output))):
        run.skip(f"{name}: {test}", "skipped itself")
    status = case.get("status")
    if status == "run":
        # A program without cmocka's lines is one test.
        run.ok(0 if passed else 1)
    elif status == "fail" and not failed:
        run.fail(name, failure_text(case), again)
    elif status not in ("run", "fail"):
        run.skip(name, f"ctest says {status}")


def failure_text(case):
    failure = case.find("failure")
    text = failure.get("message", "") if failure is not None else ""
    return f"ended badly outside a test: {text or 'see above'}"

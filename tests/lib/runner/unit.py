"""The cmocka programs, through ctest; counts their tests, not the programs."""
import os
import re
import xml.etree.ElementTree as ElementTree

from .common import RESULTS, TOP, call, say

LIMIT_S = {"quick": 5 * 60, "test": 15 * 60, "full": 60 * 60}
PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] (?!\d+ test)(?:\S+: )?(\S+)", re.MULTILINE)
SKIPPED = re.compile(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", re.MULTILINE)


def labels_left_out(mode):
    return {"quick": "slow|full|soak", "test": "full|soak"}.get(mode, "soak")


def run(run):
    if not os.path.exists(os.path.join(TOP, "build", "asan", "CTestTestfile.cmake")):
        return
    say("unit tests")
    report = os.path.join(RESULTS, "ctest.xml")
    if os.path.exists(report):
        os.unlink(report)
    command = ["ctest", "--test-dir", "build/asan", "-j", "2", "--output-junit", report,
               "--output-on-failure", "--test-output-size-passed", "10000000",
               "--test-output-size-failed", "10000000", "-LE", labels_left_out(run.mode)]
    if run.expression:
        command += ["-R", run.expression]
    code = call(command, LIMIT_S[run.mode], output=os.path.join(RESULTS, "ctest.log"), quiet=True,
                env={"CMOCKA_MESSAGE_OUTPUT": "stdout"})
    if not os.path.exists(report):
        run.fail("ctest", "no report" if code is not None else "too slow", " ".join(command[:5]))
        return
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        count_program(run, case)


def count_program(run, case):
    name = case.get("name")
    output = "".join(case.itertext())
    again = f"ctest --test-dir build/asan --output-on-failure -R '^{name}$'"
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

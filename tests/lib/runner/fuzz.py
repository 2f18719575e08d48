"""A few seconds of each fuzz target, from the corpus kept in tests/fuzz/<target>/corpus."""
import glob
import os
import shutil
import subprocess

from . import build
from .common import RESULTS, TOP, call, kill_group, say

SECONDS = 15


def targets():
    return sorted(os.path.basename(os.path.dirname(path))
                  for path in glob.glob(os.path.join(TOP, "tests/fuzz/*/CMakeLists.txt")))


def run(run):
    if not targets():
        return
    if shutil.which("clang") is None:
        run.skip("fuzz targets", "clang is missing")
        return
    if not build.build(run, "fuzz", ["fuzzers"]):
        return
    say("fuzz targets")
    binaries = sorted(path for path in glob.glob(os.path.join(TOP, "build/fuzz/fuzzers/*"))
                      if os.access(path, os.X_OK) and os.path.isfile(path))
    if not binaries:
        run.fail("fuzz targets", "tests/fuzz has targets, the build made none",
                 "cmake --build build/fuzz --target fuzzers")
    for at in range(0, len(binaries), 2):
        run_pair(run, binaries[at:at + 2])


def start(run, binary):
    name = os.path.basename(binary)
    work = os.path.join(TOP, "build/fuzz/corpus", name)
    os.makedirs(work, exist_ok=True)
    kept = [path for stem in (name, name.removeprefix("fuzz_"))
            for path in glob.glob(os.path.join(TOP, "tests/fuzz", stem, "corpus"))]
    command = [binary, f"-max_total_time={SECONDS}", f"-seed={run.seed}", "-timeout=10",
               "-rss_limit_mb=2048", "-print_final_stats=1",
               f"-artifact_prefix={RESULTS}/{name}-", work, *kept]
    log = open(os.path.join(RESULTS, f"{name}.log"), "wb")
    process = subprocess.Popen(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=log,
                               stderr=subprocess.STDOUT, start_new_session=True)
    return name, command, process, log


def run_pair(run, binaries):
    for name, command, process, log in [start(run, binary) for binary in binaries]:
        try:
            code = process.wait(SECONDS * 4)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            kill_group(process)
            log.close()
        if code == 0:
            run.ok()
        else:
            call(["tail", "-n", "60", log.name], 10)
            run.fail(f"fuzz {name}", "too slow" if code is None else f"exit code {code}",
                     " ".join(os.path.relpath(word, TOP) if word.startswith(TOP) else word
                              for word in command))

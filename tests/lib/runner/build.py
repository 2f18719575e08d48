"""Builds a preset."""
import os

from .common import RESULTS, TOP, call, say

LIMIT_S = 40 * 60


def build(run, preset, targets=()):
    """True when the preset is built; a failed build is one failure."""
    say(f"build {preset}")
    folder = os.path.join("build", preset)
    configured = os.path.exists(os.path.join(TOP, folder, "build.ninja"))
    steps = [] if configured else [["cmake", "--preset", preset, "--log-level=WARNING"]]
    steps.append(["cmake", "--build", folder, "-j", str(os.cpu_count() or 2)])
    if targets:
        steps[-1] += ["--target", *targets]
    for step in steps:
        code = call(step, LIMIT_S, quiet=True, output=os.path.join(RESULTS, f"build-{preset}.log"))
        if code != 0:
            run.fail(f"build {preset}", "too slow" if code is None else f"exit code {code}",
                     " ".join(step))
            return False
    return True

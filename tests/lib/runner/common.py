"""Processes with a time limit that leave nothing behind, and the counting of results."""
import contextlib
import os
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RESULTS = os.path.join(TOP, "build", "test-results")


class Run:
    """One run of tests/run: its mode and what came out so far."""

    def __init__(self, mode, seed, expression=None):
        self.mode = mode
        self.seed = seed
        self.expression = expression
        self.ci = os.environ.get("CI", "").lower() in ("true", "1", "yes")
        self.passed = 0
        self.failures = []  # (name, reason, command to run it again)
        self.skips = []  # (name, reason)

    def ok(self, count=1):
        self.passed += count

    def fail(self, name, reason, again):
        self.failures.append((name, reason, again))

    def skip(self, name, reason):
        self.skips.append((name, reason))

    def finish(self, seconds):
        """Prints the lists and the closing line; returns the exit code."""
        if self.ci:
            for name, reason in self.skips:
                if not is_optional(reason):
                    self.fail(name, f"could not run: {reason}", "the same test where it can run")
            self.skips = [skip for skip in self.skips if is_optional(skip[1])]
        if self.skips:
            print("\nskipped:")
            for name, reason in self.skips:
                print(f"  {name}: {reason}")
        if self.failures:
            print(f"\nfailures (seed {self.seed}):")
            for name, reason, again in self.failures:
                print(f"  {name}: {reason}\n      again: FGW_TEST_SEED={self.seed} {again}")
        print(f"\n{seconds:.0f} s", flush=True)
        print(f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped",
              flush=True)
        return 1 if self.failures or self.passed == 0 else 0


def is_optional(reason):
    """Whether a test may be left out anywhere: it needs what tools/packages.txt does not install."""
    return reason.startswith(("optional: ", "Skipped: optional: "))


def say(text):
    print(f"\n== {text}", flush=True)


def kill_group(process):
    """Ends a process and all that it started in its session; harmless when it ended by itself."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        process.wait()
        return
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    time.sleep(0.2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wrap_up(process, seconds):
    if seconds > 0:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def call(command, limit_s, env=None, quiet=False, output=None, wrap_up_s=0):
    """Runs a command in a session of its own; its exit code, or None when it took too long.

    quiet: shows the output only when the command fails. output: a path that gets a copy.
    wrap_up_s: what a command that took too long has from SIGINT on to tell what it found.
    """
    path = output or os.path.join(RESULTS, "last-command.log")
    with open(path, "wb") as log:
        kept = quiet or output
        process = subprocess.Popen(command, cwd=TOP, env={**os.environ, **(env or {})},
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   stdout=log if kept else None,
                                   stderr=subprocess.STDOUT if kept else None)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
            wrap_up(process, wrap_up_s)
        finally:
            kill_group(process)
    if quiet and code != 0:
        show_tail(path)
    return code


def show_tail(path, lines=200, without=None):
    """The last lines of a file, leaving out those that match the pattern `without`."""
    with open(path, "rb") as log:
        text = log.read().decode("utf-8", "replace").splitlines()
    if without is not None:
        text = [line for line in text if not without.search(line)]
    print("\n".join(text[-lines:]), file=sys.stdout, flush=True)

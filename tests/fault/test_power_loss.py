"""Power cuts at recorded moments: the engine opens on what may be left of the disk, finds everything
it acknowledged, and goes on; recovery from nothing finds the same."""
import copy
import os
import pathlib
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import fgw_server
import power_loss

BUILD = pathlib.Path(fgw_server.binary()).parent / "tests" / "fault"
WORKLOAD = str(BUILD / "fgw-fault-workload")
STEPS = int(os.environ.get("FGW_TEST_POWER_STEPS", "40"))
SITES = os.environ.get("FGW_TEST_POWER_SITES", "60")


def record(folder, seed):
    data, file, acks = folder / "data", folder / "record", folder / "acks"
    environment = {**fgw_server.clean_environment(), "LD_PRELOAD": str(BUILD / "fgw-recorder.so"),
                   "FGW_RECORD_ROOT": str(data), "FGW_RECORD_FILE": str(file),
                   "FGW_RECORD_ACKS": str(acks)}
    environment["ASAN_OPTIONS"] += ":verify_asan_link_order=0"
    done = subprocess.run([WORKLOAD, "run", str(data), str(acks), str(seed), str(STEPS)],
                          env=environment, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return power_loss.events(file)


def dump(folder):
    done = subprocess.run([WORKLOAD, "dump", str(folder)], env=fgw_server.clean_environment(),
                          capture_output=True, text=True, timeout=120, check=False)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("fiber")]
    return done, {key: state for key, state in lines}


def judge(name, folder, expected, rebuild):
    """None, or what is wrong with the disk in `folder`."""
    done, states = dump(folder)
    if done.returncode != 0:
        return f"{name}: {done.stderr[-3000:]}"
    wrong = {key: (state, expected.get(key, {"absent"})) for key, state in states.items()
             if state not in expected.get(key, {"absent"})}
    if wrong:
        return f"{name}: found, expected one of: {wrong}\n{done.stderr[-2000:]}"
    if rebuild:
        shutil.rmtree(folder / "meta")
        again, rebuilt = dump(folder)
        if again.returncode != 0 or rebuilt != states:
            return f"{name}: rebuilt {rebuilt}, before {states}\n{again.stderr[-2000:]}"
    shutil.rmtree(folder)
    return None


def choose(found, rng, count):
    """Numbers of events before which the power goes, each with a mode."""
    if count == "all":
        return [(i, mode) for i in range(1, len(found)) for mode in ("all", "none", "some")]
    ends = [i for i, event in enumerate(found) if event[0] in (b"S", b"k", b"r")]
    sites = []
    for _ in range(int(count)):
        near = rng.choice(ends) + rng.randint(0, 1)
        site = near if rng.random() < 0.5 else rng.randrange(1, len(found))
        sites.append((min(site, len(found) - 1), rng.choice(("all", "none", "some", "some"))))
    return sorted(sites)


def power_cuts(tmp_path, rng, count):
    found = record(tmp_path, rng.randrange(1, 2**31))
    disk = power_loss.Disk(str(tmp_path / "data"))
    at, problems = 0, []
    with ThreadPoolExecutor(2) as pool:
        running = []
        for number, (site, mode) in enumerate(choose(found, rng, count)):
            for event in found[at:site]:
                disk.step(event)
            at = site
            cut = power_loss.torn(found[site], rng) if mode != "none" else None
            view = disk
            if cut is not None:
                view = copy.deepcopy(disk)
                view.step(cut)
            name = f"site-{site}-{mode}"
            folder = tmp_path / "cuts" / f"{number}-{name}"
            view.write_out(folder, mode, random.Random(rng.random()))
            running.append(pool.submit(judge, name, folder, view.expected(), number % 4 == 0))
            while len(running) > 4:
                problems.append(running.pop(0).result())
        problems += [one.result() for one in running]
    problems = [problem for problem in problems if problem is not None]
    assert not problems, f"{len(problems)} of the disks are wrong\n" + "\n".join(problems[:3])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_power_cuts(tmp_path, rng):
    power_cuts(tmp_path, rng, SITES)


@pytest.mark.full
@pytest.mark.timeout(4 * 3600)
def test_power_cuts_everywhere(tmp_path, rng):
    power_cuts(tmp_path, rng, "all")


def test_the_record_is_complete(tmp_path, rng):
    """Replayed to its end it gives the disk that the process left."""
    found = record(tmp_path, rng.randrange(1, 2**31))
    disk = power_loss.Disk(str(tmp_path / "data"))
    for event in found:
        disk.step(event)
    disk.write_out(tmp_path / "copy", "all", rng)
    done = subprocess.run(["diff", "-r", str(tmp_path / "data"), str(tmp_path / "copy")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:2000]

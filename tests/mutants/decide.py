#!/usr/bin/env python3
"""Asks the tests of each mutant that `plant.py` has built into a copy, cheapest first, until one of them fails.

    decide.py COPY RESULTS.jsonl [--jobs N] [--only SUITE …] [--blackbox PROGRAM]

Each test is run alone once, to see which mutants it reaches; a mutant is asked only of the tests that reach it. What is in
RESULTS already is not asked again. A test that hangs has caught the mutant.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HANGS_AFTER = 300
SUITES = ["core", "guard", "gateway", "simulation", "blackbox"]
LOCK = threading.Lock()


def run(command, cwd, environment, seconds):
    """How it ended: 0, another code, or `None` where it did not in time."""
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        out, _ = process.communicate(timeout=seconds)
        return process.returncode, out.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None, "it hangs"


class Suite:
    """Tests of one program of tests."""

    def __init__(self, name, program, cwd, wraps=None):
        self.name, self.program, self.cwd, self.wraps = name, program, cwd, wraps

    def tests(self):
        _, out = run([self.program, "--list", "--format", "terse"], self.cwd, {}, 120)
        return [line.removesuffix(": test") for line in out.splitlines() if line.endswith(": test")]

    def ask(self, tests, environment, seconds):
        with tempfile.TemporaryDirectory() as folder:
            if self.wraps:
                # The tests of a program clear its environment.
                wrapper = Path(folder) / "pmk-host"
                lines = [f"export {name}='{value}'" for name, value in environment.items()]
                wrapper.write_text("\n".join(["#!/bin/sh", *lines, f'exec {self.wraps} "$@"', ""]))
                wrapper.chmod(0o755)
                environment = {**environment, "PMK_TEST_PROGRAM": str(wrapper)}
            return run([self.program, "--exact", "--test-threads", "2", *tests], self.cwd, environment, seconds)

    def reaches(self, test, known):
        """Which mutants a test reaches; none where it fails by itself."""
        if test in known:
            return
        with tempfile.TemporaryDirectory() as folder:
            told = Path(folder) / "reached"
            begun = time.time()
            code, _ = self.ask([test], {"PMK_MUTANTS_REACHED": str(told)}, HANGS_AFTER)
            numbers = sorted({int(line) for line in told.read_text().split()}) if told.exists() else []
        known[test] = {"reached": numbers if code == 0 else [], "passes": code == 0, "seconds": time.time() - begun}


def newest(copy, pattern):
    """The program of tests that was built last; a crate's own program has the same name."""
    found = [path for path in (copy / "target/debug/deps").glob(pattern) if not path.suffix and os.access(path, os.X_OK)]
    found.sort(key=lambda path: -path.stat().st_mtime)
    return next(path for path in found if run([path, "--list", "--format", "terse"], copy, {}, 120)[1].endswith(": test\n"))


def order(mutant, tests, known):
    """Those of the mutant's own module first, then those that reach least else."""
    module = re.sub(r"^host/\w+/src/|\.rs$", "", mutant["file"]).replace("/", "::")
    topic = module.split("::")[-1].rstrip("s")
    return sorted(tests, key=lambda test: (not test.startswith(module), topic not in test, len(known[test]["reached"])))


def ask_tests(suite, mutants, results, copy, options):
    cache = copy / f"reached-{suite.name}.json"
    known = json.loads(cache.read_text()) if cache.exists() else {}
    tests = [test for test in suite.tests() if not options.match or re.search(options.match, test)]
    if options.known:
        tests = [test for test in tests if test in known]
    with ThreadPoolExecutor(options.jobs) as pool:
        for done, _ in enumerate(pool.map(lambda test: suite.reaches(test, known), tests)):
            if done % 50 == 0:
                cache.write_text(json.dumps(known))
    cache.write_text(json.dumps(known))
    print(f"{suite.name}: {len(tests)} tests, {[test for test in tests if not known[test]['passes']]} fail by themselves", flush=True)

    def one(mutant):
        number = mutant["number"]
        reaching = order(mutant, [test for test in tests if number in known[test]["reached"]], known)
        left, size = reaching, 4
        while left:
            some, left, size = left[:size], left[size:], 2 * size
            seconds = 120 + 10 * sum(known[test]["seconds"] for test in some)
            code, out = suite.ask(some, {"PMK_MUTANT": str(number)}, seconds)
            if code != 0:
                failed = re.findall(r"^test (\S+) \.\.\. FAILED", out, re.M) or some
                # On a machine that is busy a test may fail by itself: with the mutant it has to fail again, without to pass.
                again, out = suite.ask(failed, {"PMK_MUTANT": str(number)}, seconds)
                failed = re.findall(r"^test (\S+) \.\.\. FAILED", out, re.M) or failed
                if again != 0 and suite.ask(failed, {}, seconds)[0] == 0:
                    return tell(mutant, results, suite.name, failed[0] + ("" if code is not None else " (hangs)"))
        return tell(mutant, results, suite.name, None, len(reaching))

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, [mutant for mutant in mutants if is_open(mutant, results, suite.name)]))


def ask_simulation(mutants, results, copy, options):
    simulate = [copy / "target/debug/simulate", "run", "--turns", str(options.turns)]
    told = copy / "reached-simulation"
    if not told.exists():
        code, out = run(simulate, copy, {"PMK_MUTANTS_REACHED": str(told)}, 3_600)
        print(f"simulation: {code} {out}", flush=True)
    reached = {int(line) for line in told.read_text().split()}

    def one(mutant):
        if mutant["number"] not in reached:
            return tell(mutant, results, "simulation", None, 0)
        code, out = run(simulate, copy, {"PMK_MUTANT": str(mutant["number"])}, 1_200)
        # One that is killed says nothing.
        said = next(iter(out.splitlines()), f"it ends with {code}")[:160]
        return tell(mutant, results, "simulation", "it hangs" if code is None else said if code else None, 1)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, [mutant for mutant in mutants if is_open(mutant, results, "simulation")]))


def is_open(mutant, results, by):
    said = [result for result in results["said"] if result["number"] == mutant["number"]]
    return not any(result["caught"] or result["by"] == by for result in said)


def tell(mutant, results, by, caught, reaching=None):
    line = {"number": mutant["number"], "name": mutant["name"], "by": by, "caught": caught or None, "reaching": reaching}
    with LOCK:
        results["said"].append(line)
        with results["path"].open("a") as file:
            file.write(json.dumps(line) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("copy", type=Path)
    options.add_argument("results", type=Path)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--turns", type=int, default=3_000)
    options.add_argument("--take", type=int, default=120)
    options.add_argument("--match", help="only tests with such a name")
    options.add_argument("--known", action="store_true", help="only tests of which it is known what they reach")
    options.add_argument("--only", nargs="+", default=SUITES, choices=SUITES)
    options.add_argument("--blackbox", type=Path, help="the program of the black-box tests, if not the copy's own")
    options = options.parse_args()

    copy = options.copy.resolve()
    built = json.loads((copy / "mutants.json").read_text())
    mutants = built["taken"][: options.take] + built["also"]
    said = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    results = {"path": options.results, "said": said}
    units = {"core": ("core", "pmk_core-*"), "guard": ("core", "guard-*"), "gateway": ("gateway", "pmk_host-*")}
    for name in options.only:
        if name in units:
            crate, pattern = units[name]
            ask_tests(Suite(name, newest(copy, pattern), copy / "host" / crate), mutants, results, copy, options)
        elif name == "simulation":
            ask_simulation(mutants, results, copy, options)
        else:
            program = options.blackbox or newest(copy, "blackbox-*")
            suite = Suite(name, program.resolve(), copy / "host/gateway", copy / "target/debug/pmk-host")
            ask_tests(suite, mutants, results, copy, options)
    caught = {result["number"] for result in results["said"] if result["caught"]}
    print(f"{len(caught)} of {len(mutants)} caught")
    for mutant in mutants:
        if mutant["number"] not in caught:
            print(f"  {mutant['number']} {mutant['name']}")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./test: checks everything.

    ./test                  everything: lint, the tests optimised, with ASan and UBSan, and with TSan, and fuzzing
    ./test --quick          before each commit: lint without clang-tidy, and the tests that are not slow, in the dev build
    ./test --filter REGEX   only tests whose names match, in the dev build, or with --asan or --tsan in that build
    ./test --lint           only layout, includes, labels, words, links, license, public headers and clang-tidy
    ./test --asan           only the tests with AddressSanitizer and UndefinedBehaviorSanitizer
    ./test --tsan           only the tests with ThreadSanitizer
    ./test --sim N          only N seeds of the simulator, optimised (docs/testing.md)
    ./test --fuzz MINUTES   only the fuzz targets, for MINUTES in total (docs/testing.md)
    ./test --soak MINUTES   only fresh simulator seeds, kills of processes, a server under churn, and fuzz targets;
                            the report is build/soak/REPORT.md

Example: ./test --filter '^row_view_test' --asan

It installs missing packages first (./setup --help). If a stage fails, the others still run, except after a failed build.
The last line is "N passed, M failed, K skipped". Logs are in build/.
Exit codes: 0 nothing failed; 1 something failed; 2 bad usage; 130 interrupted.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import check_headers
import check_includes
import check_labels
import check_license
import check_links
import check_words
import fuzz
import soak
import tidy

ROOT = Path(__file__).resolve().parent.parent
JOBS = len(os.sched_getaffinity(0))
TEST_TIMEOUT_SECONDS = 600
STAGE_TIMEOUT_SECONDS = 2400
FUZZ_SECONDS = 2  # of each target, in a run of everything
OUTPUT_SIZE = str(64 << 20)  # bytes of the output of one test that CTest keeps
SANITIZER_ENVIRONMENT = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1",
             "LSAN_OPTIONS": f'suppressions="{ROOT}/tools/lsan.supp":print_suppressions=0'},
    # ThreadSanitizer's search for deadlocks aborts a thread that holds more than 64 locks, such as the latches of a
    # large batch or of DropTable. So it is off, and no stage checks the order of locks.
    "tsan": {"TSAN_OPTIONS": f'suppressions="{ROOT}/tools/tsan.supp":detect_deadlocks=0'},
}
# What CTest prints for every test that passes. It is not shown.
UNEVENTFUL = re.compile(r"\s*(Start\s+\d+: |\d+/\d+ Test\s.* Passed )")

# A process of several tests, and the line of GoogleTest when one of them ends. The lines in its list of failures have no times.
PART = re.compile(r"(\w+)\.part\d+")
END_OF_CASE = r"\[ +{} +\] ([^\s,]+).*\(\d+ ms\)$"

# The last line of the simulator.
AMOUNT = re.compile(r"^(?:sim seeds=|mutants caught=).*$", re.MULTILINE)


class BuildFailed(Exception):
    pass


@dataclass
class Stage:
    """The result of one stage: names of tests."""
    name: str
    passed: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    seconds: float = 0


def build(preset, *targets):
    if subprocess.run([ROOT / "tools" / "build", preset, *targets]).returncode != 0:
        raise BuildFailed


def check_format(stage):
    files = [file.relative_to(ROOT) for file in check_includes.source_files(ROOT)]
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *files], capture_output=True, text=True, cwd=ROOT)
    (stage.failed if done.returncode else stage.passed).append("clang-format")
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE)))
    if done.returncode:
        print(f"format: to fix it: clang-format -i {' '.join(wrong)}" if wrong else done.stderr)


def check_the_includes(stage):
    (stage.failed if check_includes.main(ROOT) else stage.passed).append("check_includes")


def check_the_labels(stage):
    (stage.failed if check_labels.main(ROOT) else stage.passed).append("check_labels")


def check_the_words(stage):
    (stage.failed if check_words.main(ROOT) else stage.passed).append("check_words")


def check_the_links(stage):
    (stage.failed if check_links.main(ROOT) else stage.passed).append("check_links")


def check_the_headers(stage):
    (stage.failed if check_headers.main(ROOT) else stage.passed).append("check_headers")


def check_the_license(stage):
    (stage.failed if check_license.main(ROOT) else stage.passed).append("check_license")


def check_tidy(stage):
    build("release")
    # Tests, simulator and benchmarks take long: tools/tidy.py build/release tests/ sim/ benchmarks/
    parts = ("src/", "apps/", "examples/")
    stage.passed, stage.failed = tidy.tidy(ROOT / "build" / "release", JOBS, parts)
    if not stage.passed and not stage.failed:
        stage.failed.append("no sources found")


def read_part(name, good, output):
    """Like read_junit, for a process of several tests (percolator_test in cmake/PercolatorModule.cmake)."""
    ends = {end: [f"{name}.{case}" for case in re.findall(END_OF_CASE.format(end), output, re.MULTILINE)]
            for end in ("OK", "FAILED", "SKIPPED")}
    ended = {case for cases in ends.values() for case in cases}
    failed = ends["FAILED"]
    if not good:  # the test that ran when the process died, or the process itself
        failed += [f"{name}.{case}" for case in re.findall(r"\[ RUN      \] (\S+)", output)
                   if f"{name}.{case}" not in ended]
        failed = failed or [name]
    return ends["OK"], failed, ends["SKIPPED"]


def read_junit(file):
    """Returns the names of the tests that passed, failed and were skipped, from the file that CTest writes."""
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        status, reason = case.get("status"), case.find("skipped")
        part = PART.fullmatch(case.get("name"))
        if part:
            of_part = read_part(part.group(1), status == "run", case.findtext("system-out", ""))
            for names, more in zip((passed, failed, skipped), of_part):
                names += more
            continue
        message = reason.get("message", "") if reason is not None else ""
        if status == "run":
            passed.append(case.get("name"))
        elif status == "disabled" or message.startswith("SKIP_"):
            skipped.append(case.get("name"))
        else:  # failed, or not run for another reason, such as a missing program
            failed.append(case.get("name"))
    return passed, failed, skipped


def run_bounded(command, environment, log):
    """Runs a command, logs its output and shows most of it; kills the command with its children if it takes too long."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=environment, start_new_session=True) as process, \
            open(log, "w", encoding="utf-8") as file:
        def kill():
            print(f"stopped after {STAGE_TIMEOUT_SECONDS} s")
            os.killpg(process.pid, signal.SIGKILL)
        timer = threading.Timer(STAGE_TIMEOUT_SECONDS, kill)
        timer.start()
        try:
            for line in process.stdout:
                file.write(line)
                if not UNEVENTFUL.match(line):
                    print(line, end="", flush=True)
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()


def run_ctest(stage, preset, selection):
    build(preset)
    junit = ROOT / "build" / f"{preset}-tests.xml"
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(ROOT / "build" / preset), "--parallel", str(JOBS), "--output-on-failure",
               "--timeout", str(TEST_TIMEOUT_SECONDS), "--no-tests=error", "--output-junit", str(junit), *selection,
               "--test-output-size-passed", OUTPUT_SIZE, "--test-output-size-failed", OUTPUT_SIZE]
    # ThreadSanitizer cannot start if addresses are randomised more than it expects.
    if preset == "tsan" and shutil.which("setarch") and subprocess.run(["setarch", "-R", "true"]).returncode == 0:
        command = ["setarch", "-R", *command]
    environment = os.environ | SANITIZER_ENVIRONMENT.get(preset, {})
    code = run_bounded(command, environment, ROOT / "build" / f"{preset}-tests.log")
    try:
        stage.passed, stage.failed, stage.skipped = read_junit(junit)
    except (OSError, ElementTree.ParseError) as error:
        print(f"{preset}: CTest left no readable result: {error}")
    if code != 0 and not stage.failed:
        stage.failed.append(f"ctest (exit code {code})")
    show_amounts(ROOT / "build" / preset / "Testing" / "Temporary" / "LastTest.log")


def show_amounts(log):
    """Prints how much the simulator did, because a run that did nothing would pass as well."""
    if log.exists():
        for line in re.findall(AMOUNT, log.read_text(encoding="utf-8", errors="replace")):
            print(line)


def run_simulator(stage, seeds):
    build("release", "percsim")
    program = ROOT / "build" / "release" / "sim" / "percsim"
    done = subprocess.run([program, "--seeds", str(seeds), "--jobs", str(JOBS)], cwd=ROOT)
    (stage.failed if done.returncode else stage.passed).append(f"percsim, {seeds} seeds")


def run_fuzzers(stage, seconds, seed=0):
    build("fuzz", "fuzzers")
    for result in fuzz.run_all(ROOT, JOBS, seconds, seed):
        print(result.line(), flush=True)
        (stage.failed if result.finding else stage.passed).append(f"fuzz_{result.name}")
    if not stage.passed and not stage.failed:
        stage.failed.append("no fuzz targets found")


def run_soak(stage, minutes):
    build("release", "benchmarks", *soak.TARGETS)  # no stage compiles the benchmarks
    build("fuzz", "fuzzers")
    stage.passed, stage.failed = soak.run(ROOT, JOBS, minutes, dict(os.environ))


def ctest_stage(name, preset, *selection):
    return name, lambda stage: run_ctest(stage, preset, selection)


def choose_stages(options):
    lint = [("format", check_format), ("includes", check_the_includes), ("labels", check_the_labels),
            ("words", check_the_words), ("links", check_the_links), ("license", check_the_license)]
    # All tests run in few processes, chosen tests each in its own: see percolator_test in cmake/PercolatorModule.cmake.
    chosen = ["--tests-regex", options.filter] if options.filter else []
    doubled = "part" if options.filter else "case"
    selection = [*chosen, "--label-exclude", f"^{doubled}"]
    if options.sim is not None:
        return [("sim", lambda stage: run_simulator(stage, options.sim))]
    if options.fuzz is not None:
        each = fuzz.seconds_for_each(ROOT, JOBS, 60 * options.fuzz)
        return [("fuzz", lambda stage: run_fuzzers(stage, each))]
    if options.soak is not None:
        return [("soak", lambda stage: run_soak(stage, options.soak))]
    if options.quick:  # the tests compile the public headers
        return lint + [ctest_stage("dev", "dev", *chosen, "--label-exclude", f"slow|^{doubled}")]
    lint.append(("headers", check_the_headers))
    stages = lint + [("tidy", check_tidy)] if options.lint else []
    for preset in "asan", "tsan":
        if getattr(options, preset):
            stages.append(ctest_stage(preset, preset, *selection))
    if stages:
        return stages
    if options.filter:
        return [ctest_stage("dev", "dev", *selection)]
    release, asan, tsan = (ctest_stage(preset, preset, *selection) for preset in ("release", "asan", "tsan"))
    fuzzers = ("fuzz", lambda stage: run_fuzzers(stage, FUZZ_SECONDS, seed=1))
    return lint + [release, ("tidy", check_tidy), asan, tsan, fuzzers]


def run_stages(stages):
    """Runs the stages in order, but none after a failed build; returns the result of each."""
    results = []
    for index, (name, run) in enumerate(stages):
        stage = Stage(name)
        results.append(stage)
        started = time.monotonic()
        print(f"\n== {name}", flush=True)
        try:
            run(stage)
        except BuildFailed:
            stage.failed.append("build")
            results += [Stage(later, failed=["not run, the build failed"]) for later, _ in stages[index + 1:]]
            return results
        finally:
            stage.seconds = time.monotonic() - started
    return results


def summary(results):
    """The text at the end of a run, and whether nothing failed."""
    lines = []
    for kind in "skipped", "failed":
        names = [f"  {stage.name}: {name}" for stage in results for name in getattr(stage, kind)]
        if names:
            lines += [f"{kind}:", *names, ""]
    lines.append(f"{'stage':10} {'passed':>7} {'failed':>7} {'skipped':>7} {'time':>7}")
    for stage in results:
        counts = " ".join(f"{len(names):7}" for names in (stage.passed, stage.failed, stage.skipped))
        lines.append(f"{stage.name:10} {counts} {stage.seconds:5.0f} s")
    passed, failed, skipped = (sum(len(getattr(stage, kind)) for stage in results)
                               for kind in ("passed", "failed", "skipped"))
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped"]
    return "\n".join(lines), failed == 0 and passed > 0


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="./test", usage="./test [OPTIONS]", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False)
    for flag in "--quick", "--lint", "--asan", "--tsan":
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--filter", metavar="REGEX", help=argparse.SUPPRESS)
    parser.add_argument("--sim", metavar="N", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fuzz", metavar="MINUTES", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--soak", metavar="MINUTES", type=float, help=argparse.SUPPRESS)
    parser.add_argument("-h", "--help", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main():
    options = parse_arguments(sys.argv[1:])
    if options.help:
        print(__doc__.strip())
        return 0
    described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    print(f"testing {described.stdout.strip() or 'a tree without commits'} with {JOBS} jobs")
    text, good = summary(run_stages(choose_stages(options)))
    print("\n" + text, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

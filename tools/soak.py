"""./test --soak: everything that finds more the longer it runs, a fifth of the time each for the simulator and the kills of
processes, the rest for the fuzz targets. build/soak/REPORT.md says what ran and what failed."""

import random
import re
import subprocess
import time

import fuzz

# The programs that kill processes, with the variable that says how much: of seconds or kills for each minute that they get.
KILLS = {
    "tests/rpc/fire_test": ("PERCOLATOR_FIRE_SECONDS", 15),
    "tests/store/durability_test": ("PERCOLATOR_KILL_CYCLES", 20),
    "tests/stress/kill_test": ("PERCOLATOR_STRESS_KILLS", 60),
    "tests/stress/observer_kill_test": ("PERCOLATOR_STRESS_KILLS", 60),
    "tests/webindex/kill_webindex_test": ("PERCOLATOR_STRESS_KILLS", 60),
}
TARGETS = ("percsim", *(program.rsplit("/", 1)[1] for program in KILLS))
GRACE_SECONDS = 900  # an amount is not a time: a busy machine takes longer


def run_program(name, command, environment, timeout, folder):
    """Returns what it said, and whether it ended well; its output goes to a file of the folder."""
    log = folder / f"{name}.log"
    with open(log, "wb") as file:
        try:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                  env=environment, timeout=timeout).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            file.write(f"\n{error}\n".encode())
            code = -1
    return log.read_text(encoding="utf-8", errors="replace"), code == 0


def run_simulator(root, jobs, minutes, folder):
    first = random.randrange(10**9, 10**12)
    command = [str(root / "build/release/sim/percsim"), "--first", str(first), "--minutes", str(max(1, round(minutes))),
               "--jobs", str(jobs)]
    output, good = run_program("percsim", command, None, 60 * minutes + GRACE_SECONDS, folder)
    last = re.findall(r"^sim seeds=.*$", output, re.MULTILINE)
    return f"first seed {first}; {last[-1] if last else 'no result'}", good


def run_kills(root, program, minutes, folder, environment):
    variable, per_minute = KILLS[program]
    amount, seed = max(3, round(per_minute * minutes)), random.randrange(1, 10**9)
    environment = environment | {variable: str(amount), "PERCOLATOR_TEST_SEED": str(seed)}
    name = program.rsplit("/", 1)[1]
    output, good = run_program(name, [str(root / "build/release" / program)], environment, 60 * minutes + GRACE_SECONDS,
                               folder)
    ended = re.findall(r"^\[  (?:PASSED|FAILED)  \].*$", output, re.MULTILINE)
    return f"{variable}={amount} PERCOLATOR_TEST_SEED={seed}; {ended[-1] if ended else 'no result'}", good


def run(root, jobs, minutes, environment):
    """The names of what passed and of what failed."""
    folder = root / "build" / "soak"
    folder.mkdir(parents=True, exist_ok=True)
    rows, passed, failed = [], [], []

    def note(name, text, good):
        print(f"soak {name}: {'ok' if good else 'FAILED'}; {text}", flush=True)
        rows.append((name, "passed" if good else "**failed**", text))
        (passed if good else failed).append(name)
        report = [f"# Soak of {minutes:g} minutes", "", f"Until {time.strftime('%Y-%m-%d %H:%M:%S')}; logs beside this file.",
                  f"{len(passed)} passed, {len(failed)} failed.", "", "| what | result | how much |", "| --- | --- | --- |",
                  *(f"| {' | '.join(row)} |" for row in rows), ""]
        (folder / "REPORT.md").write_text("\n".join(report), encoding="utf-8")

    note("percsim", *run_simulator(root, jobs, minutes / 5, folder))
    for program in KILLS:
        text, good = run_kills(root, program, minutes / 5 / len(KILLS), folder, environment)
        note(program.rsplit("/", 1)[1], text, good)
    for result in fuzz.run_all(root, jobs, fuzz.seconds_for_each(root, jobs, 60 * minutes * 3 / 5)):
        note(f"fuzz_{result.name}", f"{result.executions} executions. {result.finding}", not result.finding)
    return passed, failed

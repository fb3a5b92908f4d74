"""Measure twofold beside its peers: NumPy, PyTorch, JAX and TensorFlow.

    python benchmarks/runner.py                      every case of every area
    python benchmarks/runner.py eager --cases add_10,mlp_step --peers torch,twofold --rounds 15

Each peer runs in an interpreter of its own; one that is not installed is a dash. A peer in another environment is
named by a variable: TWOFOLD_BENCH_PYTHON_TORCH=/path/to/python, and likewise _JAX, _TENSORFLOW and _NUMPY. Every round
measures every peer once, one at a time, in an order that turns from round to round, so that a busy spell of the machine
falls on all. Results must agree before times are compared. Printed are the median over the rounds and, in brackets,
the median of twofold's time over the peer's in the same round: below 1, twofold is the quicker. All samples go to
build/bench/AREA.json; with --keep the medians also go to benchmarks/results/PROCESSOR.json, since a figure means
something beside those of its own machine alone.

Areas that know what their cases must do at least (`WORK`) get a column more: how many times as long as the machine's
own limit twofold takes, and which limit that is. The limits are measured in the same run (`floors.py`), and a picture
shows both (`roofline.py`), where matplotlib is installed.

TWOFOLD_BENCH_PYTHON_BEFORE names an interpreter that imports another version of twofold, which is then measured as the
peer `before`: its ratios say what a change costs.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "build" / "bench"
RESULTS = HERE / "results"
AREAS = ("eager", "compiled", "kernels", "sparse", "lookups", "data", "training", "memory", "cold")
ASKED_FOR = ("genuine_keras", "gpu")  # areas that are measured only when they are named
OURS = "twofold"
BEFORE = "before"  # another version of twofold, in an interpreter of its own

Samples = dict[str, list[float]]  # peer -> seconds, or what else an area measures (`UNIT` there), one a round


def python_of(peer: str) -> str:
    """The interpreter to measure `peer` in."""
    return os.environ.get(f"TWOFOLD_BENCH_PYTHON_{peer.upper()}", sys.executable)


def code_of(peer: str) -> str:
    """The name by which areas list what `peer` runs: the version before runs what this one runs."""
    return OURS if peer == BEFORE else peer


def peers_of(module: Any, wanted: list[str]) -> list[str]:
    """The peers of an area that are `wanted` (all of them if none is named), and the version before if there is one."""
    names = [*module.PEERS, *([BEFORE] if f"TWOFOLD_BENCH_PYTHON_{BEFORE.upper()}" in os.environ else [])]
    return [name for name in names if not wanted or name in wanted]


def environment(**more: str) -> dict[str, str]:
    """The environment of the measured processes: the user's, with TensorFlow's log and JAX's search for GPUs quiet.

    Python keeps the bytecode of modules, as it has that of installed packages: their first import, which is not
    measured, writes it where it is missing.
    """
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"), **more}


def progress(text: str) -> None:
    """Show what is being measured, where a person is watching."""
    if sys.stderr.isatty():
        print(f"\r{text:60s}\r", end="", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Say what a peer cannot do; the others go on."""
    progress("")
    print(text, file=sys.stderr)


class Peer:
    """A worker process and what it says."""

    def __init__(self, area: str, name: str, log: Path):
        self.name, self._log = name, log
        command = [python_of(name), HERE / "worker.py", area, code_of(name)]
        own = getattr(importlib.import_module(area), "ENVIRONMENT", {})
        with log.open("w") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                             text=True, env=environment(**own))
        hello = self._read()
        self.version: str | None = hello.get("version")

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        return json.loads(line) if line else {"error": f"the process ended; see {self._log}"}

    def ask(self, do: str, case: str) -> Any:
        """Send a request and wait for the answer; an error is printed and gives None."""
        try:
            self._process.stdin.write(json.dumps({"do": do, "case": case}) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except OSError:
            return None
        said = self._read()
        if "error" in said:
            complain(f"{self.name}, {case}: {said['error']}")
        return said.get("ok")

    def close(self) -> None:
        """Let the process end."""
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait(timeout=60)


def turned(items: list[Any], by: int) -> list[Any]:
    """`items` starting at another one each round."""
    by %= max(1, len(items))
    return items[by:] + items[:by]


def disagreement(results: dict[str, list[float]], tolerance: float) -> str:
    """How a result differs from the first peer's by more than `tolerance` of its largest; empty if all agree."""
    reference, *others = results
    expected = results[reference]
    scale = max((abs(value) for value in expected[:-1]), default=0.0)
    for name in others:
        if len(results[name]) != len(expected):
            return f"{name} gives {len(results[name])} numbers, {reference} {len(expected)}"
        # The last number is a sum over all elements: its rounding grows with their number.
        limits = [tolerance * scale] * (len(expected) - 1) + [max(tolerance, 1e-6) * max(1.0, abs(expected[-1])) * 10]
        for index, (a, b, limit) in enumerate(zip(results[name], expected, limits, strict=True)):
            if not abs(a - b) <= limit:
                return f"{name} gives {a!r} where {reference} gives {b!r} (number {index} of {len(expected)})"
    return ""


def measure_case(peers: list[Peer], case: str, tolerance: float, rounds: int) -> Samples:
    """The samples of one case, of the peers that have it and agree."""
    results = {peer: peer.ask("prepare", case) for peer in peers}
    able = [peer for peer in peers if results[peer] is not None]
    wrong = disagreement({peer.name: results[peer] for peer in able}, tolerance) if able else ""
    if wrong:
        raise SystemExit(f"{case}: results differ: {wrong}")
    samples: Samples = {peer.name: [] for peer in able}
    for number in range(rounds):
        for peer in turned(able, number):
            seconds = peer.ask("sample", case)
            samples[peer.name].append(math.nan if seconds is None else seconds)
    return samples


def run_process(peer: str, code: str, cache: str) -> float | None:
    """The figure that `code` prints in a fresh process; None if it fails."""
    command = [python_of(peer), "-c", code]
    # Not in this checkout, where another version's interpreter would find this one's package.
    done = subprocess.run(command, capture_output=True, text=True, env=environment(TWOFOLD_CACHE_DIR=cache), cwd=HERE)
    if done.returncode:
        complain(f"{peer}: {done.stderr.strip().splitlines()[-1]}")
        return None
    return float(done.stdout.split()[-1])


def measure_process(module: Any, names: list[str], case: str, cold: bool, rounds: int) -> Samples:
    """The samples of a case that needs a fresh process each time; the first run of each is not counted."""
    samples: Samples = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="twofold-bench-") as folder:
        for number in range(-1, rounds):
            for name in turned(list(samples), number):
                cache = os.path.join(folder, name, f"cold{number}" if cold else "warm")
                seconds = run_process(name, module.process_code(case, code_of(name)), cache)
                if seconds is None:
                    del samples[name]
                elif number >= 0:
                    samples[name].append(seconds)
    return samples


def median(values: list[float]) -> float | None:
    """The median of the numbers among `values`."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else None


def summary(samples: Samples, unit: str = "seconds") -> dict[str, dict[str, float | None]]:
    """The median figure of every peer, and the median of twofold's over theirs, round by round."""
    ours = samples.get(OURS, [])
    return {
        name: {
            unit: median(values),
            "ratio": median([a / b for a, b in zip(ours, values, strict=True)]) if ours and name != OURS else None,
        }
        for name, values in samples.items()
    }


def as_time(seconds: float) -> str:
    """Three digits in the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def as_size(size: float) -> str:
    """Three digits in the unit that suits."""
    for unit, number in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= number:
            return f"{size / number:.3g} {unit}"
    return f"{size / 2**10:.3g} KiB"


def cell(row: dict[str, dict[str, float | None]], name: str) -> str:
    """`1.2 us (0.61)`: a peer's figure and twofold's over it."""
    entry = row.get(name, {})
    figure = next((show(value) for unit, show in (("seconds", as_time), ("bytes", as_size))
                   if (value := entry.get(unit)) is not None), None)
    if figure is None:
        return "-"
    return figure if entry["ratio"] is None else f"{figure} ({entry['ratio']:.2f})"


def floor_cell(row: dict[str, dict[str, float | None]], least: tuple[float, str] | None) -> str:
    """`1.3 of memory`: twofold's time over the least that the machine allows, and what the least comes from."""
    entry = row.get(OURS)
    if least is None or entry is None or entry["seconds"] is None:
        return "-"
    return f"{entry['seconds'] / least[0]:.2f} of {least[1]}"


def table(titles: dict[str, str], rows: dict[str, Any], names: list[str], versions: dict[str, str | None],
          leasts: dict[str, tuple[float, str]] | None = None) -> str:
    """The results as a Markdown table, aligned for the terminal too."""
    heads = ["", *(f"{name} {(versions[name] or '').split('+')[0]}".strip() for name in names)]
    lines = [[titles[case], *(cell(row, name) for name in names)] for case, row in rows.items()]
    if leasts:
        heads.append("floor")
        for line, (case, row) in zip(lines, rows.items(), strict=True):
            line.append(floor_cell(row, leasts.get(case)))
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    rule = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)) + " |"
                     for line in [heads, rule, *lines])


def machine() -> dict[str, Any]:
    """What the figures were measured on. Virtual machines often name the maker alone: the numbers of a design tell
    more."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().split("\n\n")[0].splitlines() if cpuinfo.is_file() else []
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    model = said.get("model name") or platform.processor() or platform.machine()
    design = [f"{name} {said[key]}" for name, key in (("family", "cpu family"), ("model", "model")) if key in said]
    return {"processor": " ".join([model, *design]), "cores": os.cpu_count(), "system": platform.platform(),
            "python": platform.python_version()}


def machine_limits() -> dict[str, float] | None:
    """What the machine can do at most (`floors.measure`), measured in twofold's interpreter; None where that fails."""
    done = subprocess.run([python_of(OURS), HERE / "floors.py"], capture_output=True, text=True, env=environment())
    if done.returncode:
        complain(f"the machine's limits: {done.stderr.strip().splitlines()[-1]}")
        return None
    return json.loads(done.stdout)


def highest(*measured: dict[str, float] | None) -> dict[str, float]:
    """The highest of several measurements of each limit: what disturbs one makes it lower."""
    there = [limits for limits in measured if limits is not None]
    return {name: max(limits[name] for limits in there) for name in (there[0] if there else ())}


def keep(report: dict[str, Any]) -> Path:
    """Put an area's medians into the file of this processor, in the place of earlier ones of the same cases."""
    name = re.sub(r"[^a-z0-9]+", "-", report["machine"]["processor"].lower()).strip("-")
    path = RESULTS / f"{name}-{report['machine']['cores']}.json"
    kept = json.loads(path.read_text()) if path.is_file() else {"machine": report["machine"], "areas": {}}
    area = kept["areas"].setdefault(report["area"], {"cases": {}})
    area["cases"].update({case: {"date": report["date"], "rounds": report["rounds"], **row}
                          for case, row in report["median"].items()})
    area["versions"] = {**area.get("versions", {}), **report["versions"]}
    if report["limits"]:
        area["limits"] = report["limits"]
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return path


def run_area(area: str, wanted_peers: list[str], wanted_cases: list[str], rounds: int, out: Path,
             is_kept: bool = False) -> None:
    """Measure an area, print its table and write its JSON."""
    module = importlib.import_module(area)
    names = peers_of(module, wanted_peers)
    titles = {case: title for case, (title, _) in (module.CASES | module.PROCESS_CASES).items()}
    unknown = [case for case in wanted_cases if case not in titles]
    if unknown:
        raise SystemExit(f"no case {', '.join(unknown)} in {area}; there are {', '.join(titles)}")
    chosen = [case for case in titles if not wanted_cases or case in wanted_cases]

    peers = [Peer(area, name, out / f"{name}.log") for name in names]
    versions = {peer.name: peer.version for peer in peers}
    present = [peer for peer in peers if peer.version is not None]
    samples: dict[str, Samples] = {}
    works = getattr(module, "WORK", {})
    before = machine_limits() if works else None
    for case in chosen:
        progress(titles[case])
        if case in module.CASES:
            samples[case] = measure_case(present, case, module.CASES[case][1], rounds)
        else:
            here = [peer.name for peer in present]
            samples[case] = measure_process(module, here, case, module.PROCESS_CASES[case][1], min(rounds, 7))
    progress("")
    for peer in present:
        peer.close()

    rows = {case: summary(figures, getattr(module, "UNIT", "seconds")) for case, figures in samples.items()}
    date = datetime.date.today().isoformat()
    limits = highest(before, machine_limits()) if works else {}
    least = importlib.import_module("floors").least
    leasts = {case: least(works[case], limits) for case in chosen if limits and case in works}
    print(f"{area}, {date}, {machine()['processor']}, {os.cpu_count()} cores")
    if limits:
        print(f"limits: {limits['float32'] / 1e9:.0f} GFLOP/s of float32, {limits['float64'] / 1e9:.0f} of float64, "
              f"{limits['copy'] / 1e9:.1f} GB/s copied")
    print(table(titles, rows, names, versions, leasts))
    if hasattr(module, "rates"):
        print(module.rates(rows))
    report = {"area": area, "date": date, "machine": machine(), "versions": versions, "rounds": rounds,
              "limits": limits, "median": rows, "samples": samples}
    (out / f"{area}.json").write_text(json.dumps(report, indent=1) + "\n")
    if limits:
        picture(report, out / f"{area}.svg")
    if is_kept:
        kept = keep(report)
        print(f"kept in {kept.relative_to(HERE.parent)}")
        if limits and not wanted_cases:
            picture(report, kept.with_suffix(".svg"))


def picture(report: dict[str, Any], path: Path) -> None:
    """Draw the roofline picture of a report, where it has kernels that count operations and matplotlib is there."""
    roofline = importlib.import_module("roofline")
    if not any(roofline.points(report)):
        return
    try:
        roofline.draw(report, path)
        print(f"drawn in {path}")
    except ImportError:
        complain("no picture: matplotlib is not installed")


def main() -> None:
    """Read the command line and run the areas it names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"among {', '.join(AREAS)}; default: these; "
                                                                   f"and, when asked for, {', '.join(ASKED_FOR)}")
    parser.add_argument("--peers", default="", help="names with commas between; default: all")
    parser.add_argument("--cases", default="", help="names with commas between; default: all")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--keep", action="store_true", help="also put the medians into benchmarks/results/")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the JSON and the peers' logs")
    chosen = parser.parse_args()
    unknown = set(chosen.areas) - {*AREAS, *ASKED_FOR}
    if unknown:
        parser.error(f"no area {', '.join(sorted(unknown))}; there are {', '.join((*AREAS, *ASKED_FOR))}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    peers, cases = (list(filter(None, text.split(","))) for text in (chosen.peers, chosen.cases))
    for area in chosen.areas or AREAS:
        run_area(area, peers, cases, chosen.rounds, chosen.out, chosen.keep)


if __name__ == "__main__":
    main()

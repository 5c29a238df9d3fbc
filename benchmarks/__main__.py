"""`python -m benchmarks`: measure, and hold the figures against their bars.

A benchmark is a module with `measure(quick) -> Report`. It is imported only when it is
chosen, and after the threads of BLAS are set: BLAS reads them once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

BENCHMARKS = {
    "footprint": "memory, CPU and start of real processes, for sizing",
    "learner": "speed of the learner in process, against Vowpal Wabbit",
    "regret": "regret in the synthetic environments, against its bars",
    "service": "speed of the service, against bare applications",
}
RESULTS = Path(__file__).parent / "results"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

EPILOG = """\
benchmarks:
{benchmarks}

Exit status: 0 if every judged bar is met, 1 if one is missed, 130 after Ctrl-C.

examples:
  python -m benchmarks                   all of them, with every bar
  python -m benchmarks learner           one of them
  python -m benchmarks --quick           a smoke test: no bar is judged
  python -m benchmarks --out docs/benchmarks
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    try:
        return run(args.names, quick=args.quick, out=args.out)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def build_parser() -> argparse.ArgumentParser:
    width = max(map(len, BENCHMARKS))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed and regret, and hold the figures against their bars.",
        epilog=EPILOG.format(
            benchmarks="\n".join(f"  {n.ljust(width)}  {s}" for n, s in BENCHMARKS.items())
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="benchmark",
        type=_name,
        help=f"{', '.join(BENCHMARKS)} or all (default: all)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="far fewer rounds and seeds; no bar is judged"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="where the JSON and the pictures go (default: benchmarks/results)",
    )
    return parser


def _name(text: str) -> str:
    if text not in (*BENCHMARKS, "all"):
        raise argparse.ArgumentTypeError(
            f"there is no benchmark {text}; there are {', '.join(BENCHMARKS)} and all"
        )
    return text


def run(names: Sequence[str], *, quick: bool, out: Path) -> int:
    chosen = list(BENCHMARKS) if not names or "all" in names else list(dict.fromkeys(names))
    out.mkdir(parents=True, exist_ok=True)  # refused now, not after minutes of work
    os.environ.update(ONE_THREAD)
    report = import_module("benchmarks.report")
    reports = []
    for name in chosen:
        found = import_module(f"benchmarks.{name}").measure(quick)
        print(report.text(found))
        print(f"\nwrote {' and '.join(map(str, report.write(found, out)))}\n")
        reports.append(found)
    missed = [bar.what for found in reports for bar in found.bars if bar.passed is False]
    if quick:
        print("quick: too few rounds and seeds to judge a bar")
    for what in missed:
        print(f"missed: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

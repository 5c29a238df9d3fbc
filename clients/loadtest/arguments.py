"""The command line of a load test."""

from __future__ import annotations

import argparse
from pathlib import Path

from clients.values import number, whole

EPILOG = """\
Without --rate and --ramp the loop is closed: every connection sends its next request when it has
its answer. With --rate it is open: requests are due whether or not answers come, and latency counts
from when a request was due. --ramp looks for the highest rate whose p99 stays below --p99-ms.

A learner is made for the test and removed at its end. Every acknowledged select and reward is in a
ledger, which is held against the learner's own counters. The key of a service that asks for one is
in LACUNA_API_KEY.

Exit status: 0 if all is well; 1 after an error, an answer that cannot be right, a ledger that does
not balance, or a missed --p99-ms or --least-rate; 130 after Ctrl-C, which ends it early, cleanly.

examples:
  lacuna loadtest http://localhost:8080
  lacuna loadtest http://localhost:8080 --rate 500 --duration 60 --p99-ms 20
  lacuna loadtest http://localhost:8080 --ramp --p99-ms 10 --processes 2
  lacuna loadtest http://localhost:8080 --body compact --rewards 1 --duplicates 0.1 --out report
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("url", metavar="URL", help="where the service is")
    load = parser.add_argument_group("load")
    mode = load.add_mutually_exclusive_group()
    mode.add_argument(
        "--rate", type=number(0.1, 1e6), metavar="R", help="open loop: selects due per second"
    )
    mode.add_argument("--ramp", action="store_true", help="find the highest rate that holds")
    load.add_argument(
        "--duration",
        type=number(0.1, 86_400),
        metavar="S",
        help="seconds of load; with --ramp, of each step (default: 30; 5)",
    )
    load.add_argument(
        "--connections",
        type=whole(1, 4_000),
        metavar="N",
        help="all processes together (default: 16; open loop: 64)",
    )
    load.add_argument(
        "--processes", type=whole(1, 64), default=1, metavar="N", help="that make load (default: 1)"
    )
    load.add_argument(
        "--arrivals",
        choices=("poisson", "even"),
        default="poisson",
        help="open loop: as of many independent callers, or like a clock (default: poisson)",
    )
    load.add_argument(
        "--first-rate",
        type=number(1, 1e6),
        default=200.0,
        metavar="R",
        help="where --ramp begins (default: 200)",
    )
    load.add_argument(
        "--max-steps", type=whole(1, 100), default=16, metavar="N", help="of --ramp (default: 16)"
    )
    what = parser.add_argument_group("requests")
    what.add_argument("--arms", type=whole(1, 10_000), default=20, metavar="K")
    what.add_argument("--dimension", type=whole(1, 10_000), default=32, metavar="D")
    what.add_argument(
        "--missing", type=number(0, 1), default=0.1, metavar="P", help="share of holes"
    )
    what.add_argument("--body", choices=("json", "compact"), default="json")
    what.add_argument(
        "--rewards",
        type=number(0, 1),
        default=0.5,
        metavar="P",
        help="share of selects that get a reward (default: 0.5)",
    )
    what.add_argument(
        "--reward-delay",
        type=number(0, 3_600),
        default=0.5,
        metavar="S",
        help="its mean delay (default: 0.5)",
    )
    what.add_argument(
        "--duplicates",
        type=number(0, 1),
        default=0.02,
        metavar="P",
        help="share of selects and rewards that are sent twice (default: 0.02)",
    )
    what.add_argument(
        "--learner", metavar="NAME", help="load this one, which must be unused by others meanwhile"
    )
    what.add_argument("--keep", action="store_true", help="do not remove the learner made")
    what.add_argument("--seed", type=whole(0, 2**31), default=1, metavar="N")
    verdict = parser.add_argument_group("verdict and report")
    verdict.add_argument(
        "--p99-ms",
        type=number(0.001, 1e6),
        metavar="MS",
        help="of selects, at most; with --ramp the limit to hold (default there: 20)",
    )
    verdict.add_argument(
        "--least-rate", type=number(0, 1e9), metavar="R", help="selects answered per second"
    )
    verdict.add_argument(
        "--max-errors",
        type=whole(0, 10**9),
        default=0,
        metavar="N",
        help="refused, lost or timed out (default: 0); wrong answers are never allowed",
    )
    verdict.add_argument(
        "--timeout", type=number(0.01, 3_600), default=10.0, metavar="S", help="of one request"
    )
    verdict.add_argument(
        "--drain",
        type=number(0, 3_600),
        default=30.0,
        metavar="S",
        help="how long to wait at the end for what is outstanding (default: 30)",
    )
    verdict.add_argument(
        "--out", type=Path, metavar="DIR", help="write loadtest.html and loadtest.json there"
    )
    verdict.add_argument("--quiet", action="store_true", help="no live display")

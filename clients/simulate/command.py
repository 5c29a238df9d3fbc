"""`lacuna simulate`: regret of policies in a synthetic environment."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from clients.errors import BadArgument
from clients.tables import listed
from clients.values import FIRST_SEED, names, seeds, share, whole

from . import bars, report
from .environments import ENVIRONMENTS, Setting, make_setting
from .figures import FIGURES
from .picture import Panel, curves, draw
from .play import Job
from .players import POLICIES
from .run import run as run_jobs

DEFAULT_ENVIRONMENT = "paper"
DEFAULT_POLICIES = ("clbbf", "mean-fill", "oful", "oful-paper")
SEEDS = 10
ROUNDS = 10_000

EPILOG = """\
environments:
{environments}

policies:
{policies}

figures:
{figures}

Seeds 0 to 9 are for tuning, 100 to 109 for reporting: a count of seeds starts at 100.

examples:
  lacuna simulate
  lacuna simulate --environment heterogeneous --policies clbbf,clbbf-uniform,oful --out results
  lacuna simulate --environment homogeneous --dimension 32 --arms 20 --observed 0.9 --seeds 0:5
  lacuna simulate --figure synthetic --out synthetic.svg
  lacuna simulate --bars
  lacuna simulate --url http://localhost:8080 --rounds 500 --seeds 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG.format(
        environments=listed({name: kind.summary for name, kind in ENVIRONMENTS.items()}),
        policies=listed({name: policy.summary for name, policy in POLICIES.items()}),
        figures=listed({name: figure.summary for name, figure in FIGURES.items()}),
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--environment",
        choices=ENVIRONMENTS,
        help=f"where to play (default: {DEFAULT_ENVIRONMENT})",
    )
    what.add_argument("--figure", choices=FIGURES, help="draw a figure of the documentation")
    what.add_argument(
        "--bars", action="store_true", help="check the four regret bounds; exit 1 if one fails"
    )
    parser.add_argument(
        "--policies",
        type=names(POLICIES, "policy"),
        metavar="A,B,C",
        help="who plays, by short name",
    )
    parser.add_argument("--baseline", choices=POLICIES, metavar="A", help="what ratios are to")
    parser.add_argument("--dimension", type=whole(1, 1024), metavar="D", help="features per arm")
    parser.add_argument("--arms", type=whole(1, 100_000), metavar="K", help="arms per round")
    parser.add_argument(
        "--observed", type=share, metavar="P", help="probability that a feature is seen"
    )
    parser.add_argument("--rounds", type=whole(1, 10**8), metavar="T", help="rounds to play")
    parser.add_argument(
        "--seeds", type=seeds, metavar="N|A:B", help=f"how many, or A to B−1 (default: {SEEDS})"
    )
    parser.add_argument(
        "--jobs", type=whole(1, 1024), metavar="N", help="processes (default: all cores)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="a directory, or a .png or .svg file"
    )
    parser.add_argument("--log", action="store_true", help="logarithmic regret axis")
    parser.add_argument("--url", metavar="URL", help="play over HTTP against a running service")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    if args.bars:
        return check_bars(args)
    if args.figure:
        return draw_figure(args)
    return compare(args)


def compare(args: argparse.Namespace) -> int:
    """Policies side by side in one environment."""
    name = args.environment or DEFAULT_ENVIRONMENT
    setting = make_setting(
        name,
        dimension=args.dimension,
        arms=args.arms,
        observed=args.observed,
        rounds=args.rounds,
    )
    summaries = _play(args, [setting], args.policies or DEFAULT_POLICIES)
    _publish(args, name, summaries, lambda: [curves(str(setting), summaries)])
    return 0


def draw_figure(args: argparse.Namespace) -> int:
    _refuse(args, "--figure", "dimension", "arms", "observed", "baseline")
    figure = FIGURES[args.figure]
    summaries = _play(
        args, figure.settings(args.rounds or ROUNDS), args.policies or figure.policies
    )
    args.out = args.out or Path()
    _publish(args, args.figure, summaries, lambda: figure.panels(summaries))
    return 0


def check_bars(args: argparse.Namespace) -> int:
    _refuse(args, "--bars", "dimension", "arms", "observed", "rounds", "policies", "baseline")
    args.seeds = args.seeds or list(bars.SEEDS)
    summaries = _play(args, list(bars.BARS), (bars.POLICY,))
    print(bars.table(summaries))
    if args.out:
        path = _paths(args.out, "bars")[1]
        report.write_json(path, report.to_dict("bars", summaries, bars.POLICY))
        print(f"wrote {path}")
    return 0 if all(bars.verdicts(summaries)) else 1


def _play(
    args: argparse.Namespace, settings: list[Setting], policies: tuple[str, ...]
) -> list[report.Summary]:
    seeds = args.seeds or range(FIRST_SEED, FIRST_SEED + SEEDS)
    if args.baseline and args.baseline not in policies:
        raise BadArgument(f"--baseline: {args.baseline} is not among the policies played")
    if args.out:
        folder = _paths(args.out, "-")[0].parent
        try:  # refused now, not after minutes of play
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadArgument(f"--out: {folder} cannot be made: {error.strerror}") from None
    jobs = [Job(setting, seed, policies, args.url) for setting in settings for seed in seeds]
    return report.summarise(run_jobs(jobs, processes=args.jobs, quiet=args.quiet))


def _publish(
    args: argparse.Namespace,
    title: str,
    summaries: list[report.Summary],
    panels: Callable[[], list[Panel]],
) -> None:
    """The table for the reader, and files where asked for."""
    policies = list(dict.fromkeys(s.policy for s in summaries))
    baseline = report.pick_baseline(policies, args.baseline)
    print(report.table(summaries, baseline))
    if args.out:
        picture, data = _paths(args.out, title)
        report.write_json(data, report.to_dict(title, summaries, baseline))
        draw(panels(), picture, log=args.log, note=_note(summaries))
        print(f"\nwrote {picture} and {data}")


def _note(summaries: list[report.Summary]) -> str:
    count = len(summaries[0].seeds)
    return f"mean of {count} seeds, 95 % bands" if count > 1 else "one seed"


def _paths(out: Path, name: str) -> tuple[Path, Path]:
    """Where the picture and the JSON go."""
    if out.suffix in (".png", ".svg"):
        return out, out.with_suffix(".json")
    if out.exists() and not out.is_dir():
        raise BadArgument(f"--out: {out} is neither a directory nor a .png or .svg file")
    return out / f"{name}.png", out / f"{name}.json"


def _refuse(args: argparse.Namespace, mode: str, *names: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise BadArgument(f"--{name}: cannot be chosen with {mode}")

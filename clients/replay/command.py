"""`lacuna replay`: click-through rates of policies on logs of real clicks."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clients.errors import BadArgument
from clients.simulate.players import POLICIES
from clients.tables import listed
from clients.values import names, seeds, shares_missing, whole

from . import bars, page, progress, remote, report
from . import run as local_runs
from .datasets import DATASETS
from .encoder import MIXES
from .prepare import Prepared, Wanted, prepare
from .protocol import Setting
from .state import Job, Progress, Store

DEFAULT_POLICIES = ("clbbf", "oful", "clbbf-paper", "mean-fill", "random")
DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_ERASED = (0.1,)
REMOTE_JOBS = 4

EPILOG = """\
datasets:
{datasets}

encoders:
{encoders}

policies:
{policies}

Plain, gzip and zip files are read as they are; only a sample of the log is kept in memory.
A replay with --out can be interrupted: the same command goes on from there.

examples:
  lacuna replay avazu train.gz --in-process --out results
  lacuna replay avazu train.gz --url http://localhost:8080 --erased 0.1,0.4 --out results
  lacuna replay taobao raw_sample.csv ad_feature.csv user_profile.csv --in-process --rounds 100000
  lacuna replay movielens ml-100k.zip --in-process --policies clbbf,oful,thompson,random
  lacuna replay avazu train.gz --in-process --encoder pca
  lacuna replay avazu train.gz --in-process --raw
  lacuna replay avazu train.gz --bars
  lacuna sample avazu --out synthetic.csv.gz
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG.format(
        datasets=listed({name: one.summary for name, one in DATASETS.items()}),
        encoders=listed(MIXES | {"FILE.npz": "one that an earlier replay has written"}),
        policies=listed({name: one.summary for name, one in POLICIES.items()}),
    )
    add = parser.add_argument
    add("dataset", choices=DATASETS, help="whose log it is")
    add("files", nargs="+", type=Path, metavar="FILE", help="as published, or a folder of them")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", default=DEFAULT_URL, help=f"the service (default: {DEFAULT_URL})")
    where.add_argument("--in-process", action="store_true", help="without a service")
    add(
        "--policies",
        type=names(POLICIES, "policy"),
        metavar="A,B,C",
        help="who plays, by short name",
    )
    add("--baseline", choices=POLICIES, default=report.BASELINE, metavar="A", help="default: oful")
    add(
        "--erased",
        type=shares_missing,
        metavar="P,…",
        help="share of entries erased (default: 0.1)",
    )
    erase_help = "new holes whenever it is shown, or an impression's own (default: view)"
    add("--erase", choices=["view", "item"], default="view", help=erase_help)
    add("--rounds", type=whole(1, 10**8), metavar="T", help="default: 10,000")
    add("--arms", type=whole(2, 1_000), default=20, metavar="K", help="default: 20")
    pool_help = "clicked, and as many unclicked, that arms are drawn from (default: 1,000)"
    add("--pool", type=whole(1, 10**6), default=1_000, metavar="N", help=pool_help)
    add("--seeds", type=seeds, default=seeds("3"), metavar="N|A:B", help="default: 3, from 100")
    add("--encoder", default="autoencoder", metavar="NAME", help="default: autoencoder")
    add("--dimension", type=whole(1, 1_024), default=32, metavar="D", help="default: 32")
    raw_help = "impressions as logged, K after another; fields the log does not know are missing"
    add("--raw", action="store_true", help=raw_help)
    sample_help = "impressions kept, drawn from the whole log (default: 100,000)"
    add("--sample-rows", type=whole(1, 10**7), default=100_000, metavar="N", help=sample_help)
    add("--max-rows", type=whole(1, 10**12), metavar="N", help="read no more than these")
    flight_help = "over HTTP, rounds of a run in flight; above 1, rewards come late (default: 1)"
    add("--concurrency", type=whole(1, 1_024), default=1, metavar="N", help=flight_help)
    jobs_help = f"runs at once (default: all cores; over HTTP {REMOTE_JOBS})"
    add("--jobs", type=whole(1, 1_024), metavar="N", help=jobs_help)
    add("--out", type=Path, metavar="DIR", help="for page, picture, JSON, encoder and state")
    add("--fresh", action="store_true", help="forget what --out holds of an earlier replay")
    add("--bars", action="store_true", help="check the bounds for Avazu; exit 1 if one is missed")
    add("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    names, settings = _asked(args)
    if args.out and args.out.exists() and not args.out.is_dir():
        raise BadArgument(f"--out: {args.out} is not a directory")
    with progress.reading(quiet=args.quiet) as tick:
        data = prepare(DATASETS[args.dataset], args.files, _wanted(args, settings[0]), tick)
    if data.about["synthetic"]:
        print(page.SYNTHETIC.upper(), file=sys.stderr)
    if args.raw and not args.rounds:
        settings = [_shortened(one, data) for one in settings]
    jobs = [Job(one, name, seed) for one in settings for name in names for seed in args.seeds]
    with TemporaryDirectory(prefix="lacuna-") as temporary:
        summaries = report.summarise(jobs, _played(args, jobs, data, Path(temporary)))
    print(report.table(summaries, args.baseline))
    if args.out:
        _publish(args, data, summaries)
    if args.bars:
        print(f"\n{bars.table(summaries)}")
        return 0 if bars.passed(summaries) else 1
    return 0


def _asked(args: argparse.Namespace) -> tuple[tuple[str, ...], list[Setting]]:
    """Policies and settings."""
    if args.bars:
        if args.raw or args.erased or args.policies:
            raise BadArgument("--bars: it has policies and erasures of its own")
        names: tuple[str, ...] = bars.POLICIES
        erased: tuple[float, ...] = bars.ERASED
    else:
        names = args.policies or DEFAULT_POLICIES
        erased = args.erased or ((0.0,) if args.raw else DEFAULT_ERASED)
    if args.arms > args.pool:
        raise BadArgument(f"--arms: must be at most the {args.pool:,} of --pool")
    return names, [
        Setting(
            "log" if args.raw else "pools",
            args.arms,
            args.pool,
            share,
            "view" if args.raw else args.erase,
            args.rounds or 10_000,
        )
        for share in erased
    ]


def _wanted(args: argparse.Namespace, setting: Setting) -> Wanted:
    if args.encoder not in MIXES and not Path(args.encoder).is_file():
        raise BadArgument(f"--encoder: {args.encoder} is neither {', '.join(MIXES)} nor a file")
    kept = setting.rounds * setting.arms if args.raw else args.sample_rows
    return Wanted(args.raw, args.encoder, args.dimension, kept, args.max_rows)


def _shortened(setting: Setting, data: Prepared) -> Setting:
    """As many rounds as the log has, unless a number was asked for."""
    return replace(setting, rounds=max(1, min(setting.rounds, len(data.clicks) // setting.arms)))


def _played(
    args: argparse.Namespace, jobs: list[Job], data: Prepared, temporary: Path
) -> list[Progress]:
    store = Store(args.out or temporary)
    if store.claim(_identity(args, jobs[0].setting, data), fresh=args.fresh):
        print(f"going on with what {args.out} holds", file=sys.stderr)
    try:
        with progress.shown(jobs, quiet=args.quiet) as told:
            if args.in_process:
                return local_runs.run(jobs, data, store, told, processes=args.jobs)
            return remote.run(
                jobs,
                data,
                store,
                told,
                url=args.url,
                at_once=args.jobs or REMOTE_JOBS,
                concurrency=args.concurrency,
                goes_on=args.out is not None,
            )
    except KeyboardInterrupt:
        if args.out:
            print("stopped; the same command goes on from here", file=sys.stderr)
        raise


def _identity(args: argparse.Namespace, setting: Setting, data: Prepared) -> dict[str, Any]:
    """What must be the same for a run to go on; policies, seeds and erasures have own files."""
    identity = setting.to_dict()
    del identity["erased"]
    return identity | {
        "data": data.digest,
        "where": "in process" if args.in_process else args.url,
        "concurrency": 1 if args.in_process else args.concurrency,
    }


def _publish(args: argparse.Namespace, data: Prepared, summaries: list[report.Summary]) -> None:
    where = "in process" if args.in_process else "over HTTP"
    about = data.about | {"played": where}
    document = report.to_dict(about, summaries, args.baseline, data.codes.shape[1])
    report.write_json(args.out / "replay.json", document)
    if data.encoder is not None:
        data.encoder.save(args.out / "encoder.npz")
    picture, html = page.write(args.out, about, summaries, args.baseline)
    print(f"\nwrote {html}, {picture.name}, replay.json")

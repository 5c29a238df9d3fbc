"""`lacuna loadtest`: load on a running service, and proof that nothing was lost."""

from __future__ import annotations

import argparse
import json
import os
import re
import uuid
from contextlib import ExitStack
from pathlib import Path

from clients.errors import BadArgument, CommandError

from . import arguments, display, ledger, page, ramp, report
from .connection import Target
from .crew import Crew, Found
from .job import Account, Job, Step
from .report import Outcome
from .service import Counted, Service

add_arguments = arguments.add_arguments

RAMP_P99_MS = 20.0
SLACK_S = 300.0
MOST_PER_PROCESS = 900  # what `select` can watch, and some for other files
LEARNER = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def run(args: argparse.Namespace) -> int:
    jobs = plan(args)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)  # refused now, not after minutes of load
    with Service(args.url, jobs[0].api_key) as service, ExitStack() as stack:
        learner = jobs[0].learner
        made = not args.learner or not service.exists(learner)
        if made:
            service.make(learner, args.dimension, _longest_wait_s(args))
            if not args.keep:
                stack.callback(_remove, service, learner)
        before = service.counted(learner)
        outcome = load(args, jobs)
        _audit(args, outcome, service, before)
    print(report.text(outcome))
    if args.out:
        _write(args.out, outcome)
    if outcome.interrupted:
        return 130
    return 1 if outcome.failures else 0


def _longest_wait_s(args: argparse.Namespace) -> float:
    """How long a decision may have to wait for its reward: one in 10⁸ delays exceeds 20 means.

    Decisions outlive a learner that is removed, and there are many: a day's would fill the store.
    """
    return SLACK_S + 20.0 * float(args.reward_delay) + float(args.drain)


def plan(args: argparse.Namespace) -> list[Job]:
    """One job for every process."""
    Target.of(args.url)
    learner = args.learner or f"loadtest-{uuid.uuid4().hex[:8]}"
    if not LEARNER.fullmatch(learner):
        raise BadArgument(f"--learner: {learner} is not the name of a learner")
    connections = args.connections or (64 if args.rate or args.ramp else 16)
    if connections < args.processes:
        raise BadArgument("--connections: every process needs one")
    if connections > MOST_PER_PROCESS * args.processes:
        raise BadArgument(f"--connections: at most {MOST_PER_PROCESS} per process")
    shares = [
        connections // args.processes + (number < connections % args.processes)
        for number in range(args.processes)
    ]
    run_id = uuid.uuid4().hex[:8]
    return [
        Job(
            url=args.url,
            learner=learner,
            prefix=f"{run_id}-{number:02d}-",
            body=args.body,
            arms=args.arms,
            dimension=args.dimension,
            missing=args.missing,
            connections=share,
            rewards=args.rewards,
            reward_delay_s=args.reward_delay,
            duplicates=args.duplicates,
            timeout_s=args.timeout,
            drain_s=args.drain,
            seed=args.seed + number,
            api_key=os.environ.get("LACUNA_API_KEY", ""),
        )
        for number, share in enumerate(shares)
    ]


def load(args: argparse.Namespace, jobs: list[Job]) -> Outcome:
    mode = "ramp" if args.ramp else "open" if args.rate else "closed"
    with Crew(jobs) as crew, display.shown(f"{args.url}, {mode}", quiet=args.quiet) as see:

        def step(rate: float | None, *, last: bool = True) -> Found:
            duration_s = args.duration or (5.0 if args.ramp else 30.0)
            share = None if rate is None else rate / len(jobs)
            one = Step(duration_s, share, args.arrivals, last)
            return crew.run([one] * len(jobs), see)

        if not args.ramp:
            found = step(args.rate)
            return Outcome(
                args.url,
                mode,
                jobs[0],
                len(jobs),
                found,
                found.account,
                interrupted=found.interrupted,
            )
        account, interrupted = Account(), False

        def climb(rate: float) -> Found:
            nonlocal account, interrupted
            found = step(rate)
            account, interrupted = found.account, found.interrupted
            return found

        limit = args.p99_ms or RAMP_P99_MS
        tried = ramp.search(
            climb, first_rate=args.first_rate, p99_ms=limit, most_steps=args.max_steps
        )
    best = ramp.highest(tried) or (tried[-1] if tried else None)
    shown = best.found if best else Found(Step(0.0), 1.0)
    return Outcome(
        args.url,
        mode,
        jobs[0],
        len(jobs),
        shown,
        account,
        tried=tried,
        interrupted=interrupted,
    )


def _audit(args: argparse.Namespace, outcome: Outcome, service: Service, before: Counted) -> None:
    """The ledger, and everything else that makes the exit status."""
    account, failures = outcome.account, outcome.failures
    counted = service.counted(outcome.job.learner).since(before)
    outcome.ledger = ledger.entries(account, counted)
    if not ledger.balanced(outcome.ledger):
        failures.append("the ledger does not balance")
    wrong = account.errors.get("wrong answer", 0)
    if wrong:
        failures.append(f"{wrong:,} answers cannot be right")
    errors = sum(account.errors.values()) - wrong
    if errors > args.max_errors:
        failures.append(f"{errors:,} errors, at most {args.max_errors:,} are allowed")
    if not outcome.found.selects.count:
        failures.append("no select was answered")
        return
    p99_ms = 1e3 * outcome.found.selects.quantile_s(0.99)
    if outcome.mode == "ramp" and not ramp.highest(outcome.tried) and not outcome.interrupted:
        failures.append("no rate held")
    elif args.p99_ms and p99_ms > args.p99_ms:
        failures.append(f"p99 is {p99_ms:.2f} ms, at most {args.p99_ms:g} ms is allowed")
    if args.least_rate and outcome.found.rate < args.least_rate:
        rate = f"{outcome.found.rate:,.0f}"
        failures.append(f"{rate} selects per second, at least {args.least_rate:,.0f} is asked")


def _remove(service: Service, learner: str) -> None:
    try:
        service.remove(learner)
    except CommandError as error:  # what was measured stays worth reading
        print(f"the learner {learner} was not removed: {error}")


def _write(folder: Path, outcome: Outcome) -> None:
    data, html = folder / "loadtest.json", folder / "loadtest.html"
    body = json.dumps(_finite(report.to_dict(outcome)), allow_nan=False, indent=1)
    data.write_text(body + "\n", encoding="utf-8")
    html.write_text(page.page(outcome), encoding="utf-8")
    print(f"\nwrote {html} and {data}")


def _finite(value: object) -> object:
    """NaN is not JSON."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and value != value else value

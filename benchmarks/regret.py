"""Regret in the synthetic environments, with every bar it has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clients.simulate import environments
from clients.simulate.bars import BARS, SEEDS
from clients.simulate.environments import Setting, make_setting
from clients.simulate.play import Job, play_block
from clients.simulate.players import make_player
from clients.simulate.report import Summary, summarise
from clients.simulate.report import to_dict as summaries_to_dict
from clients.simulate.run import run

from . import pictures
from .paired import PairedRatio, paired_ratio
from .progress import shown
from .report import Bar, Report, Table

PRACTICAL, UNIFORM, GREEDY, RANDOM = "clbbf", "clbbf-uniform", "greedy", "random"

CLEARLY_AHEAD = 0.8  # the band of per_feature's regret over uniform's ends below it
EQUAL = 0.1  # as far as the same ratio may be from 1, unless its band holds 1
FAR_BELOW_GREEDY = 0.5
FAR_BELOW_RANDOM = 0.5  # the band ends below it
LATE = 0.1  # the share of rounds, at the end, in which a policy is looked at
STUCK = 0.5  # it is stuck if it plays the best arm in less than this share of them


@dataclass(frozen=True, slots=True)
class Scenes:
    """The settings, shortened where the run is quick."""

    bounds: dict[Setting, float]
    homogeneous: Setting
    heterogeneous: Setting
    low_diversity: Setting
    rare: Setting

    @classmethod
    def of(cls, rounds: int | None) -> Scenes:
        def short(setting: Setting) -> Setting:
            return setting if rounds is None else replace(setting, rounds=rounds)

        return cls(
            {short(setting): bound for setting, bound in BARS.items()},
            *(
                short(make_setting(name))
                for name in ("homogeneous", "heterogeneous", "low-diversity", "rare")
            ),
        )

    def policies(self) -> dict[Setting, tuple[str, ...]]:
        return dict.fromkeys(self.bounds, (PRACTICAL,)) | {
            self.homogeneous: (PRACTICAL, UNIFORM),
            self.heterogeneous: (PRACTICAL, UNIFORM),
            self.low_diversity: (PRACTICAL, GREEDY),
            self.rare: (PRACTICAL, RANDOM),
        }


@dataclass(frozen=True, slots=True)
class Findings:
    scenes: Scenes
    summaries: dict[tuple[Setting, str], Summary]
    late: dict[str, list[float]]  # how often each seed plays the best arm, low diversity

    def ratio(self, setting: Setting, above: str, below: str) -> PairedRatio:
        final = [self.summaries[setting, name].curves[:, -1] for name in (above, below)]
        return paired_ratio(*final)

    def stuck(self, policy: str) -> int:
        return sum(share < STUCK for share in self.late[policy])


def measure(quick: bool) -> Report:
    scenes = Scenes.of(300 if quick else None)
    seeds = list(SEEDS)[: 2 if quick else None]
    jobs = [
        Job(setting, seed, policies)
        for setting, policies in scenes.policies().items()
        for seed in seeds
    ]
    summaries = summarise(run(jobs))
    found = Findings(
        scenes,
        {(s.setting, s.policy): s for s in summaries},
        late_shares(scenes.low_diversity, (PRACTICAL, GREEDY), seeds),
    )
    return Report(
        "regret",
        quick,
        [_bounds(found), _comparisons(found), _late(found)],
        judge(found, quick),
        _data(found, summaries),
        lambda path: pictures.draw_regret(found, path),
        ("numpy", "scipy", "numba"),
    )


def late_shares(
    setting: Setting, policies: Sequence[str], seeds: Sequence[int]
) -> dict[str, list[float]]:
    """The share of the last rounds in which the arm of the highest value was chosen, by seed."""
    with shown("regret") as steps:
        steps.plan(len(policies) * len(seeds))
        shares: dict[str, list[float]] = {name: [] for name in policies}
        for name in policies:
            for seed in seeds:
                hits = best_arm_hits(setting, name, seed)
                shares[name].append(float(hits[-max(1, int(LATE * len(hits))) :].mean()))
                steps.done(f"{setting.environment}, {name}")
    return shares


def best_arm_hits(setting: Setting, policy: str, seed: int) -> NDArray[np.bool_]:
    """Whether the best arm was chosen, (T,)."""
    player = make_player(policy, dimension=setting.dimension, horizon=setting.rounds, seed=seed)
    hits: list[NDArray[np.bool_]] = []
    left = setting.rounds
    for block in environments.blocks(setting, seed):
        count = min(left, len(block.x))
        chosen = play_block(player, block, count)
        hits.append(chosen == block.value[:count].argmax(axis=1))
        left -= count
        if left == 0:
            break
    player.close()
    return np.concatenate(hits)


def judge(found: Findings, quick: bool) -> list[Bar]:
    scenes = found.scenes
    apart = found.ratio(scenes.heterogeneous, PRACTICAL, UNIFORM)
    same = found.ratio(scenes.homogeneous, PRACTICAL, UNIFORM)
    greedy = found.ratio(scenes.low_diversity, PRACTICAL, GREEDY)
    rare = found.ratio(scenes.rare, PRACTICAL, RANDOM)
    stuck, seeds = found.stuck(PRACTICAL), len(found.late[PRACTICAL])
    bars = []
    for setting, bound in scenes.bounds.items():
        regret = found.summaries[setting, PRACTICAL].regret
        what = f"regret, p={setting.observed:g} K={setting.arms} d={setting.dimension}"
        bars.append((what, f"{regret:.1f}", f"≤ {bound:g}", regret <= bound))
    bars += [
        (
            "per_feature over uniform, heterogeneous rates",
            str(apart),
            f"band below {CLEARLY_AHEAD:g}",
            apart.high < CLEARLY_AHEAD,
        ),
        (
            "per_feature over uniform, one rate",
            str(same),
            f"1 ± {EQUAL:g}, or 1 in the band",
            abs(same.value - 1.0) <= EQUAL or same.low <= 1.0 <= same.high,
        ),
        (
            "low diversity, over greedy",
            str(greedy),
            f"≤ {FAR_BELOW_GREEDY:g}",
            greedy.value <= FAR_BELOW_GREEDY,
        ),
        ("low diversity, seeds stuck", f"{stuck} of {seeds}", "0", stuck == 0),
        (
            "rewards of 1 in 100, over random",
            str(rare),
            f"band below {FAR_BELOW_RANDOM:g}",
            rare.high < FAR_BELOW_RANDOM,
        ),
    ]
    return [Bar(what, figure, bar, None if quick else met) for what, figure, bar, met in bars]


def _bounds(found: Findings) -> Table:
    head = ["p, K, d", "R(T)", "95 % band", "worst seed", "at most"]
    rows = []
    for setting, bound in found.scenes.bounds.items():
        summary = found.summaries[setting, PRACTICAL]
        rows.append(
            [
                f"{setting.observed:g}, {setting.arms}, {setting.dimension}",
                f"{summary.regret:.1f}",
                f"± {summary.regret_half_width:.1f}",
                f"{summary.curves[:, -1].max():.1f}",
                f"{bound:g}",
            ]
        )
    return Table(f"Regret of practical, {_span(summary)}", [head, *rows])


def _comparisons(found: Findings) -> Table:
    head = ["environment", "policy", "R(T)", "95 % band", "reward"]
    rows = [
        [
            str(summary.setting),
            summary.policy,
            f"{summary.regret:,.1f}",
            f"± {summary.regret_half_width:,.1f}",
            f"{summary.rewards.mean():.4f}",
        ]
        for setting, policies in found.scenes.policies().items()
        if len(policies) > 1
        for summary in (found.summaries[setting, name] for name in policies)
    ]
    return Table("Side by side, on the same arms and the same noise", [head, *rows])


def _late(found: Findings) -> Table:
    head = ["policy", "best arm, median seed", "worst seed", "seeds stuck"]
    rows = [
        [
            name,
            f"{100 * np.median(shares):.0f} %",
            f"{100 * min(shares):.0f} %",
            f"{found.stuck(name)} of {len(shares)}",
        ]
        for name, shares in found.late.items()
    ]
    title = (
        f"Low diversity: how often the best arm is played in the last {100 * LATE:.0f} % of the "
        f"rounds; stuck: less than {100 * STUCK:.0f} %"
    )
    return Table(title, [head, *rows])


def _span(summary: Summary) -> str:
    seeds, rounds = summary.seeds, summary.setting.rounds
    return f"T={rounds:,}, seeds {seeds[0]} to {seeds[-1]}"


def _data(found: Findings, summaries: Sequence[Summary]) -> dict[str, Any]:
    results = summaries_to_dict("regret", summaries, PRACTICAL)["results"]
    for result in results:
        del result["regret"]["over_baseline"]
        del result["curve"]["per_seed"]  # the final ones are in regret.per_seed
    return {"late_best_arm_share": found.late, "results": results}

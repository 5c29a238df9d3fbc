"""Vowpal Wabbit's contextual bandit on the same rounds, its text built beforehand.

Everything that can be left out of its time is: building the text, drawing an arm from the
probabilities it returns, and putting the label on the arm drawn; the label of a round stands on an
arm fixed in advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from vowpalwabbit import Workspace

Floats = NDArray[np.float64]

OPTIONS = "--cb_explore_adf --quiet"


def line(x: Floats) -> str:
    """One arm, missing features left out, which is how this format says it.

    >>> line(np.array([0.5, np.nan, -1.25]))
    '| f0:0.500000 f2:-1.250000'
    """
    seen = (f"f{j}:{value:.6f}" for j, value in enumerate(x.tolist()) if value == value)
    return "| " + " ".join(seen)


def question(x: Floats) -> list[str]:
    """All arms of a round, (K, d)."""
    return [line(row) for row in x]


def answer(x: Floats, arm: int, reward: float) -> list[str]:
    """The same with `action:cost:probability` before the arm that was shown; the action's number
    is not read in this format, its place among the lines is."""
    lines = [line(row) for row in x]
    lines[arm] = f"0:{-reward:.6f}:{1.0 / len(x):.6f} {lines[arm]}"
    return lines


class Vowpal:
    def __init__(self, x: Floats, rewards: Sequence[float]) -> None:
        """Rounds x (B, K, d), and what the arm shown in each has paid."""
        arms = x.shape[1]
        self.questions = [question(round_) for round_ in x]
        self.answers = [
            answer(round_, number % arms, reward)
            for number, (round_, reward) in enumerate(zip(x, rewards, strict=True))
        ]
        self.workspace = Workspace(OPTIONS)

    def round(self, number: int) -> None:
        self.workspace.predict(self.questions[number])
        self.workspace.learn(self.answers[number])

    def __enter__(self) -> Vowpal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.workspace.finish()

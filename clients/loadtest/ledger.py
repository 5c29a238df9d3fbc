"""The proof that nothing was lost: what was acknowledged against what the learner has counted."""

from __future__ import annotations

from dataclasses import dataclass

from .job import Account
from .service import Counted

SUM_TOLERANCE = 1e-6  # relative; the service reports a mean


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what this side knows, and what the service says."""

    what: str
    acknowledged: float
    doubtful: int  # sent and never answered: may or may not be counted
    counted: float

    @property
    def balanced(self) -> bool:
        slack = SUM_TOLERANCE * max(1.0, abs(self.acknowledged))
        return (
            self.acknowledged - slack <= self.counted <= self.acknowledged + self.doubtful + slack
        )


def entries(account: Account, counted: Counted) -> list[Entry]:
    """
    >>> account = Account(selects=10, recorded=8, reward_sum=4.0)
    >>> [e.balanced for e in entries(account, Counted(10, 8, 4.0, 0))]
    [True, True, True, True]
    >>> [e.balanced for e in entries(account, Counted(10, 7, 3.0, 0))]
    [True, False, False, True]
    """
    doubt = account.doubtful_rewards
    return [
        Entry("selects", account.selects, account.doubtful_selects, counted.rounds),
        Entry("rewards", account.recorded, doubt, counted.recorded),
        # A reward is at most 1, so each one in doubt moves the sum by at most that.
        Entry("sum of rewards", account.reward_sum, doubt, counted.reward_sum),
        # A retry whose first answer was lost is a duplicate that nobody meant.
        Entry("duplicates", account.duplicates, account.retries, counted.duplicates),
    ]


def balanced(lines: list[Entry]) -> bool:
    return all(line.balanced for line in lines)

"""What may still be lost to drafts: the reason why speculation never costs more than it is allowed to.

Two kinds of books, in seconds by the cost curves.  The machine's: each step it is charged the time that drafts add and
credited the steps that accepted ones save, averaged over those who get a token.  And one for every sequence in the
step: it is charged that same time, whoever the drafts belong to, and credited the steps its own save it.  Beyond its
gains each may lose `SHARE` of its time, and a sequence with drafts of its own a little more while it finds out.  The
invariant: drafts whose time exceeds any of these balances are not admitted.  So even if every draft fails the machine
has lost no more than `SHARE` (and one `GRANT`), and one that drafts nothing pays no more for its neighbours.  Knows
nothing of tokens or drafters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SHARE = 0.012  # of its time that anyone may lose to drafts that fail
OVERDRAFT = 0.006  # of the time it may still take that a sequence with drafts may owe at once …
MOST_OWED = 1.5  # … and never more steps than this
GRANT = 0.5  # steps that the machine may lose before it has gained anything: enough for the first drafts
MODEL_GRANT = 4.0  # … where a draft model must show what it can do: some asks, once in a server's life
CEILING = 8.0  # steps that a balance may hold: old gains do not pay for long failures


@dataclass(slots=True)
class Account:
    """One sequence's balance, and how far below zero it may go."""

    balance: float = 0.0
    overdraft: float = 0.0

    @property
    def free(self) -> float:
        return self.balance + self.overdraft


class DraftBudget:
    """What one step's drafts may cost, as it changes while drafts are picked.

    Who drafts may count on some of what its own drafts promise, up to a step's time; the machine counts on nothing.
    """

    def __init__(self, most: float, free: dict[int, float], step_s: float) -> None:
        self.most = most  # seconds that the machine can lose
        self._free = free  # seconds that each sequence can lose
        self._expected_s = dict.fromkeys(free, 0.0)  # seconds that each counts on
        self._step_s = step_s
        self._poorest = min(free, key=free.__getitem__, default=None)

    def count_on(self, sequence: int, survival: float) -> None:
        """A draft of this survival was picked for a sequence."""
        optimistic = self._expected_s.get(sequence)
        if optimistic is None or optimistic >= self._step_s:
            return
        more = min(survival * self._step_s, self._step_s - optimistic)
        self._expected_s[sequence] = optimistic + more
        self._free[sequence] += more
        if sequence == self._poorest:
            self._poorest = min(self._free, key=self._free.__getitem__)

    def cannot_afford(self, seconds: float) -> int | None:
        """The sequence that can least afford drafts of so many seconds, if it cannot."""
        poorest = self._poorest
        return poorest if poorest is not None and self._free[poorest] < seconds else None


class Accounts:
    """The machine's balance and those of its sequences."""

    def __init__(self, grant: float = GRANT) -> None:
        self.machine = 0.0
        self._grant = grant  # steps, not yet given
        self._accounts: dict[int, Account] = {}

    def draft_budget(self, sequences: Iterable[int], step_s: float, plain_s: float) -> DraftBudget:
        """What a step of these sequences may lose to drafts, if it takes `step_s` without any.

        `plain_s` is what it would take without prompts.
        """
        share = SHARE * step_s
        return DraftBudget(self.most(step_s, plain_s), {id: self.free(id) + share for id in sequences}, step_s)

    def most(self, step_s: float, plain_s: float) -> float:
        """What the machine may lose to the drafts of a step that takes `step_s` without any."""
        if self._grant:
            self.machine += self._grant * plain_s
            self._grant = 0.0
        return self.machine + SHARE * step_s

    def free(self, sequence: int) -> float:
        """What a sequence may lose now."""
        account = self._accounts.get(sequence)
        return account.free if account else 0.0

    def trust(self, sequence: int, remaining: int, plain_s: float) -> None:
        """The sequence has drafts, and may take `remaining` steps more: from now on it may owe a part of that."""
        account = self._open(sequence)
        account.overdraft = account.overdraft or min(OVERDRAFT * remaining, MOST_OWED) * plain_s

    def book(self, sequence: int, step_s: float, drafts_s: float, saved_s: float) -> None:
        """A step took `step_s` plus `drafts_s` for its drafts, and this sequence's accepted ones save it `saved_s`."""
        account = self._open(sequence)
        account.balance = after(account.balance, step_s, drafts_s, saved_s)

    def book_machine(self, step_s: float, drafts_s: float, saved_s: float) -> None:
        """The same for the machine: accepted drafts save `saved_s` for the average sequence.

        It never owes more than a step, or a draft model's misjudged passes could silence the lookups for long.
        """
        self.machine = max(after(self.machine, step_s, drafts_s, saved_s), -step_s)

    def close(self, sequence: int) -> None:
        """The sequence ended."""
        self._accounts.pop(sequence, None)

    def _open(self, sequence: int) -> Account:
        account = self._accounts.get(sequence)
        if account is None:
            account = self._accounts[sequence] = Account()
        return account


def after(balance: float, step_s: float, drafts_s: float, saved_s: float) -> float:
    return min(balance + SHARE * step_s + saved_s - drafts_s, CEILING * step_s)

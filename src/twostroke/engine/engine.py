"""The loop: plan, execute, commit, tell, guess, price.

No line names a feature: what is absent is a null object.  What neighbours do wrong stays theirs: a runner that raises
ends the sequences of that step, a drafter or governor that raises or returns junk costs its drafts, an observer that
raises misses a report; each is counted in `faults` and the engine goes on.  The engine has no thread and no clock of
its own: the caller steps it, and time is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from dataclasses import replace

from twostroke.engine.proposals import usable_proposals
from twostroke.engine.protocols import Drafter, Governor, Observer, Runner, View
from twostroke.engine.scheduler import Scheduler
from twostroke.engine.sequence import Sequence
from twostroke.engine.step import Plan
from twostroke.errors import InvalidParameter, PromptTooLong, RunnerFailed
from twostroke.types import End, FinishReason, Limits, Picks, Proposal, Report, Request, Row, SequenceReport


class Engine:
    """Serves requests on one runner.

    `vocabulary` is how many token ids the model knows, `context` the longest sequence it may grow; the blocks of the
    scheduler's group bound it as well.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        drafter: Drafter,
        governor: Governor,
        observers: Iterable[Observer],
        clock: Callable[[], float],
        vocabulary: int,
        context: int,
    ) -> None:
        self.scheduler = scheduler
        self.runner = runner
        self.drafter = drafter
        self.governor = governor
        self.observers: tuple[Observer, ...] = (*observers, drafter.observe, governor.observe)  # delivery comes first
        self.clock = clock
        self.vocabulary = vocabulary
        self.context = min(context, scheduler.space.capacity)
        self.limits = Limits()
        self.faults: Counter[str] = Counter()  # by neighbour
        self.last_fault = ""
        self._sequences = 0
        self._draft_s = 0.0
        self._evicted = 0  # positions, up to the last report
        self._price(())

    # -- requests -----------------------------------------------------------------------------------------------------

    def add(self, request: Request) -> tuple[int, ...]:
        """Accept a request; the ids of its sequences, by choice.

        Raises `PromptTooLong` when no token could follow the prompt in this context and KV memory, `InvalidParameter`
        when there is nothing to read or to write, or a token id the model does not know.
        """
        self._judge(request)
        limit = min(len(request.prompt) + request.max_tokens, self.context)
        sequences = [Sequence(self._sequences + choice, request, choice, limit) for choice in range(request.choices)]
        self._sequences += len(sequences)
        for sequence in sequences:
            self.scheduler.add(sequence)
        return tuple(sequence.id for sequence in sequences)

    def _judge(self, request: Request) -> None:
        length = len(request.prompt)
        if not length:
            raise InvalidParameter("the prompt has no tokens; give at least one", param="prompt")
        if length >= self.context:
            raise PromptTooLong(
                f"the prompt has {length} tokens, and at most {self.context - 1} fit a context of {self.context} with "
                f"room for an answer; shorten it, or serve with a larger context or more KV memory",
                param="prompt",
            )
        if request.max_tokens < 1:
            raise InvalidParameter(f"max_tokens is {request.max_tokens}; ask for at least 1", param="max_tokens")
        if request.choices < 1:
            raise InvalidParameter(f"choices is {request.choices}; ask for at least 1", param="n")
        self._judge_ids(request.prompt, "prompt")
        self._judge_ids([token for token, _ in request.sampling.bias], "logit_bias")
        self._judge_ids(request.sampling.withheld, "stop_token_ids")
        if not request.sampling.repetition_penalty > 0.0:
            raise InvalidParameter(
                f"repetition_penalty is {request.sampling.repetition_penalty}; give a number above 0",
                param="repetition_penalty",
            )

    def _judge_ids(self, tokens: Items[int], param: str) -> None:
        if tokens and (min(tokens) < 0 or max(tokens) >= self.vocabulary):
            raise InvalidParameter(f"{param} has token ids outside 0 … {self.vocabulary - 1}", param=param)

    def abort(self, request: str) -> None:
        """The client went away: every choice of the request ends, and gives back its blocks, at the next step."""
        self.scheduler.abort(request)

    @property
    def idle(self) -> bool:
        """Nothing is running or waiting, so nothing is to be done."""
        return not self.scheduler.running and not self.scheduler.queue

    @property
    def view(self) -> View:
        """What a governor may read."""
        return self.scheduler

    # -- the step -----------------------------------------------------------------------------------------------------

    def step(self) -> Report:
        """One forward pass and everything around it.  Its tokens are told before anything guesses about the next."""
        started = self.clock()
        plan = self.scheduler.plan(self.limits, started)
        self._forget((*plan.preempted, *(end.sequence for end in plan.ended)))
        planned = self.clock()
        picks = self._execute(plan.rows)
        executed = self.clock()
        report = self._commit(plan, picks, started, planned, executed)
        for observe in self.observers:
            self._tell(observe, report)
        self._forget(self._gone(report))
        self._price(self._propose())
        return report

    def _execute(self, rows: Items[Row]) -> Items[Picks] | RunnerFailed:
        """The target's choices, or why there are none: the rows are then to be failed, the engine is not."""
        if not rows:
            return ()
        try:
            picks = self.runner.execute(rows)
            shape = [(len(pick.tokens), len(pick.scores)) for pick in picks]
            wanted = [(row.samples, len(row.scores)) for row in rows]
            if shape != wanted:
                raise ValueError(f"the runner chose and scored {shape} tokens where {wanted} were asked for")
        except Exception as error:
            self._fault("runner", error)
            return RunnerFailed(f"the forward pass failed: {error!r}")
        return picks

    def _commit(
        self, plan: Plan, picks: Items[Picks] | RunnerFailed, started: float, planned: float, executed: float
    ) -> Report:
        space = self.scheduler.space
        rows: tuple[SequenceReport, ...] = ()
        failed: tuple[End, ...] = ()
        if isinstance(picks, RunnerFailed):
            failed = self.scheduler.fail(picks.message)
        else:
            rows = self.scheduler.commit(plan, picks)
        before, self._evicted = self._evicted, space.evicted
        return Report(
            started_s=started,
            planned_s=planned,
            executed_s=executed,
            ended_s=self.clock(),
            rows=rows,
            admitted=plan.admitted,
            preempted=plan.preempted,
            ended=plan.ended + failed,
            waiting=self.scheduler.waiting,
            running=len(self.scheduler.running),
            kv_used=space.used,
            kv_capacity=space.capacity,
            evicted=space.evicted - before,
            draft_s=self._draft_s,
        )

    def _tell(self, observe: Observer, report: Report) -> None:
        try:
            observe(report)
        except Exception as error:
            self._fault("observer", error)

    @staticmethod
    def _gone(report: Report) -> list[int]:
        ended = [end.sequence for end in report.ended if end.reason is FinishReason.ERROR]
        return ended + [row.sequence for row in report.rows if row.finished is not None]

    def _forget(self, sequences: Iterable[int]) -> None:
        for sequence in sequences:
            try:
                self.drafter.forget(sequence)
            except Exception as error:
                self._fault("drafter", error)

    # -- guesses ------------------------------------------------------------------------------------------------------

    def _propose(self) -> Items[Proposal]:
        """What the drafter suggests, less what is no proposal; all of it is dropped when it raises."""
        began = self.clock()
        try:
            proposals = tuple(self.drafter.propose(self.scheduler.running))
        except Exception as error:
            self._fault("drafter", error)
            proposals = ()
        self._draft_s = self.clock() - began
        kept, faults = usable_proposals(proposals, self.scheduler.running, self.vocabulary)
        for fault in faults:
            self._fault("drafter", fault)
        return kept

    def _price(self, proposals: Items[Proposal]) -> None:
        """Ask the governor for the next step's limits; while it fails, the last ones hold, without drafts."""
        try:
            limits = self.governor.price(proposals, self.view)
        except Exception as error:
            self._fault("governor", error)
            limits = replace(self.limits, drafts={})
        silent = {p.sequence: p for p in proposals if not p.tokens and p.sequence not in limits.drafts}
        self.limits = replace(limits, drafts={**silent, **limits.drafts}) if silent else limits

    def _fault(self, neighbour: str, error: Exception) -> None:
        self.faults[neighbour] += 1
        self.last_fault = f"{neighbour}: {error!r}"

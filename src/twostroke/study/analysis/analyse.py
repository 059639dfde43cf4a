"""From records to an `Analysis`: each load by itself, the headline first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twostroke.errors import ConfigError
from twostroke.study.analysis.acceptance import warm_and_cold
from twostroke.study.analysis.bootstrap import RESAMPLES, Resampler
from twostroke.study.analysis.calibration import calibration
from twostroke.study.analysis.controls import controls, failures, floors
from twostroke.study.analysis.effects import effects
from twostroke.study.analysis.estimate import Sample
from twostroke.study.analysis.interaction import interactions, overall
from twostroke.study.analysis.latency import distribution, gaps, stages, tokens_per_s
from twostroke.study.analysis.outputs import differences, outputs
from twostroke.study.analysis.result import Analysis, ArmSummary, Finding, LoadAnalysis
from twostroke.study.analysis.stories import stories
from twostroke.study.analysis.switches import accepted, cached, drafted, prompt, switches, total
from twostroke.study.analysis.table import PHASES, Table, errors, tabulate
from twostroke.study.arms import ARMS
from twostroke.study.records import Record

HEADLINE = "1"  # one request at a time
MARGIN = 0.1


def analyse(
    records: Sequence[Record], *, seed: int = 0, resamples: int = RESAMPLES, margin: float = MARGIN
) -> Analysis:
    """Everything a study says.  The headline load is "1"; without it, the first that was sent.

    Raises `ConfigError` where there is no record at all.
    """
    if not records:
        raise ConfigError("there is no record to analyse; run the study first")
    by_load: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (record.load != HEADLINE, record.place)):
        by_load.setdefault(record.load, []).append(record)
    headline, *loaded = (_load(load, of_load, Resampler(seed, resamples), margin) for load, of_load in by_load.items())
    return Analysis(seed, resamples, margin, headline, tuple(loaded))


def _load(load: str, records: Sequence[Record], resampler: Resampler, margin: float) -> LoadAnalysis:
    table = tabulate(records)
    sample = Sample(table.clusters, resampler)
    outcomes = {phase: table.outcomes(phase) for phase in PHASES}
    controlled, compared = controls(outcomes, sample, margin), outputs(table)
    findings = (
        *_headline(load),
        *failures(controlled),
        *switches(table, sample, margin),
        *stories(table),
        *differences(compared),
        *_clustering(table),
    )
    invalid = frozenset(finding.subject for finding in findings if finding.severity == "invalid")
    floor, repeats = floors(controlled), len(table.repeats)
    interacting = interactions(outcomes, floor, invalid, sample, margin, repeats)
    judged = overall(interacting, invalid, margin, repeats)
    return LoadAnalysis(
        load=load,
        clustered_by="session" if table.clustered_by_session else "call",
        repeats=repeats,
        valid=judged.kind != "invalid",
        overall=judged,
        arms=tuple(_arm(arm.name, table, invalid) for arm in ARMS if arm.name in table.sent),
        effects=effects(outcomes, floor, invalid, sample),
        interactions=interacting,
        controls=controlled,
        outputs=compared,
        acceptance=warm_and_cold(table, sample),
        calibration=calibration(table, sample),
        findings=findings,
    )


def _headline(load: str) -> tuple[Finding, ...]:
    if load == HEADLINE:
        return ()
    return (
        Finding(
            "note",
            "study",
            f"Load {load}: requests share the machine, so a shorter prefill also relieves the decode of its "
            "neighbours, and phases are not apart as they are one at a time.",
        ),
    )


def _clustering(table: Table) -> tuple[Finding, ...]:
    if table.clustered_by_session or table.sessions == len(table.calls):
        return ()
    return (
        Finding(
            "note",
            "study",
            "There are fewer than ten sessions, so calls are resampled one by one; the intervals speak of these "
            "sessions, not of others like them.",
        ),
    )


def _arm(arm: str, table: Table, invalid: Collection[str]) -> ArmSummary:
    records = tuple(table.by_arm.get(arm, {}).values())
    prompt_tokens, cached_tokens = total(records, prompt), total(records, cached)
    return ArmSummary(
        arm=arm,
        sent=len(table.sent[arm]),
        failed=sum(record.error is not None for record in table.sent[arm]),
        errors=errors(table.sent[arm]),
        missing=table.missing(arm),
        valid=not {arm, "study"} & set(invalid),
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        cached_share=cached_tokens / prompt_tokens if prompt_tokens and cached_tokens is not None else None,
        output_tokens=sum(record.output_tokens for record in records),
        drafted=total(records, drafted),
        accepted=total(records, accepted),
        ttft_ms=distribution(record.ttft_ms for record in records),
        tpot_ms=distribution(record.tpot_ms for record in records),
        itl_ms=gaps(records),
        total_ms=distribution(record.total_ms for record in records),
        tokens_per_s=tokens_per_s(records),
        stages=stages(records),
    )

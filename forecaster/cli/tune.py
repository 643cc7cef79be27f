"""`forecaster tune`: which policy would have been better, with its expected outcome and its uncertainty."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from forecaster.cli.options import finished, grouped
from forecaster.cli.replay import ReplayOptions
from forecaster.cli.streams import tell
from forecaster.report.formats import TuneOutput

if TYPE_CHECKING:
    from forecaster.replay.sliders import PolicyChange
    from forecaster.replay.tuning import Estimate, PolicyProposal, Tuning


@grouped
def tune(
    given: ReplayOptions,
    output: Annotated[TuneOutput, typer.Option("--output", "-o", help="Output format.")] = TuneOutput.YAML,
    allow_shortage: Annotated[
        bool,
        typer.Option(
            "--allow-shortage", help="Also propose policies that are cheaper and have more shortage than now."
        ),
    ] = False,
) -> None:
    """Search quantile, lead time, stabilization and target on replayed days, and print policy YAML.

    What is proposed was better on days that had no part in choosing it, and leaves no more demand short than the policy
    of today; where the evidence is thin nothing is proposed, and the reason is a comment. Exit code 1 when there is no
    proposal at all.
    """
    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.tuning import tune as tuned
    from forecaster.report.progress import shown_progress

    with shown_progress("tune") as shown:
        shown.began("history", 0.0)
        inputs = inputs_of(given)
        prepare_process()
        tuning = tuned(
            inputs.traces,
            inputs.policies,
            begin=inputs.begin,
            until=inputs.until,
            model=inputs.settings.forecast.model,
            assumed=inputs.assumed,
            forecasting=inputs.forecasting,
            watch=shown,
            allow_shortage=allow_shortage,
        )
    print_tuned(tuning, output)
    if output is TuneOutput.NAME:
        for id_, why in tuning.refused.items():
            tell(f"{id_}: no proposal, {why}.")
    finished(shown)
    if not tuning.proposals:
        raise typer.Exit(1)


def print_tuned(tuning: Tuning, output: TuneOutput) -> None:
    """Print proposals, and the reasons for workloads without one."""
    import sys

    from forecaster.report.printed import print_json, print_names

    match output:
        case TuneOutput.YAML:
            sys.stdout.write(tuned_text(tuning))
        case TuneOutput.NAME:
            print_names(proposal.workload.id for proposal in tuning.proposals)
        case TuneOutput.JSON:
            print_json(tuned_view(tuning))


class EstimateView(msgspec.Struct, frozen=True):
    """A relative change against the present policy, with its interval."""

    expected: float
    low: float
    high: float


class ProposalView(msgspec.Struct, frozen=True):
    """An entry of `overrides`, and its expected effect; `missing_ratio` is null where there is no shortage now."""

    override: dict[str, Any]
    days: int
    cost_ratio: EstimateView
    pod_hours_ratio: EstimateView
    missing_ratio: EstimateView | None
    agreed_ratio: float
    hpa_target_share: float


class UntunedView(msgspec.Struct, frozen=True):
    """A workload without a proposal."""

    namespace: str
    kind: str
    name: str
    reason: str


class TuningView(msgspec.Struct, frozen=True):
    """Proposals, and why the other workloads have none."""

    begin: datetime
    until: datetime
    proposals: list[ProposalView]
    refused: list[UntunedView]


def tuned_view(tuning: Tuning) -> TuningView:
    """Return the tuning as a document."""
    return TuningView(
        tuning.begin,
        tuning.until,
        [_proposal(proposal) for proposal in tuning.proposals],
        [UntunedView(*id_, reason) for id_, reason in tuning.refused.items()],
    )


def _proposal(proposal: PolicyProposal) -> ProposalView:
    return ProposalView(
        override=_override(proposal),
        days=proposal.days,
        cost_ratio=EstimateView(*proposal.cost),
        pod_hours_ratio=EstimateView(*proposal.pod_hours),
        missing_ratio=EstimateView(*proposal.missing) if proposal.missing else None,
        agreed_ratio=proposal.agreed,
        hpa_target_share=proposal.chosen.target_share,
    )


def tuned_text(tuning: Tuning) -> str:
    """Return the output of `forecaster tune`: a fragment of the settings, with comments."""
    import yaml

    lines = [f"# Tuned on {tuning.begin:%Y-%m-%d %H:%M} to {tuning.until:%Y-%m-%d %H:%M} UTC."]
    overrides = [_override(proposal) for proposal in tuning.proposals]
    pairs = list(zip(tuning.proposals, overrides, strict=True))
    empty: dict[str, object] = {"horizontal": {}}
    changed = [(proposal, entry) for proposal, entry in pairs if entry["policy"] != empty]
    lines += ["overrides:" if changed else "overrides: []"]
    for proposal, entry in changed:
        lines += [line for text in _expected(proposal) for line in _comment(text, "  # ")]
        text = yaml.safe_dump([entry], sort_keys=False, default_flow_style=None, width=TERMINAL_WIDTH - 2)
        lines += [f"  {line}" for line in text.rstrip().splitlines()]
    for proposal, entry in pairs:
        if entry["policy"] == empty:
            lines += [line for text in _expected(proposal) for line in _comment(text)]
    lines += [line for id_, why in tuning.refused.items() for line in _comment(f"{id_}: no proposal, {why}.")]
    return "\n".join(lines) + "\n"


TERMINAL_WIDTH = 80


def _comment(text: str, begin: str = "# ") -> list[str]:
    """Return one remark as comment lines that fit a terminal; no name in it can end the comment."""
    whole = textwrap.TextWrapper(TERMINAL_WIDTH, break_long_words=False, break_on_hyphens=False)
    whole.initial_indent, whole.subsequent_indent = begin, f"{begin}  "
    return whole.wrap(" ".join(text.split()))


def _override(proposal: PolicyProposal) -> dict[str, object]:
    from forecaster.replay.sliders import override_of

    return override_of(proposal.workload.id, proposal.chosen, proposal.present.policy_fields)


def _expected(proposal: PolicyProposal) -> Iterator[str]:
    from forecaster.replay.tuning import LEVEL

    yield f"{proposal.workload.id}: {_setting(proposal.chosen)}, instead of {_setting(proposal.present)}."
    yield (
        f"Expected on {proposal.days} days that did not choose it ({LEVEL:.0%} confidence): "
        f"cost {_spoken(proposal.cost)}, pod-hours {_spoken(proposal.pod_hours)},"
    )
    missing = _spoken(proposal.missing) if proposal.missing else "none before"
    yield f"demand short {missing}. {proposal.agreed:.0%} of the folds chose the same."
    if proposal.chosen.target_share != 1.0:
        yield f"It takes another target of its HPA: {_targets(proposal)}."


def _setting(change: PolicyChange) -> str:
    from forecaster.domain.amounts import duration_text

    fields = change.policy_fields.items()
    spelt = [(name, duration_text(value) if isinstance(value, timedelta) else f"{value:g}") for name, value in fields]
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in spelt)


def _spoken(estimate: Estimate) -> str:
    return f"{estimate.expected:+z.1%} ({estimate.low:+z.1%} to {estimate.high:+z.1%})"


def _targets(proposal: PolicyProposal) -> str:
    from forecaster.domain.workload import TargetType
    from forecaster.replay.account import with_targets_at

    after = with_targets_at(proposal.workload, proposal.chosen.target_share)
    pairs = zip(
        proposal.workload.autoscaler.targets if proposal.workload.autoscaler else (),
        after.autoscaler.targets if after.autoscaler else (),
        strict=True,
    )
    forms = [(old, new, ".0%" if old.type is TargetType.UTILIZATION else ",.10g") for old, new in pairs]
    return ", ".join(f"{old.metric} {new.value:{form}} instead of {old.value:{form}}" for old, new, form in forms)

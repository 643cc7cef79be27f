"""One number of one workload, by its name or by a label selector. Pure.

An HPA sums the items of a list, so a selector never yields more than one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from forecaster.domain.published import DEMAND_METRIC
from forecaster.hpa.selectors import SELECTOR_MAX, Selector, SelectorError, parse_selector
from forecaster.publish.values import Answer, Moment, NotKnown, NotNamed, OfferedValue, value_of

if TYPE_CHECKING:
    from forecaster.publish.reader import PublishedTable, TableEntry
    from forecaster.publish.values import WorkloadOffer


class MetricRequest(NamedTuple):
    """The requested number. Without a kind the name has to be unique; `target` is the load of one replica."""

    namespace: str
    name: str
    kind: str = ""
    metric: str = DEMAND_METRIC
    signal: str = ""
    target: float = 0.0


class NotThere(NamedTuple):
    """There is no such workload, or its policy publishes nothing."""

    message: str


NoValue: TypeAlias = NotKnown | NotNamed | NotThere
"""Reasons why there is no number."""


def answer(table: PublishedTable, request: MetricRequest, moment: Moment) -> Answer | NotThere:
    """Return the number, or why there is none."""
    entry = entry_of(table, request.namespace, request.name, request.kind)
    if isinstance(entry, (NotNamed, NotThere)):
        return entry
    published = table.published(entry)
    if published is None:
        which = f"{request.kind or 'workload'} {request.namespace}/{request.name}"
        return NotThere(f"the policy of {which} publishes nothing: its mode is observe; `mode: publish` changes that")
    return value_of(published, request.metric, moment, signal=request.signal, target=request.target)


def entry_of(table: PublishedTable, namespace: str, name: str, kind: str) -> TableEntry | NotNamed | NotThere:
    """Return the one workload of that name, and of that kind where one is given."""
    entries = [entry for entry in table.named(namespace, name) if kind in {"", entry.kind}]
    if not entries:
        return NotThere(f"no {kind or 'workload'} {namespace}/{name} in the table")
    if len(entries) > 1:
        return NotNamed(f"{namespace}/{name} is one of {', '.join(entry.kind for entry in entries)}: name the kind")
    return entries[0]


WORKLOAD, KIND, NAMESPACE, SIGNAL = LABELS = ("workload", "kind", "namespace", "signal")
COMMAS_MAX = 256


class WorkloadSelector(NamedTuple):
    """Workloads and signals that a label selector names."""

    names: tuple[str, ...]
    """The workloads it may mean: nothing is searched for, these are looked up."""
    selector: Selector
    signals: tuple[str, ...]
    """The signals that it names."""


def workload_selector(text: str) -> WorkloadSelector | NotNamed:
    """Return the workloads that a selector names, or its fault."""
    if len(text) > SELECTOR_MAX or text.count(",") > COMMAS_MAX:
        most = f"{SELECTOR_MAX} characters and {COMMAS_MAX} commas are the most"
        return NotNamed(f"the label selector is too long: {most}")
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        return NotNamed(str(error)[:300])
    workloads = _named(selector, WORKLOAD)
    if workloads is None:
        return NotNamed(f"say which workload: {WORKLOAD}=NAME, and {KIND}= where two kinds share it")
    return WorkloadSelector(workloads, selector, _named(selector, SIGNAL) or ())


def _named(selector: Selector, label: str) -> tuple[str, ...] | None:
    """The values of a label that a selector names; None where it names none."""
    of_label = (requirement for requirement in selector.requirements if requirement.key == label)
    named = [set(requirement.values) for requirement in of_label if requirement.operator == "in"]
    return tuple(sorted(set.intersection(*named))) if named else None


class WorkloadValue(NamedTuple):
    """A number and its workload."""

    entry: TableEntry
    value: OfferedValue

    def labels(self) -> dict[str, str]:
        """Labels that name the subject of the number, and its source."""
        labels = _labels(self.entry, self.value.signal)
        if self.value.quantile is not None:
            labels["quantile"] = f"{self.value.quantile:g}"
        labels["source"] = self.value.source
        return labels


class _Candidate(NamedTuple):
    entry: TableEntry
    published: WorkloadOffer
    signal: str

    def labels(self) -> dict[str, str]:
        return _labels(self.entry, self.signal)


def _labels(entry: TableEntry, signal: str) -> dict[str, str]:
    labels = {NAMESPACE: entry.namespace, KIND: entry.kind, WORKLOAD: entry.name}
    return labels | {SIGNAL: signal} if signal else labels


def find(
    table: PublishedTable, moment: Moment, namespace: str, metric: str, selection: WorkloadSelector
) -> WorkloadValue | NoValue:
    """Return the value of one of our metrics in one namespace."""
    entries = [entry for name in selection.names for entry in table.named(namespace, name)]
    offered = [(entry, published) for entry in entries if (published := table.published(entry)) is not None]
    candidates = _candidates(offered, metric, selection)
    matching = [candidate for candidate in candidates if selection.selector.matches(candidate.labels())]
    if not matching:
        return _nothing(namespace, selection, entries, offered)
    if len(matching) > 1:
        return NotNamed(_several(matching))
    entry, published, signal = matching[0]
    answer = value_of(published, metric, moment, signal=signal)
    if isinstance(answer, NotKnown):
        which = f"{metric} of {entry.kind} {entry.namespace}/{entry.name}"
        return NotKnown(f"{which} is not known: {answer.message}")
    return answer if isinstance(answer, NotNamed) else WorkloadValue(entry, answer)


def _candidates(
    offered: Iterable[tuple[TableEntry, WorkloadOffer]], metric: str, selection: WorkloadSelector
) -> Iterator[_Candidate]:
    for entry, published in offered:
        for signal in _signals(published, metric, selection):
            yield _Candidate(entry, published, signal)


def _signals(published: WorkloadOffer, metric: str, selection: WorkloadSelector) -> tuple[str, ...]:
    """The signals that decide the count, known now or not; before any was ever read, those that are named."""
    if metric != DEMAND_METRIC:
        return ("",)
    return published.signals or selection.signals or ("",)


def _nothing(
    namespace: str,
    selection: WorkloadSelector,
    entries: Sequence[TableEntry],
    offered: Sequence[tuple[TableEntry, WorkloadOffer]],
) -> NotThere:
    names = ", ".join(selection.names)[:200]
    if entries and not offered:
        message = f"{namespace}/{names} is not published: set its policy to mode: publish"
    elif offered and selection.signals and not any(set(selection.signals) & set(offer.signals) for _, offer in offered):
        there = ", ".join(sorted({signal for _, offer in offered for signal in offer.signals}))
        message = (
            f"the count of {namespace}/{names} is not decided by {', '.join(selection.signals)[:64]}; there are {there}"
        )
    elif entries:
        message = f"no value of {namespace}/{names} has these labels; a value has {', '.join(LABELS)}"
    else:
        message = f"no workload {names} in namespace {namespace[:64]}"
    return NotThere(message)


def _several(matching: list[_Candidate]) -> str:
    """Refuse several values, since an HPA would add them up."""
    labels = (candidate.labels().items() for candidate in matching[:3])
    shown = "; ".join(",".join(f"{key}={value}" for key, value in pairs) for pairs in labels)
    return f"{len(matching)} values match and an HPA would add them up; name one of {shown}"

"""Which workloads a label selector names. Every operator filters; one requirement has to say which workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.hpa.selectors import Selector, SelectorError, parse_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKLOAD, KIND, NAMESPACE, SIGNAL = LABELS = ("workload", "kind", "namespace", "signal")
LONGEST = 4096
"""Characters of a selector: what an HPA builds from its own has some dozens."""
MOST_COMMAS = 256


class Question(NamedTuple):
    """A selector that was understood."""

    names: tuple[str, ...]
    """The workloads it may mean: nothing is searched for, these are looked up."""
    selector: Selector
    by_signal: bool
    """Whether it says something of the signal."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all its requirements hold."""
        return self.selector.matches(labels)


def question(text: str) -> Question | str:
    """The question behind a selector, or what is wrong with it in a sentence."""
    if len(text) > LONGEST or text.count(",") > MOST_COMMAS:
        return f"the label selector is too long: {LONGEST} characters and {MOST_COMMAS} commas are the most"
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        return str(error)[:300]
    named = [set(one.values) for one in selector.requirements if one.key == WORKLOAD and one.operator == "in"]
    if not named:
        return f"say which workload: {WORKLOAD}=NAME, and {KIND}= where two kinds share it"
    return Question(
        tuple(sorted(set.intersection(*named))),
        selector,
        any(one.key == SIGNAL for one in selector.requirements),
    )

"""What the codes of a decision mean: reasons, masks of the border, missing measurements, outages. No numpy."""

from forecaster.domain.decision import Reason
from forecaster.hpa.numbers import MIN_INT32

UNKNOWN = MIN_INT32
"""Count that is not known: below every count, so that a maximum passes it over."""
LARGEST = float(2**53)
"""Amounts above this have no milli-units in 64 bits."""

REASONS = tuple(Reason)
"""What a code of a reason means. With the first four a count is given, with the others it is held."""
SCALED = frozenset(REASONS[:4])
"""Reasons with which a count is given."""

CHECKED = (
    "",
    "the target of a pod",
    "replicas",
    "ready replicas",
    "the floor of an event",
    "the policy or the targets",
)
"""What a code of `Decisions.failed` names; the codes after these are the numbers of a policy, in their order."""
TARGET, REPLICAS, READY, EVENT, UNREADABLE, FIRST_NUMBER = range(1, len(CHECKED) + 1)

KNOWN, NO_SAMPLE, STALE, NOT_READ, IMPOSSIBLE, INCOMPLETE = range(6)
"""Why a measurement is missing: there is no sample, it is too old, its signal is not read, it is no amount.

`INCOMPLETE` is not missing: it is part of a sum, and so a lower bound. It may raise a count and never lowers one.
"""
SAMPLED = frozenset({KNOWN, INCOMPLETE})
"""Codes with which there is a measurement."""

NONE, SILENCE, GONE, BACK = range(4)
"""Why the floor of an outage is there: no outage, samples were missing, load has gone, load is back."""

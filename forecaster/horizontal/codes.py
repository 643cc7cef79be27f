"""Codes of a decision and their meanings: reasons, masked rows, missing measurements, outages. No numpy."""

from forecaster.domain.decision import Reason
from forecaster.hpa.numbers import MIN_INT32

UNKNOWN = MIN_INT32
"""Count that is not known: below every count, so that a maximum passes it over."""
LARGEST = float(2**53)
"""Amounts above this have no milli-units in 64 bits."""

REASONS = tuple(Reason)
"""Meanings of the codes of a reason. The first four come with a count; with the others the count is held."""
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
"""Meanings of the codes of `Decisions.failed`; the codes after these are the numbers of a policy, in their order."""
TARGET, REPLICAS, READY, EVENT, UNREADABLE, FIRST_NUMBER = range(1, len(CHECKED) + 1)

KNOWN, NO_SAMPLE, STALE, NOT_READ, IMPOSSIBLE, INCOMPLETE = range(6)
"""Codes of a missing measurement: no sample, a sample too old, a signal that is not read, an impossible value.

`INCOMPLETE` is not missing: it is part of a sum, and so a lower bound. It may raise a count and never lowers one.
"""
SAMPLED = frozenset({KNOWN, INCOMPLETE})
"""Codes with which there is a measurement."""

NONE, SILENCE, GONE, BACK = range(4)
"""Codes of an outage floor: no outage, samples are missing, load is gone, load is back."""

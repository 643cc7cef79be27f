"""What one rule says about a recommendation."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """From good to bad; `unknown` where the facts that the rule needs are missing."""

    PASSES = "passes"
    NOTE = "note"
    """Allowed, and something a person would want to know."""
    UNKNOWN = "unknown"
    REFUSED = "refused"


class Finding(NamedTuple):
    """The rule, what it says, and the sentence with the values."""

    rule: str
    verdict: Verdict
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.message else f"{self.rule}: {self.verdict}"


def passes(rule: str, message: str = "") -> Finding:
    """Nothing speaks against it."""
    return Finding(rule, Verdict.PASSES, message)


def note(rule: str, message: str) -> Finding:
    """Allowed, but worth saying."""
    return Finding(rule, Verdict.NOTE, message)


def unknown(rule: str, message: str) -> Finding:
    """Facts are missing."""
    return Finding(rule, Verdict.UNKNOWN, message)


def refused(rule: str, message: str) -> Finding:
    """The cluster would say no."""
    return Finding(rule, Verdict.REFUSED, message)

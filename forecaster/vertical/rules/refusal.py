"""Why the cluster says no."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """One reason: the rule, the object it is about, and the sentence with the values."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.errors import StoreError
from forecaster.publish.publisher import Publishers
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.decision import Recommendation


class Heard:
    """A publisher that remembers, or fails."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.tables: list[Sequence[Recommendation]] = []

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        if self.fault:
            raise StoreError(self.fault)
        self.tables.append(recommendations)


def test_all_are_told() -> None:
    heard = [Heard(), Heard()]
    Publishers(*heard).publish(NOON, [recommendation()])
    assert [len(one.tables) for one in heard] == [1, 1]


def test_one_that_fails_keeps_it_from_no_other_and_all_faults_are_said() -> None:
    heard = Heard()
    with pytest.raises(StoreError, match="the disk is full; nobody answers"):
        Publishers(Heard("the disk is full"), heard, Heard("nobody answers")).publish(NOON, [])
    assert heard.tables == [[]]

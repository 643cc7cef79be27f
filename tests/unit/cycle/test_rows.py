"""Rows are resolved once; holding a row does not resolve the others again."""

from __future__ import annotations

from forecaster.cycle.rows import RowCache
from forecaster.domain.policies import Policies
from tests.support.builders import policy, workload


def test_while_a_workload_is_held_nothing_is_made_anew_and_then_it_is_decided_again() -> None:
    web, api = workload("web"), workload("api")
    book, policies, lost = RowCache(), Policies(policy()), {web.id: "its shard is away"}
    first, second = (book.rows([web, api], policies, lost) for _ in range(2))
    assert [row.lost for row in first.rows] == ["its shard is away", ""]
    assert second.static is first.static
    back = book.rows([web, api], policies)
    assert [row.lost for row in back.rows] == ["", ""]
    assert back.static is not first.static

"""What `forecaster doctor` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.amounts import counted
from forecaster.domain.report import Check  # noqa: TC001  msgspec resolves the annotations when it makes the schema
from forecaster.report.formats import DocumentOutput
from forecaster.report.printed import print_json, print_text, print_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ChecksView(msgspec.Struct, frozen=True):
    """Checks in the order in which they were made."""

    checks: list[Check]


def print_checks(checks: Sequence[Check], output: DocumentOutput) -> None:
    """A line a check, and what to do about those that failed."""
    if output is DocumentOutput.TEXT:
        print_text(*_lines(checks), hang=7)
        print_text(verdict(checks))
    else:
        (print_json if output is DocumentOutput.JSON else print_yaml)(ChecksView(list(checks)))


def verdict(checks: Sequence[Check]) -> str:
    """Whether forecaster can work here, and which checks say that it cannot."""
    failed = [check.name for check in checks if not check.ok]
    if failed:
        return f"Not ready: {len(failed)} of {counted(len(checks), 'check')} failed: {', '.join(failed)}"
    return f"Ready: {counted(len(checks), 'check')} passed"


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    for check in checks:
        yield f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}"
        if not check.ok:
            yield f"       → {check.remedy}"

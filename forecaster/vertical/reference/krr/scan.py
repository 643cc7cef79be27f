"""Which namespaces a scan looks at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EVERY = "*"


def namespaces(selected: Sequence[str], known: Sequence[str]) -> set[str]:
    """`*` is all; entries with a star are patterns matched from the start of a name, others are taken as they are."""
    if EVERY in selected:
        return set(known)
    patterns = [re.compile(entry) for entry in selected if EVERY in entry]
    matched = {name for name in known if any(pattern.match(name) for pattern in patterns)}
    return matched | {entry for entry in selected if EVERY not in entry}

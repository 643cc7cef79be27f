"""Pieces of PromQL text: the only place where values become part of a query."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.domain.amounts import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


def quoted(value: str) -> str:
    """`value` as a double-quoted PromQL string."""
    return f'"{escaped(value)}"'


def escaped(value: str) -> str:
    """`value` as it stands between double quotes."""
    return value.translate(_ESCAPES)


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches exactly these names. RE2 refuses the escapes that `re.escape` makes of `-`."""
    return "|".join(_SPECIAL.sub(r"\\\1", name) for name in names)


def equalities(labels: Mapping[str, str]) -> str:
    """Matchers to append inside a selector: `,a="x",b="y"`, or nothing."""
    return "".join(f",{name}={quoted(value)}" for name, value in labels.items())


def duration(span: timedelta) -> str:
    """A PromQL duration of whole seconds, such as `2m`; names of recorded series can carry it, too."""
    return duration_text(timedelta(seconds=round(span.total_seconds())))


def filled(template: str, values: Mapping[str, str]) -> str:
    """`template` with `$name` replaced for the names in `values`, in one pass: a value is never searched again.

    Everything else that starts with a dollar sign, such as the `$1` of `label_replace`, stays as it is.
    """
    return re.sub(r"\$([a-z]+)\b", lambda found: values.get(found[1], found[0]), template)

"""Amounts and durations as people of the field read them; the only place that turns units into text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from forecaster.domain.workload import Resources

Pair = tuple[float | None, float | None]

UNKNOWN_AMOUNT = "–"
WHOLE_CORES = 10
"""CPU of this many cores and more is printed in cores."""
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def counted(number: int, singular: str, more: str = "") -> str:
    """A number of things; `more` where several are not called by an s more.

    >>> counted(1, "workload"), counted(0, "workload"), counted(2, "policy", "policies")
    ('1 workload', '0 workloads', '2 policies')
    """
    return f"{number} {singular if number == 1 else more or singular + 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def amount(value: float | None, unit: str) -> str:
    """An amount in this unit; a dash where it is not known.

    >>> amount(0.25, "cores"), amount(12, "cores"), amount(3 * 2**30, "bytes"), amount(12.5, "requests/s")
    ('250m', '12 cores', '3Gi', '12.5/s')
    """
    match unit:
        case _ if value is None:
            return UNKNOWN_AMOUNT
        case "cores":
            return cores(value) if value < WHOLE_CORES else f"{cores(value)} cores"
        case "bytes":
            return memory(value)
        case "requests/s":
            return f"{_digits(value, 4)}/s"
        case _:
            return f"{_digits(value, 4)} {unit}".rstrip()


def alike(values: Sequence[float], unit: str) -> list[str]:
    """Amounts that stand side by side: of CPU all of them in millicores or all in cores.

    >>> alike([9.663, 10.011], "cores"), alike([10.2, 12], "cores")
    (['9663m', '10011m'], ['10.2 cores', '12 cores'])
    """
    if unit == "cores" and min(values) < WHOLE_CORES:
        return [f"{value * 1000:.0f}m" for value in values]
    return [amount(value, unit) for value in values]


def resource_amount(value: float | None, resource: str) -> str:
    """An amount of CPU in cores or of memory in bytes, as manifests have it."""
    if value is None:
        return UNKNOWN_AMOUNT
    return memory(value) if resource == "memory" else cores(value)


def cores(value: float) -> str:
    """CPU, in millicores below ten cores as manifests have it."""
    return f"{value * 1000:.0f}m" if value < WHOLE_CORES else _digits(value, 3)


def memory(value: float) -> str:
    """Memory with a binary suffix and three digits."""
    power = 0
    while value >= 1024 and power < len(_BINARY) - 1:  # noqa: PLR2004
        value, power = value / 1024, power + 1
    return f"{_digits(value, 3)}{_BINARY[power]}"


def _digits(value: float, count: int) -> str:
    """Format with so many significant digits, and all digits before the point."""
    return f"{value:.{count}g}" if value < 10**count - 0.5 else f"{value:.0f}"


def pods_change(before: Resources, after: Resources) -> str:
    """CPU and memory of one pod before and after, all as request/limit where any request differs from its limit.

    >>> from forecaster.domain.workload import Resources
    >>> pods_change(Resources(1.0, 1.0, 2 * 2**30, 8 * 2**30), Resources(1.0, 1.0, 2**32, 2**32))
    'cpu 1000m, memory 2Gi/8Gi → 4Gi/4Gi'
    """
    old, new = before.amounts, after.amounts
    return f"cpu {_change(old[:2], new[:2], cores)}, memory {_change(old[2:], new[2:], memory)}"


def _change(before: Pair, after: Pair, spoken: Callable[[float], str]) -> str:
    pairs = [tuple(UNKNOWN_AMOUNT if value is None else spoken(value) for value in pair) for pair in (before, after)]
    one_each = all(request == limit for request, limit in pairs)
    texts = [request if one_each else f"{request}/{limit}" for request, limit in pairs]
    return " → ".join(dict.fromkeys(texts))


def duration_text(value: timedelta) -> str:
    """The shortest exact text of a duration that is not negative: `parse_duration` reads it back."""
    minutes, seconds = divmod(value, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    whole = "".join(f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count)
    part = f"{seconds / timedelta(seconds=1):.6f}".rstrip("0").rstrip(".") + "s" if seconds else ""
    return whole + part or "0s"

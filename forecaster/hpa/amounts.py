"""Amounts as people say them: cores, bytes, per second."""

from datetime import timedelta

from forecaster.domain.quantity import QuantityFormat, milli_quantity
from forecaster.hpa.spec import MetricSpec

RESOURCE_SOURCES = frozenset({"Resource", "ContainerResource"})


def amount(metric: MetricSpec, milli: int) -> str:
    """A measured amount: `5.2 cores`, `3Gi` of memory, or the plain number."""
    if metric.source in RESOURCE_SOURCES and metric.name == "cpu":
        return f"{_decimal(milli)} cores"
    text = target_amount(metric, milli)
    return _decimal(milli) if text.endswith("m") and abs(milli) > 1000 else text  # noqa: PLR2004 - one whole unit


def _decimal(milli: int) -> str:
    """Thousandths as a decimal number, exact."""
    sign, whole, rest = "-" if milli < 0 else "", *divmod(abs(milli), 1000)
    return f"{sign}{whole}.{rest:03}".rstrip("0").rstrip(".")


def target_amount(metric: MetricSpec, milli: int) -> str:
    """A target as the manifest writes it: `500m`, `1Gi`, `1k`."""
    binary = metric.source in RESOURCE_SOURCES and metric.name == "memory"
    return str(milli_quantity(milli, QuantityFormat.BINARY_SI if binary else QuantityFormat.DECIMAL_SI))


def pods(count: int) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} pod" if count == 1 else f"{count} pods"


def seconds(duration: timedelta) -> str:
    """`300 s`."""
    return f"{duration.total_seconds():g} s"

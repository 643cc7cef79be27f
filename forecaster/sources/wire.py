"""The wire format of the Prometheus HTTP API: questions as forms, answers as series of raw samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Question:
    """One call of the API. `name` is what messages call it."""

    name: str
    path: str
    form: Mapping[str, str]


class Series(msgspec.Struct, gc=False):
    """Undecoded labels and samples of one series. Native histograms come without either of the two."""

    labels: msgspec.Raw = msgspec.field(name="metric")
    value: msgspec.Raw = msgspec.Raw()
    values: msgspec.Raw = msgspec.Raw()

    @property
    def metric(self) -> dict[str, str]:
        """The labels. Raises `MalformedAnswer`."""
        try:
            return _decode_labels(self.labels)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedAnswer(str(error)) from error

    @property
    def samples(self) -> msgspec.Raw:
        """What there is: one `[time, "value"]` of an instant query or a list of them."""
        return self.values or self.value


class _Data(msgspec.Struct):
    result: list[Series]


class _Success(msgspec.Struct):
    data: _Data
    warnings: list[str] = []
    infos: list[str] = []


class _Envelope(msgspec.Struct):
    status: str
    errorType: str = ""  # noqa: N815  the API's spelling
    error: str = ""


class _Status(msgspec.Struct):
    data: dict[str, object] = {}


class Answer(msgspec.Struct, frozen=True):
    """The series of a successful answer and what the server remarks about them."""

    series: list[Series]
    remarks: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """An error that the API itself states."""

    kind: str
    message: str


class MalformedAnswer(ValueError):
    """The bytes are not what the API promises."""


_ABOUT_NAMES = "PromQL info: metric might not be a counter"
"""Said of every counter whose name does not end in `_total`, such as those of ingress-nginx; true and of no use."""

_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_decode_success = msgspec.json.Decoder(_Success).decode
_decode_status = msgspec.json.Decoder(_Status).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode


def at_instant(name: str, query: str, at: datetime) -> Question:
    """The value of `query` at one time."""
    return Question(name, "/api/v1/query", {"query": query, "time": _seconds(at)})


def by_its_own_clock(name: str, query: str) -> Question:
    """The value of `query` at the time that the server takes for now."""
    return Question(name, "/api/v1/query", {"query": query})


def over_range(name: str, query: str, start: datetime, end: datetime, step: timedelta) -> Question:
    """The values of `query` from `start` to `end`, both included."""
    form = {"query": query, "start": _seconds(start), "end": _seconds(end), "step": f"{step.total_seconds():.3f}"}
    return Question(name, "/api/v1/query_range", form)


def answer_of(body: bytes) -> Answer:
    """Decode a successful answer; the samples stay raw. Raises `MalformedAnswer`."""
    try:
        success = _decode_success(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedAnswer(str(error)) from error
    remarks = (remark for remark in success.warnings + success.infos if not remark.startswith(_ABOUT_NAMES))
    return Answer(success.data.result, tuple(remarks))


def verdict_of(body: bytes) -> Verdict | None:
    """The API's own error; None when the body is not one."""
    try:
        envelope = _decode_envelope(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return Verdict(envelope.errorType, envelope.error) if envelope.status == "error" else None


def facts_of(body: bytes) -> dict[str, str]:
    """The facts of a status page; none when the body is something else."""
    try:
        return {name: str(fact) for name, fact in _decode_status(body).data.items()}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _seconds(at: datetime) -> str:
    return f"{at.timestamp():.3f}"

"""The protocol `externalscaler.ExternalScaler`: its calls, and the metadata of a trigger."""

from __future__ import annotations

import asyncio
import math
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from forecaster.domain.published import COUNTS, DEMAND_METRIC, KEDA_FORMULA, KEDA_PREFIX, METRICS
from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.publish.values import HOLD, NEUTRAL, PER_REPLICA, NotKnown, NotNamed, OfferedValue, current_count
from forecaster.serving.answers import MetricRequest, NotThere, answer, entry_of
from forecaster.serving.audit import Audit
from forecaster.serving.keda import externalscaler_pb2 as wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping

    from forecaster.publish.reader import PublishedTable, TableReader
    from forecaster.publish.values import Answer, WorkloadOffer

    Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
    Reference: TypeAlias = wire.ScaledObjectRef | None
    """The object of a trigger; None where the message is garbage, which gRPC itself would log with a traceback."""

SERVICE = "externalscaler.ExternalScaler"
FAULTY = "faulty-trigger"
"""Name of the metric of a trigger with a fault; the HPA of KEDA is not read as one of ours by it."""
REFUSED_BY = {
    NotKnown: grpc.StatusCode.UNAVAILABLE,
    NotNamed: grpc.StatusCode.INVALID_ARGUMENT,
    NotThere: grpc.StatusCode.NOT_FOUND,
}
INT64_END = 2.0**63
NAMES_SHOWN = 200
"""Characters of the names of a client that is denied."""
STREAM_CHECK_SECONDS = 1.0
"""Interval at which a stream checks for another table; it adds to the time until a workload is woken."""
CHECKS_PER_TABLE = 10
"""Looks after which a stream answers from the same table again, by its age and the present count. An answer takes some
100 µs, and there is a stream for each push trigger."""


class ScalerService:
    """Handlers of KEDA's calls. With `client_names`, only clients with a certificate for one of them are answered."""

    def __init__(self, scaler: TriggerValues, client_names: Collection[str] = (), audit: Audit | None = None) -> None:
        self._scaler = scaler
        self._client_names = frozenset(client_names)
        self._audit = audit or Audit()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers for a server."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "IsActive": grpc.unary_unary_rpc_method_handler(self.is_active, _reference, _bytes),
            "StreamIsActive": grpc.unary_stream_rpc_method_handler(self.stream_is_active, _reference, _bytes),
            "StreamMetricSpec": grpc.unary_stream_rpc_method_handler(self.stream_metric_spec, _reference, _bytes),
            "GetMetricSpec": grpc.unary_unary_rpc_method_handler(self.get_metric_spec, _reference, _bytes),
            "GetMetrics": grpc.unary_unary_rpc_method_handler(self.get_metrics, _reference_within, _bytes),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def get_metric_spec(self, ref: Reference, context: Context) -> wire.GetMetricSpecResponse:
        """The target: from the trigger alone, so that an HPA can be made before there is a table.

        A trigger with a fault has one, too: while a target is missing, KEDA has no fallback and answers no trigger.
        """
        trigger = await self._parsed(ref, context)
        name, target = (FAULTY, 1.0) if isinstance(trigger, NotNamed) else (trigger.metric_name, trigger.request.target)
        spec = wire.MetricSpec(metricName=name, targetSize=_whole(target), targetSizeFloat=target)
        return wire.GetMetricSpecResponse(metricSpecs=[spec])

    async def stream_metric_spec(self, ref: Reference, context: Context) -> AsyncIterator[wire.GetMetricSpecResponse]:
        """The target, once: KEDA (from 2.21) keeps it, and counts failures to `fallback` while this process is away."""
        yield await self.get_metric_spec(ref, context)
        await asyncio.Event().wait()

    async def get_metrics(self, ref: Reference, context: Context) -> wire.GetMetricsResponse:
        """The number."""
        trigger = await self._trigger(ref, context)
        value = (await self._known(trigger, context)).value
        metric = wire.MetricValue(metricName=trigger.metric_name, metricValue=_whole(value), metricValueFloat=value)
        return wire.GetMetricsResponse(metricValues=[metric])

    async def is_active(self, ref: Reference, context: Context) -> wire.IsActiveResponse:
        """Answer whether there is work, or soon will be."""
        trigger = await self._trigger(ref, context)
        return wire.IsActiveResponse(result=self._scaler.active(trigger, await self._known(trigger, context)))

    async def stream_is_active(self, ref: Reference, context: Context) -> AsyncIterator[wire.IsActiveResponse]:
        """Send the state at once and each change. While nothing is known nothing is sent, so the last state holds."""
        news = self._scaler.news(await self._trigger(ref, context))
        while True:
            active = next(news)
            if active is not None:
                yield wire.IsActiveResponse(result=active)
            await asyncio.sleep(STREAM_CHECK_SECONDS)

    async def _trigger(self, ref: Reference, context: Context) -> Trigger:
        trigger = await self._parsed(ref, context)
        if isinstance(trigger, NotNamed):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, trigger.message)
        return trigger

    async def _parsed(self, ref: Reference, context: Context) -> Trigger | NotNamed:
        await self._admit(context)
        return parse_trigger(ref.namespace, ref.name, ref.scalerMetadata) if ref else NotNamed("garbage, no trigger")

    async def _known(self, trigger: Trigger, context: Context) -> OfferedValue:
        value = self._scaler.value(trigger)
        if not isinstance(value, OfferedValue):
            await context.abort(REFUSED_BY[type(value)], value.message)
        return value

    async def _admit(self, context: Context) -> None:
        if not self._client_names:
            return
        names = {name.decode("utf-8", "replace") for name in context.auth_context().get("x509_common_name", ())}
        if names.isdisjoint(self._client_names):
            self._audit.note("scaler_call_denied", client_names=", ".join(sorted(names))[:NAMES_SHOWN])
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the client's certificate carries another name")


def _reference(message: bytes) -> Reference:
    try:
        return wire.ScaledObjectRef.FromString(message)
    except DecodeError:
        return None


def _reference_within(message: bytes) -> Reference:
    """A trigger has one metric, so its name in the request says nothing."""
    try:
        return wire.GetMetricsRequest.FromString(message).scaledObjectRef
    except DecodeError:
        return None


def _bytes(answer: Message) -> bytes:
    return answer.SerializeToString()


def _whole(number: float) -> int:
    """Return a whole number for clients that read no fractions; 0, which they refuse, where int64 does not have it."""
    return int(number) if number.is_integer() and number < INT64_END else 0


SHORT = {metric.removeprefix("forecaster_"): metric for metric in METRICS}
"""Triggers say `demand`, `floor` or `replicas`."""


class Trigger(NamedTuple):
    """One number, the load of one replica, and the threshold above which the workload counts as active."""

    request: MetricRequest
    activation: float
    scaled_object: str = ""

    @property
    def metric_name(self) -> str:
        """Name of the metric in KEDA's HPA, after KEDA's own index: this name identifies the HPA's target as ours."""
        return KEDA_PREFIX + (self.request.signal or self.request.metric.removeprefix("forecaster_"))


def parse_trigger(namespace: str, scaled_object: str, metadata: Mapping[str, str]) -> Trigger | NotNamed:
    """Return the trigger of a ScaledObject; it reads only workloads of its own namespace.

    Metadata: `workload` (default: the ScaledObject's own name), `kind`, `metric` (default: demand), `signal` and
    `target` (for demand, both needed), `activationTarget` (default: 0). Other metadata are KEDA's.
    """
    short, signal = metadata.get("metric", "demand"), metadata.get("signal", "")
    metric = SHORT.get(short, short)
    if metric not in METRICS:
        return NotNamed(f"trigger metric {short[:64]!r}: use {', '.join(SHORT)}")
    if metric == DEMAND_METRIC and not signal.isidentifier():
        return NotNamed(f"trigger signal {signal[:64]!r}: say which demand, e.g. cpu, memory or requests")
    if metric in COUNTS and signal:  # the HPA that KEDA makes would be read as one with a target of that demand
        return NotNamed(f"trigger signal {signal[:64]!r}: {short[:64]} is one number for all signals; leave it out")
    target = _amount(metadata.get("target", "1" if metric in COUNTS else ""))
    if target is None or target <= 0:
        return NotNamed("trigger target: say what one replica carries, e.g. 500m cores or 100 requests per second")
    activation = _amount(metadata.get("activationTarget", "0"))
    if activation is None:
        return NotNamed("trigger activationTarget: a quantity is expected, e.g. 0 or 50m")
    workload = metadata.get("workload") or scaled_object
    request = MetricRequest(namespace, workload, metadata.get("kind", ""), metric, signal, target)
    return Trigger(request, activation, scaled_object)


def _amount(text: str) -> float | None:
    """A Kubernetes quantity that is not negative."""
    try:
        value = parse_quantity(text).as_float()
    except QuantityError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


KEEPING = frozenset({NEUTRAL, HOLD})
"""Values that stand for a present count, not for demand."""
UNREAD_FOR = timedelta(minutes=5)
"""Time for which the HPA that KEDA makes of a new ScaledObject may be unread: a cycle or two, and its scrapes."""
MAX_UNREAD = 10_000
"""Triggers remembered whose HPA has not been read."""


class TriggerValues:
    """The trigger's number and whether there is anything to do."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._unread: dict[MetricRequest, datetime] = {}
        """Instants since when each trigger has been answered without its HPA, which KEDA makes."""

    def value(self, trigger: Trigger) -> Answer | NotThere:
        """Return the present number, or why there is none.

        A trigger that names another workload than its ScaledObject's scales by that load, and not to that count.
        """
        if (table := self._reader.table) is None:
            return NotKnown(self._reader.fault)
        value, name = self._value(table, trigger.request), trigger.request.name
        if isinstance(value, OfferedValue) and value.source in KEEPING and _scales_another(table, trigger):
            return NotKnown(f"no load of {name} is known, and {trigger.scaled_object} does not follow its count")
        return value

    def _value(self, table: PublishedTable, request: MetricRequest) -> Answer | NotThere:
        """Return the present number of a workload.

        Without knowledge the present count is kept: at zero that is 0, which wakes nothing and is no load that anything
        was said of; while the HPA of a new ScaledObject is not read yet it is the target times the count.
        """
        if request.signal and table.meta.measured and request.signal not in table.meta.measured:
            return NotNamed(f"trigger signal {request.signal[:64]!r}: use {', '.join(table.meta.measured)}")
        moment = self._reader.moment(table)
        value, offer = answer(table, request, moment), _offer(table, request)
        named = {(request.metric, request.signal), (KEDA_FORMULA, "")}
        readers = [each for each in offer.consumers if (each.metric, each.signal) in named] if offer else []
        if any(reader.type != PER_REPLICA for reader in readers):
            return NotNamed("trigger metricType: Value says nothing about one replica; use AverageValue")
        count = None if offer is None or isinstance(value, OfferedValue) else current_count(offer, moment)
        if offer is None or count is None:
            self._unread.pop(request, None)
            return value
        unread = isinstance(value, NotNamed) and not readers and self._is_unread(request, moment.now)
        asleep = isinstance(value, NotKnown) and count == 0 and offer.abstain != "fail"
        if unread or asleep:
            neutral = request.target * count
            return OfferedValue(request.metric, neutral, moment.published_at, NEUTRAL, request.signal, None)
        return value

    def active(self, trigger: Trigger, value: OfferedValue) -> bool:
        """Whether the workload has, or soon will have, more work than the trigger's activation.

        Demand is that at the lead time, so a workload at zero is woken before its load arrives. A count that is kept
        for want of knowledge stays active whatever the activation: ignorance scales nothing to zero. Nor does a signal
        that is not measured without pods, since nothing would wake the workload again.
        """
        if value.source in KEEPING:
            return value.value > 0.0
        return value.value > trigger.activation or not self._wakes(trigger)

    def news(self, trigger: Trigger) -> Iterator[bool | None]:
        """Yield whether the workload is active, check by check; None while nothing is known, or nothing has changed."""
        reported = table = None
        for check in count():
            value = None
            if table is not self._reader.table or check % CHECKS_PER_TABLE == 0:
                table, value = self._reader.table, self.value(trigger)
            active = self.active(trigger, value) if isinstance(value, OfferedValue) else reported
            yield None if active is reported else active
            reported = active

    def _wakes(self, trigger: Trigger) -> bool:
        """Whether a signal that the number follows from is measured without pods."""
        table = self._reader.table
        offer = None if table is None else _offer(table, trigger.request)
        if table is None or offer is None:
            return False
        signals = [trigger.request.signal] if trigger.request.signal else offer.signals
        return any(signal in table.meta.survives_zero for signal in signals)

    def _is_unread(self, request: MetricRequest, now: datetime) -> bool:
        """Whether an HPA that does not read this demand is younger than the time in which that may be so."""
        if len(self._unread) >= MAX_UNREAD and request not in self._unread:
            del self._unread[next(iter(self._unread))]
        return bool(request.signal) and now - self._unread.setdefault(request, now) <= UNREAD_FOR


def _scales_another(table: PublishedTable, trigger: Trigger) -> bool:
    """Whether a workload has the ScaledObject's name, or the HPA of the trigger's workload is made of another one."""
    (namespace, name, kind, *_), scaled_object = trigger.request, trigger.scaled_object
    entry = entry_of(table, namespace, name, kind)
    if scaled_object in {"", name} or isinstance(entry, (NotNamed, NotThere)):
        return False
    made = table.recommendation(entry).autoscaler in {"", f"keda-hpa-{scaled_object}"}
    return not made or bool(table.named(namespace, scaled_object))


def _offer(table: PublishedTable, request: MetricRequest) -> WorkloadOffer | None:
    entry = entry_of(table, request.namespace, request.name, request.kind)
    return None if isinstance(entry, (NotNamed, NotThere)) else table.published(entry)

"""The calls of the protocol `externalscaler.ExternalScaler`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import grpc
from google.protobuf.message import DecodeError

from forecaster.publish.values import NotKnown, NotNamed, OfferedValue
from forecaster.serving.answers import NotThere
from forecaster.serving.audit import Audit
from forecaster.serving.keda import externalscaler_pb2 as wire
from forecaster.serving.keda.trigger import Trigger, parse_trigger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from google.protobuf.message import Message

    from forecaster.serving.keda.trigger import TriggerValues

    Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
    Reference: TypeAlias = wire.ScaledObjectRef | None
    """The object of a trigger; None where the message is garbage, which gRPC itself would log with a traceback."""

SERVICE = "externalscaler.ExternalScaler"
NAMES_SHOWN = 200
"""Characters of the names of a client that is denied."""
STREAM_LOOK_SECONDS = 1.0
"""How often a stream looks whether its state has changed; it adds this much to the time until a workload is woken."""


class ScalerService:
    """Handlers of KEDA's calls. With `client_names`, only clients with a certificate for one of them are answered."""

    def __init__(self, scaler: TriggerValues, client_names: Collection[str] = (), audit: Audit | None = None) -> None:
        self._scaler = scaler
        self._client_names = frozenset(client_names)
        self._audit = audit or Audit()

    def handlers(self) -> grpc.GenericRpcHandler:
        """What a server is given."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "IsActive": grpc.unary_unary_rpc_method_handler(self.is_active, _reference, _bytes),
            "StreamIsActive": grpc.unary_stream_rpc_method_handler(self.stream_is_active, _reference, _bytes),
            "GetMetricSpec": grpc.unary_unary_rpc_method_handler(self.get_metric_spec, _reference, _bytes),
            "GetMetrics": grpc.unary_unary_rpc_method_handler(self.get_metrics, _reference_within, _bytes),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def get_metric_spec(self, asked: Reference, context: Context) -> wire.GetMetricSpecResponse:
        """The target: from the trigger alone, so that an HPA can be made before there is a table."""
        trigger = await self._trigger(asked, context)
        target = trigger.asked.target
        spec = wire.MetricSpec(metricName=trigger.metric_name, targetSize=_whole(target), targetSizeFloat=target)
        return wire.GetMetricSpecResponse(metricSpecs=[spec])

    async def get_metrics(self, asked: Reference, context: Context) -> wire.GetMetricsResponse:
        """The number."""
        trigger = await self._trigger(asked, context)
        value = (await self._known(trigger, context)).value
        metric = wire.MetricValue(metricName=trigger.metric_name, metricValue=_whole(value), metricValueFloat=value)
        return wire.GetMetricsResponse(metricValues=[metric])

    async def is_active(self, asked: Reference, context: Context) -> wire.IsActiveResponse:
        """Whether there is, or soon will be, something to do."""
        trigger = await self._trigger(asked, context)
        return wire.IsActiveResponse(result=self._scaler.active(trigger, await self._known(trigger, context)))

    async def stream_is_active(self, asked: Reference, context: Context) -> AsyncIterator[wire.IsActiveResponse]:
        """The state at once and each change. While nothing is known nothing is said, so the last word stands."""
        trigger = await self._trigger(asked, context)
        said: bool | None = None
        while True:
            value = self._scaler.value(trigger)
            active = self._scaler.active(trigger, value) if isinstance(value, OfferedValue) else None
            if active is not None and active is not said:
                said = active
                yield wire.IsActiveResponse(result=said)
            await asyncio.sleep(STREAM_LOOK_SECONDS)

    async def _trigger(self, asked: Reference, context: Context) -> Trigger:
        await self._admit(context)
        if asked is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this is no message of the protocol")
        trigger = parse_trigger(asked.namespace, asked.name, asked.scalerMetadata)
        if isinstance(trigger, NotNamed):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, trigger.message)
        return trigger

    async def _known(self, trigger: Trigger, context: Context) -> OfferedValue:
        found = self._scaler.value(trigger)
        if not isinstance(found, OfferedValue):
            await context.abort(_code(found), found.message)
        return found

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


def _code(why: NotKnown | NotNamed | NotThere) -> grpc.StatusCode:
    match why:
        case NotKnown():
            return grpc.StatusCode.UNAVAILABLE
        case NotNamed():
            return grpc.StatusCode.INVALID_ARGUMENT
        case NotThere():
            return grpc.StatusCode.NOT_FOUND
        case _:
            assert_never(why)


def _whole(number: float) -> int:
    """Return a whole number for clients that read no fractions. 0 is refused rather than rounded to."""
    return int(number) if number.is_integer() else 0

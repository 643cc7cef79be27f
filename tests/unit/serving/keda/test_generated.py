"""The generated code is that of the .proto beside it."""

from __future__ import annotations

import re
from pathlib import Path

from forecaster.serving.keda import externalscaler_pb2 as wire
from forecaster.serving.keda.service import SERVICE

PROTO = Path(wire.__file__).with_name("externalscaler.proto").read_text(encoding="utf-8")
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"^\s+(?:repeated )?\S.* (\w+) = (\d+);", re.MULTILINE)


def test_messages_have_the_fields_of_the_proto() -> None:
    written = {name: dict(FIELD.findall(body)) for name, body in MESSAGE.findall(PROTO)}
    generated = {
        name: {field.name: str(field.number) for field in message.fields}
        for name, message in wire.DESCRIPTOR.message_types_by_name.items()
    }
    assert generated == written


def test_the_service_has_its_calls() -> None:
    service = wire.DESCRIPTOR.services_by_name["ExternalScaler"]
    assert service.full_name == SERVICE
    assert [call.name for call in service.methods] == re.findall(r"rpc (\w+)", PROTO)

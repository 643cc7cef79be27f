from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from forecaster.publish.remote_write import SeriesSample, varint, write_request

if TYPE_CHECKING:
    from typing import Any


def published_messages() -> Any:
    """The protocol by the protobuf library itself."""
    file = descriptor_pb2.FileDescriptorProto(name="remote_write_test.proto", package="test", syntax="proto3")
    fields = descriptor_pb2.FieldDescriptorProto
    repeated, optional = fields.LABEL_REPEATED, fields.LABEL_OPTIONAL
    shapes = {
        "Label": [("name", 1, fields.TYPE_STRING, optional, ""), ("value", 2, fields.TYPE_STRING, optional, "")],
        "Sample": [("value", 1, fields.TYPE_DOUBLE, optional, ""), ("timestamp", 2, fields.TYPE_INT64, optional, "")],
        "TimeSeries": [
            ("labels", 1, fields.TYPE_MESSAGE, repeated, ".test.Label"),
            ("samples", 2, fields.TYPE_MESSAGE, repeated, ".test.Sample"),
        ],
        "WriteRequest": [("timeseries", 1, fields.TYPE_MESSAGE, repeated, ".test.TimeSeries")],
    }
    for name, members in shapes.items():
        message = file.message_type.add(name=name)
        for member, number, kind, label, type_name in members:
            message.field.add(name=member, number=number, type=kind, label=label, type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.WriteRequest"))


WRITE_REQUEST = published_messages()
NAMES = st.text(min_size=1, max_size=300)
SAMPLES = st.builds(
    SeriesSample,
    st.lists(st.tuples(NAMES, NAMES), max_size=5).map(tuple),
    st.floats(allow_nan=False),
    st.integers(0, 2**32).map(lambda second: datetime.fromtimestamp(second / 8, UTC)),
)


@given(st.lists(SAMPLES, max_size=4))
def test_the_library_reads_back_what_was_written(samples: list[SeriesSample]) -> None:
    read = WRITE_REQUEST.FromString(write_request(samples))
    decoded = [
        (
            tuple((label.name, label.value) for label in series.labels),
            series.samples[0].value,
            series.samples[0].timestamp,
        )
        for series in read.timeseries
    ]
    assert decoded == [(sample.labels, sample.value, round(sample.at.timestamp() * 1000)) for sample in samples]


@pytest.mark.parametrize(("number", "text"), [(0, "00"), (127, "7f"), (128, "8001"), (1_772_366_400_000, None)])
def test_numbers_take_seven_bits_a_byte(number: int, text: str | None) -> None:
    encoded = varint(number)
    assert text in {None, encoded.hex()}
    assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(encoded)) == number

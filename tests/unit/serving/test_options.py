from __future__ import annotations

import pytest

from forecaster.serving.options import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:8080", Address("localhost", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:8080", Address("::1", 8080)),
        (":8080", Address("0.0.0.0", 8080)),
    ],
)
def test_an_address_is_host_and_port(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "8080", "host:", "host:http", "host:65536", "host:-1", "host:²"])
def test_anything_else_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("text", ["[::1]:8080", "127.0.0.1:80"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.serving.secured import server_context
from forecaster.serving.server import same_trust
from tests.support.control_plane.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_certificate_is_the_same_trust_and_a_new_authority_is_not(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours", "ours")
    old, new = (Authority(tmp_path / name, name) for name in ("old", "new"))
    first, second = ours.issue("first", "localhost"), ours.issue("second", "localhost")
    before = server_context(*first, old.certificate.read_text())
    assert same_trust(before, server_context(*second, old.certificate.read_text()))
    assert not same_trust(before, server_context(*first, new.certificate.read_text()))
    assert not same_trust(before, server_context(*first))

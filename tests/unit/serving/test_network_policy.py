"""deploy/: which pods may open a connection at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
BASE = yaml.safe_load((DEPLOY / "base" / "network-policy.yaml").read_text(encoding="utf-8"))["spec"]["ingress"]
PATCHES = yaml.safe_load((DEPLOY / "components" / "keda" / "network-policy.yaml").read_text(encoding="utf-8"))
RULES = [*BASE, *(patch["value"] for patch in PATCHES)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "+".join(port["port"] for port in rule["ports"]))
def test_every_port_is_open_to_named_peers_only(rule: dict[str, Any]) -> None:
    peers = rule["from"]
    assert peers
    assert all(peer.get("namespaceSelector", {"matchLabels": {}}) != {} for peer in peers)
    assert all(peer.get("ipBlock", {"cidr": ""})["cidr"] not in {"0.0.0.0/0", "::/0"} for peer in peers)

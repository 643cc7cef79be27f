"""KubeVela's TraitDefinition, for clusters whose users have kubectl and not KubeVela's own command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from deploy.generate.kustomized import DEPLOY

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = DEPLOY / "kubevela" / "predictive-autoscaler.cue"
MADE = "# Made by `python -m deploy.generate` of predictive-autoscaler.cue; change it there."


def files() -> dict[Path, str]:
    """The object with the template in it."""
    definition = {
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "TraitDefinition",
        "metadata": {
            "name": "predictive-autoscaler",
            "namespace": "vela-system",
            "annotations": {"definition.oam.dev/description": stated("description")},
        },
        "spec": {
            "appliesToWorkloads": ["deployments.apps", "statefulsets.apps"],
            "podDisruptive": False,
            "schematic": {"cue": {"template": template()}},
        },
    }
    text = yaml.dump(definition, Dumper=InLines, sort_keys=False, width=10_000)
    return {DEPLOY / "kubevela" / "trait-definition.yaml": f"{MADE}\n{text}"}


def template() -> str:
    """Template that KubeVela fills in, with spaces: tabs make unreadable YAML."""
    _, _, inner = SOURCE.read_text(encoding="utf-8").partition("\ntemplate: {\n")
    lines = inner.removesuffix("}\n").splitlines()
    return "".join(f"{line.removeprefix(chr(9)).replace(chr(9), '  ')}\n" for line in lines)


def stated(name: str) -> str:
    """A text of the head of the definition."""
    line = next(text for text in SOURCE.read_text(encoding="utf-8").splitlines() if text.strip().startswith(f"{name}:"))
    return line.partition(":")[2].strip().strip('"')


class InLines(yaml.SafeDumper):
    """Texts of several lines as such."""


InLines.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)

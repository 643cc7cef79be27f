"""The Helm chart: the objects of base and components in templates, with the values that charts are expected to take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from deploy.generate.conditional import ABSENT, Template, Variants
from deploy.generate.kustomized import DEPLOY, built, components, key_of
from deploy.generate.stated import NAMESPACE, special
from deploy.generate.values import schema, values

if TYPE_CHECKING:
    from pathlib import Path

    from deploy.generate.kustomized import Document

CHART = DEPLOY / "chart"
MADE = "{{- /* Made by `python -m deploy.generate` from deploy/base and deploy/components; change it there. */ -}}"
PLACES = {
    # What differs by release, where base and components write it into texts.
    r"(?<![\w./-])forecaster/(?=forecaster)": f"{NAMESPACE}/",
    r"system:serviceaccount:forecaster:": f"system:serviceaccount:{NAMESPACE}:",
    r"forecaster\.forecaster\.svc": f"forecaster.{NAMESPACE}.svc",
    r"forecaster-settings-HASH": '{{ include "forecaster.settingsName" . }}',
}


def files() -> dict[Path, str]:
    """All that is made of the chart, with its text."""
    base = {key_of(one): one for one in built()}
    changed = {name: {key_of(one): one for one in built(name)} for name in components()}
    by_file: dict[str, list[Variants]] = {}
    for key in dict.fromkeys([*base, *(key for each in changed.values() for key in each)]):
        found = Variants.of(base.get(key, ABSENT), {name: each.get(key, ABSENT) for name, each in changed.items()})
        by_file.setdefault(file_of(key, found), []).append(found)
    templates = {name: "\n".join([MADE, *file_lines(objects), ""]) for name, objects in by_file.items()}
    templates |= settings_in_a_template(templates.pop("settings.yaml"))
    made = {CHART / "templates" / name: text for name, text in templates.items()}
    return made | {CHART / "values.yaml": values(), CHART / "values.schema.json": schema()}


def file_of(key: str, found: Variants) -> str:
    """The file of an object: that of the base that has it, or one for each component."""
    if key.startswith("ConfigMap ") and "/forecaster-settings-" in key:
        return "settings.yaml"
    if found.base is ABSENT:
        return f"{'-'.join(found.adding)}.yaml"
    return next(file.name for file in sorted((DEPLOY / "base").glob("*.yaml")) if key in keys_in(file))


def keys_in(file: Path) -> set[str]:
    """The objects in a file of the base."""
    documents = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    listed = [each for one in documents for each in (one["items"] if one.get("kind") == "List" else [one])]
    return {key_of(each) for each in listed if "metadata" in each}


def file_lines(objects: list[Variants]) -> list[str]:
    """The objects of a file; a condition that all of them have is written once."""
    if len({(*one.adding, "", *one.dropping) for one in objects}) > 1:
        return [line for one in objects for line in ("---", *Template.guarded(one, 0, object_lines))]
    kept = [one.where_present() for one in objects]
    return Template.guarded(objects[0], 0, lambda _: [line for one in kept for line in ("---", *object_lines(one))])


def object_lines(found: Variants) -> list[str]:
    """The lines of one object."""
    kind = (stated_kind(found.base),)
    return special(found, kind, 0, Template(special, text).mapping(found, kind, 0))


def stated_kind(document: Document) -> str:
    """By which values of the chart know an object: what is said of the service does not mean other Deployments."""
    kind, name = str(document["kind"]), document["metadata"]["name"]
    return f"{kind} {name}" if kind == "Deployment" and name != "forecaster" else kind


def settings_in_a_template(made: str) -> dict[str, str]:
    """The ConfigMap in two files: what is in it has a name of its own, so that its hash may be taken."""
    head, _, data = made.partition("\ndata:\n")
    lines = [
        '{{- define "forecaster.settings" -}}',
        *(line.removeprefix("  ") for line in data.splitlines()),
        "{{- end }}",
    ]
    config_map = f'{head}\ndata: {{{{- include "forecaster.settings" . | nindent 2 }}}}\n'
    return {"settings.yaml": config_map, "_settings.tpl": "\n".join([MADE, *lines, ""])}


def text(written: str) -> str:
    """A text of the manifests, with what differs by release. Braces of its own, as alerts have them, stay."""
    written = written.replace("{{", '{{ "{{" }}')
    for pattern, instead in PLACES.items():
        written = re.sub(pattern, instead, written)
    return written

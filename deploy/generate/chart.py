"""The Helm chart: the objects of base and components in templates, with the values that charts are expected to take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from deploy.generate.conditional import ABSENT, Template, Variants
from deploy.generate.kustomized import DEPLOY, built, components, key_of
from deploy.generate.stated import NAME_LABEL, NAMESPACE, special
from deploy.generate.values import readme, schema

if TYPE_CHECKING:
    from pathlib import Path

    from deploy.generate.kustomized import Document

CHART = DEPLOY / "chart"
MADE = "{{- /* Made by `python -m deploy.generate` from deploy/base and deploy/components; change it there. */ -}}"
WRITTEN = {"checks.yaml", "dashboards.yaml", "definitions.yaml"}
"""Templates that are written by hand."""
REFERRING = {"metadata", "roleRef", "subjects", "service", "configMap", "secret", "issuerRef", "credentials"}
"""Mappings whose `name` is that of an object."""
NAMES = {
    *("secretName", "serviceAccountName", "claimName", "priorityClassName", "policyName", "resourceNames"),
    "kubernetes.io/service-account.name",
}
"""Fields that are the name of an object."""
NAME = '{{ include "forecaster.fullname" $ }}'
ACCOUNT = '{{ include "forecaster.serviceAccountName" $ }}'
PLACES = {
    # What differs by release, where base and components write it into texts.
    r"FULLNAME": NAME,
    r"ACCOUNTNAME": ACCOUNT,
    r"(?<![\w./-])forecaster/forecaster": f"{NAMESPACE}/{NAME}",
    r"system:serviceaccount:forecaster:forecaster(?!-)": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
    r"system:serviceaccount:forecaster:forecaster-": f"system:serviceaccount:{NAMESPACE}:{NAME}-",
    r"forecaster\.forecaster\.svc": f"{NAME}.{NAMESPACE}.svc",
    r"(?<=--webhook=)forecaster": NAME,
    r"(?<=tls://)forecaster": NAME,
    r"^forecaster:latest$": '{{ include "forecaster.image" $ }}',
    r"forecaster-settings-HASH": '{{ include "forecaster.settingsName" $ }}',
}


def files() -> dict[Path, str]:
    """All generated files of the chart, with their text."""
    base = released(built())
    changed = {name: released(built(name)) for name in components()}
    by_file: dict[str, list[Variants]] = {}
    for key in dict.fromkeys([*base, *(key for each in changed.values() for key in each)]):
        variants = Variants.of(base.get(key, ABSENT), {name: each.get(key, ABSENT) for name, each in changed.items()})
        by_file.setdefault(file_of(key, variants), []).append(variants)
    templates = {name: "\n".join([MADE, *file_lines(objects), ""]) for name, objects in by_file.items()}
    templates |= settings_in_a_template(templates.pop("settings.yaml"))
    made = {CHART / "templates" / name: text for name, text in templates.items()}
    return made | {CHART / "values.schema.json": schema(), CHART / "README.md": readme()}


def released(documents: list[Document]) -> dict[str, Document]:
    """Objects by their keys, with labels and placeholders for names of a release; without files of the chart."""
    objects = {key_of(document): named(document) for document in documents if not is_a_file(document)}
    for document in objects.values():
        document["metadata"].setdefault("labels", {})
    return objects


def is_a_file(document: Document) -> bool:
    """Whether the chart has an object as a file of its own: definitions and dashboards."""
    return document["kind"] == "CustomResourceDefinition" or "grafana_dashboard" in document["metadata"].get(
        "labels", {}
    )


def named(value: Any, key: str = "", parent: str = "", kind: str = "") -> Any:
    """A value of an object with FULLNAME and ACCOUNTNAME in place of our names where it refers to objects."""
    if isinstance(value, dict):
        if value.get("key") == NAME_LABEL:
            return value | {"values": ['{{ include "forecaster.name" $ }}']}
        kind = str(value.get("kind", kind))
        return {field: named(inner, field, key, kind) for field, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, key, parent, kind) for inner in value]
    refers = key in NAMES or (key == "name" and parent in REFERRING)
    if not refers or not re.fullmatch(r"forecaster(-.*)?", str(value)) or "settings-HASH" in value:
        return value
    account = value == "forecaster" and (key == "serviceAccountName" or kind == "ServiceAccount")
    return "ACCOUNTNAME" if account else value.replace("forecaster", "FULLNAME", 1)


def file_of(key: str, variants: Variants) -> str:
    """The file of an object: that of the base that has it, or one for each component."""
    if key.startswith("ConfigMap ") and "/forecaster-settings-" in key:
        return "settings.yaml"
    if variants.base is ABSENT:
        return f"{'-'.join(variants.adding)}.yaml"
    return next(file.name for file in sorted((DEPLOY / "base").glob("*.yaml")) if key in keys_in(file))


def keys_in(file: Path) -> set[str]:
    """The objects in a file of the base."""
    documents = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    listed = [
        each for document in documents for each in (document["items"] if document.get("kind") == "List" else [document])
    ]
    return {key_of(each) for each in listed if "metadata" in each}


def file_lines(objects: list[Variants]) -> list[str]:
    """The objects of a file; a condition that all of them have is written once."""
    if len({(*variants.adding, "", *variants.dropping) for variants in objects}) > 1:
        return [line for variants in objects for line in ("---", *Template.guarded(variants, 0, object_lines))]
    unconditional = [variants.where_present() for variants in objects]
    return Template.guarded(
        objects[0], 0, lambda _: [line for variants in unconditional for line in ("---", *object_lines(variants))]
    )


def object_lines(variants: Variants) -> list[str]:
    """The lines of one object."""
    kind = (stated_kind(variants.base),)
    return special(variants, kind, 0, Template(special, text).mapping(variants, kind, 0))


def stated_kind(document: Document) -> str:
    """Kind by which values of the chart know an object; those of the service and its account mean no other objects."""
    kind, name = str(document["kind"]), document["metadata"]["name"]
    other = kind in {"CronJob", "Deployment", "ServiceAccount"} and name not in {"FULLNAME", "ACCOUNTNAME"}
    return f"{kind} {name}" if other else kind


def settings_in_a_template(made: str) -> dict[str, str]:
    """The ConfigMap in two files: its content is a template of its own, so that its hash may be taken."""
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
    if written.startswith("'{{ include"):
        return written.strip("'")
    written = written.replace("{{", '{{ "{{" }}')
    for pattern, instead in PLACES.items():
        written = re.sub(pattern, lambda _, put=instead: put, written)
    return written

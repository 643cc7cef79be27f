"""What values of the chart state otherwise than base and components, place by place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from deploy.generate.conditional import Variants

    Place = Callable[[Any, str, list[str]], list[str]]
    """Lines instead of those of a field or an item: of its base's value, the spaces before it, and its lines."""

NAMESPACE = "{{ .Release.Namespace }}"


def special(found: Variants, path: tuple[str, ...], indent: int, lines: list[str]) -> list[str]:
    """What a value of the chart may state otherwise, by the kind of the object and the last word of the path."""
    place = STATED.get((path[0], path[-1])) or STATED.get(("*", path[-1]))
    return place(found.base, " " * indent, lines) if place else lines


def otherwise(value: str, stated: str) -> Place:
    """Lines that a value replaces where it is given."""

    def place(_: Any, space: str, lines: list[str]) -> list[str]:
        given = f"{space}{{{{- with .Values.{value} }}}}"
        return [given, f"{space}{stated}", f"{space}{{{{- else }}}}", *lines, f"{space}{{{{- end }}}}"]

    return place


def own_namespace(base: Any, space: str, lines: list[str]) -> list[str]:
    """The namespace of the release in place of ours."""
    return [f"{space}namespace: {NAMESPACE}"] if base == "forecaster" else lines


def pod_spec(base: Any, space: str, lines: list[str]) -> list[str]:
    """Further fields of a pod."""
    if not isinstance(base, dict) or "containers" not in base:
        return lines
    return [*lines, f"{space}  {{{{- with .Values.pod }}}}{{{{ toYaml . | nindent {len(space) + 2} }}}}{{{{- end }}}}"]


def control_plane(base: Any, space: str, lines: list[str]) -> list[str]:
    """The addresses of the control plane."""
    if not isinstance(base, dict) or "ipBlock" not in base:
        return lines
    one = f"{space}- ipBlock: {{cidr: {{{{ . | quote }}}}}}"
    return [f"{space}{{{{- range .Values.networkPolicy.controlPlane }}}}", one, f"{space}{{{{- end }}}}"]


def other_namespace(base: Any, space: str, lines: list[str]) -> list[str]:
    """The namespace of a neighbour."""
    value = {"monitoring": "prometheusNamespace", "keda": "kedaNamespace"}.get(base)
    return [f"{space}kubernetes.io/metadata.name: {{{{ .Values.networkPolicy.{value} }}}}"] if value else lines


def storage_class(_: Any, space: str, lines: list[str]) -> list[str]:
    """The StorageClass of a claim."""
    given = f"{space}{{{{- with .Values.claim.storageClassName }}}}"
    return [*lines, given, f"{space}storageClassName: {{{{ . }}}}", f"{space}{{{{- end }}}}"]


def more_settings(_: Any, space: str, lines: list[str]) -> list[str]:
    """One file of settings more."""
    # Two spaces less: the data is a template of its own.
    file = [f"{space}  90-values.yaml: |", f"{space}    {{{{- toYaml . | nindent 2 }}}}"]
    return [*lines, f"{space}  {{{{- with .Values.settings }}}}", *file, f"{space}  {{{{- end }}}}"]


def namespace_object(_: Any, space: str, lines: list[str]) -> list[str]:
    """The namespace itself, where it is asked for."""
    return [f"{space}{{{{- if .Values.namespace.create }}}}", *lines, f"{space}{{{{- end }}}}"]


STATED: dict[tuple[str, str], Place] = {
    ("*", "namespace"): own_namespace,
    ("*", "image"): lambda _, space, __: [f'{space}image: {{{{ include "forecaster.image" . }}}}'],
    ("*", "spec"): pod_spec,
    ("ConfigMap", "data"): more_settings,
    ("Deployment", "replicas"): otherwise("replicas", "replicas: {{ . }}"),
    ("Deployment", "resources"): otherwise("resources", "resources: {{- toYaml . | nindent 12 }}"),
    ("Deployment forecaster-worker", "replicas"): otherwise("workers.replicas", "replicas: {{ . }}"),
    ("Deployment forecaster-worker", "resources"): otherwise(
        "workers.resources", "resources: {{- toYaml . | nindent 12 }}"
    ),
    ("Namespace", "Namespace"): namespace_object,
    ("Namespace", "name"): lambda _, space, __: [f"{space}name: {NAMESPACE}"],
    ("NetworkPolicy", "-"): control_plane,
    ("NetworkPolicy", "kubernetes.io/metadata.name"): other_namespace,
    ("PersistentVolumeClaim", "accessModes"): storage_class,
    ("PersistentVolumeClaim", "storage"): otherwise("claim.size", "storage: {{ . }}"),
}

"""What values of the chart state otherwise than base and components, place by place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from deploy.generate.conditional import Variants

    Place = Callable[[Any, str, list[str]], list[str]]
    """Lines instead of those of a field or an item: of its base's value, the spaces before it, and its lines."""

NAMESPACE = "{{ .Release.Namespace }}"
WORKER = "forecaster-worker"


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


def appended(value: str) -> Place:
    """Items of a value behind those of a list."""

    def place(base: Any, space: str, lines: list[str]) -> list[str]:
        if not isinstance(base, list):
            return lines
        more = f"{{{{- with .Values.{value} }}}}{{{{ toYaml . | nindent {len(space) + 2} }}}}{{{{- end }}}}"
        return [*lines, f"{space}  {more}"]

    return place


def container_image(*, env: bool) -> Place:
    """The image, and what the environment comes from; `env` where the object has no such list of its own."""

    def place(_: Any, space: str, __: list[str]) -> list[str]:
        return [
            f'{space}image: {{{{ include "forecaster.image" . }}}}',
            f"{space}{{{{- with .Values.image.pullPolicy }}}}",
            f"{space}imagePullPolicy: {{{{ . }}}}",
            f"{space}{{{{- end }}}}",
            *(given_list("env", space) if env else []),
            *given_list("envFrom", space),
        ]

    return place


def given_list(value: str, space: str) -> list[str]:
    """A field of its own, where its value is not empty."""
    given = f"{space}{{{{- with .Values.{value} }}}}"
    return [given, f"{space}{value}: {{{{- toYaml . | nindent {len(space) + 2} }}}}", f"{space}{{{{- end }}}}"]


def pod_meta(_: Any, space: str, lines: list[str]) -> list[str]:
    """Labels and annotations of the pods of a Deployment; those of the Deployment itself stand further left."""
    if len(space) <= len("  "):
        return lines
    labels = f"{space}  {{{{- with .Values.podLabels }}}}{{{{ toYaml . | nindent {len(space) + 2} }}}}{{{{- end }}}}"
    given = f"{space}{{{{- with .Values.podAnnotations }}}}"
    annotations = f"{space}annotations: {{{{- toYaml . | nindent {len(space) + 2} }}}}"
    return [*lines, labels, given, annotations, f"{space}{{{{- end }}}}"]


def account_meta(base: Any, space: str, lines: list[str]) -> list[str]:
    """Annotations of the service's own account, by which clouds know it."""
    if not isinstance(base, dict) or base.get("name") != "forecaster":
        return lines
    given = f"{space}  {{{{- with .Values.serviceAccount.annotations }}}}"
    annotations = f"{space}  annotations: {{{{- toYaml . | nindent {len(space) + 4} }}}}"
    return [*lines, given, annotations, f"{space}  {{{{- end }}}}"]


def job_name(base: Any, space: str, lines: list[str]) -> list[str]:
    """The name of a Job, another one for each revision: a Job cannot be changed, and runs after each upgrade."""
    return [f"{space}name: {base}-{{{{ .Release.Revision }}}}"] if base == "forecaster-certificates" else lines


def security_context(base: Any, space: str, lines: list[str]) -> list[str]:
    """The security context of a pod or of a container."""
    value = "podSecurityContext" if isinstance(base, dict) and "runAsNonRoot" in base else "containerSecurityContext"
    stated = f"securityContext: {{{{- toYaml . | nindent {len(space) + 2} }}}}"
    return otherwise(value, stated)(base, space, lines)


def object_where(value: str) -> Place:
    """An object that a value leaves out."""

    def place(_: Any, space: str, lines: list[str]) -> list[str]:
        return [f"{space}{{{{- if .Values.{value} }}}}", *lines, f"{space}{{{{- end }}}}"]

    return place


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


STATED: dict[tuple[str, str], Place] = {
    ("*", "namespace"): own_namespace,
    ("*", "env"): appended("env"),
    ("*", "image"): container_image(env=True),
    ("*", "securityContext"): security_context,
    ("*", "spec"): pod_spec,
    ("*", "volumeMounts"): appended("extraVolumeMounts"),
    ("*", "volumes"): appended("extraVolumes"),
    ("APIService", "APIService"): object_where("apiService.create"),
    ("ConfigMap", "data"): more_settings,
    ("Deployment", "image"): container_image(env=False),
    ("Deployment", "labels"): pod_meta,
    ("Deployment", "replicas"): otherwise("replicas", "replicas: {{ . }}"),
    ("Deployment", "resources"): otherwise("resources", "resources: {{- toYaml . | nindent 12 }}"),
    **{(f"Deployment {name}", "image"): container_image(env=False) for name in ("forecaster-scheduler", WORKER)},
    **{(f"Deployment {name}", "labels"): pod_meta for name in ("forecaster-scheduler", WORKER)},
    (f"Deployment {WORKER}", "replicas"): otherwise("workers.replicas", "replicas: {{ . }}"),
    (f"Deployment {WORKER}", "resources"): otherwise("workers.resources", "resources: {{- toYaml . | nindent 12 }}"),
    ("Job", "name"): job_name,
    ("Namespace", "Namespace"): object_where("namespace.create"),
    ("Namespace", "name"): lambda _, space, __: [f"{space}name: {NAMESPACE}"],
    ("NetworkPolicy", "NetworkPolicy"): object_where("networkPolicy.create"),
    ("NetworkPolicy", "-"): control_plane,
    ("NetworkPolicy", "kubernetes.io/metadata.name"): other_namespace,
    ("PersistentVolumeClaim", "accessModes"): storage_class,
    ("PersistentVolumeClaim", "storage"): otherwise("claim.size", "storage: {{ . }}"),
    ("ServiceAccount", "metadata"): account_meta,
}

"""Fields that values of the chart set otherwise than base and components, place by place (templates/_helpers.tpl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from deploy.generate.conditional import Variants

    Place = Callable[[Any, str, list[str]], list[str]]
    """Lines instead of those of a field or an item: of its base's value, the spaces before it, and its lines."""

NAME_LABEL = "app.kubernetes.io/name"
NAMESPACE = "{{ $.Release.Namespace }}"
OF_THE_BASE, OWN_GROUP = "v1beta1.external.metrics.k8s.io", "v1beta1.metrics.forecaster.dev"
"""Names of APIServices."""
OF_PODS = ("affinity", "priorityClassName", "topologySpreadConstraints")
"""Fields of a pod that components state, and values instead of them."""


def special(variants: Variants, path: tuple[str, ...], indent: int, lines: list[str]) -> list[str]:
    """Lines with the values of the chart at this place, by the kind of the object and the last word of the path."""
    place = STATED.get((path[0], path[-1])) or STATED.get(("*", path[-1]))
    return place(variants.base, " " * indent, lines) if place else lines


def included(name: str, space: str, given: str = "$") -> str:
    """A line that includes lines of a named template at this depth."""
    return f'{space}{{{{- include "forecaster.{name}" {given} | nindent {len(space)} }}}}'


def guarded(condition: str, space: str, lines: list[str]) -> list[str]:
    """Lines within a condition."""
    return [f"{space}{{{{- {condition} }}}}", *lines, f"{space}{{{{- end }}}}"]


def otherwise(value: str, stated: str) -> Place:
    """Lines that a value replaces where it is given."""

    def place(_: Any, space: str, lines: list[str]) -> list[str]:
        return guarded(f"with $.Values.{value}", space, [f"{space}{stated}", f"{space}{{{{- else }}}}", *lines])

    return place


def where(condition: str) -> Place:
    """Lines that are there under a condition."""
    return lambda _, space, lines: guarded(f"if {condition}", space, lines)


def behind(value: str) -> Place:
    """Place of a list that takes the items of a named template at its end."""
    return lambda base, space, lines: [*lines, included(value, f"{space}  ")] if isinstance(base, list) else lines


def own_namespace(base: Any, space: str, lines: list[str]) -> list[str]:
    """The namespace of the release in place of ours."""
    return [f"{space}namespace: {NAMESPACE}"] if base == "forecaster" else lines


def labels(base: Any, space: str, lines: list[str]) -> list[str]:
    """The standard labels of an object, or labels and annotations of the pods of a template."""
    if len(space) == len("  "):
        return [f"{space}labels:", included("labels", f"{space}  "), *(line for line in lines[1:] if "{{" not in line)]
    if NAME_LABEL not in base:
        return lines
    return [*lines, included("podLabels", f"{space}  "), included("podAnnotations", space)]


def selected(_: Any, space: str, __: list[str]) -> list[str]:
    """The labels by which pods of a release are found."""
    return [included("selectorLabels", space)]


def item(base: Any, space: str, lines: list[str]) -> list[str]:
    """Lines of a container with the values of the chart."""
    if not isinstance(base, dict) or "image" not in base:
        return lines
    inner = f"{space}  "
    more = [included("container", inner)]
    if "env" not in base:
        environment = f"{inner}env: {{{{- . | nindent {len(inner) + 2} }}}}"
        more += guarded('with include "forecaster.env" $', inner, [environment])
    return [*lines, *more]


def pod(*own: str) -> Place:
    """Place of a pod with the values of the chart, except for fields that are its `own`."""

    def place(base: Any, space: str, lines: list[str]) -> list[str]:
        if not isinstance(base, dict) or "containers" not in base:
            return lines
        given = " ".join(f'"{field}"' for field in own)
        return [*lines, included("pod", f"{space}  ", f"(list $ {given})" if own else "(list $)")]

    return place


def account_meta(base: Any, space: str, lines: list[str]) -> list[str]:
    """Annotations of the service's own account, by which clouds know it."""
    if not isinstance(base, dict) or base.get("name") != "ACCOUNTNAME":
        return lines
    annotations = f"{space}  annotations: {{{{- toYaml . | nindent {len(space) + 4} }}}}"
    return [*lines, *guarded("with $.Values.serviceAccount.annotations", f"{space}  ", [annotations])]


def registered(base: Any, space: str, lines: list[str]) -> list[str]:
    """An APIService: our own group collides with nobody's, the others are there where a value says so."""
    own = isinstance(base, dict) and base["metadata"]["name"] == OWN_GROUP
    return lines if own else where("$.Values.apiService.create")(base, space, lines)


def injected(base: Any, space: str, lines: list[str]) -> list[str]:
    """The authority by cert-manager, of an APIService that a component adds: kustomize does it to that of the base."""
    if not isinstance(base, dict) or base.get("name") == OF_THE_BASE:
        return lines
    source = f'{NAMESPACE}/{{{{ include "forecaster.fullname" $ }}}}'
    annotation = [f"{space}  annotations:", f"{space}    cert-manager.io/inject-ca-from: {source}"]
    return [*lines, *guarded("if $.Values.components.certManager", f"{space}  ", annotation)]


def job_name(base: Any, _: str, lines: list[str]) -> list[str]:
    """The name of a Job, another one for each revision: a Job cannot be changed, and runs after each upgrade."""
    return [f"{line}-{{{{ $.Release.Revision }}}}" for line in lines] if base == "FULLNAME-certificates" else lines


def control_plane(base: Any, space: str, lines: list[str]) -> list[str]:
    """The addresses of the control plane."""
    if not isinstance(base, dict) or "ipBlock" not in base:
        return lines
    block = f"{space}- ipBlock: {{cidr: {{{{ . | quote }}}}}}"
    return guarded("range $.Values.networkPolicy.controlPlane", space, [block])


def other_namespace(base: Any, space: str, lines: list[str]) -> list[str]:
    """The namespace of a neighbour."""
    value = {"monitoring": "prometheusNamespace", "keda": "kedaNamespace"}.get(base)
    return [f"{space}kubernetes.io/metadata.name: {{{{ $.Values.networkPolicy.{value} }}}}"] if value else lines


def storage_class(_: Any, space: str, lines: list[str]) -> list[str]:
    """The StorageClass of a claim."""
    stated = f"{space}storageClassName: {{{{ . }}}}"
    return [*lines, *guarded("with $.Values.claim.storageClassName", space, [stated])]


def scraped(_: Any, space: str, __: list[str]) -> list[str]:
    """Interval of Prometheus' scrapes, and relabelings."""
    relabelings = f"{space}relabelings: {{{{- toYaml . | nindent {len(space) + 2} }}}}"
    return [
        f"{space}interval: {{{{ $.Values.metrics.serviceMonitor.interval }}}}",
        *guarded("with $.Values.metrics.serviceMonitor.relabelings", space, [relabelings]),
    ]


def monitor_labels(base: Any, space: str, lines: list[str]) -> list[str]:
    """Labels by which an operator selects monitors and rules."""
    more = f"{space}  {{{{- toYaml . | nindent {len(space) + 2} }}}}"
    made = labels(base, space, lines)
    return made if made == lines else [*made, *guarded("with $.Values.metrics.labels", f"{space}  ", [more])]


def more_settings(_: Any, __: str, lines: list[str]) -> list[str]:
    """Settings that values state."""
    # Two spaces less: the data is a template of its own.
    return [*lines, '{{- include "forecaster.statedSettings" $ }}']


RESOURCES = "resources: {{- toYaml . | nindent 12 }}"
WORKER = "Deployment FULLNAME-worker"
STATED: dict[tuple[str, str], Place] = {
    ("*", "-"): item,
    ("*", NAME_LABEL): selected,
    ("*", "env"): behind("env"),
    ("*", "labels"): labels,
    ("*", "namespace"): own_namespace,
    ("*", "securityContext"): lambda *_: [],
    ("*", "spec"): pod("hostNetwork"),
    ("*", "volumeMounts"): behind("volumeMounts"),
    ("*", "volumes"): behind("volumes"),
    ("APIService", "APIService"): registered,
    ("APIService", "metadata"): injected,
    ("ConfigMap", "data"): more_settings,
    ("CronJob FULLNAME-report", "spec"): pod("hostNetwork", "affinity"),
    **{("Deployment", field): where(f"not $.Values.{field}") for field in OF_PODS},
    ("Deployment", "replicas"): otherwise("replicas", "replicas: {{ . }}"),
    ("Deployment", "resources"): otherwise("resources", RESOURCES),
    ("Deployment", "spec"): pod(),
    (WORKER, "replicas"): otherwise("workers.replicas", "replicas: {{ . }}"),
    (WORKER, "resources"): otherwise("workers.resources", RESOURCES),
    ("Job", "name"): job_name,
    ("Namespace", "Namespace"): where("$.Values.namespace.create"),
    ("Namespace", "name"): lambda _, space, __: [f"{space}name: {NAMESPACE}"],
    ("NetworkPolicy", "NetworkPolicy"): where("$.Values.networkPolicy.enabled"),
    ("NetworkPolicy", "-"): control_plane,
    ("NetworkPolicy", "kubernetes.io/metadata.name"): other_namespace,
    ("PersistentVolumeClaim", "accessModes"): storage_class,
    ("PersistentVolumeClaim", "storage"): otherwise("claim.size", "storage: {{ . }}"),
    ("PrometheusRule", "labels"): monitor_labels,
    ("ServiceAccount", "ServiceAccount"): where("$.Values.serviceAccount.create"),
    ("ServiceAccount", "metadata"): account_meta,
    ("ServiceMonitor", "interval"): scraped,
    ("ServiceMonitor", "labels"): monitor_labels,
}

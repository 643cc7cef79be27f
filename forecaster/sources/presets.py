"""Queries by preset: request rates of meshes, ingress controllers and instrumentations; requests at model servers.

Every preset of request rates says how it finds the workload, because that decides when it can be trusted:

- by pod: the series carries the pod that served the request; its owner is the workload. Exact.
- by workload: the mesh names the workload; its kind is taken from the cluster's inventory. Exact as long as no two
  kinds share a name.
- by service: the ingress controller names the Service (or route), and no series that every cluster has leads from a
  Service to its pods. The preset takes the workload that bears the same name; others need a query of their own.

CPU says little of a server of large models that works on a GPU, and requests per second little where one takes a second
and the next a minute. Requests in flight, running and waiting, are demand that no queue hides: a full pod lets more of
it wait. What a pod ran while more waited is what it can carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

BY_POD = "by pod: the owner of the pod that served the request"
BY_WORKLOAD = "by workload: the name that the mesh states"
BY_SERVICE = "by service: the workload that bears the Service's name"
BY_ROUTE = "by route: the workload that bears the HTTPRoute's name"


@dataclass(frozen=True, slots=True)
class Preset:
    """One known origin of request rates: the series that reveal it, and the query."""

    evidence: str
    mapping: str
    query: str


def _by_pod(selector: str) -> str:
    return f"""\
sum by (namespace, workload_kind, workload) (
  sum by (namespace, pod) (max without ($copies) (rate({selector}[$window])))
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


def _by_name(named_rate: str) -> str:
    """`named_rate` carries `namespace` and `workload`; the kind comes from the inventory."""
    return f"""\
sum by (namespace, workload_kind, workload) (
  sum by (namespace, workload) (
    {named_rate}
  )
  * on (namespace, workload) group_left (workload_kind)
  $workloads
)"""


def _renamed(inner: str, *steps: tuple[str, str, str]) -> str:
    """`inner` with labels derived by `(new label, old label, pattern)`; a pattern that does not match does nothing."""
    for new, old, pattern in steps:
        inner = f'label_replace({inner}, "{new}", "$1", "{old}", "{pattern}")'
    return inner


def _proxied(labels: str, metric: str, *steps: tuple[str, str, str], narrow: str) -> str:
    inner = f"sum by ({labels}) (max without ($copies) (rate({metric}{{{narrow}$labels}}[$window])))"
    return _by_name(_renamed(inner, *steps))


_ISTIO_WORKLOAD = ("workload", "destination_workload", "(.+)")
_ISTIO_NAMESPACE = ("namespace", "destination_workload_namespace", "(.+)")
_HUBBLE_WORKLOAD = ("workload", "destination_workload", "(.+)")
_HUBBLE_NAMESPACE = ("namespace", "destination_namespace", "(.+)")

PRESETS: dict[str, Preset] = {
    "contour": Preset(
        'envoy_cluster_upstream_rq_total{envoy_cluster_name=~"[^_/]+_[^_/]+_[^_/]+.*"$labels}',
        BY_SERVICE,
        _proxied(
            "envoy_cluster_name",
            "envoy_cluster_upstream_rq_total",
            ("namespace", "envoy_cluster_name", "([^_/]+)_[^_/]+_[^_/]+.*"),
            ("workload", "envoy_cluster_name", "[^_/]+_([^_/]+)_[^_/]+.*"),
            narrow='envoy_cluster_name=~"($namespaces)_[^_/]+_[^_/]+.*"',
        ),
    ),
    "envoy-gateway": Preset(
        'envoy_cluster_upstream_rq_total{envoy_cluster_name=~"httproute/.+"$labels}',
        BY_ROUTE,
        _proxied(
            "envoy_cluster_name",
            "envoy_cluster_upstream_rq_total",
            ("namespace", "envoy_cluster_name", "httproute/([^/]+)/.*"),
            ("workload", "envoy_cluster_name", "httproute/[^/]+/([^/]+)/.*"),
            narrow='envoy_cluster_name=~"httproute/($namespaces)/.*"',
        ),
    ),
    "haproxy-ingress": Preset(
        'haproxy_backend_http_requests_total{proxy!=""$labels}',
        BY_SERVICE,
        _proxied(
            "proxy",
            "haproxy_backend_http_requests_total",
            ("namespace", "proxy", "([^_]+)_[^_]+_[^_]+"),
            ("workload", "proxy", "[^_]+_([^_]+)_[^_]+"),
            narrow='proxy=~"($namespaces)_[^_]+_[^_]+"',
        ),
    ),
    "http-requests-total": Preset(
        'http_requests_total{pod!=""$labels}',
        BY_POD,
        _by_pod('http_requests_total{pod!="",namespace=~"$namespaces"$labels}'),
    ),
    "hubble": Preset(
        'hubble_http_requests_total{destination_workload!=""$labels}',
        BY_WORKLOAD,
        _proxied(
            "destination_namespace, destination_workload",
            "hubble_http_requests_total",
            _HUBBLE_NAMESPACE,
            _HUBBLE_WORKLOAD,
            narrow='reporter="server",destination_workload!="",destination_namespace=~"$namespaces"',
        ),
    ),
    "istio": Preset(
        'istio_requests_total{reporter!=""$labels}',
        BY_WORKLOAD,
        _proxied(
            "destination_workload_namespace, destination_workload",
            "istio_requests_total",
            _ISTIO_NAMESPACE,
            _ISTIO_WORKLOAD,
            narrow='reporter=~"destination|waypoint",destination_workload_namespace=~"$namespaces"',
        ),
    ),
    "kong": Preset(
        'kong_http_requests_total{service!=""$labels}',
        BY_SERVICE,
        _proxied(
            "service",
            "kong_http_requests_total",
            ("namespace", "service", "([^.]+)[.].+"),
            ("workload", "service", "[^.]+[.]([^.]+)[.].+"),
            narrow='service=~"($namespaces)[.].+"',
        ),
    ),
    "linkerd": Preset(
        'request_total{direction="inbound",pod!=""$labels}',
        BY_POD,
        _by_pod('request_total{direction="inbound",pod!="",namespace=~"$namespaces"$labels}'),
    ),
    "nginx-ingress": Preset(
        'nginx_ingress_controller_requests{ingress!=""$labels}',
        BY_SERVICE,
        # Without `honor_labels` the ingress's own labels arrive with the prefix `exported_`.
        _proxied(
            "namespace, service, exported_namespace, exported_service",
            "nginx_ingress_controller_requests",
            ("workload", "service", "(.+)"),
            ("workload", "exported_service", "(.+)"),
            ("namespace", "exported_namespace", "(.+)"),
            narrow='ingress!=""',
        ),
    ),
    "opentelemetry": Preset(
        'http_server_request_duration_seconds_count{pod!=""$labels}',
        BY_POD,
        _by_pod('http_server_request_duration_seconds_count{pod!="",namespace=~"$namespaces"$labels}'),
    ),
    "recorded": Preset(
        '{__name__=~"forecaster:workload_requests:rate.+"$labels}',
        "by recording rule: what deploy/rules makes of one of the other presets",
        'forecaster:workload_requests:rate$window{namespace=~"$namespaces"$labels}',
    ),
    # Traefik joins namespace and Service with a sign that both may contain, so the name cannot be taken apart. It can
    # be put together from the other side: the workload's namespace and name, joined the same way.
    "traefik": Preset(
        'traefik_service_requests_total{service!=""$labels}',
        BY_SERVICE,
        """\
sum by (namespace, workload_kind, workload) (
  sum by (joined) (
    label_replace(
      sum by (service) (max without ($copies) (
        rate(traefik_service_requests_total{service=~".+-[^-@]+@kubernetes.*"$labels}[$window])
      )),
      "joined", "$1", "service", "(.+)-[^-@]+@kubernetes.*"
    )
  )
  * on (joined) group_right ()
  topk by (joined) (1, label_join($workloads, "joined", "-", "namespace", "workload"))
)""",
    ),
}
"""Presets in alphabetical order; detection prefers the order of `PREFERRED`."""

PREFERRED = (
    "recorded",
    "istio",
    "linkerd",
    "hubble",
    "nginx-ingress",
    "traefik",
    "envoy-gateway",
    "contour",
    "haproxy-ingress",
    "kong",
    "opentelemetry",
    "http-requests-total",
)
"""Meshes see every request of a workload, ingress controllers only those from outside, so meshes come first; a
recorded rate is a choice that was made already."""


def detection() -> str:
    """A query that answers with one series for every preset that has data, its name in the label `preset`."""
    return "\nor\n".join(
        f'label_replace(group({preset.evidence}), "preset", "{name}", "", "")' for name, preset in PRESETS.items()
    )


SERVER_UNIT: Final = "requests in flight"


class ModelServer(NamedTuple):
    """PromQL with one series a pod, labels namespace and pod, of what runs in it and of what waits for it."""

    running: str
    waiting: str

    @property
    def query(self) -> str:
        """Running and waiting of each workload."""
        return _of_workloads("sum", f"{self.running}\n    + on (namespace, pod)\n    {self.waiting}")

    @property
    def capacity(self) -> str:
        """What the pods of each workload usually ran in the minutes of a day in which more waited."""
        full = f"{self.running}\n      and on (namespace, pod) {self.waiting} > 0"
        return _of_workloads("avg", f"quantile_over_time(0.5, (\n      {full}\n    )[1d:1m])")


def _of_workloads(aggregated: str, of_pods: str) -> str:
    return f"""\
{aggregated} by (namespace, workload_kind, workload) (
  (
    {of_pods}
  )
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


def _gauge(name: str) -> str:
    """Return the query of a gauge by pod: engines and models summed, copies of a series counted once."""
    return f'sum by (namespace, pod) (max without ($copies) ({name}{{namespace=~"$namespaces"$labels}}))'


def _busy(microseconds: str) -> str:
    """The mean number of requests in a stage: the seconds that they spent there in each second (Little's law)."""
    rate = f'rate({microseconds}{{namespace=~"$namespaces"$labels}}[$window])'
    return f"sum by (namespace, pod) (max without ($copies) ({rate})) / 1e6"


MODEL_SERVERS: Final = {
    "vllm": ModelServer(_gauge("vllm:num_requests_running"), _gauge("vllm:num_requests_waiting")),
    "sglang": ModelServer(_gauge("sglang:num_running_reqs"), _gauge("sglang:num_queue_reqs")),
    "tgi": ModelServer(_gauge("tgi_batch_current_size"), _gauge("tgi_queue_size")),
    "triton": ModelServer(
        f"({_busy('nv_inference_request_duration_us')} - {_busy('nv_inference_queue_duration_us')})",
        _busy("nv_inference_queue_duration_us"),
    ),
}
"""Queries by preset. A gauge is of the moment of its scrape; Triton's counters are means of $window."""

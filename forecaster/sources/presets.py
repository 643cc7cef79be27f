"""Queries by preset: request rates of meshes, ingress controllers and instrumentations; requests at model servers.

How a preset of request rates finds the workload decides when it can be trusted:

- `_by_pod`: the series carries the pod that served the request; its owner is the workload. Exact.
- `_by_name` of hubble and istio: the mesh names the workload; its kind is taken from the cluster's inventory. Exact as
  long as no two kinds share a name.
- `_by_name` of the others: the ingress controller names the Service (or route), and no series that every cluster has
  leads from a Service to its pods. The preset takes the workload that bears the same name; others need their own query.
- `recorded`: by the recording rule that deploy/rules makes of one of the others.

CPU says little of a server of large models that works on a GPU, and requests per second little where one takes a second
and the next a minute. Requests in flight, running and waiting, are demand that no queue hides: a full pod lets more of
it wait. What a pod ran while more waited is what it can carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from forecaster.sources.promql import by_owner


@dataclass(frozen=True, slots=True)
class Preset:
    """One known origin of request rates: the series that reveal it, and the query."""

    evidence: str
    query: str


def _by_pod(metric: str, among: str = "") -> Preset:
    """Request rates that carry the pod which served them; `among` narrows the series."""
    series = f'{metric}{{{among}pod!="",namespace=~"$namespaces"$labels}}'
    of_pods = f"sum by (namespace, pod) (max without ($copies) (rate({series}[$window])))"
    return Preset(f'{metric}{{{among}pod!=""$labels}}', by_owner("sum", of_pods))


def _by_name(metric: str, narrow: str, *steps: tuple[str, str, str], evidence: str, labels: str = "") -> Preset:
    """Request rates from series, narrowed by `narrow`, that name the workload; its kind comes from the inventory.

    Each step is a label, the label that it is derived from, and the pattern; one that does not match does nothing.
    """
    by_labels = labels or ", ".join(dict.fromkeys(old for _, old, _ in steps))
    rate = f"sum by ({by_labels}) (max without ($copies) (rate({metric}{{{narrow}$labels}}[$window])))"
    for new, old, pattern in steps:
        rate = f'label_replace({rate}, "{new}", "$1", "{old}", "{pattern}")'
    query = f"""\
sum by (namespace, workload_kind, workload) (
  sum by (namespace, workload) (
    {rate}
  )
  * on (namespace, workload) group_left (workload_kind)
  $workloads
)"""
    return Preset(f"{metric}{{{evidence}$labels}}", query)


PRESETS: dict[str, Preset] = {
    "contour": _by_name(
        "envoy_cluster_upstream_rq_total",
        'envoy_cluster_name=~"($namespaces)_[^_/]+_[^_/]+.*"',
        ("namespace", "envoy_cluster_name", "([^_/]+)_[^_/]+_[^_/]+.*"),
        ("workload", "envoy_cluster_name", "[^_/]+_([^_/]+)_[^_/]+.*"),
        evidence='envoy_cluster_name=~"[^_/]+_[^_/]+_[^_/]+.*"',
    ),
    "envoy-gateway": _by_name(
        "envoy_cluster_upstream_rq_total",
        'envoy_cluster_name=~"httproute/($namespaces)/.*"',
        ("namespace", "envoy_cluster_name", "httproute/([^/]+)/.*"),
        ("workload", "envoy_cluster_name", "httproute/[^/]+/([^/]+)/.*"),
        evidence='envoy_cluster_name=~"httproute/.+"',
    ),
    "haproxy-ingress": _by_name(
        "haproxy_backend_http_requests_total",
        'proxy=~"($namespaces)_[^_]+_[^_]+"',
        ("namespace", "proxy", "([^_]+)_[^_]+_[^_]+"),
        ("workload", "proxy", "[^_]+_([^_]+)_[^_]+"),
        evidence='proxy!=""',
    ),
    "http-requests-total": _by_pod("http_requests_total"),
    "hubble": _by_name(
        "hubble_http_requests_total",
        'reporter="server",destination_workload!="",destination_namespace=~"$namespaces"',
        ("namespace", "destination_namespace", "(.+)"),
        ("workload", "destination_workload", "(.+)"),
        evidence='destination_workload!=""',
    ),
    "istio": _by_name(
        "istio_requests_total",
        'reporter=~"destination|waypoint",destination_workload_namespace=~"$namespaces"',
        ("namespace", "destination_workload_namespace", "(.+)"),
        ("workload", "destination_workload", "(.+)"),
        evidence='reporter!=""',
    ),
    "kong": _by_name(
        "kong_http_requests_total",
        'service=~"($namespaces)[.].+"',
        ("namespace", "service", "([^.]+)[.].+"),
        ("workload", "service", "[^.]+[.]([^.]+)[.].+"),
        evidence='service!=""',
    ),
    "linkerd": _by_pod("request_total", 'direction="inbound",'),
    # Without `honor_labels` the ingress's own labels arrive with the prefix `exported_`.
    "nginx-ingress": _by_name(
        "nginx_ingress_controller_requests",
        'ingress!=""',
        ("scraped", "namespace", "(.+)"),  # without it, controllers of two namespaces would have equal labels
        ("workload", "service", "(.+)"),
        ("workload", "exported_service", "(.+)"),
        ("namespace", "exported_namespace", "(.+)"),
        evidence='ingress!=""',
        labels="namespace, service, exported_namespace, exported_service",
    ),
    "opentelemetry": _by_pod("http_server_request_duration_seconds_count"),
    "recorded": Preset(
        '{__name__=~"forecaster:workload_requests:rate.+"$labels}',
        'forecaster:workload_requests:rate$window{namespace=~"$namespaces"$labels}',
    ),
    # Traefik joins namespace and Service with a sign that both may contain, so the name cannot be taken apart. It can
    # be put together from the other side: the workload's namespace and name, joined the same way.
    "traefik": Preset(
        'traefik_service_requests_total{service!=""$labels}',
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


DETECTION = "\nor\n".join(
    f'label_replace(group({preset.evidence}), "preset", "{name}", "", "")' for name, preset in PRESETS.items()
)
"""A query that answers with one series for every preset that has data, its name in the label `preset`."""


SERVER_UNIT: Final = "requests in flight"


class ModelServer(NamedTuple):
    """PromQL for running and for waiting requests, one series per pod with labels namespace and pod."""

    running: str
    waiting: str

    @property
    def query(self) -> str:
        """Running and waiting of each workload."""
        return by_owner("sum", f"(\n    {self.running}\n    + on (namespace, pod)\n    {self.waiting}\n  )")

    @property
    def capacity(self) -> str:
        """Query for the usual usage of each workload's pods in the minutes of a day with a longer queue."""
        full = f"{self.running}\n      and on (namespace, pod) {self.waiting} > 0"
        return by_owner("avg", f"(\n    quantile_over_time(0.5, (\n      {full}\n    )[1d:1m])\n  )")


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

"""Requests in flight at servers of large models: what a pod runs, what waits for it, and how much of it a pod carries.

CPU says little of a server that works on a GPU, and requests per second little where one takes a second and the next
a minute. What runs and waits is demand that no queue hides: a pod that is full lets more of it wait, not less of it be
seen. What a pod ran while more waited is what it can carry.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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

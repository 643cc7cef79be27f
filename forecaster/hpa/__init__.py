"""The HorizontalPodAutoscaler of Kubernetes 1.36, exact in every corner, as pure functions.

Values in, values out: no clock, no network, no cluster. The rules and their section numbers are in docs/hpa.md.

What other rooms call, from small to whole:

- one metric's proposal, from totals (milli-units, whole percent):
  `proposals.from_utilization`, `proposals.from_average`, `proposals.from_total`, `proposals.per_pod_value`
- several metrics: `combine.combine(proposals, current)`
- from recommendation to desired count: `limits.limit(recommendation, current, bounds, behavior, history, now, ...)`
- after a write: `history.record_scale_event(events, change, now, policies)`
"""

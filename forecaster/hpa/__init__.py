"""The HorizontalPodAutoscaler of Kubernetes 1.36, exact in every corner, as pure scalar functions.

Values in, values out: no clock, no network, no cluster. docs/hpa.md has the rules under the section numbers that the
docstrings name. Values are integer milli-units, targets too, utilization is whole percent, tolerances are ratios.
`forecaster.horizontal` has the same rules on arrays and is tested against this package.

What other rooms call, from small to whole:

- one metric, from totals: `proposals.from_utilization`, `from_average`, `from_total`, `per_pod_value`
  -> `MetricProposal` (or `Unmeasured`); `proposals.Tolerance`, `spec.tolerance_of(behavior, controller)`
- one metric, from pods: `evaluate.evaluate(metric, answer, context)`
- several metrics: `proposals.combine(proposals, current)` -> `CombinedProposal` or `NoRecommendation`
- limits: `limits.limit(recommendation, current, bounds, behavior, history, now, ...)` -> `Limited`
- after a write: `behavior.record_scale_event(events, change, now, policies)`
- a whole pass: `reconcile.reconcile(spec, observation, state, now, controller)` -> `(desired, conditions, state)`;
  several: `reconcile.carry_on`
- a manifest: `manifest.read_manifest(mapping)` -> `HpaSpec` or `RefusedManifest` with every fault;
  `manifest.spec_from_wire(spec)` for one that an API server has already taken
- what to make of it: `explain.explain`, `explain.aims`, `cautions.cautions`, `observation.observe_totals`
"""

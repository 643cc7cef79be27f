"""The dashboards for Grafana, as a table of panels.

    python -m forecaster.report.grafana.dashboards deploy/components/monitoring/dashboards

Each replica tells the same of the fleet, so gauges are `max by (…)` over replicas and counters are sums. What a service
does not have (floors, a secure port) is 0 and not an empty panel.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from forecaster.report.grafana.document import Board, GrafanaPanel, Variable, document

OF = 'namespace="$namespace",workload="$workload"'
BY = "by (namespace, kind, workload)"
ALL_LEVEL = " Needs `serving.workload_metrics: all`."
RANGE = "[$__rate_interval]"


def _ratio(part: str, whole: str, by: str) -> str:
    """Increases of two counters of forecasts over the last day, as a ratio."""
    return (
        f"sum by ({by}) (increase(forecaster_forecast_{part}_total[1d]))"
        f" / (sum by ({by}) (increase(forecaster_forecast_{whole}_total[1d])) > 0)"
    )


def _stat(title: str, unit: str, expr: str, about: str) -> GrafanaPanel:
    return GrafanaPanel(title, unit, {title.lower(): expr}, about, kind="stat", width=4)


def _written(counter: str) -> str:
    """Writes of one actuator; 0 where it is not enabled."""
    return f"sum by (change, outcome) (increase({counter}[10m])) or vector(0)"


FLEET = Board(
    "forecaster-fleet",
    "forecaster / fleet",
    (
        _stat("Workloads", "short", "max(sum by (instance) (forecaster_workloads))", "Of which something was decided."),
        _stat(
            "Held",
            "percentunit",
            '(sum(forecaster_workloads{verdict="hold",reason!~"frozen|no-replicas"}) or vector(0))'
            " / sum(forecaster_workloads)",
            "Share without a number, for want of facts; those that sleep or are frozen do not count.",
        ),
        _stat(
            "Forecasts that act",
            "percentunit",
            '(sum(forecaster_gates{standing="acting"}) or vector(0)) / (sum(forecaster_gates) > 0)',
            "Share of gates that are open: these forecasts proved better than measured demand alone.",
        ),
        _stat("At their maximum", "short", "max(forecaster_at_maximum_workloads)", "Ask for more pods than allowed."),
        _stat(
            "Incomplete",
            "short",
            "max(sum by (instance) (forecaster_incomplete_workloads)) or vector(0)",
            "Latest value is part of a sum; their counts do not go down.",
        ),
        _stat("Age of the table", "s", "max(forecaster_serving_table_age_seconds)", "Below three cycles."),
        GrafanaPanel(
            "Workloads by reason",
            "short",
            {"{{verdict}}: {{reason}}": "max by (verdict, reason) (forecaster_workloads)"},
            "Of the last decision about replicas. The page on operations says what to do about each.",
            stacked=True,
        ),
        GrafanaPanel(
            "Pods",
            "short",
            {
                "ready": f"sum(max {BY} (forecaster_workload_replicas))",
                "recommended": f"sum(max {BY} (forecaster_workload_recommended_replicas))",
            },
            "Asked for now, and recommended, over all workloads that are not held.",
        ),
        GrafanaPanel(
            "CPU",
            "suffix: cores",
            {
                "measured": f'sum(max {BY} (forecaster_workload_measured{{signal="cpu"}}))',
                "forecast": f'sum(max {BY} (forecaster_forecast_peak{{signal="cpu"}}))',
            },
            "Demand now, and the sum of the forecast peaks, each at the quantile of its policy.",
        ),
        GrafanaPanel(
            "Forecasts by standing",
            "short",
            {"{{standing}}, {{forecaster}}": "max by (standing, forecaster) (forecaster_gates)"},
            "observe: not proved yet. seasonal: yesterday's load stands in for the model.",
            stacked=True,
        ),
        GrafanaPanel(
            "Largest changes recommended",
            "suffix: pods",
            {
                "pods": f"sort_desc(topk(20, abs(max {BY} (forecaster_workload_recommended_replicas)"
                f" - max {BY} (forecaster_workload_replicas))))",
            },
            "Difference to what is asked for now, larger or smaller.",
            kind="table",
        ),
        GrafanaPanel(
            "Effects on the cluster",
            "short",
            {
                "floors, {{state}}": "max by (state) (forecaster_floors) or vector(0)",
                "counts, {{state}}": "max by (state) (forecaster_scales) or vector(0)",
                "sizes, {{state}}": "max by (state) (forecaster_resizes) or vector(0)",
            },
            "Floors of HPAs, counts without one, sizes of running pods: ours, or refused and why.",
        ),
    ),
)

WORKLOAD_BOARD = Board(
    "forecaster-workload",
    "forecaster / workload",
    (
        GrafanaPanel(
            "Demand",
            "short",
            {
                "measured": f'max(forecaster_workload_measured{{{OF},signal="$signal"}})',
                "forecast at {{quantile}}": f'max by (quantile) (forecaster_forecast_peak{{{OF},signal="$signal"}})',
            },
            "Measured, and the forecast peak of the window that begins a lead time from then; cores, bytes or requests"
            " per second. More than one quantile with `serving.workload_metrics: all`.",
            width=24,
        ),
        GrafanaPanel(
            "Replicas",
            "short",
            {
                "ready": f"max(forecaster_workload_replicas{{{OF}}})",
                "recommended": f"max(forecaster_workload_recommended_replicas{{{OF}}})",
                "floor": f"max(forecaster_floor{{{OF}}}) or max(forecaster_replicas{{{OF}}})",
            },
            "Recommended is absent while holding; the floor is there where the policy publishes.",
        ),
        GrafanaPanel(
            "Forecast by measured demand",
            "percentunit",
            {
                "forecast / measured": f'max(forecaster_forecast_peak{{{OF},signal="$signal"}})'
                f' / max(forecaster_workload_measured{{{OF},signal="$signal"}})',
            },
            "Above 100 %: a rise is expected within lead time and window.",
        ),
        GrafanaPanel(
            "Coverage",
            "percentunit",
            {
                "forecast": f'max(forecaster_forecast_coverage_ratio{{{OF},signal="$signal"}})',
                "aim": f'max(forecaster_forecast_coverage_aim_ratio{{{OF},signal="$signal"}})',
            },
            "Peaks at or below the forecast quantile, and how many should be." + ALL_LEVEL,
        ),
        GrafanaPanel(
            "Error of the median",
            "percentunit",
            {"error": f'max(forecaster_forecast_error_ratio{{{OF},signal="$signal"}})'},
            "Absolute error by the measured peak; a day old counts half." + ALL_LEVEL,
        ),
        GrafanaPanel(
            "Verdict",
            "short",
            {"{{verdict}}: {{reason}}": f"max by (verdict, reason) (forecaster_workload_verdict{{{OF}}})"},
            "Where its line ends the verdict has changed." + ALL_LEVEL,
        ),
        GrafanaPanel(
            "Lead time and age of the sample",
            "s",
            {
                "lead time": f"max(forecaster_forecast_lead_seconds{{{OF}}})",
                "sample": f'time() - max(forecaster_workload_sampled_timestamp_seconds{{{OF},signal="$signal"}})',
            },
            "From asking for a pod until it serves; and how old what is measured is.",
        ),
    ),
    (
        Variable("namespace", "label_values(forecaster_workload_replicas, namespace)"),
        Variable("workload", 'label_values(forecaster_workload_replicas{namespace="$namespace"}, workload)'),
        Variable("signal", f"label_values(forecaster_workload_measured{{{OF}}}, signal)"),
    ),
)

ACCURACY = Board(
    "forecaster-accuracy",
    "forecaster / accuracy",
    (
        GrafanaPanel(
            "Coverage of a day",
            "percentunit",
            {
                "{{signal}}, {{model}}": _ratio("covered", "scored", "signal, model"),
                "aim, {{signal}}": _ratio("quantiles", "scored", "signal"),
            },
            "Peaks at or below the forecast quantile. Below the aim pods come late, above it they idle.",
        ),
        GrafanaPanel(
            "Error of the median of a day",
            "percentunit",
            {"{{signal}}, {{model}}": _ratio("absolute_error", "actual", "signal, model")},
            "Sum of absolute errors by the sum of measured peaks.",
        ),
        GrafanaPanel(
            "Loss of the quantile of a day",
            "percentunit",
            {"{{signal}}, {{model}}": _ratio("pinball_loss", "actual", "signal, model")},
            "Pinball loss by the sum of measured peaks: what the forecast quantile is judged by.",
        ),
        GrafanaPanel(
            "Forecasts scored",
            "cps",
            {"{{signal}}, {{model}}": f"sum by (signal, model) (rate(forecaster_forecast_scored_total{RANGE}))"},
            "A tenth of the forecasts whose window is over.",
        ),
        GrafanaPanel(
            "Whose forecast decides",
            "short",
            {"{{forecaster}}": "max by (forecaster) (sum by (instance, forecaster) (forecaster_gates))"},
            "model, or seasonal: yesterday's load at the same time was better.",
            stacked=True,
        ),
        GrafanaPanel(
            "Promotions and demotions in an hour",
            "short",
            {"moved": "max(increase(forecaster_gates_moved_total[1h]))"},
            "Many in a day: load that changes its nature.",
        ),
        GrafanaPanel(
            "Demand that was not free to show",
            "percentunit",
            {"{{signal}}: {{reason}}": "max by (signal, reason) (forecaster_masked_ratio) or vector(0)"},
            "Share of the last week that models do not learn from as it was measured.",
        ),
        GrafanaPanel(
            "Workloads with history",
            "short",
            {"{{signal}}": "max by (signal) (forecaster_series)"},
            "What models are fitted on.",
        ),
    ),
)

HEALTH = Board(
    "forecaster-health",
    "forecaster / health",
    (
        _stat("Table", "s", "max(forecaster_serving_table_age_seconds)", "Age; below three cycles."),
        _stat("Cycles failed in a day", "short", 'sum(increase(forecaster_cycles_total{outcome="failed"}[1d]))', "0."),
        _stat("Starts skipped in a day", "short", "sum(increase(forecaster_late_starts_total[1d]))", "0."),
        _stat("Leader", "short", "sum(forecaster_leader)", "1 in mode floor; 0 where nothing may be written."),
        _stat(
            "Certificate ends in",
            "s",
            "min(forecaster_certificate_end_timestamp_seconds) - time() or vector(0)",
            "Renewed thirty days before its end; 0 without a secure port.",
        ),
        _stat(
            "HPAs misread", "short", "max(forecaster_misread_hpas) or vector(0)", "They get errors instead of a number."
        ),
        GrafanaPanel(
            "A cycle by step",
            "s",
            {
                "{{step}}": f"sum by (step) (rate(forecaster_cycle_step_seconds_sum{RANGE}))"
                f" / on () group_left () sum(rate(forecaster_cycles_total{RANGE}))",
            },
            "Mean time of each step. Together below half of `cycle.interval`.",
            stacked=True,
        ),
        GrafanaPanel(
            "Cycles by outcome in ten minutes",
            "short",
            {"{{outcome}}": "sum by (outcome) (increase(forecaster_cycles_total[10m]))"},
            "incomplete: something could not be had or kept; the log names it.",
        ),
        GrafanaPanel(
            "Age of the newest sample",
            "s",
            {"{{signal}}": "max by (signal) (forecaster_newest_sample_age_seconds)"},
            "Below two minutes: a source that is up.",
        ),
        GrafanaPanel(
            "Incomplete workloads",
            "short",
            {"{{signal}}: {{cause}}": "max by (signal, cause) (forecaster_incomplete_workloads) or vector(0)"},
            "Latest value is part of a sum only.",
        ),
        GrafanaPanel(
            "Live facts",
            "s",
            {"{{collection}}": "max by (collection) (forecaster_live_age_seconds) or vector(0)"},
            "Age of what is known of each collection of the API server; 0 without them.",
        ),
        GrafanaPanel(
            "Back-fill",
            "short",
            {"{{signal}}": "max by (signal) (forecaster_history_missing_points)"},
            "Instants of history still to be asked for.",
        ),
        GrafanaPanel(
            "Failures in ten minutes",
            "short",
            {
                "lines in reports": "sum(increase(forecaster_failures_total[10m]))",
                "store: {{part}}": "sum by (part) (increase(forecaster_store_failures_total[10m])) or vector(0)",
                "late: {{step}}": "sum by (step) (increase(forecaster_late_steps_total[10m])) or vector(0)",
                "tables not written": 'sum(increase(forecaster_serving_table_writes_total{outcome="failed"}[10m]))',
            },
            "Each line is in the log with its remedy.",
        ),
        GrafanaPanel(
            "Requests",
            "reqps",
            {
                "{{handler}} {{code}}": f"sum by (handler, code) (rate(forecaster_serving_requests_total{RANGE}))",
                "denied {{status}}": f"sum by (status) (rate(forecaster_serving_denials_total{RANGE})) or vector(0)",
            },
            "Answers of the serving process by handler and status.",
        ),
        GrafanaPanel(
            "Memory of the computing process",
            "bytes",
            {
                "{{instance}}": "max by (instance) (process_resident_memory_bytes)"
                " and on (instance) forecaster_build_info",
            },
            "Against the limit of its pod.",
        ),
        GrafanaPanel(
            "CPU of the computing process",
            "suffix: cores",
            {
                "{{instance}}": f"max by (instance) (rate(process_cpu_seconds_total{RANGE})"
                " and on (instance) forecaster_build_info)",
            },
            "One core at most in most steps.",
        ),
        GrafanaPanel(
            "Writes to the cluster in ten minutes",
            "short",
            {
                "floor {{change}}: {{outcome}}": _written("forecaster_floor_writes_total"),
                "count {{change}}: {{outcome}}": _written("forecaster_scale_writes_total"),
                "size {{change}}: {{outcome}}": _written("forecaster_resize_writes_total"),
                "status: {{outcome}}": "sum by (outcome) (increase(forecaster_status_writes_total[10m])) or vector(0)",
            },
            "Writes of minReplicas, of counts, to running pods and of statuses; none fails where all is well.",
        ),
        GrafanaPanel(
            "Settings",
            "short",
            {
                "in force": "min(forecaster_settings_loaded) or vector(1)",
                "waiting for a restart": "max(forecaster_settings_waiting) or vector(0)",
            },
            "In force: 0 while edited files are refused.",
        ),
        GrafanaPanel(
            "Versions",
            "short",
            {"{{version}}": "count by (version) (forecaster_build_info)"},
            "Two of them on one `state.directory` do not understand each other.",
        ),
    ),
)
BOARDS = (FLEET, WORKLOAD_BOARD, ACCURACY, HEALTH)


def text_of(board: Board) -> str:
    """A dashboard as the file that ships."""
    return json.dumps(document(board), indent=1) + "\n"


def write(folder: Path) -> None:
    """Write every dashboard into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        (folder / f"{board.uid}.json").write_text(text_of(board), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

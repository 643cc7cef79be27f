"""The command line. A command is imported when it is used: `run` imports no other, and `--help` imports none."""

from __future__ import annotations

import re
import textwrap
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperArgument, TyperGroup
from typer.main import get_command, get_group

from forecaster import __version__

EXIT_CODES = """\b
Exit codes:
  0    done
  1    refused, not found or not well: a message says what
       (doctor: a check is BAD; tune: no proposal; replay: nothing to replay;
       nodes: none are known; diff: there is a difference)
  2    the command line itself is wrong
  130  Ctrl-C: what was known until then is printed
  141  the reader of standard output has gone
  143  SIGTERM"""

EXAMPLE_WIDTH = 66
"""Width of an example: help is indented, and a continued line ends with a backslash."""
OPTION = re.compile(r"(?<=\s)(--?[a-z-]+) (?![-|])")
"""An option, which stays in one line with its value."""
AT = "--prometheus http://prometheus:9090"


class Command(NamedTuple):
    """A command: its function, or its module where it has commands of its own, its line in the list, and examples."""

    place: str
    """`MODULE:FUNCTION` or `MODULE` in `forecaster.cli`."""
    summary: str
    examples: tuple[str, ...] = ()

    def loaded(self, name: str) -> Any:
        """Return the command in the form of the parser, with its imports."""
        module, _, function = self.place.partition(":")
        imported = import_module(f"forecaster.cli.{module}")
        if not function:
            group = get_group(imported.app)
            group.name = name
            for each in group.commands.values():
                each.short_help = (each.help or "").partition(".")[0].partition(":")[0]
                name_values(each)
            return group
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(name, short_help=self.summary, epilog=examples(self.examples))(getattr(imported, function))
        return name_values(get_command(alone))


def name_values(command: Any) -> Any:
    """Show the value of an option in help as N or TEXT, and an argument by its own name alone."""
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005  typer names it
        elif parameter.metavar is None and not parameter.type_descriptor.is_choice:
            numeric = parameter.type_descriptor.is_ranged or parameter.bare_type() in {"int", "float"}
            parameter.metavar = "N" if numeric else "TEXT"
    return command


COMMANDS = {
    "once": Command(
        "once:once",
        "Recommendations for all workloads, once.",
        (f"once {AT}", f"once {AT} -n shop -o wide", f"once {AT} shop/checkout -o json"),
    ),
    "top": Command("once:top", "Recommendations live, what changes most first.", (f"top {AT}", f"top {AT} -n shop")),
    "run": Command(
        "run:run", "The service: a cycle a minute, until SIGTERM.", (f"run {AT}", "run --config /etc/forecaster")
    ),
    "explain": Command(
        "explain:explain",
        "How the numbers of a workload came about.",
        (f"explain {AT} shop/checkout", f"explain {AT} shop/checkout --set quantile=0.95 --set lead_time=5m"),
    ),
    "why-not": Command(
        "decisions:why_not", "Why a workload did not scale, and what came.", (f"why-not {AT} shop/checkout --at 09:02",)
    ),
    "history": Command(
        "decisions:history",
        "Changes of recorded decisions.",
        ("history shop/checkout --config settings.yaml --length 7d",),
    ),
    "diff": Command(
        "decisions:diff",
        "What two policies decide differently.",
        (f"diff settings.yaml tuned.yaml {AT}",),
    ),
    "doctor": Command(
        "doctor:doctor", "What is missing, and what to do about it.", (f"doctor {AT}", "doctor --config settings.yaml")
    ),
    "demo": Command(
        "demo:demo",
        "The main job on recorded load, no cluster needed.",
        ("demo", "demo --serve", "demo --once -o json"),
    ),
    "recommend": Command(
        "recommend:recommend",
        "Requests and limits, their risk and cost.",
        (
            f"recommend {AT} 'shop/*' --price-core-hour 0.03 --price-gib-hour 0.004",
            f"recommend {AT} --severity WARNING -o patches | kubectl diff -f -",
        ),
    ),
    "nodes": Command(
        "nodes:nodes",
        "Node pools ahead: nodes needed, and when.",
        (f"nodes {AT}", f"nodes {AT} --quantile 0.9 -o json"),
    ),
    "replay": Command(
        "replay:replay",
        "What would have happened, beside the plain HPA.",
        ("replay", f"replay 'shop/*' --from-prometheus {AT} --length 14d --html replay.html"),
    ),
    "tune": Command(
        "tune:tune",
        "Which policy would have been better.",
        (f"tune 'shop/*' --from-prometheus {AT} --length 14d >overrides.yaml",),
    ),
    "export": Command(
        "export:export",
        "A file with histories and decisions, to replay elsewhere.",
        (f"export week.zip 'shop/*' {AT} --length 7d", "replay --export week.zip"),
    ),
    "report": Command(
        "report:report",
        "What a week was worth; where we were worse comes first.",
        (f"report --week --from-prometheus {AT} --html report.html", "report --from 2021-10-18T00:00:00Z --length 2d"),
    ),
    "models": Command("catalogue:models", "The forecasting models there are.", ("models", "models adaptive")),
    "schema": Command(
        "catalogue:schema", "JSON Schemas of what -o json prints.", ("schema", "schema once >once.schema.json")
    ),
    "settings": Command(
        "settings:settings",
        "All settings, one explained, a file checked.",
        ("settings policy.horizontal.lead_time", "settings --config settings.yaml --origin", "settings --schema"),
    ),
    "init": Command(
        "init:init",
        "Objects for workloads that an HPA, KEDA or VPA scales.",
        ("init -n shop", "init --folder autoscalers", "init --definitions | kubectl apply -f -"),
    ),
    "release": Command(
        "run:release",
        "Put back what owners stated, and remove every mark.",
        ("release", "release 'shop/*' --dry-run --context production", "release --now", "release --expired"),
    ),
    "resume": Command(
        "run:resume",
        "Take the brake off for an hour.",
        ("resume", "resume --context production --config settings.yaml"),
    ),
    "certificates": Command(
        "certificates:certificates",
        "Make or renew our certificate for the metrics API.",
        ("certificates --service monitoring/forecaster --secret monitoring/forecaster-tls",),
    ),
    "backtest": Command("backtest", "What a policy would have done over measured history."),
    "hpa": Command("hpa", "What a HorizontalPodAutoscaler would do, offline and exact."),
    "shards": Command("shards", "Workers and scheduler of a fleet in shards."),
    "store": Command("store", "The database of decisions and scores."),
}


def examples(lines: tuple[str, ...]) -> str:
    """Return the end of a command's help; a long line continues in the next, as in a shell."""
    return "\n".join(["\b", "Examples:", *(_example(f"forecaster {line}") for line in lines)])


def _example(line: str) -> str:
    joined = OPTION.sub("\\1\N{NO-BREAK SPACE}", line)
    pieces = textwrap.wrap(joined, EXAMPLE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "  " + " \\\n      ".join(pieces).replace("\N{NO-BREAK SPACE}", " ")


class CommandsOnUse(UserDict[str, Any]):
    """Commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        """Return the command."""
        command = self.data[name]
        if isinstance(command, Command):
            command = self.data[name] = command.loaded(name)
        return command


class CommandLine(TyperGroup):
    """The commands in the order of `COMMANDS`, listed without importing them."""

    def __init__(self, **given: Any) -> None:
        """Take over what typer made of the application."""
        super().__init__(**given)
        self.commands = CommandsOnUse(COMMANDS)  # a mapping is all that is asked for

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a value that typer refuses by pydantic is refused in the words of the settings."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if faults := getattr(error.__cause__, "errors", None):
                from forecaster.domain.settings import allowed

                error.message = "; ".join(allowed(fault) for fault in faults())
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


app = typer.Typer(
    name="forecaster",
    cls=CommandLine,
    help="Predictive autoscaler for Kubernetes: what each workload will need, how many replicas and which requests "
    "that takes, and why. Reads Prometheus; writes nothing to a cluster unless a policy says so.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:  # noqa: FBT001  typer's callback
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", "-v", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Say the version, or run a command."""

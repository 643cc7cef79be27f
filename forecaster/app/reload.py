"""Settings that change while the service runs: policies are replaced, learned state stays, all else needs a restart.

The files are those of a mounted ConfigMap, which a kubelet replaces as a whole some time after an edit. They are read
before each cycle, in its thread: a cycle has one policy from its beginning to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from forecaster.config.files import faults_of
from forecaster.config.settings import Settings
from forecaster.errors import ConfigError

if TYPE_CHECKING:
    from forecaster.app.telemetry import Log

TAKEN_OVER = ("policy", "overrides")
"""Sections that are taken over at once."""
SHARDS = "sharding.shards"
"""Setting that is applied on reload only where the fleet is sharded."""
CHANGES_SHOWN = 10
"""Paths of settings that are written out."""


@dataclass(frozen=True, slots=True)
class SettingsFiles:
    """The files that settings were read from, and how they are read again, with environment and command line."""

    fingerprint: Callable[[], bytes]
    """Returns a hash of their contents. Raises ConfigError."""
    read: Callable[[], Settings]
    """Raises ConfigError."""
    origins: Callable[[], Mapping[str, str]]
    """Returns the origin of each setting that is stated, by path. Raises ConfigError."""


@dataclass(slots=True)
class SettingsReload:
    """Checks whether the files have changed. `running` are the settings at the start of the service."""

    files: SettingsFiles
    running: Settings
    log: Log
    on_change: Callable[[Settings], None] = lambda _settings: None
    """Called with the settings that are in force from now on."""
    fingerprint: bytes | None = None
    refused: str = ""
    """Reason why the present files are refused; the last accepted settings stay in force."""
    waiting: tuple[str, ...] = ()
    """Settings that have changed and need a restart, by their paths."""
    shards: int = field(init=False)
    """Number of shards from now on, for a fleet that is divided."""
    on_refusal: Callable[[str], None] = lambda _: None
    """Called once with each reason why files are refused, and with the empty text once they are good again."""

    def __post_init__(self) -> None:
        self.shards = self.running.sharding.shards

    def look(self) -> None:
        """Apply changed files. Raises nothing."""
        before, self.fingerprint = self.fingerprint, None  # files that cannot be read are news as soon as they can be
        try:
            self.fingerprint = self.files.fingerprint()
            if self.fingerprint != before:
                self._take_over(self.files.read())
        except ConfigError as error:
            previous, self.refused = self.refused, str(error)
            if self.refused != previous:
                self.log.error("settings_refused", error=self.refused)  # noqa: TRY400  its text says all
                self.on_refusal(self.refused)

    def failures(self) -> list[str]:
        """Return the line for every cycle's report while running settings differ from the files."""
        lines = [f"settings: refused, the earlier ones stay in force: {self.refused}"] if self.refused else []
        if self.waiting:
            lines.append(f"settings: {', '.join(self.waiting[:CHANGES_SHOWN])} changed; restart the service for it")
        return lines

    def _take_over(self, fresh: Settings) -> None:
        """Apply the policies of these settings, if they fit the settings at the start of the service."""
        mixed = checked(self.running, fresh)
        if self.refused:
            self.on_refusal("")
        self.refused = ""
        policies = self.running.policies
        if (mixed.policy, mixed.policies.overrides) != (policies.defaults, policies.overrides):
            policies.restate(mixed.policy, mixed.policies.overrides)
            self.log.info("settings_taken_over", overrides=len(mixed.overrides))
            self.on_change(mixed)
        self.shards = fresh.sharding.shards
        at_once = {*TAKEN_OVER, *([SHARDS] if self.running.sharding.enabled else [])}
        changed = changed_paths(self.running, fresh)
        waiting = tuple(path for path in changed if not at_once & {path, path.partition(".")[0]})
        if waiting and waiting != self.waiting:
            self.log.warning("settings_need_restart", settings=waiting[:CHANGES_SHOWN])
        self.waiting = waiting


def checked(running: Settings, fresh: Settings) -> Settings:
    """The running settings with the policies of others.

    Raises:
        ConfigError: these need other settings, which need a restart.
    """
    sections = {name: getattr(running, name) for name in Settings.model_fields}
    sections |= {name: getattr(fresh, name) for name in TAKEN_OVER}
    try:
        return Settings.model_validate(sections)
    except ValidationError as error:
        raise ConfigError("settings, without those that need a restart", faults_of(error)) from error


def changed_paths(before: BaseModel, after: BaseModel, within: str = "") -> Iterator[str]:
    """Yield the paths of the settings in which they differ, as `serving.port`."""
    for name in type(before).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if isinstance(old, BaseModel) and type(old) is type(new):
            yield from changed_paths(old, new, f"{within}{name}.")
        else:
            yield within + name

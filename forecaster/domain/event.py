"""A known event: a sale, a match, a maintenance window; once, or whenever a schedule says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from forecaster.domain.cron import parse_cron
from forecaster.domain.duration import Duration


class Event(BaseModel):
    """While it lasts, `replicas` is the floor; with `freeze` the count stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="What it is called in explanations.")
    replicas: Annotated[int, Field(ge=1)] | None = Field(None, description="Floor for the whole duration.")
    freeze: bool = Field(default=False, description="Change nothing while it lasts: a maintenance window.")
    start: AwareDatetime | None = Field(None, description="Beginning of a single event, with its offset from UTC.")
    end: AwareDatetime | None = Field(None, description="Its end.")
    cron: str | None = Field(None, description="Beginnings of a repeated event, five fields, in `time_zone`.")
    duration: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=31))] | None = Field(
        None, description="How long each of them lasts, up to 31d."
    )
    time_zone: str = Field("UTC", description="Name of the IANA data base, e.g. Europe/Berlin.")

    @field_validator("cron")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is not None:
            parse_cron(value)
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("no such time zone; use a name like Europe/Berlin") from None
        return value

    @model_validator(mode="after")
    def _complete(self) -> Event:
        if (self.start is None) != (self.end is None) or (self.cron is None) != (self.duration is None):
            raise ValueError("start goes with end, and cron with duration")
        if (self.start is None) == (self.cron is None):
            raise ValueError("an event has either start and end, or cron and duration")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("end must be after start")
        if (self.replicas is None) == (not self.freeze):
            raise ValueError("an event has either replicas or freeze: true")
        return self

    def lasts_until(self, now: datetime, ahead: timedelta = timedelta(0)) -> datetime | None:
        """When the event ends that is on at `now` or begins within `ahead`; None when there is none."""
        if self.start is not None and self.end is not None:
            return self.end.astimezone(UTC) if self.start - ahead <= now < self.end else None
        if self.cron is None or self.duration is None:
            raise TypeError(f"event {self.name} has no time")
        began = parse_cron(self.cron).latest(now + ahead, self.duration + ahead, ZoneInfo(self.time_zone))
        if began is None or now >= began + self.duration:
            return None
        return began + self.duration

"""What outlives the process, and where."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator

from forecaster.domain.settings import Duration, Section


class StateSettings(Section):
    """What outlives the process."""

    directory: Path = Field(
        Path("forecaster-state"), description="Directory of snapshot, table and the SQLite database."
    )
    database: str = Field(
        "",
        description="SQLAlchemy address of the ledger, e.g. postgresql+psycopg://...; default: SQLite in `directory`.",
    )
    database_file: Path | None = Field(
        None, description="File that holds the address of the database, for addresses with a password."
    )
    key_file: Path | None = Field(
        None,
        description="File with the key that signs state, `openssl rand -hex 32`; keys of before in further lines are "
        "accepted, too.",
    )
    secret: str = Field(
        "",
        pattern=r"^([a-z0-9.-]+/[a-z0-9.-]+)?$",
        description="NAMESPACE/NAME of a Secret with a checkpoint of what was learned, and the key if no `key_file` is "
        "stated. Without both the key lies in `directory`.",
    )
    keep: Duration = Field(timedelta(days=30), gt=timedelta(0), description="How long decisions and scores are kept.")

    @field_validator("database_file")
    @classmethod
    def _one_address(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("database"):
            raise ValueError("use either database or database_file")
        return value

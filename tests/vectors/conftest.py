"""Folders of vectors: which ones to run, and how many of their cases agree.

Each kind of vectors has an option naming a folder, the repository's copy, and the folder beside the repository;
see `SETS`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BESIDE = HERE.parents[2] / "shared" / "vectors"
ENDINGS = (".json", ".json.gz")


@dataclass(frozen=True)
class VectorSet:
    """One kind of vectors: `--NAME-vectors DIR`, fixtures `NAME_vectors` (a file) and `NAME_agreement`."""

    name: str

    @property
    def option(self) -> str:
        return f"--{self.name}-vectors"

    @property
    def fixture(self) -> str:
        return f"{self.name}_vectors"

    def folders(self, config: pytest.Config) -> list[Path]:
        given: list[str] = config.getoption(self.option)
        if given:
            return [Path(folder) for folder in given]
        return [folder for folder in (HERE / self.name, BESIDE / self.name) if folder.is_dir()]

    def files(self, config: pytest.Config) -> list[Path]:
        files = [
            path for folder in self.folders(config) for path in sorted(folder.iterdir()) if path.name.endswith(ENDINGS)
        ]
        if not files:
            raise pytest.UsageError(f"{self.option}: no file of {ENDINGS} in {self.folders(config)}")
        return files


SETS = (VectorSet("hpa"), VectorSet("vertical"))


@dataclass
class Agreement:
    """Number of cases of each family that agree with the vectors."""

    agreed: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)

    def count(self, family: str, *, agrees: bool) -> None:
        self.counted[family] += 1
        self.agreed[family] += agrees


AGREEMENT = pytest.StashKey[dict[str, Agreement]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    for each in SETS:
        parser.addoption(
            each.option,
            action="append",
            default=[],
            metavar="DIR",
            help=f"folder of {each.name} vectors (may be given again); default: the repository's copy",
        )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[AGREEMENT] = {each.name: Agreement() for each in SETS}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for each in SETS:
        if each.fixture in metafunc.fixturenames:
            files = each.files(metafunc.config)
            metafunc.parametrize(each.fixture, files, ids=[f"{path.parent.name}/{path.name}" for path in files])


@pytest.fixture
def hpa_agreement(pytestconfig: pytest.Config) -> Agreement:
    return pytestconfig.stash[AGREEMENT]["hpa"]


@pytest.fixture
def vertical_agreement(pytestconfig: pytest.Config) -> Agreement:
    return pytestconfig.stash[AGREEMENT]["vertical"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name, agreement in config.stash[AGREEMENT].items():
        if not agreement.counted:
            continue
        terminalreporter.section(f"{name} vectors")
        for family, total in sorted(agreement.counted.items()):
            terminalreporter.line(f"{family:32} {agreement.agreed[family]:6} of {total:6} agree")
        every = sum(agreement.counted.values())
        terminalreporter.line(f"{'all':32} {sum(agreement.agreed.values()):6} of {every:6} agree")

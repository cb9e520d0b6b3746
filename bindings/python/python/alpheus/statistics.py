"""Accountable statistics: sums over anonymous samples, each proven to be in range."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from ._errors import InputError
from ._program import PathLike, environment, failure, program, read, run
from ._times import moment


@dataclass(frozen=True)
class Aggregate:
    """What was published of one place and time."""

    place: str
    start: datetime
    #: The end, exclusive.
    end: datetime
    #: ``result``, ``open``, or why there is no result.
    state: str
    count: int | None
    #: Exact.
    sum: Decimal | None
    mean: float | None
    #: The population's standard deviation.
    deviation: float | None
    #: Uploads that the aggregator has seen at most.
    slots: int
    #: Those of them that add nothing.
    dummies: int | None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Aggregate:
        """An aggregate as the program prints it."""
        return cls(
            place=said["aggregate"],
            start=moment(1000 * said["interval_start"]),
            end=moment(1000 * said["interval_end"]),
            state=said["state"],
            count=said["count"],
            sum=None if said["sum"] is None else Decimal(said["sum"]),
            mean=said["mean"],
            deviation=said["stddev"],
            slots=said["slots"],
            dummies=said["dummies"],
        )


class Statistics:
    """A deployment of statistics, by its public card.

    >>> Statistics("roads/card.json")
    <alpheus.Statistics of roads/card.json>
    """

    def __init__(self, card: PathLike) -> None:
        self._card = card

    def results(self, plan: PathLike) -> list[Aggregate]:
        """What was published for a plan's place, each row checked against its smoothers' signatures."""
        said = read(["stats", "results", plan, "--card", self._card])
        return [Aggregate.of(row) for row in said]

    def define(self, plan: PathLike, *, key: PathLike, count: int = 1) -> None:
        """Has smoothers sign what will be measured."""
        run(["stats", "define", plan, "--card", self._card, "--key", key, "--count", str(count)])

    def contribute(
        self,
        plan: PathLike,
        samples: Iterable[float | int | str],
        *,
        account: str,
        secret_file: PathLike,
        state: PathLike,
        dummies: bool = True,
    ) -> Contribution:
        """Contributes samples to the aggregate that is running or begins next, and fills slots with dummies.

        A sample that is not a number raises :class:`InputError` before any is contributed. The client runs
        beside this process until it has seen that its samples were counted.
        """
        texts = [_sample(sample, number) for number, sample in enumerate(samples)]
        line: list[PathLike] = ["stats", "client", plan, "--card", self._card]
        line += ["--account", account, "--secret-file", secret_file, "--state", state]
        return Contribution([*line, *([] if dummies else ["--no-dummies"])], texts)

    def __repr__(self) -> str:
        return f"<alpheus.Statistics of {self._card}>"


def _sample(sample: float | int | str, number: int) -> str:
    try:
        float(sample)
    except (TypeError, ValueError):
        raise InputError(f"sample {number} is not a number") from None
    return str(sample)


class Contribution:
    """Samples on their way."""

    def __init__(self, line: list[PathLike], samples: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="alpheus-")
        self._said = Path(self._folder.name) / "said"
        file = Path(self._folder.name) / "samples.txt"
        file.write_text("".join(f"{sample}\n" for sample in samples))
        with self._said.open("w") as said:
            self._child = subprocess.Popen(
                [str(program()), *map(str, line), "--input", str(file)],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=environment({"CHILD_OF_ALPHEUS": "1"}),
            )

    def wait(self, timeout: float | None = None) -> str:
        """Waits until it is known that the samples were counted. Returns what the client prints.

        Raises :class:`CheckError` if they were not, and keeps the receipts as proof.
        """
        code = self._child.wait(timeout)
        if self._child.stdin is not None:
            self._child.stdin.close()
        said = self._said.read_text()
        self._folder.cleanup()
        if code != 0:
            raise failure(code, said)
        return said

    def __repr__(self) -> str:
        return "<alpheus.Contribution>"

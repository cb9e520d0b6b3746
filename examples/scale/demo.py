#!/usr/bin/env python3
"""Encrypted streams at scale on one machine: Kafka, a registry, Flink, and Alpheus beside them.

    make scale-demo                     # builds what it needs first
    python3 examples/scale/demo.py --alpheus target/debug/alpheus --registry DIR

Two of the paper's applications send their rows through encrypting Kafka producers; a Flink job adds up what it
cannot read; privacy controllers release windows. Meanwhile a task manager and the broker are killed. Every
window's statistics are compared with the truth of the plaintext rows. Nothing outlives the command.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from applications import CARS, FITNESS, Deployment
from cluster import Broker, Flink, Registry
from processes import Failed, Processes

TICK = 10_000


def say(words: str) -> None:
    """Progress, with the time since the start."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {words}", flush=True)


BEGAN = time.monotonic()


def run(processes: Processes, options: argparse.Namespace, folder: Path) -> bool:
    """Runs the whole demo. Returns whether every window was correct."""
    repository = Path(__file__).resolve().parents[2]
    jvm = repository / "jvm"
    say("a Kafka broker starts (KRaft, one node)")
    broker = Broker(processes, jvm)
    say("a schema registry starts (Apicurio, in memory)")
    registry = Registry(processes, options.registry)
    say("Flink starts: a job manager, two task managers")
    flink = Flink(processes, jvm, folder / "flink", workers=2)
    tools = folder / "bin"
    tools.mkdir()
    (tools / "alpheus").symlink_to(options.alpheus.resolve())
    flink.command(tools)
    addresses = [("127.0.0.1:9092", broker.address), ("http://127.0.0.1:8081/apis/ccompat/v7", registry.url)]
    deployments = []
    for application in (FITNESS, CARS):
        say(f"{application.name}: PKI, service, controller, {application.owners} owners with a stream each")
        deployment = Deployment(application, processes, repository, folder / application.name, tools, addresses)
        deployment.start()
        deployment.submit()
        deployments.append(deployment)
    stream(processes, broker, flink, deployments, options.minutes, jvm)
    say(f"subjects in the registry: {registry.subjects()}")
    return compare(deployments)


def stream(processes: Processes, broker: Broker, flink: Flink, deployments: list[Deployment], minutes: int,
           jvm: Path) -> None:
    """Sends rows for some minutes, and injects faults."""
    start = (int(time.time() * 1000) // TICK + 1) * TICK
    fleets = [each.send(jvm, start, minutes) for each in deployments]
    say(f"{sum(each.application.owners for each in deployments)} devices send encrypted rows, one a second each")
    for deployment in deployments:
        say(f"{deployment.application.name}: someone asks\n{deployment.ask()}")
    time.sleep(10 * minutes)
    say("kill -9 of a task manager; another one starts")
    flink.kill_one()
    flink.workers.append(flink.worker())
    time.sleep(15 * minutes)
    say("kill -9 of the broker; it starts again over what it had written")
    broker.kill()
    broker.start()
    while any(fleet.poll() is None for fleet in fleets):
        for deployment in deployments:
            for ended in deployment.heal():
                say(f"{deployment.application.name}: the {ended} had ended with the broker, and runs again")
        time.sleep(1)
    for deployment, fleet in zip(deployments, fleets):
        if fleet.returncode != 0:
            raise Failed(f"{deployment.application.name}: a device failed; see "
                         f"{processes.log(deployment.application.name + '-fleet')}")
    say("all rows are sent")


def compare(deployments: list[Deployment]) -> bool:
    """Prints a table of each window's row and the expected one."""
    equal = total = 0
    print(f"\n{'application':<12} {'window':<10} {'owners':>6}  {'result':<46} plaintext")
    for deployment in deployments:
        for row in deployment.results():
            total += 1
            equal += row.equal
            print(f"{deployment.application.name:<12} {row.clock:<10} {row.owners:>6}  {row.shown:<46} "
                  f"{'equal' if row.equal else row.difference}")
    print(f"\n{equal} of {total} windows equal")
    return total > 0 and equal == total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alpheus", type=Path, required=True, help="the binary, built with --features kafka")
    parser.add_argument("--registry", type=Path, required=True, help="the folder of an unpacked Apicurio")
    parser.add_argument("--minutes", type=int, default=2, help="minutes of rows")
    parser.add_argument("--keep", type=Path, help="keep state and logs in this folder")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="alpheus-scale-"))
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    try:
        with Processes(folder / "logs") as processes:
            good = run(processes, options, folder)
    except Failed as failed:
        print(f"error: {failed}\nhelp: logs are in {folder}/logs", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

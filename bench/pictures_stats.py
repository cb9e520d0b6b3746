#!/usr/bin/env python3
"""Redraws figures 6 and 7 of the PrivStats paper from a recording of detectors' speeds, and holds
the error that one client can cause to the formula.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures_stats.py --data traffic_speed.csv --output bench/results/statistics.svg

An aggregate is a detector and an hour. The recording has speeds and no cars, so how many pass is a
model: density falls with speed as Greenshields has it, flow is density times speed, and cars come
by Poisson with a share of that flow. Each car has one of the hour's readings. As in the paper, hours
with fewer than 50 cars are left out, and the quota is 3. With --table nothing is drawn and matplotlib
is not needed.
"""

import argparse
import csv
import math
import random
import statistics
import sys

QUOTA = 3
LEAST = 50
# Free flow in miles an hour, and the share of a road's cars that take part, so that some
# 200 do on average.
FREE, JAM = 75.0, 18.0
# Miles, for the delay.
SEGMENT = 0.5
INTERVAL = 100.0


def hours(path):
    """Readings of each detector and hour."""
    found = {}
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows)
        for row in rows:
            hour = int(row[0]) // 3600
            for sensor, cell in zip(header[1:], row[1:]):
                if cell:
                    found.setdefault((sensor, hour), []).append(float(cell))
    return {key: values for key, values in found.items() if len(values) == 12}


def poisson(mean, rng):
    """A number of cars; large means by the normal law."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        product *= rng.random()
        count += 1
    return count


def crowds(readings, rng):
    """Cars of each detector and hour that are enough: their speeds."""
    by_sensor = {}
    for (sensor, _), values in readings.items():
        speed = statistics.fmean(values)
        flow = JAM * max(0.02, 1 - speed / FREE) * speed
        cars = poisson(flow, rng)
        if cars >= LEAST:
            by_sensor.setdefault(sensor, []).append([max(1.0, rng.choice(values)) for _ in range(cars)])
    return {sensor: all_of for sensor, all_of in by_sensor.items() if len(all_of) >= 10}


CHOICES = [
    ("avg", lambda avg, std: avg),
    ("avg+std/2", lambda avg, std: avg + std / 2),
    ("avg+std", lambda avg, std: avg + std),
    ("3/2 avg", lambda avg, std: 1.5 * avg),
    ("avg+2 std", lambda avg, std: avg + 2 * std),
    ("2 avg", lambda avg, std: 2 * avg),
]


def delay(speed):
    """Seconds over the segment."""
    return 3600 * SEGMENT / speed


def choice(by_sensor, slots_of, rng):
    """In percent: uploads of all slots, real ones of all clients, errors of speed and delay."""
    filled, real, speeds, delays = [], [], [], []
    for crowded in by_sensor.values():
        numbers = [len(cars) for cars in crowded]
        slots = max(1, round(slots_of(statistics.fmean(numbers), statistics.pstdev(numbers))))
        for cars in crowded:
            counted = rng.sample(cars, min(len(cars), slots))
            filled.append(min(1, QUOTA * len(cars) / slots))
            real.append(len(counted) / len(cars))
            for errors, of in ((speeds, lambda v: v), (delays, delay)):
                truth = statistics.fmean(map(of, cars))
                errors.append(abs(statistics.fmean(map(of, counted)) - truth) / truth)
    return [100 * statistics.fmean(it) for it in (filled, real, speeds, delays)]


def cheats(readings, quotas):
    """The largest shift of an hour's mean by one client's quota at an end of the interval, and the
    formula's bound, in miles an hour, for each quota."""
    by_hour = {}
    for (_, hour), values in readings.items():
        by_hour.setdefault(hour, []).extend(values)
    found = []
    for quota in quotas:
        worst = (0.0, 0.0)
        for values in by_hour.values():
            count, total = len(values), math.fsum(values)
            for lie in (0.0, INTERVAL):
                # In place of as many of its own, as slots are given once.
                honest = total / count
                others = total - quota * honest
                shift = abs((others + quota * lie) / count - honest)
                worst = max(worst, (shift, INTERVAL * quota / count))
        found.append((quota, *worst))
    return found


def drawn(table, path):
    import picture_sheet

    names = [name for name, _ in table]
    figure, (left, right) = picture_sheet.sheet(1, 2, (11, 4))
    for axes, at, labels in (
        (left, (0, 1), ("uploads of all slots", "real uploads of all clients")),
        (right, (2, 3), ("mean speed", "mean delay")),
    ):
        for column, label, marker in zip(at, labels, "os"):
            axes.plot(names, [values[column] for _, values in table], f"{marker}-", label=label)
        axes.tick_params(axis="x", rotation=30)
        axes.legend()
    left.set(title="Figure 6: choice of U", ylabel="%", ylim=(50, 101))
    right.set(title="Figure 7: error by choice of U", ylabel="% of the value", ylim=(0, None))
    picture_sheet.save(figure, path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="traffic_speed.csv")
    parser.add_argument("--output", help="the picture")
    parser.add_argument("--table", action="store_true", help="the numbers alone")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    if not args.output and not args.table:
        sys.exit("error: no --output and no --table\nhelp: name the picture, or ask for the numbers")
    readings, rng = hours(args.data), random.Random(args.seed)
    by_sensor = crowds(readings, rng)
    numbers = [len(cars) for crowded in by_sensor.values() for cars in crowded]
    print(f"{len(by_sensor)} detectors, {len(numbers)} aggregates of {LEAST} cars or more, "
          f"{statistics.fmean(numbers):.0f} cars on average\n")
    table = [(name, choice(by_sensor, of, rng)) for name, of in CHOICES]
    print("| U | uploads of all slots | real uploads of all clients | error of speed | of delay |")
    print("| --- | --- | --- | --- | --- |")
    for name, values in table:
        print(f"| {name} | " + " | ".join(f"{value:.2f} %" for value in values) + " |")
    print("\n| quota | shift of an hour's mean by one client, at most | formula |")
    print("| --- | --- | --- |")
    for quota, shift, bound in cheats(readings, (1, 3, 36)):
        print(f"| {quota} | {shift:.4f} mph | {bound:.4f} mph |")
        if shift > bound:
            sys.exit("error: a client shifts a mean by more than the formula allows")
    if args.output:
        drawn(table, args.output)


if __name__ == "__main__":
    main()

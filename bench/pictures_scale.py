#!/usr/bin/env python3
"""Redraws figure 9 of the Zeph paper from `make bench-scale`.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures_scale.py --report target/scale.json --output bench/results/scale.svg

How long after a window its result is there, for three applications and two crowds, beside the job on raw
attributes.
"""

import re
import sys

import picture_sheet

COLOURS = {"raw attributes": "#b0b0b0", "ours": "#1f5f8b"}
NAME = re.compile(r"(?P<application>.+) \((?P<words>\d+) words\), (?P<producers>\d+) producers: (?P<job>.+)")


def delays(report):
    """Samples in seconds by (application, words, producers) and job."""
    found = {}
    for it in report["figures"]:
        named = NAME.fullmatch(it["name"]) if it["group"] == "latency" else None
        if named:
            place = (named["application"], int(named["words"]), int(named["producers"]))
            found.setdefault(place, {})[named["job"]] = [sample / 1e3 for sample in it["samples"]]
    whole = {place: jobs for place, jobs in found.items() if set(jobs) == set(COLOURS)}
    if not whole:
        sys.exit("error: the report has no latencies\nhelp: make it with `make bench-scale`")
    return whole


def draw(axes, whole):
    """A bar for each job, from its median, with its least and greatest."""
    for number, (job, colour) in enumerate(COLOURS.items()):
        for place, samples in enumerate(jobs[job] for jobs in whole.values()):
            samples = sorted(samples)
            median = samples[len(samples) // 2]
            axes.bar(place + 0.36 * (number - 0.5), median, 0.34, color=colour, label=job if place == 0 else None,
                     yerr=[[median - samples[0]], [samples[-1] - median]], capsize=3, error_kw={"linewidth": 0.8})
    axes.set_xticks(range(len(whole)), [f"{name}\n{words} words\n{producers} producers" for name, words, producers in whole],
                    fontsize=8)
    axes.set(ylabel="seconds after the window's end", title="Figure 9: from a window's end to its committed result")
    axes.legend()


def main():
    (report,), output = picture_sheet.read(__doc__, ["report"])
    sheet, axes = picture_sheet.sheet(1, 1, (10, 5))
    draw(axes, delays(report))
    where = report["environment"]
    sheet.supxlabel(f"{where['date']}, {where['processor']}, {where['processors']} processors, Java {where['java']}, "
                    f"Flink {where['flink']}, Kafka {where['kafka']}; checkpoints every second", fontsize=7)
    picture_sheet.save(sheet, output)


if __name__ == "__main__":
    main()

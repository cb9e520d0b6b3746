#!/usr/bin/env python3
"""Redraws figures 2 to 6 of the Anon-Pass paper from `alpheus-bench pass --format json`.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures.py --carried CARRIED.json --logins LOGINS.json \
        --processors PROCESSORS.json --output bench/results/pass.svg

CARRIED is a run with a crowd that is carried on, LOGINS the same with --login-only, PROCESSORS one
with --processors. What the paper reports stands beside, in grey.
"""

import sys

import picture_sheet
from picture_sheet import OURS, OTHER, PAPER


def figure(report, group, name):
    """The one figure of that group whose name begins so."""
    found = [it for it in report["figures"] if it["group"] == group and it["name"].startswith(name)]
    if len(found) != 1:
        sys.exit(f"error: {len(found)} figures '{name}…' of '{group}' in the report; one is needed\n"
                 "help: make the report with `alpheus-bench pass --format json` of this version")
    return found[0]


def costs(axes, report):
    """Figure 2: milliseconds of the server for each kind of request."""
    paper = {"register": 19.92, "login": 8.11, "re-up": 0.95}
    group = "pass, servers behind HTTP"
    ours = [figure(report, group, name)["ours"] for name in paper]
    places = range(len(paper))
    axes.bar([place - 0.2 for place in places], paper.values(), 0.4, color=PAPER, label="paper, 2013")
    bars = axes.bar([place + 0.2 for place in places], ours, 0.4, color=OURS, label="ours")
    axes.bar_label(bars, [f"{value:.2f}" for value in ours], fontsize=8)
    axes.set(yscale="log", ylabel="ms of the server, behind HTTP", title="Figure 2: cost of a request")
    axes.set_xticks(list(places), list(paper))
    axes.legend()


def throughput(axes, report):
    """Figure 3: requests in a second by processors."""
    group = "pass, the most requests in a second"
    for mix, colour in [("re-ups", OURS), ("one login to four re-ups", OTHER), ("logins", "#3a3a3a")]:
        points = []
        for it in report["figures"]:
            if it["group"] == group and it["name"].startswith(f"{mix}, verifiers on "):
                points.append((int(it["name"].split()[-2]), it["ours"]))
        if not points:
            sys.exit(f"error: the report has no throughput of '{mix}'\nhelp: run it with --processors 1,2,4")
        axes.plot(*zip(*sorted(points)), "o-", color=colour, label=mix)
    axes.plot([8], [8500], "x", color=PAPER, label="paper: re-ups on 8 cores")
    axes.set(xlabel="processors", ylabel="requests in a second", title="Figure 3: the most requests")
    axes.set_ylim(bottom=0)
    axes.legend()


def overhead(axes, report):
    """Figure 4: a request through the gateway against the same proxy without the check."""
    paper = {"1 byte": 1.30, "256 bytes": 1.30, "4 KB": 1.20, "64 KB": 1.05, "1 MB": 1.01, "16 MB": 1.00}
    ours = [figure(report, "pass, gateway", f"a request of {name},")["ratio"] for name in paper]
    axes.plot(list(paper), list(paper.values()), "o-", color=PAPER, label="paper, to a bare server")
    axes.plot(list(paper), ours, "o-", color=OURS, label="ours, to the same proxy without the check")
    axes.set(ylabel="latency, times", title="Figure 4: what the check adds")
    axes.legend()


def processor(axes, carried, logins, server, title):
    """Figures 5 and 6: a server's processor time while the crowd comes and stays."""
    for report, colour, label in [(logins, OTHER, "logins only"), (carried, OURS, "carried on")]:
        points = [it["points"] for it in report["series"] if it["name"] == server]
        if not points:
            sys.exit(f"error: the report has no series of the {server}")
        axes.plot([at / 60 for at, _ in points[0]], [share for _, share in points[0]], color=colour, label=label)
    axes.set(xlabel="minutes", ylabel="% of one processor", title=title)
    axes.set_ylim(bottom=0)
    axes.legend()


def main():
    (carried, logins, processors), output = picture_sheet.read(__doc__, ["carried", "logins", "processors"])
    sheet, axes = picture_sheet.sheet(3, 2, (11, 11))
    costs(axes[0][0], carried)
    throughput(axes[0][1], processors)
    overhead(axes[1][0], carried)
    processor(axes[1][1], carried, logins, "verifier", "Figure 5: the verifier")
    processor(axes[2][0], carried, logins, "gateway", "Figure 6: the gateway")
    axes[2][1].axis("off")
    where = carried["environment"]
    about = f"{where['date']}, {where['processor']}, {where['processors']} processors, Linux {where['kernel']}"
    axes[2][1].text(0, 0.9, about, wrap=True, fontsize=8, va="top")
    picture_sheet.save(sheet, output)


if __name__ == "__main__":
    main()

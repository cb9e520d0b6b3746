"""Schemas that the vectors are about: one or more for each thing that a schema can say."""

EXAMPLES = [
    "examples/fitness/schema.yaml", "examples/web-analytics/schema.yaml", "examples/car-maintenance/schema.yaml",
    "examples/household/schema.yaml", "examples/real/cars/schema.yaml", "examples/real/fitness/schema.yaml",
    "examples/real/smartmeter/schema.yaml", "examples/real/traffic_speed/schema.yaml",
    "examples/real/weblog_apache/schema.yaml",
]

# Most schemas here keep a frame for each event, so that their ids stay. `FRAMES` has what else there is.
EVENTS_NAMED = "frames: events\n"
UNSAID = "name: S\nstreamAttributes: [{name: x, type: integer, aggregations: [sum]}]\n"
SMALLEST = EVENTS_NAMED + UNSAID

EVERYTHING = """\
# Every type and aggregation once.
frames: events
name: Every-thing
version: 7
tick: 1 min
capacity: { population: 500, events: 60 }
sizes: { tiny: 3, small: 12 }
sharedCount: true
metadataAttributes:
  - { name: region, type: string }
  - { name: ageGroup, type: [enum, optional], symbols: [young, old, "\\u00e9lder"] }
streamAttributes:
  - name: heart-rate
    type: decimal
    scale: 1
    min: 20.0
    max: 250
    unit: bpm
    aggregations: [count, sum, mean, variance, {histogram: {lo: 20, width: 5, bins: 46}}, {threshold: 120.5},
                   {regression: {x: altitude, r2: true}}]
  - name: altitude
    type: integer
    min: -500
    max: 9000
    unit: m
    aggregations:
      - histogram: {edges: [-500, 0, 10, 100, 1000, 5000]}
      - by: {attribute: heart_rate, lo: 20, width: 10, bins: 23, statistics: [mean, squares]}
      - {regression: {x: heart-rate}}
  - {name: moving, type: boolean, aggregations: [any, all, count]}
  - name: page
    type: [string, optional]
    maxBytes: 40
    aggregations: [{sketch: {depth: 6, width: 31}}, count]
  - {name: steps, type: [integer, optional], min: 0, max: 100000, aggregations: [sum, {sketch: {depth: 2, width: 9}}]}
  - {name: wide, type: integer, min: -9223372036854775808, max: 9223372036854775807, aggregations: [sum]}
streamPolicyOptions:
  - {name: none, option: private}
  - {name: open, option: public, attributes: [steps], to: [zoo, app, app]}
  - {name: own, option: stream-aggregate, windows: [1h, 5min, 5 min], missingTicks: 2}
  - name: many
    option: aggregate
    attributes: [altitude, heart_rate]
    clients: [large, 7, tiny]
    window: PT2H
    alpha: 2/6
    colluders: 300
    dropout: 0.125
    generalise: [{attribute: altitude, edges: [-500, 100]}]
    splitPopulations: false
    trusted: ["00000000000000000000000000000000000000000000000000000000000000FF",
              "00000000000000000000000000000000000000000000000000000000000000aa"]
  - {name: sure, option: aggregate, attributes: altitude, alpha: 0, integrity: none}
  - {name: noisy, option: dp-aggregate, attributes: [steps, moving], minimumPopulation: medium,
     budget: {perWindow: 0.5, total: 10, delta: 1e-9, unit: person-per-window}}
  - {name: yearly, option: dp-aggregate, attributes: [page],
     budget: {perWindow: "0.000001", total: 1, unit: person-per-period, period: 365d}}
"""

UNSHARED = """\
frames: events
name: Unshared
tick: 250ms
capacity: { population: 400000000, eventsPerSecond: 0.3, window: 10s }
sharedCount: false
streamAttributes:
  - {name: a, type: integer, min: 0, max: 9, aggregations: [mean, {histogram: {lo: 0, width: 1, bins: 10}}]}
  - {name: b, type: decimal, scale: 18, min: -9, max: 9, aggregations: [sum]}
  - {name: c, type: integer, aggregations: [count]}
"""

GRIDS = """\
frames: events
name: Grids
capacity: { population: 30, events: 30 }
streamAttributes:
  - {name: same, type: integer, min: 0, max: 99, aggregations: [{histogram: {lo: 0, width: 10, bins: 10}}]}
  - {name: coarse, type: integer, min: 0, max: 99, aggregations: [{histogram: {lo: 0, width: 10, bins: 10}}]}
  - {name: noise, type: integer, min: 0, max: 99, aggregations: [{histogram: {lo: 0, width: 10, bins: 10}}]}
  - {name: by, type: integer, min: -99, max: 9, aggregations: [
      {by: {attribute: same, lo: 0, width: 10, bins: 10, statistics: count}},
      {by: {attribute: coarse, lo: 0, width: 10, bins: 10, statistics: avg}}]}
streamPolicyOptions:
  - {name: g, option: aggregate, generalise: [{attribute: same, width: 10}, {attribute: coarse, width: 20}]}
  - {name: n, option: dp-aggregate, attributes: noise, budget: {perWindow: 1, total: 1, unit: event}}
"""

LIMBS = """\
frames: events
name: Limbs
capacity: { population: 1000, events: 1000 }
streamAttributes:
  - {name: x, type: integer, min: -4000000000, max: 4000000000, aggregations: [variance, {regression: {x: y}}]}
  - {name: y, type: integer, min: -3000000000, max: 7, aggregations: [sum, {by: {attribute: x,
      edges: [-4000000000, 0], statistics: var}}]}
"""

TICKS = "frames: ticks\n" + UNSAID
ANCHORED = "anchor: 2min\nframes: ticks\ntick: 500ms\n" + UNSAID
# No multiple of seven hours is nearer to an hour than the first.
LONG_TICKS = "frames: ticks\ntick: 7h\n" + UNSAID
# A schema that says nothing, or only an anchor. An hour is no multiple of seven seconds.
UNEVEN = "tick: 7s\n" + UNSAID
ANCHOR_ALONE = "anchor: 20min\n" + UNSAID

# What a device sends of its events.
FRAMES = [SMALLEST, TICKS, ANCHORED, LONG_TICKS, UNSAID, UNEVEN, ANCHOR_ALONE]

WRITTEN = {"smallest": SMALLEST, "everything": EVERYTHING, "unshared": UNSHARED, "grids": GRIDS, "limbs": LIMBS}

AVSC = """\
{"type": "record", "name": "org.example.Meter", "doc": "A meter.", "fields": [
  {"name": "power_draw", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
   "alpheus": {"name": "power-draw", "min": "0.00", "max": "20000", "unit": "W", "aggregations": ["variance"]}},
  {"name": "on", "type": ["null", "boolean"], "default": null, "alpheus": {"aggregations": ["any"]}},
  {"name": "volts", "type": "int", "default": 230, "alpheus": {"min": 0, "max": 400, "aggregations": ["mean"]}}],
 "alpheus": {"frames": "events", "tick": "10s", "capacity": {"population": 1000, "events": 600}}}
"""

AVSC_YAML = """\
frames: events
name: Meter
tick: 10s
capacity: { population: 1000, events: 600 }
streamAttributes:
  - {name: power-draw, type: decimal, scale: 2, min: 0.00, max: 20000, unit: W, aggregations: [stddev]}
  - {name: on, type: [boolean, optional], aggregations: [any]}
  - {name: volts, type: integer, min: 0, max: 400, aggregations: [avg]}
"""


def _attribute(rest, name="x"):
    return f"name: S\nstreamAttributes: [{{name: {name}, {rest}}}]\n"


def _option(rest):
    return ("name: S\nstreamAttributes: [{name: x, type: integer, min: 0, max: 9, aggregations: "
            f"[{{histogram: {{lo: 0, width: 1, bins: 10}}}}]}}]\nstreamPolicyOptions: [{{name: o, {rest}}}]\n")


# What must be refused, by the name of the refusal.
BAD = [
    ("Empty", ""),
    ("Syntax", "name: S\n  streamAttributes: []\n"),
    ("SecondDocument", SMALLEST + "---\n" + SMALLEST),
    ("Alias", "name: &n S\nstreamAttributes: [{name: x, type: integer}]\n"),
    ("Alias", "name: !!str S\nstreamAttributes: [{name: x, type: integer}]\n"),
    ("BadKey", "[1]: 2\n"),
    ("DuplicateKey", "name: S\nname: S\n"),
    ("TooDeep", "name: " + "[" * 30 + "]" * 30 + "\n"),
    ("UnknownKey", SMALLEST + "ticks: 1s\n"),
    ("MissingKey", "name: S\n"),
    ("MissingKey", _attribute("aggregations: [sum]")),
    ("BadName", _attribute("type: integer", "9x")),
    ("BadDuration", SMALLEST + "tick: 1 fortnight\n"),
    ("OutOfRange", SMALLEST + "tick: 2d\n"),
    ("OutOfRange", SMALLEST + "tick: 10us\n"),
    ("OutOfRange", SMALLEST + "version: 0\n"),
    ("OutOfRange", SMALLEST + "capacity: {population: 1, eventsPerSecond: 0, window: 1s}\n"),
    ("Conflict", SMALLEST + "capacity: {population: 1, events: 1, window: 1s}\n"),
    ("Expected", SMALLEST + "sharedCount: \"true\"\n"),
    ("Expected", "name: S\nstreamAttributes: {name: x}\n"),
    ("EmptyList", "name: S\nstreamAttributes: []\n"),
    ("UnknownWord", _attribute("type: float")),
    ("Expected", _attribute("type: [integer, decimal]")),
    ("Conflict", _attribute("type: integer, scale: 2")),
    ("Conflict", _attribute("type: boolean, min: 0")),
    ("Number", _attribute("type: integer, min: 0.5")),
    ("Number", _attribute("type: integer, max: 9223372036854775808")),
    ("Number", _attribute("type: decimal, scale: 1, min: 0, max: 1.25")),
    ("MinAboveMax", _attribute("type: integer, min: 2, max: 1")),
    ("DuplicateName", "name: S\nstreamAttributes: [{name: a-b, type: integer}, {name: A_B, type: integer}]\n"),
    ("DuplicateName", _attribute("type: integer, aggregations: [mean, avg]")),
    ("WrongType", _attribute("type: string, aggregations: [sum]")),
    ("WrongType", _attribute("type: boolean, aggregations: [{histogram: {lo: 0, width: 1, bins: 2}}]")),
    ("UnknownKey", _attribute("type: integer, aggregations: [{histo: {lo: 0}}]")),
    ("UnknownAttribute", _attribute("type: integer, aggregations: [{regression: {x: y}}]")),
    ("Expected", _attribute("type: integer, aggregations: [{regression: {x: x}}]")),
    ("EdgesNotAscending", _attribute("type: integer, aggregations: [{histogram: {edges: [1, 1]}}]")),
    ("OutOfRange", _attribute("type: integer, aggregations: [{histogram: {lo: 0, width: 0, bins: 2}}]")),
    ("TooManyWords", _attribute("type: string, aggregations: [{sketch: {depth: 2, width: 8000}}]")),
    ("SumTooLarge", _attribute(
        "type: integer, min: -9223372036854775808, max: 9223372036854775807, aggregations: [variance]")),
    ("UnknownWord", _option("option: everything")),
    ("Conflict", _option("option: private, window: 10s")),
    ("Conflict", _option("option: public, window: 10s")),
    ("Conflict", _option("option: stream-aggregate, clients: 3")),
    ("Conflict", _option("option: aggregate, window: 10s, windows: 20s")),
    ("Conflict", _option("option: aggregate, budget: {perWindow: 1, total: 1, unit: event}")),
    ("MissingKey", _option("option: dp-aggregate")),
    ("OutOfRange", _option("option: dp-aggregate, budget: {perWindow: 2, total: 1, unit: event}")),
    ("OutOfRange", _option("option: dp-aggregate, budget: {perWindow: 1, total: 1, delta: 1, unit: event}")),
    ("Conflict", _option("option: dp-aggregate, budget: {perWindow: 1, total: 1, unit: event, period: 1d}")),
    ("NotMultipleOfTick", _option("option: aggregate, window: 15s")),
    ("UnknownAttribute", _option("option: aggregate, attributes: [y]")),
    ("OffGrid", _option("option: aggregate, generalise: [{attribute: x, width: 0}]")),
    ("OffGrid", _option("option: aggregate, generalise: [{attribute: x, edges: [1, 5]}]")),
    ("BadFraction", _option("option: aggregate, alpha: 4/3")),
    ("Conflict", _option("option: public, colluders: 1")),
    ("OutOfRange", _option("option: aggregate, colluders: 4294967296")),
    ("BadFingerprint", _option("option: aggregate, trusted: [abc]")),
    ("Expected", _option("option: aggregate, splitPopulations: \"false\"")),
    ("SplitPopulations", _option("option: aggregate, splitPopulations: true")),
]

BAD_FRAMES = [
    ("UnknownWord", UNSAID + "frames: windows\n"),
    ("Conflict", SMALLEST + "anchor: 1h\n"),
    ("NotMultipleOfTick", UNSAID + "anchor: 15s\n"),
    ("NotMultipleOfTick", UNSAID + "frames: ticks\nanchor: 61s\n"),
    ("OutOfRange", UNSAID + "frames: ticks\nanchor: 5s\n"),
    ("OutOfRange", UNSAID + "frames: ticks\nanchor: 2d\n"),
]

BAD_AVSC = [
    ("InexactNumber", AVSC.replace('"0.00"', "0.5")),
    ("DuplicateKey", AVSC.replace('"doc": "A meter."', '"name": "x"')),
    ("UnknownKey", AVSC.replace('"doc"', '"docs"')),
    ("Conflict", AVSC.replace('"unit": "W"', '"optional": true')),
    ("Expected", AVSC.replace('"int"', '"float"')),
    ("Expected", AVSC.replace("230", '"230"')),
    ("Expected", AVSC.replace("org.example.Meter", "org.example.9Meter")),
    ("DuplicateKey", AVSC.replace('"name": "volts"', '"name": "on"')),
]

# Events of `everything`, attribute by attribute: heart-rate, altitude, moving, page, steps, wide.
EVENTS = [
    [725, -500, True, "/index.html", 12, -(2**63)],
    [200, 9000, False, None, None, 2**63 - 1],
    [2500, 100, True, "\u00e9" * 20, 100000, 0],
    [1205, 99, False, "", 0, -1],
    [1204, 5000, True, None, 7, 1],
]
LIMB_EVENTS = [[-4000000000, -3000000000], [4000000000, 7], [0, -1], [-1, 1]]
BAD_EVENTS = [
    ("Missing", [None, 0, True, None, None, 0]),
    ("WrongType", [725, True, True, None, None, 0]),
    ("WrongType", ["72", 0, True, None, None, 0]),
    ("WrongType", [725, 0, 1, None, None, 0]),
    ("WrongType", [725, 0, True, 5, None, 0]),
    ("OutOfBounds", [199, 0, True, None, None, 0]),
    ("OutOfBounds", [725, 9001, True, None, None, 0]),
    ("OutOfBounds", [725, 0, True, None, -1, 0]),
    ("TooLong", [725, 0, True, "\u00e9" * 20 + "x", None, 0]),
]

"""Known answers of schemas: what a file means (its id), where its statistics stand, and how events are
encoded: python3 generate.py TARGET."""

import hashlib
import math
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import yaml

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))
import reference as r  # noqa: E402

sys.path.insert(0, str(HERE.parent))
import cases  # noqa: E402

TARGET = sys.argv[1]
UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "hr": 3600 * 10**6,
         "hour": 3600 * 10**6, "d": 86400 * 10**6, "day": 86400 * 10**6, "days": 86400 * 10**6}
KINDS = ["private", "public", "stream-aggregate", "aggregate", "dp-aggregate"]
WORDS = {"count": 0, "sum": 1, "mean": 2, "avg": 2, "variance": 3, "var": 3, "stddev": 3, "any": 8, "all": 9}


def duration(text):
    if text.startswith("PT"):
        return int(text[2:-1]) * UNITS[text[-1].lower()]
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    return int(digits) * UNITS[text[len(digits):].strip()]


def scaled(text, scale):
    value = Decimal(text).scaleb(scale)
    assert value == int(value), text
    return int(value)


def listed(value):
    return value if isinstance(value, list) else [value]


def same(name):
    return name.lower().replace("-", "_")


class Schema:
    """A resolved schema."""

    def __init__(self, text):
        self.raw = raw = yaml.load(text, yaml.BaseLoader)
        self.attributes = [self.header(item) for item in raw["streamAttributes"]]
        self.names = [same(a["name"]) for a in self.attributes]
        for own, item in zip(self.attributes, raw["streamAttributes"]):
            own["aggregations"] = [self.aggregation(own, it) for it in item.get("aggregations", [])]
        self.tick = duration(raw.get("tick", "10s"))
        # The first multiple of the tick from an hour on.
        hour = -(-UNITS["h"] // self.tick) * self.tick
        self.anchor = duration(raw.get("anchor", f"{hour}us")) if raw.get("frames", "ticks") == "ticks" else None
        self.shared = raw.get("sharedCount", "true") == "true"
        capacity = raw.get("capacity", {"population": "10000", "events": "3600"})
        self.population = int(capacity["population"])
        rate, window = capacity.get("eventsPerSecond"), capacity.get("window")
        self.events = int(capacity["events"]) if rate is None else math.ceil(
            Fraction(rate) * duration(window) / 10**6)
        self.sizes = {"small": 10, "medium": 100, "large": 1000}
        self.sizes |= {name: int(size) for name, size in raw.get("sizes", {}).items()}
        self.options = [self.option(item) for item in raw.get("streamPolicyOptions", [])]

    @staticmethod
    def header(item):
        types = listed(item["type"])
        optional = "optional" in types or item.get("optional") == "true"
        kind = next(word for word in types if word != "optional")
        own = {"name": item["name"], "unit": item.get("unit", ""), "optional": optional, "type": kind}
        if kind in ("integer", "decimal"):
            own["scale"] = scale = int(item.get("scale", 0))
            own["min"] = scaled(item.get("min", str(-(2**31))), scale)
            own["max"] = scaled(item.get("max", str(2**31 - 1)), scale)
        if kind == "string":
            own["max_bytes"] = int(item.get("maxBytes", 256))
        return own

    def find(self, name):
        return [same(a["name"]) for a in self.attributes].index(same(name))

    def aggregation(self, own, item):
        """A tuple: the number of its kind, then what it says."""
        if isinstance(item, str):
            return (WORDS[item],)
        [(kind, value)] = item.items()
        if kind == "histogram":
            return (4, self.edges(value, own["scale"]))
        if kind == "regression":
            return (5, self.find(value["x"]), value.get("r2") == "true")
        if kind == "by":
            other = self.find(value["attribute"])
            order = max({"count": 0, "sum": 1, "mean": 1, "avg": 1}.get(word, 2)
                        for word in listed(value.get("statistics", "avg")))
            return (6, other, self.edges(value, self.attributes[other]["scale"]), order)
        if kind == "threshold":
            return (7, scaled(value, own["scale"]))
        return (10, int(value["depth"]), int(value["width"]))

    @staticmethod
    def edges(value, scale):
        if "edges" in value:
            return ("explicit", [scaled(edge, scale) for edge in value["edges"]])
        return ("uniform", scaled(value["lo"], scale), scaled(value["width"], scale), int(value["bins"]))

    def option(self, item):
        kind = KINDS.index(item["option"])
        many = kind >= 3
        clients = listed(item.get("clients", item.get("minimumPopulation", [])))
        sizes = [self.sizes[c] if c in self.sizes else int(c) for c in clients]
        windows = listed(item.get("window", item.get("windows", [])))
        budget = item.get("budget")
        alpha = Fraction(item.get("alpha", "1/3" if many else "0"))
        return {
            "name": item["name"], "kind": kind,
            "attributes": sorted({self.find(a) for a in listed(item.get("attributes", self.names))}),
            "windows": sorted({duration(w) for w in windows}) or [self.tick],
            "clients": (sorted(set(sizes)) or [self.sizes["small"]]) if many else [1],
            "named": sorted({(c, self.sizes[c]) for c in clients if c in self.sizes}),
            "generalise": [self.generalise(g) for g in listed(item.get("generalise", []))],
            "budget": budget and self.budget(budget),
            "to": sorted(set(listed(item.get("to", [])))),
            "alpha": alpha, "colluders": int(item.get("colluders", 8 if alpha else 0)),
            "dropout": Fraction(item.get("dropout", "1/5" if many else "1")),
            "missing": int(item.get("missingTicks", 0)), "split": False,
            "trusted": sorted({bytes.fromhex(t) for t in listed(item.get("trusted", []))}),
            "verified": item.get("integrity", "allowed") == "allowed",
        }

    def generalise(self, item):
        attribute = self.find(item["attribute"])
        scale = self.attributes[attribute]["scale"]
        if "edges" in item:
            return (attribute, [scaled(edge, scale) for edge in item["edges"]])
        return (attribute, scaled(item["width"], scale))

    @staticmethod
    def budget(item):
        unit = ["event", "person-per-window", "person-per-period"].index(item["unit"])
        period = [duration(item["period"])] if unit == 2 else []
        return (scaled(item["perWindow"], 6), scaled(item["total"], 6), scaled(item.get("delta", "0"), 18), unit, period)


class Postcard:
    """The serialisation: https://postcard.jamesmunns.com/wire-format."""

    def __init__(self):
        self.out = b""

    def unsigned(self, *numbers):
        for n in numbers:
            while n >= 128:
                self.out += bytes([n & 127 | 128])
                n >>= 7
            self.out += bytes([n])

    def signed(self, *numbers):
        for n in numbers:
            self.unsigned(2 * n if n >= 0 else -2 * n - 1)

    def octet(self, n):
        self.out += bytes([n])

    def text(self, text):
        data = text.encode()
        self.unsigned(len(data))
        self.out += data

    def list(self, items, write):
        self.unsigned(len(items))
        for item in items:
            write(item)


def schema_id(schema):
    p = Postcard()
    p.text(schema.raw["name"])
    p.unsigned(int(schema.raw.get("version", 1)), schema.tick, schema.population, schema.events)
    p.octet(schema.shared)
    p.list(schema.raw.get("metadataAttributes", []), lambda item: write_metadata(p, item))
    p.list(schema.attributes, lambda own: write_attribute(p, own))
    p.list(schema.options, lambda option: write_option(p, option))
    if schema.anchor is not None:
        p.unsigned(1, schema.anchor)
    return r.labelled_hash("alpheus/schema/v2", [p.out])


def write_metadata(p, item):
    types = listed(item["type"])
    p.text(item["name"])
    p.list(item["symbols"] if "enum" in types else [], p.text)
    p.octet("optional" in types or item.get("optional") == "true")


def write_attribute(p, own):
    p.text(own["name"])
    if "scale" in own:
        p.unsigned(0)
        p.octet(own["scale"])
        p.signed(own["min"], own["max"])
    elif own["type"] == "boolean":
        p.unsigned(1)
    else:
        p.unsigned(2, own["max_bytes"])
    p.text(own["unit"])
    p.octet(own["optional"])
    p.list(own["aggregations"], lambda aggregation: write_aggregation(p, aggregation))


def write_aggregation(p, aggregation):
    kind, *rest = aggregation
    p.unsigned(kind)
    if kind == 4:
        write_edges(p, rest[0])
    elif kind == 5:
        p.unsigned(rest[0])
        p.octet(rest[1])
    elif kind == 6:
        p.unsigned(rest[0])
        write_edges(p, rest[1])
        p.octet(rest[2])
    elif kind == 7:
        p.signed(rest[0])
    elif kind == 10:
        p.octet(rest[0])
        p.unsigned(rest[1])


def write_edges(p, edges):
    if edges[0] == "uniform":
        p.unsigned(0)
        p.signed(edges[1], edges[2])
        p.unsigned(edges[3])
    else:
        p.unsigned(1)
        p.list(edges[1], p.signed)


def write_option(p, o):
    p.text(o["name"])
    p.unsigned(o["kind"])
    for key in ("attributes", "windows", "clients"):
        p.list(o[key], p.unsigned)
    p.list(o["named"], lambda named: (p.text(named[0]), p.unsigned(named[1])))
    p.list(o["generalise"], lambda g: write_generalise(p, g))
    p.octet(o["budget"] is not None)
    if o["budget"]:
        *numbers, period = o["budget"]
        p.unsigned(*numbers, *period)
    p.list(o["to"], p.text)
    p.unsigned(o["alpha"].numerator, o["alpha"].denominator, o["colluders"])
    p.unsigned(o["dropout"].numerator, o["dropout"].denominator, o["missing"])
    p.octet(o["split"])
    p.unsigned(len(o["trusted"]))
    p.out += b"".join(o["trusted"])
    # Left out where it is allowed, as in every schema before there was a choice.
    if not o["verified"]:
        p.octet(False)


def write_generalise(p, generalise):
    attribute, to = generalise
    p.unsigned(attribute)
    if isinstance(to, list):
        p.unsigned(1)
        p.list(to, p.signed)
    else:
        p.unsigned(0)
        p.signed(to)


class Layout:
    """Where statistics stand: a list of (statistic, first word, cells, packing)."""

    def __init__(self, schema):
        self.schema = schema
        statistics = {}
        for a, own in enumerate(schema.attributes):
            for k, aggregation in enumerate(own["aggregations"]):
                for statistic, cells in self.offered(a, k, aggregation):
                    statistics.setdefault(statistic, cells)
        if ("EventCount",) in statistics:
            statistics[("EventCount",)] = statistics.pop(("EventCount",))
        self.fields, word = [], 0
        for statistic, cells in statistics.items():
            packing = self.packing(statistic, cells)
            self.fields.append((statistic, word, cells, packing))
            per_word = packing[2] if packing[0] == "digits" else 1
            word += 2 * cells if packing[0] == "limbs" else -(-cells // per_word)
        self.words = word + 1

    def offered(self, a, k, aggregation):
        kind, *rest = aggregation
        optional = self.schema.attributes[a]["optional"]
        count = (("EventCount",) if self.schema.shared and not optional else ("Count", a), 1)
        total = (("Sum", a), 1)
        if kind == 0:
            return [count]
        if kind == 1:
            return [total, count] if optional else [total]
        if kind == 2:
            return [total, count]
        if kind == 3:
            return [total, (("SumOfSquares", a), 1), count]
        if kind == 4:
            return [(("Histogram", a, k), bins(rest[0]))]
        if kind == 5:
            moments = ["Count", "X", "Y", "Xx", "Xy"] + ["Yy"] * rest[1]
            return [(("Pair", a, rest[0], moment), 1) for moment in moments]
        if kind == 6:
            return [(("By", a, rest[0], k, order), bins(rest[1])) for order in range(rest[2] + 1)]
        if kind == 7:
            return [(("Threshold", a, k, order), 2) for order in range(2)]
        if kind in (8, 9):
            return [(("Any" if kind == 8 else "All", a), 1)]
        return [(("Sketch", a, k), rest[0] * rest[1])]

    def magnitude(self, a):
        own = self.schema.attributes[a]
        return max(abs(own["min"]), abs(own["max"])) if "scale" in own else 1

    def in_event(self, statistic):
        kind, *rest = statistic
        if kind == "Sum":
            return self.magnitude(rest[0])
        if kind == "SumOfSquares":
            return self.magnitude(rest[0]) ** 2
        if kind == "Threshold":
            return self.magnitude(rest[0]) ** rest[2]
        if kind == "By":
            return self.magnitude(rest[0]) ** rest[3]
        if kind == "Pair":
            y, x = self.magnitude(rest[0]), self.magnitude(rest[1])
            return {"Count": 1, "X": x, "Y": y, "Xx": x * x, "Xy": x * y, "Yy": y * y}[rest[2]]
        return 1

    def noisy(self, statistic):
        of = {"EventCount": 0, "Pair": 2, "By": 2}.get(statistic[0], 1)
        return [o for o in self.schema.options if o["kind"] == 4 and set(statistic[1:1 + of]) & set(o["attributes"])]

    def packing(self, statistic, cells):
        if statistic[0] in ("Any", "All"):
            return ("whole",)
        event, events = self.in_event(statistic), self.schema.population * self.schema.events
        least = min((o["budget"][0] for o in self.noisy(statistic)), default=None)
        noise = 0 if least is None else -(-event * self.schema.events * 45_000_000 // least)
        total = event * events + noise
        if total >= 2**63:
            high = ((event >> 32) + 1) * events + (noise >> 32) + 1
            assert high < 2**63 and events << 32 < 2**63, "fits no two words"
            return ("limbs",)
        if not self.may_share(statistic):
            return ("whole",)
        fit = max(64 // (total.bit_length() + 1), 1)
        per_word = -(-cells // -(-cells // fit))
        return ("digits", 64 // per_word, per_word) if per_word > 1 else ("whole",)

    def may_share(self, statistic):
        grid = grid_of(self.schema, statistic)
        if grid is None:
            return False
        coarsened = [to for o in self.schema.options for attribute, to in o["generalise"] if attribute == grid[0]]
        return all(as_fine(to, grid[1]) for to in coarsened) and not self.noisy(statistic)


def bins(edges):
    return edges[3] if edges[0] == "uniform" else len(edges[1])


def lower(edges):
    return [edges[1] + edges[2] * i for i in range(edges[3])] if edges[0] == "uniform" else edges[1]


def as_fine(to, edges):
    return len(to) == bins(edges) if isinstance(to, list) else to == edges[2]


def grid_of(schema, statistic):
    """The attribute whose buckets the cells are, and the grid."""
    if statistic[0] == "Histogram":
        return statistic[1], schema.attributes[statistic[1]]["aggregations"][statistic[2]][1]
    if statistic[0] == "By":
        return statistic[2], schema.attributes[statistic[1]]["aggregations"][statistic[3]][2]
    return None


def encode(schema, layout, event):
    """The words of one event, and those of them that are random."""
    words, random = [0] * layout.words, []

    def add(field, cell, value):
        _, first, _, packing = field
        if packing[0] == "whole":
            words[first + cell] += value
        elif packing[0] == "digits":
            words[first + cell // packing[2]] += value << packing[1] * (cell % packing[2])
        else:
            words[first + 2 * cell] += value % 2**32
            words[first + 2 * cell + 1] += value >> 32

    for field in layout.fields:
        (kind, *rest) = field[0]
        value = event[rest[0]] if rest else 1
        if value is None:
            continue
        if kind in ("EventCount", "Count"):
            add(field, 0, 1)
        elif kind in ("Sum", "SumOfSquares"):
            add(field, 0, value ** (2 if kind == "SumOfSquares" else 1))
        elif kind == "Pair":
            x = event[rest[1]]
            if x is not None:
                add(field, 0, {"Count": 1, "X": x, "Y": value, "Xx": x * x, "Xy": x * value, "Yy": value**2}[rest[2]])
        elif kind in ("Histogram", "By"):
            by, edges = grid_of(schema, field[0])
            if event[by] is not None:
                cell = max(sum(edge <= event[by] for edge in lower(edges)) - 1, 0)
                add(field, cell, value ** rest[3] if kind == "By" else 1)
        elif kind == "Threshold":
            at = schema.attributes[rest[0]]["aggregations"][rest[1]][1]
            add(field, 0 if value >= at else 1, value ** rest[2])
        elif kind in ("Any", "All"):
            random += [field[1]] if value == (kind == "Any") else []
        else:
            sketch(schema, field, value, add)
    return [w & r.MASK for w in words], random


def sketch(schema, field, value, add):
    _, of, k = field[0]
    _, depth, width = schema.attributes[of]["aggregations"][k]
    seed = r.labelled_hash("alpheus/sketch/v1", [schema_id(schema), of.to_bytes(2, "big"), k.to_bytes(2, "big")])
    item = value.encode() if isinstance(value, str) else value.to_bytes(8, "big", signed=True)
    for row in range(depth):
        block = hashlib.sha256(seed + bytes(32) + bytes([row // 4]) + item).digest()
        at = 8 * (row % 4)
        add(field, row * width + (int.from_bytes(block[at : at + 8], "big") * width >> 64), 1)


def described(schema):
    layout = Layout(schema)
    fields = [{"statistic": list(s), "first": first, "cells": cells, "packing": list(packing)}
              for s, first, cells, packing in layout.fields]
    return {"id": schema_id(schema).hex(), "tick": schema.tick, "words": layout.words, "fields": fields}


def encoded(name, events):
    schema = Schema(cases.WRITTEN[name])
    out = []
    for event in events:
        words, random = encode(schema, Layout(schema), event)
        out.append({"values": event, "words": [r.hexadecimal(w) for w in words], "random": random})
    return {"yaml": cases.WRITTEN[name], "events": out}


def main():
    root = HERE.parents[2]
    written = [{"yaml": text} | described(Schema(text)) for text in cases.WRITTEN.values()]
    files = [{"file": f} | described(Schema((root / f).read_text(encoding="utf-8"))) for f in cases.EXAMPLES]
    r.write(TARGET, "schema.json", written + files)
    r.write(TARGET, "frames.json", [{"yaml": text} | described(Schema(text)) for text in cases.FRAMES])
    r.write(TARGET, "avro.json", [{"avsc": cases.AVSC} | described(Schema(cases.AVSC_YAML))])
    r.write(TARGET, "encoding.json", [encoded("everything", cases.EVENTS), encoded("limbs", cases.LIMB_EVENTS)])
    r.write(TARGET, "schema_bad_yaml.json", [{"yaml": text, "error": error} for error, text in cases.BAD])
    r.write(TARGET, "schema_bad_frames.json", [{"yaml": text, "error": error} for error, text in cases.BAD_FRAMES])
    r.write(TARGET, "schema_bad_avro.json", [{"avsc": text, "error": error} for error, text in cases.BAD_AVSC])
    r.write(TARGET, "encoding_bad_values.json", [
        {"yaml": cases.EVERYTHING, "values": values, "error": error} for error, values in cases.BAD_EVENTS
    ])


main()

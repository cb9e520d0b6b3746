"""Reads events with OpenLineage's own classes: python3 lineage.py EVENTS.

OpenLineage generates these classes from the JSON schemas of its specification. Each value must be
of the type there, no name may be unknown, schemas must be those of the classes, and the event that
the client would send must be the one that was read.
"""

import copy
import json
import sys
import types
import typing
from enum import Enum
from pathlib import Path

import attr
from openlineage.client.generated.base import RunEvent
from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet
from openlineage.client.generated.nominal_time_run import NominalTimeRunFacet
from openlineage.client.serde import Serde

FACETS = {"nominalTime": NominalTimeRunFacet, "columnLineage": ColumnLineageDatasetFacet}


def value(kind, data, name):
    """A value of a type of the classes."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return value(next(own for own in args if own is not type(None)), data, name)
    if origin is list:
        expect(isinstance(data, list), f"{name} is not a list")
        return [value(args[0], one, name) for one in data]
    if origin is dict:
        expect(isinstance(data, dict), f"{name} is not an object")
        inner = args[1]
        kinds = FACETS if name == "facets" else {}
        return {own: value(kinds.get(own, inner), one, own) for own, one in data.items()}
    if attr.has(kind):
        return read(kind, data)
    if issubclass(kind, Enum):
        return kind(data)
    expect(type(data) is kind, f"{name} is no {kind.__name__}")
    return data


def read(kind, data):
    """An object of a class, from all of what was written."""
    attr.resolve_types(kind)
    args, fields = {}, {field.name: field for field in attr.fields(kind)}
    expect(isinstance(data, dict) and data.keys() <= fields.keys(), f"names of {kind.__name__}")
    for name, one in data.items():
        if fields[name].init:
            args[fields[name].alias] = value(fields[name].type, one, name)
    made = kind(**args)
    for name in data.keys() & {"schemaURL", "_schemaURL"}:
        expect(data[name] == kind._get_schema(), f"{data[name]} is not of {kind.__name__}")
    return made


def expect(holds, what):
    if not holds:
        raise ValueError(what)


def written(data):
    """Without what is empty, which the client writes and need not be there."""
    if isinstance(data, list):
        return [written(one) for one in data]
    if not isinstance(data, dict):
        return data
    inner = {name: written(one) for name, one in data.items()}
    return {name: one for name, one in inner.items() if one not in ({}, [])}


def wrong(event):
    """The event with a fault, of each kind that this must notice."""
    faults = [
        lambda own: own.pop("run"), lambda own: own.pop("job"), lambda own: own.pop("eventTime"),
        lambda own: own["run"].update(runId="no-uuid"), lambda own: own["job"].pop("name"),
        lambda own: own.update(eventTime="2026-01-01"), lambda own: own.update(eventType="DONE"),
        lambda own: own.update(schemaURL="https://openlineage.io/spec/1-0-0/OpenLineage.json"),
        lambda own: own.update(more=1), lambda own: own["outputs"][0].update(name=1),
        lambda own: own["run"]["facets"]["nominalTime"].update(nominalEndTime=5),
        lambda own: own["outputs"][0]["facets"]["columnLineage"].pop("fields"),
        lambda own: transformation(own).update(masking="true"),
        lambda own: transformation(own).pop("type"),
    ]
    for fault in faults:
        own = copy.deepcopy(event)
        fault(own)
        yield own


def transformation(event):
    fields = event["outputs"][0]["facets"]["columnLineage"]["fields"].values()
    return next(own["inputFields"][0] for own in fields if own["inputFields"])["transformations"][0]


def main(path):
    events = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    for event in events:
        made = Serde.to_dict(read(RunEvent, event))
        assert written(made) == written(event), (made, event)
    for number, event in enumerate(wrong(events[0])):
        try:
            read(RunEvent, event)
        except (ValueError, TypeError):
            continue
        raise AssertionError(f"fault {number} was not noticed")
    print(len(events))


if __name__ == "__main__":
    main(*sys.argv[1:])

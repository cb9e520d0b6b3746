"""Whether an import lists all of a contract: contracts.py CONTRACT IMPORT_JSON

It reads the contract by itself, with PyYAML, and shares no code with Alpheus. Each value, and each table, property, tag
and rule as a whole, must be in exactly one list, with a reason. Nothing else may be. The entry of a named part has its name.
"""

import json
import re
import sys

import yaml

# What the standards call lists, or maps by name, of tables, properties and rules.
TABLES = {"schema", "models", "tables", "seeds", "snapshots"}
PROPERTIES = {"properties", "fields", "columns"}
RULES = {"quality", "tests", "data_tests", "constraints", "domainRules", "migrationRules", "encodingRules"}
# The checks of a table in the language SodaCL, under a key of any name.
CHECKS = re.compile(r'(^|\.)specification(\.[\w$-]+|\["[^"]*"\])$')


class Texts(yaml.SafeLoader):
    """Numbers, dates and words such as `no` stay texts."""


Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in all_of if tag == "tag:yaml.org,2002:merge"]
    for first, all_of in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def opened(node):
    """A registry has a schema as a text of JSON."""
    if isinstance(node, dict) and isinstance(node.get("schema"), str):
        try:
            return {**node, "schema": json.loads(node["schema"])}
        except ValueError:
            pass
    return node


def step(path, key):
    plain = re.fullmatch(r"[\w$-]+", key)
    if plain:
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def walk(node, path, kind, parts):
    """Notes each part: its path, what it is, and its name."""
    is_leaf = not isinstance(node, (dict, list)) or not node
    if is_leaf or kind:
        name = node.get("name") if isinstance(node, dict) else None
        parts[path or "$"] = (kind or "value", name if isinstance(name, str) else None)
    if isinstance(node, list):
        for place, item in enumerate(node):
            walk(item, f"{path}[{place}]", item_kind(path), parts)
    elif isinstance(node, dict):
        for key, value in node.items():
            below = step(path, key)
            walk(value, below, entry_kind(path), parts)
            if below in parts and entry_kind(path) and parts[below][1] is None:
                parts[below] = (parts[below][0], key)


def last(path):
    return re.split(r"[.\[]", path)[-1].strip(']"')


def item_kind(path):
    """What an item of the list at this path is."""
    if CHECKS.search(path):
        return "rule"
    kinds = {"table": TABLES, "property": PROPERTIES, "rule": RULES, "tag": {"tags", "confluent:tags"}}
    return next((kind for kind, keys in kinds.items() if last(path) in keys), None)


def entry_kind(path):
    """What an entry of the map at this path is: a table or property by its name."""
    if path == "models":
        return "table"
    is_metadata = path in {"metadata.properties", "defaultMetadata.properties"}
    return "property" if last(path) in {"fields", "properties"} and not is_metadata else None


def main():
    contract, report = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
    report, parts = json.loads(report), {}
    walk(opened(yaml.load(contract, Texts)), "", None, parts)
    entries = [(name, entry) for name in ["carried", "not_carried"] for entry in report[name]]
    paths = [entry["path"] for _, entry in entries]
    faults = [f"{path} stands twice" for path in sorted(set(paths)) if paths.count(path) > 1]
    faults += [f"{path} ({kind}) is in neither list" for path, (kind, _) in parts.items() if path not in paths]
    holders = {"$"}.union(outer for path in parts for outer in outers(path))
    faults += [f"{path} is in a list and not in the contract" for path in paths if path not in parts and path not in holders]
    faults += [f"{entry['path']} has no reason" for _, entry in entries if not entry["why"].strip()]
    for _, entry in entries:
        kind, name = parts.get(entry["path"], (None, None))
        if kind in {"table", "property"} and name and name not in entry["path"] + " " + entry.get("of", ""):
            faults.append(f"{entry['path']} does not say that it is {name}")
    print("\n".join(faults) or json.dumps(count(parts)))
    sys.exit(1 if faults else 0)


def outers(path):
    """The paths of what holds a part. A name in quotes may have any characters."""
    for cut in re.finditer(r"[.\[]", path):
        yield path[: cut.start()]


def count(parts):
    kinds = [kind for kind, _ in parts.values()]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


if __name__ == "__main__":
    main()

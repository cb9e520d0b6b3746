"""What the program is made of: its crates by cargo, as a bill of materials and as a list of licences."""

import hashlib
import json
import pathlib
import re
import subprocess
import uuid

LICENCE_FILES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# C code that crates bring along, and build: the crate, and what is in it.
BUNDLED = {
    "rdkafka-sys": ("librdkafka", "BSD-2-Clause"),
    "libmimalloc-sys": ("mimalloc", "MIT"),
}


def shipped(root, features, target):
    """The crates linked into the program, as `cargo metadata` describes them: not those that only build or test it."""
    tree = run(root, "tree", "--locked", "--package", "alpheus", "--features", features, "--target", target,
               "--edges", "normal", "--prefix", "none", "--format", "{p}")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    metadata = json.loads(run(root, "metadata", "--format-version", "1", "--locked", "--filter-platform", target,
                              "--features", f"alpheus/{features}"))
    packages = [one for one in metadata["packages"] if (one["name"], "v" + one["version"]) in wanted]
    return sorted(packages, key=lambda one: (one["name"], one["version"]))


def run(root, *arguments):
    """What cargo prints."""
    return subprocess.run(["cargo", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def checksums(root):
    """The registry's SHA-256 of each crate, from Cargo.lock."""
    found = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"',
                       (root / "Cargo.lock").read_text())
    return {(name, version): checksum for name, version, checksum in found}


def component(package, sums):
    """A crate in CycloneDX."""
    name, version = package["name"], package["version"]
    own = package["source"] is None
    read = {
        "type": "library",
        "bom-ref": f"crate:{name}@{version}",
        "name": name,
        "version": version,
        "description": (package["description"] or "").strip(),
        "licenses": [{"expression": (package["license"] or "").replace("/", " OR ")}],
    }
    if not own:
        read["purl"] = f"pkg:cargo/{name}@{version}"
        read["hashes"] = [{"alg": "SHA-256", "content": sums[(name, version)]}]
    if package["repository"]:
        read["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    if name in BUNDLED:
        read["components"] = [bundled(*BUNDLED[name], version)]
    return read


def bundled(name, licence, crate_version):
    """C code in a crate, whose version is the crate's after the `+`, if it says so."""
    return {"type": "library", "bom-ref": f"bundled:{name}", "name": name,
            "version": crate_version.partition("+")[2] or "as in the crate", "licenses": [{"expression": licence}]}


def system(debs):
    """Libraries of Debian that the program is linked to when it starts."""
    return [{"type": "library", "bom-ref": f"deb:{name}", "name": name, "version": version,
             "purl": f"pkg:deb/debian/{name}@{version}?arch=amd64"} for name, version in debs]


def bill(root, version, packages, debs, rust):
    """The bill of materials, in CycloneDX 1.5. The same inputs give the same bytes."""
    sums = checksums(root)
    components = [component(one, sums) for one in packages if one["name"] != "alpheus"]
    components.append({"type": "library", "bom-ref": "rust:std", "name": "rust-std", "version": rust,
                       "licenses": [{"expression": "MIT OR Apache-2.0"}]})
    components += system(debs)
    main = {"type": "application", "bom-ref": "alpheus", "name": "alpheus", "version": version,
            "licenses": [{"expression": "Apache-2.0"}]}
    body = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": main}, "components": components,
            "dependencies": [{"ref": "alpheus", "dependsOn": [one["bom-ref"] for one in components]}]}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
    body["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def licence_files(package):
    """Texts of licences and notices in a crate and in the C code below it."""
    folder = pathlib.Path(package["manifest_path"]).parent
    depth = 3 if package["name"] in BUNDLED else 1
    files = [file for level in range(1, depth + 1) for file in folder.glob("/".join("*" * level))
             if LICENCE_FILES.match(file.name) and file.is_file() and file.suffix not in (".rs", ".py", ".h", ".c")]
    return [file.read_text(errors="replace").strip() for file in sorted(files)]


def licences(packages):
    """All licences, each text once with the crates that it is of. A crate without a text is listed all the same."""
    texts, without = {}, []
    for package in (one for one in packages if one["source"]):
        name = f"{package['name']} {package['version']}"
        found = licence_files(package)
        without += [] if found else [f"{name}: {package['license']}"]
        for text in found:
            texts.setdefault(text, []).append(name)
    lines = ["Alpheus is under the Apache License 2.0. It is linked with the crates below, which are under their own.", "",
             *(f"{one['name']} {one['version']}: {one['license']}" for one in packages if one["source"])]
    if without:
        lines += ["", "These crates bring no text of their licence:", "", *without]
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        lines += ["", "=" * 100, "Of: " + ", ".join(names), "-" * 100, text]
    return "\n".join(lines) + "\n"

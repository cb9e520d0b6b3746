#!/usr/bin/env python3
"""Checks the files of deploy/ as far as this machine can: `make deploy`.

Our own rules read the Containerfiles and the compose file. They know the formats' keywords, and check that every file,
stage, service and volume that is named exists. Helm renders the chart if it is installed, otherwise Go's template
engine, which Helm uses too. The result must be YAML of known kinds. With neither, the check says so and only looks for
unmatched brackets in the chart.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
CHART = HERE / "helm" / "alpheus"
# The service and hosts of controllers.
STREAMS = HERE / "helm" / "alpheus-streams"
# Where the commands at the head of compose files write keys: one folder each for those who run, and the authority's.
IDENTITIES = pathlib.PurePosixPath("conf/identity")
SECRETS = ("deploy/pki", "deploy/conf/identity", "pki")
# The version of Kubernetes whose schemas objects are held to.
KUBERNETES = "1.31"

INSTRUCTIONS = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "ONBUILD", "RUN",
    "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}
SERVICE_KEYS = {
    "build", "command", "depends_on", "entrypoint", "environment", "healthcheck", "image", "ports", "restart",
    "volumes",
}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
KINDS = {
    "ConfigMap": "v1", "Deployment": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1", "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1", "Service": "v1", "ServiceAccount": "v1", "StatefulSet": "apps/v1",
}
# Without these a restarted job begins without its state.
NEEDED_TO_COME_AGAIN = {
    "execution.checkpointing.dir", "execution.checkpointing.externalized-checkpoint-retention", "high-availability.type",
    "high-availability.storageDir", "kubernetes.cluster-id",
}

faults = []


def fault(file, what):
    """Records a fault in a file."""
    faults.append(f"{file}: {what}")


def instructions(text):
    """A Containerfile's instructions: a backslash at the end continues a line; comments are skipped."""
    whole = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or (not line.strip() and not whole):
            continue
        whole += line.rstrip("\\") if line.endswith("\\") else line
        if not line.endswith("\\"):
            yield whole.strip()
            whole = ""
    if whole:
        yield whole.strip()


def containerfile(path):
    """Checks one Containerfile."""
    stages, first = set(), True
    for line in instructions(path.read_text()):
        name, _, rest = line.partition(" ")
        if name.upper() not in INSTRUCTIONS or name != name.upper():
            fault(path.name, f"no instruction: {name}")
        if first and name not in ("FROM", "ARG"):
            fault(path.name, "the first instruction is not FROM")
        first = first and name == "ARG"
        if name == "FROM":
            stage = re.fullmatch(r"(\S+:\S+|\S+)(?: AS (\S+))?", rest)
            if not stage:
                fault(path.name, f"cannot be read: {line}")
            elif ":" not in stage[1] and stage[1] not in stages:
                fault(path.name, f"no version, and no stage: {stage[1]}")
            elif stage[2]:
                stages.add(stage[2])
        if name in ("COPY", "ADD"):
            copied(path, rest.split(), stages)
        if name in ("CMD", "ENTRYPOINT") and not isinstance(yaml.safe_load(rest), list):
            fault(path.name, f"{name} is no list")


def copied(path, words, stages):
    """What is copied exists in the repository or in an earlier stage."""
    source = next((word[len("--from="):] for word in words if word.startswith("--from=")), None)
    names = [word for word in words if not word.startswith("--")]
    if len(names) < 2:
        fault(path.name, f"COPY {' '.join(words)}: from where to where?")
    if source is not None and source not in stages:
        fault(path.name, f"no stage {source}")
    for name in names[:-1] if source is None else []:
        if name != "." and not list(ROOT.glob(name)):
            fault(path.name, f"nothing called {name} is in the repository")


def compose(path):
    """Checks the compose file."""
    read = yaml.safe_load(path.read_text())
    services, volumes = read["services"], read.get("volumes", {})
    for unknown in set(read) - {"name", "services", "volumes"}:
        fault(path.name, f"unknown key {unknown}")
    for name, service in services.items():
        where = f"{path.name}, {name}"
        for unknown in set(service) - SERVICE_KEYS:
            fault(where, f"unknown key {unknown}")
        if not {"image", "build"} & set(service):
            fault(where, "neither image nor build")
        needs = service.get("depends_on", [])
        for need in needs:
            if need not in services:
                fault(where, f"no service {need}")
            if isinstance(needs, dict):
                condition(where, needs[need]["condition"], services.get(need, {}))
        for port in service.get("ports", []):
            if not port.startswith("127.0.0.1:"):
                fault(where, f"port {port} is not on loopback alone")
        for volume in service.get("volumes", []):
            mounted(path, where, volume.split(":")[0], volumes)
            its_own(where, name, volume.split(":")[0], service)
            kept(where, volume, service)
        if "build" in service and not (path.parent / service["build"]["context"] / service["build"]["dockerfile"]).is_file():
            fault(where, "its Containerfile is not there")


def condition(where, said, needed):
    """A condition is known, and can become true."""
    if said not in CONDITIONS:
        fault(where, f"unknown condition {said}")
    if said == "service_healthy" and "healthcheck" not in needed:
        fault(where, "waits for the health of a service that has no health check")


def kept(where, volume, service):
    """A volume holds what its service writes, and the service may write there."""
    source, target = volume.split(":")[:2]
    if source.startswith((".", "/")):
        return
    settings = str(service.get("environment", {}))
    if not re.search(rf"(_DIRS'|_STATE'|\.dir): ('|file://){re.escape(target)}\b", settings):
        fault(where, f"no setting writes into {target}")
    made = (HERE / "Containerfile.job").read_text()
    if service["image"] == "alpheus":
        made = (HERE / "Containerfile.alpheus").read_text()
        if f"--home-dir {target} " not in made:
            fault(where, f"its user may not write into {target}: the image does not create it")
    if service["image"] == "alpheus-job" and not re.search(rf"mkdir {target} && chown flink:flink {target}", made):
        fault(where, f"its user may not write into {target}: the image does not create it")


def its_own(where, name, source, service):
    """A process sees its own identity and no other's; all workers are one party."""
    folder = pathlib.PurePosixPath(source)
    is_all = folder in (pathlib.PurePosixPath("conf"), IDENTITIES, *IDENTITIES.parents)
    if service.get("image") == "alpheus" and source.startswith(".") and is_all:
        fault(where, f"sees the keys of others: {source}")
    if IDENTITIES in folder.parents and folder.name != name.split("-")[0]:
        fault(where, f"sees the keys of another: {source}")


def kept_out():
    """No key of a deployment comes into an image or into the repository."""
    for name in (".dockerignore", ".gitignore"):
        lines = {line.strip("/") for line in (ROOT / name).read_text().split()}
        for folder in SECRETS:
            if folder not in lines:
                fault(name, f"{folder} is not left out, and has keys")


def mounted(path, where, source, volumes):
    """A volume is declared, or its folder exists."""
    # Identities are made by the commands at the head of the file.
    if source.startswith(".") and "conf/identity/" not in source and not (path.parent / source).exists():
        fault(where, f"no folder {source}")
    if not source.startswith((".", "/")) and source not in volumes:
        fault(where, f"no volume {source}")


def rendered(chart=CHART, more="values.yaml"):
    """A chart as Kubernetes gets it, for every set of values that changes a branch; empty if nothing can render it."""
    values = str(HERE / "check" / more)
    if shutil.which("helm"):
        commands = [["helm", "template", "demo", str(chart)]]
        commands += [commands[0] + ["--values", values]]
        subprocess.run(["helm", "lint", "--strict", str(chart)], check=True, capture_output=True)
    elif shutil.which("go"):
        commands = [["go", "run", str(HERE / "check" / "render.go"), str(chart), *rest] for rest in ([], [values])]
    else:
        return []
    return [run(command, chart) for command in commands]


def run(command, chart):
    """A command's output. A failure is a fault."""
    values = [word for word in command if command[0] == "go" and word.endswith(".yaml")]
    merged = merge(yaml.safe_load((chart / "values.yaml").read_text()),
                   yaml.safe_load(pathlib.Path(values[0]).read_text()) if values else {})
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    # The engine alone reads no YAML: it gets the values as JSON.
    given = None
    if command[0] == "go":
        given = json.dumps({"Values": merged, "Chart": {"AppVersion": about["appVersion"], "Name": about["name"]}})
        command = command[:4]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    if done.returncode != 0:
        fault("helm", done.stderr.strip())
    return done.stdout


def merge(base, over):
    """Merges values over values, as Helm does."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return base | {key: merge(base.get(key), value) for key, value in over.items()}


def chart(texts):
    """Checks the rendered chart."""
    for text in texts:
        objects = [each for each in yaml.safe_load_all(text) if each]
        if len(objects) != len(KINDS):
            fault("helm", f"renders to {len(objects)} objects, not {len(KINDS)}")
        config = next((each for each in objects if each["kind"] == "ConfigMap"), {"data": {}})
        for each in objects:
            if KINDS.get(each["kind"]) != each["apiVersion"]:
                fault("helm", f"unknown kind {each['apiVersion']} {each['kind']}")
            if each["kind"] in ("StatefulSet", "Deployment"):
                pods(each, config)
                comes_again(each, objects)
                is_closed(each, objects)
        if "job.properties" not in config["data"]:
            fault("helm", "the job has no settings")


def streams(texts):
    """Checks the rendered chart of the service and its hosts."""
    for text in texts:
        objects = [each for each in yaml.safe_load_all(text) if each]
        config = next((each for each in objects if each["kind"] == "ConfigMap"), None)
        owners = [each for each in objects if each["kind"] == "StatefulSet"]
        if config is None or "schema.yaml" not in config["data"] or not owners:
            fault("helm", "no schema, or nothing that runs")
            continue
        for each in objects:
            if KINDS.get(each["kind"]) != each["apiVersion"]:
                fault("helm", f"unknown kind {each['apiVersion']} {each['kind']}")
        for owner in owners:
            pods(owner, config)
            one(owner, objects)
        for workers in (each for each in objects if each["kind"] == "Deployment"):
            pods(workers, config)
            many(workers)


def many(workers):
    """Processes that share a group have no state of their own, and old ones end before new ones start."""
    name, spec = workers["metadata"]["name"], workers["spec"]["template"]["spec"]
    if workers["spec"]["strategy"]["type"] != "Recreate":
        fault("helm", f"{name}: processes of two versions at once")
    if any("persistentVolumeClaim" in volume for volume in spec["volumes"]):
        fault("helm", f"{name}: processes that share a disk")
    main = spec["containers"][0]
    paths = {probe: main[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")}
    if paths != {"livenessProbe": "/livez", "readinessProbe": "/readyz"}:
        fault("helm", f"{name}: liveness and readiness are not apart: {paths}")
    if "emptyDir" not in next(each for each in spec["volumes"] if each["name"] == "identity"):
        fault("helm", f"{name}: keys that a group may read")
    settings(name, main["env"])
    projected = [own["secret"]["name"] for each in spec["volumes"] for own in each.get("projected", {}).get("sources", [])]
    if any("service" in secret for secret in projected):
        fault("helm", f"{name}: a worker has the service's own keys: {projected}")


def one(owner, objects):
    """One process has a state, its keys lie in memory, and its service leads to it."""
    name, spec = owner["metadata"]["name"], owner["spec"]["template"]["spec"]
    if owner["spec"]["replicas"] != 1:
        fault("helm", f"{name}: two processes of one state")
    if "serviceAccountName" in spec or spec.get("automountServiceAccountToken") is not False:
        fault("helm", f"{name} may ask Kubernetes, and need not")
    claims = {claim["metadata"]["name"] for claim in owner["spec"]["volumeClaimTemplates"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for container in spec["initContainers"] + spec["containers"]:
        mounted = {mount["name"]: mount for mount in container["volumeMounts"]}
        for missing in mounted.keys() - volumes.keys() - claims:
            fault("helm", f"{name}: no volume {missing}")
        if not container["securityContext"]["readOnlyRootFilesystem"]:
            fault("helm", f"{name} may write into its image")
    main = spec["containers"][0]
    if "state" not in claims or "emptyDir" not in volumes["identity"]:
        fault("helm", f"{name} has no state, or keys that a group may read")
    paths = {probe: main[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")}
    if paths != {"livenessProbe": "/livez", "readinessProbe": "/readyz"}:
        fault("helm", f"{name}: liveness and readiness are not apart: {paths}")
    leads = [each for each in objects if each["kind"] == "Service" and each["metadata"]["name"] == name]
    labels = owner["spec"]["template"]["metadata"]["labels"]
    if len(leads) != 1 or not leads[0]["spec"]["selector"].items() <= labels.items():
        fault("helm", f"{name}: its service does not lead to it")
    settings(name, main["env"])


def settings(name, env):
    """Each variable is a setting that the program knows."""
    known = (ROOT / "docs/reference/settings.md").read_text() + (ROOT / "docs/operating.md").read_text()
    for each in env:
        key = each["name"].removeprefix("ALPHEUS_").lower().replace("__", ".").replace("_", "-")
        if key.split(".")[-1] not in known:
            fault("helm", f"{name}: nothing reads {each['name']}")


def schemas(texts):
    """Holds objects to Kubernetes's own schemas, if the package with them is there."""
    try:
        import kubernetes_validate
    except ImportError:
        print("note: kubernetes-validate is not installed: objects were not held to Kubernetes's schemas")
        return
    for each in (each for text in texts for each in yaml.safe_load_all(text) if each):
        try:
            kubernetes_validate.validate(each, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            fault("helm", f"{each['kind']} {each['metadata']['name']}: {'.'.join(map(str, error.path))}: {error.message}")


def pods(owner, config):
    """Selectors find their pods, and mounts their volumes."""
    template = owner["spec"]["template"]
    wanted = owner["spec"]["selector"]["matchLabels"]
    if not wanted.items() <= template["metadata"]["labels"].items():
        fault("helm", f"{owner['kind']} does not select its own pods")
    if template["spec"]["securityContext"].get("seccompProfile") != {"type": "RuntimeDefault"}:
        fault("helm", f"{owner['kind']} {owner['metadata']['name']} may make any system call")
    volumes = {each["name"]: each for each in template["spec"]["volumes"]}
    claims = {claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates", [])}
    for container in template["spec"]["containers"]:
        for mount in container["volumeMounts"]:
            if mount["name"] not in volumes.keys() | claims:
                fault("helm", f"no volume {mount['name']}")
    if volumes["conf"]["configMap"]["name"] != config["metadata"]["name"]:
        fault("helm", "the configuration that is mounted is not there")


def comes_again(owner, objects):
    """Flink finds its last checkpoint, and may record which one it is."""
    spec = owner["spec"]["template"]["spec"]
    account = spec.get("serviceAccountName")
    if spec.get("automountServiceAccountToken") is False or account not in named("ServiceAccount", objects):
        fault("helm", f"{owner['kind']} has no account to keep its leader and checkpoints by")
    bound = [(each["roleRef"]["name"], subject["name"]) for each in objects if each["kind"] == "RoleBinding"
             for subject in each["subjects"]]
    if not any(role in named("Role", objects) and name == account for role, name in bound):
        fault("helm", f"{owner['kind']}'s account may do nothing")
    for missing in sorted(NEEDED_TO_COME_AGAIN - set(flink_settings(spec["containers"][0]["env"]))):
        fault("helm", f"{owner['kind']} lacks {missing}: a job that comes again would begin without its state")


def is_closed(owner, objects):
    """Only the release's own pods reach Flink's ports, nobody gives it other jobs, and a pod that hangs is noticed."""
    labels = owner["spec"]["template"]["metadata"]["labels"]
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    own = [each for each in policies if each["podSelector"]["matchLabels"].items() <= labels.items()]
    peers = [peer for each in own for rule in each["ingress"] for peer in rule["from"]]
    if not peers or any(peer.keys() != {"podSelector"} or not peer["podSelector"].get("matchLabels") for peer in peers):
        fault("helm", f"{owner['kind']}: any pod reaches its ports")
    main = owner["spec"]["template"]["spec"]["containers"][0]
    if not {"livenessProbe", "readinessProbe"} <= main.keys():
        fault("helm", f"{owner['kind']}: nobody notices if it hangs")
    flink = flink_settings(main["env"])
    if flink.get("web.submit.enable") is not False or flink.get("web.cancel.enable") is not False:
        fault("helm", f"{owner['kind']}: who reaches its web page may run other programs in it")


def named(kind, objects):
    """Names of the objects of a kind."""
    return {each["metadata"]["name"] for each in objects if each["kind"] == kind}


def flink_settings(env):
    """The Flink settings in its variable."""
    return yaml.safe_load(next(each["value"] for each in env if each["name"] == "FLINK_PROPERTIES"))


def brackets():
    """Checks templates without an engine."""
    for path in sorted((HERE / "helm").glob("*/templates/*")):
        text = path.read_text()
        if text.count("{{") != text.count("}}"):
            fault(path.name, "{{ and }} do not match")


def main():
    """Checks everything, and reports what was not checked."""
    for path in sorted(HERE.glob("Containerfile.*")):
        containerfile(path)
    for path in sorted(HERE.glob("compose*.yaml")):
        compose(path)
    kept_out()
    brackets()
    texts = rendered()
    if not texts:
        print("note: neither helm nor go is installed: the chart was not rendered")
    chart(texts)
    services = rendered(STREAMS, "values-streams.yaml")
    streams(services)
    schemas(texts + services)
    for each in faults:
        print(f"error: {each}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

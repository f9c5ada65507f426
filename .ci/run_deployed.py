#!/usr/bin/env python3
"""Runs what the chart and the compose file describe, without a cluster and without images: see containers.py.

 - The chart with ci/minimal.yaml and with ci/full.yaml: every pod is a process with the volumes, Secrets, variables and arguments
   of its manifest, at an address of loopback. Blocks are submitted over TLS and come out of a sequencer; probes answer; a
   sequencer that starts again on its disk goes on. With full.yaml three NATS servers with TLS form a cluster, one of them
   and the coordinator that leads are killed, and an engine proves for a client. SIGTERM ends every role in time.
 - compose.yaml, after prepare.sh: the same, with certificates and users of deploy/nats/cluster.conf.

It needs root on Linux, nats-server (make nats-server), openssl and PyYAML; without them it says so and does nothing.
"""

import argparse
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import containers
from containers import Container, Host, wait_for

REPOSITORY = Path(__file__).resolve().parent.parent
CHART = REPOSITORY / "deploy/helm/proofmill"
NAME = "release-proofmill"
FIXTURES = REPOSITORY / "crates/groth16/tests/fixtures/bn254"
NATS_SERVER = REPOSITORY / "crates/nats-server/bin/nats-server"
BLOCKS = 6
# Names of pods and services that run a role.
ROLES = re.compile(r"\b(coordinator|standby|dispatcher|prove|collector|sequencer|source)\b")
# What full.yaml has and this machine has not, a bucket; and subjects with another first word.
FULL_SETTINGS = ["bus.blobs=", "bus.blobsSecret=", "bus.prefix=chain_a"]
# Longest time for a role with nothing to do to end, in seconds.
END = 20


# --- Volumes, as a kubelet makes them


class Kubelet:
    """Folders for the volumes of pods, kept by the name of the claim or of the pod and the volume."""

    def __init__(self, folder, objects, secrets):
        self.folder = folder
        self.folder.mkdir()
        self.objects = objects
        self.secrets = secrets

    def volume(self, pod, volume, context, address):
        """The folder of a volume, and whether it may be written."""
        group = context["fsGroup"]
        if "emptyDir" in volume:
            return self.writable(f"{pod}-{volume['name']}", context, 0o777), True
        if "persistentVolumeClaim" in volume:
            return self.writable(volume["persistentVolumeClaim"]["claimName"], context, 0o755), True
        if "configMap" in volume:
            data = self.objects["ConfigMap", volume["configMap"]["name"]]["data"]
            data = {name: text.replace("0.0.0.0", address) for name, text in data.items()}
            return self.files(f"{pod}-{volume['name']}", data, volume["configMap"].get("defaultMode", 0o644), group), False
        data = self.secrets[volume["secret"]["secretName"]]
        return self.files(f"{pod}-{volume['name']}", data, volume["secret"]["defaultMode"], group), False

    def writable(self, name, context, mode):
        """A folder of root. A kubelet gives it to the group of the pod (fsGroup): at every start with all that is in it, or,
        with the policy OnRootMismatch, once."""
        path = self.folder / name
        if not path.exists():
            path.mkdir()
            path.chmod(mode)
        elif context.get("fsGroupChangePolicy") == "OnRootMismatch":
            return path
        for inside in (path, *path.rglob("*")):
            os.chown(inside, -1, context["fsGroup"])
            inside.chmod(inside.stat().st_mode | (0o2770 if inside.is_dir() else 0o660))
        return path

    def files(self, name, data, mode, group):
        """Files behind links, as a kubelet writes them."""
        path = self.folder / name
        if not path.exists():
            real = path / "..2026"
            real.mkdir(parents=True)
            (path / "..data").symlink_to("..2026")
            for key, text in data.items():
                (real / key).write_text(text)
                os.chown(real / key, 0, group)
                (real / key).chmod(mode | 0o440)
                (path / key).symlink_to(f"..data/{key}")
            for folder in (path, real):
                os.chown(folder, 0, group)
                folder.chmod(0o2775)
        return path


def container_of(kubelet, document, number, address):
    """The container of a pod of a Deployment or a StatefulSet, with an address of loopback for 0.0.0.0."""
    name = f"{document['metadata']['name']}-{number}"
    spec = document["spec"]["template"]["spec"]
    context = spec["securityContext"]
    [made] = spec["containers"]
    volumes = list(spec["volumes"])
    for claim in document["spec"].get("volumeClaimTemplates", []):
        volume = claim["metadata"]["name"]
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}})
    volumes = {volume["name"]: kubelet.volume(name, volume, context, address) for volume in volumes}
    mounts = {}
    for mount in made["volumeMounts"]:
        source, writable = volumes[mount["name"]]
        mounts[mount["mountPath"]] = (str(source / mount.get("subPath", "")), writable and not mount.get("readOnly"))
    environment = {}
    for variable in made.get("env", []):
        reference = variable.get("valueFrom", {})
        if "secretKeyRef" in reference:
            value = kubelet.secrets[reference["secretKeyRef"]["name"]][reference["secretKeyRef"]["key"]]
        else:
            value = name if "fieldRef" in reference else variable["value"]
        environment[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], value)
    command = [word.replace("0.0.0.0", address) for word in made.get("command", ["proofmill"]) + made["args"]]
    return Container(name, command, environment, mounts, context["runAsUser"], context["runAsGroup"], [context["fsGroup"]],
                     folder=made.get("workingDir", "/"))


# --- The chart


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certificate(folder, names):
    """A certificate of a new authority for all `names`: what a Secret for TLS has."""
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl(folder, "req", "-x509", *new, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt",
            "-addext", "keyUsage=critical,keyCertSign")
    openssl(folder, "req", "-new", *new, "-subj", "/CN=pod", "-keyout", "tls.key", "-out", "tls.csr")
    (folder / "tls.ext").write_text(f"subjectAltName={','.join(names)}\nextendedKeyUsage=serverAuth,clientAuth\n")
    openssl(folder, "x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "tls.ext", "-out", "tls.crt")
    return {name: (folder / name).read_text() for name in ("ca.crt", "tls.crt", "tls.key")}


def probe(container, kind, address):
    """Makes the probe of a container: True if it succeeds, or if there is none."""
    stated = container.get(kind)
    if not stated:
        return True
    target = stated.get("httpGet") or stated["tcpSocket"]
    [port] = [port["containerPort"] for port in container["ports"] if port["name"] == target["port"]]
    if "httpGet" in stated:
        return answers(f"http://{address}:{port}{target['path']}")
    return listens(address, port)


def listens(address, port):
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def answers(url):
    return page(url) != ""


def page(url):
    """The text of a page; empty if it does not answer with 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.read().decode() if answer.status == 200 else ""
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def wait_for_roles(host):
    """Until every role has said that it is ready: from then on SIGTERM drains it."""
    for name in host.running:
        wait_for(f"{name} to be ready", lambda: not ROLES.search(name) or ": ready" in host.log(name), host)


def submit(url, authority, token, blocks):
    context = ssl.create_default_context(cafile=str(authority))
    for block in blocks:
        body = json.dumps({"block": block, "payload": {"n": block}}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{url}/v1/queues/blocks/messages", body, headers)
        for again in range(3):
            try:
                with urllib.request.urlopen(request, timeout=40, context=context) as answer:
                    assert answer.status in (200, 201), answer.status
                break
            except urllib.error.HTTPError as error:
                # Nobody leads for a moment. The source has waited for 30 s; sending again is safe.
                if error.code != 503 or again == 2:
                    raise


def emitted(folder, blocks):
    """Whether the sequencer has written files for exactly the first blocks, in order, with the number of each in its file."""
    following = 0
    for file in sorted(folder.glob("*.json")):
        first, last = map(int, file.stem.split("-")[:2])
        if first != following or not all(f'"n":{block}' in file.read_text().replace(" ", "") for block in range(first, last + 1)):
            return False
        following = last + 1
    return following == blocks


class Cluster:
    """The pods of a rendering, each with an address."""

    def __init__(self, helm, values, settings, folder, program, yaml):
        command = [helm, "template", "release", CHART, "--namespace", "chain", "--values", values]
        for setting in settings:
            command += ["--set", setting]
        made = subprocess.run(command, check=True, capture_output=True, text=True)
        documents = [document for document in yaml.safe_load_all(made.stdout) if document]
        objects = {(document["kind"], document["metadata"]["name"]): document for document in documents}
        self.pods, self.addresses = [], {}
        for document in documents:
            if document["kind"] in ("Deployment", "StatefulSet"):
                for number in range(document["spec"].get("replicas", 1)):
                    self.pods.append((document, number))
                    self.addresses[document["metadata"]["name"], number] = f"127.0.0.{len(self.pods) + 1}"
        names = {"localhost": "127.0.0.1"}
        for (name, number), address in self.addresses.items():
            names |= {name: address, f"{name}-{number}.{name}": address}
        tls = certificate(folder, [f"IP:{address}" for address in names.values()] + [f"DNS:{name}" for name in names])
        self.token = f"t{os.urandom(16).hex()}"
        secrets = {name: tls for name in ("submit-tls", "bus-servers", "bus-clients", "engine-tls", "scaler-tls")}
        secrets["engine-tokens"] = {"tokens": f"prover {self.token}\n"}
        secrets |= {"submit-tokens": {"tokens": f"rollup {self.token}\n"}, "bus-routes": {"password": "p1"}}
        for user in ("coordinator", "prove", "prover", "verifier", "collector", "sequencer", "source", "operator", "console"):
            secrets[f"{NAME}-bus-{user}"] = {"password": f"p{os.urandom(16).hex()}"}
        self.authority = folder / "ca.crt"
        self.kubelet = Kubelet(folder / "volumes", objects, secrets)
        self.host = Host(folder, {"proofmill": program, "nats-server": NATS_SERVER}, names)

    def start(self, document, number):
        address = self.addresses[document["metadata"]["name"], number]
        self.host.start(container_of(self.kubelet, document, number, address))

    def of(self, component):
        return [(document, number) for document, number in self.pods if document["metadata"]["name"] == f"{NAME}-{component}"]

    def submit(self, blocks):
        [address, *_] = [self.addresses[f"{NAME}-source", number] for _, number in self.of("source")]
        submit(f"https://{address}:9466", self.authority, self.token, blocks)

    def wait_for_emission(self, blocks):
        proofs = self.kubelet.folder / f"{NAME}-sequencer/state/proofs"
        wait_for(f"emission of {blocks} blocks", lambda: emitted(proofs, blocks), self.host)

    def fill_circuits(self):
        """The claim with the circuits of the engine, as its owner would fill it."""
        circuits = self.kubelet.folder / "circuits/circuits"
        circuits.mkdir(parents=True)
        shutil.copy(FIXTURES / "circuit.zkey", circuits / "multiplier.zkey")

    def prove(self, folder):
        """Has the engine prove, for a client with its token."""
        client = folder / "client"
        client.mkdir()
        shutil.copy(FIXTURES / "witness.wtns", client)
        shutil.copy(self.authority, client)
        (client / "token").write_text(self.token)
        for path in (client, *client.iterdir()):
            os.chown(path, 10001, 10001)
            path.chmod(0o700)
        engine = f"https://{NAME}-engine-0.{NAME}-engine:7400"
        command = ["proofmill", "engine", "prove", "multiplier", "/client/witness.wtns", "--output", "/client/proof.json",
                   "--engine", engine, "--ca", "/client/ca.crt", "--token", "/client/token"]
        status, said = self.host.run(Container("client", command, {}, {"/client": (str(client), True)}, 10001, 10001))
        assert status == 0 and (client / "proof.json").is_file(), f"no proof from the engine: {said}"

    def leader(self):
        """The coordinator that leads."""
        for document, number in self.of("coordinator"):
            # Those that stand by have none of the workflow's own metrics.
            if "proofmill_next_block{" in page(f"http://{self.addresses[f'{NAME}-coordinator', number]}:9464/metrics"):
                return number
        return None


def run_chart(helm, values, settings, program, folder, yaml):
    cluster = Cluster(helm, values, settings, folder, program, yaml)
    cluster.fill_circuits()
    with cluster.host as host:
        # All at once: roles wait for the servers.
        for document, number in reversed(cluster.pods):
            cluster.start(document, number)
        for document, number in cluster.pods:
            [container] = document["spec"]["template"]["spec"]["containers"]
            address = cluster.addresses[document["metadata"]["name"], number]
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                wait_for(f"{kind} of {document['metadata']['name']}", lambda: probe(container, kind, address), host)
        wait_for("a leader's metrics", lambda: cluster.leader() is not None, host)
        wait_for_roles(host)
        if cluster.of("console"):
            wait_for("the console's page", lambda: answers("http://127.0.0.1:9467/"), host)
        if cluster.of("engine"):
            cluster.prove(folder)
        cluster.submit(range(BLOCKS))
        cluster.wait_for_emission(BLOCKS)
        if len(cluster.of("nats")) > 1:
            # One server of three, and who leads.
            host.kill(f"{NAME}-nats-0")
            host.kill(f"{NAME}-coordinator-{cluster.leader()}")
        else:
            # On a disk that was used before, after a stop in time.
            host.stop(f"{NAME}-sequencer-0", END)
            cluster.start(*cluster.of("sequencer")[0])
            wait_for_roles(host)
        cluster.submit(range(BLOCKS, 2 * BLOCKS))
        cluster.wait_for_emission(2 * BLOCKS)
        for name in reversed(list(host.running)):
            status = host.stop(name, END)
            # A source that accepts messages never ends by itself: 130, as after Ctrl-C.
            expected = {0, 130} if "-source-" in name else {0, 1} if "-nats-" in name else {0}
            assert status in expected, f"{name} ended with {status}"
    return len(cluster.pods)


# --- The compose file


def run_compose(program, folder, yaml):
    shutil.copytree(REPOSITORY / "deploy", folder / "deploy", ignore=shutil.ignore_patterns("bin", "secrets", "state", ".env"))
    place = folder / "deploy/compose"
    subprocess.run(["./prepare.sh"], cwd=place, check=True, capture_output=True)
    settings = dict(line.split("=", 1) for line in (place / ".env").read_text().split())
    text = re.sub(r"\$\{(\w+)(?::[-?][^}]*)?\}", lambda found: settings.get(found[1], "image"), (place / "compose.yaml").read_text())
    compose = yaml.safe_load(text)
    services = {name: service for name, service in compose["services"].items() if not service.get("profiles")}
    user, group = int(settings["PROOFMILL_UID"]), int(settings["PROOFMILL_GID"])
    addresses = {name: f"127.0.0.{number + 2}" for number, name in enumerate(services)}
    # The name that the certificate for messages has, and the address that a health check in its container asks.
    addresses |= {"source": "127.0.0.1", "localhost": "127.0.0.1"}

    def container(name, service, command):
        environment = dict(service.get("environment", {}))
        for file in service.get("env_file", []):
            environment |= dict(line.split("=", 1) for line in (place / file).read_text().split())
        mounts = {}
        for source, target, *mode in (volume.split(":") for volume in service.get("volumes", [])):
            mounts[target] = (str((place / source).resolve()), mode != ["ro"])
        memory = {}
        for entry in service.get("tmpfs", []):
            target, _, options = entry.partition(":")
            memory[target] = "0700" if "mode=0700" in options else "1777"
        folder = "/var/lib/proofmill" if "/var/lib/proofmill" in {*mounts, *memory} else "/"
        command = [word.replace("0.0.0.0", addresses[name]) for word in command]
        return Container(name, command, environment, mounts, user, group, memory=memory, folder=folder)

    programs = {"proofmill": program, "nats-server": NATS_SERVER, "proofmill-health": REPOSITORY / "deploy/container/health.sh"}
    with Host(folder, programs, addresses) as host:
        for name, service in reversed(services.items()):
            command = service.get("command")
            if command:
                host.start(container(name, service, command if name == "nats" else ["proofmill", *command]))
        operator = container("operator", services["operator"], ["proofmill", "status", "--workflow", "chain", "--connect-timeout", "30s"])
        wait_for("the leader", lambda: host.run(operator)[0] == 0, host)
        wait_for_roles(host)
        wait_for("the source's port", lambda: listens("127.0.0.1", 9466), host)
        token = (place / "secrets/submit/tokens").read_text().split()[1]
        submit("https://localhost:9466", place / "secrets/authority/ca.pem", token, range(BLOCKS))
        wait_for("emission", lambda: emitted(place / "state/sequencer/state/proofs", BLOCKS), host)
        for name in ("prove", "source"):
            health = container(name, services[name], ["proofmill-health"])
            health.name = f"health-of-{name}"
            status, said = host.run(health)
            assert status == 0, f"the health check of {name}: {said}"
        running = list(host.running)
        for name in reversed(running):
            status = host.stop(name, END)
            assert status == 0 or (status == 130 and name == "source") or name == "nats", f"{name} ended with {status}"
    return len(running)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--helm", type=Path, required=True)
    options.add_argument("--yaml", type=Path, help="the folder of PyYAML")
    options.add_argument("--program", type=Path, required=True)
    options.add_argument("--keep", type=Path, help="the folder of the logs, which is kept")
    chosen = options.parse_args()
    lacking = containers.why_not() or next(
        (f"{tool} is not installed" for tool in ("openssl", NATS_SERVER) if not shutil.which(tool)), None)
    if lacking:
        print(f"note: the chart and compose.yaml are not run: {lacking}")
        return 0
    containers.isolate()
    if chosen.yaml:
        sys.path.insert(0, str(chosen.yaml))
    import yaml

    with tempfile.TemporaryDirectory(prefix="deployed-") as made:
        folder = chosen.keep or Path(made)
        runs = {"minimal": [], "full": FULL_SETTINGS, "compose": []}
        for name in runs:
            (folder / name).mkdir(parents=True)
        # The containers' users must reach what is in it.
        for path in (folder, *(folder / name for name in runs)):
            path.chmod(0o755)
        program = chosen.program.resolve()
        for name in ("minimal", "full"):
            pods = run_chart(chosen.helm.resolve(), CHART / f"ci/{name}.yaml", runs[name], program, folder / name, yaml)
            print(f"the chart, {name}.yaml: {pods} pods, {2 * BLOCKS} blocks emitted, every role ended in time")
        services = run_compose(program, folder / "compose", yaml)
        print(f"compose.yaml: {services} services, {BLOCKS} blocks emitted, every role ended in time")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks deploy/ and the pages about it against the program: metrics, rules, dashboards, run books.

 - docs/metrics.md lists exactly the metrics, with their types and labels, that a mill, an engine and a verifier serve:
   the program given by --program is started and asked.
 - Each metric in the rules of deploy/prometheus and the dashboards of deploy/grafana is in docs/metrics.md, or is made
   by a recording rule, and has the labels by which it is selected.
 - Each alert has a run book, a test in which it fires and one in which it does not.
 - With --promtool, each query of a dashboard parses.
 - Each query of a dashboard selects by the dashboard's variables, as far as its metrics have their labels.
 - Each panel has a title, a description and a unit; every data source of a dashboard is that of its variable.
 - Relative links of docs/metrics.md, docs/runbooks and the pages about deployments lead to pages and headings that exist.

It needs nothing but Python 3.9. The exit status is 1 if something is wrong.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
METRICS_PAGE = "docs/metrics.md"
RULES = "deploy/prometheus/proofmill.rules.yaml"
RULES_TEST = "deploy/prometheus/proofmill.test.yaml"
DASHBOARDS = "deploy/grafana"
RUN_BOOKS = "docs/runbooks"
DEPLOYMENT_PAGES = ["docs/deploy.md", "docs/kubernetes.md", "deploy/README.md", "deploy/helm/proofmill/README.md"]
FIXTURES = "crates/groth16/tests/fixtures/bn254"
# How long a service may take until its page has what is waited for, in seconds.
READY = 120

# Metrics that Prometheus makes itself, and the labels that it adds to every series.
OWN_METRICS = {"up": set()}
OWN_LABELS = {"instance", "job"}
# The data source of a dashboard's variable, as panels and queries name it.
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
HISTOGRAM_SERIES = ("_bucket", "_sum", "_count")

# --- Metrics of the documentation and of real pages


def documented(text):
    """The metrics of docs/metrics.md: name to (type, labels)."""
    metrics = {}
    row = re.compile(r"^\| `(proofmill_\w+)` \| (gauge|counter|histogram) \|(.*?)\| [^|]+ \| .+ \|$")
    for line in text.split("\n"):
        found = row.match(line)
        if found:
            if found[1] in metrics:
                raise ValueError(f"{METRICS_PAGE} lists {found[1]} twice")
            metrics[found[1]] = (found[2], frozenset(re.findall(r"`(\w+)`", found[3])))
        elif line.startswith("| `proofmill_"):
            raise ValueError(f"{METRICS_PAGE}: this row is not `| name | type | labels | unit | meaning |`: {line}")
    return metrics


def served(page):
    """The metrics of a page in the OpenMetrics format: name, as Prometheus has it, to (type, labels)."""
    types, labels = {}, {}
    for line in page.split("\n"):
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        elif line and not line.startswith("#"):
            name, inside = re.match(r"([\w:]+)(?:\{(.*)\})? ", line).groups()
            names = re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', inside or "")
            family = next(family for family in families(name) if family in types)
            labels.setdefault(family, set()).update(set(names) - {"le"})
    suffix = {"counter": "_total"}
    return {name + suffix.get(kind, ""): (kind, frozenset(labels.get(name, ()))) for name, kind in types.items()}


def families(series):
    """The names of the metrics that a series may belong to."""
    yield series
    for suffix in ("_total", *HISTOGRAM_SERIES):
        if series.endswith(suffix):
            yield series.removesuffix(suffix)


def compare_metrics(stated, real):
    """What docs/metrics.md and the real pages disagree about."""
    for name in sorted(real.keys() - stated.keys()):
        yield f"{METRICS_PAGE} does not list {name}, a {real[name][0]} with the labels {sorted(real[name][1])}"
    for name in sorted(stated.keys() - real.keys()):
        yield f"{METRICS_PAGE} lists {name}, which no page has"
    for name in sorted(stated.keys() & real.keys()):
        if stated[name] != real[name]:
            told = [f"a {kind} with the labels {sorted(labels)}" for kind, labels in (stated[name], real[name])]
            yield f"{METRICS_PAGE} says that {name} is {told[0]}; it is {told[1]}"


# --- PromQL

TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
      | (?P<range>\[[^\]]*\])
      | (?P<variable>\$\w+|\$\{\w+(?::\w+)?\})
      | (?P<number>\d[\w.]*)
      | (?P<name>[A-Za-z_:][\w:]*)
      | (?P<sign>[^\s])""",
    re.VERBOSE,
)
# Followed by a list of labels, not of expressions.
LABEL_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
WORDS = {"and", "or", "unless", "offset", "bool", "atan2", "inf", "nan", "start", "end"}


def selectors(expression):
    """The metrics that an expression selects, each with the names of the labels in its braces."""
    tokens = [(match.lastgroup, match[0]) for match in TOKEN.finditer(expression)]
    found, index = [], 0
    while index < len(tokens):
        kind, text = tokens[index]
        following = tokens[index + 1][1] if index + 1 < len(tokens) else ""
        index += 1
        if kind == "sign" and text == "{":
            raise ValueError(f"a selector without a metric's name: {expression}")
        if kind != "name":
            continue
        if text.lower() in LABEL_LISTS:
            if following == "(":
                index = end_of(tokens, index, ")")
        elif text.lower() in WORDS or following == "(":
            continue
        elif following == "{":
            end = end_of(tokens, index, "}")
            inside = [name for kind, name in tokens[index:end] if kind == "name"]
            found.append((text, inside))
            index = end
        elif not following or tokens[index][1].lower() not in LABEL_LISTS:
            found.append((text, []))
        # Otherwise it is an aggregation with its labels first, such as `sum by (stage) (…)`.
    return found


def end_of(tokens, index, closing):
    """The index after the next `closing`."""
    while index < len(tokens) and tokens[index][1] != closing:
        index += 1
    if index == len(tokens):
        raise ValueError(f"no {closing} follows")
    return index + 1


def unknown(expression, metrics, recorded):
    """What is wrong with the metrics that an expression names."""
    for name, labels in selectors(expression):
        if name in recorded:
            continue
        family = next((family for family in (name, *families(name)) if family in metrics), None)
        if name in OWN_METRICS:
            known = OWN_METRICS[name]
        elif family is None:
            yield f"{name} is neither in {METRICS_PAGE} nor a recording rule"
            continue
        else:
            kind, known = metrics[family]
            if (kind == "histogram") != (family != name):
                yield f"{name}: only the series {', '.join(HISTOGRAM_SERIES)} of a histogram exist"
        allowed = known | OWN_LABELS | ({"le"} if name.endswith("_bucket") else set())
        for label in labels:
            if label not in allowed:
                yield f"{name} has no label {label}"


def unselected(expression, metrics, variables):
    """The metrics of an expression that have the label of a variable and are not selected by it."""
    for name, labels in selectors(expression):
        family = next((family for family in families(name) if family in metrics), None)
        # The name of a recording rule begins with the label that it keeps.
        known = metrics[family][1] | OWN_LABELS if family else {name.split(":")[0]}
        for variable in variables:
            if variable in known and (variable not in labels or f"${variable}" not in expression):
                yield f"{name} is not selected by ${variable}"


# --- Rules


def read_rules(text):
    """The rules of a file, each as {key: value}. It reads the YAML that RULES has, not all that YAML allows."""
    rules, block = [], None
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip())
        if block and line.strip() and depth <= block[1]:
            block = None
        if block:
            rules[-1][block[0]] += " " + line.strip()
            continue
        found = re.match(r"\s*(- )?(alert|record|expr|runbook|severity|summary): (.*)$", line)
        if found:
            if found[1]:
                rules.append({})
            value = found[3].strip()
            folded = value in (">-", ">", "|", "|-")
            rules[-1][found[2]] = "" if folded else value.strip('"')
            block = (found[2], depth) if folded else None
    return rules


def check_rules(metrics):
    rules = read_rules((REPOSITORY / RULES).read_text())
    tests = (REPOSITORY / RULES_TEST).read_text()
    recorded = {rule["record"] for rule in rules if "record" in rule}
    if not recorded or not any("alert" in rule for rule in rules):
        yield f"{RULES}: no rules were found"
    for rule in rules:
        name = rule.get("record") or rule.get("alert")
        for fault in unknown(rule["expr"], metrics, recorded):
            yield f"{RULES}: {name}: {fault}"
    for rule in (rule for rule in rules if "alert" in rule):
        name = rule["alert"]
        for key in ("runbook", "severity", "summary"):
            if not rule.get(key):
                yield f"{RULES}: {name} has no {key}"
        if not (REPOSITORY / rule.get("runbook", "")).is_file():
            yield f"{RULES}: {name}: there is no run book {rule.get('runbook')}"
        elif name not in (REPOSITORY / rule["runbook"]).read_text():
            yield f"{rule['runbook']} does not name {name}, the alert that leads to it"
        for wanted, what in ((r" \[\]", "that it does not fire"), (r"\n", "that it fires")):
            if not re.search(rf"alertname: {name}\n\s*exp_alerts:{wanted}", tests):
                yield f"{RULES_TEST} does not test {what}: {name}"


# --- Dashboards


def panels(dashboard):
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def data_sources(node):
    """The data sources that a dashboard names, wherever it does."""
    if isinstance(node, dict) and "datasource" in node:
        yield node["datasource"]
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from data_sources(child)


def check_dashboards(metrics):
    rules = read_rules((REPOSITORY / RULES).read_text())
    recorded = {rule["record"] for rule in rules if "record" in rule}
    identities = set()
    paths = sorted((REPOSITORY / DASHBOARDS).glob("*.json"))
    if not paths:
        yield f"{DASHBOARDS} has no dashboards"
    for path in paths:
        name = f"{DASHBOARDS}/{path.name}"
        text = path.read_text()
        dashboard = json.loads(text)
        if dashboard["uid"] in identities:
            yield f"{name}: its uid is another dashboard's"
        identities.add(dashboard["uid"])
        if re.search(r"https?://", text):
            yield f"{name} names a host"
        if any(source != DATA_SOURCE for source in data_sources(dashboard)):
            yield f"{name}: a data source is not the variable's"
        variables = dashboard["templating"]["list"]
        if not any(variable["type"] == "datasource" for variable in variables):
            yield f"{name} has no variable for the data source"
        for variable in variables:
            if variable["type"] == "query":
                query = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                selected = f"{query[1].split('{')[0]}{{{query[2]}=\"\"}}" if query else variable["query"]["query"]
                for fault in unknown(selected, metrics, recorded):
                    yield f"{name}: variable {variable['name']}: {fault}"
        chosen = [variable["name"] for variable in variables if variable["type"] == "query"]
        for panel in panels(dashboard):
            for fault in check_panel(panel, metrics, recorded, chosen):
                yield f"{name}: panel {panel.get('title')!r}: {fault}"


def check_panel(panel, metrics, recorded, variables):
    for key in ("title", "description"):
        if not panel.get(key):
            yield f"no {key}"
    if not panel["fieldConfig"]["defaults"].get("unit"):
        yield "no unit"
    if not panel.get("targets"):
        yield "no query"
    for target in panel.get("targets", []):
        yield from unknown(target["expr"], metrics, recorded)
        yield from unselected(target["expr"], metrics, variables)


def check_syntax(promtool):
    """Has promtool parse the dashboards' queries, as the expressions of rules."""
    rules = []
    for path in sorted((REPOSITORY / DASHBOARDS).glob("*.json")):
        for panel in panels(json.loads(path.read_text())):
            for target in panel.get("targets", []):
                record = f"{path.stem}:panel_{panel['id']}:{target['refId']}"
                rules.append({"record": record, "expr": target["expr"].replace("$__rate_interval", "5m")})
    with tempfile.TemporaryDirectory(prefix="operations-") as folder:
        # JSON is YAML, too.
        file = Path(folder) / "dashboards.yaml"
        file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
        parsed = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    if parsed.returncode:
        yield f"{DASHBOARDS}: promtool refuses a query:\n{parsed.stdout}{parsed.stderr}"


# --- Pages


def check_links():
    pages = [*(REPOSITORY / page for page in (METRICS_PAGE, *DEPLOYMENT_PAGES)), *sorted((REPOSITORY / RUN_BOOKS).glob("*.md"))]
    index = (REPOSITORY / RUN_BOOKS / "README.md").read_text()
    for page in pages:
        name = os.path.relpath(page, REPOSITORY)
        if page.parent.name == "runbooks" and page.name != "README.md" and f"({page.name})" not in index:
            yield f"{RUN_BOOKS}/README.md does not list {page.name}"
        for target in re.findall(r"\]\(([^)\s]+)\)", " ".join(page.read_text().split("\n"))):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = page.parent / file if file else page
            if not path.exists():
                yield f"{name}: {target} does not exist"
            elif anchor and anchor not in anchors(path.read_text()):
                yield f"{name}: {target}: no such heading"


def anchors(text):
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- Real pages

# A mill of 16 blocks, which the pages of run books use as well.
MILL = ".ci/mill.toml"


class Services:
    """Processes of the program in a folder of their own, until they are closed."""

    def __init__(self, program):
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="operations-"))
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes:
                if process.poll() is None:
                    process.send_signal(sent)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and any(process.poll() is None for process in self.processes):
                time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *arguments):
        log = self.folder / f"{arguments[0]}.log"
        with open(log, "wb") as out:
            command = [self.program, *arguments]
            process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process, log

    def run(self, *arguments):
        subprocess.run([self.program, *arguments], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)


def free_address():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{sock.getsockname()[1]}"


def fetch(url, body=None):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def wait_for(service, url, wanted):
    """The page at `url`, once it has `wanted` in it."""
    process, log = service
    deadline, page = time.monotonic() + READY, "no answer"
    while time.monotonic() < deadline:
        try:
            page = fetch(url)
            if re.search(wanted, page):
                return page
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"{url} did not show {wanted}:\n{page}\n{log.read_text(errors='replace')}")


def mill_page(services):
    # Reports to a site that is out of reach, for their metrics.
    reports = '[ethproofs]\nurl = "http://127.0.0.1:9/api/v0"\ntoken_file = "token"\ncluster_id = 1\n'
    (services.folder / "workflow.toml").write_text((REPOSITORY / MILL).read_text() + reports)
    (services.folder / "token").write_text("key-of-the-check")
    (services.folder / "token").chmod(0o600)
    prover = services.folder / "prove.sh"
    prover.write_text('#!/bin/sh\ncp "$2" "$4"\n')
    prover.chmod(0o755)
    address = free_address()
    mill = services.start("run", "workflow.toml", "--stay", "--metrics", address)
    url = f"http://{address}/metrics"
    wait_for(mill, url, r"proofmill_next_block\{.*\} 16")
    # A block that waits for a lower one, so that there are tasks with a reason, a block and an age.
    (services.folder / "block.json").write_text('{"block": 18}')
    services.run("submit", "--queue", "proofs", "--block", "18", "block.json")
    wanted = ("proofmill_tasks_waiting_by_reason", "proofmill_log_limit_bytes", "proofmill_blobs",
              "proofmill_ethproofs_paralyzer_ratio")
    return wait_for(mill, url, "(?s)" + ".*".join(rf"{name}\{{" for name in wanted))


# A mill that would settle on a chain that is out of reach.
SETTLING = """name = "settling"
[[source]]
name = "blocks"
kind = "range"
output = "blocks"
[sequencer]
input = "blocks"
[[sequencer.sink]]
kind = "ethereum"
rpc = "http://127.0.0.1:1"
contract = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
abi = "OrderedSettlement.json"
function = "submitMany"
settled = "settled"
key_file = "key"
"""


def settling_page(services):
    shutil.copy(REPOSITORY / "contracts/abi/OrderedSettlement.json", services.folder)
    (services.folder / "settling.toml").write_text(SETTLING)
    key = services.folder / "key"
    key.touch(mode=0o600)
    key.write_text("11" * 32)
    address = free_address()
    mill = services.start("run", "settling.toml", "--state", "settling", "--metrics", address)
    return wait_for(mill, f"http://{address}/metrics", r"proofmill_settlement_gas_total\{")


def engine_page(services):
    fixtures = REPOSITORY / FIXTURES
    address = free_address()
    circuit = f"multiplier={fixtures / 'circuit.zkey'}"
    engine = services.start("engine", "serve", "--circuits", circuit, "--budget", "1GiB", "--devices", "cpu",
                            "--http", address)
    url = f"http://{address}/metrics"
    wait_for(engine, url, "proofmill_engine_jobs_live")
    services.run("engine", "prove", "multiplier", str(fixtures / "witness.wtns"), "-o", "made.json")
    return wait_for(engine, url, r"proofmill_engine_job_seconds_count\{")


def verifier_page(services):
    fixtures = REPOSITORY / FIXTURES
    metrics, port = free_address(), free_address()
    verifier = services.start("verifier", "serve", "--http", metrics, "--listen", port)
    wait_for(verifier, f"http://{metrics}/metrics", "proofmill_verifier_under_way")
    key = fetch(f"http://{port}/v1/keys?kind=groth16-bn254", (fixtures / "verification_key.json").read_bytes())
    read = lambda name: json.loads((fixtures / name).read_text())
    request = {"kind": "groth16-bn254", "key": json.loads(key)["digest"], "proof": read("proof.json"),
               "statement": read("public.json")}
    fetch(f"http://{port}/v1/verify", json.dumps(request).encode())
    return wait_for(verifier, f"http://{metrics}/metrics", r"proofmill_verifier_verdicts_total\{")


def check_pages(program, metrics):
    real = {}
    with Services(program) as services:
        for page in (mill_page, settling_page, engine_page, verifier_page):
            real |= served(page(services))
    yield from compare_metrics(metrics, real)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", type=Path, help="the proofmill whose pages are compared with docs/metrics.md; "
                         "without it that is not done")
    options.add_argument("--promtool", type=Path, help="the promtool that parses the queries of dashboards")
    chosen = options.parse_args()
    metrics = documented((REPOSITORY / METRICS_PAGE).read_text())
    faults = [*check_rules(metrics), *check_dashboards(metrics), *check_links()]
    if chosen.promtool:
        faults += check_syntax(chosen.promtool.resolve())
    if chosen.program:
        if not os.access(chosen.program, os.X_OK):
            options.error(f"{chosen.program} is not there: build it, or name another")
        faults += check_pages(chosen.program.resolve(), metrics)
    else:
        print("note: without --program no real page is read")
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"{len(metrics)} metrics, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

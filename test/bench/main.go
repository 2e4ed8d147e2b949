// SPDX-License-Identifier: Apache-2.0

// Command bench measures two things that the order and the shape of published
// devices decide: how long the scheduler's allocator takes to filter a node,
// and how many requests are rejected under churn.
//
// Every figure is a ratio to a baseline of the same run. It runs the real
// allocator of Kubernetes; for churn a fast simulator stands in, and a test
// proves that it decides as the allocator does.
//
// Start with run.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"reslice.dev/internal/gpu/models"
)

// options is what a run depends on. Only seeds, arrivals and sequences
// influence the figures of the churn part.
type options struct {
	quick       bool
	only        string
	out         string
	seeds       int
	arrivals    int // of each seed
	sequences   int // short ones, for the clairvoyant
	repetitions int // of each allocator question
	// progress says what is done; the runs take minutes.
	progress func(format string, args ...any)
}

const (
	onlyAllocator = "allocator"
	onlyChurn     = "churn"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{arrivals: 20_000, sequences: 2000, repetitions: 150}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.quick, "quick", false, "fewer seeds, repetitions and tables: one to two minutes")
	f.StringVar(&o.only, "only", "", "run one part: allocator or churn")
	f.StringVar(&o.out, "out", "", "also write the report to this file, as Markdown")
	f.IntVar(&o.seeds, "seeds", 0, "seeds of the churn part (default 200, 20 with -quick)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: bench takes flags only", f.Arg(0))
	}
	if o.only != "" && o.only != onlyAllocator && o.only != onlyChurn {
		return o, fmt.Errorf("-only %q: write allocator or churn", o.only)
	}
	if o.seeds < 0 || o.seeds == 1 {
		return o, fmt.Errorf("-seeds %d: write at least 2, since the interval comes from their spread", o.seeds)
	}
	if o.quick {
		o.sequences, o.repetitions = 300, 25
	}
	if o.seeds == 0 {
		o.seeds = 200
		if o.quick {
			o.seeds = 20
		}
	}
	start := time.Now()
	o.progress = func(format string, args ...any) {
		fmt.Fprintf(stderr, "%4.0f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	return o, nil
}

// run measures what the arguments ask for and writes the report.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	o.heading(&b)
	var goals []goal
	if o.only != onlyChurn {
		g, err := o.allocatorPart(ctx, &b)
		if err != nil {
			return err
		}
		goals = append(goals, g...)
	}
	if o.only != onlyAllocator {
		g, err := o.churnPart(ctx, &b)
		if err != nil {
			return err
		}
		goals = append(goals, g...)
	}
	writeGoals(&b, goals)
	if _, err := stdout.Write(b.Bytes()); err != nil {
		return err
	}
	if o.out != "" {
		return os.WriteFile(o.out, b.Bytes(), 0o644)
	}
	return nil
}

// command is how to repeat the run; where the report went does not matter.
func (o options) command() string {
	c := []string{"go run ./test/bench"}
	if o.quick {
		c = append(c, "-quick")
	}
	if o.only != "" {
		c = append(c, "-only "+o.only)
	}
	return strings.Join(append(c, fmt.Sprintf("-seeds %d", o.seeds)), " ")
}

func (o options) heading(w io.Writer) {
	fmt.Fprintf(w, `# Benchmarks

One run of `+"`%s`"+` (%s, %s/%s, %d cores).
Every figure is a ratio to a baseline measured in the same run; absolute times
are orders of magnitude only.
`, o.command(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

func (o options) allocatorPart(ctx context.Context, w io.Writer) ([]goal, error) {
	names, rows, err := allocatorTimes(ctx, o)
	if err != nil {
		return nil, err
	}
	writeAllocator(w, o, names, rows)
	return allocatorGoals(names, rows), nil
}

// otherSizes are node sizes beside churnGPUs.
var otherSizes = []int{1, 2, 8}

func (o options) churnPart(ctx context.Context, w io.Writer) ([]goal, error) {
	main, err := churn(ctx, o, boards, churnGPUs, exponential)
	if err != nil {
		return nil, err
	}
	var more []churnResult
	if !o.quick {
		for _, gpus := range otherSizes {
			r, err := churn(ctx, o, boards[:1], gpus, exponential)
			if err != nil {
				return nil, err
			}
			more = append(more, r...)
		}
		r, err := churn(ctx, o, boards[:1], churnGPUs, lognormal)
		if err != nil {
			return nil, err
		}
		more = append(more, r...)
	}
	best, err := optima(o)
	if err != nil {
		return nil, err
	}
	writeChurn(w, o, main, more)
	writeOptimum(w, o, best)
	where := fmt.Sprintf("%d GPUs", churnGPUs)
	goals := slices.Concat(meanGoals(main), rivalGoals(main, where), []goal{defaultGoal(main, where)})
	if len(more) > 0 {
		goals = append(goals, append(rivalGoals(more, otherRows), defaultGoal(more, otherRows))...)
	}
	return append(goals, optimumGoals(best)...), nil
}

// optima compares the policies with the best there is on one GPU.
func optima(o options) ([]optimumResult, error) {
	var best []optimumResult
	for _, id := range boards {
		m, err := models.ByID(id)
		if err != nil {
			return nil, err
		}
		for _, n := range mixes {
			a, _, err := n.automatonOn(m)
			if err != nil {
				return nil, err
			}
			best = append(best, a.optimumResult(id, n.name, m.MemorySlices <= 4, o.sequences))
			o.progress("optimum: %s, %s", id, n.name)
		}
	}
	return best, nil
}

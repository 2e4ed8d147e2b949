// SPDX-License-Identifier: Apache-2.0

// Package hardwaretest is the conformance suite of [hardware.Node]: what the
// rest of Reslice relies on, as checks that every implementation passes.
//
// Start with [Run]. Checks are plain functions that return errors, so that a
// test can also show that a broken node is found out. Checks that change the
// GPUs run only if asked for, and only touch GPUs without instances.
package hardwaretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"reslice.dev/internal/hardware"
)

// Options says how far the suite goes.
type Options struct {
	// Mutate also runs the checks that create and destroy instances and switch
	// modes. Never on a GPU that anybody uses.
	Mutate bool
	// Timeout bounds one check; 0 is two minutes.
	Timeout time.Duration
}

// Check is one property of a node.
type Check struct {
	Name string
	// Mutates says that the check changes the GPUs. It puts back what it
	// changed, unless it fails halfway.
	Mutates bool
	// Run returns what is wrong, joined, or nil.
	Run func(context.Context, hardware.Node) error
}

// Checks lists the suite.
func Checks() []Check {
	return []Check{
		{Name: "driver", Run: checkDriver},
		{Name: "inventory", Run: checkInventory},
		{Name: "unknown GPU", Run: checkUnknownGPU},
		{Name: "cancelled context", Run: checkCancelled},
		{Name: "MIG mode", Run: checkMode},
		{Name: "live instances", Run: checkLive},
		{Name: "unknown instance", Run: checkUnknownInstance},
		{Name: "memory", Run: checkMemory},
		{Name: "utilization", Run: checkUtilization},
		{Name: "processes", Run: checkProcesses},
		{Name: "health", Run: checkHealth},
		{Name: "events end with the context", Run: checkEventsEnd},
		{Name: "every partition", Mutates: true, Run: checkEveryPartition},
		{Name: "refusals agree with the law", Mutates: true, Run: checkFill},
		{Name: "impossible partitions", Mutates: true, Run: checkImpossible},
		{Name: "MIG mode rules", Mutates: true, Run: checkModeRules},
		{Name: "compute mode", Mutates: true, Run: checkComputeMode},
		{Name: "events tell of MIG changes", Mutates: true, Run: checkMIGEvents},
	}
}

// Run runs every check as a subtest, each on a node of its own from newNode,
// which also closes what it opens through t.Cleanup.
func Run(t *testing.T, newNode func(t *testing.T) hardware.Node, o Options) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	for _, c := range Checks() {
		if c.Mutates && !o.Mutate {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), o.Timeout)
			defer cancel()
			if err := c.Run(ctx, newNode(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// problems collects what is wrong.
type problems struct{ errs []error }

func (p *problems) add(err error) {
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

func (p *problems) err() error { return errors.Join(p.errs...) }

// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// FaultInjector is asked twice for every call: before it has done anything and
// after its effect happened. An error becomes the call's error. It must be
// safe for concurrent use.
type FaultInjector func(Call) error

// FailNth fails the nth call of a method (1 is the first) before it has done
// anything.
func FailNth(m hardware.Method, nth int, err error) FaultInjector {
	return failNth(m, nth, err, false)
}

// FailNthAfter lets the nth call of a method take effect and then fails it, as
// a driver that answers too late does.
func FailNthAfter(m hardware.Method, nth int, err error) FaultInjector {
	return failNth(m, nth, err, true)
}

func failNth(m hardware.Method, nth int, err error, after bool) FaultInjector {
	var mu sync.Mutex
	seen := 0
	return func(c Call) error {
		if c.Method != m || c.After != after {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == nth {
			return err
		}
		return nil
	}
}

// FailAlways fails every call of a method, on one GPU or, with an empty UUID,
// on all.
func FailAlways(m hardware.Method, id gpu.UUID, err error) FaultInjector {
	return func(c Call) error {
		if c.Method == m && !c.After && (id == "" || c.GPU == id) {
			return err
		}
		return nil
	}
}

// Faults asks several injectors in order; the first error counts. All of them
// see every call.
func Faults(all ...FaultInjector) FaultInjector {
	return func(c Call) error {
		var first error
		for _, f := range all {
			if err := f(c); err != nil && first == nil {
				first = err
			}
		}
		return first
	}
}

// slowMethods make or destroy instances, or switch the mode.
var slowMethods = []hardware.Method{
	hardware.MethodCreateGPUInstance, hardware.MethodDestroyGPUInstance, hardware.MethodSetMIGMode,
	hardware.MethodCreateComputeInstance, hardware.MethodDestroyComputeInstance,
}

// Latencies is a plausible distribution of call times: reads take
// milliseconds, creation and mode switches 0.2 to 2 s, and one change in a
// hundred is in the 10 s tail that NVIDIA's own driver plans for. Nobody has
// published exact figures. The same seed gives the same times to the same
// order of calls.
func Latencies(seed uint64) func(Call) time.Duration {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 0x5eed))
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(rnd.Int64N(int64(hi-lo))) }
	return func(c Call) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !slices.Contains(slowMethods, c.Method):
			return between(time.Millisecond, 10*time.Millisecond)
		case rnd.IntN(100) == 0:
			return between(5*time.Second, 10*time.Second)
		}
		return between(200*time.Millisecond, 2*time.Second)
	}
}

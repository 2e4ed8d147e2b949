// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/nvml"
	"reslice.dev/internal/hardware/sim"
)

// hardwareFlags choose the GPUs: real ones or simulated ones.
type hardwareFlags struct {
	kind     string
	models   []string
	gpus     int
	state    string
	declared *pflag.FlagSet
}

func (f *hardwareFlags) add(flags *pflag.FlagSet) {
	f.declared = flags
	flags.StringVar(&f.kind, "hardware", "nvml", "where GPUs come from: nvml (this machine's driver) or sim (simulated silicon)")
	flags.StringSliceVar(&f.models, "sim-model", []string{"h100-80gb"}, "model of the simulated GPUs; several, separated by commas, take turns")
	flags.IntVar(&f.gpus, "sim-gpus", 8, "number of simulated GPUs, 1 to 16")
	flags.StringVar(&f.state, "sim-state", "", "file with the state of simulated GPUs, instead of --sim-model and --sim-gpus")
}

// open returns the GPUs that the flags name. The MIG policy tells in which
// mode fresh simulated GPUs start.
func (f *hardwareFlags) open(node string, mig dra.MIGPolicy) (hardware.Node, error) {
	switch f.kind {
	case "nvml":
		return nvml.Open(nvml.Options{})
	case "sim":
		return f.openSim(node, mig)
	}
	return nil, fmt.Errorf("unknown hardware %q: write --hardware=nvml or --hardware=sim", f.kind)
}

func (f *hardwareFlags) openSim(node string, mig dra.MIGPolicy) (hardware.Node, error) {
	if f.state != "" {
		if f.declared.Changed("sim-model") || f.declared.Changed("sim-gpus") {
			return nil, errors.New("--sim-state already says which GPUs there are: leave out --sim-model and --sim-gpus")
		}
		return sim.Open(f.state, time.Now)
	}
	state, err := sim.NewState(f.models, f.gpus, node, mig == dra.MIGOn)
	if err != nil {
		return nil, fmt.Errorf("simulate %d GPUs of %s: %w", f.gpus, strings.Join(f.models, ","), err)
	}
	return sim.New(sim.Config{State: state, Clock: time.Now})
}

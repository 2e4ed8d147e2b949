// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/nvml"
	"reslice.dev/internal/hardware/sim"
	"reslice.dev/internal/plugin"
)

// Names of the flags that describe simulated GPUs.
const (
	flagSimModel = "sim-model"
	flagSimGPUs  = "sim-gpus"
	flagSimState = "sim-state"
	flagNodeName = "node-name"
)

// freshFlags describe GPUs that are simulated from nothing.
type freshFlags struct {
	models []string
	gpus   int
}

func (f *freshFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.models, flagSimModel, []string{"h100-80gb"}, "model of the simulated GPUs; several, separated by commas, take turns")
	flags.IntVar(&f.gpus, flagSimGPUs, 8, "number of simulated GPUs, 1 to 16")
}

func (f *freshFlags) state(node string, migOn bool) (*sim.State, error) {
	var models []string
	for _, m := range f.models {
		if m = strings.TrimSpace(m); m != "" {
			models = append(models, m)
		}
	}
	if f.gpus >= 1 && f.gpus < len(models) {
		return nil, fmt.Errorf("--%s names %d models: write --%s=%d or more", flagSimModel, len(models), flagSimGPUs, len(models))
	}
	state, err := sim.NewState(models, f.gpus, node, migOn)
	if err != nil {
		return nil, fmt.Errorf("simulate GPUs: %w", err)
	}
	return state, nil
}

// hardwareFlags choose the GPUs: real ones or simulated ones.
type hardwareFlags struct {
	freshFlags
	kind      string
	stateFile string
	declared  *pflag.FlagSet
}

func (f *hardwareFlags) add(flags *pflag.FlagSet) {
	f.declared = flags
	flags.StringVar(&f.kind, "hardware", "nvml", "where GPUs come from: nvml (this machine's driver) or sim (simulated silicon)")
	f.freshFlags.add(flags)
	flags.StringVar(&f.stateFile, flagSimState, "", "file with the state of simulated GPUs, as print-sim-state writes it, instead of the two above")
}

// open returns the GPUs that the flags name. The MIG policy tells in which
// mode fresh simulated GPUs start. A state file brings the name of its node,
// unless a flag gives another.
func (f *hardwareFlags) open(cfg *plugin.Config) (hardware.Node, error) {
	switch f.kind {
	case "nvml":
		for _, name := range []string{flagSimModel, flagSimGPUs, flagSimState} {
			if f.declared.Changed(name) {
				return nil, fmt.Errorf("--%s is about simulated GPUs: write --hardware=sim with it", name)
			}
		}
		return nvml.Open(nvml.Options{})
	case "sim":
		return f.openSim(cfg)
	}
	return nil, fmt.Errorf("unknown hardware %q: write --hardware=nvml or --hardware=sim", f.kind)
}

func (f *hardwareFlags) openSim(cfg *plugin.Config) (hardware.Node, error) {
	if !f.declared.Changed(flagSimState) {
		if err := dra.ValidateNames("", cfg.NodeName); err != nil {
			return nil, err
		}
		state, err := f.state(cfg.NodeName, cfg.MIG == dra.MIGOn)
		if err != nil {
			return nil, err
		}
		return sim.New(sim.Config{State: state, Clock: time.Now})
	}
	if f.declared.Changed(flagSimModel) || f.declared.Changed(flagSimGPUs) {
		return nil, fmt.Errorf("--%s already says which GPUs there are: leave out --%s and --%s", flagSimState, flagSimModel, flagSimGPUs)
	}
	if f.stateFile == "" {
		return nil, fmt.Errorf("--%s is empty: write the name of a file, or leave it out", flagSimState)
	}
	n, err := sim.Open(f.stateFile, time.Now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--%s: there is no file %s: write one with gpu-kubelet-plugin print-sim-state > %s", flagSimState, f.stateFile, f.stateFile)
	}
	if err != nil {
		return nil, err
	}
	if state, err := n.State(); err == nil && !f.declared.Changed(flagNodeName) {
		cfg.NodeName = state.NodeName
	}
	return n, nil
}

// printSimStateCommand writes the state of fresh simulated GPUs, for people to
// keep and edit.
func printSimStateCommand() *cobra.Command {
	fresh := freshFlags{}
	node, mig := "", ""
	cmd := &cobra.Command{
		Use:   "print-sim-state",
		Short: "Print the state of fresh simulated GPUs, as a file for --sim-state",
		Example: `  # Two A100 in MIG mode; edit the file, then see what the node would publish.
  gpu-kubelet-plugin print-sim-state --sim-model a100-80gb --sim-gpus 2 --mig on --node-name node-a > state.json
  gpu-kubelet-plugin print-slices --hardware=sim --sim-state state.json --node-name node-a -o table`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy, err := dra.ParseMIGPolicy(mig)
			if err != nil || policy == dra.MIGDynamic {
				return fmt.Errorf("--mig: GPUs start with MIG on or off, not %q", mig)
			}
			if err := dra.ValidateNames("", node); err != nil {
				return err
			}
			state, err := fresh.state(node, policy == dra.MIGOn)
			if err != nil {
				return err
			}
			if policy == dra.MIGOn && !slices.ContainsFunc(state.GPUs, func(g sim.GPUState) bool { return g.MIGMode == gpu.MIGEnabled }) {
				return fmt.Errorf("--mig on: none of %s has MIG", strings.Join(fresh.models, ", "))
			}
			data, err := state.Encode()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	fresh.add(cmd.Flags())
	cmd.Flags().StringVar(&node, flagNodeName, defaultNodeName(), "name of the node, from which UUIDs follow; default: $NODE_NAME, else the host's name")
	cmd.Flags().StringVar(&mig, "mig", "off", "MIG mode of the GPUs that have it: on or off")
	return cmd
}

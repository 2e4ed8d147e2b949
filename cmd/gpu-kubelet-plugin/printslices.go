// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/plugin"
)

const printExample = `  # What a node of eight H100 with MIG on would publish, as a table.
  gpu-kubelet-plugin print-slices --hardware=sim --sim-model h100-80gb --sim-gpus 8 --node-name node-a --mig on -o table

  # The same objects as YAML, with shares inside MIG instances.
  gpu-kubelet-plugin print-slices --hardware=sim --node-name node-a --mig on --sharing all -o yaml

  # This machine's own GPUs.
  gpu-kubelet-plugin print-slices`

type printFlags struct {
	hardware     hardwareFlags
	cfg          plugin.Config
	mig, sharing string
	format       string
}

func printSlicesCommand() *cobra.Command {
	f := &printFlags{}
	cmd := &cobra.Command{
		Use:     "print-slices",
		Short:   "Print the ResourceSlices that this node would publish",
		Long:    "print-slices prints what a node would publish, without a cluster and without changing anything: a v1 List of ResourceSlices, or a table.",
		Example: printExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.hardware.add(flags)
	flags.StringVar(&f.cfg.NodeName, flagNodeName, defaultNodeName(), "name of the Kubernetes node; default: $NODE_NAME, else the host's name")
	flags.StringVar(&f.cfg.DriverName, "driver-name", dra.DriverName, "DRA driver name, the domain of all attributes")
	flags.StringVar(&f.mig, "mig", "", "MIG policy: on, off or dynamic; default: each GPU as it is")
	flags.StringVar(&f.sharing, "sharing", "", "where shares are offered: none, gpu, mig or all; default: gpu")
	flags.StringVar(&f.cfg.Tier, "tier", "", "value of the attribute tier; default: none")
	flags.StringVar(&f.cfg.Mix, "mix", "", "expected mix of requests, which orders the placements: 1g=50,2g=30,whole=20; default: a mix for each model")
	flags.StringVarP(&f.format, "output", "o", plugin.FormatYAML, "yaml, json or table")
	return cmd
}

func (f *printFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	var err error
	if f.cfg.MIG, err = dra.ParseMIGPolicy(f.mig); err != nil {
		return fmt.Errorf("--mig: %w", err)
	}
	if f.cfg.Sharing, err = dra.ParseSharing(f.sharing); err != nil {
		return fmt.Errorf("--sharing: %w", err)
	}
	if err := plugin.ValidateFormat(f.format); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	hw, err := f.hardware.open(&f.cfg)
	if err != nil {
		return err
	}
	defer hw.Close() //nolint:errcheck // only read from, and the program ends here
	if err := dra.ValidateNames(f.cfg.DriverName, f.cfg.NodeName); err != nil {
		return err
	}
	node, err := plugin.Discover(ctx, hw, f.cfg)
	if err != nil {
		return err
	}
	hidden, err := hw.Hidden(ctx)
	if err != nil {
		return fmt.Errorf("list hidden GPUs: %w", err)
	}
	for _, h := range hidden {
		fmt.Fprintf(stderr, "note: GPU %s at %s is not offered: %s\n", h.UUID, h.PCIBusID, h.Reason)
	}
	pools, err := dra.Pools(node)
	if err != nil {
		return err
	}
	for _, p := range pools {
		for _, note := range p.Notes {
			fmt.Fprintln(stderr, "note:", note)
		}
	}
	return plugin.PrintSlices(stdout, f.format, node, pools)
}

// defaultNodeName is what the DaemonSet sets, else the host's name as the
// kubelet would register it.
func defaultNodeName() string {
	if n := os.Getenv("NODE_NAME"); n != "" {
		return n
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToLower(host)
}

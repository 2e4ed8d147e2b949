// SPDX-License-Identifier: Apache-2.0

// Command gpu-kubelet-plugin is Reslice on a GPU node: it describes the node's
// GPUs to the scheduler and makes what claims were promised.
//
// So far it can print what a node would publish; see print-slices --help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

// run is the whole program with everything it touches as an argument.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:           "gpu-kubelet-plugin",
		Short:         "Reslice on a GPU node",
		Long:          "gpu-kubelet-plugin publishes the GPUs of a node as DRA devices: whole GPUs, every MIG profile and placement, and shares.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(printSlicesCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

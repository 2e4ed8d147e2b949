// SPDX-License-Identifier: Apache-2.0

// Command gpu-kubelet-plugin is Reslice on a GPU node: it describes the node's
// GPUs to the scheduler and makes what claims were promised.
//
// So far it can print what a node would publish; see print-slices --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to end; from then on they act as ever.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", oneLine(err))
		os.Exit(1)
	}
}

// oneLine joins what went wrong: joined errors are separated by line ends.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// run is the whole program with everything it touches as an argument.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:   "gpu-kubelet-plugin",
		Short: "Reslice on a GPU node",
		Long: "gpu-kubelet-plugin describes the GPUs of a node as DRA devices: whole GPUs, every MIG profile and placement, and shares.\n" +
			"So far it prints what a node would publish.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var known []string
			for _, c := range cmd.Commands() {
				known = append(known, c.Name())
			}
			return fmt.Errorf("unknown command %q: write one of %s", args[0], strings.Join(known, ", "))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(printSlicesCommand(), printSimStateCommand())
	root.SetFlagErrorFunc(flagError)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// noArguments refuses arguments of a command that has flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, leave out %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
}

// flagError says what is wrong with a flag in words that are not Go's.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return fmt.Errorf("--%s: %q is no %s; see %s --help", invalid.GetFlag().Name, invalid.GetValue(), invalid.GetFlag().Value.Type(), cmd.CommandPath())
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

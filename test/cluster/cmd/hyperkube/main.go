// SPDX-License-Identifier: Apache-2.0

// Command hyperkube holds the Kubernetes components of the test cluster in one
// binary: they share most of their code, so that one binary is a fraction of
// the size and the build time of several. Linked under the name of a
// component, it is that component; as hyperkube, it takes the name as its
// first argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const usage = "usage: hyperkube etcd|kube-apiserver [ARGS]\n"

func main() {
	args := os.Args
	if filepath.Base(args[0]) == "hyperkube" {
		if len(args) < 2 {
			fmt.Fprint(os.Stderr, usage)
			os.Exit(2)
		}
		args = args[1:]
	}
	// The components read their flags from os.Args.
	os.Args = args
	switch name := filepath.Base(args[0]); name {
	case "etcd":
		etcdmain.Main(args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "hyperkube: unknown component %q\n%s", name, usage)
		os.Exit(2)
	}
}

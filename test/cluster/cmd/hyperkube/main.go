// SPDX-License-Identifier: Apache-2.0

// Command hyperkube holds the Kubernetes components of the test cluster in one
// binary: they share most of their code, so that one binary is a fraction of
// the size and the build time of several. Linked under the name of a
// component, it is that component; as hyperkube, it takes the name as its
// first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components maps the name of a component to its main function, which reads
// its flags from os.Args and returns an exit status.
var components = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
	"kubectl": func() int {
		// kubectl formats its errors for people, which cli.Run does not.
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()))
		return 0
	},
}

func main() {
	args := os.Args
	if filepath.Base(args[0]) == "hyperkube" {
		if len(args) < 2 {
			fail("which component?")
		}
		args = args[1:]
	}
	// The components read their flags from os.Args.
	os.Args = args
	name := filepath.Base(args[0])
	run, found := components[name]
	if !found {
		fail(fmt.Sprintf("unknown component %q", name))
	}
	os.Exit(run())
}

// fail says what is wrong and which components there are, and exits.
func fail(problem string) {
	var names []string
	for name := range components {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(os.Stderr, "hyperkube: %s\nusage: hyperkube %s [ARGS]\n", problem, strings.Join(names, "|"))
	os.Exit(2)
}

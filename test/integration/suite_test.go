// SPDX-License-Identifier: Apache-2.0

// Package integration_test holds the specs that need a real API server: etcd
// and kube-apiserver of the version in test/cluster, with the feature gates
// that Kubernetes ships. A spec belongs here only if what it tests is the
// server's answer; everything else is tested without one.
//
// Build the two programs once with make cluster-binaries. Specs talk to the
// server through k8sClient or restConfig and remove what they create.
package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// binariesVariable overrides the folder that holds etcd and kube-apiserver.
const binariesVariable = "RESLICE_CLUSTER_BIN"

// startTimeout bounds the start and the stop of each program. Starting takes
// about 5 s on an idle machine; a busy one may need far longer.
const startTimeout = 2 * time.Minute

var (
	restConfig *rest.Config
	k8sClient  client.Client
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Integration")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	logf.SetLogger(GinkgoLogr)
	environment, err := newEnvironment(ctx)
	Expect(err).NotTo(HaveOccurred())

	// Registered first: a start that fails halfway must not leave etcd behind.
	DeferCleanup(func() {
		Expect(environment.Stop()).To(Succeed(), "stop etcd and kube-apiserver")
	})
	restConfig, err = environment.Start()
	Expect(err).NotTo(HaveOccurred(), "start etcd and kube-apiserver")
	k8sClient, err = client.New(restConfig, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
})

// newEnvironment describes the control plane. Everything that envtest would
// otherwise take from the caller's environment is set, so that the specs can
// never run against a cluster that somebody uses.
func newEnvironment(ctx context.Context) (*envtest.Environment, error) {
	dir, err := binariesDir(ctx)
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		UseExistingCluster:       ptr.To(false),
		BinaryAssetsDirectory:    dir,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	environment.ControlPlane.APIServer = &envtest.APIServer{Path: filepath.Join(dir, "kube-apiserver")}
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(dir, "etcd")}
	return environment, nil
}

// binariesDir returns the folder with etcd and kube-apiserver, or an error that
// says how to build them.
func binariesDir(ctx context.Context) (string, error) {
	dir := os.Getenv(binariesVariable)
	if dir == "" {
		script := filepath.Join("..", "..", "scripts", "build-cluster.sh")
		out, err := exec.CommandContext(ctx, script, "--print-dir").Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			return "", fmt.Errorf("find the cluster binaries with %s: %w", script, err)
		}
		dir = strings.TrimSpace(string(out))
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("the cluster binaries are missing, run: make cluster-binaries (%w)", err)
		}
	}
	return dir, nil
}

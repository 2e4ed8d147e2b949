// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestRulesCatch breaks each rule once, on files that exist only here: a
// checker that finds nothing would otherwise look like a healthy project.
func TestRulesCatch(t *testing.T) {
	table := func(files []file) problems { return checkPackages(packages, files) }
	imports := func(files []file) problems { return checkImports(packages, files) }
	clock := func(files []file) problems { return checkClock(packages, files) }
	tests := []struct {
		name  string
		path  string
		text  string
		check func([]file) problems
		want  string // empty: nothing is found
	}{
		{"I/O in the core", "internal/gpu/a.go", `package gpu; import "os"`, imports, "must not import os"},
		{"allowed in the core", "internal/gpu/a.go", `package gpu; import "strings"`, imports, ""},
		{"embedded tables", "internal/gpu/models/a.go", `package models; import _ "embed"`, imports, ""},
		{"tables in an engine", "internal/placement/a.go", `package placement; import _ "embed"`, imports, "must not import embed"},
		{"module in the core", "internal/gpu/a.go", `package gpu; import _ "k8s.io/api/core/v1"`, imports, "must not import k8s.io/api/core/v1"},
		{"upward", "internal/gpu/a.go", `package gpu; import _ "reslice.dev/internal/placement"`, imports, "must not import internal/placement"},
		{"service to service", "internal/usage/a.go", `package usage; import _ "reslice.dev/internal/plugin"`, imports, "must not import internal/plugin"},
		{"adapter to adapter", "internal/cdi/a.go", `package cdi; import _ "reslice.dev/internal/mps"`, imports, "must not import internal/mps"},
		{"service chooses hardware", "internal/plugin/a.go", `package plugin; import _ "reslice.dev/internal/hardware/sim"`, imports, "only programs in cmd"},
		{"test uses the simulator", "internal/plugin/a_test.go", `package plugin; import _ "reslice.dev/internal/hardware/sim"`, imports, ""},
		{"program chooses hardware", "cmd/x/main.go", `package main; import _ "reslice.dev/internal/hardware/nvml"`, imports, ""},
		{"program uses a test suite", "cmd/x/main.go", `package main; import _ "reslice.dev/internal/hardware/hardwaretest"`, imports, "is for tests"},
		{"NVML elsewhere", "internal/plugin/a.go", `package plugin; import _ "github.com/NVIDIA/go-nvml/pkg/nvml"`, imports, "which only internal/hardware/nvml may"},
		{"NVML in a program", "cmd/x/main.go", `package main; import _ "github.com/NVIDIA/go-nvml/pkg/nvml"`, imports, "which only internal/hardware/nvml may"},
		{"NVML at its place", "internal/hardware/nvml/a.go", `package nvml; import _ "github.com/NVIDIA/go-nvml/pkg/nvml"`, imports, ""},
		{"policy in the referee", "internal/hardware/sim/a.go", `package sim; import _ "reslice.dev/internal/placement"`, imports, "must not import internal/placement"},
		{"policy in the referee's tests", "internal/hardware/sim/a_test.go", `package sim; import _ "reslice.dev/internal/placement"`, imports, "even its tests must not"},
		{"client in the translation", "internal/dra/a.go", `package dra; import _ "k8s.io/client-go/rest"`, imports, "must not import k8s.io/client-go/rest"},
		{"similar name", "internal/dra/a.go", `package dra; import _ "k8s.io/apiserver/pkg/server"`, imports, "must not import k8s.io/apiserver"},
		{"clock", "internal/gpu/a.go", `package gpu; import "time"; var t = time.Now()`, clock, "must not use time.Now"},
		{"clock under another name", "internal/gpu/a.go", `package gpu; import x "time"; var t = x.Since`, clock, "must not use time.Since"},
		{"clock in scope", "internal/gpu/a.go", `package gpu; import . "time"; var t = Now()`, clock, "into its own scope"},
		{"duration", "internal/gpu/a.go", `package gpu; import "time"; var t time.Duration`, clock, ""},
		{"planned with code", "internal/cli/a.go", `package cli; var x int`, table, "internal/cli: marked as planned"},
		{"missing", "internal/cli/doc.go", `package cli`, table, "internal/gpu: in the table"},
		{"unknown", "internal/util/a.go", `package util`, table, "internal/util is not in the table"},
		{"no comment", "internal/gpu/a.go", `package gpu`, checkComments, "has 0 package comments"},
		{"comment of another", "internal/gpu/a.go", "// Package gpus is.\npackage gpu", checkComments, `starts with "Package gpu "`},
		{"comment", "cmd/x/main.go", "// Command x is.\npackage main", checkComments, ""},
		{"licence", "internal/gpu/a.go", "// Package gpu is.\npackage gpu", checkLicences, "write the SPDX line first"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := parseAll(t, map[string]string{tt.path: tt.text})
			wantProblem(t, tt.check(files), tt.want)
		})
	}
}

func TestTableCatch(t *testing.T) {
	tests := []struct {
		name string
		from pkg
		want string
	}{
		{"upward", pkg{path: "internal/x", layer: engine, inside: []string{"internal/plugin"}}, "of a higher layer"},
		{"own layer", pkg{path: "internal/x", layer: service, inside: []string{"internal/plugin"}}, "of its own layer"},
		{"family", pkg{path: "internal/hardware/x", layer: adapter, inside: []string{"internal/hardware"}}, ""},
		{"unknown", pkg{path: "internal/x", layer: service, inside: []string{"internal/y"}}, "not in the table"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantProblem(t, checkTable(append([]pkg{tt.from}, packages...)), tt.want)
		})
	}
}

func TestModulesCatch(t *testing.T) {
	const importing = `package x; import _ "example.org/m/sub"`
	tests := []struct {
		name  string
		m     module
		goMod string
		text  string
		want  string
	}{
		{"used", module{path: "example.org/m"}, "require example.org/m v1.0.0\n", importing, ""},
		{"used, in a block", module{path: "example.org/m"}, "require (\n\texample.org/m v1.0.0\n)\n", importing, ""},
		{"indirect", module{path: "example.org/m"}, "require example.org/m v1.0.0 // indirect\n", importing, "does not require it directly"},
		{"unused", module{path: "example.org/m"}, "require example.org/m v1.0.0\n", `package x`, "no file imports it"},
		{"planned", module{path: "example.org/m", planned: true}, "", `package x`, ""},
		{"planned but used", module{path: "example.org/m", planned: true}, "", importing, "remove the mark"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := parseAll(t, map[string]string{"internal/x/x.go": tt.text})
			wantProblem(t, checkModules([]module{tt.m}, tt.goMod, files), tt.want)
		})
	}
}

// TestLoadNested checks that a module below the root is known as such, since it
// has its own requirements.
func TestLoadNested(t *testing.T) {
	files := parseAll(t, map[string]string{
		"test/inner/go.mod":       "module example.org/inner",
		"test/inner/cmd/main.go":  "package main",
		"test/innermost/x.go":     "package x",
		"testdata/broken.go":      "not Go",
		"internal/gpu/doc.go":     "package gpu",
		"internal/gpu/.hidden.md": "",
	})
	if len(files) != 3 {
		t.Fatalf("got %d files, want 3", len(files))
	}
	for _, f := range files {
		if want := strings.HasPrefix(f.path, "test/inner/"); f.nested != want {
			t.Errorf("%s: nested = %v, want %v", f.path, f.nested, want)
		}
	}
}

func parseAll(t *testing.T, texts map[string]string) []file {
	t.Helper()
	root := fstest.MapFS{}
	for p, text := range texts {
		root[p] = &fstest.MapFile{Data: []byte(text)}
	}
	files, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wantProblem checks that the problem is found; with an empty want, that there
// is none.
func wantProblem(t *testing.T, got problems, want string) {
	t.Helper()
	all := strings.Join(got, "\n")
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("found:\n%s\nwant nothing", all)
	case !strings.Contains(all, want):
		t.Errorf("found:\n%s\nwant a problem with %q", all, want)
	}
}

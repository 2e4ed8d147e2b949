// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"io/fs"
	"os"
	"testing"
)

// TestArchitecture checks the project's own files.
func TestArchitecture(t *testing.T) {
	root := os.DirFS("../..")
	files, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	checks := []struct {
		name  string
		found problems
	}{
		{"top level", checkTopLevel(root)},
		{"table", checkTable(packages)},
		{"packages", checkPackages(packages, files)},
		{"imports", checkImports(packages, files)},
		{"clock", checkClock(packages, files)},
		{"comments", checkComments(files)},
		{"licences", checkLicences(files)},
		{"modules", checkModules(modules, string(goMod), files)},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range c.found {
				t.Error(p)
			}
		})
	}
}

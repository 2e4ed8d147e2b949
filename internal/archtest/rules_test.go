// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// problems collects what is wrong, each with the place and what to do.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// row returns the entry of a package in the table.
func row(table []pkg, p string) (pkg, bool) {
	i := slices.IndexFunc(table, func(r pkg) bool { return r.path == p })
	if i < 0 {
		return pkg{}, false
	}
	return table[i], true
}

// checkPackages compares the table with the packages that there are.
func checkPackages(table []pkg, files []file) (out problems) {
	byDir := map[string][]file{}
	for _, f := range files {
		if !f.nested {
			byDir[f.dir()] = append(byDir[f.dir()], f)
		}
	}
	for _, r := range table {
		here := byDir[r.path]
		switch {
		case len(here) == 0:
			out.add("%s: in the table, but it has no Go files", r.path)
		case r.planned && slices.ContainsFunc(here, hasCode):
			out.add("%s: marked as planned, but it holds code: remove the mark from the table", r.path)
		case !r.planned && !slices.ContainsFunc(here, hasCode) && r.layer != tests:
			out.add("%s: holds no code: mark it as planned in the table", r.path)
		}
	}
	for _, f := range files {
		if _, known := row(table, f.dir()); !known && !f.nested && (f.under("internal") || f.under("api")) {
			out.add("%s: package %s is not in the table", f.path, f.dir())
		}
	}
	return out
}

func hasCode(f file) bool { return len(f.ast.Decls) > 0 }

// checkImports compares each import with the table.
func checkImports(table []pkg, files []file) (out problems) {
	for _, f := range files {
		if f.nested {
			continue
		}
		r, known := row(table, f.dir())
		for _, imp := range f.imports() {
			switch {
			case f.isTest():
				if p, ok := local(imp); ok && slices.Contains(r.notInTests, p) {
					out.add("%s: imports %s, which even its tests must not", f.path, p)
				}
			case f.under("cmd"):
				out = append(out, checkCommandImport(f, imp)...)
			case known:
				out = append(out, checkImport(r, f, imp)...)
			}
		}
	}
	return out
}

func checkCommandImport(f file, imp string) (out problems) {
	if p, ok := local(imp); ok && slices.Contains(testOnly, p) {
		out.add("%s: imports %s, which is for tests", f.path, p)
	}
	return append(out, checkOnly(f, imp)...)
}

func checkImport(r pkg, f file, imp string) (out problems) {
	p, inside := local(imp)
	switch {
	case inside:
		if slices.Contains(commandOnly, p) {
			out.add("%s: imports %s: only programs in cmd choose the hardware", f.path, p)
		} else if !slices.Contains(r.inside, p) {
			out.add("%s: %s must not import %s", f.path, r.path, p)
		}
	case isStd(imp):
		if r.std != nil && !slices.Contains(r.std, imp) {
			out.add("%s: %s must not import %s of the standard library", f.path, r.path, imp)
		}
	case !slices.ContainsFunc(r.outside, func(o string) bool { return o == "" || within(imp, o) }):
		out.add("%s: %s must not import %s", f.path, r.path, imp)
	}
	return append(out, checkOnly(f, imp)...)
}

// checkOnly refuses imports that are kept to one package.
func checkOnly(f file, imp string) (out problems) {
	for prefix, owner := range only {
		if within(imp, prefix) && f.dir() != owner {
			out.add("%s: imports %s, which only %s may", f.path, imp, owner)
		}
	}
	return out
}

// checkClock refuses the clock in pure packages: they take times as arguments.
func checkClock(table []pkg, files []file) (out problems) {
	for _, f := range files {
		r, _ := row(table, f.dir())
		if !r.pure || f.isTest() {
			continue
		}
		names := timeNames(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && slices.Contains(names, x.Name) && slices.Contains(clockNames, sel.Sel.Name) {
				out.add("%s: %s is pure and must not use time.%s", f.path, r.path, sel.Sel.Name)
			}
			return true
		})
		if slices.Contains(names, ".") {
			out.add("%s: %s must not import time into its own scope", f.path, r.path)
		}
	}
	return out
}

var clockNames = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// timeNames returns the names under which the file imports package time.
func timeNames(f file) []string {
	var out []string
	for _, spec := range f.ast.Imports {
		switch {
		case spec.Path.Value != `"time"`:
		case spec.Name != nil:
			out = append(out, spec.Name.Name)
		default:
			out = append(out, "time")
		}
	}
	return out
}

// checkTable holds the table itself to the layers, so that an edit of a row
// cannot turn an import around.
func checkTable(table []pkg) (out problems) {
	for _, r := range table {
		for _, p := range slices.Concat(r.inside, r.notInTests) {
			target, known := row(table, p)
			switch {
			case !known:
				out.add("%s: names %s, which is not in the table", r.path, p)
			case slices.Contains(r.notInTests, p):
			case target.layer > r.layer:
				out.add("%s: may import %s of a higher layer", r.path, p)
			case target.layer == r.layer && r.layer >= adapter && family(p) != family(r.path):
				out.add("%s: may import %s of its own layer", r.path, p)
			}
		}
	}
	return out
}

// family is the package below internal that a path belongs to: hardware/nvml
// and hardware are one family.
func family(p string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "internal/"), "/")
	return first
}

// checkComments demands one package comment per package, in Go's form.
func checkComments(files []file) (out problems) {
	byDir := map[string][]file{}
	hasOther := map[string]bool{}
	for _, f := range files {
		byDir[f.dir()] = append(byDir[f.dir()], f)
		hasOther[f.dir()] = hasOther[f.dir()] || !f.isTest()
	}
	for dir, here := range byDir {
		var comments []string
		want := ""
		for _, f := range here {
			if f.isTest() && hasOther[dir] {
				continue
			}
			want = "Package " + f.ast.Name.Name + " "
			if f.ast.Name.Name == "main" {
				want = "Command " + path.Base(dir) + " "
			}
			if f.ast.Doc != nil {
				comments = append(comments, f.ast.Doc.Text())
			}
		}
		if len(comments) != 1 || !strings.HasPrefix(comments[0], want) {
			out.add("%s: has %d package comments; write exactly one that starts with %q", dir, len(comments), want)
		}
	}
	slices.Sort(out)
	return out
}

// checkLicences demands the licence line at the start of every file.
func checkLicences(files []file) (out problems) {
	for _, f := range files {
		if !strings.HasPrefix(f.text, "// SPDX-License-Identifier: Apache-2.0\n\n") {
			out.add("%s: write the SPDX line first, then an empty line", f.path)
		}
	}
	return out
}

// checkTopLevel demands the entries at the root.
func checkTopLevel(root fs.FS) (out problems) {
	for _, name := range topLevel {
		if _, err := fs.Stat(root, name); err != nil {
			out.add("%s: missing at the root: %v", name, err)
		}
	}
	return out
}

// checkModules compares the modules with go.mod and with what is imported.
func checkModules(list []module, goMod string, files []file) (out problems) {
	direct := directRequirements(goMod)
	for _, m := range list {
		imported := slices.ContainsFunc(files, func(f file) bool {
			return !f.nested && slices.ContainsFunc(f.imports(), func(i string) bool { return within(i, m.path) })
		})
		switch {
		case m.planned && imported:
			out.add("%s: marked as planned, but it is imported: remove the mark", m.path)
		case !m.planned && !imported:
			out.add("%s: no file imports it", m.path)
		case !m.planned && !slices.Contains(direct, m.path):
			out.add("%s: go.mod does not require it directly", m.path)
		}
	}
	return out
}

// directRequirements returns the modules that go.mod requires without the mark
// "// indirect".
func directRequirements(goMod string) []string {
	var out []string
	for line := range strings.Lines(goMod) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			out = append(out, fields[0])
		}
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// file is one parsed Go file.
type file struct {
	path string // from the root, as in "internal/gpu/doc.go"
	text string
	ast  *ast.File
	// nested is true in a Go module below the root, which has its own imports.
	nested bool
}

func (f file) dir() string         { return path.Dir(f.path) }
func (f file) isTest() bool        { return strings.HasSuffix(f.path, "_test.go") }
func (f file) under(d string) bool { return within(f.path, d) }

// imports returns the import paths of the file.
func (f file) imports() []string {
	var out []string
	for _, spec := range f.ast.Imports {
		// The parser has accepted the literal.
		p, _ := strconv.Unquote(spec.Path.Value)
		out = append(out, p)
	}
	return out
}

// within says whether p is dir or lies below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// local returns the path below the module's root of an import of this module.
func local(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, modulePath+"/")
}

// isStd says whether the import is of the standard library: only there the
// first element has no dot.
func isStd(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// load parses every Go file below the root, except where the go command does
// not look either.
func load(root fs.FS) ([]file, error) {
	var files []file
	var nested []string
	fset := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(p):
			return fs.SkipDir
		case d.IsDir():
			if _, err := fs.Stat(root, path.Join(p, "go.mod")); err == nil && p != "." {
				nested = append(nested, p)
			}
			return nil
		case path.Ext(p) != ".go":
			return nil
		}
		f, err := parse(fset, root, p)
		if err != nil {
			return err
		}
		for _, n := range nested {
			f.nested = f.nested || f.under(n)
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func skipped(dir string) bool {
	base := path.Base(dir)
	hidden := strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
	return dir != "." && (hidden || base == "testdata" || base == "vendor" || dir == "bin")
}

func parse(fset *token.FileSet, root fs.FS, p string) (file, error) {
	text, err := fs.ReadFile(root, p)
	if err != nil {
		return file{}, err
	}
	parsed, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, fmt.Errorf("parse %s: %w", p, err)
	}
	return file{path: p, text: string(text), ast: parsed}, nil
}

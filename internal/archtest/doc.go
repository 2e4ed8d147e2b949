// SPDX-License-Identifier: Apache-2.0

// Package archtest keeps the architecture true: which packages exist, what each
// may import, which stay pure, and which modules the project uses. It holds
// tests only.
//
// The tests parse the files and never ask the go command: Go caches the result
// of a test that starts a program, and such a test would not see an edit.
//
// Start with the tables in table_test.go. A new package or a new import is
// first an entry there, which a reviewer can judge against the layers:
//
//	cmd -> services -> adapters -> dra -> engines -> gpu
//
// Imports go to the right, never to the left. Services do not import one
// another, nor do adapters.
package archtest

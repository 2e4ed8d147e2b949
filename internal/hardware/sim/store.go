// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// store holds the state. A committed *State is never changed again, so readers
// share it without a lock; writers change a clone.
type store struct {
	mu    sync.Mutex
	state *State
	path  string // empty in memory
	data  []byte // the file's content that state was parsed from
	lock  *flock.Flock
}

// newMemoryStore takes a copy, so that the caller's state stays its own.
func newMemoryStore(s *State) (*store, error) {
	if s == nil {
		return nil, errors.New("simulator without a state: make one with NewState")
	}
	own, err := s.resolved()
	return &store{state: own}, err
}

// openFile opens a state file; initial is written if there is none yet. An
// existing file is only read: the lock file appears with the first change.
func openFile(path string, initial *State) (*store, error) {
	st := &store{path: path, lock: flock.New(path + ".lock")}
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) && initial != nil {
		return st, st.create(initial)
	}
	_, err = st.read()
	return st, err
}

// create writes the first state, unless another process was faster.
func (st *store) create(initial *State) error {
	if err := st.lock.Lock(); err != nil {
		return fmt.Errorf("lock simulator state %s: %w", st.path, err)
	}
	defer st.unlock()
	if _, err := os.Stat(st.path); err == nil {
		_, err = st.read()
		return err
	}
	own, err := initial.resolved()
	if err != nil {
		return err
	}
	return st.write(own)
}

// view returns the newest committed state. It must not be changed.
func (st *store) view() (*State, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.read()
}

// update changes the state in one step: what fn leaves behind is committed if
// it returns nil, and nothing is otherwise. The error of fn comes back as is.
func (st *store) update(fn func(*State) error) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.lock != nil {
		// Blocking without a context is fine: holders only read and write one
		// small file.
		if err := st.lock.Lock(); err != nil {
			return fmt.Errorf("lock simulator state %s: %w", st.path, err)
		}
		defer st.unlock()
	}
	old, err := st.read()
	if err != nil {
		return err
	}
	next := old.Clone()
	if err := fn(next); err != nil {
		return err
	}
	// What is written is what every process has to be able to read.
	if err := next.check(); err != nil {
		return err
	}
	return st.write(next)
}

func (st *store) unlock() {
	// The lock dies with the descriptor in any case.
	_ = st.lock.Unlock()
}

// read parses the file unless it is byte for byte the one parsed last. It
// needs no file lock: files are replaced as a whole.
func (st *store) read() (*State, error) {
	if st.path == "" {
		return st.state, nil
	}
	data, err := readBounded(st.path)
	if err != nil {
		return nil, fmt.Errorf("simulator state: %w", err)
	}
	if st.state != nil && bytes.Equal(data, st.data) {
		return st.state, nil
	}
	s, err := ParseState(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", st.path, err)
	}
	st.state, st.data = s, data
	return s, nil
}

// readBounded reads one byte more than allowed, so that ParseState sees that
// the file is too large without the memory for all of it.
func readBounded(path string) ([]byte, error) {
	// Opening a pipe would wait for its writer, maybe for ever.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxStateBytes+1))
}

func (st *store) write(s *State) error {
	if st.path == "" {
		st.state = s
		return nil
	}
	data, err := s.Encode()
	if err != nil {
		return err
	}
	if len(data) > maxStateBytes {
		return fmt.Errorf("write simulator state: it would have %d bytes, at most %d can be read", len(data), maxStateBytes)
	}
	if err := renameio.WriteFile(st.path, data, 0o644); err != nil {
		return fmt.Errorf("write simulator state: %w", err)
	}
	st.state, st.data = s, data
	return nil
}

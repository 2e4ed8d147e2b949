// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// Config says how a simulated node behaves. Every field may be left zero but
// State, or Path of an existing file.
type Config struct {
	// State is what the node starts with. It is copied. With a Path it is
	// written only if there is no file yet.
	State *State
	// Path is the state file; empty keeps the state in memory.
	Path string
	// Clock gives the time of events and samples. Without it time stands
	// still, and then samples can never be far enough apart.
	Clock func() time.Time
	// Latency is how long a call takes; nil is no time.
	Latency func(Call) time.Duration
	// Sleep waits that long or until the context ends; nil waits for real.
	Sleep func(context.Context, time.Duration) error
	// OneCallAtATime makes calls wait for each other, as the driver's global
	// lock does under load.
	OneCallAtATime bool
	// Fault can make a call fail.
	Fault FaultInjector
	// NoPermission makes every change fail as if the process was not root.
	NoPermission bool
	// EventPoll is how often a state file is looked at for events of other
	// processes; 0 is 200 ms. In memory nothing is polled.
	EventPoll time.Duration
}

// Call is one call of the interface.
type Call struct {
	Method hardware.Method
	// GPU is empty for calls about the whole node.
	GPU gpu.UUID
	// GI is the GPU instance concerned, else [hardware.NoInstance].
	GI int
	// Number counts the calls of this Node, from 1.
	Number uint64
	// After is false before the call has done anything, and true when its
	// effect has happened and only the answer is missing.
	After bool
}

// Node is a simulated node. Its methods are those of [hardware.Node] and those
// of the operator of the simulation.
type Node struct {
	cfg    Config
	store  *store
	calls  atomic.Uint64
	driver chan struct{} // one token, for OneCallAtATime

	mu     sync.Mutex
	closed chan struct{}
	// changed is closed and replaced at every event of this process.
	changed chan struct{}
}

var _ hardware.Node = (*Node)(nil)

// New returns a simulated node.
func New(cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, driver: make(chan struct{}, 1), closed: make(chan struct{}), changed: make(chan struct{})}
	if n.cfg.Clock == nil {
		n.cfg.Clock = func() time.Time { return time.Time{} }
	}
	if n.cfg.Sleep == nil {
		n.cfg.Sleep = sleep
	}
	if n.cfg.EventPoll <= 0 {
		n.cfg.EventPoll = 200 * time.Millisecond
	}
	var err error
	if cfg.Path == "" {
		n.store, err = newMemoryStore(cfg.State)
	} else {
		n.store, err = openFile(cfg.Path, cfg.State)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Open returns a node on an existing state file, with clock as its time.
func Open(path string, clock func() time.Time) (*Node, error) {
	return New(Config{Path: path, Clock: clock})
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Close ends the event streams. The state stays.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
	default:
		close(n.closed)
	}
	return nil
}

// State returns a copy of the whole state.
func (n *Node) State() (*State, error) {
	s, err := n.store.view()
	if err != nil {
		return nil, err
	}
	return s.Clone(), nil
}

// begin is what every call starts with: latency, then faults. The returned
// function ends the call; it must run, and it can turn success into failure.
func (n *Node) begin(ctx context.Context, c Call) (end func(error) error, err error) {
	c.Number = n.calls.Add(1)
	select {
	case <-n.closed:
		return nil, n.fail(c, errors.New("the node was closed"), "")
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, n.fail(c, err, "")
	}
	release, err := n.takeDriver(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := n.delay(ctx, c); err != nil {
		release()
		return nil, err
	}
	if err := n.inject(c); err != nil {
		release()
		return nil, err
	}
	return func(err error) error {
		defer release()
		if err != nil {
			return err
		}
		c.After = true
		return n.inject(c)
	}, nil
}

func (n *Node) takeDriver(ctx context.Context, c Call) (release func(), err error) {
	if !n.cfg.OneCallAtATime {
		return func() {}, nil
	}
	select {
	case n.driver <- struct{}{}:
		return func() { <-n.driver }, nil
	case <-ctx.Done():
		return nil, n.fail(c, ctx.Err(), "waiting for the driver")
	}
}

func (n *Node) delay(ctx context.Context, c Call) error {
	if n.cfg.Latency == nil {
		return nil
	}
	if d := n.cfg.Latency(c); d > 0 {
		if err := n.cfg.Sleep(ctx, d); err != nil {
			return n.fail(c, err, fmt.Sprintf("the call takes %v", d))
		}
	}
	return nil
}

func (n *Node) inject(c Call) error {
	if n.cfg.Fault == nil {
		return nil
	}
	if err := n.cfg.Fault(c); err != nil {
		return n.fail(c, err, "injected fault")
	}
	return nil
}

func (n *Node) fail(c Call, err error, detail string) error {
	return &hardware.Error{Call: c.Method, GPU: c.GPU, Detail: detail, Err: err}
}

// refusal is an error of a rule before it is known which call broke it.
type refusal struct {
	err    error
	detail string
}

func (r *refusal) Error() string { return r.detail + ": " + r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(err error, format string, args ...any) error {
	return &refusal{err: err, detail: fmt.Sprintf(format, args...)}
}

// wrap names call and GPU. An error of the store passes unchanged.
func (n *Node) wrap(c Call, err error) error {
	var r *refusal
	if errors.As(err, &r) {
		return n.fail(c, r.err, r.detail)
	}
	return err
}

// read runs a call that changes nothing.
func (n *Node) read(ctx context.Context, c Call, fn func(*State, *GPUState) error) error {
	end, err := n.begin(ctx, c)
	if err != nil {
		return err
	}
	s, err := n.store.view()
	if err == nil {
		err = n.wrap(c, onGPU(s, c, fn))
	}
	return end(err)
}

// change runs a call that changes the state, and wakes the event streams.
func (n *Node) change(ctx context.Context, c Call, fn func(*State, *GPUState) error) error {
	end, err := n.begin(ctx, c)
	if err != nil {
		return err
	}
	if n.cfg.NoPermission {
		return end(n.fail(c, hardware.ErrNoPermission, ""))
	}
	err = n.wrap(c, n.store.update(func(s *State) error { return onGPU(s, c, fn) }))
	n.wake()
	return end(err)
}

func onGPU(s *State, c Call, fn func(*State, *GPUState) error) error {
	if c.GPU == "" {
		return fn(s, nil)
	}
	g := s.gpu(c.GPU)
	switch {
	case g == nil:
		return refuse(hardware.ErrNotFound, "no GPU with this UUID")
	case g.Lost:
		return refuse(hardware.ErrLost, "fell off the bus")
	}
	return fn(s, g)
}

func on(m hardware.Method, id gpu.UUID) Call {
	return Call{Method: m, GPU: id, GI: hardware.NoInstance}
}

func onInstance(m hardware.Method, of hardware.Instance) Call {
	return Call{Method: m, GPU: of.GPU, GI: of.GI}
}

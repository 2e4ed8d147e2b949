// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// Thresholds of every simulated board.
const (
	slowdownCelsius = 87
	powerLimitWatts = 700
)

// Health implements [hardware.Health].
func (n *Node) Health(ctx context.Context, id gpu.UUID) (hardware.HealthValues, error) {
	var out hardware.HealthValues
	err := n.read(ctx, on(hardware.MethodHealth, id), func(s *State, g *GPUState) error {
		h := g.Health
		out = hardware.HealthValues{
			Recovery: h.Recovery,
			Rows: hardware.RemappedRows{
				Correctable: h.RowsCorrectable, Uncorrectable: h.RowsUncorrectable,
				Pending: h.RowsPending, Failure: h.RowsFailure, Known: hasRowRemapping(s.model(g).Architecture),
			},
			CorrectedECC: hardware.Valid(float64(h.CorrectedECC)), UncorrectedECC: hardware.Valid(float64(h.UncorrectedECC)),
			TemperatureCelsius: hardware.Valid(h.TemperatureCelsius), SlowdownCelsius: hardware.Valid(slowdownCelsius),
			PowerWatts: hardware.Valid(h.PowerWatts), PowerLimitWatts: hardware.Valid(powerLimitWatts),
			Throttle: slices.Clone(h.Throttle),
		}
		if !s.driver().Able.RecoveryAction {
			out.Recovery = hardware.RecoveryUnknown
		}
		return nil
	})
	return out, err
}

// hasRowRemapping: it came with Ampere's data centre boards.
func hasRowRemapping(a gpu.Architecture) bool { return a != gpu.Volta && a != gpu.Turing }

// record appends an event; the oldest leave. The sequence shows a reader how
// many it missed.
func (s *State) record(e EventState) {
	s.Sequence++
	e.Sequence = s.Sequence
	if over := len(s.Events) + 1 - maxEvents; over > 0 {
		s.Events = slices.Delete(s.Events, 0, over)
	}
	s.Events = append(s.Events, e)
}

// wake tells the event streams of this process to look.
func (n *Node) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Node) waker() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Events implements [hardware.Health]. With a state file it also delivers what
// other processes did, at the pace of [Config.EventPoll].
func (n *Node) Events(ctx context.Context) (<-chan hardware.Event, error) {
	s := (*State)(nil)
	err := n.read(ctx, on(hardware.MethodEvents, ""), func(now *State, _ *GPUState) error {
		s = now
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make(chan hardware.Event)
	go n.stream(ctx, s, out)
	return out, nil
}

func (n *Node) stream(ctx context.Context, seen *State, out chan<- hardware.Event) {
	defer close(out)
	var tick <-chan time.Time
	if n.cfg.Path != "" {
		t := time.NewTicker(n.cfg.EventPoll)
		defer t.Stop()
		tick = t.C
	}
	cursor := seen.Sequence
	for {
		// The waker is taken before reading, so that no change is lost between.
		changed := n.waker()
		s, err := n.store.view()
		if err == nil {
			for _, e := range s.after(&cursor) {
				e.At = n.cfg.Clock()
				select {
				case out <- e:
				case <-ctx.Done():
					return
				case <-n.closed:
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-n.closed:
			return
		case <-changed:
		case <-tick:
		}
	}
}

// after lists the events behind a cursor and moves it.
func (s *State) after(cursor *uint64) []hardware.Event {
	var out []hardware.Event
	switch {
	case s.Sequence < *cursor:
		// Somebody started the state file afresh.
		out = append(out, hardware.Event{Kind: hardware.EventMissed, GI: hardware.NoInstance, CI: hardware.NoInstance})
	case len(s.Events) == maxEvents && s.Events[0].Sequence > *cursor+1:
		out = append(out, hardware.Event{Kind: hardware.EventMissed, GI: hardware.NoInstance, CI: hardware.NoInstance})
		fallthrough
	default:
		for _, e := range s.Events {
			if e.Sequence > *cursor {
				out = append(out, hardware.Event{Kind: e.Kind, GPU: e.GPU, XID: e.XID, GI: e.GI, CI: e.CI})
			}
		}
	}
	*cursor = s.Sequence
	return out
}

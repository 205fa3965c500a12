package eval

import (
	"fmt"

	"github.com/kgen-dev/kgen/ir"
)

// phase is where a buffer of a ring stands.
type phase uint8

const (
	free      phase = iota // may be acquired or filled
	filling                // copies started or written, not committed
	committed              // its group is closed, nothing has landed
	landed                 // may be read
)

var phaseNames = [...]string{"free", "being filled", "committed but not waited for", "landed"}

// ring is a ring of shared buffers.
type ring struct {
	slots []slot
}

// slot is one buffer. What it holds is of index k, unless it is free.
type slot struct {
	data    *store
	phase   phase
	k       int
	held    bool // acquired for k
	written bool // by write, not by a copy
	used    bool // released before: from then on it must be acquired
}

// group is copies closed by one commit.
type group struct {
	copies []landing
	done   bool
}

// landing is an asynchronous copy under way.
type landing struct {
	access *access
	slot   *slot
	k      int
}

// role is a thread of control with the copies it started: the kernel's own, or a
// region of roles.
type role struct {
	open   []landing
	groups []*group
	yield  func() bool // lets the others run; nil: there are none
	ops    int         // run so far
}

func newRing(t ir.Type) *ring {
	r := &ring{slots: make([]slot, t.Depth)}
	for i := range r.slots {
		r.slots[i].data = newStore(classOf(t.Elem), t.Elements())
		r.slots[i].data.poison(t.Elem)
	}
	return r
}

// slot returns the buffer of index k.
func (r *ring) slot(k int) (*slot, error) {
	if k < 0 {
		return nil, fmt.Errorf("index %d: want 0 or more", k)
	}
	return &r.slots[k%len(r.slots)], nil
}

func (s *slot) String() string {
	if s.phase == free && !s.held {
		return "free"
	}
	return fmt.Sprintf("%s for index %d", phaseNames[s.phase], s.k)
}

// staged runs the operations on rings.
func (m *machine) staged(o *ir.Op) error {
	switch o.Code {
	case ir.OpRing:
		m.bytes += int64(o.Results[0].Type.Depth*o.Results[0].Type.Elements()) * 8
		m.cells[o.Results[0].ID].ring = newRing(o.Results[0].Type)
		return nil
	case ir.OpBarrier:
		return m.barrier(o)
	case ir.OpCommit:
		return m.commit(o)
	case ir.OpWait:
		return m.wait(o)
	case ir.OpAcquire, ir.OpRelease:
		return m.eachSlot(o, func(s *slot, k int) error {
			if o.Code == ir.OpAcquire {
				return m.acquire(s, k)
			}
			return s.release(k)
		})
	}
	s, k, err := m.slotOf(o)
	if err != nil {
		return err
	}
	switch o.Code {
	case ir.OpCopy:
		return m.copy(o, s, k)
	case ir.OpWrite:
		if err := s.begin(k); err != nil {
			return err
		}
		s.written = true
		s.data.copyRun(0, m.get(o.Operand("value")), 0, s.data.len())
		return nil
	}
	if s.phase != landed || s.k != k {
		return fmt.Errorf("index %d: the buffer is %s", k, s)
	}
	m.own(o.Results[0]).copyRun(0, s.data, 0, s.data.len())
	return nil
}

// slotOf returns the buffer an operation on one ring names, and the index.
func (m *machine) slotOf(o *ir.Op) (*slot, int, error) {
	k := m.index(o.Operand("slot"))
	s, err := m.cells[o.Operand("ring").ID].ring.slot(k)
	return s, k, err
}

func (m *machine) eachSlot(o *ir.Op, f func(s *slot, k int) error) error {
	k := m.index(o.Operand("slot"))
	for _, v := range o.Operands("rings") {
		s, err := m.cells[v.ID].ring.slot(k)
		if err != nil {
			return err
		}
		if err := f(s, k); err != nil {
			return err
		}
	}
	return nil
}

// acquire takes a buffer for index k once it is free.
func (m *machine) acquire(s *slot, k int) error {
	for s.phase != free || s.held {
		if !m.role.pause() {
			return fmt.Errorf("index %d: the buffer is %s and nobody releases it", k, s)
		}
	}
	s.held, s.k = true, k
	return nil
}

func (s *slot) release(k int) error {
	if s.phase != landed || s.k != k {
		return fmt.Errorf("index %d: the buffer is %s", k, s)
	}
	s.phase, s.held, s.used = free, false, true
	return nil
}

// begin checks that a buffer may be filled for index k.
func (s *slot) begin(k int) error {
	if s.phase != free || s.held && s.k != k {
		return fmt.Errorf("index %d: the buffer is %s", k, s)
	}
	if s.used && !s.held {
		return fmt.Errorf("index %d: the buffer was used before and is not acquired", k)
	}
	s.phase, s.k, s.written = filling, k, false
	return nil
}

// copy starts a copy: the buffer is poisoned until it lands.
func (m *machine) copy(o *ir.Op, s *slot, k int) error {
	if err := s.begin(k); err != nil {
		return err
	}
	t := o.Operand("ring").Type
	s.data.poison(t.Elem)
	if p := o.Operand("pred"); p != nil && m.get(p).i[0] == 0 {
		return nil
	}
	a := m.access(o, t.Shape)
	a.keep()
	m.role.open = append(m.role.open, landing{a, s, k})
	return nil
}

// commit closes the group of the copies started since the last commit.
func (m *machine) commit(o *ir.Op) error {
	named := map[*slot]bool{}
	err := m.eachSlot(o, func(s *slot, k int) error {
		if s.phase != filling || s.k != k {
			return fmt.Errorf("index %d: the buffer is %s", k, s)
		}
		s.phase = committed
		named[s] = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range m.role.open {
		if !named[l.slot] {
			return fmt.Errorf("a copy started for index %d belongs to no ring of this commit", l.k)
		}
	}
	m.role.groups = append(m.role.groups, &group{copies: m.role.open})
	m.role.open = nil
	return nil
}

// wait lands all of the role's groups but the last pending ones. A buffer that
// another role fills is waited for by itself.
func (m *machine) wait(o *ir.Op) error {
	gs := m.role.groups
	for _, g := range gs[:max(len(gs)-o.Pending, 0)] {
		g.land()
	}
	m.role.groups = gs[max(len(gs)-o.Pending, 0):]
	return m.eachSlot(o, func(s *slot, k int) error {
		for s.k != k || s.phase != committed && s.phase != landed {
			if !m.role.pause() {
				return fmt.Errorf("index %d: the buffer is %s, and nobody commits that index", k, s)
			}
		}
		if m.role.leaves(s, k) {
			return fmt.Errorf("index %d: pending=%d leaves its group in flight", k, o.Pending)
		}
		m.landFrom(s, k)
		s.phase = landed
		return nil
	})
}

// leaves reports whether a group still in flight fills s.
func (r *role) leaves(s *slot, k int) bool {
	for _, g := range r.groups {
		if g.fills(s, k) {
			return true
		}
	}
	return false
}

func (g *group) fills(s *slot, k int) bool {
	for _, l := range g.copies {
		if l.slot == s && l.k == k && !g.done {
			return true
		}
	}
	return false
}

func (g *group) land() {
	if g.done {
		return
	}
	g.done = true
	for _, l := range g.copies {
		l.access.load(l.slot.data)
	}
}

// landFrom lands the group of another role that fills s.
func (m *machine) landFrom(s *slot, k int) {
	for _, r := range m.peers() {
		for _, g := range r.groups {
			if g.fills(s, k) {
				g.land()
			}
		}
	}
}

// barrier makes what was written visible.
func (m *machine) barrier(*ir.Op) error {
	for i := range m.cells {
		if r := m.cells[i].ring; r != nil {
			for j := range r.slots {
				if s := &r.slots[j]; s.phase == filling && s.written {
					s.phase = landed
				}
			}
		}
	}
	return nil
}

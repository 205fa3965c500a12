package eval

import (
	"fmt"
	"iter"
	"strings"

	"github.com/kgen-dev/kgen/ir"
)

// roles runs the regions as coroutines, in turn: each until it has to wait for
// another or ends.
func (m *machine) roles(o *ir.Op) error {
	outer := m.role
	team := &team{}
	defer func() { m.role, m.team = outer, nil }()
	m.team = team
	for i, r := range o.Regions {
		team.start(m, o.Roles[i].Name, r)
	}
	defer team.stop()
	for {
		moved, running := false, false
		for _, t := range team.members {
			if t.ended {
				continue
			}
			running = true
			m.role = t.role
			before := t.role.ops
			if _, more := t.resume(); !more {
				t.ended = true
			}
			moved = moved || t.ended || t.role.ops > before
			if t.err != nil {
				return fmt.Errorf("role %s: %w", t.name, t.err)
			}
		}
		switch {
		case !running:
			return nil
		case !moved:
			return team.deadlock(m)
		}
	}
}

// team is the roles that run at the same time.
type team struct {
	members []*member
}

// member is one of them.
type member struct {
	name   string
	role   *role
	resume func() (struct{}, bool)
	stop   func()
	err    error
	ended  bool
}

// start makes a coroutine of a region; it runs when it is resumed.
func (t *team) start(m *machine, name string, r *ir.Region) {
	b := &member{name: name, role: &role{}}
	b.resume, b.stop = iter.Pull(func(yield func(struct{}) bool) {
		b.role.yield = func() bool { return yield(struct{}{}) }
		b.err = m.region(r)
	})
	t.members = append(t.members, b)
}

// stop ends the roles that still run: their waits fail.
func (t *team) stop() {
	for _, b := range t.members {
		b.stop()
	}
}

// deadlock lets every role fail at its wait, and joins what they say.
func (t *team) deadlock(m *machine) error {
	var lines []string
	for _, b := range t.members {
		if b.ended {
			continue
		}
		m.role = b.role
		b.role.yield = nil
		b.resume()
		if b.err != nil {
			lines = append(lines, fmt.Sprintf("role %s: %v", b.name, b.err))
		}
	}
	return fmt.Errorf("every role waits for another: %s", strings.Join(lines, "; "))
}

// pause lets the other roles run; it reports whether it is worth looking again.
func (r *role) pause() bool { return r.yield != nil && r.yield() }

// peers returns the roles that run beside this one.
func (m *machine) peers() []*role {
	if m.team == nil {
		return nil
	}
	var out []*role
	for _, b := range m.team.members {
		out = append(out, b.role)
	}
	return out
}

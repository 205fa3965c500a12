package queue

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// State is what a worker is doing.
type State string

// The states.
const (
	Idle State = "idle"
	Busy State = "busy"
	Lost State = "lost" // nothing is heard of it
	Left State = "left" // it said that it goes
)

// Standing is what a tuner knows of a worker.
type Standing struct {
	Worker   string `json:"worker"`
	State    State  `json:"state"`
	Compiled int    `json:"compiled"` // results that were taken
	Ran      int    `json:"ran"`
}

// mostWorkers bounds how many a tuner keeps in mind, mostJobs how many jobs at a time it
// believes one of.
const (
	mostWorkers = 10_000
	mostJobs    = 1024
)

// roster is who works for a tuner.
type roster struct {
	log *slog.Logger

	mu      sync.Mutex
	want    Identity
	members map[string]*member
	met     chan struct{} // closed when the first has come
	pin     bool          // one is to be chosen
	pinned  string        // it; "" of none
}

type member struct {
	seen          time.Time
	busy, jobs    int // under way, and most at a time
	compiled, ran int
	refused, left bool
}

// there tells whether a worker can be counted on.
func (m *member) there() bool { return !m.refused && !m.left && time.Since(m.seen) <= lostAfter }

func newRoster(want Identity, log *slog.Logger) *roster {
	return &roster{log: log, want: want, members: map[string]*member{}, met: make(chan struct{})}
}

// greet takes note of a worker and says why it is refused; "" if it is not.
func (r *roster) greet(g *greeting) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := r.want.differs(&g.Identity)
	m := r.member(g.Worker)
	if m == nil {
		return "there are too many workers"
	}
	fresh := !m.there()
	m.seen, m.busy, m.jobs, m.left = time.Now(), g.Busy, min(max(g.Jobs, 1), mostJobs), g.Leaves
	if g.Leaves {
		r.log.Info("a worker leaves", "worker", g.Worker)
		return ""
	}
	if why != "" {
		if !m.refused {
			r.log.Warn("a worker is refused", "worker", g.Worker, "why", why)
		}
		m.refused = true
		return why
	}
	if fresh {
		r.log.Info("a worker is there", "worker", g.Worker)
	}
	if r.want.Driver == "" {
		r.want.Driver = g.Driver // those that come later have the same
	}
	select {
	case <-r.met:
	default:
		close(r.met)
	}
	return ""
}

// member is a worker's entry; nil if there are too many. The lock is held.
func (r *roster) member(name string) *member {
	m := r.members[name]
	if m == nil && len(r.members) < mostWorkers {
		m = &member{}
		r.members[name] = m
	}
	return m
}

// choose chooses the worker that runs what is compared closely, and another when it is
// lost. The lock is held.
func (r *roster) choose() {
	if m := r.members[r.pinned]; !r.pin || m != nil && m.there() {
		return
	}
	old := r.pinned
	for name, m := range r.members {
		if m.there() && (r.pinned == old || name < r.pinned) {
			r.pinned = name
		}
	}
	if old != "" && r.pinned != old {
		r.log.Warn("what was timed on one GPU goes on on another", "worker", r.pinned)
	}
}

// pins tells whether one worker alone times.
func (r *roster) pins() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pin
}

// isPinned tells whether a worker is the chosen one.
func (r *roster) isPinned(worker string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.choose()
	return r.pinned == worker
}

// count notes a result that was taken.
func (r *roster) count(worker, do string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.member(worker)
	switch {
	case m == nil:
	case do == doCompile:
		m.compiled++
	default:
		m.ran++
	}
}

// driver is the device's name that all workers have; "" until the first has come.
func (r *roster) driver() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want.Driver
}

// slots is how many jobs those who are there do at a time.
func (r *roster) slots() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if m.there() {
			n += m.jobs
		}
	}
	return n
}

// standings are the workers by name.
func (r *roster) standings() []Standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Standing
	for name, m := range r.members {
		if m.refused {
			continue
		}
		s := Standing{Worker: name, State: Idle, Compiled: m.compiled, Ran: m.ran}
		switch {
		case m.left:
			s.State = Left
		case !m.there():
			s.State = Lost
		case m.busy > 0:
			s.State = Busy
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Standing) int { return cmp.Compare(a.Worker, b.Worker) })
	return out
}

// missing notes who has gone since the last call, and how many are there.
func (r *roster) missing(known map[string]State) (there int) {
	for _, s := range r.standings() {
		if s.State == Lost && known[s.Worker] != Lost {
			r.log.Warn("a worker is lost: others get what it had", "worker", s.Worker)
		}
		if s.State == Idle || s.State == Busy {
			there++
		}
		known[s.Worker] = s.State
	}
	return there
}

// Summary is a line about workers for people; "" of none.
func Summary(all []Standing) string {
	counts := map[State]int{}
	for _, s := range all {
		counts[s.State]++
	}
	text := ""
	for _, state := range []State{Busy, Idle, Lost, Left} {
		if n := counts[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if text == "" {
		return ""
	}
	return text[2:]
}

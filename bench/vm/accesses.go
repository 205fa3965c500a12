package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// trace names an access of some block: the number of its record, the lane, and which
// bytes of the word. The zero trace is none.
type trace uint32

const (
	traceLane    = 4 // shifts
	traceIndex   = 9
	bytesOfTrace = 15
)

func (t trace) bytes() uint32 { return uint32(t) & bytesOfTrace }
func (t trace) lane() int     { return int(t>>traceLane) & (warpSize - 1) }

// without is an access but for the bytes that another is of.
func (t trace) without(o trace) trace {
	if t &^= trace(o.bytes()); t.bytes() != 0 {
		return t
	}
	return 0
}

// accessRecord is an event of a block, kept for the blocks after it.
type accessRecord struct {
	src   *ptx.Instruction
	tick  uint32
	block uint32
	warp  uint16
	agent uint16 // of an asynchronous operation: whose clock it is on, 0 is the warp's
	flags eventFlags
	scope scope
}

// knownTo says whether a clock of another block knows of an access.
func (a *accessRecord) knownTo(v vclock, lane int) bool {
	switch {
	case a.flags&eventVague != 0:
		return len(v) > 0
	case a.agent != 0:
		return v.knows(int(a.agent), lane, a.tick)
	}
	return v.knows(int(a.warp), lane, a.tick)
}

const (
	mostRecords = 1 << 20                // that are kept one by one
	maxRecords  = 1 << (32 - traceIndex) // that traces have numbers for
	recordChunk = 1 << 12
)

// records are numbered from 1.
type records struct {
	chunks [][]accessRecord
	n      uint32 // the number of the last
	round  uint32 // how often they were numbered anew
	most   uint32 // to keep one by one
	next   uint32 // when to look for those that no trace names
}

// at is the record of a number.
func (rs *records) at(n uint32) *accessRecord { return &rs.chunks[n/recordChunk][n%recordChunk] }

func (rs *records) add(rec accessRecord) uint32 {
	rs.n++
	if int(rs.n/recordChunk) == len(rs.chunks) {
		rs.chunks = append(rs.chunks, make([]accessRecord, recordChunk))
	}
	*rs.at(rs.n) = rec
	return rs.n
}

// access is the record of a trace.
func (x *across) access(t trace) *accessRecord { return x.records.at(uint32(t >> traceIndex)) }

// trace makes the trace of an access.
func (r *raceState) trace(x *across, s stamp, bytes uint32) trace {
	rs := &x.records
	if r.globalRound != rs.round {
		r.global, r.globalRound = r.global[:0], rs.round
	}
	id := s.event()
	for uint32(len(r.global)) <= id {
		r.global = append(r.global, 0)
	}
	n := r.global[id]
	if n == 0 {
		e := &r.events[id]
		rec := accessRecord{src: e.src, block: uint32(r.b.order), tick: e.tick, warp: e.warp, agent: uint16(e.agent), flags: e.flags, scope: e.scope}
		if rs.n >= rs.most {
			// Too many to keep: one for the block, and nothing of who and where.
			rec = accessRecord{block: rec.block, flags: rec.flags&^eventWrote | eventVague, scope: rec.scope}
			if *rs.at(rs.n) == rec || rs.n+1 >= maxRecords {
				n = rs.n
			}
		}
		if n == 0 {
			n = rs.add(rec)
		}
		r.global[id] = n
	}
	return trace(n)<<traceIndex | trace(s.lane())<<traceLane | trace(bytes)
}

// sweep drops the records that no trace names any more, once there are many.
func (x *across) sweep() {
	rs := &x.records
	if rs.n < rs.next {
		return
	}
	number := make([]uint32, rs.n+1)
	x.eachTrace(func(t trace) trace {
		number[t>>traceIndex] = 1
		return t
	})
	last := uint32(0)
	for n := uint32(1); n <= rs.n; n++ {
		if number[n] != 0 {
			last++
			number[n] = last
			*rs.at(last) = *rs.at(n)
		}
	}
	rs.chunks, rs.n = rs.chunks[:last/recordChunk+1], last
	rs.round++
	rs.next = max(rs.most, 2*last)
	x.eachTrace(func(t trace) trace {
		return trace(number[t>>traceIndex])<<traceIndex | t&(1<<traceIndex-1)
	})
}

// eachTrace puts what f makes of them in place of all traces.
func (x *across) eachTrace(f func(t trace) trace) {
	o := &x.line
	line := func(line *lineTraces) {
		for j, t := range line {
			if t != 0 {
				line[j] = f(t)
			}
		}
	}
	for _, al := range x.shadows.of {
		for i := range al.shadows {
			if al.shadows[i] == (shadow{}) {
				continue
			}
			x.shadows.open(o, &al.shadows[i])
			o.each(line)
			x.store()
		}
	}
}

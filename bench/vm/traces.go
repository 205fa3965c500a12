package vm

// A line of words whose traces follow each other evenly is packed into one trace and a
// step. So are those that lanes side by side access, and those of a column that blocks
// in a row do.

const lineWords = pageLineSize / 4

type lineTraces [lineWords]trace

// packedLine is a line whose word i has the trace first, and i steps more; the zero one
// has none. The step's low bits, which are no trace's but for which bytes it is of, say
// what it counts.
type packedLine struct {
	first trace
	step  uint32
}

const (
	stepOfTraces = iota         // differences of traces
	stepOfLanes                 // eighths of a lane
	besideWrites                // none: first is the difference from the word's last write, where there is one
	oddLine      = bytesOfTrace // none: it is the odd line of the number first
	stepKind     = bytesOfTrace
)

func (l packedLine) kind() uint32 { return l.step & stepKind }

// laneSteps are those of one lane's 2, 4 and 8 words, in eighths of a lane.
var laneSteps = [...]uint32{4, 2, 1}

func (l packedLine) at(i int) trace {
	if l.kind() == stepOfLanes {
		return l.first + trace(uint32(i)*(l.step>>traceLane)>>3)<<traceLane
	}
	return l.first + trace(uint32(i)*l.step)
}

// row is the line as a trace and a step, if it can be.
func (w *lineTraces) row() (packedLine, bool) {
	if d := uint32(w[1] - w[0]); d&stepKind == stepOfTraces {
		if l := (packedLine{w[0], d}); l.is(w) {
			return l, true
		}
	}
	for _, n := range laneSteps {
		if l := (packedLine{w[0], n<<traceLane | stepOfLanes}); l.is(w) {
			return l, true
		}
	}
	return packedLine{}, false
}

func (l packedLine) is(w *lineTraces) bool {
	if w[lineWords-1] != l.at(lineWords-1) {
		return false
	}
	for i, t := range w {
		if t != l.at(i) {
			return false
		}
	}
	return true
}

// unpack writes the traces of a row.
func (l packedLine) unpack(to *lineTraces) {
	for i := range to {
		to[i] = l.at(i)
	}
}

// beside is the line as one difference from that of the words' last writes, if it can be:
// who read a word before it wrote it has one of both.
func (w *lineTraces) beside(writes *lineTraces) (packedLine, bool) {
	var d trace
	for i, t := range w {
		switch {
		case (t == 0) != (writes[i] == 0):
			return packedLine{}, false
		case t == 0:
		case d == 0:
			if d = t - writes[i]; d == 0 {
				return packedLine{}, false
			}
		case t-writes[i] != d:
			return packedLine{}, false
		}
	}
	return packedLine{d, besideWrites}, d != 0
}

// unpackBeside writes the traces of a line that is beside the last writes.
func (l packedLine) unpackBeside(to, writes *lineTraces) {
	*to = lineTraces{}
	for i, t := range writes {
		if t != 0 {
			to[i] = t + l.first
		}
	}
}

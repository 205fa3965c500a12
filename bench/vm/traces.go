package vm

import "unsafe"

// traces are those of the words of a page, packed: a line of words whose traces
// follow each other evenly is one trace and a step. So are those that lanes side by
// side access, and those of a column that blocks in a row do. No traces are nil.
type traces struct {
	lines [pageWords / lineWords]tracedLine
	odd   []lineTraces // of lines that are no such row
}

const (
	pageWords = shadowSize / 4
	lineWords = 16
)

type (
	pageTraces [pageWords]trace
	lineTraces [lineWords]trace
)

// tracedLine is a line whose word i has the trace first, and i steps more. The step's
// low bits, which are no trace's but for which bytes it is of, say what it counts.
type tracedLine struct {
	first trace
	step  uint32
}

const (
	stepOfTraces = iota // differences of traces
	stepOfLanes         // eighths of a lane
	oddLine             // none: it is the odd line of the number first
	stepKind     = bytesOfTrace
)

// laneSteps are those of one lane's 2, 4 and 8 words, in eighths of a lane.
var laneSteps = [...]uint32{4, 2, 1}

func (l tracedLine) at(i int) trace {
	if l.step&stepKind == stepOfLanes {
		return l.first + trace(uint32(i)*(l.step>>traceLane)>>3)<<traceLane
	}
	return l.first + trace(uint32(i)*l.step)
}

// row is the line as a trace and a step, if it can be.
func (w *lineTraces) row() (tracedLine, bool) {
	if d := uint32(w[1] - w[0]); d&stepKind == stepOfTraces {
		if l := (tracedLine{w[0], d}); l.is(w) {
			return l, true
		}
	}
	for _, n := range laneSteps {
		if l := (tracedLine{w[0], n<<traceLane | stepOfLanes}); l.is(w) {
			return l, true
		}
	}
	return tracedLine{}, false
}

func (l tracedLine) is(w *lineTraces) bool {
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

// of is the trace of one word.
func (t *traces) of(word int) trace {
	if t == nil {
		return 0
	}
	l, i := t.lines[word/lineWords], word%lineWords
	if l.step&stepKind == oddLine {
		return t.odd[l.first][i]
	}
	return l.at(i)
}

// unpack writes the traces of all words.
func (t *traces) unpack(to *pageTraces) {
	if t == nil {
		*to = pageTraces{}
		return
	}
	for i, l := range t.lines {
		w := (*lineTraces)(to[i*lineWords:])
		if l.step&stepKind == oddLine {
			*w = t.odd[l.first]
			continue
		}
		for j := range w {
			w[j] = l.at(j)
		}
	}
}

// pack keeps the traces of all words in t, or in a new place if that is nil; nil if
// there are none. Those of odd lines are dropped where there is no room for them.
func (t *traces) pack(from *pageTraces, room bool) *traces {
	var lines [pageWords / lineWords]tracedLine
	odd := 0
	for i := range lines {
		w := (*lineTraces)(from[i*lineWords:])
		l, ok := w.row()
		if !ok && room {
			l = tracedLine{trace(odd), oddLine}
			odd++
		}
		lines[i] = l
	}
	if lines == ([pageWords / lineWords]tracedLine{}) {
		return nil
	}
	if t == nil {
		t = new(traces)
	}
	t.lines = lines
	switch {
	case odd == 0:
		t.odd = nil
	case odd != len(t.odd):
		t.odd = make([]lineTraces, odd)
	}
	for i, l := range lines {
		if l.step&stepKind == oddLine {
			t.odd[l.first] = lineTraces(from[i*lineWords:])
		}
	}
	return t
}

// size is how many bytes they take.
func (t *traces) size() int64 {
	if t == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*t)) + int64(len(t.odd))*int64(unsafe.Sizeof(lineTraces{}))
}

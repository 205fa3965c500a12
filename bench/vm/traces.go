package vm

// traces are those of the words of a page, packed: where lanes that follow each
// other access words that do, as in coalesced accesses, a line of words is one
// trace and a step. The zero traces are none.
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

// tracedLine is a line whose word i has the trace first, i*step/8 lanes further on;
// with the step oddLine it is the odd line of that number.
type tracedLine struct {
	first trace
	step  uint8
}

const oddLine = 255

// steps are those of a word accessed by one lane of all, of vectors of 8, 4 and 2
// words, of single words, and of halves of words.
var steps = [...]uint8{0, 8, 2, 4, 16, 1}

func (l tracedLine) at(i int) trace {
	return l.first + trace(i*int(l.step)>>3)<<traceLane
}

// row is the line as a trace and a step, if it can be.
func (w *lineTraces) row() (tracedLine, bool) {
	for _, step := range steps {
		if l := (tracedLine{w[0], step}); w[lineWords-1] == l.at(lineWords-1) && l.is(w) {
			return l, true
		}
	}
	return tracedLine{}, false
}

func (l tracedLine) is(w *lineTraces) bool {
	for i, t := range w {
		if t != l.at(i) {
			return false
		}
	}
	return true
}

// of is the trace of one word.
func (t *traces) of(word int) trace {
	l, i := t.lines[word/lineWords], word%lineWords
	if l.step == oddLine {
		return t.odd[l.first][i]
	}
	return l.at(i)
}

// unpack writes the traces of all words.
func (t *traces) unpack(to *pageTraces) {
	for i, l := range t.lines {
		w := (*lineTraces)(to[i*lineWords:])
		if l.step == oddLine {
			*w = t.odd[l.first]
			continue
		}
		for j := range w {
			w[j] = l.at(j)
		}
	}
}

// pack keeps the traces of all words.
func (t *traces) pack(from *pageTraces) {
	odd := t.odd[:0]
	for i := range t.lines {
		w := (*lineTraces)(from[i*lineWords:])
		l, ok := w.row()
		if !ok {
			l = tracedLine{trace(len(odd)), oddLine}
			odd = append(odd, *w)
		}
		t.lines[i] = l
	}
	if t.odd = odd; len(odd) == 0 {
		t.odd = nil
	}
}

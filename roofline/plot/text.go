package plot

// spread is how much wider than Helvetica the widest of the faces in fontFamily
// sets a text (DejaVu Sans), so that labels keep clear of each other in all.
const spread = 1.15

// width returns the width in pixels that a text of a size takes at most. Labels
// are placed by it, so that every back end and machine places them alike.
func width(s string, size float64, bold bool) float64 { return helvetica(s, size, bold) * spread }

// helvetica returns the width of a text in Helvetica itself.
func helvetica(s string, size float64, bold bool) float64 {
	sum := 0
	for _, r := range s {
		if r >= ' ' && int(r-' ') < len(widths) {
			sum += int(widths[r-' '])
		} else {
			sum += 600
		}
	}
	w := float64(sum) * size / 1000
	if bold {
		w *= 1.09
	}
	return w
}

// widths are the advance widths of Helvetica from space to tilde, in
// thousandths of the size. Source: Adobe core font metrics, Helvetica.afm.
var widths = [...]uint16{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// joins says whether a letter only changes how its neighbours look, as in emoji: a font
// without these has nothing to show for it.
func joins(r rune) bool {
	return r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' || r >= 0x1f3fb && r <= 0x1f3ff
}

// fit cuts a text to a width in pixels; an ellipsis stands for what is cut.
func fit(s string, size float64, bold bool, limit float64) string {
	if width(s, size, bold) <= limit {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && width(string(r)+"…", size, bold) > limit {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// wrap breaks a text at its spaces into at most n lines of a width in pixels;
// what is left over is cut from the last.
func wrap(s string, size float64, bold bool, limit float64, n int) []string {
	var out []string
	for n > 1 && width(s, size, bold) > limit {
		at := -1
		for i, r := range s {
			if r != ' ' {
				continue
			}
			if width(s[:i], size, bold) > limit {
				break
			}
			at = i
		}
		if at <= 0 {
			break
		}
		out = append(out, s[:at])
		s, n = s[at+1:], n-1
	}
	return append(out, fit(s, size, bold, limit))
}

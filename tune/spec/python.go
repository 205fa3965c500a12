package spec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/kernels/space"
)

// python translates Python expressions, as T1 files have them, to the grammar of package
// space. Numbers are kept as quotients of whole numbers, so that / means what it does in
// Python.
type python struct {
	params map[string]space.Param
	sizes  space.Env
	tokens []token
	at     int
	depth  int
}

// maxDepth bounds how deep expressions stand within each other.
const maxDepth = 200

// deeper is called where an expression holds another one; leave when it is read.
func (p *python) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return fmt.Errorf("column %d: more than %d expressions within each other", p.peek().column, maxDepth)
	}
	return nil
}

func (p *python) leave() { p.depth-- }

// value is a translated expression: a condition, a word, or a quotient.
type value struct {
	cond string // not "": a condition
	word string // not "": a string in Go's quotes
	num  string // numerator
	den  string // denominator, above 0; "" is 1
	sign sign
	list []value // of [a, b] and (a, b)
}

// sign is what is known of a number.
type sign int

const (
	anySign  sign = iota
	nonNeg        // 0 or more
	positive      // 1 or more
)

// condition translates an expression to a condition.
func (p *python) condition(text string) (string, error) {
	v, err := p.parse(text)
	if err != nil {
		return "", err
	}
	return v.truth()
}

// number translates an expression to a whole number, which one with a remainder is not.
func (p *python) number(text string) (string, error) {
	v, err := p.parse(text)
	switch {
	case err != nil:
		return "", err
	case v.num == "" || v.den != "":
		return "", fmt.Errorf("%q: want a whole number", text)
	}
	return v.num, nil
}

func (p *python) parse(text string) (value, error) {
	p.at, p.depth = 0, 0
	var err error
	if p.tokens, err = scan(text); err != nil {
		return value{}, fmt.Errorf("%q: %w", clip(text), err)
	}
	v, err := p.ternary()
	if err == nil && p.peek().text != "" {
		err = p.unexpected()
	}
	if err != nil {
		return value{}, fmt.Errorf("%q: %w", clip(text), err)
	}
	return v, nil
}

// clip keeps the beginning of a long text.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

func (p *python) peek() token { return p.tokens[p.at] }

func (p *python) next() token {
	t := p.tokens[p.at]
	if t.text != "" {
		p.at++
	}
	return t
}

// accept takes the next token if it is one of words.
func (p *python) accept(words ...string) (string, bool) {
	if t := p.peek(); !t.quoted && slices.Contains(words, t.text) {
		p.at++
		return t.text, true
	}
	return "", false
}

func (p *python) expect(word string) error {
	if _, ok := p.accept(word); !ok {
		return fmt.Errorf("column %d: want %q, found %q", p.peek().column, word, p.peek().text)
	}
	return nil
}

func (p *python) unexpected() error {
	t := p.peek()
	if t.text == "" {
		return errors.New("it ends early")
	}
	return fmt.Errorf("column %d: %q cannot be translated", t.column, t.text)
}

func (p *python) ternary() (value, error) {
	defer p.leave()
	if err := p.deeper(); err != nil {
		return value{}, err
	}
	v, err := p.or()
	if err != nil {
		return v, err
	}
	if _, ok := p.accept("if"); !ok {
		return v, nil
	}
	test, err := p.or()
	if err != nil {
		return v, err
	}
	if err := p.expect("else"); err != nil {
		return v, err
	}
	other, err := p.ternary()
	if err != nil {
		return v, err
	}
	if v.cond == "" || other.cond == "" {
		return v, errors.New("a choice between numbers cannot be translated")
	}
	c, err := test.truth()
	return value{cond: fmt.Sprintf("((%s && %s) || (!%s && %s))", c, v.cond, c, other.cond)}, err
}

func (p *python) or() (value, error)  { return p.logic("or", "||", p.and) }
func (p *python) and() (value, error) { return p.logic("and", "&&", p.not) }

func (p *python) logic(word, op string, operand func() (value, error)) (value, error) {
	v, err := operand()
	for err == nil {
		if _, ok := p.accept(word); !ok {
			break
		}
		var w value
		if w, err = operand(); err != nil {
			break
		}
		var a, b string
		if a, err = v.truth(); err == nil {
			b, err = w.truth()
		}
		v = value{cond: fmt.Sprintf("(%s %s %s)", a, op, b)}
	}
	return v, err
}

func (p *python) not() (value, error) {
	if _, ok := p.accept("not"); !ok {
		return p.comparison()
	}
	defer p.leave()
	if err := p.deeper(); err != nil {
		return value{}, err
	}
	v, err := p.not()
	if err != nil {
		return v, err
	}
	c, err := v.truth()
	return value{cond: "!" + c}, err
}

// truth is a value as a condition: a number is true unless it is 0.
func (v value) truth() (string, error) {
	switch {
	case v.cond != "":
		return v.cond, nil
	case v.num != "":
		return "(" + v.num + " != 0)", nil
	}
	return "", errors.New("a string or a list is no condition")
}

func (p *python) comparison() (value, error) {
	left, err := p.sum()
	if err != nil {
		return left, err
	}
	var parts []string
	for {
		op, ok := p.accept("==", "!=", "<=", ">=", "<", ">", "in", "not")
		if !ok {
			break
		}
		if op == "not" {
			if err := p.expect("in"); err != nil {
				return left, err
			}
		}
		right, err := p.sum()
		if err != nil {
			return left, err
		}
		part, err := compare(op, left, right)
		if err != nil {
			return left, err
		}
		parts = append(parts, part)
		left = right
	}
	switch len(parts) {
	case 0:
		return left, nil
	case 1:
		return value{cond: parts[0]}, nil
	}
	return value{cond: "(" + strings.Join(parts, " && ") + ")"}, nil
}

func compare(op string, a, b value) (string, error) {
	if op == "in" || op == "not" {
		var any []string
		for _, e := range b.list {
			c, err := compare("==", a, e)
			if err != nil {
				return "", err
			}
			any = append(any, c)
		}
		if len(any) == 0 {
			return "", errors.New("in: want a list of one or more values")
		}
		text := "(" + strings.Join(any, " || ") + ")"
		if op == "not" {
			text = "!" + text
		}
		return text, nil
	}
	switch {
	case a.word != "" && b.word != "" && (op == "==" || op == "!="):
		return fmt.Sprintf("(%s %s %s)", a.word, op, b.word), nil
	case a.num == "" || b.num == "":
		return "", fmt.Errorf("%s compares what cannot be translated: want numbers on both sides", op)
	}
	return fmt.Sprintf("(%s %s %s)", times(a.num, b.den), op, times(b.num, a.den)), nil
}

// times is a product; "" is 1.
func times(a, b string) string {
	switch {
	case a == "", a == "1" && b != "":
		return b
	case b == "", b == "1":
		return a
	}
	return a + "*" + b
}

func (p *python) sum() (value, error) {
	v, err := p.product()
	for err == nil {
		op, ok := p.accept("+", "-")
		if !ok {
			break
		}
		var w value
		if w, err = p.product(); err == nil {
			v, err = add(op, v, w)
		}
	}
	return v, err
}

func add(op string, v, w value) (value, error) {
	if v.num == "" || w.num == "" {
		return v, fmt.Errorf("%s wants numbers on both sides", op)
	}
	s := anySign
	if op == "+" && v.sign >= nonNeg && w.sign >= nonNeg {
		s = max(v.sign, w.sign)
	}
	return value{num: fmt.Sprintf("(%s %s %s)", times(v.num, w.den), op, times(w.num, v.den)), den: times(v.den, w.den), sign: s}, nil
}

func (p *python) product() (value, error) {
	v, err := p.unary()
	for err == nil {
		op, ok := p.accept("*", "/", "//", "%")
		if !ok {
			break
		}
		var w value
		if w, err = p.unary(); err == nil {
			v, err = multiply(op, v, w)
		}
	}
	return v, err
}

func multiply(op string, v, w value) (value, error) {
	if v.num == "" || w.num == "" {
		return v, fmt.Errorf("%s wants numbers on both sides", op)
	}
	s := anySign
	if v.sign >= nonNeg && w.sign >= nonNeg {
		s = nonNeg
	}
	above, below := times(v.num, w.den), times(v.den, w.num)
	switch op {
	case "*":
		if v.sign == positive && w.sign == positive {
			s = positive
		}
		return value{num: times(v.num, w.num), den: times(v.den, w.den), sign: s}, nil
	case "//":
		if below == "" {
			below = "1"
		}
		return value{num: fmt.Sprintf("floordiv(%s, %s)", above, below), sign: s}, nil
	case "%":
		return value{num: fmt.Sprintf("floormod(%s, %s)", above, below), den: times(v.den, w.den), sign: s}, nil
	}
	if w.sign != positive {
		return v, fmt.Errorf("/ by %s, which may be 0 or less: want // or a divisor that is 1 or more", w.num)
	}
	if v.sign == positive {
		s = positive
	}
	return value{num: above, den: below, sign: s}, nil
}

func (p *python) unary() (value, error) {
	op, ok := p.accept("-", "+")
	if !ok {
		return p.power()
	}
	defer p.leave()
	if err := p.deeper(); err != nil {
		return value{}, err
	}
	v, err := p.unary()
	switch {
	case err != nil:
		return v, err
	case v.num == "":
		return v, fmt.Errorf("%s wants a number", op)
	case op == "-":
		v.num, v.sign = "(-"+v.num+")", anySign
	}
	return v, nil
}

// maxPower bounds a constant exponent.
const maxPower = 16

func (p *python) power() (value, error) {
	v, err := p.primary()
	if err != nil {
		return v, err
	}
	if _, ok := p.accept("**"); !ok {
		return v, nil
	}
	w, err := p.unary()
	if err != nil {
		return v, err
	}
	n, err := strconv.Atoi(w.num)
	if err != nil || n < 0 || n > maxPower || v.num == "" || w.den != "" {
		return v, fmt.Errorf("** with %q: want a constant exponent from 0 to %d", w.num, maxPower)
	}
	out := value{num: "1", sign: positive}
	for range n {
		if out, err = multiply("*", out, v); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (p *python) primary() (value, error) {
	t := p.next()
	switch {
	case t.quoted:
		return value{word: strconv.Quote(t.text)}, nil
	case t.text == "(" || t.text == "[":
		return p.parenthesised(t.text)
	case t.number:
		return literal(t)
	case t.name:
		return p.name(t)
	}
	if t.text != "" {
		p.at--
	}
	return value{}, p.unexpected()
}

func (p *python) parenthesised(open string) (value, error) {
	end := map[string]string{"(": ")", "[": "]"}[open]
	list, comma, err := p.arguments(end)
	if err != nil {
		return value{}, err
	}
	if open == "[" || comma || len(list) != 1 {
		return value{list: list}, nil
	}
	v := list[0]
	if v.num != "" && strings.ContainsAny(v.num, "+-*/% ") && !strings.HasPrefix(v.num, "(") {
		v.num = "(" + v.num + ")"
	}
	return v, nil
}

// arguments reads expressions up to an end; comma tells whether there was one.
func (p *python) arguments(end string) (list []value, comma bool, err error) {
	for {
		if _, ok := p.accept(end); ok {
			return list, comma, nil
		}
		v, err := p.ternary()
		if err != nil {
			return nil, false, err
		}
		list = append(list, v)
		if _, ok := p.accept(","); ok {
			comma = true
			continue
		}
		return list, comma, p.expect(end)
	}
}

// literal is a number; one with a point is a quotient.
func literal(t token) (value, error) {
	whole, fraction, isFraction := strings.Cut(t.text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return value{num: "0", sign: nonNeg}, nil
	}
	if _, err := strconv.ParseInt(digits, 0, 64); err != nil || len(fraction) > 9 {
		return value{}, fmt.Errorf("column %d: %s: want a number of at most 18 digits without an exponent", t.column, t.text)
	}
	v := value{num: digits, sign: positive}
	if fraction = strings.TrimRight(fraction, "0"); isFraction && fraction != "" {
		v.den = "1" + strings.Repeat("0", len(t.text)-len(whole)-1)
	} else if isFraction {
		v.num = strings.TrimLeft(whole, "0")
	}
	return v, nil
}

func (p *python) name(t token) (value, error) {
	if _, ok := p.accept("("); ok {
		return p.call(t)
	}
	if _, ok := p.accept("["); ok {
		index := p.next()
		if err := p.expect("]"); err != nil {
			return value{}, err
		}
		t.text += "_" + index.text // ProblemSize[0]
	}
	if _, ok := p.accept("."); ok {
		return value{}, fmt.Errorf("column %d: %s.%s cannot be translated", t.column, t.text, p.peek().text)
	}
	switch t.text {
	case "True":
		return value{cond: "true"}, nil
	case "False":
		return value{cond: "false"}, nil
	}
	if param, ok := p.params[t.text]; ok {
		if param.Words != nil {
			return value{word: t.text}, nil
		}
		return value{num: t.text, sign: signOf(slices.Min(param.Values))}, nil
	}
	if v, ok := p.sizes[t.text]; ok {
		return value{num: t.text, sign: signOf(int(v))}, nil
	}
	return value{}, fmt.Errorf("column %d: unknown name %s, want a parameter", t.column, t.text)
}

func signOf(least int) sign {
	switch {
	case least > 0:
		return positive
	case least == 0:
		return nonNeg
	}
	return anySign
}

// call translates min, max, ceil and int. min and max of one parameter are of its values.
func (p *python) call(t token) (value, error) {
	args, _, err := p.arguments(")")
	if err != nil {
		return value{}, err
	}
	if len(args) == 1 && len(args[0].list) > 0 {
		args = args[0].list
	}
	for _, a := range args {
		if a.num == "" {
			return value{}, fmt.Errorf("column %d: %s wants numbers", t.column, t.text)
		}
	}
	switch {
	case (t.text == "min" || t.text == "max") && len(args) == 1:
		param, ok := p.params[args[0].num]
		if !ok {
			return args[0], nil
		}
		v := slices.Max(param.Values)
		if t.text == "min" {
			v = slices.Min(param.Values)
		}
		return value{num: strconv.Itoa(v), sign: signOf(v)}, nil
	case (t.text == "min" || t.text == "max") && len(args) > 1:
		return extreme(t, args)
	case t.text == "ceil" && len(args) == 1:
		return round("ceildiv", args[0]), nil
	case (t.text == "int" || t.text == "floor") && len(args) == 1 && (t.text == "floor" || args[0].sign >= nonNeg):
		return round("floordiv", args[0]), nil
	}
	return value{}, fmt.Errorf("column %d: %s of %d values cannot be translated", t.column, t.text, len(args))
}

func extreme(t token, args []value) (value, error) {
	var texts []string
	s := positive
	for _, a := range args {
		if a.den != "" {
			return value{}, fmt.Errorf("column %d: %s of a quotient cannot be translated", t.column, t.text)
		}
		texts = append(texts, a.num)
		s = min(s, a.sign)
	}
	return value{num: fmt.Sprintf("%s(%s)", t.text, strings.Join(texts, ", ")), sign: s}, nil
}

func round(how string, v value) value {
	if v.den == "" {
		return v
	}
	return value{num: fmt.Sprintf("%s(%s, %s)", how, v.num, v.den), sign: min(v.sign, nonNeg)}
}

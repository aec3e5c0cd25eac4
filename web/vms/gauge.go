package vms

import "strconv"

// gauge draws an amount on a scale, with the most that is allowed and what it
// was before. The numbers stand beside it in words.
type gauge struct {
	value int
	was   int // 0: nothing to compare with
	limit int // inclusive; 0: none binds
}

// scale ends a little beyond the largest of all numbers, so that a limit is
// seen to be one.
func (g gauge) scale() float64 {
	return 1.08 * float64(max(g.value, g.was, g.limit, 1))
}

func (g gauge) at(n int) string {
	return strconv.FormatFloat(100*float64(n)/g.scale(), 'f', 2, 64) + "%"
}

func (g gauge) beyond() bool { return g.limit > 0 && g.value > g.limit }

// within is the part of the value that is allowed.
func (g gauge) within() int {
	if g.beyond() {
		return g.limit
	}
	return g.value
}

package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"berth/web/i18n"
)

// Measures of the trend, in units of its drawing.
const (
	chartWidth  = 1000
	chartHeight = 180
)

// area is one layer of the trend, stacked on those before it.
type area struct {
	Kind string // "held", "unavailable", "free"
	D    string // its outline
}

// areas stacks held, unavailable and free cards over time.
func (t Trend) areas() []area {
	top := t.most()
	if len(t.Points) == 0 || top == 0 {
		return nil
	}
	layers := []struct {
		kind string
		of   func(Point) float64
	}{
		{"held", func(x Point) float64 { return x.Held }}, {"unavailable", func(x Point) float64 { return x.Unavailable }},
		{"free", func(x Point) float64 { return x.Free }},
	}
	base := make([]float64, len(t.Points))
	var out []area
	for _, l := range layers {
		upper := make([]float64, len(t.Points))
		for i, x := range t.Points {
			upper[i] = base[i] + l.of(x)
		}
		out = append(out, area{l.kind, t.outline(base, upper, top)})
		base = upper
	}
	return out
}

// most is the largest total of the trend.
func (t Trend) most() float64 {
	most := 0.0
	for _, x := range t.Points {
		most = max(most, x.Free+x.Held+x.Unavailable)
	}
	return most
}

// outline runs along the upper edge and back along the lower one. A single
// point is drawn as wide as the time since.
func (t Trend) outline(lower, upper []float64, top float64) string {
	var d strings.Builder
	at := func(i int, v float64) string { return fmt.Sprintf("%.1f %.1f", t.x(i), chartHeight*(1-v/top)) }
	d.WriteString("M")
	for i := range upper {
		d.WriteString(at(i, upper[i]) + "L")
	}
	last := len(upper) - 1
	fmt.Fprintf(&d, "%d %.1fL%d %.1f", chartWidth, chartHeight*(1-upper[last]/top), chartWidth, chartHeight*(1-lower[last]/top))
	for i := range slices.Backward(lower) {
		d.WriteString("L" + at(i, lower[i]))
	}
	return d.String() + "Z"
}

func (t Trend) x(i int) float64 {
	span := t.Until.Sub(t.Since).Seconds()
	if span <= 0 {
		return 0
	}
	return max(0, min(chartWidth, chartWidth*t.Points[i].At.Sub(t.Since).Seconds()/span))
}

// summary says the trend in words.
func (t Trend) summary(ctx context.Context) string {
	if len(t.Points) == 0 {
		return i18n.T(ctx, "capacity.no-trend")
	}
	first, last := t.Points[0], t.Points[len(t.Points)-1]
	return i18n.T(ctx, "capacity.summary", "HeldThen", round(first.Held), "HeldNow", round(last.Held), "FreeThen", round(first.Free), "FreeNow", round(last.Free))
}

func round(v float64) int { return int(v + 0.5) }

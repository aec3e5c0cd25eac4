package i18n

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

var printers = map[Locale]*message.Printer{
	English: message.NewPrinter(English.tag()),
	French:  message.NewPrinter(French.tag()),
}

// Number writes a whole number with the language's separators.
func Number(ctx context.Context, n int) string {
	return printers[From(ctx)].Sprint(number.Decimal(n))
}

// GiB writes mebibytes as gibibytes with the unit: "192 GiB", "192 Gio".
func GiB(ctx context.Context, mib int) string {
	n := printers[From(ctx)].Sprint(number.Decimal(float64(mib)/1024, number.MaxFractionDigits(2)))
	return T(ctx, "unit.gib", "Size", n)
}

// Euros writes a price by the hour, "2.5000" as in the books, with the decimals
// that matter; empty: none is named, and what can't be read is written as it is.
func Euros(ctx context.Context, hourly string) string {
	if hourly == "" {
		return ""
	}
	v, err := strconv.ParseFloat(hourly, 64)
	if err != nil {
		return hourly
	}
	n := printers[From(ctx)].Sprint(number.Decimal(v, number.MinFractionDigits(2), number.MaxFractionDigits(4)))
	return T(ctx, "unit.euros-an-hour", "Price", n)
}

// Percent writes part of whole as a whole percentage; of nothing it is 0.
func Percent(ctx context.Context, part, whole int) string {
	if whole == 0 {
		part, whole = 0, 1
	}
	return printers[From(ctx)].Sprint(number.Percent(float64(part)/float64(whole), number.MaxFractionDigits(0)))
}

var months = map[Locale][12]string{
	English: {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	French:  {"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."},
}

// Date writes a day: "2 Dec 2025", "2 déc. 2025". Times are in UTC; a script
// of the console turns them into the reader's own zone.
func Date(ctx context.Context, t time.Time) string {
	t = t.UTC()
	return strconv.Itoa(t.Day()) + " " + months[From(ctx)][t.Month()-1] + " " + strconv.Itoa(t.Year())
}

// DateTime writes a day and a minute, in UTC.
func DateTime(ctx context.Context, t time.Time) string {
	return T(ctx, "time.date-and-clock", "Date", Date(ctx, t), "Clock", t.UTC().Format("15:04"))
}

// Clock writes hours, minutes and seconds, in UTC.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// Duration writes a length of time by its largest unit: "6 days", "12 s".
func Duration(ctx context.Context, d time.Duration) string {
	switch {
	case d < time.Minute:
		return T(ctx, "time.seconds", "Count", max(0, int(d/time.Second)))
	case d < time.Hour:
		return T(ctx, "time.minutes", "Count", int(d/time.Minute))
	case d < 24*time.Hour:
		return T(ctx, "time.hours", "Count", int(d/time.Hour))
	}
	return T(ctx, "time.days", "Count", int(d/(24*time.Hour)))
}

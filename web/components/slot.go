package components

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Slotted is a sentence with a part in the place of its percent sign, e.g. a
// time that keeps going: "Waiting for %." A sentence without one is followed
// by the part.
func Slotted(text string, part templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		before, after, found := strings.Cut(text, "%")
		if !found {
			before += " "
		}
		if _, err := io.WriteString(w, templ.EscapeString(before)); err != nil {
			return err
		}
		if err := part.Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, templ.EscapeString(after))
		return err
	})
}

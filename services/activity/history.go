package activity

import (
	"strconv"
	"strings"
)

// history keeps the last changes of one console, numbered. Positions are
// "<console>.<number>": those of another console, or of one before a restart,
// are not known.
type history struct {
	console string
	newest  int64
	changes []Change // the last ones, oldest first
}

// remembered is how many changes lie between the reading of a page and the
// opening of its stream at most; more are told as Missed.
const remembered = 256

func newHistory(console string) history { return history{console: console} }

func (h *history) position() string { return h.console + "." + strconv.FormatInt(h.newest, 10) }

func (h *history) add(c Change) Change {
	h.newest++
	c.Position = h.position()
	if len(h.changes) == remembered {
		h.changes = h.changes[1:]
	}
	h.changes = append(h.changes, c)
	return c
}

// since gives what came after a position; known is false where some of it is
// forgotten.
func (h *history) since(position string) (missed []Change, known bool) {
	console, number, _ := strings.Cut(position, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || console != h.console || n < 0 || n > h.newest || h.newest-n > int64(len(h.changes)) {
		return nil, false
	}
	return h.changes[int64(len(h.changes))-(h.newest-n):], true
}

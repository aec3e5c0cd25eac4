package fleet

import (
	"context"
	"strings"

	"berth/db"
)

// Hit is something of the fleet that was found by a text.
type Hit = db.Hit

// shortest is how many letters a text has at least that the fleet is searched for.
const shortest = 2

// Search finds accounts, hosts, cards, GPUs and VMs by part of a name, an
// identifier, a serial or an address; at most limit of each kind. Of a text
// that is too short nothing is found.
func (s *Service) Search(ctx context.Context, text string, limit int) ([]Hit, error) {
	text = strings.TrimSpace(text)
	if len([]rune(text)) < shortest {
		return nil, nil
	}
	return s.db.Search(ctx, text, limit)
}

// Exact is the one hit that a text names as a whole: an identifier, a serial, a
// UUID or an address. ok is false where it names none, or several.
func Exact(text string, hits []Hit) (hit Hit, ok bool) {
	for _, h := range hits {
		named := strings.EqualFold(h.ID, text) || h.Kind == "card" && (strings.EqualFold(h.Name, text))
		if !named {
			continue
		}
		if ok {
			return Hit{}, false
		}
		hit, ok = h, true
	}
	return hit, ok
}

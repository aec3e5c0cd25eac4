package activity

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
)

func serviceOf(console string) *Service {
	return &Service{subs: map[int]*subscriber{}, history: newHistory(console)}
}

func all(Change) bool { return true }

// waiting takes what a subscriber has been given.
func waiting(changes <-chan Change) []string {
	var got []string
	for {
		select {
		case c := <-changes:
			if c.Missed {
				got = append(got, "missed")
				continue
			}
			got = append(got, string(c.GPU))
		default:
			return got
		}
	}
}

func TestSubscribersGetWhatCameAfterTheirPosition(t *testing.T) {
	s := serviceOf("one")
	s.tell(Change{GPU: "before"})
	noted := s.Position()
	s.tell(Change{GPU: "first"})
	s.tell(Change{GPU: "unwanted"})
	s.tell(Change{GPU: "second"})
	changes, stop := s.SubscribeSince(noted, func(c Change) bool { return c.GPU != "unwanted" })
	defer stop()
	s.tell(Change{GPU: "third"})
	if diff := cmp.Diff([]string{"first", "second", "third"}, waiting(changes)); diff != "" {
		t.Error(diff)
	}
}

func TestAPositionThatIsNotKnownIsMissed(t *testing.T) {
	s := serviceOf("one")
	begin := s.Position()
	for i := range remembered + 1 {
		s.tell(Change{GPU: services.GPUID(strconv.Itoa(i))})
	}
	for name, position := range map[string]string{
		"of another console": "two.3", "forgotten": begin, "ahead": "one.9999", "garbage": "one.x", "empty": "", "negative": "one.-4",
	} {
		changes, stop := s.SubscribeSince(position, all)
		if diff := cmp.Diff([]string{"missed"}, waiting(changes)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		stop()
	}
	changes, stop := s.SubscribeSince(s.Position(), all)
	defer stop()
	if got := waiting(changes); got != nil {
		t.Errorf("the newest position: got %v, want nothing", got)
	}
}

func TestWhoFallsBehindIsToldSo(t *testing.T) {
	s := serviceOf("one")
	changes, stop := s.Subscribe(all)
	defer stop()
	for range backlog + 1 {
		s.tell(Change{GPU: "g"})
	}
	c := <-changes
	if !c.Missed || c.Position != s.Position() {
		t.Errorf("got %+v, want missed at the newest position", c)
	}
}

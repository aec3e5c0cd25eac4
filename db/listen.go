package db

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lib/pq"
)

// The channels that transactions announce on.
const (
	ChannelEvents   = "berth_events"   // payload: JSON, see Announcement
	ChannelDesired  = "berth_desired"  // payload: agent id
	ChannelSessions = "berth_sessions" // payload: hex of the hash of a session that ended
)

// Notice is one announcement. Missed means that any number may have been lost
// (the connection was made anew): read the state again.
type Notice struct {
	Channel string
	Payload string
	Missed  bool
}

const pingEvery = 90 * time.Second

// Listen calls tell for each announcement until ctx ends. The first call, and
// one after each reconnection, has Missed set.
func (d *DB) Listen(ctx context.Context, log *slog.Logger, tell func(Notice)) error {
	l := pq.NewListener(d.url, 100*time.Millisecond, 10*time.Second, func(_ pq.ListenerEventType, err error) {
		if err != nil {
			log.WarnContext(ctx, "listening to the database was interrupted", "error", err)
		}
	})
	defer func() { _ = l.Close() }()
	for _, c := range []string{ChannelEvents, ChannelDesired, ChannelSessions} {
		if err := l.Listen(c); err != nil {
			return fmt.Errorf("listen on %s: %w", c, err)
		}
	}
	tell(Notice{Missed: true})
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-l.Notify:
			if n == nil {
				tell(Notice{Missed: true})
				continue
			}
			tell(Notice{Channel: n.Channel, Payload: n.Extra})
		case <-ping.C:
			go func() { _ = l.Ping() }() // a dead connection makes the listener reconnect
		}
	}
}

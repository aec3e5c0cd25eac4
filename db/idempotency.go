package db

import (
	"bytes"
	"context"
	"time"

	"berth/services"
)

// Claim reserves an idempotency key for the rest of the transaction. Where the
// key was used before for the same request, it gives the answer of then and
// repeated is true; another request under the same key is refused with
// key-reused. A second claim waits until the first one's transaction ends.
func (t *Tx) Claim(ctx context.Context, user services.UserID, key string, request []byte, now time.Time) (answer string, repeated bool, err error) {
	n, err := t.exec(ctx, "claim idempotency key", `
		insert into idempotency_keys (user_id, key, request, answer, created_at) values ($1, $2, $3, '', $4)
		on conflict do nothing`, user, key, request, now)
	if err != nil || n == 1 {
		return "", false, err
	}
	var first struct {
		Request []byte `db:"request"`
		Answer  string `db:"answer"`
	}
	if err := t.one(ctx, &first, "find answer to idempotency key", `
		select request, answer from idempotency_keys where user_id = $1 and key = $2`, user, key); err != nil {
		return "", false, err
	}
	if !bytes.Equal(first.Request, request) {
		return "", false, services.Invalid("idempotency_key", services.CodeKeyReused, nil)
	}
	return first.Answer, true, nil
}

// Answer keeps what a claimed request led to, for its repeats.
func (t *Tx) Answer(ctx context.Context, user services.UserID, key, answer string) error {
	_, err := t.exec(ctx, "keep answer to idempotency key", `
		update idempotency_keys set answer = $3 where user_id = $1 and key = $2`, user, key, answer)
	return err
}

package compute

import (
	"context"

	"berth/db"
	"berth/services"
)

// growth is what a write adds to what an account has in a region. Memory is in MiB.
type growth struct {
	vcores, memoryMiB, vms int
}

const mibPerGiB = 1024

// checkLimits refuses more vCores, memory or VMs than the account may have in a
// region, all broken limits together. It holds the account's lock until the
// transaction ends.
func checkLimits(ctx context.Context, tx *db.Tx, account services.AccountID, region string, g growth) error {
	if err := tx.LockAccount(ctx, account); err != nil {
		return err
	}
	var broken problems
	for _, add := range []struct {
		limit services.Limit
		n     int
	}{
		{services.LimitVCores, g.vcores}, {services.LimitMemory, (g.memoryMiB + mibPerGiB - 1) / mibPerGiB}, {services.LimitVMs, g.vms},
	} {
		if add.n <= 0 {
			continue
		}
		q, err := tx.Quota(ctx, account, region, string(add.limit))
		if err != nil {
			return err
		}
		if q.Max != nil && q.Used+add.n > *q.Max {
			broken.add(overLimit(q, add.limit, add.n))
		}
	}
	return broken.err()
}

func overLimit(q db.Quota, limit services.Limit, wanted int) *services.Error {
	return &services.Error{Kind: services.KindInvalid, Violations: []services.Violation{{
		Code: services.CodeQuotaExceeded, Limit: limit,
		Args: map[string]any{"Used": q.Used, "Max": *q.Max, "Region": q.Region, "Wanted": wanted},
	}}}
}

package tables

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// claimMethod is the method of the rows that keep keys of requests. Their own key is the digest.
const claimMethod = "ClaimRequestKey"

// ClaimRequestKey implements store.RequestKeys.
func (t variables) ClaimRequestKey(ctx context.Context, o store.Owner, digest, key string, repeated bool, until time.Time) (string, error) {
	r := request{Request: store.Request{Method: claimMethod, Parent: o.User, ID: digest, Digest: []byte{1}, KeepUntil: until}, tenant: o.Tenant, value: key}
	var first func(Tx) error
	if !repeated {
		first = func(tx Tx) error {
			_, err := tx.Send(ctx, sqldb.S("delete from request_ids where tenant = $1 and method = $2 and parent = $3 and request_id = $4",
				o.Tenant, claimMethod, o.User, digest))
			return err
		}
	}
	answer, err := once(ctx, t.db, "claim the key of a request", r, first, func(Tx) ([]store.Wake, error) { return nil, nil })
	return answer.Value, err
}

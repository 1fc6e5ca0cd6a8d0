package plan

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
)

// Chained returns the entries of a tenant behind the one with this number and hash.
func Chained(tenant string, seq int64, hash []byte, entries []audit.Entry) []audit.Entry {
	out := make([]audit.Entry, len(entries))
	for i, e := range entries {
		for _, s := range []*string{&e.User, &e.Credential, &e.Client, &e.Method, &e.Resource, &e.RequestID, &e.Code, &e.Reason} {
			*s = TextColumn(*s)
		}
		seq++
		e.Tenant, e.Seq, e.Time = tenant, seq, Micros(e.Time)
		e.Hash = e.Sum(hash)
		hash, out[i] = e.Hash, e
	}
	return out
}

// AuditProto returns an entry as it is shown.
func AuditProto(e audit.Entry) *sessionv1.AuditEntry {
	user := UserName(e.User)
	if e.User == "" { // an anonymous caller
		user = ""
	}
	return &sessionv1.AuditEntry{
		Tenant: e.Tenant, Seq: e.Seq, Time: timestamppb.New(e.Time), User: user, Credential: e.Credential, Client: e.Client,
		Method: e.Method, Resource: e.Resource, RequestId: e.RequestID, Code: e.Code, Reason: e.Reason, Hash: e.Hash,
	}
}

// Package audit describes who changed what. The entries of a tenant are a chain: each has the hash of its fields
// and of the entry before it, so that a changed, removed or moved entry shows.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// Entry is one attempt to change something. It has no content of requests and no secrets.
type Entry struct {
	Tenant string
	Seq    int64     // from 1, without gaps
	Time   time.Time // in UTC, with microseconds
	// User acted, with this Credential, from the address Client.
	User, Credential, Client string
	// Method is the full name of the RPC, and Resource what it was about.
	Method, Resource, RequestID string
	// Code is the canonical code of the result, and Reason that of an error.
	Code, Reason string
	// Hash is the Sum of the entry.
	Hash []byte
}

// Sum returns the hash of the entry behind the one with the hash before; nil for the first one.
func (e Entry) Sum(before []byte) []byte {
	h := sha256.New()
	field := func(b []byte) {
		var size [binary.MaxVarintLen64]byte
		h.Write(size[:binary.PutUvarint(size[:], uint64(len(b)))])
		h.Write(b)
	}
	number := func(n int64) { field(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	field(before)
	field([]byte(e.Tenant))
	number(e.Seq)
	number(e.Time.UnixMicro())
	for _, s := range []string{e.User, e.Credential, e.Client, e.Method, e.Resource, e.RequestID, e.Code, e.Reason} {
		field([]byte(s))
	}
	return h.Sum(nil)
}

// Chain checks entries, in their order. Its zero value expects the first entry of a tenant.
type Chain struct {
	Tenant string // empty: that of the first entry
	Seq    int64  // of the last entry
	Hash   []byte // of the last entry
}

// Add checks the next entry. Its error says what is wrong; the chain is broken from there on.
func (c *Chain) Add(e Entry) error {
	if c.Tenant == "" {
		c.Tenant = e.Tenant
	}
	switch {
	case e.Tenant != c.Tenant:
		return fmt.Errorf("entry %d is of the tenant %s, not of %s", e.Seq, e.Tenant, c.Tenant)
	case e.Seq > c.Seq+1:
		return fmt.Errorf("entries %d to %d are missing", c.Seq+1, e.Seq-1)
	case e.Seq != c.Seq+1:
		return fmt.Errorf("entry %d follows entry %d", e.Seq, c.Seq)
	case !bytes.Equal(e.Hash, e.Sum(c.Hash)):
		return fmt.Errorf("entry %d was changed, or the one before it was replaced", e.Seq)
	}
	c.Seq, c.Hash = e.Seq, e.Hash
	return nil
}

// Package id makes the identifiers of sessions, turns, events, calls and requests.
//
// An id is 26 characters of lower-case base32 (the digits and the letters a to v), 128 bits wide. Ids are made from UUID
// version 7, so their text order is the order in which they were made: exactly within one process, to the millisecond
// between processes. They are safe in URLs, file names and resource names.
package id

import (
	"encoding/base32"

	"github.com/google/uuid"
)

// encoding keeps the order of the encoded bytes, which the standard alphabet does not.
var encoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// New returns an id that no other call has returned. It is safe for concurrent use.
//
// It panics when the operating system has no randomness: an id that might repeat would let one tenant's
// request answer another's.
func New() string {
	u := uuid.Must(uuid.NewV7())
	return encoding.EncodeToString(u[:])
}

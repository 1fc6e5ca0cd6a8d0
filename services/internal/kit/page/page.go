// Package page makes the opaque tokens of paginated lists.
//
// A token has the position of the next page and is bound to a scope: the method, the tenant and the filters
// of its list. A token of another list is refused, because its position would be wrong. A token is neither a
// secret nor a permission: anyone who can read it could make one, and the list checks the caller anyway.
package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrBadToken is the error for every token that Encode did not make for the same scope.
var ErrBadToken = errors.New("page: the page token does not belong to this list; use next_page_token of the previous page with the same filters, or start again without a token")

// scopeLen is the length of the scope's hash in a token: enough to detect mistakes, short enough for a URL.
const scopeLen = 8

// maxToken bounds the work done on a token from outside.
const maxToken = 4096

// Encode returns the token of the page that starts at cursor, a value for encoding/json.
//
// It panics when cursor cannot be encoded, which is a programming error.
func Encode(scope string, cursor any) string {
	body, err := json.Marshal(cursor)
	if err != nil {
		panic(fmt.Sprintf("page: cursor %T cannot be encoded: %v", cursor, err))
	}
	return base64.RawURLEncoding.EncodeToString(append(digest(scope), body...))
}

// Decode reads into cursor, a pointer, the value that was passed to Encode with
// the same scope. Every failure is ErrBadToken; cursor is then unspecified.
func Decode(token, scope string, cursor any) error {
	if len(token) > maxToken {
		return ErrBadToken
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) <= scopeLen || !bytes.Equal(raw[:scopeLen], digest(scope)) {
		return ErrBadToken
	}
	d := json.NewDecoder(bytes.NewReader(raw[scopeLen:]))
	d.DisallowUnknownFields()
	if err := d.Decode(cursor); err != nil || d.More() {
		return ErrBadToken
	}
	return nil
}

// Size returns the number of entries for a request of asked entries: dflt for 0, and never more than limit.
// The schema refuses negative sizes; here they count as 0.
func Size(asked, dflt, limit int32) int {
	if asked <= 0 {
		asked = dflt
	}
	return int(min(asked, limit))
}

func digest(scope string) []byte {
	sum := sha256.Sum256([]byte(scope))
	return sum[:scopeLen]
}

// Package page makes the opaque tokens of paginated lists.
//
// A token carries the place where the next page starts and is bound to a scope: the method, the tenant and the filters
// of the list it came from. A token brought to another list is refused instead of answering from a wrong place. A token
// is no secret and no permission: whoever can read it could make one, and the list it is used on checks the caller anyway.
package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrBadToken is what every token that Encode did not make for the same scope is refused with.
var ErrBadToken = errors.New("page: the page token is not one of this list; use next_page_token of the previous page with the same filters, or start again without a token")

// scopeLen is how much of the scope's hash a token carries: enough to tell mistakes apart, short enough for a URL.
const scopeLen = 8

// maxToken bounds the work done on a token from outside.
const maxToken = 4096

// Encode returns the token of the page that starts at cursor, which must be a value that encoding/json takes.
//
// It panics when cursor cannot be encoded, which is a mistake of the program and not of its input.
func Encode(scope string, cursor any) string {
	body, err := json.Marshal(cursor)
	if err != nil {
		panic(fmt.Sprintf("page: cursor %T cannot be encoded: %v", cursor, err))
	}
	return base64.RawURLEncoding.EncodeToString(append(digest(scope), body...))
}

// Decode reads into cursor, a pointer, what Encode was given with the same scope.
// Every failure is ErrBadToken; cursor is then unspecified.
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

// Size is the number of entries to answer a request for asked entries with: dflt when nothing was asked for, never more
// than limit. The schema refuses negative sizes; here they count as nothing.
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

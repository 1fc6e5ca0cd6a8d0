package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// stateTime is how long a client may take to answer.
const stateTime = 24 * time.Hour

// requestState is what a client brings back with its answer to a question. It is bound to the call and to who made
// it.
type requestState struct {
	Tenant, User, Session, Turn, Tool string
	Arguments                         [sha256.Size]byte
	Asked                             asked
	RequestID                         string
	AfterSeq                          int64
	Expires                           int64 // Unix seconds
}

// seal returns a state as text, with its MAC.
func (s *Server) seal(state requestState) (string, error) {
	b, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b) + "." + base64.RawURLEncoding.EncodeToString(s.mac(b)), nil
}

func (s *Server) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.Secret)
	h.Write(b)
	return h.Sum(nil)
}

var errState = errors.New("is not one that this server made")

// open reads a state that seal made.
func (s *Server) open(text string) (state requestState, err error) {
	body, sum, _ := strings.Cut(text, ".")
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return state, errState
	}
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, s.mac(b)) || json.Unmarshal(b, &state) != nil {
		return state, errState
	}
	return state, nil
}

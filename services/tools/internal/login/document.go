package login

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// callbackPath and documentPath are those of the gateway.
const callbackPath, documentPath = "/v1/mcp/callback", "/v1/mcp/client"

// maxDocument bounds the client id metadata document.
const maxDocument = 64 << 10

// clientID returns the address of the gateway's client id metadata document, which is the client's id; "": the callback
// is not one that authorization servers can reach.
func (l *Logins) clientID() string {
	at, ok := strings.CutSuffix(l.Callback, callbackPath)
	if !ok || !strings.HasPrefix(at, "https://") {
		return ""
	}
	return at + documentPath
}

// documented reports whether the gateway serves the document, for this callback: it does so if its public-url is set. An
// authorization server would otherwise refuse the user's browser, which shows nothing that helps.
func (l *Logins) documented(ctx context.Context) bool {
	id := l.clientID()
	if id == "" {
		return false
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return false
	}
	resp, err := l.Client.Do(q)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	var document struct {
		ID        string   `json:"client_id"`
		Redirects []string `json:"redirect_uris"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(&document)
	return err == nil && resp.StatusCode == http.StatusOK && document.ID == id && slices.Contains(document.Redirects, l.Callback)
}

package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead/fairlead/gen/openapi"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// specificationPath is where the description of this interface is.
const specificationPath = "/openapi.json"

// Specification is the door of the OpenAPI document. Unlike all other answers it may be cached, because it has no user's
// data.
type Specification struct{ door.Problems }

// Match implements door.Door.
func (Specification) Match(_, path string) *door.Route {
	if path != specificationPath {
		return nil
	}
	return &door.Route{Allow: []string{http.MethodGet, http.MethodHead}, Open: true, Serve: serveSpecification}
}

func serveSpecification(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		allowed := []string{http.MethodGet, http.MethodHead}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return problem.MethodNotAllowed(r.Method, specificationPath, allowed)
	}
	digest := sha256.Sum256(openapi.JSON)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("ETag", `"`+hex.EncodeToString(digest[:8])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(openapi.JSON))
	return nil
}

//go:build linux

package sandbox

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// Egress is the most that commands may reach, and the secrets that are added to their requests.
type Egress struct {
	Ceiling     []egress.Rule                `key:"ceiling" help:"destinations that any workspace may be allowed to reach: rules with host (name, *.name, *, address or range), ports, methods, paths; none means no network"`
	Credentials map[string]egress.Credential `key:"credentials" help:"secrets that rules may name: hosts that may get it, header (default Authorization), prefix or username, secret or file"`
	Roots       string                       `key:"roots" help:"file with more certificates (PEM) that are trusted outside, such as certificates of your own servers; the machine's certificates are always trusted"`
	Connections int                          `key:"connections" help:"the most connections of a sandbox at the same time"`
	Requests    int                          `key:"requests" help:"the most requests and connections of one command; each is an event of the session"`
	Idle        time.Duration                `key:"idle" help:"how long a connection may carry no data before it is closed"`
	Total       time.Duration                `key:"total" help:"how long any connection may last"`
	Bytes       int64                        `key:"bytes" help:"bytes that may move over one connection, both directions added up"`
}

// maxRequests is how many requests one message can report.
const maxRequests = 20_000

// Validate reports all faults except those of rules and credentials, which New reports.
func (e Egress) Validate() error {
	var faults []error
	if e.Connections < 1 {
		faults = append(faults, fmt.Errorf("connections: %d is less than 1", e.Connections))
	}
	if e.Requests < 1 || e.Requests > maxRequests {
		faults = append(faults, fmt.Errorf("requests: %d is not between 1 and %d", e.Requests, maxRequests))
	}
	if e.Idle < time.Second {
		faults = append(faults, fmt.Errorf("idle: %v is less than a second", e.Idle))
	}
	if e.Total < e.Idle {
		faults = append(faults, fmt.Errorf("total: %v is less than idle (%v)", e.Total, e.Idle))
	}
	if e.Bytes < 1<<20 {
		faults = append(faults, fmt.Errorf("bytes: %d is less than 1 MiB", e.Bytes))
	}
	return errors.Join(faults...)
}

// roots returns the certificates that are trusted outside; nil: the machine's.
func (e Egress) roots() (*x509.CertPool, error) {
	if e.Roots == "" {
		return nil, nil //nolint:nilnil // the machine's
	}
	raw, err := os.ReadFile(e.Roots)
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("roots: read the machine's: %w", err)
	}
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("roots: %s has no certificate", e.Roots)
	}
	return pool, nil
}

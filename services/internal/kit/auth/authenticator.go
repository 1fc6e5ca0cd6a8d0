package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/cache"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// KeyPrefix begins every API key.
const KeyPrefix = "fl_"

// Resolved is what the holder of a credential may do.
type Resolved struct {
	principal.Principal
	Expire time.Time // of the credential; zero: it does not end
}

// Keys finds out what the holders of API keys may do.
type Keys interface {
	// ResolveKey returns what the holder of the key with a SHA-256 may do. An empty hash stands for a call without a
	// credential. ErrRefused means that the key is not valid, or that a credential is needed.
	ResolveKey(ctx context.Context, sha256 []byte) (Resolved, error)
	// MostRole returns the highest role that a user may have, whatever the claims of a token say. ErrRefused means
	// that the user was deleted, or that the tenant does not exist.
	MostRole(ctx context.Context, tenant, user string) (principal.Role, error)
}

// ErrRefused is the error of Keys for a credential that is not valid.
var ErrRefused = errors.New("the credential is not valid")

// How long answers are remembered. A revoked key, and the tokens of a deleted user, must stop working everywhere within
// five seconds.
const (
	keyTime     = 4 * time.Second
	tokenTime   = time.Minute
	refusedTime = time.Second
	maxKnown    = 20_000
	maxRefused  = 20_000

	maxCredential = 16 << 10 // bytes
)

// Authenticator turns credentials into principals. It is safe for concurrent use.
type Authenticator struct {
	mode    Mode
	keys    Keys
	issuers map[string]*issuer // by name
	log     *slog.Logger

	known   *cache.Cache[[sha256.Size]byte, principal.Principal]
	tokens  *cache.Cache[[sha256.Size]byte, Resolved] // verified, with what the claims say
	users   *cache.Cache[user, most]
	refused *cache.Cache[[sha256.Size]byte, struct{}]
}

// New returns an authenticator. reachable says that clients on other machines can call.
func New(c Config, keys Keys, reachable bool, log *slog.Logger) (*Authenticator, error) {
	mode, err := c.mode(reachable)
	if err != nil {
		return nil, err
	}
	a := &Authenticator{
		mode: mode, keys: keys, log: log, issuers: map[string]*issuer{},
		known:   cache.New[[sha256.Size]byte, principal.Principal](maxKnown),
		tokens:  cache.New[[sha256.Size]byte, Resolved](maxKnown),
		users:   cache.New[user, most](maxKnown),
		refused: cache.New[[sha256.Size]byte, struct{}](maxRefused),
	}
	for _, i := range c.Issuers {
		if a.issuers[i.Issuer], err = newIssuer(i); err != nil {
			return nil, err
		}
	}
	if mode == Open && reachable {
		log.Warn("NOTHING AUTHENTICATES CALLERS, AND OTHER MACHINES CAN REACH THIS SERVER: every caller can do everything")
	}
	return a, nil
}

// Issuers returns the names of the issuers whose tokens are accepted.
func (a *Authenticator) Issuers() []string { return slices.Sorted(maps.Keys(a.issuers)) }

// Errors for callers. They are the same whatever is wrong with a credential; the log has the reason.
var (
	errMissing = apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonCredentialMissing,
		"This server needs a credential. Send an API key (fl_…) or a token as `Authorization: Bearer`.")
	errForwarded = apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonCredentialMissing,
		"A proxy passed this call on, and calls through a proxy need a credential. Make a key with `fairlead admin init`, and send it as `Authorization: Bearer`.")
	errMalformed = apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonCredentialMalformed,
		"The credential is not an API key (fl_…) or a signed token, or there are several. Send one as `Authorization: Bearer`.")
	errInvalid = apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonCredentialInvalid,
		"The credential is not valid here: it does not exist, was revoked, has ended, names an unknown tenant, or is for another server. Get a new one; the server's log has the reason.")
)

// unavailable is the error while it cannot be found out whether a credential is valid.
func unavailable() error {
	return apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonCredentialUnverified,
		"The credential cannot be checked now, because what knows it cannot be reached. Try again.", apierr.RetryAfter(time.Second))
}

// Authenticate returns the principal of a credential, or of a call without one ("").
func (a *Authenticator) Authenticate(ctx context.Context, credential string) (principal.Principal, error) {
	return a.authenticate(ctx, credential, "")
}

// authenticate is Authenticate at a resource, whose address a token may have as its audience.
func (a *Authenticator) authenticate(ctx context.Context, credential, resource string) (principal.Principal, error) {
	if len(credential) > maxCredential {
		return principal.Principal{}, errMalformed
	}
	var id [sha256.Size]byte // of a call without a credential it is zero
	if credential != "" {
		id = sha256.Sum256([]byte(credential))
	}
	if isToken := strings.Count(credential, ".") == 2; isToken && resource != "" { // elsewhere it may not be accepted
		id = sha256.Sum256([]byte(credential + " " + resource))
	}
	if p, ok := a.known.Get(id); ok {
		return p, nil
	}
	if _, ok := a.refused.Get(id); ok && credential != "" {
		return principal.Principal{}, errInvalid
	}
	r, keep, err := a.resolve(ctx, credential, resource, id)
	if err != nil {
		if err == errInvalid { //nolint:errorlint // it is this value
			a.refused.Put(id, struct{}{}, time.Now().Add(refusedTime))
		}
		return principal.Principal{}, err
	}
	if keep == 0 {
		return r.Principal, nil
	}
	until := time.Now().Add(keep)
	if !r.Expire.IsZero() && r.Expire.Before(until) {
		until = r.Expire
	}
	a.known.Put(id, r.Principal, until)
	return r.Principal, nil
}

// resolve finds the principal of a credential, and how long it may be remembered.
func (a *Authenticator) resolve(ctx context.Context, credential, resource string, id [sha256.Size]byte) (r Resolved, keep time.Duration, err error) {
	switch {
	case credential == "" && a.mode == Open:
		return Resolved{Principal: principal.Default()}, keyTime, nil
	case credential == "" && a.mode == Required:
		return r, 0, errMissing
	case credential == "":
		r, err = a.resolveKey(ctx, nil, errMissing)
		return r, keyTime, err
	case strings.HasPrefix(credential, KeyPrefix):
		r, err = a.resolveKey(ctx, id[:], errInvalid)
		return r, keyTime, err
	case strings.Count(credential, ".") == 2:
		r, err = a.resolveToken(ctx, credential, resource, id)
		return r, 0, err // what it needs is remembered apart
	}
	return r, 0, errMalformed
}

// resolveKey asks what knows the keys.
func (a *Authenticator) resolveKey(ctx context.Context, hash []byte, refused error) (Resolved, error) {
	r, err := a.keys.ResolveKey(ctx, hash)
	switch {
	case err == nil:
		r.Principal.Expire = r.Expire
		err = r.Validate()
	case ctx.Err() != nil:
		return r, ctx.Err()
	case errors.Is(err, ErrRefused):
		if len(hash) > 0 {
			a.log.InfoContext(ctx, "a key is refused", "hash", hex.EncodeToString(hash[:6]))
		}
		return r, refused
	default:
		a.log.WarnContext(ctx, "a key cannot be checked", "error", err)
		return r, unavailable()
	}
	return r, err
}

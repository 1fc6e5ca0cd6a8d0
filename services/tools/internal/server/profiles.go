package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sort"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

const profilePrefix = "profiles/"

// maxProfileBytes bounds the encoded rules of one profile, so that lists stay readable.
const maxProfileBytes = 256 << 10

// errProfileReadOnly says that a profile is not one of the API.
var errProfileReadOnly = errors.New("the permission profile cannot be changed")

// Profiles serves ProfileService.
type Profiles struct {
	toolsv1.UnimplementedProfileServiceServer
	store    store.Store
	policies *policy.Source
	tools    *registry.Registry
}

// NewProfiles returns the server of ProfileService.
func NewProfiles(s store.Store, p *policy.Source, r *registry.Registry) *Profiles {
	return &Profiles{store: s, policies: p, tools: r}
}

// CreateProfile implements ProfileService.
func (s *Profiles) CreateProfile(ctx context.Context, q *toolsv1.CreateProfileRequest) (*toolsv1.CreateProfileResponse, error) {
	name := profilePrefix + q.GetProfileId()
	if _, taken := s.policies.Profiles[q.GetProfileId()]; taken {
		return nil, outward(store.ErrProfileExists, name)
	}
	p, err := s.write(ctx, name, q.GetProfile(), store.ProfileWrite{Create: true}, "CreateProfile", q.GetRequestId())
	return &toolsv1.CreateProfileResponse{Profile: p}, err
}

// UpdateProfile implements ProfileService.
func (s *Profiles) UpdateProfile(ctx context.Context, q *toolsv1.UpdateProfileRequest) (*toolsv1.UpdateProfileResponse, error) {
	if _, fixed := s.policies.Profiles[profileID(q.GetName())]; fixed {
		return nil, outward(errProfileReadOnly, q.GetName())
	}
	p, err := s.write(ctx, q.GetName(), q.GetProfile(), store.ProfileWrite{Expected: q.GetEtag()}, "UpdateProfile", q.GetRequestId())
	return &toolsv1.UpdateProfileResponse{Profile: p}, err
}

// write checks and stores a profile.
func (s *Profiles) write(ctx context.Context, name string, p *toolsv1.Profile, w store.ProfileWrite, method, requestID string) (*toolsv1.Profile, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := encodeRules(p)
	if err != nil {
		return nil, outward(err, name)
	}
	w.Profile = store.Profile{Tenant: tenant, ID: profileID(name), Description: p.GetDescription(), Rules: rules, Etag: id.New()}
	w.Request = requestOf(tenant, method, requestID, name, w.Expected, p.GetDescription(), string(rules))
	row, err := s.store.WriteProfile(ctx, w)
	if err != nil {
		return nil, outward(err, name)
	}
	return storedProfile(row)
}

// encodeRules checks and encodes the rules of a profile.
func encodeRules(p *toolsv1.Profile) ([]byte, error) {
	if err := policy.Check("profile.rules", p.GetRules()); err != nil {
		return nil, err
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.GetRules())
	if err == nil && len(b) > maxProfileBytes {
		err = apierr.Of(codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_INVALID_RULE,
			fmt.Sprintf("the rules have %d bytes, and a profile may have %d; split it into several profiles", len(b), maxProfileBytes),
			apierr.Field("profile.rules", "is too large"))
	}
	return b, err
}

// requestOf returns the idempotency key of a request, nil without an id.
func requestOf(tenant, method, requestID string, body ...string) *store.Request {
	if requestID == "" {
		return nil
	}
	h := sha256.New()
	for _, part := range body {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return &store.Request{Tenant: tenant, Method: method, ID: requestID, Digest: h.Sum(nil), Keep: keepRequests}
}

// DeleteProfile implements ProfileService.
func (s *Profiles) DeleteProfile(ctx context.Context, q *toolsv1.DeleteProfileRequest) (*toolsv1.DeleteProfileResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, fixed := s.policies.Profiles[profileID(q.GetName())]; fixed {
		return nil, outward(errProfileReadOnly, q.GetName())
	}
	err = s.store.DeleteProfile(ctx, store.ProfileWrite{
		Profile: store.Profile{Tenant: tenant, ID: profileID(q.GetName())}, Expected: q.GetEtag(),
		Request: requestOf(tenant, "DeleteProfile", q.GetRequestId(), q.GetName(), q.GetEtag()),
	})
	return &toolsv1.DeleteProfileResponse{}, outward(err, q.GetName())
}

// GetProfile implements ProfileService.
func (s *Profiles) GetProfile(ctx context.Context, q *toolsv1.GetProfileRequest) (*toolsv1.GetProfileResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	if p, ok := s.policies.Profiles[profileID(q.GetName())]; ok {
		return &toolsv1.GetProfileResponse{Profile: fixedProfile(p)}, nil
	}
	row, err := s.store.GetProfile(ctx, tenant, profileID(q.GetName()))
	if err != nil {
		return nil, outward(err, q.GetName())
	}
	p, err := storedProfile(row)
	return &toolsv1.GetProfileResponse{Profile: p}, err
}

// ListProfiles implements ProfileService.
func (s *Profiles) ListProfiles(ctx context.Context, q *toolsv1.ListProfilesRequest) (*toolsv1.ListProfilesResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	scope, after := "ListProfiles\x00"+tenant, ""
	if q.GetPageToken() != "" {
		if err := page.Decode(q.GetPageToken(), scope, &after); err != nil {
			return nil, outward(err, "")
		}
	}
	all, more, err := page.Fill(page.Size(q.GetPageSize(), defaultPage, maxPage), func(last *toolsv1.Profile, n int) ([]*toolsv1.Profile, error) {
		if last != nil {
			after = profileID(last.GetName())
		}
		return s.after(ctx, tenant, after, n)
	})
	if err != nil {
		return nil, err
	}
	answer := &toolsv1.ListProfilesResponse{Profiles: all}
	if more {
		answer.NextPageToken = page.Encode(scope, profileID(all[len(all)-1].GetName()))
	}
	return answer, nil
}

// after lists up to n profiles of the configuration and of the tenant by name. One of the
// configuration hides that of the tenant with the same name, as it does for calls.
func (s *Profiles) after(ctx context.Context, tenant, after string, n int) ([]*toolsv1.Profile, error) {
	var all []*toolsv1.Profile
	for name, p := range s.policies.Profiles {
		if name > after {
			all = append(all, fixedProfile(p))
		}
	}
	rows, err := s.store.ListProfiles(ctx, tenant, after, n+len(s.policies.Profiles))
	if err != nil {
		return nil, outward(err, "")
	}
	for _, row := range rows {
		if _, hidden := s.policies.Profiles[row.ID]; hidden {
			continue
		}
		p, err := storedProfile(row)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].GetName() < all[j].GetName() })
	return all[:min(n, len(all))], nil
}

func profileID(name string) string { return strings.TrimPrefix(name, profilePrefix) }

// fixedProfile shows a profile of the configuration. Its etag follows from its rules.
func fixedProfile(p *permission.Profile) *toolsv1.Profile {
	out := &toolsv1.Profile{Name: profilePrefix + p.Name(), Rules: policy.Proto(p.Rules()), Source: toolsv1.ProfileSource_PROFILE_SOURCE_CONFIGURATION}
	if permission.Builtin(p.Name()) {
		out.Source = toolsv1.ProfileSource_PROFILE_SOURCE_BUILTIN
	}
	return out
}

func storedProfile(row store.Profile) (*toolsv1.Profile, error) {
	rules, err := policy.Decode(row)
	return &toolsv1.Profile{
		Name: profilePrefix + row.ID, Description: row.Description, Rules: rules, Source: toolsv1.ProfileSource_PROFILE_SOURCE_API, Etag: row.Etag,
		CreateTime: timestamppb.New(row.CreateTime), UpdateTime: timestamppb.New(row.UpdateTime),
	}, err
}

package flag

import (
	"context"

	"github.com/open-feature/go-sdk/openfeature"
)

// provider gives the flags to OpenFeature.
type provider struct{ flags *Flags }

// Metadata implements openfeature.FeatureProvider.
func (provider) Metadata() openfeature.Metadata { return openfeature.Metadata{Name: "file"} }

// Hooks implements openfeature.FeatureProvider.
func (provider) Hooks() []openfeature.Hook { return nil }

// BooleanEvaluation implements openfeature.FeatureProvider.
func (p provider) BooleanEvaluation(_ context.Context, flag string, otherwise bool, about openfeature.FlattenedContext) openfeature.BoolResolutionDetail {
	return resolve(p, flag, otherwise, about)
}

// StringEvaluation implements openfeature.FeatureProvider.
func (p provider) StringEvaluation(_ context.Context, flag, otherwise string, about openfeature.FlattenedContext) openfeature.StringResolutionDetail {
	return resolve(p, flag, otherwise, about)
}

// FloatEvaluation implements openfeature.FeatureProvider.
func (p provider) FloatEvaluation(_ context.Context, flag string, otherwise float64, about openfeature.FlattenedContext) openfeature.FloatResolutionDetail {
	return resolve(p, flag, otherwise, about)
}

// IntEvaluation implements openfeature.FeatureProvider.
func (p provider) IntEvaluation(_ context.Context, flag string, otherwise int64, about openfeature.FlattenedContext) openfeature.IntResolutionDetail {
	return resolve(p, flag, otherwise, about)
}

// ObjectEvaluation implements openfeature.FeatureProvider.
func (p provider) ObjectEvaluation(_ context.Context, flag string, otherwise any, about openfeature.FlattenedContext) openfeature.InterfaceResolutionDetail {
	return resolve(p, flag, otherwise, about)
}

// resolve returns a flag's value for a subject.
func resolve[T any](p provider, name string, otherwise T, about openfeature.FlattenedContext) openfeature.GenericResolutionDetail[T] {
	value, detail := p.find(name, about)
	if value == nil {
		return openfeature.GenericResolutionDetail[T]{Value: otherwise, ProviderResolutionDetail: detail}
	}
	typed, ok := value.(T)
	if !ok {
		return openfeature.GenericResolutionDetail[T]{Value: otherwise, ProviderResolutionDetail: failed(
			openfeature.NewTypeMismatchResolutionError("the flag has values of another type"))}
	}
	return openfeature.GenericResolutionDetail[T]{Value: typed, ProviderResolutionDetail: detail}
}

func failed(err openfeature.ResolutionError) openfeature.ProviderResolutionDetail {
	return openfeature.ProviderResolutionDetail{ResolutionError: err, Reason: openfeature.ErrorReason}
}

// find returns the value of the variant that holds; nil: the caller's default does.
func (p provider) find(name string, about openfeature.FlattenedContext) (any, openfeature.ProviderResolutionDetail) {
	f := p.flags.state.Load().document.flags[name]
	switch {
	case f == nil:
		return nil, failed(openfeature.NewFlagNotFoundResolutionError("the file has no flag " + name))
	case f.State == "DISABLED":
		return nil, openfeature.ProviderResolutionDetail{Reason: openfeature.DisabledReason}
	}
	reason := openfeature.StaticReason
	if f.Rule != nil {
		variant, err := f.evaluate(name, about)
		if err != nil {
			return nil, failed(openfeature.NewParseErrorResolutionError(err.Error()))
		}
		if variant != "" {
			return f.Variants[variant], openfeature.ProviderResolutionDetail{Reason: openfeature.TargetingMatchReason, Variant: variant}
		}
		reason = openfeature.DefaultReason
	}
	if f.Default == nil {
		return nil, openfeature.ProviderResolutionDetail{Reason: openfeature.DefaultReason}
	}
	return f.Variants[*f.Default], openfeature.ProviderResolutionDetail{Reason: reason, Variant: *f.Default}
}

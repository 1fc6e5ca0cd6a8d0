package apierr

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// prefix is what a value of an enum ErrorReason has before the reason's name on the wire.
const prefix = "ERROR_REASON_"

// Enum is the generated enum ErrorReason of a service.
type Enum interface {
	~int32
	protoreflect.Enum
}

// Of is New for a reason of a service's enum. The enum's package names the domain:
// fairlead.sandbox.v1 has the domain sandbox.fairlead.dev.
func Of(c codes.Code, r protoreflect.Enum, message string, opts ...Option) error {
	return newError(c, domainOf(r), Name(r), message, opts...)
}

// Is reports whether err has the reason r and the domain of r's service.
func Is(err error, r protoreflect.Enum) bool {
	return err != nil && Reason(err) == Name(r) && ErrorDomain(err) == domainOf(r)
}

// As returns err's reason if it is one of the enum E, and otherwise the unspecified one.
func As[E Enum](err error) E {
	var none E
	if err == nil || ErrorDomain(err) != domainOf(none) {
		return none
	}
	v := none.Descriptor().Values().ByName(protoreflect.Name(prefix + Reason(err)))
	if v == nil {
		return none
	}
	return E(v.Number())
}

// Name returns the reason's name on the wire.
func Name(r protoreflect.Enum) string {
	v := r.Descriptor().Values().ByNumber(r.Number())
	if v == nil {
		return ""
	}
	return strings.TrimPrefix(string(v.Name()), prefix)
}

// domainOf returns the domain of the service in whose package r is.
func domainOf(r protoreflect.Enum) string {
	service := r.Descriptor().FullName().Parent().Parent().Name()
	return string(service) + "." + Domain
}

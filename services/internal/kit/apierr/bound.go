package apierr

import (
	"maps"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// MaxViolations is how many violations of a request an error names.
const MaxViolations = 10

// Limits of the texts of an error, in bytes. Much of a text may come from the request, and JSON writes some characters as
// six bytes. With these limits an error has less than 64 KiB in every form.
const (
	maxMessage  = 2000
	maxText     = 400
	maxName     = 200
	maxMetadata = 1500 // a value
)

// bound cuts the details to their limits.
func (d *details) bound() {
	for k, v := range maps.All(d.info.GetMetadata()) {
		d.info.Metadata[k] = cut(v, maxMetadata)
	}
	if d.bad != nil {
		d.bad.FieldViolations = d.bad.FieldViolations[:min(len(d.bad.FieldViolations), MaxViolations)]
		for _, v := range d.bad.GetFieldViolations() {
			v.Field, v.Description = cut(v.GetField(), maxName), cut(v.GetDescription(), maxText)
		}
	}
	if d.pre != nil {
		d.pre.Violations = d.pre.Violations[:min(len(d.pre.Violations), MaxViolations)]
		for _, v := range d.pre.GetViolations() {
			v.Subject, v.Description = cut(v.GetSubject(), maxName), cut(v.GetDescription(), maxText)
		}
	}
	if d.quota != nil {
		d.quota.Violations = d.quota.Violations[:min(len(d.quota.Violations), MaxViolations)]
		for _, v := range d.quota.GetViolations() {
			v.Subject, v.Description = cut(v.GetSubject(), maxName), cut(v.GetDescription(), maxText)
		}
	}
	for _, o := range d.others {
		if r, ok := o.(*errdetails.ResourceInfo); ok {
			r.ResourceName, r.Description = cut(r.GetResourceName(), maxName), cut(r.GetDescription(), maxText)
		}
	}
}

// cut returns at most the first bytes of a text, and an ellipsis if there are more.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

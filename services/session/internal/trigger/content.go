package trigger

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"regexp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Makes reports whether a delivery makes a turn. A system sends `ping` to see that it reaches the trigger; the other name
// is Bitbucket's.
func Makes(d *sessionv1.FireTriggerRequest) bool {
	return d.Event != "ping" && d.Event != "diagnostics:ping"
}

const formType = "application/x-www-form-urlencoded"

// named is the beginning of a form. curl sends any body under the type of forms unless told otherwise, JSON as well.
var named = regexp.MustCompile(`^[\w.~*%+\[\]-]+=`)

// Content returns the content of a delivery as the agent reads it. A form is decoded: GitHub sends the JSON of an event as
// the field `payload` of one. Other forms become an object in JSON.
func Content(d *sessionv1.FireTriggerRequest) string {
	if kind, _, err := mime.ParseMediaType(d.ContentType); err != nil || kind != formType || !named.Match(d.Payload) {
		return string(d.Payload)
	}
	form, err := url.ParseQuery(string(bytes.TrimSpace(d.Payload)))
	if err != nil {
		return string(d.Payload)
	}
	if values := form["payload"]; len(form) == 1 && len(values) == 1 {
		return values[0]
	}
	fields := make(map[string]any, len(form))
	for name, values := range form {
		fields[name] = values
		if len(values) == 1 {
			fields[name] = values[0]
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil { // texts cannot fail
		return string(d.Payload)
	}
	return string(bytes.TrimSpace(out.Bytes()))
}

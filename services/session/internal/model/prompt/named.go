package prompt

import (
	"errors"
	"regexp"
	"strconv"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
)

// place is how providers name a message of the request, and a part of it.
var place = regexp.MustCompile(`(?i)\b(?:messages?|input)[.\[](\d+)\]?(?:\.?(?:content|output)[.\[](\d+))?`)

// Named gives err with the blocks that the provider names by their place. sent are
// the blocks of each message of the request, part by part.
func Named(err error, sent [][]*sessionv1.Block) error {
	var e *model.Error
	if !errors.As(err, &e) {
		return err
	}
	found := place.FindStringSubmatch(e.ProviderText)
	if found == nil {
		return err
	}
	if i, bad := strconv.Atoi(found[1]); bad == nil && i < len(sent) {
		e.Named = sent[i]
	}
	if j, bad := strconv.Atoi(found[2]); bad == nil && j < len(e.Named) {
		e.Named = e.Named[j : j+1]
	}
	return err
}

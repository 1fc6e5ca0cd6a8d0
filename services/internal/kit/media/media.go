// Package media finds images and documents that no model provider accepts. A
// provider refuses a whole request because of one of them, and each request
// repeats the conversation, so they must not get into it.
package media

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"  // reads the header
	_ "image/jpeg" // reads the header
	_ "image/png"  // reads the header
	"net/http"
	"strings"

	_ "golang.org/x/image/webp" // reads the header
)

// Limits that all providers accept.
const (
	// MaxBytes bounds one image or document.
	MaxBytes = 3 << 20
	// MaxSide bounds the width and the height of a picture, in pixels.
	MaxSide = 8000
	// MaxCount bounds the pictures and documents of one message.
	MaxCount = 20
	// MaxTogether bounds the bytes of all pictures and documents of one message.
	MaxTogether = 15 << 20
	// ManySide bounds the sides of pictures in a request with more than MaxCount.
	ManySide = 2000
)

// PDF is the media type of the documents that are not text.
const PDF = "application/pdf"

// formats are the types of pictures by the names that package image has for them.
var formats = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}

// Error says why an image or a document cannot be sent to a model.
type Error struct {
	// Field is the wrong field: `media_type` or `data`.
	Field string
	// Problem completes the sentence "the picture …".
	Problem string
}

// Error returns the problem.
func (e *Error) Error() string { return e.Problem }

func fault(field, format string, args ...any) *Error {
	return &Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Type returns the media type of data, by its first bytes.
func Type(data []byte) string { return http.DetectContentType(data) }

// Canonical returns the name of a media type that providers know: in lower case,
// without parameters, and with aliases of clients replaced.
func Canonical(mediaType string) string {
	name, _, _ := strings.Cut(mediaType, ";")
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "image/jpg", "image/pjpeg":
		return "image/jpeg"
	case "image/x-png":
		return "image/png"
	case "application/x-pdf":
		return PDF
	}
	return name
}

// Image reads the size of a picture from its header. The error is a *Error.
func Image(mediaType string, data []byte) (image.Config, error) {
	said := mediaType
	mediaType = Canonical(said)
	known := false
	for _, t := range formats {
		known = known || t == mediaType
	}
	if !known {
		return image.Config{}, fault("media_type", "is %s, and no model takes that; send PNG, JPEG, GIF or WebP", said)
	}
	if len(data) > MaxBytes {
		return image.Config{}, fault("data", "has %d bytes; the most is %d", len(data), MaxBytes)
	}
	if is := Type(data); is != mediaType {
		return image.Config{}, fault("data", "is said to be %s, but begins as %s", mediaType, is)
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil || formats[format] != mediaType:
		return size, fault("data", "is damaged: its header cannot be read")
	case size.Width < 1 || size.Height < 1:
		return size, fault("data", "is empty: it has %d×%d pixels", size.Width, size.Height)
	case size.Width > MaxSide || size.Height > MaxSide:
		return size, fault("data", "has %d×%d pixels; the most is %d×%d", size.Width, size.Height, MaxSide, MaxSide)
	}
	return size, nil
}

// Document checks a document. A document that is not a PDF is sent as text or only
// by its name, so it may have any bytes. The error is a *Error.
func Document(mediaType string, data []byte) error {
	switch {
	case len(data) > MaxBytes:
		return fault("data", "has %d bytes; the most is %d", len(data), MaxBytes)
	case Canonical(mediaType) == PDF && !bytes.HasPrefix(data, []byte("%PDF-")):
		return fault("data", "is said to be a PDF, but does not begin with %%PDF-")
	}
	return nil
}

package media_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/internal/kit/media/mediatest"
)

func TestPicturesThatAModelTakesAreGood(t *testing.T) {
	for _, format := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		size, err := media.Image(format, mediatest.Picture(format))
		if err != nil || size.Width < 1 || size.Height != 1 {
			t.Errorf("%s: %v, %v", format, size, err)
		}
	}
	if _, err := media.Image("image/png", mediatest.Sized(media.MaxSide, media.MaxSide)); err != nil {
		t.Errorf("the largest picture: %v", err)
	}
}

func TestAMediaTypeIsKnownByItsAliases(t *testing.T) {
	for said, want := range map[string]string{
		"image/jpg": "image/jpeg", "image/x-png": "image/png", "IMAGE/PNG": "image/png", "image/png; x=y": "image/png",
		"Image/JPG ;q=1": "image/jpeg", "image/webp": "image/webp", "Application/X-PDF": media.PDF, "text/plain;charset=utf-8": "text/plain", "": "",
	} {
		got := media.Canonical(said)
		if got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
		if strings.HasPrefix(want, "image/") {
			if _, err := media.Image(said, mediatest.Picture(want)); err != nil {
				t.Errorf("%q: %v", said, err)
			}
		}
	}
	if media.Document("Application/PDF", []byte("no PDF")) == nil {
		t.Error("a document that is no PDF is taken for the case of its type")
	}
}

func TestPicturesThatNoModelTakesAreFound(t *testing.T) {
	good := mediatest.Picture("image/png")
	for name, tt := range map[string]struct {
		format string
		data   []byte
		field  string
		says   string
	}{
		"a bitmap":                 {"image/bmp", []byte("BM123456"), "media_type", "image/bmp"},
		"a drawing":                {"image/svg+xml", []byte("<svg/>"), "media_type", "PNG, JPEG"},
		"a photo of a phone":       {"image/heic", []byte("\x00\x00\x00\x18ftypheic"), "media_type", "image/heic"},
		"no type":                  {"", good, "media_type", "PNG"},
		"no picture":               {"image/png", []byte("this is text"), "data", "text/plain"},
		"no bytes":                 {"image/png", nil, "data", "begins as"},
		"another format":           {"image/jpeg", good, "data", "begins as image/png"},
		"the signature alone":      {"image/png", good[:8], "data", "damaged"},
		"half a header":            {"image/png", good[:20], "data", "damaged"},
		"a JPEG without a frame":   {"image/jpeg", mediatest.Picture("image/jpeg")[:20], "data", "damaged"},
		"a WebP without a picture": {"image/webp", mediatest.Picture("image/webp")[:14], "data", "damaged"},
		"a GIF of no size":         {"image/gif", append([]byte("GIF89a"), make([]byte, 7)...), "data", "empty"},
		"too wide":                 {"image/png", mediatest.Sized(media.MaxSide+1, 1), "data", "8001×1 pixels"},
		"too high":                 {"image/png", mediatest.Sized(1, media.MaxSide+1), "data", "1×8001"},
		"too many bytes":           {"image/png", append(good, make([]byte, media.MaxBytes)...), "data", "3145728"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := media.Image(tt.format, tt.data)
			var fault *media.Error
			if !errors.As(err, &fault) || fault.Field != tt.field || !strings.Contains(fault.Problem, tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyDocumentsThatAreSaidToBePDFsMustBe(t *testing.T) {
	for name, tt := range map[string]struct {
		format, data string
		good         bool
	}{
		"a PDF":             {media.PDF, "%PDF-1.7\n", true},
		"no PDF":            {media.PDF, "hello", false},
		"text":              {"text/plain", "hello", true},
		"a document of any": {"application/msword", "\xd0\xcf", true},
		"too large":         {"text/plain", strings.Repeat("x", media.MaxBytes+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := media.Document(tt.format, []byte(tt.data)); (err == nil) != tt.good {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzImage(f *testing.F) {
	for _, format := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		f.Add(mediatest.Picture(format))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		size, err := media.Image(media.Type(data), data)
		if err == nil && (size.Width < 1 || size.Width > media.MaxSide || size.Height < 1 || size.Height > media.MaxSide) {
			t.Errorf("a picture of %d×%d is good", size.Width, size.Height)
		}
	})
}

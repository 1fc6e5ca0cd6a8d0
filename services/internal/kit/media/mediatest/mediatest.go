// Package mediatest makes small pictures for tests.
package mediatest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// webp is a picture of one pixel; the Go project writes no WebP.
const webp = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"

// Picture returns an image of one or two pixels of a media type; nil for unknown
// types.
func Picture(mediaType string) []byte {
	var b bytes.Buffer
	two := image.NewPaletted(image.Rect(0, 0, 2, 1), palette.Plan9)
	var err error
	switch mediaType {
	case "image/png":
		err = png.Encode(&b, two)
	case "image/jpeg":
		err = jpeg.Encode(&b, two, nil)
	case "image/gif":
		err = gif.Encode(&b, two, nil)
	case "image/webp":
		var data []byte
		data, err = base64.StdEncoding.DecodeString(webp)
		b.Write(data)
	}
	if err != nil {
		panic(err) // memory takes all of it
	}
	return b.Bytes()
}

// Sized returns the header of a PNG of this size, without the image data.
func Sized(width, height uint32) []byte {
	head := append([]byte("IHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(head[4:], width)
	binary.BigEndian.PutUint32(head[8:], height)
	head[12], head[13] = 8, 2
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(head))
}

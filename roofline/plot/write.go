package plot

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// pngScale is image pixels for one of the scene's: enough for print at the size
// of a column.
const pngScale = 2

// formats are the back ends by the ending of a file's name.
var formats = map[string]func(*Scene, *bytes.Buffer) error{
	".svg":  func(s *Scene, w *bytes.Buffer) error { return s.WriteSVG(w) },
	".png":  func(s *Scene, w *bytes.Buffer) error { return s.WritePNG(w, pngScale) },
	".pdf":  func(s *Scene, w *bytes.Buffer) error { return s.WritePDF(w) },
	".html": func(s *Scene, w *bytes.Buffer) error { return s.WriteHTML(w) },
}

// Formats lists the endings that Encode takes.
const Formats = ".svg, .png, .pdf or .html"

// CheckName refuses a file's name whose ending is no format.
func CheckName(file string) error {
	if formats[strings.ToLower(filepath.Ext(file))] == nil {
		return fmt.Errorf("%s: want a name that ends in %s", file, Formats)
	}
	return nil
}

// Encode returns the scene in the format that a file's name ends in.
func (s *Scene) Encode(file string) ([]byte, error) {
	if err := CheckName(file); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := formats[strings.ToLower(filepath.Ext(file))](s, &b)
	return b.Bytes(), err
}

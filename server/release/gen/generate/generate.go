// Package generate has the functions that several generators need: they read the sources of modules, and write texts that
// the server embeds compressed.
package generate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// Download returns the directory with the sources of a module.
func Download(module, version string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s %s: %w: %s", module, version, err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("downloading %s %s: %w", module, version, err)
	}
	return found.Dir, nil
}

// Write writes a text, and its compressed form with the suffix .gz.
func Write(file string, text []byte) error {
	var packed bytes.Buffer
	zw, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zw.Write(text); err != nil {
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(file+".gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

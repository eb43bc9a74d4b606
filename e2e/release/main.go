// Command release writes the bill of materials of a Go program as SPDX 2.3 in JSON: every module in the build
// information of the binary, with version and checksum.
//
//	go run ./e2e/release BINARY > BINARY.spdx.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: release BINARY")
	}
	document, err := describe(args[0])
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// The parts of an SPDX document that are used here.
type (
	spdx struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []module       `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	module struct {
		ID        string      `json:"SPDXID"`
		Name      string      `json:"name"`
		Version   string      `json:"versionInfo,omitempty"`
		Location  string      `json:"downloadLocation"`
		Analyzed  bool        `json:"filesAnalyzed"`
		Checksums []checksum  `json:"checksums,omitempty"`
		Refs      []reference `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// describe reads a binary. Documents of one binary are the same, whenever they are made.
func describe(path string) (*spdx, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what %s is made of: %w", path, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	made := time.Unix(0, 0).UTC()
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				made = t.UTC()
			}
		}
	}
	name := filepath.Base(path)
	d := &spdx{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://" + info.Main.Path + "/sbom/" + digest,
		Creation:  creation{Created: made.Format(time.RFC3339), Creators: []string{"Tool: rowlock-release"}},
		Packages: []module{{
			ID: "SPDXRef-binary", Name: name, Version: info.Main.Version, Location: "NOASSERTION",
			Checksums: []checksum{{Algorithm: "SHA256", Value: digest}},
		}, {ID: "SPDXRef-go", Name: "go", Version: info.GoVersion, Location: "https://go.dev/dl/"}},
		Relationships: []relationship{{From: "SPDXRef-DOCUMENT", Kind: "DESCRIBES", To: "SPDXRef-binary"}, {From: "SPDXRef-go", Kind: "BUILD_TOOL_OF", To: "SPDXRef-binary"}},
	}
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		id := fmt.Sprintf("SPDXRef-module-%d", i+1)
		d.Packages = append(d.Packages, describeModule(id, m))
		d.Relationships = append(d.Relationships, relationship{From: "SPDXRef-binary", Kind: "CONTAINS", To: id})
	}
	return d, nil
}

func describeModule(id string, m *debug.Module) module {
	p := module{
		ID: id, Name: m.Path, Version: m.Version, Location: "NOASSERTION",
		Refs: []reference{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + m.Path + "@" + m.Version}},
	}
	// go.sum's h1 is a SHA-256 over the names and sums of all files.
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && strings.HasPrefix(m.Sum, "h1:") {
		p.Checksums = []checksum{{Algorithm: "SHA256", Value: hex.EncodeToString(raw)}}
	}
	return p
}

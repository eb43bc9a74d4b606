package importer

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/transfer"
)

// TestImportTableIsText: the description of a hostile source contains no terminal sequences.
func TestImportTableIsText(t *testing.T) {
	const evil = "\x1b]0;x\x07"
	a := importAnswer{Report: transfer.Report{
		Resources: []transfer.Resource{{Name: "w" + evil}}, Warnings: []string{"version " + evil},
		Problems: []transfer.Problem{{Key: "/k" + evil, Reason: "it is a " + evil}}, Left: []transfer.Skipped{{Why: "x", Names: []string{evil}}},
	}}
	var b strings.Builder
	a.table(&b)
	if text := b.String(); strings.ContainsAny(text, "\x1b\x07") || !strings.Contains(text, "it is a ") || !strings.Contains(text, "version ") {
		t.Errorf("%q", text)
	}
}

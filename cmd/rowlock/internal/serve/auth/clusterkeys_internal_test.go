package auth

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/memory"
)

// TestClusterKeys: servers with a common authority and key of tokens share a database, also while either is
// replaced; others do not, unless they are to take over.
func TestClusterKeys(t *testing.T) {
	keys := func(authorities, tokens string) *ClusterKeys {
		return &ClusterKeys{Authorities: strings.Fields(authorities), Tokens: strings.Fields(tokens)}
	}
	d := memory.New(memory.Config{MaxBytes: 1 << 20}).Open()
	t.Cleanup(func() { d.Close() })
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for i, step := range []struct {
		keys    *ClusterKeys
		replace bool
		differs string
	}{
		{keys("a", "k"), false, ""},
		{keys("a", "k"), false, ""},
		{keys("b", "k"), false, "authority"},
		{keys("a", "l"), false, "service account tokens"},
		{keys("b a", "k"), false, ""},                       // a successor that is trusted in addition to the old one
		{keys("b", "l k"), false, ""},                       // the new key signs, the old one verifies
		{keys("b", "k"), false, ""},                         // a server that has not got the new one to sign with
		{keys("b", "m l"), false, "service account tokens"}, // refused by the server before, and refuses its tokens
		{keys("b", ""), false, ""},                          // another process signs
		{keys("c", "x"), false, "authority"},
		{keys("c", "x"), true, ""},
		{keys("c", "x"), false, ""},
		{keys("b", "x"), false, "authority"},
	} {
		err := step.keys.Agree(t.Context(), d, "/data", step.replace, log)
		var refused *keysError
		if errors.As(err, &refused) != (step.differs != "") || err != nil && !strings.Contains(err.Error(), step.differs) {
			t.Fatalf("step %d: %v, want %q", i, err, step.differs)
		}
		if err != nil && !strings.Contains(err.Error(), "rowlock init --data-dir /data --from ") {
			t.Errorf("no command mends %q", err)
		}
	}

	// A row that cannot be read is replaced where that is asked for.
	was, err := d.Note(t.Context(), keysNote)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := d.SetNote(t.Context(), keysNote, was, "{"); !ok || err != nil {
		t.Fatalf("damaging the note: %t, %v", ok, err)
	}
	if err := keys("c", "x").Agree(t.Context(), d, "/data", false, log); err == nil || !strings.Contains(err.Error(), "--replace-cluster-keys") {
		t.Errorf("a note that cannot be read: %v", err)
	}
	for _, replace := range []bool{true, false} {
		if err := keys("c", "x").Agree(t.Context(), d, "/data", replace, log); err != nil {
			t.Errorf("replacing a note that cannot be read: %v", err)
		}
	}
}

package copier

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
	"github.com/rowlock/rowlock/sqlstore"
)

const evilText = "\x1b]0;x\x07\u009b\u202e"

// TestCopyTableIsText: neither a cluster nor an error message can move the reader's cursor.
func TestCopyTableIsText(t *testing.T) {
	a := copyAnswer{
		Source: "s" + evilText, Target: "t" + evilText, Skipped: []remote.Skipped{{Resource: "l" + evilText, Reason: "because " + evilText}},
		Report: &copying.Report{
			Resources: []copying.Tally{{Resource: "r" + evilText}},
			Details:   []copying.Detail{{Resource: "r" + evilText, Namespace: "ns" + evilText, Name: "n" + evilText, Outcome: copying.Failed, Reason: "it is " + evilText}},
		},
	}
	var b strings.Builder
	a.table(&b)
	text := b.String() + cli.OneLine(errors.New("no\n"+evilText))
	if strings.ContainsAny(text, evilText[:1]+"\x07\u009b\u202e") || !strings.Contains(text, "because ") || !strings.Contains(text, "it is ") || !strings.Contains(text, "no; ") {
		t.Errorf("%q", text)
	}
}

// TestCopyTableIsShort: all objects that are skipped for one reason share a line with their number.
func TestCopyTableIsShort(t *testing.T) {
	a := copyAnswer{Report: &copying.Report{}}
	for i := range 20 {
		a.Details = append(a.Details, copying.Detail{Resource: "clusterroles", Name: fmt.Sprint("r", i), Outcome: copying.Skipped, Reason: "its own"}, copying.Detail{Resource: "pods", Name: fmt.Sprint("p", i), Outcome: copying.Failed, Reason: "no"})
	}
	a.Details = append(a.Details, copying.Detail{Resource: "secrets", Name: "alone", Outcome: copying.Skipped, Reason: "its own"})
	var b strings.Builder
	a.table(&b)
	if text := b.String(); strings.Count(text, "clusterroles") != 1 || !strings.Contains(text, "(20 objects)\tits own") || strings.Count(text, "failed\tpods") != 20 || !strings.Contains(text, "alone\tits own") {
		t.Errorf("%s", text)
	}
}

// TestCopyRefusesDamage: a row whose checksum does not match may be valid JSON with other content. It ends the copy, like a value
// that is not JSON.
func TestCopyRefusesDamage(t *testing.T) {
	key := sqlstore.Key{Resource: "configmaps", Namespace: "shop", Name: "prices"}
	for name, row := range map[string]sqlstore.Row{
		"its checksum differs": {Key: key, Value: []byte(`{"data":{"price":"9"}}`), Damaged: sqlstore.ChecksumError(1, 2)},
		"it is not JSON":       {Key: key, Value: []byte(`{"data":`)},
		"it is right":          {Key: key, Value: []byte(`{"data":{"price":"1"}}`)},
	} {
		spool, err := remote.NewSpool(t.TempDir(), 1<<20, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := &rowReader{spool: spool, picks: func(string) bool { return true }, open: func(*sqlstore.Row) error { return nil }, progress: func(int64) {}}
		err = r.page([]sqlstore.Row{row})
		if name == "it is right" {
			if err != nil || r.objects != 1 {
				t.Errorf("%s: %d objects, %v", name, r.objects, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "configmaps/shop/prices is damaged") || r.objects != 0 {
			t.Errorf("%s: %d objects, %v", name, r.objects, err)
		}
		if err := spool.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCopyRefuses: flags that do not apply to this source, or have no effect, are refused
// by their names.
func TestCopyRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--to-kubeconfig is needed":            {},
		"--encryption-provider-config is":      {"--to-kubeconfig", "x", "--from-kubeconfig", "y", "--encryption-provider-config", "z"},
		"--from-context is about a live":       {"--to-kubeconfig", "x", "--from-context", "y"},
		"--skip-forbidden is about a live":     {"--to-kubeconfig", "x", "--skip-forbidden"},
		"cannot both be the source":            {"--to-kubeconfig", "x", "--from-kubeconfig", "y", "--store", "z"},
		`--namespace "shop,": a name is empty`: {"--to-kubeconfig", "x", "-n", "shop,"},
		"--exclude":                            {"--to-kubeconfig", "x", "--exclude", "a,,b"},
		"--qps NaN":                            {"--to-kubeconfig", "x", "--qps", "NaN"},
		"--workers 0":                          {"--to-kubeconfig", "x", "--workers", "0"},
		"--selector":                           {"--to-kubeconfig", "x", "-l", "a=b=c"},
	} {
		cmd := Command()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

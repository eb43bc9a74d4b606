package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rowlock/rowlock/"

// TestImports checks which packages a package may import.
func TestImports(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	packages := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages++
		if p.ImportPath == module+"codecs/sample" {
			continue // objects for the tests of codecs; no binary holds it
		}
		for _, i := range p.Imports {
			if reason := forbidden(strings.TrimPrefix(p.ImportPath, module), i); reason != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, i, reason)
			}
		}
	}
	if packages < 20 {
		t.Fatalf("only %d packages were looked at", packages)
	}
}

// offLimits are the packages that rowlock replaces.
var offLimits = []string{
	"k8s.io/kubernetes", "k8s.io/apiserver/pkg/server", "k8s.io/apiserver/pkg/endpoints", "k8s.io/apiserver/pkg/registry", "k8s.io/apiserver/pkg/storage",
	"k8s.io/apiextensions-apiserver/pkg/apiserver", "k8s.io/apiextensions-apiserver/pkg/registry", "github.com/k3s-io/kine", "go.etcd.io/etcd",
}

// schemas are leaves of a package that is off limits otherwise: structural ones, and
// values held against them.
var schemas = []string{"k8s.io/apiextensions-apiserver/pkg/apiserver/schema", "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"}

// publications are generated packages that are linked for their texts.
var publications = []string{
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi", "k8s.io/kube-aggregator/pkg/generated/openapi",
	"sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core",
}

// files are packages that read configuration files.
var files = []string{"authx/configfile", "authx/freshfile"}

// foreigners lists the packages of other stores that their readers may import: generated messages
// and error codes of etcd's API, and the client of PostgreSQL.
var foreigners = map[string][]string{
	"sqlstore/foreign/etcd": {"go.etcd.io/etcd/api/v3"},
	"sqlstore/foreign/kine": {"github.com/jackc/pgx/v5"},
}

func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func forbidden(from, to string) string {
	if slices.ContainsFunc(foreigners[from], func(f string) bool { return under(to, f) }) {
		return ""
	}
	for _, o := range offLimits {
		if under(to, o) && !slices.ContainsFunc(schemas, func(s string) bool { return under(to, s) }) {
			return "off limits"
		}
	}
	own, isOwn := strings.CutPrefix(to, module)
	top, _, _ := strings.Cut(from, "/")
	switch {
	case !isOwn && from == "sqlstore" && strings.Contains(to, "."):
		return "the root of sqlstore uses the standard library alone"
	case !isOwn && under(to, "github.com/jackc/pgx") && !under(from, "sqlstore/postgres") && top != "e2e":
		return "only the driver knows pgx"
	case !isOwn && under(to, "k8s.io/client-go") && top != "e2e" && !under(to, "k8s.io/client-go/tools/clientcmd") && !under(to, "k8s.io/client-go/pkg/apis/clientauthentication") && !under(to, "k8s.io/client-go/rest"):
		return "client-go is for tests and for reading kubeconfig files"
	case !isOwn && slices.Contains(publications, to) && from != "server/schema/descriptions":
		return "only descriptions reads what others publish"
	case !isOwn:
		return ""
	case from == "codecs/metricset":
		return "metrics know nobody else"
	case own == "codecs/metricset":
		return ""
	}
	switch top {
	case "server":
		if to, ok := inServer(own); ok {
			from, _ := inServer(from)
			return misplaced(from, to)
		}
		if under(own, "sqlstore/sqlite") || under(own, "sqlstore/postgres") {
			return "a driver"
		}
		if own == "server/servertest" {
			return "the fixture of tests alone"
		}
		if from == "server/servertest" && (own == "e2e/recorded" || own == "e2e/leniency") {
			return "" // a player of recorded answers, and a counter of its tolerances: they import nothing
		}
		if under(own, "cmd") || under(own, "e2e") {
			return "below it"
		}
	case "authx":
		if !under(own, "authx") {
			return "authx knows nobody else"
		}
	case "codecs":
		if !under(own, "codecs") {
			return "codecs know nobody else"
		}
	case "sqlstore":
		if from == "sqlstore/encryption" && slices.Contains(files, own) {
			return "" // how files are read, which import nothing else
		}
		if !under(own, "sqlstore") && !under(own, "migrations") {
			return "the store knows nobody else"
		}
	case "migrations":
		return "migrations know nobody else"
	case "e2e":
		if from == "e2e/recorded" || from == "e2e/leniency" {
			return "tests inside the server use it too"
		}
		if under(own, "server") || under(own, "authx") || under(own, "codecs") {
			return "black-box tests drive from outside"
		}
	}
	return ""
}

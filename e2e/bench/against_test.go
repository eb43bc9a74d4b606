package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
"clusters":[{"name":"k","cluster":{"server":"https://elsewhere:1","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":USER}]}`

func TestTargets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(strings.Replace(kubeconfig, "USER", `{"token":"t1"}`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	all, _, err := targets("etcd@https://127.0.0.1:6443=" + path + ",https://kine:7443=t2")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []target{{name: "etcd", url: "https://127.0.0.1:6443", token: "t1"}, {name: "kine:7443", url: "https://kine:7443", token: "t2"}} {
		if got := all[i]; got.name != want.name || got.url != want.url || got.token != want.token || got.tls == nil {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if !all[0].tls.InsecureSkipVerify || all[1].tls.InsecureSkipVerify {
		t.Error("verification of certificates does not follow the kubeconfig")
	}
}

func TestNoTargets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(strings.Replace(kubeconfig, "USER", `{"username":"u","password":"hidden"}`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{
		"http://a:1=hidden":                      "http://a:1: it is no URL",
		"https://a:1/path=hidden":                "it is no URL",
		"https://u:hidden@a:1":                   "it is no URL",
		"https://u:hidden=x@a:1":                 "it is no URL",
		"https://a:1=x,hidden":                   "it is no URL",
		"a@https://a:1=hidden,a@https://b:1":     "another one of the name a",
		"rowlock@https://a:1=hidden":             "another one of the name rowlock",
		"https://a:1=" + path:                    "plugins and passwords are not used",
		"https://a:1=hidden,,https://b:1=hidden": "it is no URL",
	} {
		_, _, err := targets(list)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
}

// TestChosen: -run selects by the current and the former name. -against replaces all measurements, unless -run selects only churn and writers.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		run, against string
		want         []string
	}{
		{"^g", "", []string{"get", "garbage"}},
		{"fairness", "", []string{"fairness"}},
		{"^elephant$", "", []string{"fairness"}}, // the former name
		{"churn|writers", "", []string{"churn", "writers"}},
		{"churn|writers", "https://h:1", []string{"churn", "writers"}},
		{"^writers$", "https://h:1", []string{"writers"}},
		{"churn|get", "https://h:1", []string{"against"}},
		{"", "https://h:1", []string{"against"}},
		{"none", "https://h:1", []string{"against"}},
	} {
		var got []string
		for _, m := range (settings{run: c.run, against: c.against}).chosen(regexp.MustCompile(c.run)) {
			got = append(got, m.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("-run %q -against %q measures %q, want %q", c.run, c.against, got, c.want)
		}
	}
}

func TestSecretsAreNotRecorded(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"-against", "a@https://h:1=hidden,https://g:2=hidden", "-seconds", "3"}, []string{"-against", "a@https://h:1,https://g:2", "-seconds", "3"}},
		{[]string{"--against=https://h:1=hidden"}, []string{"-against=https://h:1"}},
		{[]string{"-store", "postgres://u:hidden@h/db"}, []string{"-store", "postgres://h/db"}},
		{[]string{"-store=postgres://h/db?password=hidden"}, []string{"-store=postgres://h/db"}},
		{[]string{"-store", "postgres://u:hidden=@h/db"}, []string{"-store", "postgres://h/db"}},
		{[]string{"-store", "postgres://u:hidden,x@h/db"}, []string{"-store", "postgres://h/db"}},
		{[]string{"-store", "postgres://u:hidden/x@h/db"}, []string{"-store", "postgres:"}},
		{[]string{"-store", "postgres"}, []string{"-store", "postgres"}},
		{[]string{"-store", "postgres:host=h password=hidden"}, []string{"-store", "postgres:"}},
		{[]string{"-against", "a@https://u:hidden=x@h:1"}, []string{"-against", "a@"}},
		{[]string{"-against", "https://g:2=x,hidden"}, []string{"-against", "https://g:2,(no URL)"}},
		{[]string{"-builds", "a=/home/hidden/rowlock"}, []string{"-builds", "a=rowlock"}},
		{[]string{"-record", "/home/hidden/out.json"}, []string{"-record", "out.json"}},
	} {
		got := withoutSecrets(c.args)
		if strings.Contains(strings.Join(got, " "), "hidden") || len(got) != len(c.want) || !strings.HasPrefix(got[len(got)-1], strings.Split(c.want[len(c.want)-1], "?")[0]) {
			t.Errorf("%q is recorded as %q", c.args, got)
		}
	}
}

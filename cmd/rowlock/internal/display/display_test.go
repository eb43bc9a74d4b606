package display_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
)

func secret(value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": value, "other": "c2FtZQ=="},
		"metadata": map[string]any{
			"name": "pw", "resourceVersion": "12", "managedFields": []any{map[string]any{"manager": "kubectl"}},
			"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + value + `"}}`},
		},
	}
}

// TestSecretsAreHidden: hidden values can be distinguished, and not read.
func TestSecretsAreHidden(t *testing.T) {
	var f display.Form
	original := secret("cXVpZXQ=")
	first, err := f.YAML(original)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := f.YAML(secret("bG91ZA=="))
	again, _ := f.YAML(secret("cXVpZXQ="))
	if first != again || first == second {
		t.Errorf("equal secrets must look equal and others not:\n%s\n%s\n%s", first, second, again)
	}
	for _, text := range []string{first, second} {
		if strings.Contains(text, "cXVpZXQ") || strings.Contains(text, "bG91ZA") || strings.Contains(text, "managedFields") || strings.Contains(text, "resourceVersion") {
			t.Errorf("this shows too much:\n%s", text)
		}
		if !strings.Contains(text, "other: (hidden, value 1)") {
			t.Errorf("the value that did not change looks changed:\n%s", text)
		}
	}
	if original["data"].(map[string]any)["password"] != "cXVpZXQ=" {
		t.Error("the object itself was changed")
	}
	open := display.Form{Secrets: true, ManagedFields: true}
	if text, _ := open.YAML(original); !strings.Contains(text, "cXVpZXQ=") || !strings.Contains(text, "manager: kubectl") {
		t.Errorf("what was asked for is missing:\n%s", text)
	}
}

func TestSecretsOfOthers(t *testing.T) {
	var f display.Form
	obj := secret("cXVpZXQ=")
	obj["apiVersion"] = "example.com/v1"
	if text, _ := f.YAML(obj); !strings.Contains(text, "cXVpZXQ=") {
		t.Errorf("another kind of that name is no Secret:\n%s", text)
	}
}

func TestDiff(t *testing.T) {
	got := display.Diff("old", "a: 1\nb: 2\n", "new", "a: 1\nb: 3\n")
	if want := "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := display.Diff("old", "a: 1\n", "new", "a: 1\n"); got != "" {
		t.Errorf("equal texts differ: %q", got)
	}
}

func TestSafe(t *testing.T) {
	if got := display.Safe("a\x1b[31mb\nc\u202ed\u009b"); got != "a\ufffd[31mb\ufffdc\ufffdd\ufffd" {
		t.Errorf("got %q", got)
	}
	if got := display.SafeLines("a\n\tb\r\x07"); got != "a\n\tb\ufffd\ufffd" {
		t.Errorf("got %q", got)
	}
}

package meter_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/rowlock/rowlock/authx/meter"
)

// TestVet: texts whose compilation would take hours are found, and others are not.
func TestVet(t *testing.T) {
	for text, want := range map[string]string{
		"[1]" + strings.Repeat(".map(x, {x: x})", 60) + ".size() == 1":                                                            "the types of the expression are too large",
		"[1]" + strings.Repeat(".map(x, {[x]: [x]})", 60) + ".size() == 1":                                                        "the types of the expression are too large",
		"optional.of(1)" + strings.Repeat(".optMap(x, x)", 60) + ".hasValue()":                                                    "the expression is too large",
		"optional.of(1)" + strings.Repeat(".optFlatMap(x, optional.of(x))", 60) + ".hasValue()":                                   "the expression is too large",
		"optional.of({v: 1})" + strings.Repeat(".optMap(x, x)", 6) + ".hasValue()":                                                "the types of the expression are too large",
		"v.matches('" + strings.Repeat("(abcdefghij){900}", 50) + "')":                                                            "the patterns of the expression",
		"v.matches(r'" + strings.Repeat(`\pL`, 20_000) + "')":                                                                     "the patterns of the expression",
		"v.matches(r'" + strings.Repeat(`\PL`, 2_000) + "')":                                                                      "the patterns of the expression",
		`v.matches("` + strings.Repeat(`\x5cpL`, 2_000) + `")`:                                                                    "the patterns of the expression",
		`v.matches("` + strings.Repeat(`(abcdefghij)\x7b900\x7d`, 50) + `")`:                                                      "the patterns of the expression",
		`v.matches(r'^[\p{L}\p{N}_]+$')`:                                                                                          "",
		strings.Repeat("[", 100) + "1" + strings.Repeat("]", 100) + " == v":                                                       "the types of the expression are too large",
		strings.Repeat("[", 20) + "1" + strings.Repeat("]", 20) + " == v" + strings.Repeat(" && v[0][1] == [[1], [2, v[3]]]", 10): "",
		strings.Repeat("[] == [] && ", 5000) + "true":                                                                             "the types of the expression are too large",
		strings.Repeat("v.a == [] && v.b != {} && ", 100) + "true":                                                                "",
		"v.optMap(x, x) == ": "Syntax error",
		"{'a': 1, 'b': v}['a'] == 1 && v.?a.optMap(x, x + 1).orValue(3) == 2":                                                   "",
		"v.matches('^[a-z]{1,63}$') && v.all(k, {k: 1}.size() == 1)":                                                            "",
		"v in [" + strings.Repeat("'a', ", 4000) + "{'a': 1}]":                                                                  "",
		strings.Repeat("v.spec.containers.exists(c, c.name == 'a' && c.ports.size() == 3) || ", 300) + "{'a': 'b'}.size() == 1": "",
		strings.Repeat("{", 300_000): "", strings.Repeat("{", 3_000_000): "", // the compiler reports it
	} {
		got := ""
		if err := meter.Vet(text); err != nil {
			got = err.Error()
		}
		if want == "" && strings.HasPrefix(text, "{{") {
			continue // it ended
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%.60s: %.200s", text, got)
		}
	}
}

// TestDeclarable: the types that variables have are of a bounded size.
func TestDeclarable(t *testing.T) {
	of := cel.StringType
	for n := range 40 {
		if meter.Declarable(of) != (n < 6) {
			t.Errorf("%d levels", n)
		}
		of = cel.MapType(of, of)
	}
}

// TestAbridge: an error shows a bounded part of an expression.
func TestAbridge(t *testing.T) {
	if got := meter.Abridge("short"); got != "short" {
		t.Error(got)
	}
	if got := meter.Abridge(strings.Repeat("é", 100_000)); len(got) > 17_000 || !strings.HasSuffix(got, "(183616 bytes more)") {
		t.Errorf("%d bytes: ...%s", len(got), got[len(got)-40:])
	}
}

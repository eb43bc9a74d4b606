package definitions

import (
	"fmt"
	"strings"
	"testing"
)

// TestRulesWeigh: a thousand short rules count for what they take once they are compiled, and not for
// their text.
func TestRulesWeigh(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 3000, 1000: 3_000_000} {
		rules := strings.Repeat(`{"rule":"self.a > 1","messageExpression":"'no'"},`, n)
		version := fmt.Sprintf(`{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[%s]}}}`, strings.TrimSuffix(rules, ","))
		v, size, err := readVersion([]byte(`{"spec":{"versions":[{"name":"v0"},`+version+`]}}`), "v1")
		if err != nil || v.Name != "v1" || len(v.Schema.OpenAPIV3Schema.XValidations) != n {
			t.Fatalf("%d rules: %+v %v", n, v, err)
		}
		if size != len(version)+want {
			t.Errorf("%d rules weigh %d, want %d", n, size-len(version), want)
		}
	}
}

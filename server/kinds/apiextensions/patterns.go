package apiextensions

import (
	"fmt"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx/meter"
)

// A pattern of a few bytes becomes a program of thousands of steps ("a{1000}"), which is compiled more than
// once and kept as long as the definition is served. So the total size of all compiled patterns of a
// definition has a limit, far above that of any in use: a pattern that limits a name to 63 characters becomes
// some 150 steps.

// maxSteps bounds the programs of all patterns of a definition; a step takes 40 bytes.
const maxSteps = 500_000

// steps adds up the programs of a definition's patterns, each as often as it is written.
func steps(spec *apiext.CustomResourceDefinitionSpec) (sum int) {
	known := map[string]int{}
	for s := range schemas(spec) {
		for n := range nodes(s) {
			if n.Pattern == "" {
				continue
			}
			cost, ok := known[n.Pattern]
			if !ok {
				cost = meter.Instructions(n.Pattern) // an invalid pattern is refused elsewhere
				known[n.Pattern] = cost
			}
			if sum += cost; sum > maxSteps {
				return sum
			}
		}
	}
	return sum
}

// validatePatterns refuses a definition whose patterns are too much together.
func validatePatterns(d, old *apiext.CustomResourceDefinition, p *field.Path) field.ErrorList {
	if steps(&d.Spec) <= maxSteps || old != nil && steps(&old.Spec) > maxSteps {
		return nil
	}
	return field.ErrorList{field.Forbidden(p.Child("versions"), fmt.Sprintf("the patterns of all schemas together are compiled to more than %d steps", maxSteps))}
}

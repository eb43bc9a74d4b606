//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const applyCBOR = "application/apply-patch+cbor"

// applyForms lists the forms of the body of an apply; JSON is also YAML.
var applyForms = []struct {
	contentType string
	encode      func(body string) (string, error)
}{
	{applyPatch, func(body string) (string, error) { return body, nil }},
	{applyPatch, func(body string) (string, error) {
		text, err := yaml.JSONToYAML([]byte(body))
		return string(text), err
	}},
	{applyCBOR, toCBOR},
}

// apply applies an object in one of the forms. Sometimes it applies the same once more in another form, as a dry run, which must return an
// equal object.
func (c *client) apply(op *history.Op, path, body string) {
	first := c.rand.IntN(len(applyForms))
	text, err := applyForms[first].encode(body)
	if err != nil {
		panic(err) // the body is valid JSON, as the traffic has encoded it
	}
	c.form = []history.Form{history.Whole, history.CBOR}[c.rand.IntN(2)]
	var shown []byte
	c.record(op, http.MethodPatch, path, applyForms[first].contentType, text, func(answer []byte) (*history.State, error) {
		shown = answer
		item, err := c.parsed.Parse(answer)
		if err != nil {
			return nil, err
		}
		return &item.State, nil
	})
	if op.Outcome == history.OK && op.Got != nil && op.Expect == 0 && c.rand.IntN(4) == 0 {
		c.applyAgain(op, shown, path, body, (first+1+c.rand.IntN(len(applyForms)-1))%len(applyForms))
	}
}

// applyAgain applies in another form what apply has applied, and compares the objects.
func (c *client) applyAgain(op *history.Op, shown []byte, path, body string, form int) {
	text, err := applyForms[form].encode(body)
	if err != nil {
		panic(err) // the body is valid JSON, as the traffic has encoded it
	}
	check := &history.Check{Property: "writes", What: fmt.Sprintf("what is applied to %s again in another form (%s)", op.Key, applyForms[form].contentType), Server: c.any(), Call: c.rec.Now()}
	code, answer, err := c.send(context.Background(), check.Server, http.MethodPatch, path+"&dryRun=All", applyForms[form].contentType, text)
	check.Return = c.rec.Now()
	if err != nil || code != http.StatusOK {
		return
	}
	got, err := history.ParseObject(answer, 0)
	if err != nil || got.State.Version != op.Got.Version {
		return // another owner has written since
	}
	if got.State.Hash != op.Got.Hash {
		check.Wrong = "it is another object"
		check.Seen = []string{op.String(), "first: " + string(shown), "again: " + string(answer)}
	}
	c.rec.Add(check)
}

package cache_test

import (
	"errors"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// definedBoats returns the resources that a definition makes of two versions of a kind.
func definedBoats() (v1, v2 *kinds.Resource) {
	of := func(version string) *kinds.Resource {
		return &kinds.Resource{Group: "example.com", Version: version, Plural: "boats", Kind: "Boat", Schema: kinds.AsStored{}}
	}
	return of("v1"), of("v2")
}

func boatItem() *cache.Item {
	return cache.NewOwnItem(&sqlstore.Row{Revision: 1, Value: []byte(`{"kind":"Boat","apiVersion":"example.com/v1","metadata":{"name":"b"}}`)}, nil)
}

// TestFormsOfFormerDefinitions: however often a definition changes, an item keeps the forms of the present one alone, those of all
// versions.
func TestFormsOfFormerDefinitions(t *testing.T) {
	it := boatItem()
	has := func(form cache.Form, r *kinds.Resource) bool { return it.Has(cache.FormKey{Form: form, For: r}) }
	add := func(form cache.Form, r *kinds.Resource) {
		t.Helper()
		if _, err := it.Bytes(cache.FormKey{Form: form, For: r}, func(*cache.Item) ([]byte, error) { return []byte(r.Version), nil }); err != nil || !has(form, r) {
			t.Fatalf("a form is not kept: %v", err)
		}
	}
	var former []*kinds.Resource
	for range 5 {
		v1, v2 := definedBoats()
		for _, r := range []*kinds.Resource{v1, v2} {
			add(cache.FormJSON, r)
			add(cache.FormTableRow, r)
		}
		for _, r := range []*kinds.Resource{v1, v2} {
			if !has(cache.FormJSON, r) || !has(cache.FormTableRow, r) {
				t.Errorf("the forms of %s are not kept", r.Version)
			}
		}
		for _, r := range former {
			if has(cache.FormJSON, r) || has(cache.FormTableRow, r) {
				t.Errorf("a form of a former definition of %s is kept", r.Version)
			}
		}
		former = append(former, v1, v2)
	}
}

// TestFailureOfConversion: what a conversion webhook failed to make, it makes for a later caller.
func TestFailureOfConversion(t *testing.T) {
	it, failed := boatItem(), errors.New("the webhook is away")
	r, _ := definedBoats()
	calls := 0
	form := func() (string, error) {
		b, err := it.Bytes(cache.FormKey{Form: cache.FormJSON, For: r}, func(*cache.Item) ([]byte, error) {
			if calls++; calls < 3 {
				return nil, failed
			}
			return []byte("made"), nil
		})
		return string(b), err
	}
	for range 2 {
		if _, err := form(); !errors.Is(err, failed) {
			t.Errorf("the form of a failed conversion: %v", err)
		}
	}
	if got, err := form(); got != "made" || err != nil || calls != 3 {
		t.Errorf("%d calls made %q, %v", calls, got, err)
	}
}

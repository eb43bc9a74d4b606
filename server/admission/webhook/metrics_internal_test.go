package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestMetricsOfFormerWebhooks: the series of a webhook go with the last configuration that names it.
func TestMetricsOfFormerWebhooks(t *testing.T) {
	const storage = "validatingwebhookconfigurations.admissionregistration.k8s.io"
	cfg := Config{Cache: cache.New(kinds.NewCatalogue(builtin.Resources())), Metrics: NewMetrics(), Conditions: conditions.NewMetrics()}
	k := newAsker(cfg, storage, validating, "validating")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(append(cfg.Metrics.Collectors(), cfg.Conditions.Collectors()...)...)
	revision := int64(0)
	configure := func(name string, hooks ...string) {
		revision++
		var list []string
		for _, h := range hooks {
			list = append(list, fmt.Sprintf(`{"name":%q}`, h))
		}
		row := sqlstore.Row{Key: sqlstore.Key{Resource: storage, Name: name}, Revision: revision, Deleted: len(hooks) == 0}
		row.Value = fmt.Appendf(nil, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":%q,"uid":"u"},"webhooks":[%s]}`, name, strings.Join(list, ","))
		ch := sqlstore.Change{Row: row}
		if old := cfg.Cache.Get(storage, "", name); old != nil {
			ch.PrevRevision = old.Revision
		}
		cfg.Cache.Apply([]sqlstore.Change{ch})
		for _, h := range k.source.hooks() {
			cfg.Metrics.called(h.name, k.phase, admission.Create, 0, 200, true)
			cfg.Metrics.rejected(h.name, k.phase, admission.Create, "no_error", 403)
			cfg.Metrics.failedOpen(h.name, k.phase)
			cfg.Conditions.Excluded(conditions.Owner{Name: h.name, Kind: "webhook", Phase: k.phase}, admission.Create)
		}
	}
	want := func(names ...string) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			var got []string
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "name" {
						got = append(got, l.GetValue())
					}
				}
			}
			if slices.Sort(got); !slices.Equal(got, names) {
				t.Errorf("%s has the webhooks %q, want %q", f.GetName(), got, names)
			}
		}
		if len(names) > 0 && len(families) != 5 {
			t.Errorf("%d families", len(families))
		}
	}
	configure("first", "a.example", "b.example")
	configure("second", "b.example", "c.example")
	want("a.example", "b.example", "c.example")
	configure("first", "b.example", "d.example")
	want("b.example", "c.example", "d.example")
	configure("first")
	want("b.example", "c.example")
	configure("second")
	want()
}

// TestMetricsOfChosenCodes: a webhook cannot add series with the codes that it chooses.
func TestMetricsOfChosenCodes(t *testing.T) {
	m := NewMetrics()
	for i := range 1_000 {
		for _, code := range []int{-1 - i, 600 + i} {
			m.called("a.example", "validating", admission.Create, 0, code, true)
			m.rejected("a.example", "validating", admission.Create, "no_error", code)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.calls, m.rejections)
	families, err := registry.Gather()
	if err != nil || len(families) != 2 {
		t.Fatal(families, err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); n != 2 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

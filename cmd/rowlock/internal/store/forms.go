package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/budget"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

// encoder encodes values as a server would write them now; custom resources follow their stored definitions.
type encoder struct {
	catalogue  *kinds.Catalogue
	objects    *objects.Store
	unreadable []string // definitions that cannot be read, and why
}

// anyRelease is the codec for objects stored by servers of any release: it drops no field, and accepts empty
// fields as each writes them.
var anyRelease = codecjson.New(codecjson.Settings{})

// newEncoder reads the definitions of a database.
func newEncoder(ctx context.Context, d sqlstore.Driver, keys sqlstore.Sealer) (*encoder, error) {
	f, all := &encoder{}, builtin.Config{}.All()
	req := sqlstore.ScanRequest{Resource: definitions.Storage, Limit: 100}
	for {
		rows, err := d.Scan(ctx, req)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			resources, err := resourcesOf(ctx, keys, &rows[i])
			if err != nil {
				f.unreadable = append(f.unreadable, fmt.Sprintf("%s: %v", rows[i].Key.Name, err))
			}
			all = append(all, resources...)
		}
		if len(rows) < req.Limit {
			break
		}
		req.After = rows[len(rows)-1].Key
	}
	f.catalogue = kinds.NewCatalogue(all)
	f.objects = objects.New(f.catalogue, nil, cache.NewWith(f.catalogue, cache.Config{JSON: anyRelease}))
	f.objects.Bound(budget.MostSizes()) // the servers' limit is unknown here
	return f, nil
}

// resourcesOf returns the resources of a definition; none if it is not established.
func resourcesOf(ctx context.Context, keys sqlstore.Sealer, row *sqlstore.Row) ([]*kinds.Resource, error) {
	if row.Damaged != nil {
		return nil, row.Damaged
	}
	plain, _, err := keys.Open(ctx, row.Key, row.Value)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(plain, crd); err != nil {
		return nil, err
	}
	if !custom.Established(crd) {
		return nil, nil
	}
	var converter custom.Converter
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		converter = unavailableWebhook{}
	}
	definition, err := custom.New(crd, math.MaxInt64, converter, release.Newest)
	if err != nil {
		return nil, err
	}
	return definition.Resources, nil
}

// unavailableWebhook refuses conversions that only a server can request.
type unavailableWebhook struct{}

// Convert implements custom.Converter.
func (unavailableWebhook) Convert(_ context.Context, to schema.GroupVersion, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("it is of %s, and a webhook converts it to %s: create a StorageVersionMigration on a running server", objs[0].GetAPIVersion(), to)
}

// encode returns the value of a decrypted row as a server would write it now. Objects of unknown resources keep their
// version.
func (f *encoder) encode(ctx context.Context, row *sqlstore.Row) ([]byte, error) {
	r := f.catalogue.ByStorage(row.Key.Resource)
	if r == nil {
		return integrity.Read(f.objects.Codec(), nil, row)
	}
	value, err := f.objects.Form(ctx, r, row)
	if err == nil {
		err = f.objects.CheckSize(value, nil)
	}
	return value, err
}

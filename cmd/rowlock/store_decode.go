package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// decoder judges stored values by the catalogue of resources. What is not in it
// is a custom resource.
type decoder struct{ catalogue *kinds.Catalogue }

func newDecoder() decoder { return decoder{kinds.NewCatalogue(builtin.Resources())} }

// row says what is wrong with a value.
func (d decoder) row(row sqlstore.Row) error {
	if strings.HasPrefix(row.Key.Resource, "~") {
		return decodeClaim(row.Value)
	}
	var codec codecjson.Codec
	gvk, err := codec.Kind(row.Value)
	if err != nil {
		return fmt.Errorf("its value does not decode: %w", err)
	}
	var obj kinds.Object = &unstructured.Unstructured{}
	if res := d.catalogue.ByStorage(row.Key.Resource); res != nil && res.New != nil {
		if gvk != res.Storage.GVK {
			return fmt.Errorf("its value is a %q of %q, not a %q of %q", gvk.Kind, gvk.GroupVersion(), res.Storage.GVK.Kind, res.Storage.GVK.GroupVersion())
		}
		obj = res.New()
	} else if _, group, _ := strings.Cut(row.Key.Resource, "."); gvk.Kind == "" || gvk.Version == "" || gvk.Group != group {
		return fmt.Errorf("its value is a %q of %q, not of group %q", gvk.Kind, gvk.GroupVersion(), group)
	}
	if _, err := codec.Decode(row.Value, obj, codecs.Ignore); err != nil {
		return fmt.Errorf("its value does not decode: %w", err)
	}
	if obj.GetName() != row.Key.Name || obj.GetNamespace() != row.Key.Namespace {
		return fmt.Errorf("its value is of the object %q in namespace %q", obj.GetName(), obj.GetNamespace())
	}
	if obj.GetUID() == "" {
		return errors.New("its value has no UID")
	}
	return nil
}

// decodeClaim judges a row by which an address or a port is taken.
func decodeClaim(value []byte) error {
	var claim struct {
		Owner string `json:"owner"`
	}
	if err := json.Unmarshal(value, &claim); err != nil {
		return fmt.Errorf("its value does not decode: %w", err)
	}
	if claim.Owner == "" {
		return errors.New("its value names no owner")
	}
	return nil
}

package documents

import (
	"fmt"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/schema"
)

// convert makes documents of version 3 of one of version 2, for the versions that
// APIServices leave to the server, with their hashes.
func convert(s *schema.Swagger, services []*apiregistrationv1.APIService, now func() time.Time) (map[string]string, map[string]*schema.Converted, error) {
	index, docs := map[string]string{}, map[string]*schema.Converted{}
	for _, one := range services {
		gv := one.Spec.Group + "/" + one.Spec.Version
		doc, err := s.Convert(gv, now)
		if err != nil {
			return nil, nil, fmt.Errorf("converting the part of /openapi/v2 for %s: %w", gv, err)
		}
		index["apis/"+gv], docs["apis/"+gv] = doc.Hash(), doc
	}
	return index, docs, nil
}

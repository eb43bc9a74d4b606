// Package services holds the admission plugin DenyServiceExternalIPs.
//
// It promises: no service takes an external address that it did not have before.
package services

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// DenyExternalIPs refuses new external addresses.
type DenyExternalIPs struct{ admission.CreatesAndUpdates }

var _ admission.Validator = DenyExternalIPs{}

// Name implements admission.Plugin.
func (DenyExternalIPs) Name() string { return "DenyServiceExternalIPs" }

// Validate implements admission.Validator.
func (DenyExternalIPs) Validate(_ context.Context, a *admission.Attributes) error {
	s, ok := a.Object.(*corev1.Service)
	if !ok || !a.Is("", "services", "") {
		return nil
	}
	var had []string
	if old, ok := a.Old.(*corev1.Service); ok {
		had = old.Spec.ExternalIPs
	}
	known := rules.In(had)
	for _, ip := range s.Spec.ExternalIPs {
		if !known.Has(ip) {
			return a.Forbid(errors.New("Use of external IPs is denied by admission control"))
		}
	}
	return nil
}

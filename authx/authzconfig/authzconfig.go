// Package authzconfig reads the authorization configuration file, makes the chain of
// authorizers that it describes, and follows its changes.
//
// It promises: a file takes effect whole or not at all; while a changed file is invalid
// the last good one stays; authorizers other than webhooks stay as they were at the start.
package authzconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/authx/configfile"
	"github.com/rowlock/rowlock/authx/webhook"
)

// The types of authorizers.
const (
	TypeABAC        = "ABAC"
	TypeAlwaysAllow = "AlwaysAllow"
	TypeAlwaysDeny  = "AlwaysDeny"
	TypeNode        = "Node"
	TypeRBAC        = "RBAC"
	TypeWebhook     = "Webhook"
)

// Types are all of them, in the order in which errors list them.
var Types = []string{TypeABAC, TypeAlwaysAllow, TypeAlwaysDeny, TypeNode, TypeRBAC, TypeWebhook}

// Configuration is an AuthorizationConfiguration of apiserver.config.k8s.io.
type Configuration struct {
	APIVersion  string       `json:"apiVersion,omitempty"`
	Kind        string       `json:"kind,omitempty"`
	Authorizers []Authorizer `json:"authorizers"`
}

// Authorizer is an element of the chain. One that is not a webhook is named NameOf its type.
type Authorizer struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Webhook *Webhook `json:"webhook,omitempty"`
}

// Webhook configures the service, the requests that it decides, and the result without an answer.
type Webhook struct {
	AuthorizedTTL                            metav1.Duration  `json:"authorizedTTL"`
	CacheAuthorizedRequests                  Cache            `json:"cacheAuthorizedRequests"`
	UnauthorizedTTL                          metav1.Duration  `json:"unauthorizedTTL"`
	CacheUnauthorizedRequests                Cache            `json:"cacheUnauthorizedRequests"`
	Timeout                                  metav1.Duration  `json:"timeout"`
	SubjectAccessReviewVersion               string           `json:"subjectAccessReviewVersion"`
	MatchConditionSubjectAccessReviewVersion string           `json:"matchConditionSubjectAccessReviewVersion"`
	FailurePolicy                            string           `json:"failurePolicy"`
	ConnectionInfo                           ConnectionInfo   `json:"connectionInfo"`
	MatchConditions                          []MatchCondition `json:"matchConditions"`

	conditions webhook.Conditions // compiled
}

// Cache sets whether answers are cached: they are unless a file disables it.
type Cache struct{ set, off bool }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Cache) UnmarshalJSON(text []byte) error {
	on := true // null has no effect
	err := json.Unmarshal(text, &on)
	*c = Cache{set: true, off: !on}
	return err
}

// MarshalJSON implements json.Marshaler.
func (c Cache) MarshalJSON() ([]byte, error) { return json.Marshal(!c.off) }

// ConnectionInfo locates the kubeconfig of a webhook.
type ConnectionInfo struct {
	Type           string  `json:"type"`
	KubeConfigFile *string `json:"kubeConfigFile"`
}

// MatchCondition is an expression that must be true for the webhook to be called.
type MatchCondition struct {
	Expression string `json:"expression"`
}

// The values of WebhookConfiguration's enumerations.
const (
	FailurePolicyNoOpinion = "NoOpinion"
	FailurePolicyDeny      = "Deny"
	ConnectionKubeConfig   = "KubeConfigFile"
	ConnectionInCluster    = "InClusterConfig"
)

// NameOf returns the name that an authorizer of a built-in type must have.
func NameOf(kind string) string { return strings.ToLower(kind) }

// Has reports whether the configuration has an authorizer of a type.
func (c *Configuration) Has(kind string) bool {
	return slices.ContainsFunc(c.Authorizers, func(a Authorizer) bool { return a.Type == kind })
}

// Kubeconfigs returns the kubeconfig files of the webhooks.
func (c *Configuration) Kubeconfigs() []string {
	var paths []string
	for _, a := range c.Authorizers {
		if a.Webhook != nil && a.Webhook.ConnectionInfo.KubeConfigFile != nil {
			paths = append(paths, *a.Webhook.ConnectionInfo.KubeConfigFile)
		}
	}
	return paths
}

// Rules restrict the content of a file.
type Rules struct {
	Selectors bool // expressions may look at the selectors of a request
	Caches    bool // webhooks may state whether their answers are cached
}

// Parse reads and validates the text of a file, and compiles its expressions.
func (r Rules) Parse(data []byte) (*Configuration, error) {
	c := &Configuration{}
	if len(data) > 0 {
		err := configfile.Decode(data, "AuthorizationConfiguration", []string{"v1", "v1beta1", "v1alpha1"}, c)
		if err == nil && !r.Caches {
			err = c.refuseCaches()
		}
		if err != nil {
			return nil, fmt.Errorf("failed to load AuthorizationConfiguration from file: %w", err)
		}
	}
	c.setDefaults()
	if errs := c.validate(r.Selectors); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return c, c.checkNames()
}

// refuseCaches refuses fields that a server does not know.
func (c *Configuration) refuseCaches() error {
	var unknown []string
	for i, a := range c.Authorizers {
		if a.Webhook == nil {
			continue
		}
		if a.Webhook.CacheAuthorizedRequests.set {
			unknown = append(unknown, fmt.Sprintf("unknown field %q", fmt.Sprintf("authorizers[%d].webhook.cacheAuthorizedRequests", i)))
		}
		if a.Webhook.CacheUnauthorizedRequests.set {
			unknown = append(unknown, fmt.Sprintf("unknown field %q", fmt.Sprintf("authorizers[%d].webhook.cacheUnauthorizedRequests", i)))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return errors.New("strict decoding error: " + strings.Join(unknown, ", "))
}

// checkNames holds the names of built-in authorizers to their types.
func (c *Configuration) checkNames() error {
	var errs []error
	for _, a := range c.Authorizers {
		if want := NameOf(a.Type); a.Type != TypeWebhook && a.Name != want {
			errs = append(errs, fmt.Errorf("expected name %s for authorizer %s instead of %s", want, a.Type, a.Name))
		}
	}
	return utilerrors.NewAggregate(errs)
}

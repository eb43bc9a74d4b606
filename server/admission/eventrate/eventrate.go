// Package eventrate holds the admission plugin EventRateLimit.
//
// Each limit has token buckets, one for the whole server or one for each namespace, user, or source and
// object; an Event is written only if each bucket that it falls under has a token for it.
package eventrate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/admission"
)

// Limit is one limit. Buckets fill at QPS tokens a second up to Burst.
type Limit struct {
	Type  string `json:"type"`
	QPS   int32  `json:"qps"`
	Burst int32  `json:"burst"`
	// CacheSize limits the buckets in memory; the least recently used are dropped. Default
	// 4096.
	CacheSize int32 `json:"cacheSize"`
}

// keys maps an Event to its bucket of a limit.
var keys = map[string]func(a *admission.Attributes) string{
	"Server":    func(*admission.Attributes) string { return "" },
	"Namespace": func(a *admission.Attributes) string { return a.Namespace },
	"User": func(a *admission.Attributes) string {
		if a.User == nil {
			return ""
		}
		return a.User.Name
	},
	"SourceAndObject": func(a *admission.Attributes) string {
		e, ok := a.Object.(*corev1.Event)
		if !ok {
			return ""
		}
		o := e.InvolvedObject
		return strings.Join([]string{e.Source.Component, e.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion}, "")
	},
}

var types = []string{"Server", "Namespace", "User", "SourceAndObject"}

// ParseLimits reads the plugin's part of an admission configuration file. There has
// to be a limit.
func ParseLimits(data []byte) ([]Limit, error) {
	var c struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Limits     []Limit `json:"limits"`
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, err
	}
	if data != nil && (c.APIVersion != "eventratelimit.admission.k8s.io/v1alpha1" || c.Kind != "Configuration") {
		return nil, fmt.Errorf("%s %s is not Configuration of eventratelimit.admission.k8s.io/v1alpha1", c.APIVersion, c.Kind)
	}
	path := field.NewPath("limits")
	var errs field.ErrorList
	if len(c.Limits) == 0 {
		errs = append(errs, field.Invalid(path, "[]", "must not be empty"))
	}
	for i, l := range c.Limits {
		at := path.Index(i)
		if keys[l.Type] == nil {
			errs = append(errs, field.NotSupported(at.Child("type"), l.Type, types))
		}
		if l.Burst <= 0 {
			errs = append(errs, field.Invalid(at.Child("burst"), l.Burst, "must be positive"))
		}
		if l.QPS <= 0 {
			errs = append(errs, field.Invalid(at.Child("qps"), l.QPS, "must be positive"))
		}
		if l.Type != "Server" && l.CacheSize < 0 {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must not be negative"))
		}
	}
	return c.Limits, errs.ToAggregate()
}

// Plugin refuses Events above the configured rates.
type Plugin struct {
	admission.CreatesAndUpdates
	now    func() time.Time
	limits []*limit
}

var _ admission.Validator = (*Plugin)(nil)

// New makes the plugin of limits that ParseLimits returned.
func New(limits []Limit, now func() time.Time) *Plugin {
	p := &Plugin{now: now}
	for _, l := range limits {
		size := int(l.CacheSize)
		switch {
		case l.Type == "Server":
			size = 1
		case size == 0:
			size = 4096
		}
		p.limits = append(p.limits, &limit{Limit: l, buckets: lru.New(size)})
	}
	return p
}

// Name implements admission.Plugin.
func (*Plugin) Name() string { return "EventRateLimit" }

// Validate implements admission.Validator.
func (p *Plugin) Validate(_ context.Context, a *admission.Attributes) error {
	if !a.Is("", "events", a.Subresource) || a.DryRun {
		return nil
	}
	var errs []error
	for _, l := range p.limits {
		if key := keys[l.Type](a); !l.take(key, p.now()) {
			errs = append(errs, fmt.Errorf("limit reached on type %v for key %v", l.Type, key))
		}
	}
	if len(errs) > 0 {
		return apierrors.NewTooManyRequestsError(utilerrors.NewAggregate(errs).Error())
	}
	return nil
}

type limit struct {
	Limit
	mu      sync.Mutex
	buckets *lru.Cache // of *bucket, by the hash of a key: clients choose its length
}

type bucket struct {
	tokens float64
	at     time.Time
}

// take takes a token from a bucket, if it has one.
func (l *limit) take(key string, now time.Time) bool {
	hash := sha256.Sum256([]byte(key))
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &bucket{tokens: float64(l.Burst), at: now}
	if have, ok := l.buckets.Get(hash); ok {
		b = have.(*bucket)
	} else {
		l.buckets.Add(hash, b)
	}
	b.tokens = min(float64(l.Burst), b.tokens+now.Sub(b.at).Seconds()*float64(l.QPS))
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

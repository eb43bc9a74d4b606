package encryption

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/configfile"
)

// configuration is the content of a file.
type configuration struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Resources  []rule `json:"resources"`
}

// rule defines how some resources are encrypted.
type rule struct {
	Resources []string   `json:"resources"`
	Providers []provider `json:"providers"`
}

// provider is one of its fields.
type provider struct {
	AESGCM    *keyList   `json:"aesgcm,omitempty"`
	AESCBC    *keyList   `json:"aescbc,omitempty"`
	Secretbox *keyList   `json:"secretbox,omitempty"`
	Identity  *struct{}  `json:"identity,omitempty"`
	KMS       *kmsConfig `json:"kms,omitempty"`
}

type keyList struct {
	Keys []namedKey `json:"keys"`
}

// namedKey is a secret in base64.
type namedKey struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// Nothing that prints a configuration shows a secret.
func (k namedKey) String() string   { return fmt.Sprintf("key %q", k.Name) }
func (k namedKey) GoString() string { return k.String() }

type kmsConfig struct {
	APIVersion string           `json:"apiVersion"`
	Name       string           `json:"name"`
	CacheSize  *int32           `json:"cachesize,omitempty"`
	Endpoint   string           `json:"endpoint"`
	Timeout    *metav1.Duration `json:"timeout,omitempty"`
}

// known are the kinds of a configuration; the second comes from an old mistake in a manual, and such files
// exist.
var known = []metav1.TypeMeta{
	{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"},
	{APIVersion: "v1", Kind: "EncryptionConfig"},
}

// parse reads a file's text. reload: it will be read again when it changes, which takes
// stricter rules.
func parse(path string, text []byte, reload bool) (*configuration, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("error while loading file: encryption provider configuration file %q is empty", path)
	}
	var c configuration
	if err := configfile.DecodeAs(text, known, &c); err != nil {
		return nil, fmt.Errorf("error decoding encryption provider configuration file %q: %s", path, unquoted(err))
	}
	for i := range c.Resources {
		for j := range c.Resources[i].Providers {
			c.Resources[i].Providers[j].KMS.setDefaults()
		}
	}
	return &c, validate(&c, reload).ToAggregate()
}

// secretLike matches text that may be a secret of 16 bytes and more.
var secretLike = regexp.MustCompile(`[A-Za-z0-9+/]{22,}=*`)

// unquoted returns the text of a decoder's error without possible secrets: if a space or a quote is missing, a
// decoder takes a secret for the name of a field, and quotes it.
func unquoted(err error) string {
	return secretLike.ReplaceAllStringFunc(err.Error(), func(word string) string {
		if strings.HasPrefix(word, known[0].Kind) {
			return word
		}
		return "REDACTED"
	})
}

func (k *kmsConfig) setDefaults() {
	if k == nil {
		return
	}
	if k.Timeout == nil {
		k.Timeout = &metav1.Duration{Duration: defaultTimeout}
	}
	k.APIVersion = cmp.Or(k.APIVersion, "v1")
	if k.CacheSize == nil && k.APIVersion == "v1" {
		k.CacheSize = new(int32(defaultCacheSize))
	}
}

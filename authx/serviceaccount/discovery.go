package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Paths of the documents by which others verify tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
)

// Discoverable reports whether others can find the documents of an issuer: it and the
// URI of the keys must be https URLs.
func Discoverable(issuer, jwksURI string) error {
	for _, text := range []string{issuer, jwksURI} {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no URL: %w", text, err)
		case u.Scheme != "https":
			return fmt.Errorf("%q: the scheme must be https", text)
		case u.RawQuery != "" || u.Fragment != "":
			return fmt.Errorf("%q: there must be no query and no fragment", text)
		}
	}
	return nil
}

// Published are the documents by which others verify tokens: the discovery document and
// the keys. Set and ServeHTTP may be called at once.
type Published struct {
	issuer, jwksURI string
	texts           atomic.Pointer[texts]
}

// texts are the documents as they are at a time.
type texts struct {
	byPath map[string][]byte
	until  time.Time
}

// Publish makes the documents; jwksURI is where KeysPath is reached from outside. There is
// nothing in them before Set is called.
func Publish(issuer, jwksURI string) *Published {
	return &Published{issuer: issuer, jwksURI: jwksURI}
}

// Set publishes these keys. until is how long they are good at least: zero where they stay.
func (p *Published) Set(keys []Key, until time.Time) error {
	algs := make([]string, 0, 1)
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range keys {
		algs = append(algs, string(k.Alg))
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Public, KeyID: k.ID, Algorithm: string(k.Alg), Use: "sig"})
	}
	slices.Sort(algs)
	configuration, err := json.Marshal(struct {
		Issuer    string   `json:"issuer"`
		JWKS      string   `json:"jwks_uri"`
		Responses []string `json:"response_types_supported"`
		Subjects  []string `json:"subject_types_supported"`
		Algs      []string `json:"id_token_signing_alg_values_supported"`
	}{p.issuer, p.jwksURI, []string{"id_token"}, []string{"public"}, slices.Compact(algs)})
	if err != nil {
		return err
	}
	published, err := json.Marshal(set)
	if err != nil {
		return err
	}
	p.texts.Store(&texts{map[string][]byte{ConfigurationPath: configuration, KeysPath: published}, until})
	return nil
}

// Documents returns the documents by path.
func (p *Published) Documents() map[string]Document {
	return map[string]Document{
		ConfigurationPath: {"application/json", ConfigurationPath, p},
		KeysPath:          {"application/jwk-set+json", KeysPath, p},
	}
}

// Document answers every request with the bytes of one document.
type Document struct {
	MediaType string
	path      string
	of        *Published
}

// keep is the time for which clients may cache a document.
const keep = time.Hour

func (d Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	now := d.of.texts.Load()
	if now == nil {
		http.Error(w, "no keys are known", http.StatusServiceUnavailable)
		return
	}
	age := keep
	if !now.until.IsZero() {
		age = max(0, time.Until(now.until))
	}
	w.Header().Set("Content-Type", d.MediaType)
	w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(age/time.Second)))
	_, _ = w.Write(now.byPath[d.path])
}

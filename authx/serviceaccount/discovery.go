package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// Paths of the documents by which others verify tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
)

// Discoverable says whether others can find the documents of an issuer: it and the
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

// Documents are the discovery document and the keys, by path. jwksURI is where KeysPath
// is reached from outside.
func Documents(issuer, jwksURI string, keys []Key) (map[string]Document, error) {
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
	}{issuer, jwksURI, []string{"id_token"}, []string{"public"}, slices.Compact(algs)})
	if err != nil {
		return nil, err
	}
	published, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	return map[string]Document{
		ConfigurationPath: {"application/json", configuration},
		KeysPath:          {"application/jwk-set+json", published},
	}, nil
}

// Document answers with fixed bytes of one media type, whatever is asked.
type Document struct {
	MediaType string
	body      []byte
}

func (d Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", d.MediaType)
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(d.body)
}

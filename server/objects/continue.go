package objects

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
)

// A continue token is a revision and the position after the last key of a page, relative to the collection:
// "name\x00", or "namespace/name\x00" if the collection spans namespaces. Revision -1 continues in the newest
// state.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const (
	tokenVersion = "meta.k8s.io/v1"
	newestState  = -1
)

var errContinueKey = errors.New("continue key is not valid")

// encodeContinue makes the token that continues after an item.
func encodeContinue(revision int64, spansNamespaces bool, at cache.Position) string {
	start := at.Name
	if spansNamespaces {
		start = at.Namespace + "/" + start
	}
	b, err := json.Marshal(continueToken{tokenVersion, revision, start})
	if err != nil {
		return "" // strings and numbers cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeContinue reads the revision and the position from a token.
func decodeContinue(token, namespace string, spansNamespaces bool) (int64, cache.Position, error) {
	t, err := parseContinue(token)
	if err != nil {
		return 0, cache.Position{}, apierrors.NewBadRequest("invalid continue token: " + err.Error())
	}
	if !spansNamespaces {
		return t.Revision, cache.Position{Namespace: namespace, Name: t.Start}, nil
	}
	ns, name, _ := strings.Cut(t.Start, "/")
	return t.Revision, cache.Position{Namespace: ns, Name: name}, nil
}

func parseContinue(token string) (t continueToken, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return t, fmt.Errorf("%w: %v", errContinueKey, err)
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("%w: %v", errContinueKey, err)
	}
	switch {
	case t.Version != tokenVersion:
		return t, fmt.Errorf("%w: server does not recognize this encoded version %s", errContinueKey, t.Version)
	case t.Revision == 0:
		return t, fmt.Errorf("%w: incorrect encoded start resourceVersion (version %s)", errContinueKey, tokenVersion)
	case t.Start == "":
		return t, fmt.Errorf("%w: encoded start key empty (version %s)", errContinueKey, tokenVersion)
	}
	key := t.Start
	if !strings.HasPrefix(key, "/") {
		key = "/" + key
	}
	if path.Clean(key) != key {
		return t, fmt.Errorf("%w: %s", errContinueKey, t.Start)
	}
	t.Start = key[1:]
	return t, nil
}

package history

import (
	"encoding/base64"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// token is the position of a list: the writes of one object below a revision. The request that continues the
// list is authorized for that object like the first.
type token struct {
	Version   string `json:"v"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Before    int64  `json:"before"`
}

const tokenVersion = "history.rowlock.dev/v1"

func (o *object) tokenAt(before int64) token {
	return token{tokenVersion, o.place.Resource.GroupResource().String(), o.place.Namespace, o.place.Name, before}
}

// token returns the token of the next page.
func (p *page) token() string {
	b, err := json.Marshal(p.tokenAt(p.continueFrom))
	if err != nil {
		return "" // strings and numbers cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// continueBelow returns the revision below which the list of a token continues; the token must be for the same object.
func (o *object) continueBelow(text string) (before int64, err error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.Before <= 0 || t != o.tokenAt(t.Before) {
		return 0, apierrors.NewBadRequest("continue: this is no token of a list of this object's revisions")
	}
	return t.Before, nil
}

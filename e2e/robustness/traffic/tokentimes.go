//go:build unix

package traffic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	tokenLeeway = time.Minute     // by how much the clocks of servers may differ: tokens are valid for so much longer
	tokenTime   = 4 * time.Second // for how long a token is valid
	tokenSlack  = time.Second     // beyond the leeway
)

// tokenTimes uses tokens whose time ends, or has ended, or has not begun, and tokens that are nearly right.
func (c *client) tokenTimes(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	made := []int{http.StatusCreated, http.StatusConflict}
	name := fmt.Sprintf("%s-r%d", c.name, c.round)
	for _, object := range [][2]string{{redAccounts, fmt.Sprintf(`{"metadata":{"name":%q}}`, name)}, {rolesPath + "roles", named(name, "", "", "configmaps", `"get"`)},
		{rolesPath + "rolebindings", boundTo(name, "Role", name, userSubject("system:serviceaccount:red:"+name))}} {
		if _, _, ok := c.must(ctx, admin, http.MethodPost, object[0], object[1], made...); !ok {
			return
		}
	}
	issued, ok := c.request(ctx, admin, redAccounts+"/"+name+"/token", `{"spec":{"expirationSeconds":600}}`)
	if !ok {
		return
	}
	m, err := c.newMint(issued)
	if err != nil {
		c.rec.Stuck(fmt.Sprintf("%s: reading the token %.40s...: %v", c.name, issued, err))
		return
	}
	c.rec.Add(&history.Right{Subject: name, Granted: true, Call: c.rec.Now(), Return: c.rec.Now(), Outcome: history.OK})
	for ctx.Err() == nil {
		c.expire(ctx, m, name)
	}
}

// expire uses a token until its time is over, and others.
func (c *client) expire(ctx context.Context, m *mint, name string) {
	now := time.Now()
	last := now.Add(tokenTime - tokenLeeway).Truncate(time.Second)
	over := last.Add(tokenLeeway + tokenSlack)
	short := m.token(func(claims map[string]any) {
		claims["exp"], claims["iat"], claims["nbf"] = last.Unix(), last.Add(-time.Hour).Unix(), last.Add(-time.Hour).Unix()
	})
	ended := []string{
		m.token(func(claims map[string]any) { claims["exp"] = now.Add(-tokenLeeway - tokenTime).Unix() }),
		m.token(func(claims map[string]any) { claims["nbf"] = now.Add(time.Hour).Unix() }),
		m.token(func(claims map[string]any) { claims["iat"] = now.Add(time.Hour).Unix() }),
	}
	nevers := []string{
		m.token(func(claims map[string]any) { claims["iss"] = "https://elsewhere" }),
		m.token(func(claims map[string]any) { claims["aud"] = []string{"elsewhere"} }),
		m.token(func(claims map[string]any) { account(claims)["uid"] = "00000000-0000-4000-8000-000000000000" }),
		m.token(func(claims map[string]any) { delete(claims, "kubernetes.io") }),
		m.unsigned(),
	}
	valid := m.token(func(claims map[string]any) { claims["exp"] = now.Add(10 * time.Minute).Unix() })
	for time.Since(over) < afterwards && ctx.Err() == nil {
		by := *c
		a := &history.Access{Subject: name, Server: c.next(), What: "read", Timed: true}
		switch n := c.rand.IntN(6); {
		case n == 0:
			by.token = valid
		case n == 1:
			by.token, a.What = nevers[c.rand.IntN(len(nevers))], "never"
		case n == 2:
			by.token, a.What = ended[c.rand.IntN(len(ended))], history.Ended
		case time.Now().After(over):
			by.token, a.What = short, history.Ended
		default:
			by.token = short
		}
		a.Call = c.rec.Now()
		code, _, err := by.send(ctx, a.Server, http.MethodGet, redMaps+"/"+name, "", "")
		if a.Return, a.Code = c.rec.Now(), code; code == http.StatusNotFound { // who may read it learns that
			a.Code = http.StatusOK
		}
		// The time of a token may end while a server has the request.
		if err == nil && (by.token != short || a.What == history.Ended || time.Now().Before(last.Add(tokenLeeway))) {
			c.rec.Add(a)
		}
		c.rest(ctx)
	}
}

// mint makes tokens with the key of the servers, as they would.
type mint struct {
	signer jose.Signer
	claims []byte // of a token that a server made
}

// newMint makes a mint of tokens like one that a server made.
func (c *client) newMint(issued string) (*mint, error) {
	key, err := c.c.Key(cluster.TokenKey)
	if err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(issued, ".")
	body, _, _ := strings.Cut(rest, ".")
	var header struct{ Alg, Kid string }
	text, err := base64.RawURLEncoding.DecodeString(head)
	if err == nil {
		err = json.Unmarshal(text, &header)
	}
	if err != nil {
		return nil, err
	}
	m := &mint{}
	if m.claims, err = base64.RawURLEncoding.DecodeString(body); err != nil {
		return nil, err
	}
	m.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(header.Alg), Key: jose.JSONWebKey{Key: key, KeyID: header.Kid}}, nil)
	return m, err
}

// changed returns the claims after a change.
func (m *mint) changed(change func(claims map[string]any)) []byte {
	claims := map[string]any{}
	if err := json.Unmarshal(m.claims, &claims); err != nil {
		panic(err) // a server has signed them
	}
	change(claims)
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return text
}

// token returns a token with other claims.
func (m *mint) token(change func(claims map[string]any)) string {
	signed, err := m.signer.Sign(m.changed(change))
	if err != nil {
		panic(err) // the key is of the algorithm
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// unsigned returns a token that claims to need no signature.
func (m *mint) unsigned() string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(m.claims) + "."
}

// account returns the claims of the account.
func account(claims map[string]any) map[string]any {
	bound, _ := claims["kubernetes.io"].(map[string]any)
	found, _ := bound["serviceaccount"].(map[string]any)
	if found == nil {
		found = map[string]any{}
	}
	return found
}

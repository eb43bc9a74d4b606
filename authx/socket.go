package authx

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// SocketProtocol begins a WebSocket subprotocol that is a token: browsers can set no
// other header of a handshake.
const SocketProtocol = "base64url.bearer.authorization.k8s.io."

const socketHeader = "Sec-Websocket-Protocol"

// Socket hands the token of a WebSocket handshake to Tokens, with audiences as in
// Bearer. A client names another subprotocol too, which can be answered with; once
// the token has been accepted, those alone are left.
type Socket struct {
	Tokens    TokenAuthenticator
	Audiences []string
}

// Authenticate implements Authenticator.
func (s Socket) Authenticate(r *http.Request) (*Authenticated, bool, error) {
	if len(r.Header[socketHeader]) == 0 || !upgrades(r.Header) {
		return nil, false, nil
	}
	token, others, err := socketToken(r.Header[socketHeader])
	if err != nil {
		return nil, true, err
	}
	if token == "" {
		return nil, false, nil
	}
	if len(others) == 0 {
		return nil, true, errors.New("missing additional subprotocol")
	}
	who, mine, err := s.Tokens.AuthenticateToken(r.Context(), token, s.Audiences)
	if err != nil {
		return nil, true, join(ErrBadToken, err)
	}
	if !mine {
		return nil, true, ErrBadToken
	}
	r.Header.Set(socketHeader, strings.Join(others, ","))
	return who, true, nil
}

// upgrades reports whether a request is a WebSocket handshake.
func upgrades(h http.Header) bool {
	return strings.EqualFold(h.Get("Upgrade"), "websocket") && strings.Contains(strings.ToLower(h.Get("Connection")), "upgrade")
}

// socketToken takes the token out of the subprotocols.
func socketToken(headers []string) (token string, others []string, err error) {
	seen := false
	for _, header := range headers {
		for protocol := range strings.SplitSeq(header, ",") {
			protocol = strings.TrimSpace(protocol)
			encoded, ok := strings.CutPrefix(protocol, SocketProtocol)
			if !ok {
				others = append(others, protocol)
				continue
			}
			if seen {
				return "", nil, errors.New("multiple base64.bearer.authorization tokens specified")
			}
			seen = true
			data, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil || !utf8.Valid(data) {
				return "", nil, errors.New("invalid base64.bearer.authorization token encoding")
			}
			token = string(data)
		}
	}
	return token, others, nil
}

//go:build unix

package traffic

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	sealedNamespace = "sealed"
	sealedPath      = "/api/v1/namespaces/" + sealedNamespace + "/secrets"
	// sealedMark begins the content of each Secret of the namespace. No file may contain it in plain text. Its length is a multiple of
	// three, so that the base64 form of the content begins with that of the mark.
	sealedMark  = "the-sealed-rowlock-text:"
	someSecrets = 3 // that a client writes
)

// sealedText returns the content of a Secret in base64.
func sealedText(id string) string { return base64.StdEncoding.EncodeToString([]byte(sealedMark + id)) }

// sealed is a Secret that one client writes.
type sealed struct {
	key     history.Key
	version uint64   // 0: there is none
	text    string   // of that version
	open    []string // texts that unanswered writes may have stored
	sent    []string // all texts that were written
	past    []sealedPast
}

// sealedPast is an earlier version of a Secret.
type sealedPast struct {
	at      time.Duration // when its write was acknowledged
	version uint64
	text    string
}

// secrets writes Secrets, and reads their present and past versions at all servers.
func (c *client) secrets(ctx context.Context) {
	var all []*sealed
	for i := range someSecrets {
		all = append(all, &sealed{key: history.Key{Resource: "secrets", Namespace: sealedNamespace, Name: fmt.Sprintf("%s-r%d-%d", c.name, c.round, i)}})
	}
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + sealedNamespace + `"}}`}) {
		return
	}
	for ctx.Err() == nil && !c.rec.Lost() {
		s := all[c.rand.IntN(len(all))]
		switch n := c.rand.IntN(10); {
		case s.version == 0 || n < 3 || len(s.open) > 0:
			c.seal(ctx, s)
		case n == 3:
			c.sealAgain(ctx, s)
		case n < 6:
			c.unsealPast(ctx, s)
		default:
			c.unseal(ctx, s)
		}
		c.rest(ctx)
		c.rest(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	for _, s := range all {
		_, _, _ = c.send(end, c.any(), http.MethodDelete, sealedPath+"/"+s.key.Name, "", "") // it may stay
	}
}

// body returns the Secret with a text, and with the resource version that the write expects.
func (s *sealed) body(text string) string {
	version := ""
	if s.version != 0 {
		version = fmt.Sprintf(`,"resourceVersion":"%d"`, s.version)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q%s},"data":{"text":%q}}`, s.key.Name, version, text)
}

// seal writes a Secret. After an unanswered write the Secret may have either content, until a conflict or another write shows which.
func (c *client) seal(ctx context.Context, s *sealed) {
	text := sealedText(c.rec.ID())
	s.sent = append(s.sent, text)
	server, call := c.any(), c.rec.Now()
	method, path := http.MethodPut, sealedPath+"/"+s.key.Name
	if s.version == 0 {
		method, path = http.MethodPost, sealedPath
	}
	code, answer, err := c.send(ctx, server, method, path, plainJSON, s.body(text))
	if c.unread(s, server, call, "a write", code, answer, err) {
		return
	}
	switch outcome(code, answer, err) {
	case history.OK:
		s.version, s.text, s.open = versionOf(answer), text, nil
		if s.past = append(s.past, sealedPast{c.rec.Now(), s.version, text}); len(s.past) > 20 {
			s.past = s.past[1:]
		}
		if c.rand.IntN(3) == 0 {
			if stored, err := c.c.Stored(ctx, s.key, s.version); err == nil && stored != nil {
				c.closed(server, call, s.key, stored, text)
			}
		}
	case history.Unknown:
		s.open = append(s.open, text)
	case history.Exists, history.Conflict: // an unanswered write was stored
		c.learn(ctx, s)
	}
}

// learn reads a Secret that may have one of several contents.
func (c *client) learn(ctx context.Context, s *sealed) {
	server, call := c.any(), c.rec.Now()
	code, answer, err := c.send(ctx, server, http.MethodGet, sealedPath+"/"+s.key.Name, "", "")
	if err != nil || code != http.StatusOK {
		return
	}
	text := textOf(answer)
	if c.shows(s, server, call, "a read", text, append(s.open, s.text)) {
		s.version, s.text, s.open = versionOf(answer), text, nil
	}
}

func textOf(answer []byte) string {
	var o struct{ Data struct{ Text string } }
	if json.Unmarshal(answer, &o) != nil {
		return ""
	}
	return o.Data.Text
}

// shows records whether a Secret was read with one of the contents that it may have.
func (c *client) shows(s *sealed, server int, call time.Duration, what, text string, wanted []string) bool {
	check := &history.Check{Property: "encryption", What: fmt.Sprintf("%s of %s", what, s.key), Server: server, Call: call, Return: c.rec.Now(), Wrong: "it shows another content than was written"}
	for _, w := range wanted {
		if w != "" && w == text {
			check.Wrong = ""
		}
	}
	if check.Wrong != "" {
		for _, text := range append(wanted, "but it shows", text) {
			plain, _ := base64.StdEncoding.DecodeString(text) // text that is not base64 is shown as empty
			check.Seen = append(check.Seen, fmt.Sprintf("%s %q", text, plain))
		}
	}
	c.rec.Add(check)
	return check.Wrong == ""
}

// unread reports and records that a server cannot decrypt a Secret, although it has the key.
func (c *client) unread(s *sealed, server int, call time.Duration, what string, code int, answer []byte, err error) bool {
	undecrypted := func(text string) bool { return strings.Contains(string(answer), text) }
	if err != nil || code != http.StatusInternalServerError || !slices.ContainsFunc([]string{"decrypt", "transform", "no matching prefix", "failed to read one or more"}, undecrypted) {
		return false
	}
	c.rec.Add(&history.Check{Property: "encryption", What: fmt.Sprintf("%s of %s", what, s.key), Server: server, Call: call, Return: c.rec.Now(), Wrong: "a server cannot decrypt a Secret", Seen: []string{fmt.Sprintf("%.300s", answer)}})
	return true
}

// sealAgain writes a Secret without a change. The server encrypts it again if its key is no longer the first one.
func (c *client) sealAgain(ctx context.Context, s *sealed) {
	server, call := c.any(), c.rec.Now()
	code, answer, err := c.send(ctx, server, http.MethodPut, sealedPath+"/"+s.key.Name, plainJSON, s.body(s.text))
	switch {
	case c.unread(s, server, call, "a write", code, answer, err):
	case outcome(code, answer, err) == history.OK:
		s.version = versionOf(answer)
	case outcome(code, answer, err) == history.Unknown:
		s.open = append(s.open, s.text)
	}
}

// unseal reads a Secret by a get or a list.
func (c *client) unseal(ctx context.Context, s *sealed) {
	server, call := c.any(), c.rec.Now()
	path, what := sealedPath+"/"+s.key.Name, "a read"
	list := c.rand.IntN(3) == 0
	if list {
		path, what = sealedPath+"?fieldSelector=metadata.name%3D"+s.key.Name, "a list"
	}
	code, answer, err := c.send(ctx, server, http.MethodGet, path, "", "")
	if c.unread(s, server, call, what, code, answer, err) || err != nil || code != http.StatusOK {
		return
	}
	text := textOf(answer)
	if list {
		text = textOfList(answer)
	}
	c.shows(s, server, call, what, text, append(s.open, s.text))
}

func textOfList(answer []byte) string {
	var l struct {
		Items []struct{ Data struct{ Text string } }
	}
	if json.Unmarshal(answer, &l) != nil || len(l.Items) != 1 {
		return ""
	}
	return l.Items[0].Data.Text
}

// unsealPast reads a past version of a Secret by an exact list, or what was written since by a watch.
func (c *client) unsealPast(ctx context.Context, s *sealed) {
	if len(s.past) == 0 {
		return
	}
	then := s.past[c.rand.IntN(len(s.past))]
	if c.rec.Now()-then.at > history.Retention {
		return
	}
	what, query := "a list of an old version", fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact", then.version)
	watch := c.rand.IntN(3) == 0
	if watch {
		what, query = "a watch", fmt.Sprintf("resourceVersion=%d&watch=1&timeoutSeconds=1", then.version)
	}
	server, call := c.any(), c.rec.Now()
	code, answer, err := c.send(ctx, server, http.MethodGet, fmt.Sprintf("%s?fieldSelector=metadata.name%%3D%s&%s", sealedPath, s.key.Name, query), "", "")
	if c.unread(s, server, call, what, code, answer, err) || err != nil || code != http.StatusOK { // such as 410
		return
	}
	if !watch {
		c.shows(s, server, call, what, textOfList(answer), []string{then.text})
		return
	}
	for line := range bytes.Lines(answer) {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if json.Unmarshal(line, &e) != nil || e.Type != "ADDED" && e.Type != "MODIFIED" {
			continue
		}
		c.shows(s, server, call, what, textOf(e.Object), s.sent)
	}
}

//go:build unix

package traffic

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Heavy objects are ConfigMaps whose values are at least a MiB long, of which SQLite stores such in pieces. Their content follows from the
// ID of the write that set it, so that each answer shows by itself whether it is one of the writes.
const (
	heavyNamespace = "heavy"
	heavyPath      = "/api/v1/namespaces/" + heavyNamespace + "/configmaps"
	heavyLeast     = 800_000   // bytes, a third less than their base64 form
	heavyMost      = 1_000_000 // a ConfigMap has at most a MiB of data
	heavyRests     = 6         // between requests, which cost more than others
	someHeavy      = 2
	pastWrites     = 12 // that a client remembers
)

// heavy is an object that one client writes. Each write names the version that it replaces, so that one without an answer has no effect any
// more once another one was done.
type heavy struct {
	name    string
	version uint64 // 0: there is none
	id      string // of the write of that version
	open    []string
	past    []heavyPast // of the same name
}

// heavyPast is a version.
type heavyPast struct {
	at      time.Duration // when the client learned of it
	version uint64
	id      string
}

// heavyContent returns the content that a write sets. That of one in three is short.
func heavyContent(id string) string {
	var seed [32]byte
	copy(seed[:], id)
	source := rand.NewChaCha8(seed)
	r, n := rand.New(source), 100
	if r.IntN(3) > 0 {
		n = heavyLeast + r.IntN(heavyMost-heavyLeast)
	}
	b := make([]byte, n)
	_, _ = source.Read(b) // it never fails
	return base64.StdEncoding.EncodeToString(b)
}

// heavyAnswer is a heavy object in an answer.
type heavyAnswer struct {
	Metadata struct{ Name, ResourceVersion string }
	Data     struct {
		ID string `json:"id"`
	}
	BinaryData struct{ Content string }
}

// wrote returns the ID of the write that an object shows. It is an error if that write would have set another content.
func (a *heavyAnswer) wrote() (id string, err error) {
	if want := heavyContent(a.Data.ID); a.BinaryData.Content != want {
		at := 0
		for at < min(len(want), len(a.BinaryData.Content)) && want[at] == a.BinaryData.Content[at] {
			at++
		}
		return a.Data.ID, fmt.Errorf("version %s of %s has %d characters, and the write %q set %d; the first %d are the same", a.Metadata.ResourceVersion, a.Metadata.Name, len(a.BinaryData.Content), a.Data.ID, len(want), at)
	}
	return a.Data.ID, nil
}

// heavies writes heavy objects, makes them short and long again, deletes them, and reads them as they are and as they were, at all servers.
func (c *client) heavies(ctx context.Context) {
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + heavyNamespace + `"}}`}) {
		return
	}
	all := make([]*heavy, someHeavy)
	for i := range all {
		all[i] = &heavy{name: "heavy-" + c.rec.ID()}
	}
	for ctx.Err() == nil && !c.rec.Lost() {
		h := all[c.rand.IntN(len(all))]
		switch n := c.rand.IntN(12); {
		case h.version == 0 || len(h.open) > 0 || n < 4:
			c.writeHeavy(ctx, h)
		case n == 4:
			c.raceHeavy(ctx, h)
		case n < 7:
			server, call := c.next(), c.rec.Now()
			code, answer, err := c.send(ctx, server, http.MethodGet, heavyPath+"/"+h.name, "", "")
			c.readHeavy(server, call, "a read", code, answer, err, h.id)
		case n < 10:
			c.readHeavyPast(ctx, h)
		case n == 10:
			c.watchHeavy(ctx, h)
		default:
			c.listHeavy(ctx, all)
		}
		for range heavyRests {
			c.rest(ctx)
		}
	}
	for _, h := range all {
		c.tidy(ctx, heavyPath+"/"+h.name)
	}
}

// body returns the object, or a patch, that a write sends.
func (h *heavy) body(id, by string) string {
	version := ""
	if h.version != 0 {
		version = fmt.Sprintf(`,"resourceVersion":"%d"`, h.version)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"by":%q}%s},"data":{"id":%q},"binaryData":{"content":%q}}`, h.name, by, version, id, heavyContent(id))
}

// label is that of the objects of this client.
func (c *client) label() string { return fmt.Sprintf("%s-r%d", c.name, c.round) }

// writeHeavy writes an object, or deletes it.
func (c *client) writeHeavy(ctx context.Context, h *heavy) {
	id, method, path, contentType := c.rec.ID(), http.MethodPost, heavyPath, plainJSON
	body := ""
	if h.version != 0 {
		method, path = http.MethodPut, heavyPath+"/"+h.name
		switch c.rand.IntN(6) {
		case 0:
			id, method, body = "", http.MethodDelete, fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, h.version)
		case 1, 2:
			method, contentType = http.MethodPatch, mergePatch
		}
	}
	if body == "" {
		body = h.body(id, c.label())
	}
	server, call := c.any(), c.rec.Now()
	code, answer, err := c.send(ctx, server, method, path, contentType, body)
	c.wroteHeavy(ctx, h, server, call, id, code, answer, err)
}

// wroteHeavy notes what became of a write.
func (c *client) wroteHeavy(ctx context.Context, h *heavy, server int, call time.Duration, id string, code int, answer []byte, err error) {
	switch o := outcome(code, answer, err); {
	case o == history.OK && id == "":
		*h = heavy{name: "heavy-" + c.rec.ID()} // a write without an answer finds nothing under the other name
	case o == history.OK:
		c.readHeavy(server, call, "the answer to a write", code, answer, err, id)
		h.becomes(c.rec.Now(), versionOf(answer), id)
	case o == history.Exists || o == history.Conflict || o == history.NotFound:
		c.learnHeavy(ctx, h)
	case o == history.Unknown && !c.unreadable(server, call, "a write", code, answer):
		h.open = append(h.open, id)
	case history.Faulty(code) || code == http.StatusRequestEntityTooLarge:
		c.rec.Add(&history.Check{Property: "writes", What: "a write of " + h.name, Server: server, Call: call, Return: c.rec.Now(), Wrong: fmt.Sprintf("it breaks no rule, and is refused: %d %s", code, message(answer))})
	}
}

// becomes notes the version that is there now.
func (h *heavy) becomes(at time.Duration, version uint64, id string) {
	h.version, h.id, h.open = version, id, nil
	if h.past = append(h.past, heavyPast{at, version, id}); len(h.past) > pastWrites {
		h.past = h.past[1:]
	}
}

// learnHeavy reads which of the writes without an answer was done.
func (c *client) learnHeavy(ctx context.Context, h *heavy) {
	server, call := c.any(), c.rec.Now()
	code, answer, err := c.send(ctx, server, http.MethodGet, heavyPath+"/"+h.name, "", "")
	if !c.readHeavy(server, call, "a read after a conflict", code, answer, err, append(h.open, h.id)...) {
		return
	}
	var a heavyAnswer
	switch {
	case code == http.StatusNotFound:
		*h = heavy{name: "heavy-" + c.rec.ID()}
	case json.Unmarshal(answer, &a) == nil && a.Metadata.ResourceVersion != strconv.FormatUint(h.version, 10):
		h.becomes(c.rec.Now(), versionOf(answer), a.Data.ID)
	}
}

// raceHeavy sends two writes that replace the same version at the same time.
func (c *client) raceHeavy(ctx context.Context, h *heavy) {
	call, tries := c.rec.Now(), make([]heavyTry, 2)
	var wg sync.WaitGroup
	for i := range tries {
		t := &tries[i]
		t.id, t.server = c.rec.ID(), c.any()
		t.body = h.body(t.id, c.label())
		wg.Go(func() {
			t.code, t.answer, t.err = c.send(ctx, t.server, http.MethodPatch, heavyPath+"/"+h.name, mergePatch, t.body)
		})
	}
	wg.Wait()
	check := &history.Check{Property: "writes", What: "two writes that replace the same version of " + h.name, Server: tries[0].server, Call: call, Return: c.rec.Now()}
	sortTries(tries)
	if tries[1].outcome() == history.OK {
		check.Wrong = "both are done"
	}
	c.rec.Add(check)
	for _, t := range tries {
		if c.wroteHeavy(ctx, h, t.server, call, t.id, t.code, t.answer, t.err); t.outcome() == history.OK {
			return // the other one has no effect
		}
	}
}

// heavyTry is one of several writes that replace the same version, with its answer.
type heavyTry struct {
	id, body string
	server   int
	code     int
	answer   []byte
	err      error
}

func (t *heavyTry) outcome() history.Outcome { return outcome(t.code, t.answer, t.err) }

// sortTries puts a write that was done first, and then those without an answer: one of these may be the reason for the conflict of the next.
func sortTries(tries []heavyTry) {
	rank := map[history.Outcome]int{history.OK: -2, history.Unknown: -1}
	slices.SortStableFunc(tries, func(a, b heavyTry) int { return rank[a.outcome()] - rank[b.outcome()] })
}

// unreadable notes that a server cannot read what it has stored.
func (c *client) unreadable(server int, call time.Duration, what string, code int, answer []byte) bool {
	if code != http.StatusInternalServerError || !contains(answer, "cannot be read") && !contains(answer, "damaged") {
		return false
	}
	c.rec.Add(&history.Check{Property: "reads", What: what + " in the namespace " + heavyNamespace, Server: server, Call: call, Return: c.rec.Now(), Wrong: "a server cannot read a stored object: " + message(answer)})
	return true
}

// readHeavy records whether an answer is an object as one of some writes made it; "": there is none. It returns false if it is not, or if
// there is no answer.
func (c *client) readHeavy(server int, call time.Duration, what string, code int, answer []byte, err error, wanted ...string) bool {
	if err != nil || c.unreadable(server, call, what, code, answer) || code != http.StatusNotFound && outcome(code, answer, err) != history.OK {
		return false
	}
	check := &history.Check{Property: "reads", What: what + " in the namespace " + heavyNamespace, Server: server, Call: call, Return: c.rec.Now()}
	var a heavyAnswer
	id := ""
	if code != http.StatusNotFound {
		if err = json.Unmarshal(answer, &a); err == nil {
			id, err = a.wrote()
		}
	}
	switch {
	case err != nil:
		check.Wrong = err.Error()
	case !slices.Contains(wanted, id):
		check.Wrong = fmt.Sprintf("it shows the write %q, and was last written by one of %q", id, wanted)
	}
	c.rec.Add(check)
	return check.Wrong == ""
}

// readHeavyPast reads an object as it was, as a list or as a revision.
func (c *client) readHeavyPast(ctx context.Context, h *heavy) {
	then := h.past[c.rand.IntN(len(h.past))]
	if c.rec.Now()-then.at > history.Retention {
		return
	}
	server, call := c.any(), c.rec.Now()
	if c.rand.IntN(3) == 0 {
		path := fmt.Sprintf("%s/namespaces/%s/revisions/configmaps:%s:%d", pastGroup, heavyNamespace, h.name, then.version)
		code, answer, err := c.send(ctx, server, http.MethodGet, path, "", "")
		var r struct{ Content json.RawMessage }
		if err == nil && code == http.StatusOK && json.Unmarshal(answer, &r) == nil {
			answer = r.Content
		}
		if code != http.StatusNotFound { // such is a revision that the database has lost
			c.readHeavy(server, call, "a revision", code, answer, err, then.id)
		}
		return
	}
	code, answer, err := c.send(ctx, server, http.MethodGet, fmt.Sprintf("%s?fieldSelector=metadata.name%%3D%s&resourceVersion=%d&resourceVersionMatch=Exact", heavyPath, h.name, then.version), "", "")
	var l struct{ Items []json.RawMessage }
	if err == nil && code == http.StatusOK && json.Unmarshal(answer, &l) == nil {
		if code = http.StatusNotFound; len(l.Items) > 0 {
			code, answer = http.StatusOK, l.Items[0]
		}
	}
	c.readHeavy(server, call, "a list of an old version", code, answer, err, then.id)
}

// watchHeavy has a watch show the writes since a version: in their order, up to some.
func (c *client) watchHeavy(ctx context.Context, h *heavy) {
	from := max(0, len(h.past)-1-c.rand.IntN(4))
	if c.rec.Now()-h.past[from].at > history.LogRetention {
		return
	}
	check := &history.Check{Property: "watch-reliable", What: fmt.Sprintf("a watch of %s from version %d", h.name, h.past[from].version), Server: c.any(), Call: c.rec.Now()}
	code, answer, _ := c.send(ctx, check.Server, http.MethodGet, fmt.Sprintf("%s?fieldSelector=metadata.name%%3D%s&resourceVersion=%d&watch=1&timeoutSeconds=1", heavyPath, h.name, h.past[from].version), "", "")
	if code != http.StatusOK { // such as 410
		return
	}
	next := h.past[from+1:]
	for line := range bytes.Lines(answer) {
		var e struct {
			Type   string
			Object heavyAnswer
		}
		if json.Unmarshal(line, &e) != nil || e.Type == "ERROR" || e.Type == "BOOKMARK" { // such is a line that is not whole
			break
		}
		id, err := e.Object.wrote()
		switch {
		case err != nil:
			check.Wrong = err.Error()
		case len(next) == 0 || e.Type != "MODIFIED" || id != next[0].id:
			check.Wrong = fmt.Sprintf("it shows %s of the write %q, and must show the writes %v", e.Type, id, next)
		default:
			next = next[1:]
		}
		if check.Wrong != "" {
			break
		}
	}
	check.Return = c.rec.Now()
	c.rec.Add(check)
}

// listHeavy lists the objects of this client, in one page or in several.
func (c *client) listHeavy(ctx context.Context, all []*heavy) {
	check := &history.Check{Property: "list", What: "the list of the namespace " + heavyNamespace, Server: c.next(), Call: c.rec.Now()}
	limit, more := c.rand.IntN(2), ""
	found := map[string]string{}
	for server := check.Server; ; server = c.any() {
		code, answer, err := c.send(ctx, server, http.MethodGet, fmt.Sprintf("%s?labelSelector=by%%3D%s&limit=%d&continue=%s", heavyPath, c.label(), limit, url.QueryEscape(more)), "", "")
		var l struct {
			Metadata struct{ Continue string }
			Items    []heavyAnswer
		}
		if err != nil || c.unreadable(server, check.Call, "a list", code, answer) || code != http.StatusOK || json.Unmarshal(answer, &l) != nil {
			return
		}
		for i := range l.Items {
			id, err := l.Items[i].wrote()
			if err != nil {
				check.Wrong = err.Error()
			}
			found[l.Items[i].Metadata.Name] = id
		}
		if more = l.Metadata.Continue; more == "" {
			break
		}
	}
	var differ []string
	for _, h := range all {
		if id := found[h.name]; id != h.id && !slices.Contains(h.open, id) {
			differ = append(differ, fmt.Sprintf("it shows the write %q of %s, which was last written by %q", id, h.name, h.id))
		}
	}
	if check.Wrong == "" {
		check.Wrong = strings.Join(differ, ", ")
	}
	check.Return = c.rec.Now()
	c.rec.Add(check)
}

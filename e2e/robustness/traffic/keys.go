//go:build unix

package traffic

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// providers lists the providers of the new keys, in turn.
var providers = []string{"secretbox", "aescbc", "aesgcm"}

// Bounds of encryption at rest.
const (
	encryptedTime = judge.RightsTime // for a server to load a changed file, which it checks every second
	usedFor       = 3 * time.Second  // how long servers use a new key before the next step
	usedEvery     = 500 * time.Millisecond
)

// rotation is a client that rotates the encryption keys.
type rotation struct {
	*client
	ring  keyring
	turn  int
	reads []loaded // of each server
}

// loaded counts how often a process of a server has loaded its file.
type loaded struct {
	pid   int
	times int
}

// rotates rotates the encryption keys of the servers as operators do, while servers run, stop and start: it adds a new key as the second,
// and then makes it the first. Every second time it encrypts everything with the new key by a command, and removes the old keys. Between
// the steps it writes Secrets, and looks for their content in the table and in files.
func (c *client) rotates(ctx context.Context) {
	ring, err := c.present(ctx)
	if err == nil {
		err = c.keep(ring)
	}
	if err != nil {
		c.rec.Stuck("the keys of encryption: " + err.Error())
		return
	}
	r := &rotation{client: c, ring: ring, reads: make([]loaded, c.c.Len())}
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + sealedNamespace + `"}}`}) {
		return
	}
	for ; err == nil && ctx.Err() == nil && !c.rec.Lost(); r.turn++ {
		err = r.rotate(ctx)
	}
	if err == nil && c.rec.Lost() {
		err = r.restore(ctx)
	}
	if err != nil {
		c.rec.Stuck(fmt.Sprintf("%s: %v", c.name, err))
	}
}

// restore gives the servers all keys again: the database may have lost the values that a rewrite had encrypted.
func (r *rotation) restore(ctx context.Context) error {
	all, err := readRing(filepath.Join(r.c.Dir(), allKeys))
	if err != nil {
		return err
	}
	now, err := readRing(r.c.Dir())
	if err != nil {
		return err
	}
	r.ring = now.with(all...)
	return r.distribute(ctx, r.ring, true)
}

// rotate adds one key, and makes it the first. An error means that this program could not work, not that a server is wrong.
func (r *rotation) rotate(ctx context.Context) error {
	for range r.c.Len() { // so that what a former turn wrote is past, and packed by the time of the rewrite
		r.storedBy(ctx, r.next())
	}
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(r.rand.IntN(256))
	}
	old := r.ring[0]
	next := key{providers[(r.round+r.turn)%len(providers)], fmt.Sprintf("r%d-%d", r.round, r.turn), base64.StdEncoding.EncodeToString(secret)}
	second := append(keyring{old, next}, r.ring[1:]...)
	if err := r.keep(second); err != nil {
		return err
	}
	templates := (r.round+r.turn)%2 == 0
	if err := r.distribute(ctx, second, !templates); err != nil || !r.load(ctx, second, !templates) {
		return err
	}
	first := append(keyring{next, old}, r.ring[1:]...)
	if err := r.distribute(ctx, first, templates); err != nil {
		return err
	}
	for server := range r.c.Len() {
		if !r.takes(ctx, server, next) {
			return nil
		}
	}
	r.ring = first
	r.use(ctx, usedFor)
	r.turnOn(ctx, next, templates)
	r.look()
	r.cached(ctx)
	if rewritten := r.rewrite(ctx, next, first, templates); rewritten && !r.rec.Lost() {
		r.use(ctx, 2*usedFor) // so that a standby receives the last commits
		if r.rec.Lost() || ctx.Err() != nil {
			return nil
		}
		r.ring = keyring{next}
		return r.distribute(ctx, r.ring, templates)
	}
	return nil
}

// distribute writes the file of each server, one after the other.
func (r *rotation) distribute(ctx context.Context, ring keyring, templates bool) error {
	if err := ring.save(r.c.Dir()); err != nil {
		return err
	}
	for n := range r.c.Len() {
		server := (n + r.turn) % r.c.Len()
		r.reads[server] = r.count(ctx, server)
		if err := ring.write(r.file(server), templates); err != nil {
			return err
		}
		r.rest(ctx)
		r.rest(ctx)
	}
	return nil
}

func (r *rotation) file(server int) string {
	return filepath.Join(r.c.Folder(server), encryptionFile)
}

var reloads = regexp.MustCompile(`(?m)^apiserver_encryption_config_controller_automatic_reloads_total\{.*status="success".*\} ([0-9]+)$`)

// count returns how often a server has loaded its file since its process began.
func (r *rotation) count(ctx context.Context, server int) loaded {
	l := loaded{pid: r.c.Pid(server), times: -1}
	code, answer, err := r.send(ctx, server, http.MethodGet, "/metrics", "", "")
	if err != nil || code != http.StatusOK {
		return l
	}
	l.times = 0
	if m := reloads.FindSubmatch(answer); m != nil {
		l.times, _ = strconv.Atoi(string(m[1])) // digits
	}
	return l
}

// load waits until every server has loaded its file. A process that has started in the meantime may have read the former file, so load
// writes its file again, with more empty lines.
func (r *rotation) load(ctx context.Context, ring keyring, templates bool) bool {
	for server := range r.c.Len() {
		due := &history.Due{Property: "encryption", What: fmt.Sprintf("the changed file of keys of server %d", server), Server: server, Alone: true, Within: encryptedTime, Cause: r.rec.Now()}
		for n := 1; due.Came == 0 && due.Until-due.Cause < 4*encryptedTime; n++ {
			if ctx.Err() != nil || r.rec.Lost() {
				return false
			}
			was := r.reads[server]
			now := r.count(ctx, server)
			switch {
			case now.times < 0:
			case now.pid != was.pid || was.times < 0:
				if err := ring.write(r.file(server), templates, n); err != nil {
					r.rec.Stuck(err.Error())
					return false
				}
				r.reads[server], due.Cause, due.Until = now, r.rec.Now(), 0
			default:
				if due.Until = r.rec.Now(); now.times > was.times {
					due.Came = due.Until
				}
			}
			sleep(ctx, 300*time.Millisecond)
		}
		if r.rec.Add(due); due.Came == 0 {
			return false
		}
	}
	return true
}

// takes writes Secrets at a server until the server encrypts them with a new key, and records how long that takes. From then on the server
// must always use that key.
func (r *rotation) takes(ctx context.Context, server int, next key) bool {
	due := &history.Due{Property: "encryption", What: fmt.Sprintf("a Secret that server %d encrypts with its first key, %s,", server, next.inUse()), Server: server, Alone: true, Within: encryptedTime, Cause: r.rec.Now()}
	for again := 0; again < 3 && ctx.Err() == nil && !r.rec.Lost() && due.Until-due.Cause < 4*encryptedTime; sleep(ctx, 100*time.Millisecond) {
		call := r.rec.Now()
		stored := r.storedBy(ctx, server)
		if stored == nil {
			continue
		}
		taken := strings.HasPrefix(string(stored), next.head())
		if due.Came == 0 {
			if due.Until = r.rec.Now(); taken {
				due.Came = due.Until
			}
			continue
		}
		again++
		check := &history.Check{Property: "encryption", What: "the key of a Secret", Server: server, Call: call, Return: r.rec.Now()}
		if !taken {
			check.Wrong = fmt.Sprintf("a Secret is encrypted with another key than %s, which its server has used before: %.60q", next.inUse(), stored)
		}
		r.rec.Add(check)
	}
	if due.Until != 0 {
		r.rec.Add(due)
	}
	return due.Came != 0
}

// use writes Secrets for some time. They exist for the whole run, so that their packed history reaches below the floor, above which
// part of the same pack is kept.
func (r *rotation) use(ctx context.Context, long time.Duration) {
	for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; sleep(ctx, usedEvery) {
		r.storedBy(ctx, r.next())
	}
}

// storedBy writes a Secret at a server, and returns its value in the table; nil if that is unknown.
func (r *rotation) storedBy(ctx context.Context, server int) []byte {
	call, text := r.rec.Now(), sealedText(r.rec.ID())
	k := history.Key{Resource: "secrets", Namespace: sealedNamespace, Name: fmt.Sprintf("rotated-%d", server)}
	stored := r.put(ctx, server, k, sealedPath, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"data":{"text":%q}}`, k.Name, text))
	if stored != nil {
		r.closed(server, call, k, stored, text)
	}
	return stored
}

// put writes an object at a server, and returns its value in the table; nil if that is unknown.
func (r *rotation) put(ctx context.Context, server int, k history.Key, path, body string) []byte {
	code, answer, err := r.send(ctx, server, http.MethodPut, path+"/"+k.Name, plainJSON, body)
	if code == http.StatusNotFound && err == nil {
		code, answer, err = r.send(ctx, server, http.MethodPost, path, plainJSON, body)
	}
	version := versionOf(answer)
	if err != nil || code != http.StatusOK && code != http.StatusCreated || version == 0 {
		return nil
	}
	stored, err := r.c.Stored(ctx, k, version)
	if err != nil {
		return nil
	}
	return stored
}

// turnOn writes an unchanged object after its encryption was turned on or off, and checks that the server stores it in the new form.
func (r *rotation) turnOn(ctx context.Context, next key, on bool) {
	server, call := r.any(), r.rec.Now()
	k := history.Key{Resource: "podtemplates", Namespace: sealedNamespace, Name: "turned"}
	stored := r.put(ctx, server, k, "/api/v1/namespaces/"+sealedNamespace+"/podtemplates", `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"turned"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`)
	if stored == nil {
		return
	}
	check := &history.Check{Property: "encryption", What: "a write that changes nothing but the encryption of " + k.String(), Server: server, Call: call, Return: r.rec.Now()}
	switch head := string(stored[:min(len(stored), 60)]); {
	case on && !strings.HasPrefix(head, next.head()):
		check.Wrong = fmt.Sprintf("the object is not encrypted with the key %s: %q", next.inUse(), head)
	case !on && !strings.HasPrefix(head, "{"):
		check.Wrong = fmt.Sprintf("the object is still encrypted: %q", head)
	}
	r.rec.Add(check)
}

// closed checks that a value in the table is encrypted.
func (c *client) closed(server int, call time.Duration, k history.Key, stored []byte, text string) {
	check := &history.Check{Property: "encryption", What: "the row of " + k.String(), Server: server, Call: call, Return: c.rec.Now()}
	plain, _ := base64.StdEncoding.DecodeString(text) // sealedText has encoded it
	if !bytes.HasPrefix(stored, []byte("rowlock:enc:1:")) || bytes.Contains(stored, []byte(text)) || bytes.Contains(stored, plain) {
		check.Wrong = "a Secret stands in the table in the clear"
	}
	c.rec.Add(check)
}

// versionOf returns the resource version of the object in an answer; 0 if there is none.
func versionOf(answer []byte) uint64 {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(answer, &o) != nil {
		return 0
	}
	version, _ := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64) // "": 0
	return version
}

// look searches the files of the servers and of SQLite for the content of Secrets.
func (r *rotation) look() {
	check := &history.Check{Property: "encryption", What: "the files of the servers", Server: -1, Call: r.rec.Now()}
	file, err := r.c.FindText(sealedMark, base64.StdEncoding.EncodeToString([]byte(sealedMark)))
	if check.Return = r.rec.Now(); err != nil {
		return // a file may have been replaced while it was read
	}
	if file != "" {
		check.Wrong = "the content of a Secret stands in " + file
	}
	r.rec.Add(check)
}

// cached looks for Secrets in the cache files of the servers: their key is in the database, next to what the keys of the servers encrypt.
func (r *rotation) cached(ctx context.Context) {
	for server := range r.c.Len() {
		check := &history.Check{Property: "encryption", What: fmt.Sprintf("the cache file of server %d", server), Server: server, Call: r.rec.Now()}
		names, err := r.c.CachedResources(ctx, server)
		if check.Return = r.rec.Now(); err != nil || len(names) == 0 {
			continue // the file may have been replaced, or damaged by a fault
		}
		if slices.Contains(names, "secrets") {
			check.Wrong = "it has Secrets, and a key that the database has in the clear decrypts them"
		}
		r.rec.Add(check)
	}
}

// rewrite encrypts everything with the first key, every second turn, and reports whether it has.
func (r *rotation) rewrite(ctx context.Context, next key, ring keyring, templates bool) bool {
	if r.turn%2 == 1 { // values stay encrypted with the old keys, which the servers therefore keep
		return false
	}
	file := filepath.Join(r.c.Dir(), "rewrite.json")
	if err := ring.write(file, templates); err != nil {
		r.rec.Stuck(err.Error())
		return false
	}
	call := r.rec.Now()
	if _, err := r.c.Store(ctx, "rewrite", "--resource", "secrets", "--encryption-provider-config", file, "--store", r.c.StoreURL()); err != nil {
		return false // the database may be unavailable
	}
	names, err := r.c.KeysInUse(ctx, "secrets")
	if err != nil || r.rec.Lost() {
		return false
	}
	check := &history.Check{Property: "encryption", What: "what store rewrite leaves", Server: -1, Call: call, Return: r.rec.Now()}
	for _, name := range names {
		if name != next.inUse() {
			check.Wrong = fmt.Sprintf("after store rewrite with the key %s, a Secret or a past state of one is still encrypted with %s", next.inUse(), name)
		}
	}
	r.rec.Add(check)
	return check.Wrong == ""
}

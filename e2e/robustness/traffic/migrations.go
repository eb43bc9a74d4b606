//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

const (
	moves          = "moves." + changingGroup
	migrationGroup = "storagemigration.k8s.io"
	// moved is the number of objects: more than a migration reads at once.
	moved = 43
	// migratedTime bounds a migration, whose controller may have to take the lead from another server first.
	migratedTime = judge.ReturnTime
	// goneTime bounds how long after a migration a server may still store an object in the former version, by a write that was in progress.
	goneTime = 10 * time.Second
)

// moving is a client that changes the version in which its objects are stored.
type moving struct {
	*client
	version string   // of the API of migrations
	texts   []string // of the objects, as acknowledged
	open    []string // that an unanswered write may have stored instead
}

// migrates moves its objects between two storage versions: it changes the definition, rewrites all objects by a storage migration while it
// writes some of them, and removes the former version from status.storedVersions. Then no object may be stored in that version, and each
// must have what was written last.
func (c *client) migrates(ctx context.Context) {
	const version = `"served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"text":{"type":"string"}}}}`
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},"spec":{"group":%q,"scope":"Cluster","names":{"plural":"moves","kind":"Move","listKind":"MoveList","singular":"move"},
"versions":[{"name":"v1","storage":true,%[3]s},{"name":"v2","storage":false,%[3]s}]}}`, moves, changingGroup, version)
	if !c.made(ctx, c, [2]string{definitions, body}) {
		return
	}
	m := &moving{client: c, texts: make([]string, moved), open: make([]string, moved)}
	if !m.served(ctx) {
		return
	}
	for i := range moved {
		if !m.create(ctx, i) {
			return
		}
	}
	for turn := 0; ctx.Err() == nil && !c.rec.Lost() && m.migrate(ctx, turn); turn++ {
	}
}

// served finds the version in which the release serves migrations, and returns false for the releases that have none.
func (m *moving) served(ctx context.Context) bool {
	var group struct{ PreferredVersion struct{ Version string } }
	code, answer, ok := m.must(ctx, m.client, http.MethodGet, "/apis/"+migrationGroup, "", http.StatusOK, http.StatusNotFound)
	if !ok || code != http.StatusOK || json.Unmarshal(answer, &group) != nil {
		return false
	}
	m.version = group.PreferredVersion.Version
	return true
}

// migrations returns the path of StorageVersionMigrations.
func (m *moving) migrations() string {
	return "/apis/" + migrationGroup + "/" + m.version + "/storageversionmigrations"
}

func movesIn(version string) string { return "/apis/" + changingGroup + "/" + version + "/moves" }

func moveName(i int) string { return fmt.Sprintf("move-%d", i) }

// create creates an object, or reads the one that an earlier round has left.
func (m *moving) create(ctx context.Context, i int) bool {
	text := "text-" + m.rec.ID()
	code, answer, ok := m.must(ctx, m.client, http.MethodPost, movesIn("v1"), fmt.Sprintf(`{"apiVersion":%q,"kind":"Move","metadata":{"name":%q},"text":%q}`, changingGroup+"/v1", moveName(i), text), http.StatusCreated, http.StatusConflict)
	if ok && code == http.StatusConflict {
		_, answer, ok = m.must(ctx, m.client, http.MethodGet, movesIn("v1")+"/"+moveName(i), "", http.StatusOK)
	}
	m.texts[i] = moveText(answer)
	return ok
}

func moveText(answer []byte) string {
	var o struct{ Text string }
	if json.Unmarshal(answer, &o) != nil {
		return ""
	}
	return o.Text
}

// write changes some objects, but none with an unanswered write.
func (m *moving) write(ctx context.Context, n int) {
	for range n {
		i := m.rand.IntN(moved)
		if m.open[i] != "" {
			continue
		}
		text := "text-" + m.rec.ID()
		code, answer, err := m.send(ctx, m.any(), http.MethodPatch, movesIn([]string{"v1", "v2"}[m.rand.IntN(2)])+"/"+moveName(i), mergePatch, fmt.Sprintf(`{"text":%q}`, text))
		switch outcome(code, answer, err) {
		case history.OK:
			m.texts[i] = text
		case history.Unknown:
			m.open[i] = text
		}
		m.rest(ctx)
	}
}

// definitionVersion is one of the versions of a definition.
type definitionVersion struct {
	Name    string
	Storage bool
}

// definitionState is a part of a definition.
type definitionState struct {
	Spec   struct{ Versions []definitionVersion }
	Status struct{ StoredVersions []string }
}

// stored returns the version in which objects are stored.
func (d *definitionState) stored() string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// migrate moves the objects to the other version.
func (m *moving) migrate(ctx context.Context, turn int) bool {
	path := definitions + "/" + moves
	var was, now definitionState
	_, answer, ok := m.must(ctx, m.client, http.MethodGet, path, "", http.StatusOK)
	if !ok || json.Unmarshal(answer, &was) != nil {
		return false
	}
	from, to := was.stored(), "v1"
	if from == "v1" {
		to = "v2"
	}
	call := m.rec.Now()
	_, answer, ok = m.mustAs(ctx, m.client, jsonPatch, http.MethodPatch, path, fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/storage","value":%v},{"op":"replace","path":"/spec/versions/1/storage","value":%v}]`, to == "v1", to == "v2"), http.StatusOK)
	if !ok || json.Unmarshal(answer, &now) != nil {
		return false
	}
	check := &history.Check{Property: "migrations", What: "status.storedVersions of " + moves, Server: m.answered, Call: call, Return: m.rec.Now()}
	for _, v := range append(slices.Clone(was.Status.StoredVersions), to) {
		if !slices.Contains(now.Status.StoredVersions, v) {
			check.Wrong = fmt.Sprintf("objects may be stored in %s, and it is %v", v, now.Status.StoredVersions)
		}
	}
	m.rec.Add(check)
	if i := slices.IndexFunc(now.Spec.Versions, func(v definitionVersion) bool { return v.Name == from }); i >= 0 {
		m.rule(ctx, &rule{what: "a definition without a version in which objects are stored", method: http.MethodPatch, path: path + "?dryRun=All", contentType: jsonPatch, body: fmt.Sprintf(`[{"op":"remove","path":"/spec/versions/%d"}]`, i), code: http.StatusUnprocessableEntity})
	}
	m.write(ctx, 5)
	if !m.run(ctx, fmt.Sprintf("r%d-%d", m.round, turn), to) {
		return false
	}
	m.left(ctx, from)
	m.lost(ctx)
	_, _, ok = m.mustAs(ctx, m.client, mergePatch, http.MethodPatch, path+"/status", fmt.Sprintf(`{"status":{"storedVersions":[%q]}}`, to), http.StatusOK)
	return ok
}

// run starts a migration, and writes objects until it has ended.
func (m *moving) run(ctx context.Context, name, to string) bool {
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"StorageVersionMigration","metadata":{"name":%q},"spec":{"resource":{"group":%q,"version":%q,"resource":"moves"}}}`, migrationGroup, m.version, name, changingGroup, to)
	if !m.made(ctx, m.client, [2]string{m.migrations(), body}) {
		return false
	}
	due := &history.Due{Property: "migrations", What: "the end of the storage migration " + name, Server: m.answered, Within: migratedTime, Cause: m.rec.Now()}
	for ctx.Err() == nil && !m.rec.Lost() {
		m.write(ctx, 2)
		var migration struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		code, answer, err := m.send(ctx, m.any(), http.MethodGet, m.migrations()+"/"+name, "", "")
		if err != nil || code != http.StatusOK || json.Unmarshal(answer, &migration) != nil {
			m.rest(ctx)
			continue
		}
		due.Until = m.rec.Now()
		for _, c := range migration.Status.Conditions {
			switch {
			case c.Status != "True":
			case c.Type == "Succeeded":
				due.Came = due.Until
			case c.Type == "Failed":
				m.rec.Add(&history.Check{Property: "migrations", What: "the storage migration " + name, Server: -1, Call: due.Cause, Return: due.Until, Calm: true, Wrong: "it has failed: " + c.Message})
				return false
			}
		}
		if due.Came != 0 || due.Until-due.Cause > 6*migratedTime {
			break
		}
		m.rest(ctx)
	}
	if due.Until != 0 {
		m.rec.Add(due)
	}
	return due.Came != 0
}

// left waits until no object is stored in the former version.
func (m *moving) left(ctx context.Context, from string) {
	due := &history.Due{Property: "migrations", What: "the end of all objects of " + moves + " that are stored in " + from, Server: m.answered, Within: goneTime, Cause: m.rec.Now()}
	for ctx.Err() == nil && !m.rec.Lost() && due.Came == 0 && due.Until-due.Cause < 6*goneTime {
		versions, err := m.c.VersionsInUse(ctx, moves)
		if now := m.rec.Now(); err == nil {
			if due.Until = now; !slices.Contains(versions, changingGroup+"/"+from) {
				due.Came = now
			}
		}
		m.rest(ctx)
	}
	if due.Until != 0 {
		m.rec.Add(due)
	}
}

// lost reads all objects, and checks that each has what was written to it last.
func (m *moving) lost(ctx context.Context) {
	server, call := m.any(), m.rec.Now()
	code, answer, err := m.send(ctx, server, http.MethodGet, movesIn("v2"), "", "")
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Text     string
		}
	}
	if err != nil || code != http.StatusOK || json.Unmarshal(answer, &list) != nil {
		return
	}
	found := map[string]string{}
	for _, o := range list.Items {
		found[o.Metadata.Name] = o.Text
	}
	check := &history.Check{Property: "migrations", What: "the objects of " + moves + " after a migration", Server: server, Call: call, Return: m.rec.Now()}
	for i, want := range m.texts {
		got, there := found[moveName(i)]
		switch {
		case !there:
			check.Wrong = moveName(i) + " is lost"
		case got == want:
		case got == m.open[i]:
			m.texts[i], m.open[i] = got, ""
		default:
			check.Wrong = fmt.Sprintf("%s has the text %q, and not %q", moveName(i), got, want)
		}
	}
	m.rec.Add(check)
}

//go:build unix

package cluster

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/sqlstore"
)

// Table follows the table of revisions by SQL, without the servers, which have to agree with it.
type Table struct {
	c        *Cluster
	ours     func(history.Key) bool // whose values are read
	now      func() time.Duration
	mu       sync.Mutex
	current  *history.Segment
	last     uint64
	segments []*history.Segment
	floors   []history.Floor
	wrong    []string
	leads    []history.Lead
	holders  map[string]lead             // by the names of the leads, as of the last poll
	held     int                         // how many were read
	seen     map[history.Key]history.Row // live rows at last
}

// NewTable reads the live rows.
func NewTable(ctx context.Context, c *Cluster, ours func(history.Key) bool, now func() time.Duration) (*Table, error) {
	t := &Table{c: c, ours: ours, now: now}
	return t, t.Poll(ctx)
}

func (t *Table) open() (*sql.DB, error) { return openURL(t.c.StoreURL()) }

func openURL(url string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	}
	return sql.Open("pgx", url)
}

// Run polls until ctx ends.
func (t *Table) Run(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		_ = t.Poll(ctx) // the database may be away; the next poll reads what this one did not
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

const columns = `revision, resource, namespace, name, created_revision, deleted, value`

// Poll reads the rows that were written since the last poll.
func (t *Table) Poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	db, err := t.open()
	if err != nil {
		return err
	}
	defer db.Close()
	// One snapshot for the floor, the head and the rows between them.
	o := &sql.TxOptions{ReadOnly: true}
	if t.c.Postgres() != nil {
		o.Isolation = sql.LevelRepeatableRead
	}
	at := t.now()
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var head, floor uint64
	var packed string
	column, text := "value", "value"
	if t.c.Postgres() != nil {
		column, text = "number", "word"
	}
	if err := tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT (SELECT %[1]s FROM kv_meta WHERE key = 'revision'), (SELECT %[1]s FROM kv_meta WHERE key = 'floor'), coalesce((SELECT %[2]s FROM kv_meta WHERE key = 'past'), '')`, column, text)).Scan(&head, &floor, &packed); err != nil {
		return err
	}
	floors, err := sqlstore.ParseFloors(packed, int64(floor))
	if err != nil {
		return err
	}
	holders, clock, err := t.readLeads(ctx, tx)
	if err != nil {
		return err
	}
	read := t.now() // what the snapshot has came before this, maybe long after at
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lead(holders, clock, read)
	t.floors = append(t.floors, history.Floor{At: at, Revision: floor, Past: uint64(floors.Of(""))})
	if t.current == nil || floor > t.last {
		live, err := t.rows(ctx, tx, `SELECT `+columns+` FROM kv WHERE superseded_revision IS NULL AND NOT deleted`)
		if err != nil {
			return err
		}
		t.current = &history.Segment{From: head, To: head, Initial: live}
		t.segments = append(t.segments, t.current)
		t.seen = map[history.Key]history.Row{}
		for _, r := range live {
			t.seen[r.Key] = r
		}
		t.last = head
		return nil
	}
	if head < t.last && t.c.losing.Load() {
		return nil // no server has left revisions out yet
	}
	if head < t.last {
		t.wrong = append(t.wrong, fmt.Sprintf("the table's newest revision was %d and is %d", t.last, head))
		return nil
	}
	rows, err := t.rows(ctx, tx, fmt.Sprintf(`SELECT `+columns+` FROM kv WHERE revision > %d ORDER BY revision`, t.last))
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.At = read
		if r.Revision != t.last+1 {
			t.wrong = append(t.wrong, fmt.Sprintf("revision %d follows %d in the table, whose floor is %d", r.Revision, t.last, floor))
		}
		t.last = r.Revision
		if r.Deleted {
			delete(t.seen, r.Key)
		} else {
			t.seen[r.Key] = r
		}
		t.current.Rows = append(t.current.Rows, r)
	}
	if t.last != head {
		t.wrong = append(t.wrong, fmt.Sprintf("the table's newest revision is %d, and its newest row is %d", head, t.last))
		t.last = head
	}
	t.current.To = t.last
	return nil
}

// lead is the holder of a lead, and until when it has it unless it renews it.
type lead struct {
	holder string
	until  time.Time
}

// readLeads reads the leads of servers that share PostgreSQL, and its clock.
func (t *Table) readLeads(ctx context.Context, tx *sql.Tx) (found map[string]lead, clock time.Time, err error) {
	if t.c.Postgres() == nil {
		return nil, clock, nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT name, holder, until, clock_timestamp() FROM kv_lead`)
	if err != nil {
		return nil, clock, err
	}
	defer rows.Close()
	found = map[string]lead{}
	for rows.Next() {
		var name string
		var l lead
		if err := rows.Scan(&name, &l.holder, &l.until, &clock); err != nil {
			return nil, clock, err
		}
		found[name] = l
	}
	return found, clock, rows.Err()
}

// lead notes which leads have other holders than before.
func (t *Table) lead(holders map[string]lead, clock time.Time, at time.Duration) {
	for name, now := range holders {
		if was, ok := t.holders[name]; ok && was.holder != now.holder {
			t.leads = append(t.leads, history.Lead{At: at, Name: name, From: was.holder, To: now.holder, Left: was.until.Sub(clock)})
		}
	}
	t.holders = holders
	t.held += len(holders)
}

// Content reads the live rows of a database, and its newest revision.
func (c *Cluster) Content(ctx context.Context, url string, ours func(history.Key) bool) (revision uint64, live []history.Row, err error) {
	db, err := openURL(url)
	if err != nil {
		return 0, nil, err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, nil, err
	}
	defer tx.Rollback()
	column, order := "value", ""
	if strings.HasPrefix(url, "postgres") {
		column, order = "number", ` COLLATE "C"`
	}
	if err := tx.QueryRowContext(ctx, `SELECT `+column+` FROM kv_meta WHERE key = 'revision'`).Scan(&revision); err != nil {
		return 0, nil, err
	}
	live, err = (&Table{ours: ours}).rows(ctx, tx, fmt.Sprintf(`SELECT `+columns+` FROM kv WHERE superseded_revision IS NULL AND NOT deleted ORDER BY resource%[1]s, namespace%[1]s, name%[1]s`, order))
	return revision, live, err
}

// extraDatabase begins the names of databases that NewDatabase makes, and of their folders.
const extraDatabase = "extra"

// NewDatabase makes another empty database on the same disk, or in the same PostgreSQL server. The caller must call drop.
func (c *Cluster) NewDatabase(ctx context.Context) (url string, drop func() error, err error) {
	name := fmt.Sprintf("%s%d", extraDatabase, c.extra.Add(1))
	if pg := c.Postgres(); pg != nil {
		if url, err = pg.CreateDB(ctx, name); err != nil {
			return "", nil, err
		}
		return url, func() error {
			db, err := c.open()
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
			return err
		}, nil
	}
	dir := filepath.Join(filepath.Dir(strings.TrimPrefix(c.StoreURL(), "sqlite:")), name)
	return "sqlite:" + filepath.Join(dir, "rowlock.db"), func() error { return os.RemoveAll(dir) }, os.Mkdir(dir, 0o700)
}

func (t *Table) rows(ctx context.Context, tx *sql.Tx, query string) ([]history.Row, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []history.Row
	for rows.Next() {
		var r history.Row
		var value []byte
		if err := rows.Scan(&r.Revision, &r.Key.Resource, &r.Key.Namespace, &r.Key.Name, &r.Created, &r.Deleted, &value); err != nil {
			return nil, err
		}
		if t.ours(r.Key) {
			item, err := history.ParseObject(value, r.Revision)
			if err != nil {
				return nil, fmt.Errorf("revision %d: %w", r.Revision, err)
			}
			r.State, r.Stored = &item.State, item.Served
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// Cut ends a round, and gives it all that was read since the last cut, with the live rows read anew.
func (t *Table) Cut(ctx context.Context, round *history.Round) error {
	if err := t.Poll(ctx); err != nil {
		return err
	}
	db, err := t.open()
	if err != nil {
		return err
	}
	defer db.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// As of the last poll: rows that were superseded since are those that were live.
	live, err := t.rows(ctx, tx, fmt.Sprintf(`SELECT `+columns+` FROM kv WHERE revision <= %d AND (superseded_revision IS NULL OR superseded_revision > %d) AND NOT deleted`, t.last, t.last))
	if err != nil {
		return err
	}
	if live == nil {
		live = []history.Row{}
	}
	t.current.Live = live
	round.Segments, round.Floors, round.Table, round.Leads, round.Holders = t.segments, t.floors, t.wrong, t.leads, t.held
	initial := make([]history.Row, 0, len(t.seen))
	for _, r := range t.seen {
		initial = append(initial, r)
	}
	slices.SortFunc(initial, func(a, b history.Row) int { return cmp.Compare(a.Revision, b.Revision) })
	t.current = &history.Segment{From: t.last, To: t.last, Initial: initial}
	t.segments, t.floors, t.wrong, t.leads, t.held = []*history.Segment{t.current}, nil, nil, nil, 0
	return nil
}

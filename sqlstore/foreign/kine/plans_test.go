package kine_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
)

// reading holds, for each kind of database, how to explain a statement: a match of whole means that
// it reads each row of the table, and allowed is the one scan of an index that is intended.
var reading = map[string]struct {
	explain        string
	before         []string
	whole, allowed *regexp.Regexp
}{
	"SQLite": {"EXPLAIN QUERY PLAN ", nil,
		regexp.MustCompile(`SCAN kine|SCAN kv|TEMP B-TREE`), regexp.MustCompile(`SCAN kine USING COVERING INDEX kine_(name|name_id|list_query)_index`)},
	// A table of a few rows is read whole for being short: whether it can be otherwise is the question.
	"PostgreSQL": {"EXPLAIN ", []string{"SET enable_seqscan = off", "SET enable_bitmapscan = off"},
		regexp.MustCompile(`Seq Scan|^Sort`), regexp.MustCompile(`^$`)},
	"MariaDB": {"EXPLAIN ", nil,
		regexp.MustCompile(`kine ALL|kv ALL`), regexp.MustCompile(`^$`)},
}

// plans: no statement looks at the rows of the whole table; the names and ids of all are
// read in an index. Any row is what qAny asks for, and takes the first.
func (d database) plans(t *testing.T) {
	db, url := d.create(t, "planned")
	if d.name == "SQLite" { // the file must not exist
		url += "2"
	}
	if err := sink(t, url).Commit(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		other, err := sql.Open("sqlite", "file:"+path)
		db = opened(t, other, err)
	}
	db.SetMaxOpenConns(1)
	how := reading[d.name]
	for _, statement := range how.before {
		run(t, db, statement)
	}
	for _, s := range kine.Statements()[d.name] {
		plan := explained(t, db, how.explain+s.SQL, s.Args...)
		if plan == "" {
			t.Errorf("%s: no plan", s.Name)
		}
		if rest := how.allowed.ReplaceAllString(plan, ""); s.Name != "qAny" && how.whole.MatchString(rest) {
			t.Errorf("%s reads the table whole:\n%s", s.Name, plan)
		}
	}
	if plan := explained(t, db, how.explain+"SELECT SUM(lease) FROM kine"); !how.whole.MatchString(how.allowed.ReplaceAllString(plan, "")) {
		t.Errorf("a scan of the whole table is not distinguished from others:\n%s", plan)
	}
}

// explained returns the rows of a plan, their columns joined.
func explained(t *testing.T, db *sql.DB, statement string, args ...any) string {
	t.Helper()
	rows, err := db.Query(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			fmt.Fprintf(&plan, "%s ", map[bool]string{true: v.String, false: "-"}[v.Valid])
		}
		plan.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

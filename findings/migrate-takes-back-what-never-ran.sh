#!/bin/sh
# github.com/golang-migrate/migrate/v4 v4.20.1.
#
# Seen: a migration that arrives with a version below the current one is never run: Up says "no change". But Down
# runs its down file, which takes back what was never done. And where a version has no down file, Down counts it as
# taken back and goes on; Up then runs it a second time.
# Expected: an error for a gap, as other tools have it, or the same set of versions up and down. Its documentation
# orders versions "upward" and "downward" and recommends the pair of files.
# Who is hurt: teams with timestamps as versions: the branch that is merged second has the older one. Production lacks the
# column without an error, a fresh test database has it, and the way back drops a table or an index that is in use
# by another migration, or ends "dirty" half way because there is nothing to drop.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/stub"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

func main() {
	driver, err := stub.WithInstance(nil, &stub.Config{})
	if err != nil {
		panic(err)
	}
	// files maps the names of files to what the database is to run.
	step := func(what string, files string, run func(*migrate.Migrate) error) {
		all := fstest.MapFS{}
		for _, name := range strings.Fields(files) {
			all[name] = &fstest.MapFile{Data: []byte(strings.TrimSuffix(name, ".sql"))}
		}
		source, err := iofs.New(all, ".")
		if err != nil {
			panic(err)
		}
		database := driver.(*stub.Stub)
		database.MigrationSequence = nil
		m, err := migrate.NewWithInstance("iofs", source, "stub", driver)
		if err != nil {
			panic(err)
		}
		err = run(m)
		fmt.Printf("%-40s ran %v, version %d, error %v\n", what+":", database.MigrationSequence, database.CurrentVersion, err)
	}
	up, down := (*migrate.Migrate).Up, (*migrate.Migrate).Down
	step("up to 1 and 3", "1_a.up.sql 1_a.down.sql 3_c.up.sql 3_c.down.sql", up)
	step("2 is merged, up", "1_a.up.sql 1_a.down.sql 2_b.up.sql 2_b.down.sql 3_c.up.sql 3_c.down.sql", up)
	step("down", "1_a.up.sql 1_a.down.sql 2_b.up.sql 2_b.down.sql 3_c.up.sql 3_c.down.sql", down)
	step("up, 2 has no down file", "1_a.up.sql 1_a.down.sql 2_b.up.sql", up)
	step("down", "1_a.up.sql 1_a.down.sql 2_b.up.sql", down)
	step("up again", "1_a.up.sql 1_a.down.sql 2_b.up.sql", up)
}
EOF
go mod init finding 2>/dev/null
go get github.com/golang-migrate/migrate/v4@v4.20.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
up to 1 and 3:                           ran [1_a.up 3_c.up], version 3, error <nil>
2 is merged, up:                         ran [], version 3, error no change
down:                                    ran [3_c.down 2_b.down 1_a.down], version -1, error <nil>
up, 2 has no down file:                  ran [1_a.up 2_b.up], version 2, error <nil>
down:                                    ran [1_a.down], version -1, error <nil>
up again:                                ran [1_a.up 2_b.up], version 2, error <nil>
EOF
diff want out

// Package tokenfile authenticates by a static CSV file of bearer tokens: token,
// user name, user UID and, optionally, one column of comma-separated groups.
//
// It promises: no empty token and no user without a name is accepted; the error for an
// invalid row names its line and never its token.
package tokenfile

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rowlock/rowlock/authx"
)

// Authenticator knows the tokens of one file, read once. Tokens are looked up by
// their hash, so that the time of a look-up reveals nothing about them.
type Authenticator struct {
	byHash map[[sha256.Size]byte]*authx.Authenticated
	// Remarks name the rows that do not count, with reasons.
	Remarks []string
}

// Load reads a file. Errors name the file and the line of an invalid row, but not its content.
func Load(path string) (*Authenticator, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("token auth file: %w", err)
	}
	defer f.Close()
	a, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("token file '%s' %w", path, err)
	}
	return a, nil
}

func parse(r io.Reader) (*Authenticator, error) {
	a := &Authenticator{byHash: map[[sha256.Size]byte]*authx.Authenticated{}}
	lines := map[[sha256.Size]byte]int{} // the line of a token
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = -1
	rows.TrimLeadingSpace = true
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
		line, _ := rows.FieldPos(0)
		if len(row) < 3 {
			return nil, fmt.Errorf("must have at least 3 columns (token, user name, user uid), found %d (line %d)", len(row), line)
		}
		a.add(row, line, lines)
	}
}

// add takes a row. Of rows with the same token the last one counts, as on a stock server.
func (a *Authenticator) add(row []string, line int, lines map[[sha256.Size]byte]int) {
	remark := func(format string, args ...any) { a.Remarks = append(a.Remarks, fmt.Sprintf(format, args...)) }
	switch {
	case row[0] == "":
		remark("line %d has an empty token, and is passed over", line)
		return
	case row[1] == "":
		remark("line %d has an empty user name, and is passed over", line)
		return
	}
	hash := sha256.Sum256([]byte(row[0]))
	if before, twice := lines[hash]; twice {
		remark("line %d has the token of line %d, and counts in its place", line, before)
	}
	lines[hash] = line
	id := &authx.Identity{Name: row[1], UID: row[2]}
	if len(row) > 3 {
		for g := range strings.SplitSeq(row[3], ",") {
			if g = strings.TrimSpace(g); g != "" {
				id.Groups = append(id.Groups, g)
			}
		}
	}
	if len(row) > 4 {
		remark("line %d has more than 4 columns, and those behind the fourth do not count: groups stand in one, as \"a,b\"", line)
	}
	a.byHash[hash] = &authx.Authenticated{Identity: id}
}

// AuthenticateToken implements authx.TokenAuthenticator; an unknown token is not ours.
func (a *Authenticator) AuthenticateToken(_ context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	who, ok := a.byHash[sha256.Sum256([]byte(token))]
	return who, ok, nil
}

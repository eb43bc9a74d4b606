// Package tokenfile authenticates by a static CSV file of bearer tokens: token,
// user name, user UID and, optionally, one column of comma-separated groups.
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
// their hash, so that the time a look-up takes tells nothing about them.
type Authenticator struct {
	byHash map[[sha256.Size]byte]*authx.Authenticated
}

// Load reads a file. Errors name the file and, for a bad row, its line, but never
// what stands in it.
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
		if row[0] == "" {
			continue
		}
		id := &authx.Identity{Name: row[1], UID: row[2]}
		for _, column := range row[3:] {
			for _, g := range strings.Split(column, ",") {
				if g = strings.TrimSpace(g); g != "" {
					id.Groups = append(id.Groups, g)
				}
			}
		}
		a.byHash[sha256.Sum256([]byte(row[0]))] = &authx.Authenticated{Identity: id}
	}
}

// AuthenticateToken implements authx.TokenAuthenticator; an unknown token is not ours.
func (a *Authenticator) AuthenticateToken(_ context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	who, ok := a.byHash[sha256.Sum256([]byte(token))]
	return who, ok, nil
}

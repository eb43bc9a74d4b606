package postgres

import (
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// source is a connection string with the files that it names: password and service files, certificates,
// keys, lists of revoked certificates. They are read again for every connection, as
// credentials that live for hours are replaced under the same names.
type source struct {
	text  string
	first *pgxpool.Config
	log   *slog.Logger

	mu   sync.Mutex
	last *pgconn.Config // that could be read
	bad  string         // its error when it was last read
}

func newSource(text string, log *slog.Logger) (*source, error) {
	pc, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &source{text: text, first: pc, log: log, last: &pc.ConnConfig.Config}, nil
}

// now returns the string with its files as they are now, or as they were last readable: a file may be half
// written, or a key may arrive before its certificate.
func (s *source) now() *pgconn.Config {
	pc, err := parse(s.text)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && err.Error() != s.bad:
		s.bad = err.Error()
		s.log.Warn("a file that the connection string names cannot be used: new connections to the database use its previous content; correct the file", "error", err)
	case err == nil && s.bad != "":
		s.bad = ""
		s.log.Info("the files that the connection string names can be used again")
	}
	if err == nil {
		now := &pc.ConnConfig.Config
		if now.Password == "" { // the password file is away
			now.Password = s.last.Password
		}
		s.last = now
	}
	return s.last
}

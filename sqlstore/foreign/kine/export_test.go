package kine

import "github.com/rowlock/rowlock/sqlstore/foreign"

// Statement is one of queries.go, as it is explained.
type Statement struct {
	Name, SQL string
	Args      []any
}

// Statements returns the statements that only read, by the kind of database.
func Statements() map[string][]Statement {
	head, first := Statement{"qHead", qHead, nil}, Statement{"qAny", qAny, nil}
	most := []any{int64(foreign.MaxValue)}
	return map[string][]Statement{
		"SQLite":     {{"qSQLiteLive", qSQLiteLive, most}, head, first},
		"PostgreSQL": {{"qPostgresLive", qPostgresLive, most}, head, first},
		"MariaDB":    {{"qMySQLLive", qMySQLLive, most}, head, first},
	}
}

// MySQLPassword returns the password by which the database of a URL is opened.
func MySQLPassword(url string) (string, error) {
	cfg, err := mysqlConfig(url)
	if err != nil {
		return "", err
	}
	return cfg.Passwd, nil
}

package kine

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlName is the length of the key column in the table that kine creates in MySQL.
const mysqlName = 630

// mysqlConfig parses the name of a database: kine's USER:PASSWORD@tcp(HOST:PORT)/DATABASE, or the URL
// mysql://USER:PASSWORD@HOST:PORT/DATABASE. Errors contain nothing of it.
func mysqlConfig(text string) (*mysql.Config, error) {
	rest := strings.TrimPrefix(text, "mysql://")
	if !strings.Contains(rest, "(") {
		u, err := url.Parse("mysql://" + rest)
		if err != nil {
			return nil, errors.New("the URL of a MySQL database of kine does not parse: want mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE")
		}
		user := u.User.Username()
		if password, ok := u.User.Password(); ok {
			user += ":" + password
		}
		if user != "" {
			user += "@"
		}
		rest = fmt.Sprintf("%stcp(%s)%s", user, u.Host, u.Path)
		if u.RawQuery != "" {
			rest += "?" + u.RawQuery
		}
	}
	cfg, err := mysql.ParseDSN(rest)
	if err != nil || cfg.DBName == "" {
		return nil, errors.New("the URL of a MySQL database of kine does not parse, or names no database: want mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE")
	}
	if cfg.Passwd == "" { // as MySQL's own programs do: all users see the arguments of a command
		cfg.Passwd = os.Getenv("MYSQL_PWD")
	}
	cfg.Logger = log.New(io.Discard, "", 0) // it logs errors that it also returns
	return cfg, nil
}

// isTaken knows the error of a unique index, ER_DUP_ENTRY.
func isTaken(err error) bool {
	var refused *mysql.MySQLError
	return errors.As(err, &refused) && refused.Number == 1062
}

func openMySQL(text string) (db *sql.DB, describe string, err error) {
	cfg, err := mysqlConfig(text)
	if err != nil {
		return nil, "", err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("the URL of a MySQL database of kine: %w", err)
	}
	db = sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, fmt.Sprintf("kine MySQL database %s at %s", cfg.DBName, cfg.Addr), nil
}

module github.com/rowlock/rowlock/e2e/suites

go 1.26.4

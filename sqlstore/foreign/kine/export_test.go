package kine

// MySQLPassword is the password by which the database of a URL is opened.
func MySQLPassword(url string) (string, error) {
	cfg, err := mysqlConfig(url)
	if err != nil {
		return "", err
	}
	return cfg.Passwd, nil
}

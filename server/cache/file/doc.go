// Package file reads and writes cache files: the objects of a server as its memory has them, for the next start. A file
// is a blockfile. Each block has objects of one resource, in key order; its directory says what it takes to read them.
//
// The package knows no items: package cache makes Objects of its items and items of Objects. A reader trusts nothing in a file
// further than its checks go: damage is the end of the file, and never of the process. Whether a file is
// of the database that a server uses is for the database to say (sqlstore.Attestor).
package file

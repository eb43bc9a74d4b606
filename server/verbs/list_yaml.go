package verbs

import (
	"bytes"

	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/objects"
)

// sendYAML answers with a list as YAML, item by item: the writer of YAML takes many times
// the memory of what it writes.
func (v *view) sendYAML(c *Call, code int, p *objects.Page) error {
	if len(p.Items) == 0 {
		var list bytes.Buffer
		if err := v.streamJSON(&list, p); err != nil {
			return err
		}
		return v.yamlList(c, code, list.Bytes(), "items", 0, nil)
	}
	frame := v.appendListTail(v.appendListHead(nil, p), p)
	return v.yamlList(c, code, frame, "items", len(p.Items), func(i int, dst []byte) ([]byte, error) {
		return v.appendJSON(dst, p.Items[i], true)
	})
}

// sendTableYAML answers with a table as YAML, row by row.
func (v *view) sendTableYAML(c *Call, code int, p *objects.Page, include table.Include) error {
	definitions, err := v.definitions()
	if err != nil {
		return err
	}
	frame, err := table.AppendHead(nil, v.form.As.Version, p.Meta(), definitions)
	if err != nil {
		return err
	}
	now := v.h.now()
	return v.yamlList(c, code, append(frame, table.Tail...), "rows", len(p.Items), func(i int, dst []byte) ([]byte, error) {
		return v.appendRow(dst, p.Items[i], include, now)
	})
}

// yamlList answers with the document that frame is as JSON, and in its empty list with n
// items, of which item appends one.
func (v *view) yamlList(c *Call, code int, frame []byte, field string, n int, item func(i int, dst []byte) ([]byte, error)) error {
	if n == 0 {
		data, err := yaml.FromJSON(nil, frame)
		if err != nil {
			return err
		}
		return v.h.writeBody(c, v.form.Type, code, data)
	}
	buf := getBuffer()
	defer putBuffer(buf)
	c.W.Header().Set("Content-Type", v.form.Type)
	body := framing.NewBody(c.W, c.R, code, v.h.compresses())
	w := &paced{body, v.h.pace(c)}
	defer w.end()
	list, err := yaml.NewList(w, frame, field)
	if err != nil {
		return err
	}
	defer body.Close()
	for i := range n {
		data, err := item(i, (*buf)[:0])
		if err == nil {
			err = list.Item(data)
		}
		if err != nil {
			return nil // the client has gone; what else could fail has been made before
		}
		*buf = data
	}
	_ = list.Close()
	return nil
}

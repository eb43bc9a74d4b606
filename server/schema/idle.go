package schema

import (
	"context"
	"time"
)

const (
	// keptFor is the time until the unused text of a document of custom kinds is dropped: building it again from
	// the definitions takes some milliseconds.
	keptFor = 45 * time.Second
	// keptFor2 is the same for the document of version 2, whose parts take some seconds where
	// there are a thousand definitions.
	keptFor2 = 10 * time.Minute
	// large2 limits the compressed size of a form for which keptFor2 applies; keptFor applies to larger ones. Some
	// three hundred definitions of 150 KB reach it.
	large2 = 8 << 20
)

// keep records the use of a document. The caller holds mu.
func (d *Documents) keep(doc *document) {
	doc.asked = d.Now()
	d.begin()
}

// begin has Run look after the cached forms.
func (d *Documents) begin() {
	select {
	case d.begun <- struct{}{}:
	default: // it is known
	}
}

// Run drops the texts of documents that have not been requested for a while, until ctx ends. While there are
// none it has no timer.
func (d *Documents) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.begun:
		}
		for timer := time.NewTicker(keptFor / 3); ; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
			if d.sweep() == 0 {
				timer.Stop()
				break
			}
		}
	}
}

// sweep drops texts that have not been requested for a while, and returns how many remain. Requests that hold
// a document keep it to the end; its tag stays.
func (d *Documents) sweep() (left int) {
	left = d.sweep2()
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.Now().Add(-keptFor)
	for key, doc := range d.documents {
		switch {
		case key == "" || doc.packed == nil || !d.customs(doc.resources):
		case doc.asked.After(before):
			left++
		default:
			d.documents[key] = &document{etag: doc.etag, modified: doc.modified, resources: doc.resources}
		}
	}
	return left
}

// size2 returns how many bytes the parts of a form of the document of version 2 have, compressed.
func (d *Documents) size2(protobuf bool) (n int) {
	for _, p := range d.swaggerParts {
		of := []*piece{p.paths, p.schemas}
		if protobuf {
			of = []*piece{p.wire}
		}
		for _, one := range of {
			if one != nil {
				n += len(one.packed)
			}
		}
	}
	return n
}

// sweep2 does so for the forms of the document of version 2.
func (d *Documents) sweep2() (left int) {
	select {
	case d.making2 <- struct{}{}:
	default:
		return 1 // one is being made
	}
	defer func() { <-d.making2 }()
	d.mu.Lock()
	defer d.mu.Unlock()
	for protobuf, asked := range d.asked2 {
		kept := keptFor2
		if d.size2(protobuf) > d.large2 {
			kept = keptFor
		}
		if asked.After(d.Now().Add(-kept)) {
			left++
			continue
		}
		delete(d.asked2, protobuf)
		delete(d.swaggerBases, protobuf)
		*d.slot2(protobuf) = nil
		for _, p := range d.swaggerParts {
			if protobuf {
				p.wire = nil
			} else {
				p.schemas = nil
			}
		}
	}
	if left == 0 {
		clear(d.swaggerParts)
	}
	return left
}

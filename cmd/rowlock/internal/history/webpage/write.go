package webpage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
)

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	// Objects are not escaped as HTML but as content of a script's string: package json writes no <, > or &,
	// so that no text ends the element.
	data, err := json.Marshal(p.objects)
	if err != nil {
		return err
	}
	var t text
	t.head(p)
	t.raw("<main>\n<nav aria-label=\"objects\">\n<input id=\"find\" type=\"search\" placeholder=\"find an object\" aria-label=\"find an object\">\n")
	for n, o := range p.objects {
		t.put("<a href=\"#o%v\">%v", n, o.Name)
		if o.Namespace != "" {
			t.put(" <small>%v</small>", o.Namespace)
		}
		t.raw("</a>\n")
	}
	t.raw("</nav>\n<div>\n")
	for n, o := range p.objects {
		t.object(n, o)
	}
	t.raw("<section id=\"compare\" hidden>\n<h2 id=\"compared\"></h2>\n<pre id=\"diff\"></pre>\n</section>\n</div>\n</main>\n")
	t.raw("<script type=\"application/json\" id=\"data\">" + string(data) + "</script>\n<script>" + script + "</script>\n</body>\n</html>\n")
	_, err = io.WriteString(w, t.String())
	return err
}

// text is HTML that grows.
type text struct{ strings.Builder }

// raw adds HTML that contains no data of objects or servers.
func (t *text) raw(s string) { t.WriteString(s) }

// put adds HTML, in which each %v is replaced by an escaped value: as text between elements, or in an
// attribute in double quotes.
func (t *text) put(layout string, values ...any) {
	for i, v := range values {
		values[i] = html.EscapeString(fmt.Sprint(v))
	}
	fmt.Fprintf(t, layout, values...)
}

func (t *text) head(p *Page) {
	title := fmt.Sprintf("The past of %d objects", len(p.objects))
	if len(p.objects) == 1 {
		title = "The past of " + p.objects[0].Name
	}
	policy := "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; base-uri 'none'; form-action 'none'"
	t.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	t.put("<meta http-equiv=\"Content-Security-Policy\" content=\"%v\">\n", policy)
	t.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	t.put("<title>%v</title>\n", title)
	t.raw("<style>" + style + "</style>\n</head>\n<body>\n<header>\n")
	t.put("<h1>%v</h1>\n<p>%v objects, %v writes. Written by rowlock %v from %v at %v; times are in %v.</p>\n", title, len(p.objects), p.writes,
		p.config.Version, p.config.Server, p.config.Now.Format("2006-01-02 15:04:05"), p.config.Now.Format("MST (Z07:00)"))
	for _, note := range p.notes {
		t.put("<p class=\"note\">%v</p>\n", note)
	}
	t.raw("</header>\n")
}

func (t *text) object(n int, o object) {
	t.put("<section class=\"object\" id=\"o%v\">\n<h2>%v", n, o.Name)
	if o.Namespace != "" {
		t.put(" in namespace %v", o.Namespace)
	}
	t.raw("</h2>\n<div class=\"rows\"><table>\n<thead><tr><th class=\"pick\">from</th><th class=\"pick\">to</th>" +
		"<th>when</th><th>change</th><th>by</th><th>fields</th><th>revision</th></tr></thead>\n<tbody>\n")
	for i, r := range o.Revisions {
		t.raw("<tr>\n")
		for _, side := range []string{"from", "to"} {
			t.put("<td class=\"pick\"><input type=\"radio\" name=\"%v%v\" value=\"%v\" data-side=\"%v\" aria-label=\"%v revision %v\"></td>\n",
				side, n, i, side, side, r.Revision)
		}
		t.put("<td class=\"when\">%v</td>\n<td class=\"change %v\">%v</td>\n<td>%v</td>\n", r.When, r.Class, r.Change, r.By)
		t.put("<td>%v<details><summary>the object</summary><pre>%v</pre></details></td>\n<td class=\"number\">%v</td>\n</tr>\n", r.Fields, r.Text, r.Revision)
	}
	t.raw("</tbody>\n</table></div>\n")
	if o.More {
		t.raw("<p class=\"note\">There are older writes than these.</p>\n")
	}
	t.raw("</section>\n")
}

// hash returns the source expression of a Content-Security-Policy that allows a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

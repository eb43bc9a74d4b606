package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// Sizes of the time lines, in pixels.
const (
	width   = 1100
	left    = 120
	chart   = 90
	rowHigh = 16
)

// bar is a rectangle.
type bar struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

type label struct {
	X, Y float64
	Text string
}

// drawing is the time lines.
type drawing struct {
	Width, Height int
	Bars          []bar
	Labels        []label
}

// columns is the most that a chart has: of a long run one is many seconds.
const columns = 480

func (r *Run) draw() drawing {
	total := max(1, len(r.Seconds))
	for _, f := range slices.Concat(r.Times, r.Stalls.Times) {
		total = max(total, int(f.End)+1)
	}
	scale := float64(width-left) / float64(total)
	d := drawing{Width: width + 10}
	y := d.chart(r, total, scale, 0, "requests/s", func(s Second) []part {
		return []part{{s.Unknown, "unknown"}, {s.Refused, "refused"}, {s.Done, "done"}}
	})
	y = d.chart(r, total, scale, y, "events/s", func(s Second) []part { return []part{{s.Events, "events"}} })
	row := func(name, class string, n int, times []Fault) {
		d.Labels = append(d.Labels, label{0, y + 12, fmt.Sprintf("%s (%d)", name, n)})
		for _, f := range times {
			if f.Name == name {
				d.Bars = append(d.Bars, bar{left + f.Begin*scale, y + 3, max(2, (f.End-f.Begin)*scale), rowHigh - 5, class, fmt.Sprintf("%.1f s to %.1f s: %s", f.Begin, f.End, f.What)})
			}
		}
		y += rowHigh
	}
	if n := len(r.Stalls.Times); n > 0 {
		row(stoodStill, "stall", n, r.Stalls.Times)
	}
	names := slices.SortedFunc(maps.Keys(r.Faults), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Faults[b], r.Faults[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		row(name, "fault", r.Faults[name], r.Times)
	}
	for i := range 7 {
		at := float64(total) * float64(i) / 6
		d.Labels = append(d.Labels, label{left + at*scale - 8*float64(i)/2, y + 14, (time.Duration(at) * time.Second).String()})
	}
	d.Height = int(y) + 20
	return d
}

type part struct {
	n     int
	class string
}

// chart stacks the parts of each second, and returns where the next chart begins.
func (d *drawing) chart(r *Run, total int, scale, y float64, name string, parts func(Second) []part) float64 {
	each := (total + columns - 1) / columns
	var sums []Second
	for i, s := range r.Seconds {
		if i%each == 0 {
			sums = append(sums, Second{})
		}
		last := &sums[len(sums)-1]
		last.Done, last.Refused, last.Unknown, last.Events = last.Done+s.Done, last.Refused+s.Refused, last.Unknown+s.Unknown, last.Events+s.Events
	}
	most := 1
	for _, s := range sums {
		n := 0
		for _, p := range parts(s) {
			n += p.n
		}
		most = max(most, n)
	}
	d.Labels = append(d.Labels, label{0, y + 14, name}, label{0, y + 30, fmt.Sprintf("up to %d", most/each)})
	for i, s := range sums {
		at := y + chart
		for _, p := range parts(s) {
			high := float64(p.n) / float64(most) * (chart - 6)
			at -= high
			if p.n > 0 {
				d.Bars = append(d.Bars, bar{left + float64(i*each)*scale, at, max(1, float64(each)*scale-0.3), high, p.class, fmt.Sprintf("%d s: %d %s", i*each, p.n/each, p.class)})
			}
		}
	}
	return y + chart + 8
}

type count struct {
	Name, Text string
	N          int
}

func sorted(m map[string]int) (list []count) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, count{Name: k, N: m[k]})
	}
	return list
}

// properties returns all that is judged, with how often it was.
func (r *Run) properties() (list []count) {
	for _, p := range judge.Properties {
		list = append(list, count{p.Name, p.Promise, r.Judged[p.Name]})
	}
	return list
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>rowlock robustness, {{.Run.Store}}, seed {{.Run.Seed}}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1130px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse } td:first-child { white-space: nowrap } td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top } td.n { text-align: right; font-variant-numeric: tabular-nums }
pre { background: #f5f5f3; padding: .8em; overflow-x: auto; font-size: 12.5px }
.good { color: #176b2c } .bad { color: #a40000 }
svg text { font: 11.5px system-ui, sans-serif; fill: #444 } svg { max-width: 100%; height: auto }
.done { fill: #7fb2d9 } .refused { fill: #e0a030 } .unknown { fill: #b03030 } .events { fill: #86b586 } .fault { fill: #666 } .stall { fill: #b06fc0 }
.columns { display: flex; gap: 4em; flex-wrap: wrap }
.key span { margin-right: 1.2em } .key b { display: inline-block; width: .8em; height: .8em; margin-right: .35em }
</style></head><body>
<h1>Robustness of rowlock on {{.Run.Store}}: {{if .Run.Violations}}<span class="bad">{{len .Run.Violations}} violations</span>{{else}}<span class="good">no violation</span>{{end}}</h1>
<p>{{.Run.Servers}} {{if eq .Run.Servers 1}}server{{else}}servers{{end}} of {{.Run.Version}}, {{.Took}}, from {{.Began}}. {{.Run.Operations}} operations, {{.Run.Watches}} watches ({{.Run.Resumed}} of them resumed or began at a version)
with {{.Run.Events}} events and {{.Run.Bookmarks}} bookmarks, {{.Run.Revisions}} revisions, {{len .Run.Times}} faults, {{.Run.Kills}} servers killed.</p>
<pre>{{.Run.Command}}</pre>
{{range .Run.Notes}}<p>{{.}}</p>{{end}}
{{with .Run.Stalls.String}}<p>What {{.}}.</p>{{end}}
<h2>What happened when</h2>
<p class="key"><span><b style="background:#7fb2d9"></b>answered</span><span><b style="background:#e0a030"></b>refused (503, 429)</span><span><b style="background:#b03030"></b>without an answer</span><span><b style="background:#86b586"></b>events</span><span><b style="background:#666"></b>faults</span><span><b style="background:#b06fc0"></b>the program or a server stood still</span></p>
<svg width="{{.Draw.Width}}" height="{{.Draw.Height}}" viewBox="0 0 {{.Draw.Width}} {{.Draw.Height}}" role="img" aria-label="time lines of requests, events and faults">
{{range .Draw.Bars}}<rect class="{{.Class}}" x="{{printf "%.1f" .X}}" y="{{printf "%.1f" .Y}}" width="{{printf "%.1f" .W}}" height="{{printf "%.1f" .H}}"><title>{{.Title}}</title></rect>
{{end}}{{range .Draw.Labels}}<text x="{{printf "%.1f" .X}}" y="{{printf "%.1f" .Y}}">{{.Text}}</text>
{{end}}</svg>
{{if .Run.Violations}}<h2>Violations</h2>
{{range .Run.Violations}}<h3 class="bad">{{.Property}}, round {{.Round}}: {{.What}}</h3>
<pre>{{range .History}}{{.}}
{{end}}</pre>{{end}}{{end}}
<h2>What was judged</h2>
<table><tr><th>property</th><th>held against</th><th>promise</th></tr>
{{range .Properties}}<tr><td>{{.Name}}</td><td class="n">{{.N}}</td><td>{{.Text}}</td></tr>
{{end}}</table>
{{if .Open}}<p>Not judged, because the judge did not see enough:</p>
<table>{{range .Open}}<tr><td class="n">{{.N}}</td><td>{{.Name}}</td></tr>{{end}}</table>{{end}}
<div class="columns"><div><h2>Requests</h2>
<table>{{range .Requests}}<tr><td>{{.Name}}</td><td class="n">{{.N}}</td></tr>{{end}}</table></div>
<div><h2>Faults</h2>
<table>{{range .Faults}}<tr><td>{{.Name}}</td><td class="n">{{.N}}</td></tr>{{end}}{{range .NotMade}}<tr><td class="bad">not made: {{.Name}}</td><td class="n">{{.N}}</td></tr>{{end}}</table></div></div>
<h2>What this does not prove</h2>
<ul>{{range .NotProven}}<li>{{.}}</li>{{end}}</ul>
</body></html>
`))

// WriteHTML writes the report for people.
func (r *Run) WriteHTML(w io.Writer) error {
	return page.Execute(w, map[string]any{
		"Run": r, "Draw": r.draw(), "Took": r.Took.Round(time.Second).String(), "Began": r.Began.Format("2006-01-02 15:04:05 UTC"),
		"Properties": r.properties(), "Open": sorted(r.Open), "Requests": sorted(r.Requests), "Faults": sorted(r.Faults), "NotMade": sorted(r.NotMade), "NotProven": NotProven,
	})
}

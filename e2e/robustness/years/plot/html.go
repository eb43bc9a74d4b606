package plot

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Sizes of a plot, in pixels.
const (
	wide   = 520
	high   = 130
	margin = 4
)

// drawn is a measure as a plot.
type drawn struct {
	*Measure
	Line      string  // points of the polyline
	Settled   float64 // where judged samples begin
	Top       string
	Bottom    string
	Thirds    []segment // the medians
	Wide      int
	High      int
	Limit     float64 // the greatest value allowed, drawn as a line
	LimitSeen bool
	Median    [3]string
	Rate      string
	Title     string
}

type segment struct{ From, To, Y float64 }

func (r *Report) draw(m *Measure) drawn {
	d := drawn{Measure: m, Wide: wide, High: high}
	low, top, end := 0.0, 0.0, r.Took.Seconds()
	for _, p := range m.Points {
		low, top, end = min(low, p.Value), max(top, p.Value), max(end, p.At)
	}
	if top == low {
		top = low + 1
	}
	x := func(at float64) float64 { return margin + (wide-2*margin)*at/max(end, 1) }
	y := func(v float64) float64 { return high - margin - (high-2*margin)*(v-low)/(top-low) }
	var line strings.Builder
	each := (len(m.Points) + 2*wide - 1) / (2 * wide)
	for i, p := range m.Points {
		if i%max(each, 1) == 0 {
			fmt.Fprintf(&line, "%.1f,%.1f ", x(p.At), y(p.Value))
		}
	}
	d.Line, d.Top, d.Bottom, d.Settled = line.String(), m.Unit.Show(top), m.Unit.Show(low), x(r.Settle)
	if !m.Judged {
		return d
	}
	v, last := m.Verdict, m.Points[len(m.Points)-1].At
	third := (last - r.Settle) / 3
	for i, median := range []float64{v.First, v.Middle, v.Last} {
		d.Thirds = append(d.Thirds, segment{x(r.Settle + third*float64(i)), x(r.Settle + third*float64(i+1)), y(median)})
		d.Median[i] = m.Unit.Show(median)
	}
	d.Limit, d.LimitSeen = y(v.First+v.Allowed), v.First+v.Allowed <= top
	d.Rate = m.Unit.Show(v.Slope * 3600)
	return d
}

type count struct {
	Name string
	N    int
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": func(v float64) string { return fmt.Sprintf("%.4g", v) },
	"month": func(v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f", v)
	},
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>rowlock years, {{.Run.Store}}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1130px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em } h3 { font-size: 1em; margin: 0 }
table { border-collapse: collapse } td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
pre { background: #f5f5f3; padding: .8em; overflow-x: auto; font-size: 12.5px; white-space: pre-wrap }
.good { color: #176b2c } .bad { color: #a40000 }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(480px, 1fr)); gap: 1.4em 2em }
.plots p { margin: 0; font-size: 12.5px; color: #555 } svg { display: block; width: 100%; height: auto; background: #fafaf8 }
polyline { fill: none; stroke: #3d7fb0; stroke-width: 1.2 } .third { stroke: #222; stroke-width: 1.5 } .settle { stroke: #bbb; stroke-dasharray: 3 3 } .limit { stroke: #a40000; stroke-dasharray: 5 4 }
svg text { font: 11px system-ui, sans-serif; fill: #555 }
</style></head><body>
<h1>A month of rowlock on {{.Run.Store}}: {{if .Run.Faults}}<span class="bad">{{len .Growing}} measures grow, {{len .Run.Wrong}} answers or results are wrong</span>{{else}}<span class="good">nothing grows</span>{{end}}</h1>
<p>{{.Run.Version}}, {{.Took}} from {{.Began}}. Revisions {{.Run.First}} to {{.Run.Last}}, past 2<sup>53</sup>.</p>
<pre>{{.Run.Command}}</pre>
{{range .Growing}}<p class="bad">{{.Growth}}.</p>{{end}}
{{range .Run.Wrong}}<pre class="bad">{{.}}</pre>{{end}}
<h2>How a month becomes a run</h2>
<p>What turns over, in 30 days of a cluster of 1,000 nodes, and in this run. Retentions are short, so that history, log and Events go many times, and Pods are replaced quickly. Leases are renewed far less often
than in a month: 259,200,000 renewals do not fit.</p>
<table><tr><th>what</th><th class="n">30 days</th><th class="n">this run</th></tr>
{{range .Run.Turnover}}<tr><td>{{.What}}{{if eq .What "time"}}, minutes{{end}}</td><td class="n">{{month .Month}}</td><td class="n">{{number .Run}}</td></tr>
{{end}}</table>
<h2>Measures</h2>
<p>Blue: samples. Black: medians of the thirds after the dashed line, before which the server settles. Red: what the last median may reach. A measure grows if its last median is above the red line, above the middle one, and the median slope between all pairs of samples accounts for half of it.</p>
<div class="plots">
{{range .Plots}}<div><h3 {{if .Verdict.Grows}}class="bad"{{end}}>{{.Name}}{{if .Verdict.Grows}} grows{{end}}</h3>
<svg viewBox="0 0 {{.Wide}} {{.High}}" role="img" aria-label="{{.Name}} over time">
<line class="settle" x1="{{printf "%.1f" .Settled}}" x2="{{printf "%.1f" .Settled}}" y1="0" y2="{{.High}}"/>
{{if .LimitSeen}}<line class="limit" x1="{{printf "%.1f" .Settled}}" x2="{{.Wide}}" y1="{{printf "%.1f" .Limit}}" y2="{{printf "%.1f" .Limit}}"/>{{end}}
<polyline points="{{.Line}}"/>
{{range .Thirds}}<line class="third" x1="{{printf "%.1f" .From}}" x2="{{printf "%.1f" .To}}" y1="{{printf "%.1f" .Y}}" y2="{{printf "%.1f" .Y}}"/>
{{end}}<text x="6" y="13">{{.Top}}</text><text x="6" y="124">{{.Bottom}}</text></svg>
<p>{{if .Judged}}medians {{index .Median 0}}, {{index .Median 1}}, {{index .Median 2}}; slope {{.Rate}} an hour{{else}}not judged: too few samples{{end}}</p></div>
{{end}}</div>
<h2>Requests</h2>
<table>{{range .Requests}}<tr><td>{{.Name}}</td><td class="n">{{.N}}</td></tr>{{end}}</table>
</body></html>
`))

// WriteHTML writes the report for people.
func (r *Report) WriteHTML(w io.Writer) error {
	var plots []drawn
	for _, m := range r.Measures {
		plots = append(plots, r.draw(m))
	}
	var requests []count
	for name, n := range maps.All(r.Requests) {
		requests = append(requests, count{name, n})
	}
	slices.SortFunc(requests, func(a, b count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	return page.Execute(w, map[string]any{
		"Run": r, "Growing": r.Growing(), "Plots": plots, "Requests": requests, "Took": r.Took.Round(time.Second).String(), "Began": r.Began.Format("2006-01-02 15:04:05 UTC"),
	})
}

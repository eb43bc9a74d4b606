package plots

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

// Measures of a chart, in pixels.
const (
	width       = 900
	left        = 16
	barStart    = 330 // names end before it
	barEnd      = 640 // values begin after it
	barHeight   = 14
	barGap      = 4
	rowGap      = 14
	headSpace   = 62
	footSpace   = 34
	captionLine = 15
)

// style has colors for light and for dark pages. Color-blind readers can distinguish the colors of bars, too.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:600}.dim{fill:#59636e;font-size:11px}
.axis{stroke:#8c959f;stroke-width:1}.spread{stroke:#1f2328;stroke-width:1.5}.goal{stroke:#cf222e;stroke-width:2;stroke-dasharray:3 2}
.s0{fill:#4c8bd0}.s1{fill:#e08a2e}.s2{fill:#6aa98a}.s3{fill:#a58bc7}.s4{fill:#98a1aa}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.axis{stroke:#656c76}.spread{stroke:#e6edf3}.goal{stroke:#ff7b72}
.s0{fill:#4c8bd0}.s1{fill:#c97a24}.s2{fill:#5b9a7b}.s3{fill:#967bb9}.s4{fill:#7d858e}}
</style>`

const seriesColors = 5

func (c *chart) svg() string {
	var b strings.Builder
	height := headSpace + footSpace + captionLine*(len(c.caption)-1)
	for _, r := range c.rows {
		height += len(r.bars)*(barHeight+barGap) + rowGap
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n%s\n", width, height, width, height, escape(c.group), style)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="24">%s</text>`+"\n", left, escape(c.group))
	c.legend(&b)
	y := headSpace
	for _, r := range c.rows {
		y = r.draw(&b, y)
	}
	for i, line := range c.caption {
		fmt.Fprintf(&b, `<text class="dim" x="%d" y="%d">%s</text>`+"\n", left, height-10-captionLine*(len(c.caption)-1-i), escape(line))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend draws the names of the colors, and the meaning of the lines on the bars.
func (c *chart) legend(b *strings.Builder) {
	x := left
	for i, name := range c.series {
		fmt.Fprintf(b, `<rect class="s%d" x="%d" y="36" width="11" height="11" rx="2"/><text class="dim" x="%d" y="46">%s</text>`+"\n", i%seriesColors, x, x+16, escape(name))
		x += 32 + 7*len([]rune(name))
	}
	fmt.Fprintf(b, `<text class="dim" x="%d" y="46">bar: median, line: least to most%s</text>`+"\n", x, map[bool]string{true: ", dashes: goal"}[c.hasGoal()])
}

func (c *chart) hasGoal() bool {
	for _, r := range c.rows {
		for _, bar := range r.bars {
			if bar.Goal != 0 {
				return true
			}
		}
	}
	return false
}

// draw draws a figure from y on, and returns the start of the next one.
func (r row) draw(b *strings.Builder, y int) int {
	most := 0.0
	for _, bar := range r.bars {
		most = max(most, bar.Max, bar.Goal)
	}
	if most == 0 {
		most = 1
	}
	at := func(v float64) float64 { return barStart + (barEnd-barStart)*max(v, 0)/most }
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", left, y+barHeight-2, escape(r.name+better(r.bars[0].Better)))
	top := y
	for _, bar := range r.bars {
		middle := float64(y) + barHeight/2.0
		fmt.Fprintf(b, `<rect class="s%d" x="%d" y="%d" width="%.1f" height="%d" rx="2"><title>%s</title></rect>`+"\n", bar.series%seriesColors, barStart, y, max(at(bar.Median)-barStart, 1), barHeight, escape(bar.Figure.String()))
		if bar.Min != bar.Max {
			fmt.Fprintf(b, `<path class="spread" d="M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6"/>`+"\n", at(bar.Min), middle, at(bar.Max), at(bar.Min), middle-3, at(bar.Max), middle-3)
		}
		if bar.Goal != 0 {
			fmt.Fprintf(b, `<path class="goal" d="M%.1f %dv%d"/>`+"\n", at(bar.Goal), y-2, barHeight+4)
		}
		fmt.Fprintf(b, `<text class="dim" x="%d" y="%d">%s</text>`+"\n", barEnd+10, y+barHeight-3, escape(bar.String()+goal(bar.Figure)))
		y += barHeight + barGap
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %dV%d"/>`+"\n", barStart, top-2, y-barGap+2)
	return y + rowGap
}

func better(b record.Better) string {
	return map[record.Better]string{record.Lower: " ↓", record.Higher: " ↑"}[b]
}

func goal(f record.Figure) string {
	if f.Goal == 0 {
		return ""
	}
	return ", goal " + record.Number(f.Goal)
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}

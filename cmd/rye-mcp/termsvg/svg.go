package termsvg

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// How the picture is laid out, in pixels of a text of 14.
const (
	charWidth  = 8.4
	lineHeight = 20
	padding    = 18
	barHeight  = 36
)

// palette are colours that can be read on the picture's ground (at least 4.5 to 1).
var palette = map[int]string{
	30: "#8b949e", 31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd", 37: "#e6edf3",
	90: "#8b949e", 91: "#ffa198", 92: "#7ee787", 93: "#f2cc60", 94: "#a5d6ff", 95: "#e2c5ff", 96: "#b3f0ff", 97: "#ffffff",
}

const (
	ground     = "#0d1117"
	foreground = "#e6edf3"
	faint      = "#8b949e"
)

// SVG is the recording as a picture. Where motion is not wanted it shows how the recording
// ended.
func (r *Recorder) SVG() []byte {
	width := 2*padding + charWidth*float64(r.opts.Columns)
	height := barHeight + padding + lineHeight*len(r.rows)
	whole := r.at + holdEnd
	var rules, body bytes.Buffer
	n := 0
	for row, history := range r.rows {
		for i, l := range history {
			until := whole
			if i+1 < len(history) {
				until = history[i+1].at
			}
			if until == l.at {
				continue // it was never seen
			}
			n++
			class := "x" // it stays until the end
			if until < whole {
				class = "p"
			}
			fmt.Fprintf(&rules, "@keyframes k%d{0%%{visibility:hidden}%s{visibility:visible}", n, percent(l.at, whole))
			if until < whole {
				fmt.Fprintf(&rules, "%s{visibility:hidden}", percent(until, whole))
			}
			fmt.Fprintf(&rules, "}#k%d{animation-name:k%d}\n", n, n)
			fmt.Fprintf(&body, "<g id=\"k%d\" class=\"%s\">", n, class)
			writeRow(&body, row, l.cells)
			body.WriteString("</g>\n")
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" height=\"%d\" role=\"img\" aria-labelledby=\"t\">\n", width, height, width, height)
	fmt.Fprintf(&out, "<title id=\"t\">%s</title>\n<style>\n", escaped(r.opts.Title))
	fmt.Fprintf(&out, "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:%s;white-space:pre}\n", foreground)
	fmt.Fprintf(&out, "g{animation-duration:%.2fs;animation-timing-function:step-end;animation-iteration-count:infinite}.p{visibility:hidden}\n", whole.Seconds())
	out.Write(rules.Bytes())
	out.WriteString("@media (prefers-reduced-motion:reduce){g{animation:none!important}}\n</style>\n")
	fmt.Fprintf(&out, "<rect width=\"100%%\" height=\"100%%\" rx=\"10\" fill=\"%s\"/>\n", ground)
	for i, dot := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&out, "<circle cx=\"%d\" cy=\"%d\" r=\"6\" fill=\"%s\"/>\n", padding+4+i*20, barHeight/2, dot)
	}
	fmt.Fprintf(&out, "<text x=\"50%%\" y=\"%d\" text-anchor=\"middle\" style=\"fill:%s\">%s</text>\n", barHeight/2+5, faint, escaped(r.opts.Title))
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// percent is a time as a step of an animation. The first is not 0, where it is hidden.
func percent(at, whole time.Duration) string {
	return fmt.Sprintf("%.3f%%", max(0.001, 100*at.Seconds()/whole.Seconds()))
}

// writeRow draws the cells of a row: cells that look alike are one text, which takes up its
// columns whatever font there is.
func writeRow(out *bytes.Buffer, row int, cells []cell) {
	y := barHeight + lineHeight*(row+1) - 6
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && cells[to].style == cells[from].style && (cells[to].r == ' ') == (cells[from].r == ' ') {
			to++
		}
		if cells[from].r != ' ' {
			var text strings.Builder
			for _, c := range cells[from:to] {
				text.WriteRune(c.r)
			}
			fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>",
				padding+charWidth*float64(from), y, charWidth*float64(to-from), attributes(cells[from].style), escaped(text.String()))
		}
		from = to
	}
}

// attributes are how a style is written; nothing for what looks as everything does.
func attributes(s style) string {
	var rules []string
	switch {
	case s.color != 0:
		rules = append(rules, "fill:"+palette[s.color])
	case s.dim:
		rules = append(rules, "fill:"+faint)
	}
	if s.bold {
		rules = append(rules, "font-weight:bold")
	}
	if s.italic {
		rules = append(rules, "font-style:italic")
	}
	if rules == nil {
		return ""
	}
	return fmt.Sprintf(" style=%q", strings.Join(rules, ";"))
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}
